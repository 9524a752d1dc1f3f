# shellcheck shell=sh
# settle: what became of a decision on this node, and that nothing more will. What was never placed
# is called off for ever; what was placed is only said to be.
installation='' iid='' decision='' number='' newest=''
param() {
	case $1 in
	installation) installation=$2 ;;
	instance) iid=$2 ;;
	decision) decision=$2 ;;
	number) number=$2 ;;
	generation) newest=$2 ;;
	*) unknown_param "$1" ;;
	esac
}
read_claim() { # -> c_is: none, torn, placed, refused, cancelled, working or cut; c_rest
	c_is=none c_rest=
	get "$claim"
	case $? in
	1) return 0 ;;
	2)
		c_is=torn
		return 0
		;;
	esac
	c_is=${g%% *} c_rest=${g#* }
	case $c_is in
	cancelled | refused) return 0 ;;
	placed)
		field 1 "$c_rest"
		c_iid=$f
		;;
	claimed)
		field 5 "$c_rest"
		c_iid=$f
		field 3 "$c_rest"
		c_boot=$f
		# shellcheck disable=SC2086 # its pid, its start time
		set -- $c_rest
		c_is='cut'
		if [ "$c_boot" = "$boot" ] && is_number "${2:-x}" && alive "$1" "$2"; then c_is=working; fi
		;;
	*)
		c_is=torn
		return 0
		;;
	esac
	[ "$c_iid" = "$iid" ] || refuse invalid_request "decision $decision is about $c_iid here"
}
call_off() { # a place that is at work looks for this mark, under the lock, before it launches
	{ : >"$claim.cancel"; } 2>/dev/null || { spend && { : >"$claim.cancel"; } 2>/dev/null; } ||
		refuse resources "$S cannot be written"
	uptime
	c_end=$((t + 8000)) # a place that waits for its leader looks for the mark, and ends what it began
	while [ "$c_is" = working ]; do
		unlock
		nap
		uptime
		[ "$t" -lt "$c_end" ] || settled working
		relock
		read_claim
	done
}
only_this() { # an instance of another decision is not ended for this one
	get_text "$D/spec" || return 0
	case $nl$text$nl in *"${nl}decision $decision$nl"*) ;; *)
		refuse invalid_request "$iid is of another decision"
		;;
	esac
}
end_it() { # under the lock: whatever was begun is closed and ended
	only_this
	fence settle
	accept settle stopped || refuse resources "$S cannot be written"
	close_all "$newest"
	unlock
	end_all "$gens" 0 KILL
	relock
	still_ours || overtaken
	[ "$clean" = yes ] || settled unproven
	release_instance
	remove_instance || settled unproven
}
tombstone() { # under the lock: from here on a place of this decision is refused
	made_dir "$I/decisions" && put "$claim" cancelled || refuse resources "$S cannot be written"
}
settled() { # OUTCOME
	case $1 in working | unproven) ;; *)
		set +f
		rm -f "${claim:?}".* 7>&-
		set -f
		;;
	esac
	answer outcome "$1"
	finish ok
}

request
may_spend=yes
instance_paths
is_id "$decision" || refuse invalid_request 'decision is not an id'
is_number "$newest" || refuse invalid_request 'generation is not a number'
claim=$I/decisions/$decision
state_dir || refuse resources "$S cannot be written"
mounts
cgroup_root
boot_id
get "$S/node_id" || refuse verify "$S/node_id is not there, or damaged"
answer node_id "$g"
lock 10
read_claim
[ "$c_is" != working ] || call_off
case $c_is in
placed) settled placed ;;
refused)
	c_code=${c_rest%% *}
	[ "$c_code" = cancelled ] || {
		enc "${c_rest#* }"
		answer refused "$c_code" "$e"
		settled refused
	}
	;;
esac
# what a power cut left without its claim is ended too
[ ! -e "$D" ] || end_it
[ "$c_is" = cancelled ] || tombstone
settled cancelled
