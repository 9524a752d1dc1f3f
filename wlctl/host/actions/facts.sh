# shellcheck shell=sh
# facts: everything one probe sees. Changes nothing but the node's own id and what it remembers of
# its tools. Forks as little as it can: a probe of a hundred nodes is mostly this.
installation=
param() {
	case $1 in
	installation) installation=$2 ;;
	*) unknown_param "$1" ;;
	esac
}
request
is_id "$installation" || refuse invalid_request 'installation is not an id'

identity() {
	state_dir || refuse resources "$S cannot be written"
	if [ ! -e "$S/node_id" ]; then
		read -r f_u </proc/sys/kernel/random/uuid
		f_id=
		IFS=-
		for f_part in $f_u; do f_id=$f_id$f_part; done
		unset IFS
		put "$S/node_id.$nonce" "$f_id" && ln "$S/node_id.$nonce" "$S/node_id" 2>/dev/null
		rm -f "$S/node_id.$nonce"
	fi
	get "$S/node_id" || refuse resources "$S/node_id is damaged"
	answer node_id "$g"
	f_id=
	if [ -r /etc/machine-id ]; then read -r f_id </etc/machine-id; fi
	enc "$f_id"
	answer machine_id "$e"
	boot_id
	enc "$boot"
	answer boot_id "$e"
	uptime
	answer uptime_ms "$t"
	answer wall "$(date +%s.%N)"
	enc "$S"
	answer state_dir "$e"
	answer uid "$me"
	made_dir "$S/$installation" || refuse resources "$S cannot be written" # who it is for, when it is cleaned
}

size() {
	while read -r k v _; do
		case $k in
		MemTotal:) answer memory_total_kib "$v" ;;
		MemAvailable:)
			answer memory_available_kib "$v"
			break
			;;
		esac
	done </proc/meminfo
	read -r v _ </proc/loadavg
	answer load "$v"
	v=0
	if [ -r /sys/devices/system/cpu/online ]; then read -r v </sys/devices/system/cpu/online; fi
	answer cpus "$v"
	ours
	answer memory_ours_bytes "$f_sum"
}

ours() { # -> f_sum: what everything of this installation uses; what others have here is in use
	f_sum=0 f_cg=${cg:+$cg/$installation}
	if [ -n "$f_cg" ] && [ -r "$f_cg/memory.stat" ]; then
		while read -r k v; do
			case $k in anon | kernel | shmem) f_sum=$((f_sum + v)) ;; esac
		done <"$f_cg/memory.stat"
	elif [ -n "$f_cg" ] && [ -d "$f_cg" ]; then
		pids=
		pids_below "$f_cg"
		set --
		for f_p in $pids; do set -- "$@" "/proc/$f_p/smaps_rollup"; done
		if [ "$#" -gt 0 ]; then
			IFS=$nl
			f_all=$(grep -hs '^Pss:' "$@")
			for f_l in $f_all; do
				unset IFS
				f_l=${f_l#Pss:}
				field 1 "$f_l"
				f_sum=$((f_sum + f * 1024))
			done
			unset IFS
		fi
	fi
}

network() { # listening TCP ports, hexadecimal as the kernel writes them
	f_ports=
	f_lines=$(grep -hs ' 0A ' /proc/net/tcp /proc/net/tcp6)
	IFS=$nl
	for f_l in $f_lines; do
		unset IFS
		# shellcheck disable=SC2086 # columns
		set -- $f_l
		v=${2##*:}
		case " $f_ports " in *" $v "*) ;; *) f_ports="$f_ports $v" ;; esac
	done
	unset IFS
	# shellcheck disable=SC2086 # words of four hexadecimal digits
	answer listening $f_ports
}

system() {
	v=
	if [ -r /proc/sys/kernel/arch ]; then read -r v </proc/sys/kernel/arch; fi
	answer arch "${v:-$(uname -m)}"
	read -r v </proc/sys/kernel/osrelease
	enc "$v"
	answer kernel "$e"
	if [ -r /etc/os-release ]; then
		while IFS='=' read -r k v; do
			case $k in ID) k=distribution ;; VERSION_ID) k=distribution_version ;; *) continue ;; esac
			v=${v#[\"\']}
			enc "${v%[\"\']}"
			answer "$k" "$e"
		done </etc/os-release
	fi
}

ids() {
	set +f
	for f_d in "$S/$installation/instances"/*/; do
		f_d=${f_d%/}
		if [ -d "$f_d" ] && is_id "${f_d##*/}"; then answer instance "${f_d##*/}"; fi
	done
	set -f
}

if [ ! -e /proc/self/status ]; then
	macos
	finish ok
fi
mounts
refuse_network_state
identity
tools
size
storage
network
system
runtimes
accelerators
devices
ids
answer containment "$containment"
enc "$cg"
answer cgroup_root "$e"
answer cgroup_way "$way"
# above our own root: what is enabled there is for the launch to say
if [ -n "$cg" ] && first "$cg_up/cgroup.controllers"; then answer controllers "$v"; fi
for f_t in $missing; do answer missing "$f_t"; done
finish ok
