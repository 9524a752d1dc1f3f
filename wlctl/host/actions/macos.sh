# shellcheck shell=sh
# A probe of macOS, which has no /proc, no cgroups and other tools. Nothing is placed there but what
# needs no proof by cgroup, so it only tells what the machine is.
# shellcheck disable=SC2154 # what the other parts read
macos() {
	me=$(id -u)
	S=/var/lib/wlctl
	[ "$me" = 0 ] || S=${HOME:-/nonexistent}/.local/state/wlctl
	S=${WLCTL_NODE_STATE:-$S}
	macos_identity
	macos_size
	answer os macos
	answer distribution macos
	for a_k in 'arch uname -m' 'kernel uname -r' 'distribution_version sw_vers -productVersion'; do
		# shellcheck disable=SC2086 # a key, and a command with its argument
		set -- $a_k
		a_key=$1
		shift
		word "$("$@" 2>/dev/null)"
		answer "$a_key" "$e"
	done
	# shellcheck disable=SC2046 # words of hexadecimal digits
	answer listening $(netstat -an -p tcp 2>/dev/null |
		awk '$NF == "LISTEN" { n = split($4, p, "."); printf "%X\n", p[n] }' | sort -u)
	answer containment leader-only
	answer cgroup_root ''
}
macos_identity() {
	(umask 066 && exec mkdir -p "$S/$installation" 2>/dev/null) ||
		refuse resources "$S cannot be written"
	if [ ! -e "$S/node_id" ]; then
		a_id=$(uuidgen | tr -d - | tr A-F a-f)
		printf '%s .\n' "$a_id" >"$S/node_id.$nonce" && ln "$S/node_id.$nonce" "$S/node_id" 2>/dev/null
		rm -f "$S/node_id.$nonce"
	fi
	get "$S/node_id" || refuse resources "$S/node_id is damaged"
	answer node_id "$g"
	word "$(sysctl -n kern.uuid 2>/dev/null)"
	answer machine_id "$e"
	word "$(sysctl -n kern.bootsessionuuid)"
	answer boot_id "$e"
	# { sec = 1700000000, usec = 123456 } Tue Nov 14 22:13:20 2023
	a_boot=$(sysctl -n kern.boottime)
	a_boot=${a_boot#*"sec = "}
	a_now=$(date +%s)
	answer uptime_ms "$(((a_now - ${a_boot%%,*}) * 1000))"
	answer wall "$a_now"
	enc "$S"
	answer state_dir "$e"
	answer uid "$me"
}
macos_size() {
	answer memory_total_kib "$(($(sysctl -n hw.memsize) / 1024))"
	# what can be had without taking it from anybody, in pages
	answer memory_available_kib "$(vm_stat | awk '
		/page size of/ { for (i = 1; i < NF; i++) if ($i == "of") size = $(i + 1) }
		/^Pages (free|inactive|speculative|purgeable):/ { pages += $NF }
		END { printf "%d", pages * size / 1024 }')"
	answer memory_ours_bytes 0
	answer cpus "0-$(($(sysctl -n hw.logicalcpu) - 1))"
	# { 1.23 1.05 0.98 }
	a_load=$(sysctl -n vm.loadavg)
	a_load=${a_load#"{ "}
	answer load "${a_load%% *}"
	a_df=$(df -Pk "$S" 2>/dev/null)
	# shellcheck disable=SC2086 # the last line's columns
	set -- ${a_df##*"$nl"}
	[ "$#" -lt 4 ] || answer disk_free_kib "$4"
	[ "$#" -lt 4 ] || answer disk_total_kib "$2"
}
