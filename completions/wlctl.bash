# bash completion for wlctl, printed by `wlctl completion bash`

_wlctl() {
    local word last='' at='' skip='' index current=${COMP_WORDS[COMP_CWORD]}
    local commands='' options='' choices='' files=''
    COMPREPLY=()
    for ((index = 1; index < COMP_CWORD; index++)); do
        word=${COMP_WORDS[index]}
        # bash makes words of `--output=json`: the option, `=` and the value
        if [[ $word == '=' ]]; then skip=value; continue; fi
        if [[ $skip ]]; then skip=''; last=''; continue; fi
        last=$word
        case $word in
            --) return ;;
            -*) case "$at $word" in
                *\ --action|*\ --address|*\ --after|*\ --against|*\ --agent|*\ --as|*\ --avoid|*\ --capability|*\ --containment|*\ --count|*\ --db|*\ --deadline|*\ --env|*\ --env-file|*\ --file|*\ --for|*\ --generation|*\ --grace|*\ --host-key|*\ --html|*\ --instance|*\ --keep|*\ --key|*\ --kind|*\ --known-hosts|*\ --label|*\ --lease|*\ --max-reschedules|*\ --message|*\ --name|*\ --node|*\ --output|*\ --pin|*\ --plan|*\ --plan-out|*\ --policy|*\ --port|*\ --prefer|*\ --principal|*\ --project|*\ --projects|*\ --reason|*\ --remove-capability|*\ --remove-label|*\ --secret|*\ --sign|*\ --signature|*\ --signer|*\ --since|*\ --snapshot|*\ --tail|*\ --tier|*\ --timeout|*\ --to|*\ --until|*\ --wait|*\ --watch|*\ --where|*\ --why|*\ --workload|*\ -l|*\ -m|*\ -o|/node/add\ -f) skip=value ;;
            esac ;;
            *) case "$at/$word" in
                /init|/doctor|/config|/config/show|/help|/completion|/package|/package/init|/package/build|/package/sign|/package/verify|/package/show|/package/ls|/package/fetch|/package/gc|/signer|/signer/add|/signer/ls|/signer/rm|/signer/import|/signer/export|/policy|/policy/show|/policy/check|/policy/apply|/policy/test|/approve|/approvals|/revoke|/unrevoke|/revocations|/node|/node/add|/node/ls|/node/show|/node/probe|/node/measure|/node/set|/node/cordon|/node/uncordon|/node/drain|/node/rekey|/node/enforce|/node/attest-dead|/node/rm|/place|/decisions|/explain|/ps|/status|/history|/logs|/wait|/prove|/start|/restart|/stop|/unload|/move|/reconcile|/alerts|/alerts/ls|/alerts/ack|/audit|/audit/log|/audit/verify|/audit/checkpoint|/audit/export|/ledger|/ledger/check|/ledger/backup|/ledger/restore|/ledger/rebuild|/ledger/migrate|/ledger/snapshot) at=$at/$word ;;
            esac ;;
        esac
    done
    if [[ $current == '=' ]]; then current=''; fi
    if [[ $skip ]]; then
        case "$at $last" in
            *\ --db) files=yes ;;
            *\ -o|*\ --output) COMPREPLY=($(compgen -W 'table wide json jsonl name' -- "$current")) ;;
            *\ --signer) files=yes ;;
            *\ --sign) files=yes ;;
            *\ --key) files=yes ;;
            *\ --policy) files=yes ;;
            *\ --signature) files=yes ;;
            *\ --known-hosts) files=yes ;;
            /node/add\ -f|*\ --file) files=yes ;;
            *\ --env-file) files=yes ;;
            *\ --wait) COMPREPLY=($(compgen -W 'running finished' -- "$current")) ;;
            *\ --plan-out) files=yes ;;
            *\ --plan) files=yes ;;
            *\ --snapshot) files=yes ;;
            *\ --html) files=yes ;;
            *\ --against) files=yes ;;
        esac
    else
        case $at in
            '') commands='init doctor config help completion package signer policy approve approvals revoke unrevoke revocations node place decisions explain ps status history logs wait prove start restart stop unload move reconcile alerts audit ledger' choices='' files=''
                options='--version -h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /init) commands='' choices='' files=''
                options='--signer -h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /doctor) commands='' choices='' files=''
                options='-h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /config) commands=show choices='' files=''
                options='-h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /config/show) commands='' choices='' files=''
                options='-h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /help) commands='' choices='' files=''
                options='-h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /completion) commands='' choices='bash zsh fish' files=''
                options='-h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /package) commands='init build sign verify show ls fetch gc' choices='' files=''
                options='-h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /package/init) commands='' choices='' files=yes
                options='-h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /package/build) commands='' choices='' files=yes
                options='--sign --agent -h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /package/sign) commands='' choices='' files=yes
                options='--key --agent -h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /package/verify) commands='' choices='' files=yes
                options='-h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /package/show) commands='' choices='' files=yes
                options='-h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /package/ls) commands='' choices='' files=''
                options='-h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /package/fetch) commands='' choices='' files=yes
                options='--node -h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /package/gc) commands='' choices='' files=''
                options='--dry-run -h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /signer) commands='add ls rm import export' choices='' files=''
                options='-h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /signer/add) commands='' choices='' files=yes
                options='-h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /signer/ls) commands='' choices='' files=''
                options='-h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /signer/rm) commands='' choices='' files=''
                options='--dry-run -h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /signer/import) commands='' choices='' files=yes
                options='--dry-run -h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /signer/export) commands='' choices='' files=''
                options='-h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /policy) commands='show check apply test' choices='' files=''
                options='-h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /policy/show) commands='' choices='' files=''
                options='-h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /policy/check) commands='' choices='' files=yes
                options='-h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /policy/apply) commands='' choices='' files=yes
                options='-h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /policy/test) commands='' choices='' files=yes
                options='--node --action --principal --project --emulated --policy -h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /approve) commands='' choices='' files=''
                options='--key --agent --signature --text -h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /approvals) commands='' choices='' files=''
                options='--all -h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /revoke) commands='' choices='package key artifact' files=''
                options='--reason --no-enforce --dry-run -h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /unrevoke) commands='' choices='package key artifact' files=''
                options='--reason -h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /revocations) commands='' choices='' files=''
                options='-h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /node) commands='add ls show probe measure set cordon uncordon drain rekey enforce attest-dead rm' choices='' files=''
                options='-h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /node/add) commands='' choices='' files=''
                options='--port --host-key --known-hosts --tier --sudo --ask-pass -f --file --dry-run -h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /node/ls) commands='' choices='' files=''
                options='-h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /node/show) commands='' choices='' files=''
                options='-h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /node/probe) commands='' choices='' files=''
                options='--all --ask-pass -h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /node/measure) commands='' choices='' files=''
                options='--dry-run -h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /node/set) commands='' choices='' files=''
                options='--tier --capability --label --remove-capability --remove-label --containment --address --port --sudo --no-sudo --ask-pass -h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /node/cordon) commands='' choices='' files=''
                options='--for -h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /node/uncordon) commands='' choices='' files=''
                options='--resume --dry-run -h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /node/drain) commands='' choices='' files=''
                options='--stop-rest --deadline --dry-run -h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /node/rekey) commands='' choices='' files=''
                options='--host-key --tier --ask-pass -h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /node/enforce) commands='' choices='' files=''
                options='--as --projects --leave-key --remove --ask-pass -h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /node/attest-dead) commands='' choices='' files=''
                options='--replaced -h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /node/rm) commands='' choices='' files=''
                options='--clean -h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /place) commands='' choices='' files=yes
                options='--name --dry-run --pin --prefer --avoid --where --count --allow-emulated --start --no-start --refresh --no-refresh --project --env --env-file --secret --lease --no-migrate --max-reschedules --key --wait --detach --timeout --rm-on-failure --plan-out --plan --why --snapshot --html --all -h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /decisions) commands='' choices='' files=''
                options='--workload --node --since -h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /explain) commands='' choices='' files=''
                options='--last --all --full --why --html -h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /ps) commands='' choices='' files=''
                options='--workload --node -l --label -h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /status) commands='' choices='' files=''
                options='--workload --node -l --label --all --stored -h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /history) commands='' choices='' files=''
                options='-h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /logs) commands='' choices='' files=''
                options='--tail --generation --previous -f --follow --raw -h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /wait) commands='' choices='' files=''
                options='--for --workload --node -l --label --all --timeout -h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /prove) commands='' choices='' files=''
                options='--workload --node -l --label --all --stored -h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /start) commands='' choices='' files=''
                options='--workload --node -l --label --all --dry-run -h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /restart) commands='' choices='' files=''
                options='--workload --node -l --label --all --grace --now --dry-run -h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /stop) commands='' choices='' files=''
                options='--workload --node -l --label --all --grace --now --no-wait --timeout --dry-run -h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /unload) commands='' choices='' files=''
                options='--workload --node -l --label --all --grace --now --purge --timeout --dry-run -h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /move) commands='' choices='' files=''
                options='--to --stop-first --timeout --dry-run -h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /reconcile) commands='' choices='' files=''
                options='--node --dry-run --quiet -q --watch -h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /alerts) commands='ls ack' choices='' files=''
                options='-h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /alerts/ls) commands='' choices='' files=''
                options='--all -h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /alerts/ack) commands='' choices='' files=''
                options='--all --dry-run -h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /audit) commands='log verify checkpoint export' choices='' files=''
                options='-h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /audit/log) commands='' choices='' files=''
                options='--kind --instance --node --since --until --tail -f --follow -h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /audit/verify) commands='' choices='' files=''
                options='--against --witnesses -h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /audit/checkpoint) commands='' choices='' files=''
                options='-h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /audit/export) commands='' choices='' files=''
                options='--after -h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /ledger) commands='check backup restore rebuild migrate snapshot' choices='' files=''
                options='-h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /ledger/check) commands='' choices='' files=''
                options='-h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /ledger/backup) commands='' choices='' files=yes
                options='--keep -h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /ledger/restore) commands='' choices='' files=yes
                options='--replace -h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /ledger/rebuild) commands='' choices='' files=''
                options='--port --sudo --tier --host-key --known-hosts -h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /ledger/migrate) commands='' choices='' files=''
                options='-h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /ledger/snapshot) commands='' choices='' files=''
                options='-h --help --db -o --output -m --message --yes --no-color --debug' ;;
        esac
        case $current in
            -*) COMPREPLY=($(compgen -W "$options" -- "$current")) ;;
            *) COMPREPLY=($(compgen -W "$commands $choices" -- "$current")) ;;
        esac
        if [[ $current == -* ]]; then files=''; fi
    fi
    if [[ $files ]]; then
        compopt -o filenames 2>/dev/null
        while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$current")
    fi
}
complete -F _wlctl wlctl
