# shellcheck shell=sh
# logs: the end of one generation's output, bounded. Changes nothing.
installation='' iid='' number=1 gen='' lines='' bytes=''
param() {
	case $1 in
	installation) installation=$2 ;;
	instance) iid=$2 ;;
	generation) gen=$2 ;;
	lines) lines=$2 ;;
	bytes) bytes=$2 ;;
	*) unknown_param "$1" ;;
	esac
}
request
instance_paths
is_number "$gen" || refuse invalid_request 'generation is not a number'
is_number "$lines" && is_number "$bytes" || refuse invalid_request 'lines and bytes are numbers'
log=$D/g$gen/out
if [ -d "$D" ]; then
	if [ "$gen" = 0 ]; then
		get "$D/current" || refuse unknown_instance "$iid was never started here"
		gen=$g
	fi
	log=$D/g$gen/out
elif [ -d "$I/logs/$iid" ]; then # it was unloaded, and its output is kept for a while
	if [ "$gen" = 0 ]; then
		gen=$(find "$I/logs/$iid" -type f -name 'g[1-9]*' | sed 's/.*\/g//' | sort -n | tail -n 1)
	fi
	log=$I/logs/$iid/g$gen
else
	refuse unknown_instance "$iid is not on this node"
fi
[ -f "$log" ] || refuse unknown_instance "generation $gen of $iid has no output here"
answer log "$gen" "size=$(($(wc -c <"$log")))"
answer text "$(tail -n "$lines" "$log" | tail -c "$bytes" | od -An -v -tx1 | tr -d ' \n' | sed 's/../%&/g')"
finish ok
