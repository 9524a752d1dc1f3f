# shellcheck shell=sh
# status: everything of one installation on the node, in one look. Changes nothing.
installation=
param() {
	case $1 in
	installation) installation=$2 ;;
	*) unknown_param "$1" ;;
	esac
}
one_generation() {
	G=$D/g$gen
	[ -e "$G/record" ] || return 0
	load_record "$G"
	life "$r_leader" "$r_leader_start" "$r_boot"
	closed=no
	[ ! -e "$G/closed" ] || closed=yes
	p=-
	[ -z "$r_cg" ] || populated "$r_cg/limit/g$gen"
	o=-
	[ -z "$r_cg" ] || oom_kills "$r_cg/limit/g$gen"
	if get "$G/oom"; then o=$g; fi
	exit_of "$G"
	health=- misses=0
	if get "$G/health"; then
		field 1 "$g"
		health=$f
		field 2 "$g"
		misses=$f
	fi
	answer generation "$iid" "$gen" "closed=$closed" "record=$r_state" "boot=${r_boot:--}" "leader=$l" \
		"populated=$p" "exit=$x" "pid=${r_leader:--}" "uid=$r_uid" "oom=$o" \
		"health=$health" "misses=$misses"
	# what was answered at the launch, for whoever never had that answer
	if [ "$r_state" = whole ] && [ -n "$r_leader" ] && { [ "$gen" = "$current" ] || [ -e "$G/restart" ]; }; then
		launched_in "$gen"
		answer launched "$iid" "$gen" already=yes "boot=$r_boot" "containment=$r_containment" \
			"way=$r_way" "pid=$r_leader" "start=$r_leader_start" "uid=$r_uid" "cgroup=$e" "inode=$r_limit"
		answer given "$iid" "$gen$r_given"
	fi
	if get "$G/restart"; then
		field 1 "$g"
		s_from=$f
		field 2 "$g"
		s_at=$f
		field 3 "$g"
		answer restarted "$iid" "$gen" "from=$s_from" "at=$s_at" "why=$f"
	fi
	if get "$G/reading"; then answer ended "$iid" "$g"; fi
}
one_instance() {
	read_number
	if get "$D/current"; then current=$g; elif [ -e "$D/current" ]; then current=-; else current=0; fi
	name=- package=-
	if get_text "$D/spec"; then
		name=${text#*"name "}
		name=${name%%"$nl"*}
		package=${text#*"${nl}package "}
		package=${package%%"$nl"*}
	fi
	supervisor_life
	answer instance "$iid" "desired=$desired" "number=$have" "current=$current" "name=$name" \
		"package=$package" "supervisor=$l"
	if load_budget "$D" && [ "$b_max" != 0 ] && [ "$have $desired" = "$b_number running" ]; then one_budget; fi
	if get "$D/pruned"; then answer pruned "$iid" "$g"; fi
	generations "$D"
	for gen in $gens; do one_generation; done
}
one_budget() { # how often it was begun again by its supervisor, and why it is not any more
	within=0
	if [ "$b_boot" = "$boot" ]; then
		# shellcheck disable=SC2086 # moments
		decide "$t" "$b_max" "$b_window" "$b_base" "$b_cap" $b_times
	fi
	load_verdict "$D" "$current"
	answer restarts "$iid" "kind=$b_kind" "max=$b_max" "window=$b_window" "within=$within" "held=$v_code" "why=$v_why"
}

request
is_id "$installation" || refuse invalid_request 'installation is not an id'
I=$S/$installation
boot_id
uptime
get "$S/node_id" || refuse verify "$S/node_id is not there, or damaged"
answer node_id "$g"
answer boot_id "$boot"
answer uptime_ms "$t"
load_revoked "$I/revoked"
case $? in
0) answer revocations "$v_epoch" "$v_serial" "$v_hash" ;;
2) answer revocations - ;;
esac
newest_checkpoint
set +f
set -- "$I/instances"/*/
departed=
for t_d in "$I/departed"/*; do departed="$departed$t_d$nl"; done
set -f
for t_d in "$@"; do
	D=${t_d%/}
	iid=${D##*/}
	if [ -d "$D" ] && is_id "$iid"; then one_instance; fi
done
IFS=$nl
for t_d in $departed; do
	unset IFS
	iid=${t_d##*/}
	if is_id "$iid" && get_text "$t_d"; then answer departed "$iid" "${text%%"$nl"*}"; fi
done
unset IFS
finish ok
