# shellcheck shell=sh
# What may not be started here: the revocation lists of all installations.
load_revoked() { # FILE -> v_epoch, v_serial, v_hash, v_entries: 0 whole, 1 there is none, 2 damaged
	v_epoch='' v_serial='' v_hash='' v_entries=
	[ -e "$1" ] || return 1
	text=$(cat "$1" 2>/dev/null 7>&-)
	case $text in *"${nl}end") ;; *) return 2 ;; esac
	text=${text%"${nl}end"}
	v_line=${text%%"$nl"*}
	field 1 "$v_line"
	v_epoch=$f
	field 2 "$v_line"
	v_serial=$f
	field 3 "$v_line"
	v_hash=$f
	is_number "$v_epoch" && is_number "$v_serial" && is_sha256 "$v_hash" || return 2
	[ "$text" = "$v_line" ] || v_entries=${text#*"$nl"}
}
