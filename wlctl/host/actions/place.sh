# shellcheck shell=sh
# place: claim the decision, verify and stage the package, and start the first generation.
installation='' iid='' name='' node='' decision='' number='' gen='' fence_no='' package='' sheet=''
deadline='' until=0 settles=auto start='' project='' o_env='' o_args='' o_signatures='' o_secrets=''
o_restart=''
param() {
	case $1 in
	installation) installation=$2 ;;
	instance) iid=$2 ;;
	name) name=$2 ;;
	node) node=$2 ;;
	decision) decision=$2 ;;
	number) number=$2 ;;
	generation) gen=$2 ;;
	fence) fence_no=$2 ;;
	package) package=$2 ;;
	sheet) sheet=$2 ;;
	deadline) deadline=$2 ;;
	lease) until=$2 ;;
	containment) settles=$2 ;;
	start) start=$2 ;;
	project) project=$2 ;;
	signature) o_signatures="$o_signatures$raw " ;;
	env) o_env="$o_env$raw$nl" ;;
	secret) o_secrets="$o_secrets$raw$nl" ;;
	restart) o_restart=$2 ;;
	arg) o_args="${o_args}arg $raw$nl" ;;
	*) unknown_param "$1" ;;
	esac
}
check() {
	instance_paths
	is_id "$decision" || refuse invalid_request 'decision is not an id'
	is_id "$name" || refuse invalid_request 'name is not an id'
	is_id "$package" || refuse invalid_request 'package is not an id'
	is_sha256 "$sheet" || refuse invalid_request 'sheet is not a sha256'
	is_number "$gen" && [ "$gen" -gt 0 ] || refuse invalid_request 'generation is not a number from 1'
	is_number "$until" || refuse invalid_request 'lease is not a number'
	is_number "$fence_no" || refuse invalid_request 'fence is not a number'
	check_restart
	case $start in yes | no) ;; *) refuse invalid_request 'start is yes or no' ;; esac
	claim=$I/decisions/$decision
	G=$D/g$gen
}
answer_again() { # this very operation was accepted before: say what it did
	get "$claim" || unclean busy "an earlier request with number $number was cut short"
	case ${g%% *} in
	placed)
		if [ "$start" = no ]; then
			answer staged already=yes
			finish ok
		fi
		load_record "$G"
		[ -n "$r_leader" ] || unclean busy "generation $gen was launched and its record is damaged"
		answer_launched yes
		finish ok
		;;
	refused)
		g=${g#* }
		refuse "${g%% *}" "${g#* }"
		;;
	*) unclean busy "an earlier request with number $number is at work, or was cut short" ;;
	esac
}
claim_decision() { # a link is exclusive, and the file it makes visible is already whole
	made_dir "$I/decisions" || return 1
	own_start
	made_here "$claim.$nonce" "claimed $$ $started $boot $deadline $iid $number .$nl" &&
		dd if=/dev/null of="$claim.$nonce" conv=notrunc,fsync 2>/dev/null 7>&- || return 1
	if ln "$claim.$nonce" "$claim" 2>/dev/null 7>&-; then
		rm -f "$claim.$nonce" 7>&-
		return 0
	fi
	rm -f "$claim.$nonce" 7>&-
	get "$claim" || refuse verify "the claim of decision $decision is damaged"
	case ${g%% *} in
	cancelled) refuse cancelled "decision $decision was cancelled" ;;
	refused)
		g=${g#* }
		refuse "${g%% *}" "${g#* }"
		;;
	*) refuse invalid_request "decision $decision was claimed before" ;;
	esac
}
own_start() { # -> started: this shell's start time
	IFS= read -r o_st <"/proc/$$/stat"
	o_st=${o_st##*") "}
	# shellcheck disable=SC2086 # columns
	set -- $o_st
	started=${20}
}
give_up() { # under the lock: nothing of it may be left, and it stays refused
	p_code=${problem%% *} p_text=${problem#* }
	accept place stopped # so that no supervisor begins it again meanwhile
	close_since "$gen" || unclean "$p_code" "$p_text"
	unlock
	end_all "$gens" 0 KILL
	out=
	relock
	still_ours || overtaken
	[ "$clean" = yes ] || unclean "$p_code" "$p_text"
	release_instance
	remove_instance || unclean "$p_code" "$p_text"
	put "$claim" "refused $p_code $p_text" || unclean "$p_code" "$p_text"
	refuse "$p_code" "$p_text"
}

go_on() { # under the lock, before what cannot be taken back
	still_ours || overtaken
	[ -e "$claim.cancel" ] || return 0
	problem="cancelled decision $decision was called off"
	give_up
}

request
check
state_dir || refuse resources "$S cannot be written"
mounts
refuse_network_state
refuse_no_linger
tools
[ -z "$missing" ] || refuse runtime "the node lacks what wlctl needs: $missing"
lock 10
fence place
[ "$same" = no ] || answer_again
refuse_uncontained
in_time
refuse_departed
accepted_project "$project"
made_dir "$I" || refuse resources "$S cannot be written"
claim_decision || refuse resources "$S cannot be written"
if ! made_dir "$G" || ! accept place running || ! write_spec; then
	problem="resources $S cannot be written"
	give_up
fi
unlock # hashing may take long; what was accepted is checked again before anything runs

problem=
read_sheet "$sheet" && check_order && verify_signed "$package" "$sheet" && verify_files && stage_files "$G/work" || {
	relock
	go_on
	[ -n "$problem" ] || problem="resources $S cannot be written"
	give_up
}
relock
go_on
if [ "$start" = no ]; then
	rm -rf "${G:?}" 7>&-
	if ! accept place stopped || ! put "$claim" "placed $iid $number"; then
		problem="resources $S cannot be written"
		give_up
	fi
	answer staged already=no
	finish ok
fi
[ ! -e "$G/closed" ] || refuse superseded "generation $gen was closed before it was launched"
open_budget && launch || give_up
unlock
if await_leader; then
	put "$claim" "placed $iid $number" || unclean resources "$S cannot be written"
	answer_launched no
	finish ok
fi
relock
go_on
no_leader
give_up
