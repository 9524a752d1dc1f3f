# shellcheck shell=sh
# revoke: what may never be started here again, by the list of one installation. Entries are only
# added: a list that lacks some of them takes none away.
installation='' epoch='' serial='' hash='' entries=
param() {
	case $1 in
	installation) installation=$2 ;;
	epoch) epoch=$2 ;;
	serial) serial=$2 ;;
	hash) hash=$2 ;;
	package | artifact)
		is_id "$2" || refuse invalid_request "a $1 is not an id"
		entries="$entries$1 $2$nl"
		;;
	*) unknown_param "$1" ;;
	esac
}
request
is_id "$installation" || refuse invalid_request 'installation is not an id'
is_number "$epoch" && is_number "$serial" || refuse invalid_request 'epoch and serial are numbers'
is_sha256 "$hash" || refuse invalid_request 'hash is not a sha256'
I=$S/$installation
may_spend=yes
state_dir || refuse resources "$S cannot be written"
get "$S/node_id" || refuse verify "$S/node_id is not there, or damaged"
answer node_id "$g"
lock 10
made_dir "$I" || refuse resources "$S cannot be written"
old=
load_revoked "$I/revoked"
case $? in
0)
	ahead=$((serial - v_serial))
	if [ "$epoch" -lt "$v_epoch" ] || { [ "$epoch" = "$v_epoch" ] && [ "$ahead" -lt 0 ]; }; then
		refuse superseded "the list here is $v_epoch.$v_serial"
	fi
	if [ "$epoch" = "$v_epoch" ] && [ "$ahead" -gt 10000 ]; then
		refuse invalid_request "$ahead entries at once are more than a list grows by"
	fi
	old=$v_entries
	;;
2) # damaged: nothing starts here until a whole list comes, and then what can be read of it stays
	old=$(sed -n '/^package [a-z0-9][a-z0-9._-]*$/p; /^artifact [a-z0-9][a-z0-9._-]*$/p' "$I/revoked" 2>/dev/null 7>&-)
	;;
esac
all=$(printf '%s\n' "$old" "$entries" | sed '/^$/d' 7>&- | sort -u 7>&-)
put_text "$I/revoked" "$epoch $serial $hash${all:+$nl$all}" || refuse resources "$S cannot be written"
finish ok
