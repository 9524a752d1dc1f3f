# shellcheck shell=sh
# What the node can do, by trying it; remembered for one boot.
where() { # NAME -> w: its absolute path; a standalone busybox shell prefers its own applets
	w=$1
	IFS=:
	for w_d in $PATH; do
		if [ -x "$w_d/$1" ]; then
			w=$w_d/$1
			break
		fi
	done
	unset IFS
}
mounts() { # [FILE] -> cg2 (where cgroup v2 is mounted, or empty), state_fs (type of the state's file system), disks
	cg2='' state_fs='' m_best='' disks='' m_seen=' ' m_left=32
	while read -r _ _ m_dev m_root m_at m_rest; do
		m_rest=${m_rest#*" - "}
		if [ "${m_rest%% *}" = cgroup2 ] && [ "$m_root" = / ]; then cg2=$m_at; fi
		m_up=${m_at%/} # in a pattern of its own: bash takes a quoted empty word there for no word
		case $S/ in
		"$m_up"/*)
			if [ "${#m_at}" -ge "${#m_best}" ]; then m_best=$m_at state_fs=${m_rest%% *}; fi
			;;
		esac
		case ${m_rest%% *}:$m_at in
		*[\\]* | *:/etc/* | *:/boot | *:/boot/* | *:/efi) ;; # an escaped path, a file, or firmware's
		ext[234]:* | xfs:* | btrfs:* | zfs:* | f2fs:* | bcachefs:* | jfs:* | vfat:* | exfat:* | ntfs3:* | overlay:/)
			case $m_seen in *" $m_dev "*) continue ;; esac
			[ "$m_left" -gt 0 ] || continue
			m_left=$((m_left - 1))
			m_seen="$m_seen$m_dev "
			disks="$disks$nl${m_rest%% *} $m_at"
			;;
		esac
	done <"${1:-/proc/self/mountinfo}"
}
refuse_network_state() { # locks and renames of a network file system are not to be relied on
	case $state_fs in
	nfs | nfs4 | cifs | smb3 | smbfs | 9p | afs | ceph | fuse.* | glusterfs | lustre | gpfs | ocfs2 | gfs2)
		refuse resources "the state directory $S is on a network file system ($state_fs)"
		;;
	esac
}
tools() { # -> containment, ish (words that start init's shell), tick (read or sleep), missing
	cgroup_root
	boot_id
	if get "$S/tools" && [ "${g%% | *}${g##* | }" = "$boot $me ${cg:-none}-" ]; then
		t_l=${g#* | }
		containment=${t_l%% *}
		t_l=${t_l#* }
		tick=${t_l%% *}
		t_l=${t_l#* }
		ish=${t_l%% | *} missing=
		return 0
	fi
	try_tools
	# what is missing may be there the next time
	[ -n "$missing" ] || put "$S/tools" "$boot $me ${cg:-none} | $containment $tick $ish | -"
}
try_tools() {
	missing=
	flock -n "$S/format" true 2>/dev/null || missing="$missing flock"
	setsid -f true 2>/dev/null || missing="$missing setsid"
	mv -T /nonexistent /nonexistent 2>&1 | grep -q "[Nn]o such" || missing="$missing mv"
	[ "$(echo a | sha256sum 2>/dev/null)" != '' ] || missing="$missing sha256sum"
	containment=leader-only
	if [ "$me" = 0 ]; then
		unshare -p -i -f --mount-proc true 2>/dev/null || missing="$missing unshare"
		setpriv --reuid=1 --regid=1 --clear-groups --no-new-privs --bounding-set=-all \
			--inh-caps=-all true 2>/dev/null || missing="$missing setpriv"
		[ -z "$cg" ] || [ -n "$missing" ] || containment=isolated
	elif [ -n "$cg" ] && [ -z "$missing" ]; then
		containment=cgroup
	fi
	missing=${missing# }
	pick_shell
}
pick_shell() { # init should wait without forking, which needs `read -t`; dash has none
	tick='sleep'
	for t_s in sh bash 'busybox ash'; do
		t_p=$(command -v "${t_s%% *}") || continue
		ish=$t_p
		case $t_s in *' '*) ish="$t_p ${t_s#* }" ;; esac
		# shellcheck disable=SC2086 # words
		if echo a | $ish -c 'read -t 1 -r x && [ "$x" = a ]' 2>/dev/null; then
			tick='read'
			return 0
		fi
	done
	ish=$(command -v sh)
}
pids_below() { # DIR: appends to pids, depth first
	set +f
	for b_d in "$1"/*/; do
		if [ -d "$b_d" ]; then pids_below "${b_d%/}"; fi
	done
	set -f
	{
		while read -r b_p; do
			pids="$pids $b_p"
		done <"$1/cgroup.procs"
	} 2>/dev/null
}
