# shellcheck shell=sh
# The launch sheet: read, and checked against what this node can honour.
kept_by_shells() { # NAME: what some shell gives to no program, or not as it was set
	case $1 in
	_ | SHLVL | OPTIND | UID | EUID | PPID | PIPESTATUS | SHELLOPTS | BASHOPTS | BASH_ARGC | BASH_ARGV | \
		BASH_LINENO | BASH_SOURCE | BASH_VERSINFO) return 0 ;;
	esac
	return 1
}
is_variable() {
	case $1 in '' | [0-9]* | *[!A-Za-z0-9_]*) return 1 ;; esac
	[ "${#1}" -le 128 ]
}
is_login() {
	case $1 in '' | [!A-Za-z_]* | *[!A-Za-z0-9_.-]*) return 1 ;; esac
	[ "${#1}" -le 32 ]
}
bad_sheet() { problem="verify the launch sheet says what is not understood: $1"; }

read_sheet() { # SHA256 -> s_*; on failure `problem` is a code and a text
	s_kind='' s_args=none s_command='' s_env='' s_allow='' s_ports='' s_data=drop s_signal=TERM
	s_grace=10000 s_cpu=0 s_memory=0 s_pids=0 s_disk=0 s_files='' s_user='' s_groups='' s_caps='' s_secrets='' s_first=yes s_whole=no
	s_health='' s_h_target='' s_h_interval=10000 s_h_timeout=2000 s_h_misses=3 s_h_age=0
	problem=
	if [ ! -f "$S/store/$1" ]; then
		problem="fetch the launch sheet is not in the node's store"
		return 1
	fi
	s_sum=$(sha256sum <"$S/store/$1" 7>&-)
	if [ "${s_sum%% *}" != "$1" ]; then
		rm -f "$S/store/$1" 7>&-
		problem='verify the launch sheet in the store was changed; it was thrown away'
		return 1
	fi
	while IFS= read -r s_l; do
		if [ "$s_first" = yes ]; then
			s_first=no
			[ "$s_l" = 'wlctl-launch-sheet 1' ] || bad_sheet 'its first line'
		elif [ "$s_whole" = yes ]; then
			bad_sheet 'lines after its end'
		elif [ "$s_l" = end ]; then
			s_whole=yes
		else
			sheet_line "${s_l%% *}" "${s_l#* }"
		fi
		[ -z "$problem" ] || return 1
	done <"$S/store/$1"
	[ "$s_whole" = yes ] || bad_sheet 'it has no end'
	[ -n "$s_command" ] || bad_sheet 'it has no command'
	check_health_lines
	[ -z "$problem" ]
}
check_health_lines() {
	[ -n "$s_health" ] || return 0
	[ -n "$s_h_target" ] && [ "$s_h_timeout" -gt 0 ] && [ "$s_h_misses" -gt 0 ] || bad_sheet 'its health'
	case $s_health in exec | heartbeat)
		dec "$s_h_target" && case /$d/ in
		*//* | */./* | */../* | *[[:cntrl:]]*) bad_sheet 'the path of its health' ;;
		esac
		;;
	esac
}
sheet_line() { # KEY VALUE: the value still encoded
	case $2 in *[!A-Za-z0-9._~/:=,@+%\ \$\{\}-]*)
		bad_sheet 'characters that should be encoded'
		return
		;;
	*%00* | *%[!0-9A-Fa-f]* | *%?[!0-9A-Fa-f]* | *% | *%?)
		bad_sheet 'an escape that is none'
		return
		;;
	esac
	case $1 in
	workload | version | variant) ;;
	kind)
		s_kind=$2
		case $2 in service | job | interval) ;; *) bad_sheet "kind $2" ;; esac
		;;
	arg) s_command="$s_command$2$nl" ;;
	args)
		s_args=$2
		case $2 in append | none) ;; *) bad_sheet "args $2" ;; esac
		;;
	env)
		is_variable "${2%%=*}" && ! kept_by_shells "${2%%=*}" || bad_sheet "env $2"
		s_env="$s_env$2$nl"
		;;
	env_allow)
		dec "$2" && is_variable "${d%\*}" || bad_sheet "env_allow $2"
		s_allow="$s_allow$d$nl"
		;;
	user)
		is_login "$2" || bad_sheet "user $2"
		s_user=$2
		;;
	group)
		is_login "$2" || bad_sheet "group $2"
		s_groups="$s_groups $2"
		;;
	capability)
		is_variable "$2" || bad_sheet "capability $2"
		s_caps="$s_caps $2"
		;;
	secret)
		is_variable "$2" || bad_sheet "secret $2"
		s_secrets="$s_secrets $2"
		;;
	health_kind)
		s_health=$2
		case $2 in http | tcp | exec | heartbeat) ;; *) bad_sheet "health_kind $2" ;; esac
		;;
	health_target) s_h_target=$2 ;;
	health_interval_ms | health_timeout_ms | health_misses | health_max_age_ms)
		is_number "$2" || bad_sheet "$1 $2"
		case $1 in
		health_interval_ms) s_h_interval=$2 ;;
		health_timeout_ms) s_h_timeout=$2 ;;
		health_misses) s_h_misses=$2 ;;
		health_max_age_ms) s_h_age=$2 ;;
		esac
		;;
	port)
		s_p=${2#* }
		case ${2%% *} in '' | [!a-z]* | *[!a-z0-9-]*) bad_sheet "port $2" ;; esac
		if [ "$s_p" != auto ]; then
			if ! is_number "$s_p" || [ "$s_p" -lt 1 ] || [ "$s_p" -gt 65535 ]; then bad_sheet "port $2"; fi
		fi
		s_ports="$s_ports$2$nl"
		;;
	data)
		s_data=$2
		case $2 in keep | drop) ;; *) bad_sheet "data $2" ;; esac
		;;
	stop_signal)
		s_signal=$2
		case $2 in TERM | INT | QUIT | HUP | USR1 | USR2 | WINCH | KILL) ;; *) bad_sheet "stop_signal $2" ;; esac
		;;
	stop_grace_ms | cpu_milli | memory_bytes | pids | disk_bytes)
		is_number "$2" || bad_sheet "$1 $2"
		case $1 in
		stop_grace_ms) s_grace=$2 ;;
		cpu_milli) s_cpu=$2 ;;
		memory_bytes) s_memory=$2 ;;
		pids) s_pids=$2 ;;
		disk_bytes) s_disk=$2 ;;
		esac
		;;
	file) sheet_file "$2" ;;
	*) bad_sheet "$1" ;;
	esac
}
sheet_file() { # MODE SHA256 PATH
	s_m=${1%% *}
	s_p=${1#* }
	s_h=${s_p%% *}
	s_p=${s_p#* }
	case $s_m in 0444 | 0555) ;; *) bad_sheet "a file's mode $s_m" ;; esac
	is_sha256 "$s_h" || bad_sheet 'a file without a hash'
	dec "$s_p" || bad_sheet 'a path that is not encoded'
	case /$d/ in
	*//* | */./* | */../* | *[[:cntrl:]]*) bad_sheet "the path $s_p" ;;
	esac
	s_files="$s_files$s_m $s_h $s_p$nl"
}
