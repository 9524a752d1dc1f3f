# shellcheck shell=sh
# Asking programs of the node's own, any of which may hang, flood, or leave a child with its output
# open: each gets a file, so much of it, and so long, and all are asked side by side.
# shellcheck disable=SC2154 # what the other parts read
word() { # TEXT -> e: as enc, of at most 120 bytes, and without a fork for what is plain
	w_t=$1
	[ "${#w_t}" -le 120 ] || w_t=$(printf %.120s "$w_t")
	w_e=
	while [ -n "$w_t" ]; do
		w_r=${w_t#?}
		w_c=${w_t%"$w_r"}
		w_t=$w_r
		case $w_c in
		[A-Za-z0-9._~/:=,@+-]) w_e=$w_e$w_c ;;
		' ') w_e=$w_e%20 ;;
		'(') w_e=$w_e%28 ;;
		')') w_e=$w_e%29 ;;
		'[') w_e=$w_e%5B ;;
		']') w_e=$w_e%5D ;;
		'#') w_e=$w_e%23 ;;
		'&') w_e=$w_e%26 ;;
		"'") w_e=$w_e%27 ;;
		*)
			enc "$w_c$w_t"
			w_e=$w_e$e
			break
			;;
		esac
	done
	e=$w_e
}
first() { # FILE -> v: its first line, or empty
	v=
	{ IFS= read -r v <"$1"; } 2>/dev/null
	[ -n "$v" ]
}
asking() { # make the place for what is said; what a power cut left of an older boot goes
	[ -z "$asked_in" ] || return 0
	set +f
	for k_d in "$S"/said.*; do
		case $k_d in "$S/said.$boot".* | "$S/said.*") ;; *) rm -rf "${k_d:?}" ;; esac
	done
	set -f
	mkdir "$S/said.$boot.$nonce" 2>/dev/null || return 1
	asked_in=$S/said.$boot.$nonce
}
asked='' asked_in=''
ask() { # NAME PROGRAM ARG...: begin to ask
	k_f=$asked_in/$1
	asked="$asked $1"
	shift
	(
		trap '' XFSZ # what floods gets an error; dying of it would take dash along
		ulimit -f 128
		timeout -s KILL 5 "$@" >"$k_f" 2>&1
		: >"$k_f.end"
	) >/dev/null 2>&1 </dev/null &
}
hear() { # wait until all have ended; a program that cannot even be killed is left behind
	uptime
	k_late=$((t + 6000))
	for k_n in $asked; do
		while [ ! -e "$asked_in/$k_n.end" ]; do
			uptime
			[ "$t" -lt "$k_late" ] || return 0
			sleep 0.02 2>/dev/null || sleep 1
		done
	done
}
forget() { # what was said
	[ -z "$asked_in" ] || rm -rf "${asked_in:?}"
	asked='' asked_in=''
}
