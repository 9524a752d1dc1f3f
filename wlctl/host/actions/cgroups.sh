# shellcheck shell=sh
# The place of one generation: its cgroups, the unit they are below on systemd, and the limits set there.
# shellcheck disable=SC2154 # the action's parameters, and what the other parts read
make_unit() { # under the lock: have the unit run, its own process in a leaf; 1 and `problem` if not
	unit_dir
	y_scope=--system y_oom="OOMScoreAdjust=-900$nl" y_own=
	if [ "$way" = systemd-user ]; then # a plain user may not be spared by the OOM killer
		y_scope=--user y_oom=
	fi
	[ ! -d "$cg/_keep" ] || populated "$cg/_keep"
	if [ ! -d "$cg/_keep" ] || [ "$p" != 1 ]; then
		problem="no_cgroup wlctl-node.service cannot be started"
		{
			mkdir -p "$y_dir" && made_here "$y_dir/wlctl-node.service" "$(unit_text)$nl" &&
				y_own=$(timeout -s KILL 30 systemctl "$y_scope" start wlctl-node.service 2>&1)
		} 7>&- || {
			problem="$problem: ${y_own:-no unit can be written to $y_dir}"
			return 1
		}
		keep_apart || return 1
		problem=
	fi
}
unit_text() { # systemd would otherwise stop it for one OOM kill below it, and count its tasks
	printf '%s' "[Unit]
Description=Workloads placed by wlctl
RefuseManualStop=yes

[Service]
ExecStart=/bin/sh -c 'exec sleep 2147483647'
Slice=wlctl.slice
Delegate=yes
TasksMax=infinity
OOMPolicy=continue
$y_oom"
}
keep_apart() { # controllers are given on only by a cgroup that has no process itself
	[ -d "$cg" ] || return 1
	mkdir "$cg/_keep" 2>/dev/null 7>&-
	uptime
	y_end=$((t + 5000))
	while :; do
		pids=
		{
			while read -r y_p; do pids="$pids $y_p"; done <"$cg/cgroup.procs"
		} 2>/dev/null
		for y_p in $pids; do echo "$y_p" >"$cg/_keep/cgroup.procs"; done 2>/dev/null
		populated "$cg/_keep"
		if [ "$p" = 1 ] && [ -z "$pids" ]; then return 0; fi
		uptime
		[ "$t" -lt "$y_end" ] || return 1
		nap
	done
}

make_place() { # -> as make_cgroups; nothing where the operator settles for that
	if [ "$way" != none ]; then
		make_cgroups
		return
	fi
	c_inst='' c_ctl=- c_limit=- c_inodes='- - - -' c_above='- -'
	l_pids=$s_pids l_nproc=0 unenforced=
	[ "$l_pids" != 0 ] || l_pids=4096
	[ "$s_memory" = 0 ] || unenforced="$unenforced memory"
	[ "$s_cpu" = 0 ] || unenforced="$unenforced cpu"
	unenforced="$unenforced pids"
	hold_pids
	[ "$s_disk" = 0 ] || unenforced="$unenforced disk"
}
make_cgroups() { # -> c_*: paths and inodes; unenforced: limits that this node cannot hold it to
	c_tops="$cg"
	case $way in
	cgroupfs) c_tops="$cg_up $cg" ;;
	*) make_unit || return 1 ;;
	esac
	c_inst=$cg/$installation/$iid
	c_ctl=$c_inst/ctl/g$gen c_limit=$c_inst/limit/g$gen
	mkdir -p "$c_ctl" "$c_limit" 2>/dev/null 7>&- || {
		problem="no_cgroup $c_inst cannot be made"
		return 1
	}
	# in `limit` too, so that each generation has its own count of what was killed for want of memory
	for c_d in $c_tops "$cg/$installation" "$c_inst" "$c_inst/limit"; do
		for c_c in cpu memory pids io; do
			echo "+$c_c" 2>/dev/null >"$c_d/cgroup.subtree_control"
		done
	done 2>/dev/null
	l_pids=$s_pids l_nproc=0 unenforced=
	[ "$l_pids" != 0 ] || l_pids=4096
	set_memory
	set_limit cpu cpu.max "$s_cpu" "$((s_cpu * 100)) 100000"
	set_limit pids pids.max "$l_pids" "$l_pids" || hold_pids
	[ "$s_disk" = 0 ] || unenforced="$unenforced disk"
	c_is=$(stat -c %i "$c_ctl" "$c_inst/ctl" "$c_limit" "$c_inst/limit" "$cg_up" "$cg" 2>/dev/null 7>&-) || {
		problem="no_cgroup $c_inst cannot be read"
		return 1
	}
	# shellcheck disable=SC2086 # six numbers
	set -- $c_is
	c_inodes="$1 $2 $3 $4" c_above="$5 $6"
}
hold_pids() { # in place of pids.max, RLIMIT_NPROC holds a uid of its own; a login's counts all that it runs
	[ "$way_in$l_shared" = isolatedno ] || return 0
	l_nproc=$l_pids unenforced=${unenforced% pids}
}
set_memory() { # reclaimed a little before the limit, and not so early that it is only slowed down
	set_limit memory memory.max "$s_memory" "$s_memory" && [ "$s_memory" != 0 ] || return 0
	c_gap=$((s_memory / 16))
	[ "$c_gap" -le 16777216 ] || c_gap=16777216
	{ echo "$((s_memory - c_gap))" >"$c_inst/limit/memory.high"; } 2>/dev/null
}
set_limit() { # WORD FILE ASKED VALUE
	[ "$3" != 0 ] || return 0
	{ echo "$4" >"$c_inst/limit/$2"; } 2>/dev/null && return 0
	unenforced="$unenforced $1"
	return 1
}
