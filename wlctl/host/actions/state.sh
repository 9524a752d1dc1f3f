# shellcheck shell=sh
# State files: written whole, synced, renamed; a whole line ends in ` .`, and what does not is torn.
may_spend=no # whether what ends things may give back the reserve, when the disk is full
put() { # FILE WORD...: one line
	p_f=$1
	shift
	put_bytes "$p_f" "$* .$nl"
}
put_text() { # FILE TEXT: lines; the last one says that it is whole
	put_bytes "$1" "$2${nl}end$nl"
}
put_bytes() { # the caller holds the lock, or FILE is its own
	put_once "$1" "$2" || { spend && put_once "$1" "$2"; }
}
spend() { # give back what was kept for a full disk: blocks, and as many files as a tombstone needs
	[ "$may_spend" = yes ] || return 1
	d_any=no
	for d_n in reserve reserve.1 reserve.2 reserve.3; do
		[ ! -e "$S/$d_n" ] || d_any=yes
	done
	[ "$d_any" = yes ] && rm -f "$S/reserve" "$S/reserve.1" "$S/reserve.2" "$S/reserve.3" 7>&-
}
put_once() {
	made_here "$1.n" "$2" && dd if=/dev/null of="$1.n" conv=notrunc,fsync 2>/dev/null 7>&- &&
		mv -T "$1.n" "$1" 7>&-
}
made_here() { # FILE TEXT: what is not synced means something under this boot only
	{ printf '%s' "$2" >"$1"; } 2>/dev/null
}
get_text() { # FILE -> text: as get, without the last line; a table can be long
	text=
	[ -e "$1" ] || return 1
	case $1 in
	*/uids | */ports | */fleet | */checkpoints) text=$(cat "$1" 2>/dev/null 7>&-) || return 2 ;;
	*)
		{
			while IFS= read -r t_l; do text="${text:+$text$nl}$t_l"; done <"$1"
		} 2>/dev/null
		;;
	esac
	case $text in
	*"${nl}end") text=${text%"${nl}end"} ;;
	*)
		text=
		return 2
		;;
	esac
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
newest_checkpoint() { # say which event of its ledger's chain this node keeps as the newest
	get_text "$I/checkpoints" || return 0
	t_l=${text##*"$nl"}
	answer checkpoint "${t_l% *}"
}
field() { # N LINE -> f: a word of a line
	f_n=$1
	# shellcheck disable=SC2086 # words
	set -- $2
	f=
	if [ "$#" -ge "$f_n" ]; then
		shift "$((f_n - 1))"
		f=$1
	fi
}
state_dir() { # make it, once
	made_dir "$S" || return 1
	# of several first contacts at once, one makes it and the others find it made
	[ -e "$S/format" ] || put "$S/format" 'wlctl-state 1' || [ -e "$S/format" ] || return 1
	made_dir "$S/store" || return 1
	if [ ! -e "$S/reserve" ]; then
		for d_n in 1 2 3; do made_here "$S/reserve.$d_n" ''; done
		dd if=/dev/zero of="$S/reserve" bs=65536 count=1 conv=fsync 2>/dev/null || :
	fi
}
remove() { # PATH...: what a run left as its login may be closed to that very login
	rm -rf "$@" 2>/dev/null 7>&- && return 0
	# directories alone: a file may be a link into the store
	[ "$me" = 0 ] || find "$@" -type d -exec chmod u+rwx {} \; 2>/dev/null 7>&-
	rm -rf "$@" 2>/dev/null 7>&-
}
made_dir() { # DIR: every user may pass through it, and only its owner may look
	[ -d "$1" ] || one_dir "$1" || { spend && one_dir "$1"; }
}
one_dir() { (umask 066 && exec mkdir -p "$1" 2>/dev/null 7>&-); }
lock() { # SECONDS: over all installations; its descriptor is closed in every program that is run
	true 2>/dev/null >>"$S/lock" || refuse resources "$S cannot be written"
	exec 7>>"$S/lock"
	flock -w "$1" 7 || refuse busy 'another action holds the node'
}
relock() { # after something was begun: giving up now is no refusal
	exec 7>>"$S/lock"
	flock -w 30 7 || unclean busy 'another action holds the node'
}
unlock() { exec 7>&-; }
