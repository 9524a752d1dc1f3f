# shellcheck shell=sh
# clean: take away what one installation has on the node, and everything when it was the last one.
# It is refused while anything of it is left that could run, and it says what it took.
# shellcheck disable=SC2154 # what the other parts read
installation='' node_id=
param() {
	case $1 in
	installation) installation=$2 ;;
	node_id) node_id=$2 ;;
	*) unknown_param "$1" ;;
	esac
}
request
is_id "$installation" || refuse invalid_request 'installation is not an id'
is_id "$node_id" || refuse invalid_request 'node_id is not an id'
if [ ! -e "$S" ]; then finish ok; fi
get "$S/node_id" || refuse verify "$S/node_id is not there, or damaged"
[ "$g" = "$node_id" ] || refuse verify "this is another node: $g"
may_spend=yes
lock 10
mounts
cgroup_root
I=$S/$installation
set +f
for c_d in "$I/instances"/*/; do
	if [ -d "$c_d" ]; then
		c_d=${c_d%/}
		refuse admission "${c_d##*/} is still there: unload it first"
	fi
done
set -f
if [ -n "$cg" ]; then
	pids=
	pids_below "$cg/$installation"
	[ -z "$pids" ] || refuse admission "processes of this installation run there:$pids"
fi

removed() { # PATH: it was there, and is not any more
	[ -e "$1" ] || return 0
	remove "${1:?}"
	[ ! -e "$1" ] || unclean resources "$1 cannot be removed"
	enc "$1"
	answer removed "$e"
}
removed_cgroup() { # DIR: it and what is below it, all of it empty
	[ -d "$1" ] || return 0
	set +f
	for c_d in "$1"/*/; do
		if [ -d "$c_d" ]; then rmdir "$c_d" 2>/dev/null 7>&-; fi
	done
	set -f
	rmdir "$1" 2>/dev/null 7>&- || return 0
	enc "$1"
	answer removed "$e"
}
removed "$I"
if [ -n "$cg" ]; then removed_cgroup "$cg/$installation"; fi
others=
set +f
for c_d in "$S"/*/; do
	c_d=${c_d%/}
	case ${c_d##*/} in store | said.* | '*') ;; *) others="$others ${c_d##*/}" ;; esac
done
set -f
for c_d in $others; do answer kept "$c_d"; done
if [ -z "$others" ]; then
	if [ -n "$cg" ]; then
		removed_cgroup "$cg"
		drop_unit
	fi
	removed "$S"
fi
finish ok
