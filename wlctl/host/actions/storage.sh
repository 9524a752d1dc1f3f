# shellcheck shell=sh
# Room on the state directory's file system and on every disk that is mounted. Only file systems of
# this machine are asked: one of the network may never answer.
# shellcheck disable=SC2154 # what the other parts read
storage() { # disks: TYPE PATH lines, one a file system
	set -- "$S"
	IFS=$nl
	for d_l in $disks; do set -- "$@" "${d_l#* }"; done
	unset IFS
	d_said=$(stat -f -c '%S %b %a %n' "$@" 2>/dev/null)
	if [ -z "$d_said" ]; then # a busybox without -f
		d_said=$(df -Pk "$S" 2>/dev/null) || return 0
		# shellcheck disable=SC2086 # the last line's columns
		set -- ${d_said##*"$nl"}
		[ "$#" -lt 4 ] || answer disk_free_kib "$4"
		return 0
	fi
	d_first=yes
	IFS=$nl
	for d_l in $d_said; do
		unset IFS
		d_at=${d_l#* * * }
		# shellcheck disable=SC2086 # columns
		set -- $d_l
		d_kib=$(($1 / 512))
		d_total=$(($2 * d_kib / 2))
		d_free=$(($3 * d_kib / 2))
		if [ "$d_first$d_at" = "yes$S" ]; then # it comes first, and its disk comes again by its mount
			d_first=no
			answer disk_free_kib "$d_free"
			answer disk_total_kib "$d_total"
			continue
		fi
		case $nl$disks$nl in
		*" $d_at$nl"*)
			d_type=${disks%%" $d_at"*}
			d_type=${d_type##*"$nl"}
			word "$d_at"
			answer store "path=$e" "type=$d_type" "total_kib=$d_total" "free_kib=$d_free"
			;;
		esac
	done
	unset IFS
}
