# shellcheck shell=sh
# receive: one file into the store. What arrives is kept under a name of its own until it is whole,
# synced and what its hash says; the lock is not needed, and never held while a channel is read.
sha256=
param() {
	case $1 in
	sha256) sha256=$2 ;;
	*) unknown_param "$1" ;;
	esac
}
request
is_sha256 "$sha256" || refuse invalid_request 'the hash is not a sha256'
state_dir || refuse resources "$S cannot be written"
part=$S/store/.$nonce
drop() { # CODE TEXT
	rm -f "$part"
	refuse "$1" "$2"
}
if [ "$data_bytes" = 0 ]; then
	true 2>/dev/null >"$part" || refuse resources "$S/store cannot be written"
else
	dd bs=65536 count="$data_bytes" iflag=fullblock,count_bytes of="$part" conv=fsync 2>/dev/null ||
		drop resources "$S/store cannot take $data_bytes bytes"
fi
exec </dev/null
got=$(wc -c <"$part")
[ "$((got))" = "$data_bytes" ] || drop fetch "$((got)) of $data_bytes bytes arrived"
sum=$(sha256sum <"$part")
[ "${sum%% *}" = "$sha256" ] || drop verify 'what arrived is not what was announced'
chmod 0444 "$part" && mv -T "$part" "$S/store/$sha256" || drop resources "$S/store cannot be written"
finish ok
