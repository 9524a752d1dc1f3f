# shellcheck shell=sh
# The lease of a generation: one line on a tmpfs, so that reading it cannot hang on a dead disk.
# shellcheck disable=SC2154 # the action's parameters
load_lease() { # FILE -> n_gen, n_boot, n_until (hundredths of a second): 1 when it is none
	n_gen='' n_boot='' n_until='' n_mark=
	{ read -r n_gen n_boot n_until n_mark <"$1"; } 2>/dev/null
	[ "$n_mark" = . ] && is_number "$n_until"
}
put_lease() { # FILE: renamed into place, never written over
	made_here "$1.n" "$gen $boot $((until / 10)) .$nl" && mv -T "$1.n" "$1" 2>/dev/null 7>&-
}
