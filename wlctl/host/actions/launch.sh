# shellcheck shell=sh
# Starting generation `gen` of instance `iid`: under the lock up to the moment it is on its own.
# shellcheck disable=SC2154 # the action's parameters, and what the other parts read
in_time() { # a request that was on its way for too long does nothing
	is_number "$deadline" || refuse invalid_request 'deadline is not a number'
	uptime
	[ "$t" -le "$deadline" ] || refuse clock "the request arrived $((t - deadline)) ms after its deadline"
}
refuse_departed() {
	[ ! -e "$I/departed/$iid" ] || refuse superseded "$iid was unloaded from this node"
}

refuse_uncontained() { # after tools: without a cgroup only where the node's operator settles for that
	case $settles in
	auto) [ "$containment" != leader-only ] || refuse no_cgroup 'the login may write no cgroup v2' ;;
	leader-only) ;;
	*) refuse invalid_request 'containment is auto or leader-only' ;;
	esac
}

begun=0 # how often its supervisor had begun it since it was asked for
blank_exit="                                                              .$nl" # 62 blanks and a mark
launch_env() { # -> run_dir, data_dir, vars: what the process is given
	if [ "$s_data" = keep ]; then data_dir=$D/data; else data_dir=$G/data; fi
	tmp_dir=$G/tmp private=no
	case $way_in in isolated | cgroup-pid | cgroup-ns)
		# a state directory below a shared place would be covered by the private one
		case $S/ in /tmp/* | /var/tmp/* | /dev/shm/* | /run/lock/*) ;; *) private=yes tmp_dir=/tmp ;; esac
		;;
	esac
	vars=$nl
	given PATH /usr/local/bin:/usr/bin:/bin
	given WLCTL_NAME "$name"
	given WLCTL_INSTANCE "$iid"
	given WLCTL_NODE "$node"
	given WLCTL_GENERATION "$gen"
	given WLCTL_FENCE "$((fence_no * 1000000 + begun))"
	given WLCTL_RUN_DIR "$run_dir"
	given WLCTL_DATA_DIR "$data_dir"
	given TMPDIR "$tmp_dir"
	given HOME "$data_dir"
	l_first=yes
	IFS=$nl
	for l_p in $ports; do
		unset IFS
		[ "$l_first" = no ] || given PORT "${l_p#* }"
		l_first=no
		given "PORT_$(printf '%s' "${l_p%% *}" | tr 'a-z-' 'A-Z_' 7>&-)" "${l_p#* }"
	done
	unset IFS
}
run_root() { # -> run, run_dir
	run_base
	run_dir=$run/$short/g$gen
	if [ "${#run_dir}" -gt 90 ]; then
		problem="resources $run_dir leaves no room for the path of a socket"
		return 1
	fi
}

take_uid() { # -> uid: the instance's own for as long as it has data here, or - where there is none
	uid=-
	[ "$way_in" = isolated ] || return 0
	get_text "$S/uids"
	if [ "$?" = 2 ]; then
		problem="resources $S/uids is damaged"
		return 1
	fi
	case $nl$text$nl in *" $installation $iid$nl"*)
		uid=${text%%" $installation $iid"*}
		uid=${uid##*"$nl"}
		return 0
		;;
	esac
	if ! uid_range; then
		problem='no_user the node is in a user namespace that has no ids to give'
		return 1
	fi
	n_all="$nl$text$nl" n_i=0
	while [ "$n_i" -lt "$n_count" ]; do
		n_u=$((n_first + (n_start + n_i) % n_count))
		case $n_all in
		*"$nl$n_u "*) ;;
		*) if unused_uid "$n_u"; then break; fi ;;
		esac
		n_i=$((n_i + 1))
	done
	if [ "$n_i" = "$n_count" ] || ! put_text "$S/uids" "${text:+$text$nl}$n_u $installation $iid"; then
		problem='resources no uid can be given'
		return 1
	fi
	uid=$n_u
}
uid_range() { # -> n_first, n_count, n_start: ids that nobody else hands out; 1 when there are none
	# 61184 to 65519 are what systemd gives to services, and containers have theirs from 100000 on;
	# only where the ids of this machine end at 65536 is there nothing better
	n_first=61184 n_count=0
	while read -r n_in _ n_len; do
		if [ "$n_in" -le 1900000000 ] && [ "$((n_in + n_len))" -ge 1900100000 ]; then
			n_first=1900000000 n_count=100000
		elif [ "$n_in" -le 61184 ] && [ "$((n_in + n_len))" -ge 65520 ] && [ "$n_count" = 0 ]; then
			n_count=4336
		fi
	done </proc/self/uid_map
	[ "$n_count" != 0 ] || return 1
	# nodes that share a kernel (containers, tests) see each other's processes: each begins elsewhere
	get "$S/node_id" && n_start=${g%"${g#???????}"} || n_start=0
	n_start=$((0x$n_start % n_count))
}
unused_uid() {
	! grep -q "^[^:]*:[^:]*:$1:" /etc/passwd /etc/group 2>/dev/null 7>&- || return 1
	uid_left "$1"
	[ "$left" = 0 ]
}

take_ports() { # -> ports: NAME NUMBER lines; an instance keeps its own through its generations, until
	# somebody else answers there: its earlier runs are proven gone, so it is none of them
	ports=
	[ -n "$s_ports" ] || return 0
	get_text "$S/ports"
	if [ "$?" = 2 ]; then
		problem="resources $S/ports is damaged"
		return 1
	fi
	q_table=$text
	q_busy=$(grep -hs ' 0A ' /proc/net/tcp /proc/net/tcp6 7>&-)
	IFS=$nl
	for q_l in $s_ports; do
		unset IFS
		q_n=${q_l%% *}
		q_own=" $installation $iid $q_n$nl" q_p=
		case $q_table$nl in *"$q_own"*)
			q_p=$nl$q_table$nl
			q_p=${q_p%"$q_own"*} # the one it was given last
			q_p=${q_p##*"$nl"}
			;;
		esac
		if [ -z "$q_p" ] || answers "$q_p"; then
			free_port "${q_l#* }" || return 1
			q_table="${q_table:+$q_table$nl}$q_p${q_own%"$nl"}"
		fi
		ports="$ports$q_n $q_p$nl"
	done
	unset IFS
	[ "$q_table" = "$text" ] || put_text "$S/ports" "$q_table" || {
		problem="resources $S/ports cannot be written"
		return 1
	}
}
free_port() { # auto|NUMBER -> q_p
	if [ "$1" != auto ]; then
		q_p=$1
		if port_taken; then
			problem="port $q_p is taken"
			return 1
		fi
		return 0
	fi
	# nodes may share a network (containers, tests), and see too late what another has taken
	get "$S/node_id" && q_i=$((0x${g%"${g#????}"})) || q_i=0
	q_end=$((q_i + 10000))
	while [ "$q_i" -lt "$q_end" ]; do
		q_p=$((20000 + q_i % 10000))
		if ! port_taken; then return 0; fi
		q_i=$((q_i + 1))
	done
	problem='port none is free from 20000 to 29999'
	return 1
}
port_taken() {
	case $nl$q_table in *"$nl$q_p "*) return 0 ;; esac
	answers "$q_p"
}
answers() { # PORT
	q_h=$(printf '%04X' "$1")
	case $q_busy in *":$q_h "[0-9A-F]*":0000 0A "*) return 0 ;; esac
	return 1
}

prepare_generation() { # everything that must be there, and synced, before anything runs
	where setsid && l_setsid=$w
	where setpriv && l_setpriv=$w
	where unshare && l_unshare=$w
	enc "$c_ctl"
	l_ctl=$e
	enc "$c_limit"
	l_limit=$e
	enc "$ish"
	l_ish=$e
	enc "${c_inst:--}"
	l_path=$e
	l_uid=$uid
	if [ "$l_shared" = yes ]; then
		l_uid=user:$uid
		[ "$uid" != 0 ] || l_uid=-
	fi
	{
		made_dir "$run/$short" && mkdir -p "$G/tmp" "$run_dir" "$data_dir" &&
			{ [ "$uid" = - ] || chown "$uid:$gid" "$G/tmp" "$run_dir" "$data_dir"; } &&
			ln -sfn "g$gen" "$run/$short/current" && name_run && mkfifo -m 600 "$G/fifo"
	} 2>/dev/null 7>&- &&
		made_here "$G/exit" "$blank_exit" && made_here "$G/out" '' &&
		made_here "$G/init.sh" "$INIT" &&
		made_here "$G/launch" "containment $way_in
uid $uid
gid $gid
groups $l_groups
caps $l_caps
ctl $l_ctl
limit $l_limit
nproc $l_nproc
private $private
tick $tick
ish $l_ish
setsid $l_setsid
setpriv $l_setpriv
unshare $l_unshare
lease $l_lease
gen $gen
boot $boot
${launch_words}${l_health}end
" &&
		given_words &&
		put_bytes "$G/record" "gen $gen $boot $containment $way $l_uid $c_inodes $l_path .
above $c_above .
given$given .
" &&
		put "$D/current" "$gen" && fence_launch && made_here "$G/open" "open .$nl" && return 0
	problem="resources generation $gen cannot be written to $S"
	return 1
}
fence_launch() { # what a launcher takes before it begins, or whoever closes it, and never both
	[ "$way" != none ] || made_here "$G/go" ''
}
given_words() { # -> given: what was promised of ports, limits and data, for whoever asks again
	enc "$data_dir"
	given=" data=$e"
	for l_u in $unenforced; do given="$given unenforced=$l_u"; done
	IFS=$nl
	for l_p in $ports; do given="$given port=${l_p%% *}:${l_p#* }"; done
	unset IFS
}
not_revoked() { # PACKAGE, after read_sheet; a list that cannot be read allows nothing to start
	set +f
	set -- "$1" "$S"/*/revoked
	set -f
	v_refs="package $1${nl}artifact $sheet$nl"
	shift
	IFS=$nl
	for v_l in $s_files; do
		v_l=${v_l#* }
		v_refs="${v_refs}artifact ${v_l%% *}$nl"
	done
	unset IFS
	for v_f in "$@"; do
		load_revoked "$v_f"
		case $? in
		1) continue ;;
		2)
			problem="revoked the revocation list $v_f is damaged"
			return 1
			;;
		esac
		v_hit=$(printf '%s' "$v_refs" | grep -xF -f - "$v_f" 2>/dev/null 7>&-)
		if [ -n "$v_hit" ]; then
			problem="revoked ${v_hit%%"$nl"*} is revoked"
			return 1
		fi
	done
	return 0
}
arm_lease() { # -> l_lease: before anything runs
	l_lease=-
	[ "$until" != 0 ] || return 0
	if [ "$way_in$containment" != isolatedisolated ]; then
		problem="no_lease a copy that is contained by $containment could outlive its lease"
		return 1
	fi
	l_lease=$run/$short/lease
	made_dir "$run/$short" && [ "$(stat -f -c %T "$run/$short" 2>/dev/null 7>&-)" = tmpfs ] &&
		put_lease "$l_lease" || {
		problem="no_lease $run is no tmpfs that can be written"
		return 1
	}
}
spawn() {
	if [ "$way" = systemd-user ]; then # only what its manager starts may move to below the unit
		# shellcheck disable=SC2086 # the words that start the shell
		# it is told and not waited for: the leader is, once and without the lock
		timeout -s KILL 8 systemd-run --user --quiet --collect --no-block $ish "$G/init.sh" hop "$G" \
			7>&- </dev/null >>"$G/err" 2>&1
		s_run=$?
		[ "$s_run" = 0 ] || [ -s "$G/err" ] || printf 'systemd-run ended with status %s\n' "$s_run" >>"$G/err"
		return 0
	fi
	(
		trap - HUP PIPE INT TERM
		# shellcheck disable=SC2086 # the words that start the shell
		exec "$l_setsid" -f env -i PATH="$PATH" LC_ALL=C $ish "$G/init.sh" enter "$G" \
			7>&- </dev/null >>"$G/err" 2>&1
	)
}
choose_way_in() { # -> way_in: what it is launched into beside its cgroup
	way_in=$containment
	if [ "$containment" = leader-only ]; then
		if [ "$settles" != leader-only ]; then
			problem='no_cgroup the login may write no cgroup v2'
			return 1
		fi
		way=none way_in=cgroup
		[ "$me" != 0 ] || way_in=isolated
	fi
	[ "$way_in" = cgroup ] || return 0
	if unshare --user --map-root-user --pid --fork --mount-proc --ipc true 2>/dev/null 7>&-; then
		way_in=cgroup-ns
	fi
}
launch() { # under the lock; 1 and `problem` when it could not
	choose_way_in && not_revoked "$package" && run_root && choose_user && take_ports && launch_env && place_secrets && fill_in &&
		plan_health && arm_lease && make_place && prepare_generation || return 1
	spawn
	start_supervisor "$c_inst" || {
		problem="resources the supervisor of $iid cannot be started"
		return 1
	}
}
await_leader() { # without the lock: 0 when the leader was recorded; else w_why, until it was called off
	uptime
	w_why='it was closed meanwhile'
	w_end=$((t + 20000)) # a small node under load takes its time
	while :; do
		load_record "$G"
		[ -z "$r_leader" ] || return 0
		exit_of "$G"
		if [ "$x" != - ]; then
			w_why="its launcher ended with status $x"
			return 1
		fi
		if [ -e "$G/closed" ] || { [ -n "${claim:-}" ] && [ -e "$claim.cancel" ]; }; then return 1; fi
		uptime
		if [ "$t" -ge "$w_end" ]; then
			w_why='nothing of it was seen within 20 s'
			return 1
		fi
		nap
	done
}
no_leader() { # after await_leader -> problem: in the words of whoever was to start it, where it left any
	why=
	{ IFS= read -r why <"$G/err"; } 2>/dev/null
	problem="runtime generation $gen did not start: ${why:-$w_why}"
}
answer_launched() { # yes|no: whether an earlier request had done it
	launched_in "$gen"
	answer "launched $gen already=$1 boot=$r_boot containment=$r_containment way=$r_way pid=$r_leader" \
		"start=$r_leader_start uid=$r_uid cgroup=$e inode=$r_limit"
	answer "given$r_given"
}
