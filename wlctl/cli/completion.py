"""`wlctl completion`: what the shells complete, made from the tree of commands itself.

The scripts are static: pressing a key starts no program and reads no file of this directory.
"""

import shlex
from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated

import typer

from wlctl.cli import tree
from wlctl.cli.options import session_of
from wlctl.cli.tree import Option, Place


class Shell(StrEnum):
    """A shell there are completions for."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(
    ctx: typer.Context, shell: Annotated[Shell, typer.Argument(help="The shell to complete in.")]
) -> None:
    """Print the completions for a shell.

    bash: source the output. zsh: save it as `_wlctl` in a directory of fpath. fish: save it as
    ~/.config/fish/completions/wlctl.fish.
    """
    session_of(ctx).streams.data(script(shell))


def script(shell: Shell) -> str:
    """Write the completions for one shell."""
    places = tree.places()
    match shell:
        case Shell.BASH:
            return _bash(places)
        case Shell.ZSH:
            return _zsh(places)
        case Shell.FISH:
            return _fish(places)


def _valued(places: list[Place], any_place: str) -> list[str]:
    """Give patterns of `PLACE OPTION` for the options that a value follows.

    Args:
        any_place: Matches any place, and the space behind it.
    """
    both = _of_both_ways(places)
    found = {
        f"{_space(place, any_place, name in both)}{name}"
        for place in places
        for option in place.options
        if option.valued
        for name in option.names
    }
    return sorted(found)


def _of_both_ways(places: list[Place]) -> set[str]:
    """List the names that a value follows at some places and not at others: `logs -f`."""
    ways = {
        valued: {
            name
            for place in places
            for option in place.options
            if option.valued is valued
            for name in option.names
        }
        for valued in (True, False)
    }
    return ways[True] & ways[False]


def _space(place: Place, any_place: str, is_told_apart: bool) -> str:
    return f"{'' if not place.words else _at(place)}{any_place[1:]}" if is_told_apart else any_place


def _value_cases(
    places: list[Place], any_place: str, line: str, choices: str, files: str
) -> Iterator[str]:
    """Write one case per option with a value; but for those told apart, one for all places."""
    both, seen = _of_both_ways(places), set()
    for place in places:
        for option in (one for one in place.options if one.valued):
            patterns = [f"{_space(place, any_place, name in both)}{name}" for name in option.names]
            patterns = [pattern for pattern in patterns if pattern not in seen]
            seen.update(patterns)
            if patterns and (option.choices or option.files):
                do = choices.format(" ".join(option.choices)) if option.choices else files
                yield line.format("|".join(patterns), do)


_BASH = """\
# bash completion for wlctl, printed by `wlctl completion bash`

_wlctl() {{
    local word last='' at='' skip='' index current=${{COMP_WORDS[COMP_CWORD]}}
    local commands='' options='' choices='' files=''
    COMPREPLY=()
    for ((index = 1; index < COMP_CWORD; index++)); do
        word=${{COMP_WORDS[index]}}
        # bash makes words of `--output=json`: the option, `=` and the value
        if [[ $word == '=' ]]; then skip=value; continue; fi
        if [[ $skip ]]; then skip=''; last=''; continue; fi
        last=$word
        case $word in
            --) return ;;
            -*) case "$at $word" in
                {valued}) skip=value ;;
            esac ;;
            *) case "$at/$word" in
                {paths}) at=$at/$word ;;
            esac ;;
        esac
    done
    if [[ $current == '=' ]]; then current=''; fi
    if [[ $skip ]]; then
        case "$at $last" in
{values}
        esac
    else
        case $at in
{places}
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
}}
complete -F _wlctl wlctl
"""


def _bash(places: list[Place]) -> str:
    lines = []
    for place in places:
        names = [name for option in place.options for name in option.names]
        commands = " ".join(name for name, _ in place.commands)
        lines.append(
            f"            {_at(place)}) commands={shlex.quote(commands)} "
            f"choices={shlex.quote(' '.join(place.choices))} "
            f"files={'yes' if place.files else chr(39) * 2}\n"
            f"                options={shlex.quote(' '.join(names))} ;;"
        )
    words = "COMPREPLY=($(compgen -W '{}' -- \"$current\"))"
    values = _value_cases(places, r"*\ ", "            {}) {} ;;", words, "files=yes")
    return _BASH.format(
        valued="|".join(_valued(places, r"*\ ")),
        paths="|".join(_at(place) for place in places if place.words),
        values="\n".join(values),
        places="\n".join(lines),
    )


_ZSH = """\
#compdef wlctl
# zsh completion for wlctl, printed by `wlctl completion zsh`

_wlctl() {{
    local word last='' at='' skip='' files=''
    local -a commands options choices
    for word in "${{(@)words[2,CURRENT-1]}}"; do
        if [[ -n $skip ]]; then skip=''; last=''; continue; fi
        last=$word
        case $word in
            --) return 1 ;;
            -*) case "$at $word" in
                {valued}) skip=value ;;
            esac ;;
            *) case "$at/$word" in
                {paths}) at=$at/$word ;;
            esac ;;
        esac
    done
    if [[ -z $skip && $PREFIX == --*=* ]]; then
        last=${{PREFIX%%=*}} skip=value
        compset -P 1 '*='
    fi
    if [[ -n $skip ]]; then
        case "$at $last" in
{values}
        esac
        if [[ -n $files ]]; then _files; elif (( $#choices )); then compadd -a choices; fi
        return
    fi
    case $at in
{places}
    esac
    if [[ $PREFIX == -* ]]; then _describe option options; return; fi
    if (( $#commands )); then _describe command commands; fi
    if (( $#choices )); then compadd -a choices; fi
    if [[ -n $files ]]; then _files; fi
}}

# Autoloaded, the file is the function's body; sourced, it says what to complete with it.
if [[ ${{funcstack[1]-}} == _wlctl ]]; then _wlctl "$@"; else compdef _wlctl wlctl; fi
"""


def _zsh(places: list[Place]) -> str:
    lines = []
    for place in places:
        commands = [_described(name, about) for name, about in place.commands]
        options = [_described(n, option.about) for option in place.options for n in option.names]
        lines.append(f"        {_at(place)})")
        if place.commands:
            lines.append(_array("commands", commands))
        if place.choices:
            lines.append(f"            choices=({' '.join(place.choices)})")
        if place.files:
            lines.append("            files=yes")
        lines += [_array("options", options), "            ;;"]
    values = _value_cases(places, r"*\ ", "            {}) {} ;;", "choices=({})", "files=yes")
    return _ZSH.format(
        valued="|".join(_valued(places, r"*\ ")),
        paths="|".join(_at(place) for place in places if place.words),
        values="\n".join(values),
        places="\n".join(lines),
    )


def _array(name: str, items: list[str]) -> str:
    inner = "\n".join(f"                {item}" for item in items)
    return f"            {name}=(\n{inner}\n            )"


def _described(name: str, about: str) -> str:
    escaped = name.replace(":", r"\:")
    return _quoted(f"{escaped}:{about}")


def _quoted(text: str) -> str:
    """Quote for a POSIX shell, always, so that the scripts read evenly."""
    return "'" + text.replace("'", "'\\''") + "'"


_FISH = """\
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
            case '-*'
                switch "$at $word"
                    case {valued}
                        set skip value
                end
            case '*'
                switch "$at/$word"
                    case {paths}
                        set at "$at/$word"
                end
        end
    end
    test "$at" = "$argv[1]"
end

complete -c wlctl -f
{places}
"""


def _fish(places: list[Place]) -> str:
    lines = []
    for place in places:
        here = f'complete -c wlctl -n "__wlctl_at {_at(place)}"'
        lines += [f"{here} -a {name} -d {_fished(about)}" for name, about in place.commands]
        if place.choices:
            lines.append(f"{here} -a {_fished(' '.join(place.choices))}")
        if place.files:
            lines.append(f"{here} -F")
        lines += [f"{here}{_fish_option(option)}" for option in place.options]
    return _FISH.format(
        valued=" ".join(map(_quoted, _valued(places, "* "))),
        paths=" ".join(_at(place) for place in places if place.words),
        places="\n".join(lines),
    )


def _fish_option(option: Option) -> str:
    names = "".join(
        f" -l {name[2:]}" if name.startswith("--") else f" -s {name[1:]}" for name in option.names
    )
    value = ""
    if option.choices:
        value = f" -x -a {_fished(' '.join(option.choices))}"
    elif option.valued:
        value = " -r -F" if option.files else " -x"
    return f"{names}{value} -d {_fished(option.about)}"


def _fished(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _at(place: Place) -> str:
    return "".join(f"/{word}" for word in place.words) or "''"
