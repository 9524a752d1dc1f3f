# shellcheck shell=sh
# recall: what a ledger that was lost must know again of its instances here. Without an installation:
# whose checkpoints this node keeps, and the newest of each. Changes nothing.
installation=
param() {
	case $1 in
	installation) installation=$2 ;;
	*) unknown_param "$1" ;;
	esac
}
subdirectories() { # DIR -> dirs: a line each
	set +f
	dirs=
	for r_d in "$1"/*/; do dirs="$dirs${r_d%/}$nl"; done
	set -f
}
one_installation() { # a key that a doorkeeper lets in is told of its own alone
	case ${WLCTL_DOOR:-/${I##*/}} in */"${I##*/}") ;; *) return 0 ;; esac
	get_text "$I/checkpoints" || return 0
	answer installation "${I##*/}" "${text##*"$nl"}"
}
one_instance() {
	iid=${D##*/}
	get_text "$D/spec"
	case $? in
	0) ;;
	1) return 0 ;;
	*)
		answer torn "$iid"
		return 0
		;;
	esac
	IFS=$nl
	for r_l in $text; do
		out="${out}spec $iid $r_l$nl"
		case $r_l in package\ *) package=${r_l#package } ;; esac
	done
	unset IFS
	if is_sha256 "$package" && [ -r "$S/store/$package" ]; then
		answer manifest "$iid" "$(stat -c %s "$S/store/$package" 7>&-)"
	fi
}

request
get "$S/node_id" || refuse verify "$S/node_id is not there, or damaged"
answer node_id "$g"
if [ -z "$installation" ]; then
	subdirectories "$S"
	IFS=$nl
	for I in $dirs; do
		unset IFS
		if is_id "${I##*/}"; then one_installation; fi
	done
	unset IFS
	finish ok
fi
is_id "$installation" || refuse invalid_request 'installation is not an id'
I=$S/$installation
subdirectories "$I/instances"
IFS=$nl
for D in $dirs; do
	unset IFS
	package=
	if is_id "${D##*/}"; then one_instance; fi
done
unset IFS
if [ -e "$I/revoked" ]; then
	r_lines=$(sed -n 's/^package [a-z0-9][a-z0-9._-]*$/revoked &/p
		s/^artifact [a-z0-9][a-z0-9._-]*$/revoked &/p' "$I/revoked" 2>/dev/null)
	[ -z "$r_lines" ] || out="$out$r_lines$nl"
fi
finish ok
