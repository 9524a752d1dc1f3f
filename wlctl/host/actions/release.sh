# shellcheck shell=sh
# What an instance held of the node: given back once nothing of it can run.
# shellcheck disable=SC2154 # the action's parameters
release_lines() { # TABLE: drop the instance's lines
	get_text "$1" || return 0
	e_keep=
	IFS=$nl
	for e_l in $text; do
		case "$e_l " in *" $installation $iid "*) ;; *) e_keep="${e_keep:+$e_keep$nl}$e_l" ;; esac
	done
	unset IFS
	[ "$e_keep" = "$text" ] || put_text "$1" "$e_keep"
}
remove_instance() { # under the lock, once nothing is held for it: what can be removed by nobody goes aside
	remove "${D:?}" && return 0
	made_dir "$I/gone" && mv -T "$D" "$I/gone/$iid.$nonce" 2>/dev/null 7>&-
}
release_instance() { # under the lock; its uid stays taken while data of it is kept
	release_lines "$S/ports"
	[ -e "$kept" ] || release_lines "$S/uids"
	if load_spec; then
		run_base
		unname_run
		remove "${run:?}/${short:?}"
	fi
	# where it was last launched, and where the node would launch it now
	for e_d in "${r_cg:-}" "${cg:+$cg/$installation/$iid}"; do
		[ -z "$e_d" ] || rmdir "$e_d/ctl" "$e_d/limit" "$e_d" "${e_d%/*}" 2>/dev/null 7>&-
	done
	return 0
}
