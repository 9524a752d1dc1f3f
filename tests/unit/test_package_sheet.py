"""The launch sheet: line by line what a node's shell reads."""

from pathlib import Path
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.packages import MINIMAL, with_line
from wlctl.model.package import PackageFile
from wlctl.package.sheet import path_of, render
from wlctl.package.template import Reference, split
from wlctl.package.workload import parse

FULL = Path(__file__).with_name("full.toml").read_text(encoding="utf-8")
FILES = (
    PackageFile("assets/a b.txt", "0444", "a" * 64, 3),
    PackageFile("bin/web", "0555", "b" * 64, 5),
)

SHEET = f"""\
wlctl-launch-sheet 1
workload web
version 1.4.2
kind service
variant x86_64
arg ./bin/web
arg --port
arg ${{PORT}}
args append
env DATA=${{WLCTL_DATA_DIR}}/db
env LOG=info
env_allow FEATURE_%2A
user web
group video
capability CAP_NET_BIND_SERVICE
secret API_KEY
secret DB_PASSWORD
port http auto
port metrics 9100
data keep
stop_signal QUIT
stop_grace_ms 20000
cpu_milli 500
memory_bytes 268435456
pids 512
disk_bytes 1000000000
file 0444 {"a" * 64} assets/a%20b.txt
file 0555 {"b" * 64} bin/web
health_kind http
health_target http://127.0.0.1:${{PORT}}/healthz
health_interval_ms 5000
health_timeout_ms 1500
health_misses 2
health_max_age_ms 0
end
"""


def test_a_sheet_says_everything_in_its_order() -> None:
    workload = parse(FULL)

    assert render(workload, workload.variants[0], FILES) == SHEET


def test_a_variant_with_a_command_of_its_own_runs_that() -> None:
    workload = parse(FULL)

    lines = render(workload, workload.variants[1], ()).splitlines()

    assert [line for line in lines if line.startswith("arg ")] == ["arg ./bin/web.py"]


def test_what_is_not_said_has_no_line() -> None:
    workload = parse(MINIMAL)

    keys = {line.split(" ")[0] for line in render(workload, workload.variants[0], ()).splitlines()}

    assert not keys & {"env", "env_allow", "user", "group", "capability", "secret", "port", "file"}
    assert not any(key.startswith("health_") for key in keys)


@pytest.mark.parametrize(
    ("word", "line"),
    [
        pytest.param("", "arg ", id="an empty argument is one"),
        pytest.param("a b", "arg a%20b", id="a space"),
        pytest.param("50%", "arg 50%25", id="the mark of the encoding itself"),
        pytest.param("$$HOME", "arg %24HOME", id="a dollar that is only a dollar"),
        pytest.param("${HOME}", "arg ${HOME}", id="a variable stays open"),
        pytest.param("{x}", "arg %7Bx%7D", id="braces that are only braces"),
        pytest.param("$HOME/x", "arg ${HOME}/x", id="a variable among words"),
        pytest.param("a\nend\n", "arg a%0Aend%0A", id="a line cannot be added"),
        pytest.param("é", "arg %C3%A9", id="the bytes of UTF-8"),
        pytest.param("-._~/:=,@+", "arg -._~/:=,@+", id="what stays as it is"),
        pytest.param("'\"\\`;&|<>*?", "arg %27%22%5C%60%3B%26%7C%3C%3E%2A%3F", id="a shell's own"),
    ],
)
def test_an_argument_is_encoded(word: str, line: str) -> None:
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    workload = parse(with_line(f'command = ["true", "{escaped}"]'))

    assert render(workload, workload.variants[0], ()).splitlines()[6] == line


@given(st.text().filter(lambda text: "\0" not in text))
def test_every_argument_comes_back(word: str) -> None:
    escaped = "".join(f"\\U{ord(character):08x}" for character in word.replace("$", "$$"))
    workload = parse(with_line(f'command = ["true", "{escaped}"]'))

    line = render(workload, workload.variants[0], ()).splitlines()[6]

    assert line.isascii()
    assert unquote(line.removeprefix("arg ")) == word


@given(st.lists(st.one_of(st.just("${HOME}"), st.text(max_size=5)), max_size=5))
def test_variables_and_words_stay_apart(parts: list[str]) -> None:
    words = [part if part == "${HOME}" else part.replace("$", "$$") for part in parts]
    text = "".join(words).replace("\0", "")
    escaped = "".join(f"\\U{ord(character):08x}" for character in text)
    workload = parse(with_line(f'command = ["true", "{escaped}"]'))

    line = render(workload, workload.variants[0], ()).splitlines()[6]

    pieces = split(text)
    assert pieces is not None
    assert line.count("${HOME}") == sum(isinstance(piece, Reference) for piece in pieces)


@pytest.mark.parametrize(
    ("health", "target"),
    [
        pytest.param('exec = "./bin/check $x"', "bin/check%20%24x", id="a path is no template"),
        pytest.param('heartbeat = "beat"', "beat", id="a heartbeat lies in the run directory"),
        pytest.param('tcp = "${PORT}"', "${PORT}", id="a port is one"),
    ],
)
def test_a_health_target_is_a_path_or_a_template(health: str, target: str) -> None:
    workload = parse(MINIMAL + f'[ports]\nhttp = "auto"\n[health]\n{health}\n')

    assert f"health_target {target}\n" in render(workload, workload.variants[0], ())


def test_a_sheet_lies_under_its_variants_name() -> None:
    assert path_of("x86_64") == "sheets/x86_64"
