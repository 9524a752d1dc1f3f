# shellcheck shell=sh
# checkpoint, fleet: what this node keeps for its ledger, as a witness of it. Only added to: the
# last 64 checkpoints and the first of each day, and beside them who is in the fleet.
installation='' epoch='' seq='' hash='' note='' fleet=- members=
param() {
	case $1 in
	installation) installation=$2 ;;
	epoch) epoch=$2 ;;
	seq) seq=$2 ;;
	hash) hash=$2 ;;
	note) note=$raw ;;
	fleet) fleet=$raw ;;
	member) members="${members}member $raw$nl" ;;
	*) unknown_param "$1" ;;
	esac
}
newest() { # -> n_epoch, n_seq, n_hash, n_lines of the last 64; 1 when there are none
	n_lines=
	get_text "$I/checkpoints"
	case $? in
	1) return 1 ;;
	2) refuse verify "$I/checkpoints is damaged" ;;
	esac
	n_lines=$text
	n_l=${text##*"$nl"}
	field 1 "$n_l"
	n_epoch=$f
	field 2 "$n_l"
	n_seq=$f
	field 3 "$n_l"
	n_hash=$f
	is_number "$n_epoch" && is_number "$n_seq" || refuse verify "$I/checkpoints is damaged"
}
only_forward() { # 1 when this very checkpoint is here
	newest || return 0
	if [ "$epoch" -lt "$n_epoch" ] || { [ "$epoch" = "$n_epoch" ] && [ "$seq" -lt "$n_seq" ]; }; then
		refuse superseded "the newest checkpoint here is $n_epoch.$n_seq"
	fi
	[ "$epoch.$seq" = "$n_epoch.$n_seq" ] || return 0
	[ "$hash" = "$n_hash" ] || refuse verify "event $epoch.$seq has the hash $n_hash here"
	return 1
}
once_a_day() { # LINE: appended, and synced; a line that a power cut tore has no mark at its end
	c_day=$(($(date +%s 7>&-) / 86400))
	c_last=$(tail -n 1 "$I/checkpoints.daily" 2>/dev/null 7>&-)
	[ "${c_last%% *}" != "$c_day" ] || return 0
	{ printf '%s\n' "$c_day $1 ." >>"$I/checkpoints.daily"; } 2>/dev/null &&
		dd if=/dev/null of="$I/checkpoints.daily" conv=notrunc,fsync 2>/dev/null 7>&-
}

request
is_id "$installation" || refuse invalid_request 'installation is not an id'
is_number "$epoch" && is_number "$seq" || refuse invalid_request 'epoch and seq are numbers'
is_sha256 "$hash" || refuse invalid_request 'hash is not a sha256'
[ -n "$note" ] || refuse invalid_request 'there is no note'
I=$S/$installation
state_dir || refuse resources "$S cannot be written"
get "$S/node_id" || refuse verify "$S/node_id is not there, or damaged"
answer node_id "$g"
lock 10
made_dir "$I" || refuse resources "$S cannot be written"
if only_forward; then
	n_count=0
	IFS=$nl
	for n_l in $n_lines; do n_count=$((n_count + 1)); done
	unset IFS
	if [ "$n_count" -ge 64 ]; then n_lines=${n_lines#*"$nl"}; fi
	once_a_day "$epoch $seq $hash $note" &&
		put_text "$I/checkpoints" "${n_lines:+$n_lines$nl}$epoch $seq $hash $note" ||
		refuse resources "$S cannot be written"
fi
if [ -n "$members" ]; then
	put_text "$I/fleet" "$epoch $seq $fleet$nl${members%"$nl"}" || refuse resources "$S cannot be written"
fi
finish ok
