# shellcheck shell=sh
# The variables of a run as a file that its last stage reads by the line, without decoding anything.
newline='
'
keep_variable() { # NAME=VALUE, to stdout: its first line behind a =, every further one behind a +
	v_b='='
	v_r=$1$newline
	while [ -n "$v_r" ]; do
		printf '%s%s\n' "$v_b" "${v_r%%"$newline"*}" || return 1
		v_r=${v_r#*"$newline"} v_b=+
	done
}
