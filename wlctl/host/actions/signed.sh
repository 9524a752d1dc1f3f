# shellcheck shell=sh
# On an enforced node: what runs is what a signer on the node's own list signed, file by file. The
# manifest lies in the store under its own hash, which is the package's id, so that nobody can put
# another in its place between the looks.
# shellcheck disable=SC2154 # the sheet's words, and what the other parts read
verify_signed() { # PACKAGE SHEET, after read_sheet: 0, or 1 and `problem`
	[ -n "${WLCTL_DOOR:-}" ] || return 0
	v_m=$S/store/$1
	if ! is_sha256 "$1" || [ ! -f "$v_m" ]; then
		problem="fetch the manifest of $1 is not in the node's store"
		return 1
	fi
	v_sum=$(sha256sum <"$v_m" 7>&-)
	if [ "${v_sum%% *}" != "$1" ]; then
		rm -f "$v_m" 7>&-
		problem='verify the manifest in the store was changed; it was thrown away'
		return 1
	fi
	if ! signed_by_accepted; then
		problem="verify no signer on the node's own list signed $1, or the key is revoked there"
		return 1
	fi
	if ! listed_there "$2"; then
		problem='verify the launch sheet, or a file of it, is not what the signed manifest lists'
		return 1
	fi
}
signed_by_accepted() { # of the manifest v_m: one good signature is enough, as it is for wlctl
	v_ok=1
	for v_s in $o_signatures; do
		dec "$v_s" && made_here "$G/signature" "$d" || continue
		v_who=$(ssh-keygen -Y find-principals -s "$G/signature" -f "$WLCTL_DOOR/allowed_signers" \
			2>/dev/null </dev/null 7>&-) || continue
		for v_p in $v_who; do
			ssh-keygen -Y verify -f "$WLCTL_DOOR/allowed_signers" -I "$v_p" -n wlctl-package \
				-s "$G/signature" -r "$WLCTL_DOOR/revoked_keys" <"$v_m" >/dev/null 2>&1 7>&- || continue
			v_ok=0
			break 2
		done
	done
	rm -f "$G/signature" 7>&-
	return "$v_ok"
}
listed_there() { # SHEET: it and its files are objects of the manifest v_m, mode, path and hash alike
	# canonical JSON: a quote within a text is escaped, so these marks stand between objects only;
	# a size is a number, and a text that somebody chose can never be one
	sed 's/\[{"mode":"/[\n{"mode":"/
s/,"size_bytes":[0-9]*},\{0,1\}/,#}\n/g' "$v_m" >"$G/listed" 2>/dev/null 7>&- || return 1
	grep -q "^{\"mode\":\"0444\",\"path\":\"sheets/[^\"\\\\]*\",\"sha256\":\"$1\",#}\$" "$G/listed" 7>&- ||
		return 1
	v_want=
	IFS=$nl
	for v_l in $s_files; do
		v_h=${v_l#* }
		dec "${v_h#* }" || return 1
		case $d in *[\\\"]*) d=$(printf '%s' "$d" | sed 's/[\\"]/\\&/g' 7>&-) ;; esac
		v_want="$v_want{\"mode\":\"${v_l%% *}\",\"path\":\"$d\",\"sha256\":\"${v_h%% *}\",#}$nl"
	done
	unset IFS
	v_odd=1
	if [ -n "$v_want" ]; then # 1: nothing is left over; anything else is no
		printf '%s' "$v_want" | grep -vxF -f "$G/listed" >/dev/null 2>&1 7>&-
		v_odd=$?
	fi
	rm -f "$G/listed" 7>&-
	[ "$v_odd" = 1 ]
}
accepted_project() { # PROJECT: refused unless the node takes it
	[ -e "${WLCTL_DOOR:-/nonexistent}/projects" ] || return 0
	while IFS= read -r v_l; do
		[ "$v_l" != "$1" ] || return 0
	done <"$WLCTL_DOOR/projects"
	refuse unauthorized "the node does not take work of project ${1:-(none)}"
}
