# shellcheck shell=sh
# stop, unload: end every generation of an instance; unload then removes what it had here.
installation='' iid='' number='' newest='' grace='' verb='' purge=no wait=yes
param() {
	case $1 in
	verb) verb=$2 ;;
	installation) installation=$2 ;;
	instance) iid=$2 ;;
	number) number=$2 ;;
	generation) newest=$2 ;;
	grace) grace=$2 ;;
	purge) purge=$2 ;;
	wait) wait=$2 ;;
	*) unknown_param "$1" ;;
	esac
}
stop_way() { # -> signal, grace: the sheet's where the request names none
	signal=TERM
	if load_spec && read_sheet "$sheet"; then
		signal=$s_signal
		[ -n "$grace" ] || grace=$s_grace
	fi
	[ -n "$grace" ] || grace=10000
}
answer_departed() { # it was unloaded before: say what was read then
	get_text "$I/departed/$iid" || unclean verify "what is known of the departed $iid is damaged"
	[ "$number" -ge "${text%%"$nl"*}" ] || refuse superseded "operation $number came before ${text%%"$nl"*}"
	text=${text#*"$nl"}
	enc "${text%%"$nl"*}"
	[ "$e" = - ] || answer kept "${text%%"$nl"*}"
	[ "${text#*"$nl"}" = "$text" ] || out="$out${text#*"$nl"}$nl"
	if [ -e "$D" ]; then # it was cut while it was removed
		generations "$D"
		take_away
	fi
	answer removed yes
	finish ok
}
take_away() { # under the lock, when it is known as departed
	keep_logs
	release_instance
	remove_instance || unclean resources "$D cannot be removed"
}
keep_logs() { # they outlive the instance for a while, where there is room; gc takes them away
	for gen in $gens; do
		for k_f in out out.1; do
			# what was cut a moment ago is empty, and still the file that is asked for
			[ -s "$D/g$gen/out.1" ] || [ -s "$D/g$gen/$k_f" ] || continue
			made_dir "$I/logs/$iid" && mv -T "$D/g$gen/$k_f" "$I/logs/$iid/g$gen${k_f#out}" 2>/dev/null 7>&-
		done
	done
}
keep_data() { # a directory that its login may not write cannot be moved by it
	mv -T "$D/data" "$kept" || { chmod u+w "$D/data" && mv -T "$D/data" "$kept"; }
} 2>/dev/null 7>&-
depart() { # remove it: what says so is written first, so that no cut can lose the instance silently
	relock
	still_ours || overtaken
	stays=-
	if [ "$purge" = yes ]; then
		remove "${kept:?}"
	elif [ -d "$D/data" ]; then
		made_dir "$I/kept" && keep_data || unclean resources "$D/data cannot be kept as $kept"
	fi
	if [ -e "$kept" ]; then
		enc "$kept"
		stays=$e
		answer kept "$e"
	fi
	made_dir "$I/departed" && put_text "$I/departed/$iid" "$number
$stays
${readings%"$nl"}" || unclean resources "$S cannot be written"
	take_away
	unlock
	answer removed yes
}

request
may_spend=yes
instance_paths
case $verb in stop | unload) ;; *) refuse invalid_request 'verb is stop or unload' ;; esac
is_number "$newest" || refuse invalid_request 'generation is not a number'
[ -z "$grace" ] || is_number "$grace" || refuse invalid_request 'grace is not a number'
case $purge in yes | no) ;; *) refuse invalid_request 'purge is yes or no' ;; esac
case $verb$wait in *yes | stopno) ;; *) refuse invalid_request 'wait is yes, or no for stop' ;; esac
state_dir || refuse resources "$S cannot be written"
mounts
cgroup_root
boot_id
get "$S/node_id" || refuse verify "$S/node_id is not there, or damaged"
answer node_id "$g"
lock 10
[ ! -e "$I/departed/$iid" ] || answer_departed
fence "$verb"
accept "$verb" stopped || refuse resources "$S cannot be written"
close_all "$newest"
unlock
stop_way
if [ "$wait" = no ]; then # whoever asks for the proof later ends what is left then
	asked=
	for gen in $gens; do
		G=$D/g$gen
		ask_leader "$signal"
	done
	finish ok
fi
end_all "$gens" "$grace" "$signal"
[ "$verb" = unload ] || finish ok
if [ "$clean" = yes ]; then
	depart
else
	answer removed no
fi
finish ok
