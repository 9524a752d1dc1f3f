# shellcheck shell=sh
# init.sh MODE DIR: what runs a generation and stays with it, in these modes:
#   hop     is started by systemd: leaves its unit for the cgroup, and goes on as enter
#   enter   joins the cgroup, then the namespaces
#   init    is PID 1 of the generation: when the leader is gone it ends, and the kernel ends the rest
#   waiter  starts the leader, recorded before its first instruction, and writes how it ended
#   resume  is init again, after a fork failed
# fd 8 is the FIFO between waiter and init, fd 9 the node's own /proc. Once the leader runs, nothing
# here forks where the shell can wait without it.
set -fu
umask 077
mode=$1 G=$2
ctl='' limit='' containment='' uid='' gid='' groups='' caps='' nproc='' tick='' ish='' private='' setsid='' setpriv='' unshare='' lease='' gen='' boot=''
cd "$G" || exit 125
fail() { # TEXT: before the leader runs; whoever waits for it reads why it never will
	printf '%s\n' "$1" 2>/dev/null >>"$G/err"
	exit 125
}
load() { # the launch file: header, then variables and arguments in order
	l_whole=no
	while read -r k v; do
		case $k in
		env | arg) continue ;;
		end) l_whole=yes ;;
		*) dec "$v" || fail 'its launch file is damaged' ;;
		esac
		case $k in
		ctl) ctl=$d ;;
		limit) limit=$d ;;
		containment) containment=$d ;;
		uid) uid=$d ;;
		gid) gid=$d ;;
		groups) groups=$d ;;
		caps) caps=$d ;;
		nproc) nproc=$d ;;
		tick) tick=$d ;;
		ish) ish=$d ;;
		private) private=$d ;;
		setsid) setsid=$d ;;
		setpriv) setpriv=$d ;;
		unshare) unshare=$d ;;
		lease) [ "$d" = - ] || lease=$d ;;
		gen) gen=$d ;;
		boot) boot=$d ;;
		esac
	done <launch
	[ "$l_whole" = yes ] || fail 'its launch file is not whole'
}
own() { # -> o_pid, o_start: of this very process, as the node numbers it; no fork
	IFS= read -r o_st </proc/self/fd/9/self/stat || return 1
	o_pid=${o_st%% *}
	o_st=${o_st##*") "}
	# shellcheck disable=SC2086 # columns
	set -- $o_st
	o_start=${20}
}
centiseconds() { # -> t: of this boot
	read -r t _ </proc/self/fd/9/uptime
	t=${t%.*}${t#*.}
}
expired() { # missing, torn and foreign are expired
	e_gen='' e_boot='' e_until='' e_mark=''
	{ read -r e_gen e_boot e_until e_mark <"$lease"; } 2>/dev/null
	[ "$e_gen $e_boot $e_mark" = "$gen $boot ." ] || return 0
	case $e_until in '' | *[!0-9]* | ?????????????????*) return 0 ;; esac
	centiseconds
	[ "$t" -ge "$e_until" ]
}
ended() { # STATUS [WHY]: over a line made at launch, so that neither a full disk nor a failed fork loses it
	centiseconds
	printf '%-62s.\n' "exit $1 ${t#"${t%%[!0]*}"}${2:+ $2}" 1<>./exit
}

hop() {
	echo 0 2>/dev/null >"$ctl/cgroup.procs" || fail "its cgroup $ctl cannot be entered from its unit"
	# shellcheck disable=SC2086 # the words that start the shell
	exec "$setsid" -f env -i PATH="$PATH" LC_ALL=C $ish "$G/init.sh" enter "$G" </dev/null >>err 2>&1
}
enter() {
	# A generation that was closed has lost its cgroup, or what stands for it: this is the last fence
	# before it runs.
	if [ "$ctl" = - ]; then
		mv -T go gone 2>/dev/null || fail 'it was closed before it began'
		# closed in between: it never runs, and says so
		[ -e open ] || exec mv -T gone withdrawn
	else
		echo 0 2>/dev/null >"$ctl/cgroup.procs" || fail "its cgroup $ctl cannot be entered"
		[ -e open ] || fail 'it was closed before it began'
	fi
	exec 9</proc 8<>fifo
	# shellcheck disable=SC2086 # the words that start the shell
	case $containment in
	isolated | cgroup-pid) exec "$unshare" --pid --fork --mount-proc --ipc $ish "$G/init.sh" init "$G" ;;
	cgroup-ns) exec "$unshare" --user --map-root-user --pid --fork --mount-proc --ipc $ish "$G/init.sh" init "$G" ;;
	*) exec $ish "$G/init.sh" waiter "$G" ;;
	esac
}

private_places() { # so that nothing of the uid stays in a directory that everybody may write
	[ "$private" = yes ] || return 0
	mount --bind tmp /tmp && mount --bind tmp /var/tmp || return 1
	if [ -d /run/lock ]; then mount --bind tmp /run/lock || return 1; fi
	if [ -d /dev/shm ]; then
		mount -t tmpfs -o size=64m,mode=1777,nosuid,nodev tmpfs /dev/shm || return 1
	fi
}
start_waiter() {
	own && printf 'init %s %s .\n' "$o_pid" "$o_start" >>record || fail 'its init cannot be recorded'
	private_places || fail 'its private directories cannot be mounted'
	if [ -n "$lease" ] && expired; then fail 'its lease ran out before it began'; fi
	# shellcheck disable=SC2086 # the words that start the shell
	"$setsid" -f $ish "$G/init.sh" waiter "$G" || fail 'its waiter cannot be started'
}
is_awaited() { # the waiter is there, or not known yet; then it is asked of no disk, which may never answer
	if [ -z "$w" ]; then
		m=
		{ read -r w m <waiter; } 2>/dev/null
		[ "$m" = . ] || w=
		[ -n "$w" ] || return 0
	fi
	w_st=
	{ IFS= read -r w_st <"/proc/$w/stat"; } 2>/dev/null
	case ${w_st##*") "} in '' | Z* | X*) return 1 ;; esac
}
watch() { # until the leader's end is written, or the waiter is gone
	w=
	trap : CHLD TERM
	# shellcheck disable=SC2086 # the words that start the shell
	[ "$tick" = 'read' ] || trap 'exec $ish "$G/init.sh" resume "$G"' EXIT
	while :; do
		if [ -n "$lease" ] && expired; then
			trap - EXIT
			kill -9 -1
			ended 137 lease
			exit 0
		fi
		is_awaited || break
		if [ "$tick" = 'read' ]; then
			jobs >/dev/null 2>&1 # takes in the dead that were left to PID 1
			k=
			# shellcheck disable=SC3045 # only where the shell was seen to have it
			read -t 1 -r k <&8
			[ "$k" != x ] || break
		else
			sleep 1 &
			wait "$!"
		fi
	done
	trap - EXIT
	kill -9 -1
}

wait_for_leader() {
	trap : TERM
	printf '%s .\n' "$$" >waiter
	set --
	while read -r k v; do
		case $k in env | arg) dec "$v" || fail 'its launch file is damaged' ;; esac
		case $k in
		env) keep_variable "$d" || fail 'its environment cannot be kept' ;;
		arg) set -- "$@" "$d" ;;
		end) echo . || fail 'its environment cannot be kept' ;;
		esac
	done 2>/dev/null <launch >environ
	(
		trap - TERM
		[ "$limit" = - ] || echo 0 2>/dev/null >"$limit/cgroup.procs" || fail "its cgroup $limit cannot be entered"
		own && printf 'leader %s %s .\n' "$o_pid" "$o_start" >>record || fail 'its leader cannot be recorded'
		cd work || fail 'its working directory is gone'
		# shellcheck disable=SC3045 # every shell has these, under one letter or another
		{
			ulimit -c 0
			ulimit -n 4096
			[ "$nproc" = 0 ] || ulimit -u "$nproc" || ulimit -p "$nproc"
		} 2>/dev/null
		exec 8>&- 9>&- 3<../environ </dev/null >>../out 2>&1
		# shellcheck disable=SC2086 # the words that start the shell
		set -- --no-new-privs $ish -c "$LAST" last "$@"
		case $containment in
		isolated | cgroup-pid)
			if [ "$caps" = - ]; then
				set -- --bounding-set=-all --inh-caps=-all "$@"
			else
				set -- --bounding-set="-all$caps" --inh-caps="-all$caps" --ambient-caps="-all$caps" "$@"
			fi
			if [ "$groups" = - ]; then set -- --clear-groups "$@"; else set -- --groups="$groups" "$@"; fi
			exec "$setsid" "$setpriv" --reuid="$uid" --regid="$gid" "$@"
			;;
		cgroup-ns)
			exec "$setsid" "$setpriv" --reuid=0 --regid=0 --keep-groups \
				--bounding-set=-all --inh-caps=-all "$@"
			;;
		*) exec "$setsid" "$setpriv" "$@" ;;
		esac
	)
	ended "$?"
	case $containment in isolated | cgroup-pid | cgroup-ns) echo x >&8 ;; esac
}

load
# PID 1 ends everything it can reach: it must be the first of a namespace of its own.
case $mode in init | resume) [ "$$" = 1 ] || fail 'it has no namespace of its own' ;; esac
case $mode in
hop) hop ;;
enter) enter ;;
init)
	start_waiter
	watch
	;;
resume) watch ;;
waiter) wait_for_leader ;;
esac
