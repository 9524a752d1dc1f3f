# shellcheck shell=sh
# The fence: an operation's number grows with each, and the node does nothing for a lower one.
# shellcheck disable=SC2154 # the action's parameters
instance_paths() {
	is_id "$installation" || refuse invalid_request 'installation is not an id'
	is_id "$iid" || refuse invalid_request 'instance is not an id'
	is_number "$number" && [ "$number" -gt 0 ] || refuse invalid_request 'number is not a number from 1'
	I=$S/$installation
	D=$I/instances/$iid
	kept=$I/kept/$iid
}
read_number() { # -> have (0 for none, - when torn), have_verb, desired (- when not known)
	have_verb='' desired=-
	get "$D/opnum"
	case $? in
	0)
		field 1 "$g" && have=$f
		field 2 "$g" && have_verb=$f
		field 3 "$g" && desired=${f:--}
		is_number "$have" || have=-
		;;
	1) have=0 ;;
	*) have=- ;;
	esac
}
fence() { # VERB, under the lock -> same: yes when this very operation was accepted before
	same=no
	read_number
	if [ "$have" = - ]; then
		case $1 in stop | unload | settle) return 0 ;; esac
		refuse verify "the operation number of $iid is damaged on the node"
	fi
	[ "$number" -ge "$have" ] || refuse superseded "operation $number came after $have"
	[ "$number" != "$have" ] || {
		same=yes
		[ "$have_verb" = "$1" ] || refuse invalid_request "operation $number is a $have_verb"
	}
}
accept() { # VERB DESIRED, under the lock: from here on a lower number is refused
	made_dir "$D" && put "$D/opnum" "$number $1 $2"
}
still_ours() { # under the lock: no later operation was accepted meanwhile
	read_number
	[ "$have" = "$number" ]
}
overtaken() { # under the lock: a later operation has the instance; what it removed stays removed
	if [ -e "$I/departed/$iid" ]; then remove "${D:?}"; fi
	out=
	refuse superseded "operation $have came after $number"
}
