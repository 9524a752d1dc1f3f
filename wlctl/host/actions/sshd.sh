# shellcheck shell=sh
# What the sshd that let this login in would do for another login: asked of that very sshd's
# configuration, and refused where it lets the other side choose what runs before the doorkeeper.
# shellcheck disable=SC2154 # what the other parts read
listening() { # -> h_words: of the sshd that listens, as it was started; h_from: who came, from where
	h_words=sshd h_from=
	h_pid=$$ h_left=64
	while [ "$h_pid" -gt 0 ] && [ "$h_left" -gt 0 ]; do
		h_left=$((h_left - 1))
		h_title=$(tr '\0' ' ' 2>/dev/null <"/proc/$h_pid/cmdline")
		case $h_title in
		'sshd: '*' [listener]'*)
			h_words=${h_title#sshd: }
			h_words=${h_words%%' [listener]'*}
			;;
		esac
		if [ -z "$h_from" ]; then
			h_from=$(tr '\0' '\n' 2>/dev/null <"/proc/$h_pid/environ" | sed -n 's/^SSH_CONNECTION=//p')
		fi
		IFS= read -r h_stat <"/proc/$h_pid/stat" || break
		h_stat=${h_stat##*") "}
		field 2 "$h_stat"
		h_pid=$f
	done
}
settings() { # -> h_all: what sshd would do for `login`, a line each
	listening
	# shellcheck disable=SC2086 # words
	set -- ${h_from:-127.0.0.1 0 127.0.0.1 22}
	h_spec="user=$login,host=$1,addr=$1,laddr=$3,lport=$4"
	# shellcheck disable=SC2086 # words
	set -- $h_words
	h_sshd=$1 h_value=no
	shift
	h_n=$#
	while [ "$h_n" -gt 0 ]; do # of its options only those that decide what it would do
		h_n=$((h_n - 1))
		h_w=$1
		shift
		if [ "$h_value" = yes ]; then
			h_value=no
			set -- "$@" "$h_w"
			continue
		fi
		case $h_w in
		-f | -o | -h | -p)
			h_value=yes
			set -- "$@" "$h_w"
			;;
		-[fohp]?*) set -- "$@" "$h_w" ;;
		esac
	done
	h_all=$("$h_sshd" -T -C "$h_spec" "$@" 2>/dev/null) && [ -n "$h_all" ] ||
		refuse runtime "$h_sshd does not say its settings (sshd -T)"
}
setting() { # NAME -> v: what stands after it, all lines of it
	v=$(printf '%s\n' "$h_all" | sed -n "s/^$1 //p")
}
safe_settings() {
	setting acceptenv
	for h_w in $v; do
		case $h_w in
		LANG | LANGUAGE | COLORTERM | NO_COLOR | XMODIFIERS) ;; # no shell and no loader reads them
		LC_*[!A-Z_*]*) unsafe_setting "AcceptEnv $h_w" ;;
		LC_*) ;;
		*) unsafe_setting "AcceptEnv $h_w" ;;
		esac
	done
	setting permituserenvironment
	[ "$v" = no ] || unsafe_setting "PermitUserEnvironment $v"
	setting forcecommand
	case $v in '' | none) ;; *) unsafe_setting "ForceCommand $v" ;; esac
}
unsafe_setting() { # WHAT
	refuse governance "sshd says $1 for $login, which takes effect before the doorkeeper does"
}
