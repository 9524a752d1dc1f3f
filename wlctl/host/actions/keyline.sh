# shellcheck shell=sh
# The line of wlctl's key in the files where sshd looks for the login's keys.
# shellcheck disable=SC2154 # what the other parts read
account() { # -> home, uid of `login`
	k_l=$(getent passwd "$login" 2>/dev/null || grep "^$login:" /etc/passwd)
	[ -n "$k_l" ] || refuse no_user "there is no login $login"
	IFS=:
	# shellcheck disable=SC2086 # its columns
	set -- $k_l
	unset IFS
	uid=$3 home=$6
}
expand() { # PATTERN -> e: with %h, %u, %U and %% replaced, below the home where it is relative
	k_in=$1 e=
	while :; do
		case $k_in in *%*) ;; *) break ;; esac
		e=$e${k_in%%\%*}
		k_in=${k_in#*%}
		case $k_in in
		h*) e=$e$home ;;
		u*) e=$e$login ;;
		U*) e=$e$uid ;;
		*) e=$e% ;;
		esac
		k_in=${k_in#?}
	done
	e=$e$k_in
	case $e in /*) ;; *) e=$home/$e ;; esac
}
key_files() { # -> k_files, a line each: those that are there
	setting authorizedkeysfile
	k_files=
	for k_f in $v; do
		[ "$k_f" != none ] || continue
		expand "$k_f"
		k_f=$(readlink -f "$e") && [ -f "$k_f" ] || continue
		k_files="$k_files$k_f$nl"
	done
}
enforced_line() { # LINE -> k_new: as it should be; where it may come from and until when is kept
	k_opts=${1%%"$key"*} k_more=
	for k_o in from expiry-time; do
		case $k_opts in *"$k_o=\""*)
			k_v=${k_opts#*"$k_o=\""}
			k_more="$k_more$k_o=\"${k_v%%\"*}\","
			;;
		esac
	done
	k_new="${k_more}restrict,command=\"$start\" $key${1#*"$key"}"
}
is_ours() { # LINE: it is of the key
	case $1 in '#'*) return 1 ;; esac
	case "$1 " in *"$key "*) return 0 ;; esac
	return 1
}
look_for_key() { # -> k_shut, k_open: files with such lines, a line each; k_line: as one of them should be
	k_shut='' k_open='' k_line='' k_was=
	IFS=$nl
	for k_f in $k_files; do
		unset IFS
		k_is=none
		while IFS= read -r k_l || [ -n "$k_l" ]; do
			is_ours "$k_l" || continue
			enforced_line "$k_l"
			k_line=$k_new
			if [ "$k_l" != "$k_new" ]; then
				k_is=open
				remember_line
			elif [ "$k_is" = none ]; then
				k_is=shut
			fi
		done <"$k_f"
		case $k_is in
		open) k_open="$k_open$k_f$nl" ;;
		shut) k_shut="$k_shut$k_f$nl" ;;
		esac
	done
	unset IFS
}
remember_line() { # what it was before comes back when the node is not enforced any more
	case $k_l in *"$D/doorkeeper"*) return 0 ;; esac
	enc "$k_f"
	k_was="$k_was$e "
	enc "$k_l"
	k_was="$k_was$e$nl"
}
opened_line() { # LINE -> k_new: as it was before
	k_new=$1
	case $1 in *"$D/doorkeeper"*) ;; *) return 0 ;; esac
	k_new=$key${1#*"$key"}
	enc "$k_f"
	case $nl$k_was in *"$nl$e "*)
		k_v=${k_was##*"$e "}
		dec "${k_v%%"$nl"*}" && k_new=$d
		;;
	esac
}
rewrite() { # enforced_line|opened_line FILES: 1 when one of them cannot be written
	IFS=$nl
	for k_f in $2; do
		unset IFS
		(rewrite_one "$1") || return 1
	done
	unset IFS
}
rewrite_one() { # HOW, of k_f: its directory is the login's, who may put a link in the place of anything there
	cd "${k_f%/*}" 2>/dev/null && [ "$(pwd -P)" = "${k_f%/*}" ] || return 1
	k_b=./${k_f##*/} k_text='' k_same=yes
	while IFS= read -r k_l || [ -n "$k_l" ]; do
		if is_ours "$k_l"; then
			"$1" "$k_l"
			[ "$k_l" = "$k_new" ] || k_same=no
			k_l=$k_new
		fi
		k_text="$k_text$k_l$nl"
	done <"$k_b"
	[ "$k_same" = no ] || return 0
	k_mode=$(stat -c %a "$k_b") && k_own=$(stat -c %u:%g "$k_b") || return 1
	# one of the same owner and mode takes the place of the file, whole or not at all
	{
		(umask "$(printf %o "$((0666 & ~0$k_mode))")" && set -C && printf '%s' "$k_text" >"$k_b.$nonce") &&
			chown -h "$k_own" "$k_b.$nonce" && sync "$k_b.$nonce" && mv -T "$k_b.$nonce" "$k_b"
	} 2>/dev/null && return 0
	rm -f "$k_b.$nonce"
	return 1
}
