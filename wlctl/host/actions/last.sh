# shellcheck shell=sh
# last WORD...: the last stage before a program of the instance, when privilege has been dropped. It
# reads the variables of the program from fd 3, so that no value is ever in a command line, and gives it
# these and no others. None is set before all are read: a shell goes by some of them itself (IFS,
# LC_ALL, FUNCNEST). It forks nothing: a program that may have one process has just this one. No single
# quote stands here, as it travels in texts that travel in others.
set -fu
set -- /usr/bin/env -u _ -u SHLVL -- "$@"
words=0
for word in "$@"; do words=$((words + 1)); done
newline="
"
one="" whole=no
while IFS= read -r line <&3; do
	case $line in
	+*) one=$one$newline${line#+} ;;
	*)
		[ -z "$one" ] || set -- "$@" "$one"
		one=${line#=}
		[ "$line" != . ] || whole=yes
		;;
	esac
done
[ "$whole" = yes ] || exit 125
exec 3<&-
set -- "$@" "" # where the variables end: each of them has an = in it
while [ "$words" -gt 0 ]; do
	set -- "$@" "$1"
	shift
	words=$((words - 1))
done
unset PATH LC_ALL PWD OLDPWD
while [ -n "$1" ]; do # by no variable of this stage: its name could be given
	unset -v "${1%%=*}" # some have a meaning that they lose by this
	# shellcheck disable=SC2163 # it is NAME=VALUE
	export "$1"
	shift
done 2>/dev/null # a shell complains of a locale that it does not know
shift
exec "$@"
