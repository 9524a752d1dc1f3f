# shellcheck shell=sh
# prove: read every generation of an instance, for whoever judges whether it is gone. Changes nothing.
# shellcheck disable=SC2154 # what the other parts read
installation='' iid='' number=1
param() {
	case $1 in
	installation) installation=$2 ;;
	instance) iid=$2 ;;
	*) unknown_param "$1" ;;
	esac
}
read_cgroup() { # DIR INODE PARENT_INODE -> c: as end_cgroup, and there, where it was not taken away
	if [ ! -d "$1" ]; then
		gone_cgroup "$1" "$3"
		return 0
	fi
	inode "$1"
	c=foreign
	[ "$i" = "$2" ] || return 0
	populated "$1"
	c=there
	[ "$p" != 1 ] || c=occupied
}
read_place() { # ctl|limit WORD -> c: WORD, unless something is where the node would launch it now
	c=$2
	[ ! -d "${cg:-/nonexistent}/$installation/$iid/$1/g$gen" ] || c=there
}
read_generation() {
	load_record "$G"
	how=
	if get "$G/how"; then how=$g; fi
	e_ctl=none e_limit=none o=-
	if [ -n "$r_cg" ]; then
		read_cgroup "$r_cg/ctl/g$gen" "$r_ctl" "$r_ctl_up"
		e_ctl=$c
		read_cgroup "$r_cg/limit/g$gen" "$r_limit" "$r_limit_up"
		e_limit=$c
		oom_kills "$r_cg/limit/g$gen"
	fi
	if [ "$r_state" != whole ] || [ "$r_cg" != "$cg/$installation/$iid" ]; then
		read_place ctl "$e_ctl"
		e_ctl=$c
		read_place limit "$e_limit"
		e_limit=$c
	fi
	life "$r_leader" "$r_leader_start" "$r_boot"
	e_leader=$l
	life "$r_init" "$r_init_start" "$r_boot"
	e_init=$l
	left=-
	if [ "$r_uid" != - ]; then uid_left "$r_uid"; fi
	exit_of "$G"
	e_oom=$o
	if get "$G/oom"; then e_oom=$g; fi
	uptime
	answer_end
}

request
instance_paths
mounts
cgroup_root
boot_id
get "$S/node_id" || refuse verify "$S/node_id is not there, or damaged"
answer node_id "$g"
if [ -e "$I/departed/$iid" ]; then # what was read when it was unloaded
	get_text "$I/departed/$iid" || refuse verify "what is known of the departed $iid is damaged"
	text=${text#*"$nl"}
	[ "${text#*"$nl"}" = "$text" ] || out="$out${text#*"$nl"}$nl"
	finish ok
fi
[ -d "$D" ] || refuse unknown_instance "$iid is not on this node"
generations "$D"
for gen in $gens; do
	G=$D/g$gen
	if [ -e "$G/record" ] || [ -e "$G/closed" ]; then read_generation; fi
done
answer_pruned
finish ok
