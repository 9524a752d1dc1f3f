# shellcheck shell=sh
# Starting the supervisor of an instance: every one that runs has one, its output being bounded by it.
# shellcheck disable=SC2154 # the action's parameters, and what the other parts read
start_supervisor() { # INSTANCE_CGROUP (empty without one), under the lock; one that is there already lets the second end
	v_in=-
	if [ -n "$1" ]; then
		v_in=$1/ctl/sup
		mkdir "$v_in" 2>/dev/null 7>&- || [ -d "$v_in" ] || return 1
	fi
	made_here "$D/sup.sh" "$SUP" && made_here "$D/restart.sh" "{$nl$KIT$nl$AGAIN${nl}exit$nl}$nl" || return 1
	where setsid
	if [ "$way" = systemd-user ]; then # only what its manager starts may move to below the unit
		# shellcheck disable=SC2086 # the words that start the shell
		timeout -s KILL 20 systemd-run --user --quiet --collect $ish "$D/sup.sh" hop "$D" \
			"$v_in" "$w" $ish 7>&- </dev/null >>"$D/sup.err" 2>&1
		return
	fi
	(
		trap - HUP PIPE INT TERM
		# shellcheck disable=SC2086 # the words that start the shell
		exec "$w" -f env -i PATH="$PATH" LC_ALL=C $ish "$D/sup.sh" stay "$D" "$v_in" $ish \
			7>&- </dev/null >>"$D/sup.err" 2>&1
	)
}
supervisor_life() { # -> l: as life
	l=none
	get "$D/supervisor" || return 0
	# shellcheck disable=SC2086 # its pid, its start time, its boot
	set -- $g
	[ "$#" != 3 ] || life "$@"
}
