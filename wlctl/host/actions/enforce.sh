# shellcheck shell=sh
# enforce: put what makes a node verify for itself below /etc/wlctl, one directory an installation,
# and let wlctl's key open nothing but the doorkeeper there; or take both away. An administrator's
# login runs this, never wlctl's own key, and no doorkeeper lists it.
mode='' installation='' login='' sudo=no key='' door='' signers='' revoked='' actions='' projects=''
key_line=yes
param() {
	case $1 in
	mode) mode=$2 ;;
	installation) installation=$2 ;;
	login) login=$2 ;;
	sudo) sudo=$2 ;;
	key) key=$2 ;;
	key_line) key_line=$2 ;;
	doorkeeper) door=$2 ;;
	signers) signers=$2 ;;
	revoked) revoked=$2 ;;
	actions) actions=$2 ;;
	project) projects="$projects$2$nl" ;;
	*) unknown_param "$1" ;;
	esac
}
check_request() {
	case $mode in look | put | remove) ;; *) refuse invalid_request 'mode is look, put or remove' ;; esac
	is_id "$installation" || refuse invalid_request 'installation is not an id'
	case $login in '' | [!A-Za-z_]* | *[!A-Za-z0-9_.-]*) refuse invalid_request 'login is no login' ;; esac
	case $sudo.$key_line in yes.yes | yes.no | no.yes | no.no) ;; *) refuse invalid_request 'yes or no' ;; esac
	case $key in '' | *[!A-Za-z0-9+/=@.\ -]* | *' '*' '*) refuse invalid_request 'key is no public key' ;; esac
	[ "$me" = 0 ] || refuse unauthorized 'only root can do this: the login must be able to sudo'
	D=/etc/wlctl/$installation
	# a key that was revoked here once stays so until all of this is taken away
	revoked=$({
		printf '%s' "$revoked"
		cat "$D/revoked_keys" 2>/dev/null
	} | sed '/^$/d' | sort -u)
	[ -z "$revoked" ] || revoked=$revoked$nl
	start="exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin "
	[ "$sudo" = no ] || start="${start}sudo -n "
	start="$start/bin/sh $D/doorkeeper \\\"\$SSH_ORIGINAL_COMMAND\\\""
}
fit_login() { # what a workload may do as the login itself, nothing here could keep it from
	account
	[ "$uid" = 0 ] || [ "$sudo" = yes ] ||
		refuse governance "$login is neither root nor goes through sudo, so what runs there shares its uid"
}
try_keygen() { # with lists as they will be: what is understood otherwise would deny everybody, or nobody
	T=/run/wlctl.$nonce
	(umask 077 && mkdir "$T") 2>/dev/null || refuse resources "$T cannot be made"
	k_why=$(checked_keygen)
	rm -rf "${T:?}"
	[ -z "$k_why" ] || refuse runtime "$k_why"
}
checked_keygen() { # prints what is wrong
	k_s=$T/signers
	{
		: >"$T/none" && echo text >"$T/text" && printf '%s' "$revoked" >"$T/revoked" &&
			ssh-keygen -q -t ed25519 -N '' -C '' -f "$T/key" </dev/null &&
			ssh-keygen -q -Y sign -n wlctl-package -f "$T/key" "$T/text" </dev/null &&
			{
				printf '%s' "$signers"
				printf 'wlctl namespaces="wlctl-package" '
				cat "$T/key.pub"
			} >"$k_s" && [ "$(ssh-keygen -Y find-principals -s "$T/text.sig" -f "$k_s")" = wlctl ]
	} >/dev/null 2>&1 || {
		echo 'there is no ssh-keygen that can sign and find signers (OpenSSH 8.2 or newer)'
		return
	}
	if ! good_with "$T/none" || good_with "$T/key.pub"; then
		echo 'its ssh-keygen does not refuse revoked keys (-Y verify with -r)'
	elif ! good_with "$T/revoked"; then
		echo 'ssh-keygen there cannot read the list of revoked keys, and would deny every signer'
	fi
}
good_with() { # REVOKED
	ssh-keygen -Y verify -f "$k_s" -I wlctl -n wlctl-package -s "$T/text.sig" -r "$1" \
		<"$T/text" >/dev/null 2>&1
}
write() { # NAME TEXT
	{
		printf '%s' "$2" >"$D/$1.$nonce" && chmod 0644 "$D/$1.$nonce" &&
			dd if=/dev/null of="$D/$1.$nonce" conv=notrunc,fsync && mv -T "$D/$1.$nonce" "$D/$1"
	} 2>/dev/null || unclean resources "$D/$1 cannot be written"
	answer file "$D/$1"
}
put_files() {
	(umask 022 && mkdir -p "$D") 2>/dev/null && chmod 0755 /etc/wlctl "$D" ||
		refuse resources "$D cannot be made"
	write allowed_signers "$signers"
	write revoked_keys "$revoked"
	if [ -n "$projects" ]; then write projects "$projects"; else rm -f "$D/projects"; fi
	write actions.allow "$actions"
	write doorkeeper "$door"
}
put_key_line() {
	if [ -n "$k_was" ]; then write key_lines "$k_was"; fi
	rewrite enforced_line "$k_open" || unclean resources 'a file of keys cannot be written'
	k_shut=$k_shut$k_open k_open=
}
say_keys() {
	answer_text line "$k_line"
	say_files shut "$k_shut"
	say_files open "$k_open"
}
say_files() { # KEY FILES
	IFS=$nl
	for k_f in $2; do
		unset IFS
		answer_text "$1" "$k_f"
	done
	unset IFS
}
answer_text() { # KEY TEXT
	enc "$2"
	answer "$1" "$e"
}
take_away() {
	k_was=
	if [ -f "$D/key_lines" ]; then k_was=$(cat "$D/key_lines")$nl; fi
	rewrite opened_line "$k_files" || unclean resources 'a file of keys cannot be written'
	if [ -e "$D" ]; then
		rm -rf "${D:?}"
		[ ! -e "$D" ] || unclean resources "$D cannot be removed"
		answer_text removed "$D"
	fi
	rmdir /etc/wlctl 2>/dev/null && answer_text removed /etc/wlctl
}

request
check_request
account
settings
key_files
case $mode in
remove) take_away ;;
*)
	fit_login
	safe_settings
	try_keygen
	look_for_key
	if [ -z "$k_line" ]; then
		enforced_line "$key"
		k_line=$k_new
	fi
	if [ "$mode" = put ]; then
		put_files
		[ "$key_line" = no ] || put_key_line
	fi
	say_keys
	;;
esac
finish ok
