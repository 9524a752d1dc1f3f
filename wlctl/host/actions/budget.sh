# shellcheck shell=sh
# What a supervisor may do by itself for what was launched: one line, written with each launch that was
# asked for, and again, under the lock, before each that was not.
# shellcheck disable=SC2034,SC2154 # the action's parameters, and what the other parts read
open_budget() { # under the lock, before the launch: a fresh one
	# what has no cgroup is begun again by nobody but whoever asks for it: its end is hard to prove
	[ -n "$o_restart" ] && [ "$containment" != leader-only ] || o_restart='0 0 0 0'
	b_kind=always b_leased=no
	[ "$s_kind" = service ] || b_kind=once
	[ "$until" = 0 ] || b_leased=yes
	put "$D/restarts" "$number $boot $b_kind $b_leased $gen $fence_no $o_restart 0" && return 0
	problem="resources $S cannot be written"
	return 1
}
check_restart() { # what was asked for: MAX WINDOW BASE CAP, or nothing
	[ -n "$o_restart" ] || return 0
	# shellcheck disable=SC2086 # its numbers
	set -- $o_restart
	[ "$#" = 4 ] && is_number "$1" && is_number "$2" && is_number "$3" && is_number "$4" &&
		[ "$1" -le 1000 ] && return 0
	refuse invalid_request 'restart is not four numbers, the first of them at most 1000'
}
load_verdict() { # INSTANCE_DIR GENERATION -> v_code, v_why (encoded): why it is not begun again, or -
	v_gen='' v_code=- v_why=- v_mark=
	{ read -r v_gen v_code v_why v_mark <"$1/verdict"; } 2>/dev/null
	[ "$v_gen $v_mark" = "$2 ." ] || v_code=- v_why=-
}
load_budget() { # INSTANCE_DIR -> b_*: the launch it is for, and when it was used; 1 when there is none
	b_number='' b_boot='' b_kind='' b_leased='' b_from='' b_fence='' b_max=0 b_window='' b_base='' b_cap='' b_total='' b_times=
	{
		read -r b_number b_boot b_kind b_leased b_from b_fence b_max b_window b_base b_cap b_total b_times \
			<"$1/restarts"
	} 2>/dev/null || return 1
	case $b_times in . | *' .') b_times=${b_times%.} ;; *) return 1 ;; esac
}
