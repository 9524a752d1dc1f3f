# shellcheck shell=sh
# witness: the checkpoints that this node keeps for its ledger, oldest first, and the fleet beside
# them. Changes nothing.
installation=
param() {
	case $1 in
	installation) installation=$2 ;;
	*) unknown_param "$1" ;;
	esac
}
request
is_id "$installation" || refuse invalid_request 'installation is not an id'
I=$S/$installation
get "$S/node_id" || refuse verify "$S/node_id is not there, or damaged"
answer node_id "$g"
if [ -e "$I/checkpoints.daily" ]; then
	# a line that a power cut tore is none: it was never answered for
	w_lines=$(sed -n 's/^[0-9]* \([0-9]* [0-9]* [0-9a-f]* [^ ]*\) \.$/checkpoint \1/p' "$I/checkpoints.daily")
	[ -z "$w_lines" ] || out="$out$w_lines$nl"
fi
get_text "$I/checkpoints"
case $? in
0)
	IFS=$nl
	for w_l in $text; do out="${out}checkpoint $w_l$nl"; done
	unset IFS
	;;
2) refuse verify "$I/checkpoints is damaged" ;;
esac
get_text "$I/fleet"
case $? in
0)
	answer fleet "${text%%"$nl"*}"
	[ "${text#*"$nl"}" = "$text" ] || out="$out${text#*"$nl"}$nl"
	;;
2) refuse verify "$I/fleet is damaged" ;;
esac
finish ok
