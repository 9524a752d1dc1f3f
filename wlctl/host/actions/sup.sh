# shellcheck shell=sh
# sup.sh MODE DIR CGROUP: the supervisor of one instance. It looks at the generation that is current,
# records how it is, and keeps its output bounded. When that ends, or fails its checks, it has the next
# one begun by restart.sh as often as the policy says; otherwise it ends with it. By itself it starts
# and stops nothing but its own checks, each in a cgroup that is emptied afterwards. The modes:
#   hop SETSID SHELL...  is started by systemd: leaves its unit for the cgroup, and goes on as stay
#   stay SHELL...        looks
set -fu
umask 077
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C
export PATH LC_ALL
mode=$1 D=$2 cgroup=$3
shift 3
trap : HUP INT TERM
log_max=8388608

# A supervisor that comes after the stop finds its cgroup gone.
[ "$cgroup" = - ] || echo 0 2>/dev/null >"$cgroup/cgroup.procs" || exit 125
cd "$D" || exit 125
if [ "$mode" = hop ]; then
	setsid=$1
	shift
	exec "$setsid" -f env -i PATH="$PATH" LC_ALL=C "$@" "$D/sup.sh" stay "$D" "$cgroup" "$@" \
		</dev/null >>sup.err 2>&1
fi
exec 6>>sup.lock
flock -n 6 || exit 0 # one an instance, for as long as it lives
waits=no
if [ -p sup.fifo ] || mkfifo -m 600 sup.fifo 2>/dev/null; then
	exec 5<>sup.fifo # nobody writes to it
	waits=yes
fi

stat_of() { # PID -> st_state, st_threads, st_start: behind its name, which may have ends of lines in it
	st=
	while IFS= read -r st_l; do st=$st$st_l; done 2>/dev/null <"/proc/$1/stat"
	# shellcheck disable=SC2086 # columns
	set -- ${st##*") "}
	[ "$#" -ge 20 ] || return 1
	st_state=$1 st_threads=${18} st_start=${20}
}
milliseconds() { # -> t: of this boot
	read -r t _ </proc/uptime
	t=$((${t%.*} * 1000 + (1${t#*.} - 100) * 10))
}
say() { # FILE WORD...: whole or not at all; what is not synced means something under this boot only
	y_f=$1
	shift
	printf '%s .\n' "$*" 2>/dev/null >"$y_f.n" && mv -T "$y_f.n" "$y_f" 2>/dev/null
}
load() { # the launch file: who it runs as, and how it is looked at
	containment='' uid='' gid='' groups='' caps='' limit='' setpriv='' ish='' tick='sleep' kind='' interval=10000
	timeout=2000 misses_max=3 max_age=0 heartbeat=''
	while read -r k v; do
		case $k in
		containment) containment=$v ;;
		uid) uid=$v ;;
		gid) gid=$v ;;
		groups) groups=$v ;;
		caps) caps=$v ;;
		limit) dec "$v" && limit=$d ;;
		setpriv) setpriv=$v ;;
		ish) dec "$v" && ish=$d ;;
		tick) tick=$v ;;
		health)
			# shellcheck disable=SC2086 # its words
			set -- $v
			kind=$1 interval=$2 timeout=$3 misses_max=$4 max_age=$5
			;;
		heartbeat) dec "$v" && heartbeat=$d ;;
		end) return 0 ;;
		esac
	done 2>/dev/null <"$G/launch"
	return 1
}
recorded() { # -> init, init_start, leader, leader_start
	init='' init_start='' leader='' leader_start=''
	while read -r k a b m; do
		[ "$m" = . ] || continue
		case $k in
		init) init=$a init_start=$b ;;
		leader) leader=$a leader_start=$b ;;
		esac
	done 2>/dev/null <"$G/record"
	[ -n "$leader" ]
}
over() { # it was closed, or it has ended
	[ -e "$G/open" ] || return 0
	read -r k _ 2>/dev/null <"$G/exit" || return 0
	[ "$k" != exit ] || return 0
	recorded || return 1
	stat_of "$leader" && [ "$st_start" = "$leader_start" ] || return 0
	case $st_state in Z | X) [ "$st_threads" -le 1 ] ;; *) return 1 ;; esac
}
empty_hook() { # whatever a check left; without a cgroup nobody knows, and it ends with its namespace
	[ "$cgroup" != - ] || return 0
	h_n=0
	while [ "$h_n" -lt 200 ]; do
		echo 1 2>/dev/null >"$hook/cgroup.kill"
		h_any=no
		while read -r h_p; do
			h_any=yes
			[ "$h_p" = 0 ] || kill -9 "$h_p" 2>/dev/null
		done 2>/dev/null <"$hook/cgroup.procs"
		[ "$h_any" = yes ] || return 0
		sleep 0.01 2>/dev/null || sleep 1
		h_n=$((h_n + 1))
	done
	return 1
}
run_check() { # as the instance, where the instance is; 0 when it is well
	set --
	while read -r k v; do
		[ "$k" != check ] || { dec "$v" && set -- "$@" "$d"; }
	done 2>/dev/null <"$G/launch"
	# shellcheck disable=SC2086 # the words that start the shell
	set -- --no-new-privs $ish -c "$LAST" last "$@"
	case $containment in
	isolated | cgroup-pid)
		if [ "$caps" = - ]; then
			set -- --bounding-set=-all --inh-caps=-all "$@"
		else
			set -- --bounding-set="-all$caps" --inh-caps="-all$caps" --ambient-caps="-all$caps" "$@"
		fi
		if [ "$groups" = - ]; then set -- --clear-groups "$@"; else set -- --groups="$groups" "$@"; fi
		set -- nsenter -t "$init" -p -m -i "$setpriv" --reuid="$uid" --regid="$gid" "$@"
		;;
	cgroup-ns)
		set -- nsenter -t "$init" --preserve-credentials -U -p -m -i "$setpriv" \
			--bounding-set=-all --inh-caps=-all "$@"
		;;
	*) set -- "$setpriv" "$@" ;;
	esac
	case $containment in isolated | cgroup-pid | cgroup-ns)
		stat_of "$init" && [ "$st_start" = "$init_start" ] || return 1
		;;
	esac
	(
		[ "$cgroup" = - ] || echo 0 2>/dev/null >"$hook/cgroup.procs" || exit 125
		exec 5>&- 6>&- 3<"$G/environ" </dev/null >"$G/health.out" 2>&1
		ulimit -f 128
		exec timeout -s KILL "$((timeout / 1000)).$(printf %03d "$((timeout % 1000))")" "$@"
	)
	h_s=$?
	empty_hook
	return "$h_s"
}
beats() { # the heartbeat file is young enough
	h_at=$(stat -c %Y "$heartbeat" 2>/dev/null) || return 1
	h_now=$(date +%s)
	[ "$(((h_now - h_at) * 1000))" -le "$max_age" ]
}
look() { # -> misses, h_why
	case $kind in
	heartbeat) beats ;;
	*) run_check ;;
	esac
	h_s=$?
	if [ "$h_s" = 0 ]; then misses=0; else misses=$((misses + 1)); fi
	checks=$((checks + 1))
	milliseconds
	if [ "$misses" = 0 ]; then
		word=healthy
	elif [ "$misses" -ge "$misses_max" ]; then
		word=unhealthy
	fi # in between it is what it was
	say "$G/health" "$word" "$misses" "$checks" "$t"
}
bound_output() { # the writer appends: what it writes in the moment between may be lost
	h_size=$(stat -c %s "$G/out" 2>/dev/null) || return 0
	[ "$h_size" -gt "$log_max" ] || return 0
	# so much of its end and no more: a writer can be faster than what copies after it
	h_from=$((h_size - 2 * log_max))
	[ "$h_from" -gt 0 ] || h_from=0
	dd if="$G/out" of="$G/out.1" bs=65536 iflag=skip_bytes,count_bytes skip="$h_from" count="$((2 * log_max))" 2>/dev/null
	: >"$G/out"
}

watch() { # until it is over, or has failed its checks so often that it is to be begun again
	leader=
	hook=$limit/hook
	[ -z "$kind" ] || [ "$cgroup" = - ] || mkdir "$hook" 2>/dev/null
	misses=0 checks=0 word=starting look_at=0 bound_at=0 pause=1
	load_budget "$D" || b_max=0
	# nothing to look at but the size of its output
	[ -n "$kind" ] || [ "$b_max" != 0 ] || pause=5
	milliseconds
	late=$((t + 10000))
	while ! over; do
		milliseconds
		if [ -n "$kind" ] && [ -n "$leader" ] && [ "$t" -ge "$look_at" ]; then
			look
			look_at=$((t + interval))
			if sick; then return 0; fi
		fi
		if [ "$t" -ge "$bound_at" ]; then
			bound_output
			bound_at=$((t + 4900)) # at every pause of 5 s
		fi
		if [ -n "$leader" ]; then
			idle "$pause"
		elif [ "$t" -lt "$late" ]; then
			sleep 0.05 2>/dev/null 6>&- || sleep 1 6>&-
		elif [ "$b_max" = 0 ]; then
			idle "$pause"
		elif [ "$t" -ge "$((late + 20000))" ] || ! is_entered; then
			return 0
		else
			idle 1
		fi
	done
	bound_output # what it printed last, too
}
idle() { # SECONDS: the shell itself waits where it can, as it does most of the time
	if [ "$tick$waits" = 'readyes' ]; then
		k=
		# shellcheck disable=SC3045 # only where the shell was seen to have it
		read -t "$1" -r k <&5
	else
		sleep "$1" 6>&-
	fi
}
is_entered() { # its launcher has come as far as its cgroup
	h_any=0
	while read -r k v; do [ "$k" != populated ] || h_any=$v; done 2>/dev/null \
		<"${limit%/limit/*}/ctl/g$n/cgroup.events"
	[ "$h_any" = 1 ]
}
sick() { # and the policy has nothing against beginning it again, or will have no more of it
	[ "$b_max" != 0 ] && [ "$misses" -ge "$misses_max" ] || return 1
	ask_policy
	case $verdict in wait*) return 1 ;; esac
}
ask_policy() { # -> verdict
	milliseconds
	# shellcheck disable=SC2086 # moments
	decide "$t" "$b_max" "$b_window" "$b_base" "$b_cap" $b_times
}
wanted() { # it runs by the very operation that launched it, and nobody holds it
	load_budget "$D" && [ "$b_max" != 0 ] && [ "$b_boot" = "$boot" ] || return 1
	read -r w_number _ w_desired m 2>/dev/null <opnum || return 1
	[ "$w_number $w_desired $m" = "$b_number running ." ] || return 1
	load_verdict "$D" "$n"
	[ "$v_code" = - ]
}
judge() { # -> code, why: - where it is to be begun again, otherwise what holds it; 1 where it has finished
	code='' why='' m=
	if { read -r code why m <"$G/why"; } 2>/dev/null && [ "$m" = . ] && dec "$why"; then
		why=$d # somebody has begun to do it
		return 0
	fi
	code=- why="g$n did not start"
	recorded || return 0
	why="g$n failed $misses health checks in a row"
	over || return 0
	await_exit
	case $x_m in 'lease '*)
		code=lease why="the lease of g$n ran out"
		return 0
		;;
	esac
	if [ -z "$x" ]; then # nobody knows what it did
		code='exit-unknown' why="g$n ended, and with which status is not known"
		return 0
	fi
	[ "$b_kind$x" != once0 ] || return 1
	why="g$n ended by itself with status $x"
	[ "$x" -le 128 ] || why="$why (signal $((x - 128)))"
	oom=0
	while read -r k v; do [ "$k" != oom_kill ] || oom=$v; done 2>/dev/null <"$limit/memory.events"
	[ "$oom" = 0 ] || why="$why, out of memory"
}
await_exit() { # -> x, x_m: its waiter writes it a moment after it happened; empty where it never does
	h_n=0
	while [ "$h_n" -lt 50 ]; do
		x_k='' x='' x_m=
		{ read -r x_k x _ x_m <"$G/exit"; } 2>/dev/null
		case $x_k,$x_m,$x in
		*,*,*[!0-9]*) ;;
		exit,.,?* | exit,lease*,?*) return 0 ;;
		esac
		sleep 0.1 2>/dev/null 6>&- || sleep 1 6>&-
		h_n=$((h_n + 1))
	done
	x=
}
rest() { # MILLISECONDS: at most 5 s of them
	h_n=$1
	[ "$h_n" -le 5000 ] || h_n=5000
	sleep "$((h_n / 1000)).$(printf %03d "$((h_n % 1000))")" 2>/dev/null 6>&- || sleep 1 6>&-
}
go_on() { # after a run: have the next one begun, or end with it
	wanted && judge && [ -f "$D/restart.sh" ] || exit 0
	ask_policy
	case $code$verdict in -wait*)
		rest "$((${verdict#wait } - t))"
		return 0
		;;
	esac
	# shellcheck disable=SC2086 # the words that start the shell
	$ish "$D/restart.sh" "$D" "$n" "$code" "$why" 5>&- 6>&- </dev/null >/dev/null 2>restart.err
	case $? in
	0) ;;
	64 | 65) exit 0 ;;
	*) rest 2000 ;;
	esac
}

ish=$*
stat_of "$$" || exit 125
read -r boot </proc/sys/kernel/random/boot_id
say supervisor "$$" "$st_start" "$boot"
leader=
while :; do
	read -r n m <current && [ "$m" = . ] || exit 125
	G=$D/g$n
	if [ -e "$G/open" ]; then
		load || exit 125
		watch
	fi
	go_on
done
