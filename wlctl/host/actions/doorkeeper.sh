# shellcheck shell=sh
# doorkeeper REQUEST: runs one of the texts that actions.allow beside it lists, and nothing else. It
# is all that wlctl's key starts on an enforced node: with an empty environment, as root, for the
# installation whose directory it lies in. What is run is what was hashed: it never is a file.
set -fu
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C
export PATH LC_ALL
unset IFS ENV BASH_ENV CDPATH
umask 077
WLCTL_DOOR=${0%/*} nonce=-
no() {
	printf 'refused %s\nwhy %s\n' "$nonce" "$1"
	exit 77
}
# shellcheck disable=SC2086 # words, and no pattern becomes a name
set -- ${1-}
[ "$#" = 4 ] && [ "$1" = wlctl-action ] || no form
case $2 in *[!0-9a-f]*) no form ;; esac
case $3 in '' | 0* | *[!0-9]* | ???????*) no form ;; esac
case $4 in *[!0-9a-f]*) no form ;; esac
[ "${#2}" = 64 ] && [ "${#4}" -ge 16 ] && [ "${#4}" -le 64 ] || no form
nonce=$4
modes=$(stat -c %u%A /etc/wlctl "$WLCTL_DOOR" "$WLCTL_DOOR/doorkeeper" "$WLCTL_DOOR/actions.allow" \
	"$WLCTL_DOOR/allowed_signers" "$WLCTL_DOOR/revoked_keys" 2>/dev/null) || no unsafe
for mode in $modes; do
	case $mode in 0?????-??-?) ;; *) no unsafe ;; esac
done
listed=no
while read -r digest _; do
	[ "$digest" != "$2" ] || listed=yes
done <"$WLCTL_DOOR/actions.allow"
[ "$listed" = yes ] || no unlisted
text=$(timeout -s KILL 20 dd bs="$3" count=1 iflag=fullblock 2>/dev/null && echo .) || no short
sum=$(printf %s "${text%.}" | sha256sum)
[ "${sum%% *}" = "$2" ] || no short
set -- "$nonce"
eval "${text%.}"
