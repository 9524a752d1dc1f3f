# shellcheck shell=sh
# Whether a run that ended is begun again: the restart policy, as lifecycle/restart.py has it. The same
# tables hold the two together.
decide() { # NOW MAX WINDOW BASE CAP TIME... -> verdict: exhausted N, wait UNTIL, or restart N; within, times
	p_now=$1 p_max=$2 p_window=$3 p_base=$4 p_cap=$5
	shift 5
	within=0 times='' p_last=0
	for p_said in "$@"; do
		# a clock that was set back makes no restart younger than it is
		p_at=$p_said
		[ "$p_at" -le "$p_now" ] || p_at=$p_now
		[ "$((p_now - p_at))" -lt "$p_window" ] || continue
		within=$((within + 1)) times="$times $p_said"
		[ "$p_at" -le "$p_last" ] || p_last=$p_at
	done
	if [ "$within" -ge "$p_max" ]; then
		verdict="exhausted $within"
		return 0
	fi
	verdict="restart $((within + 1))"
	[ "$within" -gt 0 ] || return 0
	p_more=$((within - 1))
	[ "$p_more" -le 20 ] || p_more=20
	# compared before it is doubled: the product could be more than a shell can count
	p_wait=$p_cap
	if [ "$p_base" -le "$((p_cap >> p_more))" ]; then p_wait=$((p_base << p_more)); fi
	if [ "$p_now" -lt "$((p_last + p_wait))" ]; then verdict="wait $((p_last + p_wait))"; fi
}
