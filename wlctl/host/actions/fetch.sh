# shellcheck shell=sh
# fetch: a part of one store file, for a controller that has lost it. Changes nothing. Whoever asked
# for it checks the whole file's hash: what is read here may have rotted.
sha256='' offset='' bytes=''
param() {
	case $1 in
	sha256) sha256=$2 ;;
	offset) offset=$2 ;;
	bytes) bytes=$2 ;;
	*) unknown_param "$1" ;;
	esac
}
request
is_sha256 "$sha256" || refuse invalid_request 'the hash is not a sha256'
is_number "$offset" && is_number "$bytes" || refuse invalid_request 'offset and bytes are numbers'
[ "$((offset % 65536))" = 0 ] && [ "$((bytes % 65536))" = 0 ] && [ "$bytes" -le 2097152 ] ||
	refuse invalid_request 'a part is 64 KiB, or up to 32 of them'
file=$S/store/$sha256
[ -f "$file" ] || refuse fetch 'the file is not in the store'
[ -r "$file" ] || refuse resources "$file cannot be read"
answer size "$(stat -c %s "$file")"
# Too long for a variable: it goes out line by line, and only `finish` says that it is whole.
printf '%s' "$out"
out=
dd if="$file" bs=65536 skip="$((offset / 65536))" count="$((bytes / 65536))" 2>/dev/null |
	base64 | sed 's/^/data /'
finish ok
