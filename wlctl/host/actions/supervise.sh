# shellcheck shell=sh
# supervise: start the supervisors that died, of instances that still run or were just being begun
# again. Safe to repeat, and safe to cut: it touches nothing else of them.
installation='' iids=
param() {
	case $1 in
	installation) installation=$2 ;;
	instance)
		is_id "$2" || refuse invalid_request 'an instance is not an id'
		iids="$iids $2"
		;;
	*) unknown_param "$1" ;;
	esac
}
runs_alone() { # -> r_*: of what it launched last, under this boot, there is something to do, and nobody does it
	get "$D/current" && is_number "$g" || return 1
	current=$g
	load_record "$D/g$g"
	[ "$r_state" = whole ] || return 1
	supervisor_life
	[ "$l" != alive ] || return 1
	life "$r_leader" "$r_leader_start" "$r_boot"
	case $l in
	alive) [ -e "$D/g$current/open" ] || is_owed ;;
	unknown) return 1 ;;
	*) is_owed ;;
	esac
}
is_owed() { # the policy was not asked yet what follows its end
	load_budget "$D" && [ "$b_max" != 0 ] && [ "$b_boot" = "$boot" ] || return 1
	read_number
	[ "$have $desired" = "$b_number running" ] || return 1
	load_verdict "$D" "$current"
	[ "$v_code" = - ] || return 1
	exit_of "$D/g$current"
	[ "$b_kind$x" != once0 ]
}

request
is_id "$installation" || refuse invalid_request 'installation is not an id'
get "$S/node_id" || refuse verify "$S/node_id is not there, or damaged"
answer node_id "$g"
mounts
tools
[ -z "$missing" ] || refuse runtime "the node lacks what wlctl needs: $missing"
lock 10
for iid in $iids; do
	D=$S/$installation/instances/$iid
	runs_alone || continue
	way=$r_way
	if start_supervisor "$r_cg"; then answer started "$iid"; else answer failed "$iid"; fi
done
finish ok
