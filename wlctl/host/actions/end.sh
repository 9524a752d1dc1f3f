# shellcheck shell=sh
# Ending generations: close first, read, ask, kill only what is left, and take the cgroups away.
# shellcheck disable=SC2154 # the action's parameters, and what the other parts read
spares=no # yes: the supervisor ends a run of its own instance, to begin the next with the same secrets
uid_left() { # UID -> left: processes of it outside the instance's other generations; - when not seen
	left=-
	# the scan also looks for this very shell: one that does not find it has not looked
	u_line="^(Uid:.*[[:space:]]$1([[:space:]]|\$)|Pid:[[:space:]]*$$\$)"
	set +f
	u_all=$(grep -l -E "$u_line" /proc/[0-9]*/status 2>/dev/null 7>&-)
	# there may be more of them than a program takes words
	has_looked || u_all=$(printf '%s\n' /proc/[0-9]*/status | xargs grep -l -E "$u_line" 2>/dev/null 7>&-)
	set -f
	has_looked || return 0
	left=0
	for u_p in $u_all; do
		u_p=${u_p#/proc/}
		u_p=${u_p%/status}
		if [ "$u_p" != "$$" ] && still_left "$u_p"; then left=$((left + 1)); fi
	done
}
has_looked() { case $nl$u_all$nl in *"$nl/proc/$$/status$nl"*) ;; *) return 1 ;; esac }
still_left() { # PID: it runs, and no other generation of the instance holds it
	stat_of "$1"
	t_pid=$1
	# shellcheck disable=SC2086 # columns
	set -- $st
	[ "$#" -ge 20 ] || return 1
	case $1 in Z | X) [ "${18}" -gt 1 ] || return 1 ;; esac
	{
		while IFS=: read -r t_k _ t_v; do
			[ "$t_k" = 0 ] || continue
			case $t_v in
			*"/$installation/$iid/limit/g$gen" | *"/$installation/$iid/limit/g$gen/"*) ;;
			*"/$installation/$iid/limit/g"[1-9]*) return 1 ;;
			esac
		done <"/proc/$t_pid/cgroup"
	} 2>/dev/null
	return 0
}
close_generation() { # under the lock; afterwards nothing of it can be launched any more
	if [ -e "$G/open" ]; then
		mv -T "$G/open" "$G/closed" 2>/dev/null 7>&-
	elif [ ! -e "$G/closed" ]; then
		made_dir "$G" && put "$G/closed" never
	fi
	[ -e "$G/closed" ]
}
close_all() { # NEWEST, under the lock -> gens: every generation the node has, and the newest
	made_dir "$D" || refuse resources "$S cannot be written"
	generations "$D"
	case "$nl$gens$nl" in *"$nl$1$nl"*) ;; *) [ "$1" = 0 ] || gens="$gens$nl$1" ;; esac
	for gen in $gens; do
		G=$D/g$gen
		close_generation || refuse resources "generation $gen cannot be closed on $S"
	done
}
close_since() { # GENERATION, under the lock -> gens: it, and what its supervisor has begun after it
	generations "$D"
	c_all=$gens gens=
	for c_n in $c_all; do
		[ "$c_n" -ge "$1" ] || continue
		G=$D/g$c_n
		close_generation || return 1
		gens="$gens $c_n"
	done
}
kill_below() { # DIR PIDS_TOO: depth first
	set +f
	for k_d in "$1"/*/; do
		if [ -d "$k_d" ]; then kill_below "${k_d%/}" "$2"; fi
	done
	set -f
	{ echo 1 >"$1/cgroup.kill"; } 2>/dev/null
	# cgroup.kill misses a process whose main thread has exited, and old kernels lack it
	[ "$2" = yes ] || return 0
	for k_f in cgroup.procs cgroup.threads; do
		{
			while read -r k_p; do
				[ "$k_p" = 0 ] || kill -s KILL "$k_p"
			done <"$1/$k_f"
		} 2>/dev/null && break
	done
	return 0
}
rmdir_below() { # DIR: depth first, itself last
	set +f
	for m_d in "$1"/*/; do
		if [ -d "$m_d" ]; then rmdir_below "${m_d%/}"; fi
	done
	set -f
	rmdir "$1" 2>/dev/null 7>&-
}
unit_gone() { # read on the same tree as at launch; no cgroup is renamed, or removed with a process in it
	case $r_way in systemd | systemd-user) ;; *) return 1 ;; esac
	c_unit=${r_cg%/*/*}
	inode "${c_unit%/*/*}"
	[ -n "$r_unit" ] && [ "$i" = "$r_up" ] && [ -e "${c_unit%/*/*}/cgroup.controllers" ] || return 1
	inode "$c_unit"
	[ "$i" != "$r_unit" ]
}
gone_cgroup() { # DIR PARENT_INODE, of one that is not there -> c: missing, unit-gone or missing-unknown
	inode "${1%/*}"
	c='missing-unknown'
	# only cgroup v2 has this file, and a parent with its recorded inode is the recorded parent
	if [ "$i" = "$2" ] && [ -e "${1%/*}/cgroup.events" ]; then c=missing; fi
	if [ "$c" != missing ] && unit_gone; then c=unit-gone; fi
}
end_cgroup() { # DIR INODE PARENT_INODE -> c: as gone_cgroup, or removed, occupied or foreign
	if [ ! -d "$1" ]; then
		gone_cgroup "$1" "$3"
		return 0
	fi
	inode "$1"
	c=foreign
	[ "$i" = "$2" ] || return 0
	uptime
	c_end=$((t + 5000))
	c_pids=no
	while :; do
		# the rmdir that succeeds is the proof: it is atomic with emptiness, and nothing can enter
		if rmdir_below "$1"; then
			c=removed
			return 0
		fi
		if [ ! -d "$1" ]; then
			c=missing
			return 0
		fi
		kill_below "$1" "$c_pids"
		c_pids=yes
		uptime
		if [ "$t" -ge "$c_end" ]; then
			c=occupied
			return 0
		fi
		nap
	done
}
both_removed() { # CTL LIMIT: the usual end, nothing left in either, with one program for both
	populated "$1"
	b_p=$p
	populated "$2"
	[ "$b_p$p" = 00 ] || return 1
	b_is=$(stat -c %i "$1" "$2" 2>/dev/null 7>&-)
	[ "$b_is" = "$r_ctl$nl$r_limit" ] && rmdir "$1" "$2" 2>/dev/null 7>&-
}
ask_leader() { # SIGNAL: -> asked: the generations whose leader was alive to hear it
	load_record "$G"
	life "$r_leader" "$r_leader_start" "$r_boot"
	[ "$l" = alive ] || return 0
	kill -s "$1" "$r_leader" 2>/dev/null
	asked="$asked $gen "
}
withdraw() { # after close_generation, where no cgroup can be taken away: -> r_state none if it never ran
	[ "$r_state$r_way$r_boot" = "wholenone$boot" ] || return 0
	mv -T "$G/go" "$G/withdrawn" 2>/dev/null 7>&-
	uptime
	w_end=$((t + 5000))
	while [ ! -e "$G/withdrawn" ]; do # its launcher was first, and says whether it went on
		[ -z "$r_init$r_leader" ] || return 0
		uptime
		[ "$t" -lt "$w_end" ] || return 0
		nap
		load_record "$G"
	done
	rm -f "$G/record" 7>&-
	load_record "$G"
}
end_session() { # PID START: it, and what has stayed in the session that it began
	alive "$1" "$2" || return 0
	x_all=
	set +f
	for x_d in /proc/[0-9]*; do
		stat_of "${x_d#/proc/}"
		st=${st#* * * }
		[ "${st%% *}" != "$1" ] || x_all="$x_all ${x_d#/proc/}"
	done
	set -f
	# while it lives, nobody else can have a session of its number
	alive "$1" "$2" || return 0
	# shellcheck disable=SC2086 # pids
	kill -s KILL $x_all 2>/dev/null
}
end_uncontained() { # its supervisor, and what is known of it: a leader without a namespace of its own
	if [ "$spares" = no ] && get "$D/supervisor"; then
		# shellcheck disable=SC2086 # its pid, its start time, its boot
		set -- $g
		[ "${3:-}" != "$boot" ] || end_session "$1" "$2"
	fi
	[ -n "$r_init" ] || [ -z "$r_leader" ] || [ "$r_boot" != "$boot" ] || end_session "$r_leader" "$r_leader_start"
}
end_generation() { # DEADLINE: after close_generation and ask_leader; -> how, and the readings e_*
	load_record "$G"
	withdraw
	how=
	if [ -n "$r_leader" ]; then
		how=exited
		exit_of "$G"
		case $x_m in 'lease '*) how=lease_stopped ;; esac
	fi
	case $asked in *" $gen "*)
		how=stopped
		while alive "$r_leader" "$r_leader_start"; do
			uptime
			if [ "$t" -ge "$1" ]; then
				how=killed
				break
			fi
			nap
		done
		;;
	esac
	if [ "$r_boot" != "$boot" ]; then how=; fi
	if [ -n "$how" ] && [ ! -e "$G/how" ]; then
		made_here "$G/how" "$how .$nl"
	elif get "$G/how"; then
		how=$g # it was asked before: how it ended then
	fi
	life "$r_init" "$r_init_start" "$r_boot"
	if [ "$l" = alive ]; then
		# a leader that left takes init with it, and the kernel ends what was in its namespace
		uptime
		z_end=$((t + 300))
		while [ "$how" != killed ] && alive "$r_init" "$r_init_start"; do
			uptime
			[ "$t" -lt "$z_end" ] || break
			nap
		done
		if alive "$r_init" "$r_init_start"; then kill -s KILL "$r_init" 2>/dev/null; fi
	fi
	end_cgroups
	read_end
}
end_supervisor() { # DIR: 1 when a process of it is left; it is ours, and nothing else may enter
	uptime
	s_end=$((t + 5000))
	while [ -d "$1" ]; do
		kill_below "$1" yes
		if rmdir_below "$1"; then return 0; fi
		uptime
		[ "$t" -lt "$s_end" ] || return 1
		nap
	done
	return 0
}
end_cgroups() { # -> e_ctl, e_limit; ctl first: processes only ever move from there to limit
	e_ctl=none e_limit=none o=-
	if [ "$r_way" = none ]; then
		end_uncontained
	elif [ "$r_state" = whole ]; then
		e_sup=gone
		# before the rest: its checks run in there
		[ "$spares" = yes ] || end_supervisor "$r_cg/ctl/sup" || e_sup=left
		oom_kills "$r_cg/limit/g$gen"
		case $o in - | 0) ;; *) made_here "$G/oom" "$o .$nl" ;; esac # the count goes with the cgroup
		if both_removed "$r_cg/ctl/g$gen" "$r_cg/limit/g$gen"; then
			e_ctl=removed e_limit=removed
		else
			end_cgroup "$r_cg/ctl/g$gen" "$r_ctl" "$r_ctl_up"
			e_ctl=$c
			end_cgroup "$r_cg/limit/g$gen" "$r_limit" "$r_limit_up"
			e_limit=$c
		fi
		[ "$e_sup" = gone ] || e_ctl=occupied
		[ "$r_cg" != "$cg/$installation/$iid" ] || return 0
	fi
	# what no record names can only be empty directories, of a launch that was cut; of a generation
	# that was recorded, nothing may be where the node would launch it now
	if occupied ctl; then e_ctl=occupied; fi
	if occupied limit; then e_limit=occupied; fi
}
occupied() { # ctl|limit: the generation's place by the node's own way can be no empty directory
	c_d=${cg:-/nonexistent}/$installation/$iid/$1/g$gen
	[ -d "$c_d" ] && ! rmdir_below "$c_d"
}
read_end() { # -> e_leader, e_init, left, x, t
	left=-
	uptime
	z_end=$((t + 2000))
	while :; do
		life "$r_leader" "$r_leader_start" "$r_boot"
		e_leader=$l
		life "$r_init" "$r_init_start" "$r_boot"
		e_init=$l
		if [ "$r_uid" != - ]; then uid_left "$r_uid"; fi
		# what was killed a moment ago may not have gone yet
		case "$e_leader $e_init $r_shared$left" in *alive* | *' no'[1-9]*) ;; *) break ;; esac
		uptime
		[ "$t" -lt "$z_end" ] || break
		nap
	done
	exit_of "$G"
	e_oom=${o:--}
	if get "$G/oom"; then e_oom=$g; fi
	uptime
}
is_clean() { # whether these readings leave nothing; what is released for it is only this directory
	case "$r_state $r_boot" in
	"whole $boot")
		case $e_ctl,$e_limit,$r_way,$e_init in
		none,none,none,gone) ;; # init took with it whatever was in its namespace
		*,none,*) return 1 ;;
		*)
			case $e_ctl in removed | missing | unit-gone) ;; *) return 1 ;; esac
			case $e_limit in removed | missing | unit-gone) ;; *) return 1 ;; esac
			;;
		esac
		case $e_leader$e_init in *alive* | *unknown*) return 1 ;; esac
		case $r_uid:$r_shared$left in -:* | *:no0 | *:yes[0-9]*) ;; *) return 1 ;; esac
		;;
	'none '*) [ "$e_ctl$e_limit" = nonenone ] ;;
	# of another boot of this machine nothing runs here; whether it was this machine is not for us to say
	'whole '*) case $e_ctl$e_limit in *occupied* | *foreign*) return 1 ;; esac ;;
	*) return 1 ;;
	esac
}
answer_end() {
	e_closed=no
	[ ! -e "$G/closed" ] || e_closed=yes
	reading="generation $gen closed=$e_closed record=$r_state boot=$boot recorded_boot=${r_boot:--}"
	reading="$reading containment=${r_containment:--} leader=$e_leader init=$e_init ctl=$e_ctl"
	reading="$reading limit=$e_limit inode=${r_limit:--} uid=$r_uid shared=$r_shared left=$left how=${how:--} exit=$x"
	reading="$reading oom=$e_oom at=$t"
	answer "$reading"
}
answer_pruned() { # up to which number the runs that have no directory any more were read as gone
	get "$D/pruned" || return 0
	answer pruned "$g"
	readings="${readings:-}pruned $g$nl"
}
was_proven() { # -> g: what was read of it when it was; closed, and its cgroups gone, it cannot come back
	# where a run could write this itself, and after a boot, it is read anew
	[ "$me" = 0 ] && [ -e "$G/ended" ] && [ -e "$G/closed" ] && get "$G/proof" || return 1
	case $g in *" boot=$boot recorded_boot=$boot "*) ;; *) return 1 ;; esac
	load_record "$G"
	[ -n "$r_cg" ] && [ ! -e "$r_cg/ctl/g$gen" ] && [ ! -e "$r_cg/limit/g$gen" ] || return 1
	! alive "$r_leader" "$r_leader_start" && ! alive "$r_init" "$r_init_start"
}
supervisor_spared() { [ "$spares" = yes ] || [ ! -e "$r_cg/ctl/sup" ]; }
end_all() { # GENERATIONS GRACE_MS SIGNAL -> clean, readings: all of them, side by side
	clean=yes asked='' readings=
	e_run=
	if load_spec; then
		run_base
		e_run=$run/$short
		[ "$spares" = yes ] || [ ! -e "$e_run/secrets" ] || rm -rf "${e_run:?}/secrets" 2>/dev/null 7>&-
	fi
	for gen in $1; do
		G=$D/g$gen
		if was_proven; then # and its supervisor may be about to begin the next
			supervisor_spared || end_supervisor "$r_cg/ctl/sup"
			continue
		fi
		[ ! -d "${e_run:-/nonexistent}/g$gen/secrets" ] || rm -rf "${e_run:?}/g$gen/secrets" 2>/dev/null 7>&-
		ask_leader "$3"
	done
	uptime
	deadline=$((t + $2))
	for gen in $1; do
		G=$D/g$gen
		if was_proven && supervisor_spared; then
			answer "$g"
			readings="$readings$g$nl"
			continue
		fi
		end_generation "$deadline"
		answer_end
		readings="$readings$reading$nl"
		if is_clean; then
			[ -e "$G/ended" ] || put "$G/ended" "$t" # synced: after a boot too, the next may begin for it
			made_here "$G/proof" "$reading .$nl"
			remove "${G:?}/tmp" "$G/work" "$G/data" "$G/fifo" "$G/init.sh" "$G/launch" "$G/environ" "$G/waiter" \
				"$G/go" "$G/gone" "$G/health.out" "${e_run:-$G/run}/g$gen"
		else
			clean=no
		fi
	done
	[ "$spares" = yes ] || answer_pruned
}
