# shellcheck shell=sh
# gc: take away store files that nothing here may still run, uploads that were killed, logs that were
# kept long enough, and what is remembered of instances that are not here, but for the newest of it.
# Safe to repeat; what cannot be read keeps everything it may name.
installation='' age='' keep=''
remembered=256
param() {
	case $1 in
	installation) installation=$2 ;;
	age_min) age=$2 ;;
	keep_min) keep=$2 ;;
	*) unknown_param "$1" ;;
	esac
}
uses() { # DIR of an instance: appends to `used` what a generation of it may run; 1 when unknown
	get_text "$1/spec"
	case $? in
	1) # nothing was staged, unless something was launched all the same
		generations "$1"
		for u_n in $gens; do
			[ ! -e "$1/g$u_n/record" ] || return 1
		done
		return 0
		;;
	2) return 1 ;;
	esac
	u_sheet=${text#*"${nl}sheet "}
	u_sheet=${u_sheet%%"$nl"*}
	is_sha256 "$u_sheet" && [ -f "$S/store/$u_sheet" ] || return 1
	u_files=$(sed -n 's/^file 0[0-9]* \([0-9a-f]*\) .*/\1/p' "$S/store/$u_sheet" 7>&-) || return 1
	u_manifest=${text#*"${nl}package "} # it lies there under the package's id
	used="$used${u_manifest%%"$nl"*}$nl$u_sheet$nl$u_files$nl"
}
collect_store() { # -> files, bytes; `held` names what could not be read
	used=$nl held='' files=0 bytes=0
	set +f
	set -- "$S"/*/instances/*/
	set -f
	for g_i in "$@"; do
		g_i=${g_i%/}
		[ -d "$g_i" ] || continue
		uses "$g_i" || held="$held ${g_i##*/}"
	done
	# what is laid out for a generation is linked there, and an offer touches what it counts on
	g_old=$(find "$S/store" -type f -links 1 -mmin "+$age" 2>/dev/null 7>&-)
	IFS=$nl
	for g_f in $g_old; do
		unset IFS
		g_n=${g_f##*/}
		case $g_n in
		.*) ;;
		*)
			[ -z "$held" ] && is_sha256 "$g_n" || continue
			case $used in *"$nl$g_n$nl"*) continue ;; esac
			;;
		esac
		g_s=$(stat -c %s "$g_f" 2>/dev/null 7>&-) && rm -f "${g_f:?}" 7>&- || continue
		files=$((files + 1))
		bytes=$((bytes + g_s))
	done
	unset IFS
}
collect_logs() { # -> logs
	logs=0
	g_old=$(find "$I/logs" -type d -mindepth 1 -maxdepth 1 -mmin "+$keep" 2>/dev/null 7>&-)
	for g_d in $g_old; do
		rm -rf "${g_d:?}" 7>&-
		logs=$((logs + 1))
	done
	# at this very depth, where nothing is but what actions made: below it a run writes as it likes
	g_old=$(find "$I/instances" -mindepth 3 -maxdepth 3 -type f -path '*/g[1-9]*/ended' -mmin "+$keep" 2>/dev/null 7>&-)
	for g_f in $g_old; do # proven gone, and not the last that ran
		g_d=${g_f%/ended}
		get "${g_d%/*}/current" && [ "${g_d##*/g}" != "$g" ] && [ -e "$g_d/out" ] || continue
		rm -f "$g_d/out" "$g_d/out.1" "$g_d/err" 7>&-
		logs=$((logs + 1))
	done
}
collect_records() { # departures and claims, from the oldest on; a ledger that was restored asks for them
	for g_in in departed decisions; do
		# shellcheck disable=SC2012 # ids
		g_last=$(ls -1t "$I/$g_in" 2>/dev/null 7>&- | sed -n "$((remembered + 1))p" 7>&-)
		[ -n "$g_last" ] || continue
		g_old=$(find "$I/$g_in" -mindepth 1 -maxdepth 1 -type f -mmin "+$keep" ! -newer "$I/$g_in/$g_last" 2>/dev/null 7>&-)
		for g_f in $g_old; do
			if is_past "$g_f"; then rm -f "$g_f" 7>&-; fi
		done
	done
}
is_past() { # FILE: no instance that is here is named by it, or in it
	[ ! -e "$I/instances/${1##*/}" ] && { IFS= read -r g <"$1"; } 2>/dev/null || return 1
	for g_n in $g; do
		! is_id "$g_n" || [ ! -e "$I/instances/$g_n" ] || return 1
	done
}

request
is_id "$installation" || refuse invalid_request 'installation is not an id'
is_number "$age" && is_number "$keep" || refuse invalid_request 'age and keep are minutes'
I=$S/$installation
get "$S/node_id" || refuse verify "$S/node_id is not there, or damaged"
answer node_id "$g"
lock 10
collect_store
collect_logs
collect_records
[ ! -e "$I/gone" ] || remove "$I/gone" # what once went aside
answer files "$files"
answer bytes "$bytes"
answer logs "$logs"
for g_i in $held; do answer held "$g_i"; done
finish ok
