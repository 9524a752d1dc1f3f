# shellcheck shell=sh
# Where a run is found by its name: a link that stays as long as its instance is there, and a directory
# that the group `wlctl` may look into, if the node has one.
# shellcheck disable=SC2154 # the instance's name and directories
name_run() { # under the lock: first come, first served, also where the other belongs to another ledger
	made_dir "$run/by-name" && share "$run/by-name" 0751 && share "$run_dir" 2750 || return 1
	holder_of_name
	if [ -n "$n_by" ] && [ -d "$run/$n_by" ]; then return 0; fi
	# no name begins with a dot
	ln -sfn "../$short/current" "$run/by-name/.$name" 2>/dev/null 7>&- &&
		mv -T "$run/by-name/.$name" "$run/by-name/$name" 2>/dev/null 7>&-
}
unname_run() { # under the lock, after load_spec and run_base
	holder_of_name
	[ "$n_by" != "$short" ] || rm -f "$run/by-name/$name" 2>/dev/null 7>&-
}
holder_of_name() { # -> n_by: the short name of the instance whose link it is, or empty
	n_by=
	[ -L "$run/by-name/$name" ] || return 0
	n_by=$(readlink "$run/by-name/$name" 2>/dev/null 7>&-)
	n_by=${n_by#../}
	n_by=${n_by%/current}
}
share() { # DIR MODE: only root can give what is its own to a group that it is not in
	[ "$me" = 0 ] || return 0
	while IFS=: read -r n_g _ n_i _; do
		[ "$n_g" = wlctl ] || continue
		chgrp "$n_i" "$1" 2>/dev/null 7>&- && chmod "$2" "$1" 2>/dev/null 7>&-
		return
	done 2>/dev/null </etc/group
}
