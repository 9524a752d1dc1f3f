"""Completions: what the three shells offer, asked of the shells themselves."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.program import Program
from wlctl.cli.completion import Shell, script

FILES = Path(__file__).parents[2] / "completions"


@pytest.mark.parametrize("shell", Shell)
def test_the_file_is_what_the_program_prints(
    shell: Shell, program: Program, golden: Callable[[Path, str], None]
) -> None:
    golden(FILES / f"wlctl.{shell}", script(shell))

    assert program.run("completion", shell).stdout == script(shell)


def in_bash(words: list[str], directory: Path) -> list[str]:
    """Complete the last word as bash does: with `=` a word of its own."""
    code = (
        f'source {FILES / "wlctl.bash"}; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _wlctl; '
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    split = [part for word in words for part in word.replace("=", "\0=\0").split("\0")]
    return run(["bash", "--norc", "-c", code, "bash", *split], directory)


def in_zsh(words: list[str], directory: Path) -> list[str]:
    """Complete the last word with zsh's own functions replaced by ones that print."""
    code = (
        "compdef() { : }\n"
        "_describe() { local i; for i in ${(P)2}; do print -r -- ${${i%%:*}}; done }\n"
        "compadd() { local i; for i in ${(P)2}; do print -r -- $i; done }\n"
        "_files() { print -rl -- *(N) }\n"
        "compset() { PREFIX=${PREFIX#*=} }\n"
        f"source {FILES / 'wlctl.zsh'}\n"
        'words=("$@") CURRENT=$# PREFIX=${@[-1]}; _wlctl; true\n'
    )
    offered = run(["zsh", "-f", "-c", code, "zsh", *words], directory)
    last = words[-1].rpartition("=")[2]
    return [word for word in offered if word.startswith(last)]


def in_fish(words: list[str], directory: Path) -> list[str]:
    """Complete the last word as fish does."""
    code = f'source {FILES / "wlctl.fish"}; complete -C "$argv"'
    offered = run(["fish", "--no-config", "-c", code, " ".join(words)], directory)
    return [line.partition("\t")[0].rpartition("=")[2] for line in offered]


def run(argv: list[str], directory: Path) -> list[str]:
    assert shutil.which(argv[0]), f"{argv[0]} is not installed; scripts/test installs it"
    done = subprocess.run(
        argv,
        cwd=directory,
        env={"PATH": "/usr/bin:/bin", "HOME": str(directory), "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=True,
        timeout=20,
    )
    assert done.stderr == ""
    return [line for line in done.stdout.splitlines() if line]


@pytest.mark.parametrize("complete", [in_bash, in_zsh, in_fish], ids=["bash", "zsh", "fish"])
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        pytest.param("wlctl conf", {"config"}, id="a command"),
        pytest.param("wlctl config ", {"show"}, id="a command of a group"),
        pytest.param("wlctl --db x config ", {"show"}, id="past an option and its value"),
        pytest.param("wlctl --yes config ", {"show"}, id="past a flag"),
        pytest.param("wlctl -m config config ", {"show"}, id="past a value like a command"),
        pytest.param("wlctl config show --no", {"--no-color"}, id="an option"),
        pytest.param("wlctl --vers", {"--version"}, id="an option of the program itself"),
        pytest.param("wlctl config show -o j", {"json", "jsonl"}, id="a value"),
        pytest.param("wlctl config show --output=j", {"json", "jsonl"}, id="after ="),
        pytest.param("wlctl completion ", {"bash", "zsh", "fish"}, id="an argument of a list"),
        pytest.param("wlctl config show -m ", set(), id="nothing where anything may stand"),
        pytest.param("wlctl config show ", set(), id="nothing where nothing may stand"),
        pytest.param("wlctl config show -- ", set(), id="nothing after --"),
        pytest.param("wlctl config show --db led", {"ledger of ours"}, id="a file"),
        pytest.param("wlctl node set elm --label led", set(), id="no file for a label"),
        pytest.param("wlctl node add -f led", {"ledger of ours"}, id="a file, where -f has one"),
        pytest.param("wlctl logs -f --no", {"--no-color"}, id="no value, where -f has none"),
        pytest.param("wlctl node add -f x --ti", {"--tier"}, id="past a value, where -f has one"),
    ],
)
def test_a_shell_offers(
    line: str,
    offered: set[str],
    complete: Callable[[list[str], Path], list[str]],
    tmp_path: Path,
) -> None:
    (tmp_path / "ledger of ours").touch()

    found = complete(line.split(" "), tmp_path)

    assert {word.replace("\\ ", " ") for word in found} == offered
