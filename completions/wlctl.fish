# fish completion for wlctl, printed by `wlctl completion fish`

function __wlctl_at -d 'Succeed where exactly these commands were typed'
    set -l at
    set -l skip
    for word in (commandline -opc)[2..]
        if set -q skip[1]
            set -e skip
            continue
        end
        switch $word
            case --
                return 1
            case --db --message --output -m -o
                set skip value
            case '-*'
            case '*'
                switch "$at/$word"
                    case /config /config/show /help /completion
                        set at "$at/$word"
                end
        end
    end
    test "$at" = "$argv[1]"
end

complete -c wlctl -f
complete -c wlctl -n "__wlctl_at ''" -a config -d 'Settings, and who set them.'
complete -c wlctl -n "__wlctl_at ''" -a help -d 'Explain exit codes, error codes, states and the other words of the output.'
complete -c wlctl -n "__wlctl_at ''" -a completion -d 'Print the completions for a shell.'
complete -c wlctl -n "__wlctl_at ''" -l version -d 'Show the version'
complete -c wlctl -n "__wlctl_at ''" -s h -l help -d 'Show this text'
complete -c wlctl -n "__wlctl_at ''" -l db -r -F -d 'The ledger'
complete -c wlctl -n "__wlctl_at ''" -s o -l output -x -a 'table wide json jsonl name' -d 'One of table, wide, json, jsonl, name'
complete -c wlctl -n "__wlctl_at ''" -s m -l message -x -d 'Keep TEXT in the chain'
complete -c wlctl -n "__wlctl_at ''" -l yes -d 'Answer every question with yes'
complete -c wlctl -n "__wlctl_at ''" -l no-color -d 'No colour'
complete -c wlctl -n "__wlctl_at ''" -l debug -d 'Show a traceback with an error'
complete -c wlctl -n "__wlctl_at /config" -a show -d 'Show every setting, its value, and where that came from.'
complete -c wlctl -n "__wlctl_at /config" -s h -l help -d 'Show this text'
complete -c wlctl -n "__wlctl_at /config" -l db -r -F -d 'The ledger'
complete -c wlctl -n "__wlctl_at /config" -s o -l output -x -a 'table wide json jsonl name' -d 'One of table, wide, json, jsonl, name'
complete -c wlctl -n "__wlctl_at /config" -s m -l message -x -d 'Keep TEXT in the chain'
complete -c wlctl -n "__wlctl_at /config" -l yes -d 'Answer every question with yes'
complete -c wlctl -n "__wlctl_at /config" -l no-color -d 'No colour'
complete -c wlctl -n "__wlctl_at /config" -l debug -d 'Show a traceback with an error'
complete -c wlctl -n "__wlctl_at /config/show" -s h -l help -d 'Show this text'
complete -c wlctl -n "__wlctl_at /config/show" -l db -r -F -d 'The ledger'
complete -c wlctl -n "__wlctl_at /config/show" -s o -l output -x -a 'table wide json jsonl name' -d 'One of table, wide, json, jsonl, name'
complete -c wlctl -n "__wlctl_at /config/show" -s m -l message -x -d 'Keep TEXT in the chain'
complete -c wlctl -n "__wlctl_at /config/show" -l yes -d 'Answer every question with yes'
complete -c wlctl -n "__wlctl_at /config/show" -l no-color -d 'No colour'
complete -c wlctl -n "__wlctl_at /config/show" -l debug -d 'Show a traceback with an error'
complete -c wlctl -n "__wlctl_at /help" -s h -l help -d 'Show this text'
complete -c wlctl -n "__wlctl_at /help" -l db -r -F -d 'The ledger'
complete -c wlctl -n "__wlctl_at /help" -s o -l output -x -a 'table wide json jsonl name' -d 'One of table, wide, json, jsonl, name'
complete -c wlctl -n "__wlctl_at /help" -s m -l message -x -d 'Keep TEXT in the chain'
complete -c wlctl -n "__wlctl_at /help" -l yes -d 'Answer every question with yes'
complete -c wlctl -n "__wlctl_at /help" -l no-color -d 'No colour'
complete -c wlctl -n "__wlctl_at /help" -l debug -d 'Show a traceback with an error'
complete -c wlctl -n "__wlctl_at /completion" -a 'bash zsh fish'
complete -c wlctl -n "__wlctl_at /completion" -s h -l help -d 'Show this text'
complete -c wlctl -n "__wlctl_at /completion" -l db -r -F -d 'The ledger'
complete -c wlctl -n "__wlctl_at /completion" -s o -l output -x -a 'table wide json jsonl name' -d 'One of table, wide, json, jsonl, name'
complete -c wlctl -n "__wlctl_at /completion" -s m -l message -x -d 'Keep TEXT in the chain'
complete -c wlctl -n "__wlctl_at /completion" -l yes -d 'Answer every question with yes'
complete -c wlctl -n "__wlctl_at /completion" -l no-color -d 'No colour'
complete -c wlctl -n "__wlctl_at /completion" -l debug -d 'Show a traceback with an error'
