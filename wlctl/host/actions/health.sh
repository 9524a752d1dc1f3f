# shellcheck shell=sh
# How health is asked for: made into words that the supervisor runs as the instance.
# shellcheck disable=SC2154 # the sheet's words, and what the other parts read
ask_http='u=${1#*://}; h=${u%%/*}; p=${h##*:}; [ "$p" != "$h" ] || p=80
exec 3<>"/dev/tcp/${h%:*}/$p" || exit 1
printf "GET /%s HTTP/1.0\r\nHost: %s\r\n\r\n" "${u#"$h"}" "$h" >&3
read -r _ s _ <&3
case $s in [23]??) exit 0 ;; esac
exit 1'
plan_health() { # -> l_health: lines of the launch file; empty when nothing is asked
	l_health=
	[ -n "$s_health" ] || return 0
	l_health="health $s_health $s_h_interval $s_h_timeout $s_h_misses $s_h_age$nl"
	case $s_health in
	heartbeat)
		enc "$run_dir"
		l_health="${l_health}heartbeat $e/$s_h_target$nl"
		;;
	exec)
		enc "$G/work"
		l_health="${l_health}check $e/$s_h_target$nl"
		;;
	http)
		substitute "$s_h_target" || return 1
		if have curl; then
			check_words curl -gsfo /dev/null --noproxy '*' --url
		elif have wget; then
			check_words wget -qO /dev/null
		elif have python3; then
			check_words python3 -c 'import sys,urllib.request as u;u.urlopen(sys.argv[1])'
		elif have bash; then
			check_words bash -c "$ask_http" bash
		else
			problem='runtime a health check by http needs curl, wget, python3 or bash'
			return 1
		fi
		l_health="${l_health}check $v$nl"
		;;
	tcp)
		substitute "$s_h_target" || return 1
		if have python3; then
			check_words python3 -c 'import sys,socket;h,_,p=sys.argv[1].rpartition(":");socket.create_connection((h,int(p)))'
		elif have bash; then
			check_words bash -c 'exec 3<>"/dev/tcp/${1%:*}/${1##*:}"' bash
		else
			problem='runtime a health check by tcp needs python3 or bash'
			return 1
		fi
		l_health="${l_health}check $v$nl"
		;;
	esac
}
have() { # NAME, where the checks find it too
	where "$1"
	case $w in /*) return 0 ;; *) return 1 ;; esac
}
check_words() {
	for h_w in "$@"; do
		enc "$h_w"
		l_health="${l_health}check $e$nl"
	done
}
