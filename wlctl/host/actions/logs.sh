# shellcheck shell=sh
# logs: the end of one generation's output, bounded. Changes nothing.
installation='' iid='' number=1 gen='' lines='' bytes='' after=''
param() {
	case $1 in
	installation) installation=$2 ;;
	instance) iid=$2 ;;
	generation) gen=$2 ;;
	lines) lines=$2 ;;
	bytes) bytes=$2 ;;
	after) after=$2 ;;
	*) unknown_param "$1" ;;
	esac
}
part() { # FROM BYTES: what stands there; a run can make its output as long as no disk is, with no line in it
	dd if="$log" bs=65536 iflag=skip_bytes,count_bytes,fullblock skip="$1" count="$2" 2>/dev/null
}
hex() { od -An -v -tx1 | tr -d ' \n' | sed 's/../%&/g'; }
request
instance_paths
is_number "$gen" || refuse invalid_request 'generation is not a number'
is_number "$lines" && is_number "$bytes" || refuse invalid_request 'lines and bytes are numbers'
[ "$bytes" -le 4194304 ] || refuse invalid_request 'no more than 4 MiB can be asked for'
[ -z "$after" ] || is_number "$after" || refuse invalid_request 'after is not a number'
log=$D/g$gen/out
if [ -d "$D" ]; then
	if [ "$gen" = 0 ]; then
		get "$D/current" || refuse unknown_instance "$iid was never started here"
		gen=$g
	fi
	log=$D/g$gen/out
elif [ -d "$I/logs/$iid" ]; then # it was unloaded, and its output is kept for a while
	if [ "$gen" = 0 ]; then
		gen=$(find "$I/logs/$iid" -type f -name 'g[1-9]*' ! -name '*.1' | sed 's/.*\/g//' | sort -n | tail -n 1)
	fi
	log=$I/logs/$iid/g$gen
else
	refuse unknown_instance "$iid is not on this node"
fi
[ -f "$log" ] || refuse unknown_instance "generation $gen of $iid has no output here"
over=yes # looked at first, so that whatever was printed is there to be read then
if [ -e "$D/g$gen/open" ]; then
	k=
	{ read -r k _ <"$D/g$gen/exit"; } 2>/dev/null
	[ "$k" = exit ] || over=no
fi
size=$(stat -c %s "$log") || refuse unknown_instance "generation $gen of $iid has no output here"
if [ -z "$after" ]; then
	from=0
	[ "$size" -le "$bytes" ] || from=$((size - bytes))
	e=$({
		[ "$from" != 0 ] || [ ! -f "$log.1" ] || tail -c "$bytes" "$log.1" # what was before, when it was bounded
		part "$from" "$((size - from))"
	} | tail -c "$bytes" | tail -n "$lines" | hex)
	to=$size
else
	[ "$after" -le "$size" ] || after=0 # it was bounded meanwhile
	e=$(part "$after" "$bytes" | hex)
	# whole lines only, as long as more may come and there is one
	case $over$e in no*%0a*) e=${e%'%0a'*}%0a ;; no*) [ "$((${#e} / 3))" = "$bytes" ] || e= ;; esac
	to=$((after + ${#e} / 3))
fi
answer log "$gen" "size=$size" "to=$to" "over=$over"
answer text "$e"
finish ok
