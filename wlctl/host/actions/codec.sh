# shellcheck shell=sh
# Percent-encoding, both ways; what is encoded is one word in every shell.
enc() { # TEXT -> e: percent-encoded
	case $1 in
	*[!A-Za-z0-9._~/:=,@+-]*) e=$(printf '%s' "$1" | od -An -v -tx1 | tr -d ' \n' | sed 's/../%&/g') ;;
	*) e=$1 ;;
	esac
}
dec() { # ENCODED -> d: fails on a bad escape and on NUL
	d=$1
	case $d in *%*) ;; *) return 0 ;; esac
	d_o=
	while :; do
		case $d in *%*) ;; *) break ;; esac
		d_o=$d_o${d%%\%*}
		d=${d#*%}
		d_h=${d%"${d#??}"}
		d=${d#??}
		case $d_h in
		00) return 1 ;;
		[0-9A-Fa-f][0-9A-Fa-f]) ;;
		*) return 1 ;;
		esac
		d_v=$((0x$d_h))
		d_o="$d_o\\0$((d_v / 64))$((d_v / 8 % 8))$((d_v % 8))"
	done
	d=$(printf '%b.' "$d_o$d")
	d=${d%.}
}
