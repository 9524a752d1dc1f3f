# shellcheck shell=sh
# What an instance is made of, kept with it: the request that placed it, and the short name of its
# run directory.
# shellcheck disable=SC2154 # the action's parameters
write_spec() {
	short=$(printf '%s' "$installation/$iid" | sha256sum 7>&-)
	short=${short%"${short#????????}"}
	enc "$node"
	s_text="name $name
node $e
decision $decision
package $package
sheet $sheet
short $short"
	IFS=$nl
	for s_kv in $o_env; do s_text="$s_text${nl}env $s_kv"; done
	unset IFS
	for s_kv in $o_signatures; do s_text="$s_text${nl}signature $s_kv"; done
	[ -z "$o_args" ] || s_text="$s_text$nl${o_args%"$nl"}"
	put_text "$D/spec" "$s_text"
}
load_spec() { # -> name, node, placed, sheet, short, o_*: 0 whole, 1 there is none, 2 torn
	name='' node='' placed='' sheet='' short='' o_env='' o_args='' o_signatures=''
	get_text "$D/spec" || return "$?"
	IFS=$nl
	for p_l in $text; do
		unset IFS
		p_v=${p_l#* }
		case ${p_l%% *} in
		name) name=$p_v ;;
		node) dec "$p_v" && node=$d ;;
		package) placed=$p_v ;;
		sheet) sheet=$p_v ;;
		short) short=$p_v ;;
		signature) o_signatures="$o_signatures$p_v " ;;
		env) o_env="$o_env$p_v$nl" ;;
		arg) o_args="${o_args}arg $p_v$nl" ;;
		esac
	done
	unset IFS
	is_sha256 "$sheet" && is_id "$short" && is_id "$name" && [ "${#short}" = 8 ] || return 2
}
run_base() { # -> run: short, because a socket's path has room for 107 bytes
	if [ "$me" = 0 ]; then
		run=/run/wlctl
	elif [ -n "${XDG_RUNTIME_DIR:-}" ] && [ -d "$XDG_RUNTIME_DIR" ]; then
		run=$XDG_RUNTIME_DIR/wlctl
	else
		run=$S/run
	fi
}
