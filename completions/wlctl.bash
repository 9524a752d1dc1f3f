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
            --db|--message|--output|-m|-o) skip=value ;;
            -*) ;;
            *) case "$at/$word" in
                /config|/config/show|/help|/completion) at=$at/$word ;;
            esac ;;
        esac
    done
    if [[ $current == '=' ]]; then current=''; fi
    if [[ $skip ]]; then
        case $last in
            --db) files=yes ;;
            -o|--output) COMPREPLY=($(compgen -W 'table wide json jsonl name' -- "$current")) ;;
        esac
    else
        case $at in
            '') commands='config help completion' choices='' files=''
                options='--version -h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /config) commands=show choices='' files=''
                options='-h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /config/show) commands='' choices='' files=''
                options='-h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /help) commands='' choices='' files=''
                options='-h --help --db -o --output -m --message --yes --no-color --debug' ;;
            /completion) commands='' choices='bash zsh fish' files=''
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
