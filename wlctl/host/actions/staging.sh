# shellcheck shell=sh
# What a launch sheet lists and says, laid out and filled in for one generation.
# shellcheck disable=SC2154 # the sheet's words, and what the other parts read
ref_open='${'
never_allowed() { # NAME: what decides which code runs, or what is given anyway
	kept_by_shells "$1" && return 0
	case $1 in
	LD_* | DYLD_* | GLIBC_* | MALLOC_* | PATH | IFS | ENV | BASH_ENV | PS4 | \
		CDPATH | PYTHON* | PERL* | RUBY* | NODE_* | JAVA_TOOL_OPTIONS | GCONV_PATH | LOCPATH | \
		NLSPATH | HOSTALIASES | RES_OPTIONS | TMPDIR | HOME | WLCTL_* | PORT | PORT_*) return 0 ;;
	esac
	return 1
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
