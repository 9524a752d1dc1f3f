# shellcheck shell=sh
# lease: let a generation run until a later moment. A moment is absolute, so that a renewal which was
# on its way for long extends nothing; one that has run out is never renewed.
installation='' iid='' number=1 gen='' of_boot='' until=''
param() {
	case $1 in
	installation) installation=$2 ;;
	instance) iid=$2 ;;
	generation) gen=$2 ;;
	boot) of_boot=$2 ;;
	until) until=$2 ;;
	*) unknown_param "$1" ;;
	esac
}
request
instance_paths
is_number "$gen" && is_number "$until" || refuse invalid_request 'generation and until are numbers'
G=$D/g$gen
boot_id
[ "$of_boot" = "$boot" ] || refuse clock "the node was started anew: its boot is $boot"
lock 10
[ -e "$D/opnum" ] || refuse unknown_instance "$iid is not on this node"
[ -e "$G/open" ] || refuse superseded "generation $gen of $iid does not run"
load_spec || refuse verify "what $iid is made of is damaged on the node"
run_base
file=$run/$short/lease
load_lease "$file" && [ "$n_gen $n_boot" = "$gen $boot" ] ||
	refuse no_lease "generation $gen of $iid has no lease"
uptime
[ "$t" -lt "$((n_until * 10))" ] || refuse no_lease "the lease of generation $gen has run out"
if [ "$((until / 10))" -gt "$n_until" ]; then
	put_lease "$file" || refuse resources "$run cannot be written"
	n_until=$((until / 10))
fi
answer until "$((n_until * 10))"
finish ok
