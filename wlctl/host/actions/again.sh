# shellcheck shell=sh
# restart.sh DIR GENERATION CODE WHY: started by the supervisor of an instance, for one step. It ends
# what was launched last and proves that gone; then it launches the next, or holds the instance where
# CODE is not `-`. Whatever it relies on is looked at again under the lock, in the step that launches.
# It ends with 0 when the next one was launched, 64 when it is no longer the supervisor's to do, 65
# when the instance is held, and 75 when it is to be tried again.
# shellcheck disable=SC2034,SC2154,SC2317 # what the other parts set, read and call
D=$1 seen=$2 code=$3 why=$4
iid=${D##*/} I=${D%/instances/*}
installation=${I##*/} S=${I%/*}
generations_kept=16 logs_kept=3
number='' gen='' until=0 fence_no='' package='' settles=auto spares=yes problem=
# on an enforced node its own list decides, whoever was let in
if [ -e "/etc/wlctl/$installation/doorkeeper" ]; then WLCTL_DOOR=/etc/wlctl/$installation; fi

finish() { exit 75; }
refuse() { # CODE TEXT
	printf '%s %s\n' "$1" "$2" >&2
	exit 75
}
unclean() { refuse "$1" "$2"; }
start_supervisor() { return 0; } # it is who asks

ours() { # under the lock: it is wanted, and nobody did anything with it since it was launched
	load_budget "$D" || return 1
	read_number
	[ "$have $desired $b_boot" = "$b_number running $boot" ] && [ "$b_max" != 0 ] &&
		get "$D/current" && [ "$g" = "$seen" ] && [ ! -e "$I/departed/$iid" ]
}
take_lock() {
	lock 60
	ours || exit 64
}
hold() { # CODE TEXT, under the lock: an operator decides
	enc "$2"
	put "$D/verdict" "$seen $1 $e" || refuse resources "$S cannot be written"
	exit 65
}
ask_policy() { # under the lock: whether it may be begun again by now
	uptime
	# shellcheck disable=SC2086 # moments
	decide "$t" "$b_max" "$b_window" "$b_base" "$b_cap" $b_times
	case $verdict in
	restart*) [ "$b_total" -lt 999999 ] || code=exhausted ;;
	wait*) exit 75 ;;
	*) code=exhausted ;;
	esac
	[ "$code" != exhausted ] || why="$why; it was begun again $within times within $((b_window / 1000)) s"
}
set_secrets_aside() { # under the lock: they outlive the run, and no process can read them meanwhile
	run_base
	set +f
	for w_in in "$run/$short"/g*/secrets; do
		[ ! -d "$w_in" ] || mv -T "$w_in" "$run/$short/secrets" 2>/dev/null 7>&-
	done
	set -f
}
place_secrets() { # what was sent with the launch that was asked for, as it was
	[ -n "$s_secrets" ] || return 0
	if [ ! -d "$run/$short/secrets" ] || ! mkdir -p "$run_dir" 2>/dev/null 7>&- ||
		! mv -T "$run/$short/secrets" "$run_dir/secrets" 2>/dev/null 7>&-; then
		problem='secret_unavailable its secrets are not on the node any more'
		return 1
	fi
	for k_n in $s_secrets; do given "${k_n}_FILE" "$run_dir/secrets/$k_n"; done
}
find_lease() { # under the lock -> until: a restart extends nothing
	[ "$b_leased" = yes ] || return 0
	uptime
	if load_lease "$run/$short/lease" && [ "$n_boot" = "$boot" ] && is_number "$n_gen" &&
		[ "$n_gen" -ge "$b_from" ] && [ "$((n_until * 10))" -gt "$t" ]; then
		until=$((n_until * 10))
		return 0
	fi
	problem='lease its lease has run out'
	return 1
}
end_seen() { # without the lock: everything launched before, with what was read of each
	left=
	for gen in $gens; do
		[ -e "$D/g$gen/ended" ] || left="$left $gen"
	done
	end_all "$left" "$s_grace" "$s_signal"
	IFS=$nl
	for r_l in $readings; do
		unset IFS
		r_n=${r_l#generation }
		made_here "$D/g${r_n%% *}/reading" "$r_n .$nl"
	done
	unset IFS
	[ "$clean" = yes ] || refuse busy "generation $seen is not proven gone"
}
drop_unlaunched() { # under the lock: what was cut before it could run; its number was never used
	generations "$D"
	for n in $gens; do
		[ "$n" -le "$seen" ] || [ ! -e "$D/g$n/ended" ] || remove "${D:?}/g$n"
	done
}
give_up() { # under the lock: what was begun goes; it counts, and whether it is tried again the policy says
	p_code=${problem%% *} p_text=${problem#* }
	close_generation || refuse "$p_code" "$p_text"
	set_secrets_aside
	unlock
	end_all "$gen" 0 KILL
	take_lock
	[ "$clean" = yes ] || refuse busy "generation $gen is not proven gone"
	drop_unlaunched
	case $p_code in
	resources | port | busy | runtime) refuse "$p_code" "$p_text" ;;
	*) hold "$p_code" "$p_text" ;;
	esac
}
spend_one() { # under the lock, before the launch: a cut after this makes it fewer, never more
	put "$D/restarts" "$b_number $boot $b_kind $b_leased $b_from $b_fence $b_max $b_window $b_base $b_cap $((b_total + 1))$times $t" || {
		problem="resources $S cannot be written"
		return 1
	}
	enc "$why"
	made_here "$G/restart" "$seen $t $e .$nl"
}
prune() { # under the lock: how many runs, and how much of their output, may lie here
	generations "$D"
	p_left=0
	for n in $gens; do p_left=$((p_left + 1)); done
	for n in $gens; do
		p_left=$((p_left - 1))
		[ "$n" != "$b_from" ] && [ -e "$D/g$n/ended" ] || continue
		if [ "$p_left" -ge "$generations_kept" ]; then
			forget_run "$n"
		elif [ "$p_left" -ge "$logs_kept" ]; then
			rm -f "$D/g$n/out" "$D/g$n/out.1" "$D/g$n/err" 7>&-
		fi
	done
}

mounts
tools
[ -z "$missing" ] || refuse runtime "the node lacks what wlctl needs: $missing"
load_spec || refuse verify "what $iid is made of is damaged on the node"
package=$placed
if ! read_sheet "$sheet" && [ "$code" = - ]; then
	code=${problem%% *} why=${problem#* }
fi

take_lock
G=$D/g$seen
if [ "$code" = - ]; then ask_policy; fi
enc "$why"
[ -e "$G/why" ] || made_here "$G/why" "$code $e .$nl"
close_all 0
set_secrets_aside
unlock
end_seen
take_lock
drop_unlaunched
[ "$code" = - ] || hold "$code" "$why"
gen=$((seen + 1))
G=$D/g$gen
made_dir "$G" || refuse resources "$S cannot be written"
unlock # hashing may take long
problem=
if ! verify_signed "$package" "$sheet" || ! verify_files || ! stage_files "$G/work"; then
	take_lock
	give_up
fi
take_lock
[ ! -e "$G/closed" ] || exit 64
ask_policy
if [ "$code" != - ]; then
	problem="$code $why"
	give_up
fi
number=$b_number fence_no=$b_fence begun=$((b_total + 1))
find_lease && spend_one && launch || give_up
prune
