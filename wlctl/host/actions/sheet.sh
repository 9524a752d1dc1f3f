# shellcheck shell=sh
# The launch sheet: read, checked against what this node can honour, and made into a generation.
ref_open='${'
kept_by_shells() { # NAME: what some shell gives to no program, or not as it was set
	case $1 in
	_ | SHLVL | OPTIND | UID | EUID | PPID | PIPESTATUS | SHELLOPTS | BASHOPTS | BASH_ARGC | BASH_ARGV | \
		BASH_LINENO | BASH_SOURCE | BASH_VERSINFO) return 0 ;;
	esac
	return 1
}
never_allowed() { # NAME: what decides which code runs, or what is given anyway
	kept_by_shells "$1" && return 0
	case $1 in
	LD_* | DYLD_* | GLIBC_* | MALLOC_* | PATH | IFS | ENV | BASH_ENV | PS4 | \
		CDPATH | PYTHON* | PERL* | RUBY* | NODE_* | JAVA_TOOL_OPTIONS | GCONV_PATH | LOCPATH | \
		NLSPATH | HOSTALIASES | RES_OPTIONS | TMPDIR | HOME | WLCTL_* | PORT | PORT_*) return 0 ;;
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

verify_files() { # every file of the sheet is in the store and is what its name says
	v_list=
	IFS=$nl
	for v_l in $s_files; do
		v_h=${v_l#* }
		v_h=${v_h%% *}
		if [ ! -f "$S/store/$v_h" ]; then
			unset IFS
			problem="fetch $v_h is not in the node's store"
			return 1
		fi
		v_list="$v_list$v_h  $v_h$nl"
	done
	unset IFS
	[ -n "$v_list" ] || return 0
	# shellcheck disable=SC2030,SC2031 # a directory for one program
	if printf '%s' "$v_list" | (cd "$S/store" && sha256sum -c >/dev/null 2>&1 7>&-); then return 0; fi
	for v_h in $v_list; do
		v_sum=$(sha256sum <"$S/store/$v_h" 7>&-) || continue
		[ "${v_sum%% *}" = "$v_h" ] || rm -f "$S/store/$v_h" 7>&-
	done
	problem='verify a file in the store was changed; it was thrown away'
	return 1
}
stage_files() { # DIR: the package's files as its process sees them: links that it cannot write
	(
		umask 022
		mkdir -p "$1" || exit 1
		IFS=$nl
		for v_l in $s_files; do
			unset IFS
			v_m=${v_l%% *}
			v_h=${v_l#* }
			dec "${v_h#* }" || exit 1
			v_h=${v_h%% *}
			case $d in */*) [ -d "$1/${d%/*}" ] || mkdir -p "$1/${d%/*}" || exit 1 ;; esac
			# one inode, one mode: a file that one package runs is executable for all
			if [ "$v_m" = 0555 ] && [ ! -x "$S/store/$v_h" ]; then chmod 0555 "$S/store/$v_h" || exit 1; fi
			ln "$S/store/$v_h" "$1/$d" 2>/dev/null && continue
			# a copy would go into the file of the store that is linked there, and that others may run
			[ ! -e "$1/$d" ] || exit 2
			cp -p "$S/store/$v_h" "$1/$d" || exit 1
		done
	) 2>/dev/null 7>&-
	case $? in
	0) return 0 ;;
	2) bad_sheet 'a path that stands there twice' ;;
	*) problem="resources the package's files cannot be laid out on $S" ;;
	esac
	return 1
}

lookup() { # NAME -> found: the value, encoded, that was set last
	case $vars in *"$nl$1="*) ;; *) return 1 ;; esac
	found=${vars##*"$nl$1="}
	found=${found%%"$nl"*}
}
substitute() { # VALUE -> v: every reference replaced; both stay encoded
	v=
	b_r=$1
	while :; do
		case $b_r in *"$ref_open"*'}'*) ;; *) break ;; esac
		v=$v${b_r%%"$ref_open"*}
		b_r=${b_r#*"$ref_open"}
		lookup "${b_r%%\}*}" || {
			problem="verify the launch sheet refers to ${b_r%%\}*}, which has no value"
			return 1
		}
		v=$v$found
		b_r=${b_r#*\}}
	done
	v=$v$b_r
	case $v in *[\$\{\}]*) bad_sheet 'a dollar that refers to nothing' ;; esac
	[ -z "$problem" ]
}
given() { # NAME TEXT: a variable that wlctl gives
	enc "$2"
	vars="$vars$1=$e$nl"
}
check_order() { # what the order adds must be allowed by the sheet
	case $s_args in none)
		if [ -n "$o_args" ]; then
			problem='invalid_request the package takes no further arguments'
			return 1
		fi
		;;
	esac
	IFS=$nl
	for c_kv in $o_env; do
		unset IFS
		c_n=${c_kv%%=*}
		is_variable "$c_n" && ! never_allowed "$c_n" && is_allowed "$c_n" || {
			problem="invalid_request the package does not allow the variable $c_n to be set"
			return 1
		}
	done
	unset IFS
}
is_allowed() {
	IFS=$nl
	for c_p in $s_allow; do
		case $c_p in
		*'*') case $1 in "${c_p%\*}"*) c_y=yes ;; *) c_y=no ;; esac ;;
		*) [ "$1" = "$c_p" ] && c_y=yes || c_y=no ;;
		esac
		if [ "$c_y" = yes ]; then
			unset IFS
			return 0
		fi
	done
	unset IFS
	return 1
}
fill_in() { # -> launch_words: what the leader is started with, from `vars` and the sheet and the order
	launch_words=
	IFS=$nl
	for b_kv in $s_env; do
		unset IFS
		substitute "${b_kv#*=}" || return 1
		vars="$vars${b_kv%%=*}=$v$nl"
	done
	unset IFS
	vars="$vars$o_env"
	IFS=$nl
	for b_kv in $vars; do launch_words="${launch_words}env $b_kv$nl"; done
	unset IFS
	b_first=yes
	b_rest=$s_command
	while [ -n "$b_rest" ]; do # not split into words: an argument may be empty
		substitute "${b_rest%%"$nl"*}" || return 1
		b_rest=${b_rest#*"$nl"}
		if [ "$b_first" = yes ]; then
			case $v in '' | *=*)
				bad_sheet 'a command that is empty or has an = in it'
				return 1
				;;
			esac
			b_first=no
		fi
		launch_words="${launch_words}arg $v$nl"
	done
	launch_words="$launch_words$o_args"
}
