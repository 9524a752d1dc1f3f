# shellcheck shell=sh
# By which way a node has cgroups for us: a subtree of our own, or, where systemd has the tree, one
# unit whose cgroup it leaves to us.
# shellcheck disable=SC2154,SC2034 # what the other parts read
own_cgroup() { # -> own: the path of this shell below the mount
	own=
	while IFS=: read -r k _ v; do
		if [ "$k" = 0 ]; then own=${v%/}; fi
	done </proc/self/cgroup
}
cgroup_root() { # -> way; cg: where our cgroups live, empty when none may be made; cg_up: what is above
	cg='' cg_up='' way=cgroupfs
	[ -n "$cg2" ] || return 0
	if [ -d /run/systemd/system ]; then
		unit_root
	else
		delegated_root
	fi
}
unit_root() { # systemd has the tree: only below a delegated unit may others make cgroups
	cg_up=$cg2
	while IFS=: read -r k _ v; do # in a container the tree can begin lower down
		if [ "$k" = 0 ]; then cg_up=$cg2${v%/init.scope}; fi
	done 2>/dev/null </proc/1/cgroup
	cg_up=${cg_up%/}
	way=systemd
	if [ "$me" != 0 ]; then
		way=systemd-user
		cg_up=$cg_up/user.slice/user-$me.slice/user@$me.service
		[ -d "$cg_up" ] && [ -w "$cg_up/cgroup.procs" ] || return 0
		XDG_RUNTIME_DIR=${XDG_RUNTIME_DIR:-/run/user/$me}
		export XDG_RUNTIME_DIR
	fi
	cg=$cg_up/wlctl.slice/wlctl-node.service
}
delegated_root() { # made if need be
	if [ "$me" = 0 ]; then
		c_d=$cg2
	else # the highest of our own ancestors that was delegated to us: processes can only move below it
		own_cgroup
		c_d=
		c_at=$cg2$own
		while [ -w "$c_at" ] && [ -w "$c_at/cgroup.procs" ]; do
			c_d=$c_at
			[ "$c_at" != "$cg2" ] || break
			c_at=${c_at%/*}
		done
	fi
	[ -n "$c_d" ] || return 0
	[ -d "$c_d/wlctl" ] || mkdir "$c_d/wlctl" 2>/dev/null || [ -d "$c_d/wlctl" ] || return 0
	cg=$c_d/wlctl cg_up=$c_d
}
refuse_no_linger() { # without lingering, the user's manager ends what it holds with the last session
	[ -d /run/systemd/system ] && [ "$me" != 0 ] || return 0
	y_user=$(id -un 2>/dev/null) || y_user=$me
	[ -e "/var/lib/systemd/linger/$y_user" ] ||
		refuse no_linger "what $y_user runs ends with its last session: loginctl enable-linger $y_user"
}

oom_kills() { # DIR -> o: processes below it that were killed for want of memory; - when not counted
	o=-
	{
		while read -r o_k o_v; do
			[ "$o_k" != oom_kill ] || o=$o_v
		done <"$1/memory.events"
	} 2>/dev/null
}
unit_dir() { # -> y_dir: where a unit stands until the next boot
	y_dir=/run/systemd/system
	[ "$way" = systemd ] || y_dir=$XDG_RUNTIME_DIR/systemd/user
}
drop_unit() { # when nothing of ours is left below it: its own process ends, and systemd takes it away
	[ -d "$cg/_keep" ] || return 0
	set +f
	for y_d in "$cg"/*/; do
		case $y_d in */_keep/) ;; *) y_d=used && break ;; esac
	done
	set -f
	[ "$y_d" != used ] || return 0
	unit_dir
	rm -f "$y_dir/wlctl-node.service" 7>&-
	while read -r y_p; do kill "$y_p"; done 2>/dev/null <"$cg/_keep/cgroup.procs"
}
