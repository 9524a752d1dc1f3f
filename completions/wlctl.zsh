#compdef wlctl
# zsh completion for wlctl, printed by `wlctl completion zsh`

_wlctl() {
    local word last='' at='' skip='' files=''
    local -a commands options choices
    for word in "${(@)words[2,CURRENT-1]}"; do
        if [[ -n $skip ]]; then skip=''; last=''; continue; fi
        last=$word
        case $word in
            --) return 1 ;;
            -*) case "$at $word" in
                *\ --action|*\ --address|*\ --after|*\ --against|*\ --agent|*\ --as|*\ --avoid|*\ --capability|*\ --containment|*\ --count|*\ --db|*\ --deadline|*\ --env|*\ --env-file|*\ --file|*\ --for|*\ --generation|*\ --grace|*\ --host-key|*\ --html|*\ --instance|*\ --keep|*\ --key|*\ --kind|*\ --known-hosts|*\ --label|*\ --lease|*\ --max-reschedules|*\ --message|*\ --name|*\ --node|*\ --output|*\ --pin|*\ --plan|*\ --plan-out|*\ --policy|*\ --port|*\ --prefer|*\ --principal|*\ --project|*\ --projects|*\ --reason|*\ --remove-capability|*\ --remove-label|*\ --secret|*\ --sign|*\ --signature|*\ --signer|*\ --since|*\ --snapshot|*\ --tail|*\ --tier|*\ --timeout|*\ --to|*\ --until|*\ --wait|*\ --watch|*\ --where|*\ --why|*\ --workload|*\ -l|*\ -m|*\ -o|/node/add\ -f) skip=value ;;
            esac ;;
            *) case "$at/$word" in
                /init|/doctor|/config|/config/show|/help|/completion|/package|/package/init|/package/build|/package/sign|/package/verify|/package/show|/package/ls|/package/fetch|/package/gc|/signer|/signer/add|/signer/ls|/signer/rm|/signer/import|/signer/export|/policy|/policy/show|/policy/check|/policy/apply|/policy/test|/approve|/approvals|/revoke|/unrevoke|/revocations|/node|/node/add|/node/ls|/node/show|/node/probe|/node/measure|/node/set|/node/cordon|/node/uncordon|/node/drain|/node/rekey|/node/enforce|/node/attest-dead|/node/rm|/place|/decisions|/explain|/ps|/status|/history|/logs|/wait|/prove|/start|/restart|/stop|/unload|/move|/reconcile|/alerts|/alerts/ls|/alerts/ack|/audit|/audit/log|/audit/verify|/audit/checkpoint|/audit/export|/ledger|/ledger/check|/ledger/backup|/ledger/restore|/ledger/rebuild|/ledger/migrate|/ledger/snapshot) at=$at/$word ;;
            esac ;;
        esac
    done
    if [[ -z $skip && $PREFIX == --*=* ]]; then
        last=${PREFIX%%=*} skip=value
        compset -P 1 '*='
    fi
    if [[ -n $skip ]]; then
        case "$at $last" in
            *\ --db) files=yes ;;
            *\ -o|*\ --output) choices=(table wide json jsonl name) ;;
            *\ --signer) files=yes ;;
            *\ --sign) files=yes ;;
            *\ --key) files=yes ;;
            *\ --policy) files=yes ;;
            *\ --signature) files=yes ;;
            *\ --known-hosts) files=yes ;;
            /node/add\ -f|*\ --file) files=yes ;;
            *\ --env-file) files=yes ;;
            *\ --wait) choices=(running finished) ;;
            *\ --plan-out) files=yes ;;
            *\ --plan) files=yes ;;
            *\ --snapshot) files=yes ;;
            *\ --html) files=yes ;;
            *\ --against) files=yes ;;
        esac
        if [[ -n $files ]]; then _files; elif (( $#choices )); then compadd -a choices; fi
        return
    fi
    case $at in
        '')
            commands=(
                'init:Make the ledger and the keys of an installation.'
                'doctor:Examine ledger, keys, trust, fleet, passes and alerts; say what to do about what is wrong.'
                'config:Settings, and who set them.'
                'help:Explain exit codes, error codes, states and the other words of the output, and commands.'
                'completion:Print the completions for a shell.'
                'package:Packages: described, built, signed, verified.'
                'signer:Signers: whose signatures admit a package.'
                'policy:The policy: what is permitted, to whom, on which nodes.'
                'approve:Approve a request that the policy deferred; it can be carried out once, within a day.'
                'approvals:List what the policy deferred and can still be approved or carried out, the newest first.'
                'revoke:Start nothing any more that a package, a key or a file (`artifact`, by its sha256) is in.'
                'unrevoke:Take a revocation back, in this ledger: what it named can be started again.'
                'revocations:List what is revoked, and why; the newest last.'
                'node:The fleet: the machines that wlctl places on.'
                'place:Choose a node for a workload, say why, start it there, and wait until it is up.'
                'decisions:List what was decided, oldest first, dry runs and what fitted nowhere included.'
                'explain:Say why a decision came out as it did: of a name, the newest decision about it.'
                'ps:List the current copies as they were seen last.'
                'status:Ask the nodes of copies how these are, and say where ledger and node differ.'
                'history:List every step of a copy'\''s life with its reason, and what was read that says so.'
                'logs:Print the end of what a copy wrote to its standard output and error.'
                'wait:Wait until every copy is in a state; `node/NAME` waits for a node.'
                'prove:Ask nodes for readings of every run of copies, and judge whether no process of them is left.'
                'start:Start copies where they are staged; what runs already is left as it is.'
                'restart:Stop copies and, once that is proven, start them; a stop that failed starts nothing.'
                'stop:Stop copies, and return when it is proven that no process of them is left.'
                'unload:Stop copies as `stop` does, and remove them; their names are free then.'
                'move:Move a running copy to another node, by its own order and its own package.'
                'reconcile:Look at every node once, finish what was interrupted, and carry out what was asked for.'
                'alerts:What is wrong and waits for somebody.'
                'audit:The chain: what happened, in order, and whether the record of it is whole.'
                'ledger:The ledger itself: checked, backed up, brought back, migrated.'
            )
            options=(
                '--version:Show the version'
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /init)
            options=(
                '--signer:Accept what this public key signs, as yours'
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /doctor)
            options=(
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /config)
            commands=(
                'show:Show every setting, its value, and where that came from.'
            )
            options=(
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /config/show)
            options=(
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /help)
            options=(
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /completion)
            choices=(bash zsh fish)
            options=(
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /package)
            commands=(
                'init:Write a small package to start from; it builds and runs as it is.'
                'build:Check a package and write its manifest and launch sheets.'
                'sign:Put a signature beside a package'\''s manifest, as `ssh-keygen -Y sign` would make it.'
                'verify:Verify a package as `place` would: manifest, signatures, then every file.'
                'show:Show what a package says of itself, whether or not anybody vouches for it.'
                'ls:List the packages that were placed or tried, whether the store holds them, and who has them.'
                'fetch:Bring files that the store has lost back from a node that holds them.'
                'gc:Remove files from the store that no current copy needs, nor the version it had before.'
            )
            options=(
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /package/init)
            files=yes
            options=(
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /package/build)
            files=yes
            options=(
                '--sign:Sign it too, with this key'
                '--agent:Sign it too, with this key of ssh-agent'
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /package/sign)
            files=yes
            options=(
                '--key:A private key, or the .pub of one in ssh-agent'
                '--agent:A key of ssh-agent, as ssh-add -l names it'
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /package/verify)
            files=yes
            options=(
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /package/show)
            files=yes
            options=(
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /package/ls)
            options=(
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /package/fetch)
            files=yes
            options=(
                '--node:Ask this node; not those that had the package'
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /package/gc)
            options=(
                '--dry-run:Only say what would be removed'
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /signer)
            commands=(
                'add:Accept what this key signs from now on.'
                'ls:List the signers.'
                'rm:Accept a signer no longer.'
                'import:Accept the signers of an allowed_signers file: all of them, or nobody.'
                'export:Print the signers as an allowed_signers file for `ssh-keygen -Y verify -n wlctl-package`.'
            )
            options=(
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /signer/add)
            files=yes
            options=(
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /signer/ls)
            options=(
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /signer/rm)
            options=(
                '--dry-run:Only say which copies nobody would vouch for'
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /signer/import)
            files=yes
            options=(
                '--dry-run:Only say who would be new'
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /signer/export)
            options=(
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /policy)
            commands=(
                'show:Print the policy in force, as its file was.'
                'check:Say what is wrong with a policy file; nothing is put in force.'
                'apply:Put the policy of a file in force, with its hash in the chain.'
                'test:Show what the gate would answer for a package on a node, by which rule, and what it weighs.'
            )
            options=(
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /policy/show)
            options=(
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /policy/check)
            files=yes
            options=(
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /policy/apply)
            files=yes
            options=(
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /policy/test)
            files=yes
            options=(
                '--node:Where it would run'
                '--action:What would be done with it'
                '--principal:Who would ask; you, otherwise'
                '--project:Of the order'
                '--emulated:As if an emulated variant had been chosen'
                '--policy:This policy, not the one in force'
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /approve)
            options=(
                '--key:Sign with this key; its .pub, if ssh-agent has it'
                '--agent:Sign with this key of ssh-agent'
                '--signature:Take this signature of what --text prints'
                '--text:Print what is to be signed, and nothing else'
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /approvals)
            options=(
                '--all:Also what was carried out, and what nobody did in time'
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /revoke)
            choices=(package key artifact)
            options=(
                '--reason:Why; kept in the chain'
                '--no-enforce:Leave alone what runs; needed in this version'
                '--dry-run:Only say which copies it would hit'
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /unrevoke)
            choices=(package key artifact)
            options=(
                '--reason:Why; kept in the chain'
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /revocations)
            options=(
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /node)
            commands=(
                'add:Look at a machine once and add it to the fleet.'
                'ls:List the fleet as it was seen last.'
                'show:Explain a node: what it is, what it has, what runs there, and what is odd.'
                'probe:Look at nodes again, all at once, and record what each shows.'
                'measure:Measure processors, memory and disk of nodes, for less than three seconds each.'
                'set:Say what a node is and has, beside what its probes see, or where it is.'
                'cordon:Let nothing new be placed on a node; what runs there goes on.'
                'uncordon:Let a node take workloads again.'
                'drain:Cordon a node and move every copy that runs there, each as `wlctl move` does.'
                'rekey:Take the host key and the identity that a node shows now.'
                'enforce:Have a node verify for itself what it is sent, so that wlctl'\''s key is no shell key there.'
                'attest-dead:Vouch that a machine will not come back with what ran there.'
                'rm:Take a node out of the fleet; it must hold nothing any more.'
            )
            options=(
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /node/add)
            options=(
                '--port:Of its sshd; 0 for what ssh would use'
                '--host-key:The fingerprint it must show; asks otherwise'
                '--known-hosts:A known_hosts file that has its key, instead of asking'
                '--tier:discovered, paired (runs signed work) or trusted'
                '--sudo:Run actions through `sudo -n`'
                '--ask-pass:Log in with a password that is typed here; it is kept nowhere'
                '-f:Add what FILE lists instead, a line each: NAME [USER@]HOST [KEY=VALUE…]; keys are tier, port, sudo, host_key and label.K'
                '--file:Add what FILE lists instead, a line each: NAME [USER@]HOST [KEY=VALUE…]; keys are tier, port, sudo, host_key and label.K'
                '--dry-run:With --file: read all of it and say what each line would add; contact nothing, do nothing'
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /node/ls)
            options=(
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /node/show)
            options=(
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /node/probe)
            options=(
                '--all:Look at every node'
                '--ask-pass:Log in with a password that is typed here; it is kept nowhere'
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /node/measure)
            options=(
                '--dry-run:List them; do nothing'
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /node/set)
            options=(
                '--tier:discovered, paired (runs signed work) or trusted'
                '--capability:It has this, e.g. sensor.cam.front,resolution=1080; with `,exclusive` for one instance at a time; repeat'
                '--label:A node label, for --where label.KEY=VALUE; repeat'
                '--remove-capability:It no longer has this; repeat'
                '--remove-label:It no longer has the label; repeat'
                '--containment:leader-only: start workloads there even where it has no cgroup to give them'
                '--address:Reach it there from now on, if it answers there'
                '--port:Of its sshd there; 0 for what ssh would use'
                '--sudo:Run actions there through `sudo -n`, or no longer'
                '--no-sudo:Run actions there through `sudo -n`, or no longer'
                '--ask-pass:Log in with a password that is typed here; it is kept nowhere'
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /node/cordon)
            options=(
                '--for:End it by itself, e.g. after 30m'
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /node/uncordon)
            options=(
                '--resume:Start what a drain has stopped there'
                '--dry-run:Say what it would start, and do nothing'
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /node/drain)
            options=(
                '--stop-rest:Stop what cannot be moved; `uncordon --resume` starts'
                '--deadline:Begin nothing more after that, e.g. 10m'
                '--dry-run:Say where everything would go, and do nothing'
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /node/rekey)
            options=(
                '--host-key:The fingerprint it must show; asks otherwise'
                '--tier:discovered, paired (runs signed work) or trusted'
                '--ask-pass:Log in with a password that is typed here; it is kept nowhere'
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /node/enforce)
            options=(
                '--as:An administrator'\''s login there: root, or one with sudo'
                '--projects:Take work of these projects only; '\''*'\'' takes all. Kept until changed'
                '--leave-key:Print the key'\''s line, and leave authorized_keys alone'
                '--remove:Take all of it away again'
                '--ask-pass:Log in with a password that is typed here; it is kept nowhere'
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /node/attest-dead)
            options=(
                '--replaced:Of the machine that had the name before `rekey`'
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /node/rm)
            options=(
                '--clean:Take away what wlctl has there first, and say what it was'
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /place)
            files=yes
            options=(
                '--name:What to call the copy; else the workload'\''s'
                '--dry-run:Decide, explain and record; do nothing else'
                '--pin:This node or none'
                '--prefer:Liked, most liked first; repeat'
                '--avoid:Taken when nothing else fits; repeat'
                '--where:The node must have it: ID, ID[.ATTR]=VALUE, >=, <=, '\'' in A,B'\'', '\'' has VALUE'\''; label.K is short for node.label.K; repeat'
                '--count:So many copies, NAME.1 to NAME.N'
                '--allow-emulated:Emulated variants may be chosen'
                '--start:Start it, or only stage it'
                '--no-start:Start it, or only stage it'
                '--refresh:Look again at nodes whose facts ran out'
                '--no-refresh:Look again at nodes whose facts ran out'
                '--project:Kept with the order; the policy may ask for it'
                '--env:Set a variable that the package allows; no secret: it is kept. Repeat'
                '--env-file:Lines K=V, as if each was given with --env, and kept as those: for secrets there is --secret'
                '--secret:Take the package'\''s secret NAME from that entry of your [secrets]; repeat'
                '--lease:Its node ends it when `reconcile` has not renewed it for so long; else its own'
                '--no-migrate:Never move it by itself, whatever its package says'
                '--max-reschedules:How often it may be moved by itself; else its own'
                '--key:Spent by the first order with it: a repeated command places once'
                '--wait:Return when it is up and healthy, or (a job) when it has finished'
                '--detach:Return when it was started; wait for nothing'
                '--timeout:How long to wait until it is up, e.g. 90s'
                '--rm-on-failure:Unload what did not come up, instead of keeping it'
                '--plan-out:With --dry-run: keep what was found, for --plan'
                '--plan:Place only if it comes out as kept; else exit 8'
                '--why:Show all checks of NODE; repeat'
                '--snapshot:Decide from a saved fleet (`wlctl ledger snapshot`), with --dry-run; the package may be a workload.toml that was never built'
                '--html:Also write why as a page that stands alone'
                '--all:List every node, however many there are'
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /decisions)
            options=(
                '--workload:Only about this workload'
                '--node:Only those that chose it'
                '--since:Only since: 2h, or RFC 3339'
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /explain)
            options=(
                '--last:The decision that was made last'
                '--all:All decisions about a name, newest first'
                '--full:List every node, however many there are'
                '--why:Show all checks of NODE; repeat'
                '--html:Also write it as a page that stands alone'
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /ps)
            options=(
                '--workload:All copies of this workload'
                '--node:All copies on this node'
                '-l:All copies that carry it; repeat'
                '--label:All copies that carry it; repeat'
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /status)
            options=(
                '--workload:All copies of this workload'
                '--node:All copies on this node'
                '-l:All copies that carry it; repeat'
                '--label:All copies that carry it; repeat'
                '--all:All current copies'
                '--stored:Ask no node: say what is known'
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /history)
            options=(
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /logs)
            options=(
                '--tail:So many lines'
                '--generation:Which run of it; else the newest'
                '--previous:The run before the newest'
                '-f:Go on with what it prints from now on'
                '--follow:Go on with what it prints from now on'
                '--raw:Print it as it is, control characters and all'
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /wait)
            options=(
                '--for:A state, or healthy; of a node alive, suspect or dead'
                '--workload:All copies of this workload'
                '--node:All copies on this node'
                '-l:All copies that carry it; repeat'
                '--label:All copies that carry it; repeat'
                '--all:All current copies'
                '--timeout:At most so long'
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /prove)
            options=(
                '--workload:All copies of this workload'
                '--node:All copies on this node'
                '-l:All copies that carry it; repeat'
                '--label:All copies that carry it; repeat'
                '--all:All current copies'
                '--stored:Ask no node: show what was read before'
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /start)
            options=(
                '--workload:All copies of this workload'
                '--node:All copies on this node'
                '-l:All copies that carry it; repeat'
                '--label:All copies that carry it; repeat'
                '--all:All current copies'
                '--dry-run:List them; do nothing'
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /restart)
            options=(
                '--workload:All copies of this workload'
                '--node:All copies on this node'
                '-l:All copies that carry it; repeat'
                '--label:All copies that carry it; repeat'
                '--all:All current copies'
                '--grace:Between stop signal and kill, e.g. 30s; else its own'
                '--now:Kill at once, as --grace 0s'
                '--dry-run:List them; do nothing'
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /stop)
            options=(
                '--workload:All copies of this workload'
                '--node:All copies on this node'
                '-l:All copies that carry it; repeat'
                '--label:All copies that carry it; repeat'
                '--all:All current copies'
                '--grace:Between stop signal and kill, e.g. 30s; else its own'
                '--now:Kill at once, as --grace 0s'
                '--no-wait:Ask them to end, and wait for no proof'
                '--timeout:Wait at most so long for the node'\''s answer'
                '--dry-run:List them; do nothing'
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /unload)
            options=(
                '--workload:All copies of this workload'
                '--node:All copies on this node'
                '-l:All copies that carry it; repeat'
                '--label:All copies that carry it; repeat'
                '--all:All current copies'
                '--grace:Between stop signal and kill, e.g. 30s; else its own'
                '--now:Kill at once, as --grace 0s'
                '--purge:Remove data it was to keep'
                '--timeout:Wait at most so long for the node'\''s answer'
                '--dry-run:List them; do nothing'
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /move)
            options=(
                '--to:This node or none'
                '--stop-first:Prove the old copy stopped before another is placed'
                '--timeout:How long the new copy may take to be up'
                '--dry-run:Say where it would go, and do nothing'
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /reconcile)
            options=(
                '--node:Only this node; repeat'
                '--dry-run:Look, say what would be done, and do nothing'
                '--quiet:Print only when something was done or is wrong'
                '-q:Print only when something was done or is wrong'
                '--watch:Stay, and do it again so often'
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /alerts)
            commands=(
                'ls:List what is open, the oldest first; `wlctl alerts` alone does the same.'
                'ack:Say that somebody knows: nobody is told again while the trouble lasts.'
            )
            options=(
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /alerts/ls)
            options=(
                '--all:Also those whose cause is gone'
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /alerts/ack)
            options=(
                '--all:All that are open'
                '--dry-run:List them; do nothing'
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /audit)
            commands=(
                'log:List what happened, oldest first.'
                'verify:Verify every link of the chain, and every row that an event tells of.'
                'checkpoint:Print a signed checkpoint of the chain, to be kept where nobody here can change it.'
                'export:Print every event as one line of JSON, with all that its hash was made of.'
            )
            options=(
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /audit/log)
            options=(
                '--kind:Only of this kind, or of a family such as `node.*`'
                '--instance:Only about this instance: name, id or beginning of an id'
                '--node:Only about this node'
                '--since:Only since: 2h, or RFC 3339'
                '--until:Only until: 2h, or RFC 3339'
                '--tail:Only so many of the newest; 10 with --follow'
                '-f:Go on with what happens from now on'
                '--follow:Go on with what happens from now on'
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /audit/verify)
            options=(
                '--against:A checkpoint that was kept elsewhere'
                '--witnesses:Ask every node for the checkpoints it keeps'
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /audit/checkpoint)
            options=(
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /audit/export)
            options=(
                '--after:Only events after SEQ'
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /ledger)
            commands=(
                'check:Check the ledger below its chain: file, pages, references, tables.'
                'backup:Copy the ledger as it is at one moment, while others go on writing, and print where.'
                'restore:Put a backup in the place of the ledger, and the keys beside it that are missing.'
                'rebuild:Ask the nodes what they keep, and let the ledger know it again; nothing on them is changed.'
                'migrate:Bring the ledger'\''s tables to this version of wlctl, after a backup.'
                'snapshot:Print the fleet as a decision sees it: nodes, instances, weights, the policy; no secrets.'
            )
            options=(
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /ledger/check)
            options=(
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /ledger/backup)
            files=yes
            options=(
                '--keep:Remove older backups there but the newest N'
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /ledger/restore)
            files=yes
            options=(
                '--replace:Also where there is a ledger; it is kept aside'
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /ledger/rebuild)
            options=(
                '--port:Of their sshd; 0 for what ssh would use'
                '--sudo:Run actions through `sudo -n`'
                '--tier:Of those that the signed list of the fleet lacks'
                '--host-key:The fingerprint it must show; asks otherwise'
                '--known-hosts:Take only host keys that this file has'
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /ledger/migrate)
            options=(
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
        /ledger/snapshot)
            options=(
                '-h:Show this text'
                '--help:Show this text'
                '--db:The ledger'
                '-o:One of table, wide, json, jsonl, name'
                '--output:One of table, wide, json, jsonl, name'
                '-m:Keep TEXT in the chain'
                '--message:Keep TEXT in the chain'
                '--yes:Answer every question with yes'
                '--no-color:No colour'
                '--debug:Show a traceback with an error'
            )
            ;;
    esac
    if [[ $PREFIX == -* ]]; then _describe option options; return; fi
    if (( $#commands )); then _describe command commands; fi
    if (( $#choices )); then compadd -a choices; fi
    if [[ -n $files ]]; then _files; fi
}

# Autoloaded, the file is the function's body; sourced, it says what to complete with it.
if [[ ${funcstack[1]-} == _wlctl ]]; then _wlctl "$@"; else compdef _wlctl wlctl; fi
