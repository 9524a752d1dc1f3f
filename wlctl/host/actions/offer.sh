# shellcheck shell=sh
# offer: which of these files the node's store lacks; who answers, its time, and which event of the
# installation's chain it keeps as the newest, for what follows.
installation='' asked=
param() {
	case $1 in
	installation) installation=$2 ;;
	sha256)
		is_sha256 "$2" || refuse invalid_request 'a hash is not a sha256'
		asked="$asked $2"
		;;
	*) unknown_param "$1" ;;
	esac
}
request
is_id "$installation" || refuse invalid_request 'installation is not an id'
I=$S/$installation
state_dir || refuse resources "$S cannot be written"
get "$S/node_id" || refuse verify "$S/node_id is not there, or damaged"
uptime
answer node_id "$g"
answer uptime_ms "$t"
newest_checkpoint
for o_h in $asked; do
	# what is counted on from now on is not collected for a while
	touch -c "$S/store/$o_h" 2>/dev/null
	[ -f "$S/store/$o_h" ] || answer missing "$o_h"
done
finish ok
