# shellcheck shell=sh
# State files: written whole, synced, renamed; a whole line ends in ` .`, and what does not is torn.
put() { # FILE WORD...: one line; the caller holds the lock, or FILE is its own
	p_f=$1
	shift
	printf '%s .\n' "$*" | dd of="$p_f.n" conv=fsync 2>/dev/null 7>&- && mv -T "$p_f.n" "$p_f" 7>&-
}
get() { # FILE -> g: 0 whole, 1 there is none, 2 torn
	g=
	[ -e "$1" ] || return 1
	{ IFS= read -r g <"$1"; } 2>/dev/null || return 2
	case $g in
	*' .') g=${g% .} ;;
	*)
		g=
		return 2
		;;
	esac
}
field() { # N LINE -> f: a word of a line
	f_n=$1
	# shellcheck disable=SC2086 # words
	set -- $2
	f=
	[ "$#" -lt "$f_n" ] || {
		shift "$((f_n - 1))"
		f=$1
	}
}
state_dir() { # make it, once
	[ -d "$S" ] || mkdir -p "$S" 2>/dev/null || return 1
	[ -e "$S/format" ] || { chmod 711 "$S" && put "$S/format" 'wlctl-state 1'; } || return 1
	[ -d "$S/store" ] || mkdir "$S/store" 2>/dev/null || [ -d "$S/store" ]
	chmod 711 "$S/store"
}
lock() { # SECONDS: over all installations; its descriptor is closed in every program that is run
	true 2>/dev/null >>"$S/lock" || refuse resources "$S cannot be written"
	exec 7>>"$S/lock"
	flock -w "$1" 7 || refuse busy 'another action holds the node'
}
unlock() { exec 7>&-; }
