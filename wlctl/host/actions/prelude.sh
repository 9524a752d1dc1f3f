# shellcheck shell=sh
# How every action starts, reads its request whole, and answers. Nothing here is ever spliced or
# evaluated: the text is constant, and what is asked comes in as data, after `ready`.
trap '' HUP PIPE INT TERM
set -fu
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C
export PATH LC_ALL
unset IFS ENV BASH_ENV CDPATH
umask 077
nonce=$1
nl='
'
out=

answer() { # WORD...: add a line; nothing is printed before the action's last step
	out="$out$*$nl"
}
finish() { # STATUS: a write to a channel that is gone must not matter
	printf '%send %s %s\n' "$out" "$nonce" "$1" 2>/dev/null || :
	exit 0
}
refuse() { # CODE TEXT: nothing was done, and nothing is left
	enc "$2"
	out="code $1${nl}detail $e$nl"
	finish refused
}
unclean() { # CODE TEXT: it failed, and something may be left
	enc "$2"
	out="code $1${nl}detail $e$nl"
	finish unclean
}

is_id() { # what may become part of a path
	case $1 in '' | [!a-z0-9]* | *[!a-z0-9._-]* | *..*) return 1 ;; esac
	[ "${#1}" -le 128 ]
}
is_sha256() {
	case $1 in *[!0-9a-f]*) return 1 ;; esac
	[ "${#1}" = 64 ]
}
is_number() { # no leading zero: the shells disagree about octal
	case $1 in 0) return 0 ;; '' | 0* | *[!0-9]*) return 1 ;; esac
	[ "${#1}" -le 15 ]
}

request() { # read parameters, each given to `param KEY VALUE`; data, if any, stays on stdin
	printf 'ready %s\n' "$nonce"
	# `read` takes one byte at a time from a channel: nothing of what follows, and without a fork
	IFS= read -r r || r=
	case $r in
	*[!0-9\ ]*) refuse invalid_request 'the request is not framed' ;;
	[0-9]*' '[0-9]*) ;;
	*) refuse invalid_request 'the request did not arrive' ;;
	esac
	[ "${#r}" = 31 ] || refuse invalid_request 'the request did not arrive whole'
	r_len=${r% *}
	r_len=${r_len#"${r_len%%[!0]*}"}
	data_bytes=${r#* }
	data_bytes=${data_bytes#"${data_bytes%%[!0]*}"}
	data_bytes=${data_bytes:-0}
	[ -n "$r_len" ] || r_len=0
	[ "$r_len" -le 4194304 ] || refuse invalid_request 'the request is too long'
	r=
	if [ "$r_len" -le 4096 ]; then
		while [ "${#r}" -lt "$r_len" ] && IFS= read -r r_kv; do r=$r$r_kv$nl; done
	else
		r=$(dd bs="$r_len" count=1 iflag=fullblock 2>/dev/null && echo .) ||
			refuse invalid_request 'the request could not be read'
		r=${r%.}
	fi
	[ "${#r}" = "$r_len" ] || refuse invalid_request 'the request did not arrive whole'
	case $r in *[!A-Za-z0-9._~/:=,@+%\ "$nl"-]*) refuse invalid_request 'the request is not encoded' ;; esac
	IFS=$nl
	for r_kv in $r; do
		unset IFS
		raw=${r_kv#* }
		dec "$raw" || refuse invalid_request 'a parameter is not encoded'
		case ${r_kv%% *} in installation) own_installation "$d" ;; esac
		param "${r_kv%% *}" "$d"
	done
	unset IFS
	if [ "$data_bytes" = 0 ]; then exec </dev/null; fi
}
own_installation() { # ID: a key that a doorkeeper lets in speaks for one installation
	case ${WLCTL_DOOR:-/$1} in */"$1") ;; *) refuse unauthorized "this key is not installation $1's" ;; esac
}
unknown_param() { refuse invalid_request "unknown parameter $1"; }

# Where things are: `me` the login's uid, `S` the state directory.
me=0
while read -r k _ v _; do
	if [ "$k" = Uid: ]; then
		me=$v
		break
	fi
done </proc/self/status
S=/var/lib/wlctl
[ "$me" = 0 ] || S=${HOME:-/nonexistent}/.local/state/wlctl
S=${WLCTL_NODE_STATE:-$S}

uptime() { # -> t: of this boot, milliseconds; time asleep counts
	read -r t _ </proc/uptime
	t=$((${t%.*} * 1000 + (1${t#*.} - 100) * 10))
}
boot_id() { # -> boot
	boot=
	read -r boot </proc/sys/kernel/random/boot_id
}
