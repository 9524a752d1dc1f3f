# shellcheck shell=sh
# Secrets: each is a file on a tmpfs that the instance alone can read, until its end is asked for.
# shellcheck disable=SC2034,SC2154 # the sheet's words, the order's values, and what the other parts read
place_secrets() { # after run_root, choose_user and launch_env: 0, or 1 and `problem`
	[ -n "$s_secrets" ] || return 0
	if [ "$way_in$containment" != isolatedisolated ]; then
		problem="secret_unavailable a copy that is contained by $containment cannot keep a secret"
		return 1
	fi
	made_dir "$run/$short" && mkdir -p "$run_dir/secrets" 2>/dev/null 7>&- &&
		[ "$(stat -f -c %T "$run_dir/secrets" 2>/dev/null 7>&-)" = tmpfs ] || {
		problem="secret_unavailable $run is no tmpfs that can be written"
		return 1
	}
	for k_n in $s_secrets; do
		case $nl$o_secrets in *"$nl$k_n="*) ;; *)
			problem="secret_unavailable $k_n was not sent"
			return 1
			;;
		esac
		k_v=$nl$o_secrets
		k_v=${k_v##*"$nl$k_n="}
		# shellcheck disable=SC2015 # what is said fits both
		dec "${k_v%%"$nl"*}" && place_secret "$run_dir/secrets/$k_n" || {
			problem="secret_unavailable $k_n cannot be written to $run_dir/secrets"
			return 1
		}
		given "${k_n}_FILE" "$run_dir/secrets/$k_n"
	done
	chown "$uid:$gid" "$run_dir/secrets" 2>/dev/null 7>&- && chmod 0500 "$run_dir/secrets" 7>&- && return 0
	problem="secret_unavailable $run_dir/secrets cannot be given to the instance"
	return 1
}
place_secret() { # FILE, what is in d; printf is of the shell itself, so no argv ever has it
	(umask 0277 && printf '%s' "$d" >"$1") 2>/dev/null 7>&- && chown "$uid:$gid" "$1" 2>/dev/null 7>&-
}
