# shellcheck shell=sh
# start: a further generation of what was placed.
installation='' iid='' number='' gen='' fence_no='' package='' deadline='' until=0 settles=auto
o_secrets='' o_restart=''
runs_kept=100
param() {
	case $1 in
	installation) installation=$2 ;;
	instance) iid=$2 ;;
	number) number=$2 ;;
	generation) gen=$2 ;;
	fence) fence_no=$2 ;;
	package) package=$2 ;;
	deadline) deadline=$2 ;;
	lease) until=$2 ;;
	containment) settles=$2 ;;
	secret) o_secrets="$o_secrets$raw$nl" ;;
	restart) o_restart=$2 ;;
	*) unknown_param "$1" ;;
	esac
}
give_up() { # under the lock: the generation goes, the instance stays as it was
	p_code=${problem%% *} p_text=${problem#* }
	accept start stopped # so that no supervisor begins it again meanwhile
	close_since "$gen" || unclean "$p_code" "$p_text"
	unlock
	end_all "$gens" 0 KILL
	out=
	relock
	still_ours || overtaken
	[ "$clean" = yes ] || unclean "$p_code" "$p_text"
	accept start stopped || unclean "$p_code" "$p_text"
	refuse "$p_code" "$p_text"
}
forget_old() { # under the lock: a job on a schedule is started for years
	generations "$D"
	k_left=0
	for k_n in $gens; do k_left=$((k_left + 1)); done
	for k_n in $gens; do
		k_left=$((k_left - 1))
		[ "$k_left" -ge "$runs_kept" ] || break
		[ ! -e "$D/g$k_n/ended" ] || forget_run "$k_n"
	done
}

request
instance_paths
is_number "$gen" && [ "$gen" -gt 0 ] || refuse invalid_request 'generation is not a number from 1'
is_number "$until" || refuse invalid_request 'lease is not a number'
check_restart
is_number "$fence_no" || refuse invalid_request 'fence is not a number'
G=$D/g$gen
state_dir || refuse resources "$S cannot be written"
mounts
refuse_network_state
refuse_no_linger
tools
[ -z "$missing" ] || refuse runtime "the node lacks what wlctl needs: $missing"
lock 10
fence start
load_record "$G"
if [ "$same" = yes ]; then
	[ -n "$r_leader" ] || unclean busy "an earlier request with number $number is at work, or was cut short"
	answer_launched yes
	finish ok
fi
refuse_uncontained
in_time
refuse_departed
load_spec
case $? in
1) refuse unknown_instance "$iid was not placed on this node" ;;
2) refuse verify "what $iid is made of is damaged on the node" ;;
esac
[ "$placed" = "$package" ] || refuse invalid_request "$iid is of package $placed"
[ "$r_state" = none ] && [ ! -e "$G/closed" ] || refuse invalid_request "generation $gen was used before"
generations "$D"
for g_n in $gens; do
	[ "$g_n" = "$gen" ] || [ -e "$D/g$g_n/ended" ] ||
		refuse busy "generation $g_n of $iid is not proven gone"
done
made_dir "$G" && accept start running || refuse resources "$S cannot be written"
unlock

problem=
read_sheet "$sheet" && verify_signed "$package" "$sheet" && verify_files && stage_files "$G/work" || {
	relock
	still_ours || overtaken
	[ -n "$problem" ] || problem="resources $S cannot be written"
	give_up
}
relock
still_ours || overtaken
[ ! -e "$G/closed" ] || refuse superseded "generation $gen was closed before it was launched"
open_budget && launch || give_up
forget_old
unlock
if await_leader; then
	answer_launched no
	finish ok
fi
relock
still_ours || overtaken
no_leader
give_up
