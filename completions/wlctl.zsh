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
            --db|--message|--output|-m|-o) skip=value ;;
            -*) ;;
            *) case "$at/$word" in
                /config|/config/show|/help|/completion) at=$at/$word ;;
            esac ;;
        esac
    done
    if [[ -z $skip && $PREFIX == --*=* ]]; then
        last=${PREFIX%%=*} skip=value
        compset -P 1 '*='
    fi
    if [[ -n $skip ]]; then
        case $last in
            --db) files=yes ;;
            -o|--output) choices=(table wide json jsonl name) ;;
        esac
        if [[ -n $files ]]; then _files; elif (( $#choices )); then compadd -a choices; fi
        return
    fi
    case $at in
        '')
            commands=(
                'config:Settings, and who set them.'
                'help:Explain exit codes, error codes, states and the other words of the output.'
                'completion:Print the completions for a shell.'
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
    esac
    if [[ $PREFIX == -* ]]; then _describe option options; return; fi
    if (( $#commands )); then _describe command commands; fi
    if (( $#choices )); then compadd -a choices; fi
    if [[ -n $files ]]; then _files; fi
}

# Autoloaded, the file is the function's body; sourced, it says what to complete with it.
if [[ ${funcstack[1]-} == _wlctl ]]; then _wlctl "$@"; else compdef _wlctl wlctl; fi
