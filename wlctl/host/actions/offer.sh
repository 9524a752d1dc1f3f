# shellcheck shell=sh
# offer: which of these files the node's store lacks; who answers, and its time, for what follows.
asked=
param() {
	case $1 in
	sha256)
		is_sha256 "$2" || refuse invalid_request 'a hash is not a sha256'
		asked="$asked $2"
		;;
	*) unknown_param "$1" ;;
	esac
}
request
state_dir || refuse resources "$S cannot be written"
get "$S/node_id" || refuse verify "$S/node_id is not there, or damaged"
uptime
answer node_id "$g"
answer uptime_ms "$t"
for o_h in $asked; do
	# what is counted on from now on is not collected for a while
	touch -c "$S/store/$o_h" 2>/dev/null
	[ -f "$S/store/$o_h" ] || answer missing "$o_h"
done
finish ok
