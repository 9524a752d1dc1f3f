# shellcheck shell=sh
# measure: how fast processors, memory and disk are, in under three seconds. It leaves nothing, and
# changes nothing; each figure is bytes and the milliseconds they took.
# shellcheck disable=SC2154 # what the other parts read
installation=
param() {
	case $1 in
	installation) installation=$2 ;;
	*) unknown_param "$1" ;;
	esac
}
request
is_id "$installation" || refuse invalid_request 'installation is not an id'

timed() { # COMMAND...: -> ms, at least 1; fails when it does, or takes more than 1 s
	uptime
	m_began=$t
	timeout -s KILL 1 "$@" >/dev/null 2>&1 || return 1
	uptime
	ms=$((t - m_began))
	[ "$ms" -gt 0 ] || ms=1
}
grown() { # FUNCTION MIB MOST: more each time, until a run takes 200 ms or 400 have gone -> mib, ms
	mib=0
	m_next=$2
	uptime
	m_late=$((t + 400))
	while "$1" "$m_next"; do
		mib=$m_next m_ms=$ms
		[ "$ms" -lt 200 ] && [ "$mib" -lt "$3" ] && [ "$((m_began + ms))" -lt "$m_late" ] || break
		# straight to about 300 ms, but never more than eight times as much
		m_by=$((300 / ms))
		[ "$m_by" -ge 2 ] || m_by=2
		[ "$m_by" -le 8 ] || m_by=8
		m_next=$((mib * m_by))
		[ "$m_next" -le "$3" ] || m_next=$3
	done
	[ "$mib" != 0 ] || return 1
	ms=$m_ms
}
hashed() { # MIB: read as a file of zeros would be
	timed sh -c 'dd if=/dev/zero bs=1048576 count="$1" 2>/dev/null | sha256sum' sh "$1"
}
hashed_by_all() { # MIB: by as many as there are processors, each so much
	# shellcheck disable=SC2016 # for the other shell
	timed sh -c 'n=$2; while [ "$n" -gt 0 ]; do
		dd if=/dev/zero bs=1048576 count="$1" 2>/dev/null | sha256sum &
		n=$((n - 1))
	done; wait' sh "$1" "$cores"
}
cleared() { # MIB, a multiple of 32: pieces larger than most caches
	timed dd if=/dev/zero of=/dev/null bs=33554432 count="$(($1 / 32))"
}
written() { # MIB: and synced, so that it is the disk
	timed dd if=/dev/zero of="$m_file" bs=1048576 count="$1" conv=fsync
}
count_cores() { # -> cores: of a list such as 0-3,6
	cores=0
	first /sys/devices/system/cpu/online || v=0
	IFS=,
	for m_p in $v; do
		m_last=${m_p#*-}
		cores=$((cores + m_last - ${m_p%-*} + 1))
	done
	unset IFS
	[ "$cores" -ge 1 ] || cores=1
	[ "$cores" -le 256 ] || cores=256
}

get "$S/node_id" || refuse verify "$S/node_id is not there, or damaged"
answer node_id "$g"
count_cores
if grown hashed 8 4096; then
	answer figure cpu.single "bytes=$((mib * 1048576))" "ms=$ms"
	# together they may each take longer
	[ "$ms" -le 300 ] || mib=$((mib / 2 + 1))
	if hashed_by_all "$mib"; then
		answer figure cpu.all "bytes=$((mib * cores * 1048576))" "ms=$ms" "cores=$cores"
	fi
fi
if grown cleared 64 16384; then answer figure memory "bytes=$((mib * 1048576))" "ms=$ms"; fi
m_free=0
# shellcheck disable=SC2046 # columns
set -- $(stat -f -c '%S %a' "$S" 2>/dev/null)
[ "$#" != 2 ] || m_free=$(($1 * $2 / 1048576))
m_most=$((m_free / 4))
[ "$m_most" -le 256 ] || m_most=256
set +f
rm -f "$S"/measure.*
set -f
m_file=$S/measure.$nonce
if [ "$m_most" -ge 4 ] && grown written 4 "$m_most"; then
	answer figure disk.write "bytes=$((mib * 1048576))" "ms=$ms"
fi
rm -f "$m_file"
finish ok
