# shellcheck shell=sh
# Runtimes and their versions: a program is asked once a boot, again when it is another program, and
# an hour later when it did not answer.
# shellcheck disable=SC2154 # what the other parts read
runtimes() {
	set --
	q_names=
	for q_n in bash bun containerd deno docker dotnet go java nerdctl node perl php podman python3 \
		qemu-system-aarch64 qemu-system-riscv64 qemu-system-x86_64 ruby wasmer wasmtime; do
		where "$q_n"
		[ "$w" != "$q_n" ] || continue
		set -- "$@" "$w"
		q_names="$q_names $q_n"
	done
	[ "$#" -gt 0 ] || return 0
	q_key="asked $boot"
	IFS=$nl
	for q_l in $(stat -L -c '%n:%i:%Y:%s' "$@" 2>/dev/null); do q_key="$q_key $q_l"; done
	unset IFS
	uptime
	if get_text "$S/runtimes"; then
		q_said=${text%%"$nl"*}
		q_until=${q_said##* }
		if [ "${q_said% *}" = "$q_key" ] && is_number "$q_until" &&
			{ [ "$q_until" = 0 ] || [ "$t" -lt "$q_until" ]; }; then
			say_runtimes
			return 0
		fi
	fi
	ask_runtimes
	put_text "$S/runtimes" "$q_key $q_until$q_lines"
	text="$nl${q_lines#"$nl"}"
	say_runtimes
}
say_runtimes() { # the lines after the first
	case $text in *"$nl"?*) out="$out${text#*"$nl"}$nl" ;; esac
}
ask_runtimes() { # -> q_lines, and q_until: when to ask again, 0 for never
	q_until=0 q_lines=
	asking || return 0
	for q_n in $q_names; do
		where "$q_n"
		case $q_n in
		go) ask "$q_n" "$w" version ;;
		java) ask "$q_n" "$w" -version ;;
		dotnet) ask "$q_n" "$w" --list-runtimes ;;
		*) ask "$q_n" "$w" --version ;;
		esac
	done
	hear
	for q_n in $q_names; do
		where "$q_n"
		one_runtime "$q_n"
		word "$w"
		q_line="$q_line path=$e"
		q_lines="$q_lines$nl$q_line"
	done
	forget
}
one_runtime() { # NAME -> q_line
	v=
	if [ -e "$asked_in/$1.end" ]; then
		q_i=0
		{
			while [ -z "$v" ] && [ "$q_i" -lt 3 ] && IFS= read -r q_l; do
				q_i=$((q_i + 1))
				version_in "$q_l"
			done <"$asked_in/$1"
		} 2>/dev/null
	fi
	[ -n "$v" ] || {
		uptime
		q_until=$((t + 3600000))
	}
	case $1 in
	python3) q_line=runtime\ python${v:+ $v} ;;
	qemu-system-*) q_line="runtime qemu${v:+ $v} arch=${1#qemu-system-}" ;;
	*) q_line="runtime $1${v:+ $v}" ;;
	esac
}
version_in() { # TEXT -> v: its first word that is a version, or empty
	v=
	v_i=0
	for f_w in $1; do
		v_i=$((v_i + 1))
		[ "$v_i" -le 16 ] || return 0
		f_w=${f_w#[\"\(]}
		f_w=${f_w#v}
		f_w=${f_w#go}
		f_w=${f_w%%[!0-9.]*}
		case $f_w in
		*..* | *.) ;;
		[0-9]*.*[0-9])
			if [ "${#f_w}" -le 32 ]; then
				v=$f_w
				return 0
			fi
			;;
		esac
	done
}
