# shellcheck shell=sh
# Who a generation runs as: a uid of its own, or the login, groups and capabilities its package names.
# shellcheck disable=SC2154 # the sheet's words, and what the other parts read
choose_user() { # under the lock -> uid, gid, l_groups, l_caps, l_shared; way_in, containment may fall
	l_groups=- l_caps=- l_shared=no
	if [ -z "$s_user$s_groups$s_caps" ]; then
		take_uid && gid=$uid
		return
	fi
	if [ "$me" != 0 ]; then
		problem='no_user only a login of root can give a user, groups or capabilities'
		return 1
	fi
	if [ -n "$s_user" ]; then existing_user; else take_uid && gid=$uid; fi && named_groups && named_capabilities
}
existing_user() {
	uid=$(id -u "$s_user" 2>/dev/null 7>&-) && gid=$(id -g "$s_user" 2>/dev/null 7>&-) || {
		problem="no_user there is no login $s_user on the node"
		return 1
	}
	if [ "$uid" = "${SUDO_UID:-}" ]; then
		problem="no_user $s_user is the login that wlctl itself comes in by"
		return 1
	fi
	l_shared=yes # whatever else that login runs cannot be told apart by its uid
	[ "$uid" != 0 ] || unconfined
}
unconfined() { # what may write any cgroup, or become anybody, is held by its cgroup and namespace alone
	way_in=cgroup-pid
	[ "$containment" = leader-only ] || containment=cgroup
}
named_groups() {
	for n_g in $s_groups; do
		n_l=$(getent group "$n_g" 2>/dev/null 7>&- || grep "^$n_g:" /etc/group 2>/dev/null 7>&-)
		n_l=${n_l#*:*:}
		n_l=${n_l%%:*}
		if ! is_number "$n_l"; then
			problem="no_user there is no group $n_g on the node"
			return 1
		fi
		if [ "$l_groups" = - ]; then l_groups=$n_l; else l_groups=$l_groups,$n_l; fi
	done
}
named_capabilities() {
	[ -n "$s_caps" ] || return 0
	l_caps=
	for n_c in $s_caps; do
		case $n_c in
		CAP_NET_BIND_SERVICE | CAP_NET_BROADCAST | CAP_NET_RAW | CAP_NET_ADMIN | CAP_IPC_LOCK | \
			CAP_IPC_OWNER | CAP_SYS_NICE | CAP_SYS_TIME | CAP_SYS_TTY_CONFIG | CAP_SYS_PACCT | \
			CAP_LEASE | CAP_AUDIT_WRITE | CAP_SYSLOG | CAP_WAKE_ALARM | CAP_BLOCK_SUSPEND) ;;
		*) unconfined ;;
		esac
		l_caps=$l_caps,+$(printf '%s' "${n_c#CAP_}" | tr '[:upper:]' '[:lower:]' 7>&-)
	done
	if ! setpriv --bounding-set="-all$l_caps" --inh-caps="-all$l_caps" true 2>/dev/null 7>&-; then
		problem="governance the node cannot give the capabilities$s_caps"
		return 1
	fi
}
