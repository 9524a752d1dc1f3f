# shellcheck shell=sh
# What became of processes and cgroups: readings, never guesses.
stat_of() { # PID -> st: its columns behind its name, which it chooses itself, ends of lines and all
	st=
	{
		while IFS= read -r st_l; do st=$st$st_l; done <"/proc/$1/stat"
	} 2>/dev/null
	st=${st##*") "}
}
alive() { # PID START: 0 while a thread of it runs; a pid without its start time says nothing
	stat_of "$1"
	a_want=$2
	# shellcheck disable=SC2086 # columns
	set -- $st
	[ "$#" -ge 20 ] && [ "${20}" = "$a_want" ] || return 1
	# a process whose main thread has ended shows Z while the others run
	case $1 in Z | X) [ "${18}" -gt 1 ] ;; *) return 0 ;; esac
}
inode() { # DIR -> i, empty when it is not there
	i=$(stat -c %i "$1" 2>/dev/null 7>&-) || i=
}
nap() { # a few ms; where sleep knows no fractions, a second
	sleep 0.005 2>/dev/null 7>&- || sleep 1 7>&-
}
populated() { # DIR -> p: 0, 1, or - when it cannot be read
	p=-
	{
		while read -r p_k p_v; do
			[ "$p_k" != populated ] || p=$p_v
		done <"$1/cgroup.events"
	} 2>/dev/null
}
load_record() { # GENERATION_DIR -> r_*: r_state is none, torn or whole
	r_state=none r_boot='' r_containment='' r_way='' r_uid=- r_shared=no r_cg='' r_ctl='' r_ctl_up='' r_limit=''
	r_limit_up='' r_init='' r_init_start='' r_leader='' r_leader_start='' r_given=''
	r_up='' r_unit=''
	[ -e "$1/record" ] || return 0
	r_state=torn
	{
		while IFS= read -r r_l; do
			case $r_l in *' .') ;; *) continue ;; esac
			# shellcheck disable=SC2086 # words
			set -- "$1" $r_l
			case $2 in
			gen)
				[ "$#" = 13 ] && dec "${12}" || continue
				r_boot=$4 r_containment=$5 r_way=$6 r_uid=$7 r_ctl=$8 r_ctl_up=$9
				r_limit=${10} r_limit_up=${11} r_cg=${d#-} r_state=whole
				case $r_uid in user:*) r_shared=yes r_uid=${r_uid#user:} ;; esac
				;;
			given)
				r_given=${r_l#given}
				r_given=${r_given% .}
				;;
			above) r_up=$3 r_unit=$4 ;;
			init) r_init=$3 r_init_start=$4 ;;
			leader) r_leader=$3 r_leader_start=$4 ;;
			esac
		done <"$1/record"
	} 2>/dev/null
}
launched_in() { # GENERATION -> e: the cgroup of its workload, or -
	e=-
	[ -z "$r_cg" ] || enc "$r_cg/limit/g$1"
}
life() { # PID START BOOT -> l: none, alive, gone, or unknown under another boot
	if [ -z "$1" ]; then
		l=none
	elif [ "$3" != "$boot" ]; then
		l=unknown
	elif alive "$1" "$2"; then
		l=alive
	else
		l=gone
	fi
}
exit_of() { # GENERATION_DIR -> x: exit status as a shell counts, or -; x_m: what ended it, or a dot
	x=- x_m=
	{ read -r x_k x_s x_t x_m <"$1/exit"; } 2>/dev/null || return 0
	if [ "$x_k" = exit ] && case $x_m in . | 'lease '*) true ;; *) false ;; esac && is_number "$x_s" && is_number "$x_t"; then x=$x_s; fi
}
generations() { # INSTANCE_DIR -> gens: the numbers that have a directory, ascending, one a line
	gens='' g_n='[1-9]'
	set +f
	while [ "${#g_n}" -le 75 ]; do # by their length, so that nothing has to be sorted
		# shellcheck disable=SC2231 # a pattern
		for g_d in "$1"/g$g_n/; do
			g_d=${g_d%/}
			if [ -d "$g_d" ]; then gens="${gens:+$gens$nl}${g_d##*/g}"; fi
		done
		g_n="${g_n}[0-9]"
	done
	set -f
}
forget_run() { # GENERATION of the instance at D, which was read as gone: that it was, is all that stays
	remove "${D:?}/gone" # a cut may have left one
	put "$D/pruned" "$1" && mv -T "$D/g$1" "$D/gone" 7>&- && remove "${D:?}/gone"
}
