"""`workload.toml`: what is said of what cannot be read."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.packages import MINIMAL, with_line
from wlctl.errors import InvalidFile
from wlctl.model.ids import PackageId
from wlctl.model.package import Manifest
from wlctl.model.placement import PlaceRequest
from wlctl.package.manifest import spec_of
from wlctl.package.workload import parse
from wlctl.placement.limits import check_request

FULL = Path(__file__).with_name("full.toml").read_text(encoding="utf-8")
KEYS = [number for number, line in enumerate(FULL.splitlines()) if " = " in line]


def added(section: str) -> str:
    return f"{MINIMAL}{section}\n"


def predicate(rest: str) -> str:
    return added(f'[requires]\ncommon = [{{ id = "a", where = [{{ attr = "x", {rest} }}] }}]')


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("kind = ", "workload.toml is not TOML: ", id="no TOML, with the line"),
        pytest.param('name = "a"\nname = "b"\nc = 1\n', "line 2", id="a key twice, with the line"),
        pytest.param("a = " + "[" * 5000, "nested too deeply", id="nested without end"),
        pytest.param(
            with_line('kindd = "x"\nkind = "job"').replace("kind = ", "knd = ", 1),
            "knd: unknown key; did you mean kind?",
            id="the nearest key is named",
        ),
        pytest.param(added("[run.evn]"), "run.evn: unknown key; did you mean env?", id="below"),
        pytest.param(
            added("zzz = 1"),
            "variant[0].zzz: unknown key; known here: command, exec",
            id="all keys are named where none is near",
        ),
        pytest.param('kind = "service"', "name: missing", id="a key that must be there"),
        pytest.param(
            with_line('kind = "servce"'),
            'kind: "servce"; did you mean service?',
            id="a word that is none",
        ),
        pytest.param(
            with_line("name = 7"),
            "name: 7 is a number; write text in quotes",
            id="a number for a name",
        ),
        pytest.param(with_line('name = "Web"'), 'name: "Web" is not lower-case', id="upper case"),
        pytest.param(with_line('name = "a..b"'), "two dots in a row", id="two dots in a name"),
        pytest.param(with_line('name = "../x"'), "name:", id="a path for a name"),
        pytest.param(with_line(f'name = "{"a" * 101}"'), "name:", id="a name one too long"),
        pytest.param(
            with_line("version = 1.4"),
            "version: 1.4 is a number; write text in quotes",
            id="a version without quotes",
        ),
        pytest.param(
            with_line('version = "1@2"'), "version:", id="what separates name and version"
        ),
        pytest.param(
            with_line('command = "./bin/web"'),
            'run.command: "./bin/web" is not a list',
            id="a command line for argv",
        ),
        pytest.param(with_line("command = [1]"), "run.command[0]: 1 is not text", id="a number"),
        pytest.param(
            with_line("command = []"), "run.command: missing, and variant any", id="nothing to run"
        ),
        pytest.param(
            with_line('command = [""]'),
            "run.command[0]: the program's name is empty",
            id="an empty program",
        ),
        pytest.param(with_line('command = ["a\\u0000b"]'), "NUL", id="a NUL in argv"),
        pytest.param(
            with_line('command = ["a", "$5"]'),
            'run.command[1]: "$5" has a $',
            id="a dollar that is nothing",
        ),
        pytest.param(
            with_line('command = ["$PROT"]') + '[ports]\na = "auto"\n',
            "run.command[0]: $PROT is not known; did you mean PORT?",
            id="an unknown variable",
        ),
        pytest.param(
            with_line('command = ["$PORT"]'), "$PORT is not known", id="no port, no $PORT"
        ),
        pytest.param(
            with_line('command = ["$PORT_B"]') + '[ports]\na = "auto"\n',
            "$PORT_B is not known; did you mean PORT_A?",
            id="a port that is not there",
        ),
        pytest.param(
            added('[lifecycle]\nswitch = ["$NOPE"]'),
            "lifecycle.switch[0]: $NOPE",
            id="an unknown variable in the switch",
        ),
        pytest.param(added("[run2]\n"), "run2: unknown key; did you mean run?", id="a table"),
        pytest.param(
            with_line('command = ["true"]\nenv = { A = 1 }'),
            "run.env.A: 1 is not text",
            id="a number in the environment",
        ),
        pytest.param(
            with_line('command = ["true"]\nenv = { "A-B" = "" }'),
            "run.env.A-B",
            id="no variable's name",
        ),
        pytest.param(
            with_line('command = ["true"]\nenv = { WLCTL_NODE = "" }'),
            "wlctl sets this",
            id="a variable that is given",
        ),
        pytest.param(
            with_line('command = ["true"]\nenv = { PORT_A = "" }'),
            "wlctl sets this",
            id="a port's variable",
        ),
        pytest.param(
            with_line('command = ["true"]\nenv = { UID = "7" }'),
            "run.env.UID: shells keep",
            id="a variable that some shells cannot set",
        ),
        pytest.param(
            with_line('command = ["true"]\nenv_allow = ["SHLVL"]'),
            "never taken from a command line",
            id="nor by an order",
        ),
        pytest.param(
            with_line('command = ["true"]\nsecrets = ["K"]\nenv = { K_FILE = "" }'),
            "wlctl sets this",
            id="a secret's file",
        ),
        pytest.param(
            with_line('command = ["true"]\nenv = { A = "$B", B = "" }'),
            "$B is not known",
            id="the environment does not refer to itself",
        ),
        pytest.param(
            with_line('command = ["true"]\nenv_allow = ["LD_*"]'),
            "never taken from a command line",
            id="the loader's variables",
        ),
        pytest.param(
            with_line('command = ["true"]\nenv_allow = ["PATH"]'),
            "never taken from a command line",
            id="the path",
        ),
        pytest.param(
            with_line('command = ["true"]\nenv_allow = ["*"]'), "run.env_allow[0]", id="everything"
        ),
        pytest.param(
            with_line('command = ["true"]\nenv_allow = ["A*B"]'),
            "run.env_allow[0]",
            id="a star in the middle",
        ),
        pytest.param(with_line('command = ["true"]\nuser = "a b"'), "run.user", id="no login"),
        pytest.param(
            with_line('command = ["true"]\ngroups = ["a", "a"]'),
            "stands there twice",
            id="a group twice",
        ),
        pytest.param(
            with_line('command = ["true"]\ncapabilities = ["CAP_NET_ADMI"]'),
            'run.capabilities[0]: "CAP_NET_ADMI"; did you mean CAP_NET_ADMIN?',
            id="no capability",
        ),
        pytest.param(
            with_line('command = ["true"]\nsecrets = ["a-b"]'),
            "run.secrets[0]",
            id="no secret's name",
        ),
        pytest.param(with_line('command = ["true"]\nargs = "all"'), "run.args", id="no rule"),
        pytest.param(
            added("[ports]\nhttp = 0"),
            'ports.http: 0 is not "auto" and not a number',
            id="port zero",
        ),
        pytest.param(added("[ports]\nhttp = 65536"), "ports.http", id="one above the last port"),
        pytest.param(added("[ports]\nhttp = true"), "ports.http: true", id="a truth for a port"),
        pytest.param(added('[ports]\nHTTP = "auto"'), "ports.HTTP", id="an upper-case port"),
        pytest.param(
            added("[ports]\na = 80\nb = 80"), 'ports: "80" stands there twice', id="a number twice"
        ),
        pytest.param(added("[data]\nkeep = 1"), "data.keep: 1 is not true or false", id="no flag"),
        pytest.param(
            added('[requires]\ncommon = [{ id = "a", id_prefix = "b" }]'),
            "requires.common[0]: write exactly one of id and id_prefix",
            id="both ids",
        ),
        pytest.param(added("[requires]\ncommon = [{}]"), "exactly one of", id="no id"),
        pytest.param(
            added('[requires]\ncommon = [{ id = "" }]'), "requires.common[0].id", id="an empty id"
        ),
        pytest.param(
            added('[requires]\ncommon = [{ id = "a", count = 65 }]'),
            "requires.common[0].count",
            id="one more than can be counted",
        ),
        pytest.param(
            added('[requires]\ncommon = [{ id = "a", count = 0 }]'),
            "requires.common[0].count",
            id="none of it",
        ),
        pytest.param(
            added('[requires]\ncommon = [{ id = "a", min_provenance = "seen" }]'),
            "requires.common[0].min_provenance",
            id="no provenance",
        ),
        pytest.param(
            added("[requires]\ncommon = [" + '{ id = "a" },' * 65 + "]"),
            "requires.common: 65 entries; at most 64",
            id="one requirement too many",
        ),
        pytest.param(predicate('op = "gt", value = 1'), "where[0].op", id="no operator"),
        pytest.param(predicate('op = "gte"'), "where[0].value: missing", id="no value"),
        pytest.param(
            predicate('op = "gte", value = "fast"'),
            "neither a number nor a dotted",
            id="an order of words",
        ),
        pytest.param(
            predicate('op = "gte", value = true'),
            "neither a number nor a dotted",
            id="an order of truths",
        ),
        pytest.param(predicate('op = "in", value = "a"'), "not a list, which in needs", id="in"),
        pytest.param(predicate('op = "has", value = ["a"]'), "has looks for one value", id="has"),
        pytest.param(predicate('op = "eq", value = nan'), "kept exactly", id="not a number"),
        pytest.param(
            predicate('op = "eq", value = 9007199254740992'),
            "kept exactly",
            id="an integer that readers round",
        ),
        pytest.param(predicate('op = "eq", value = 1979-05-27'), "where[0].value", id="a date"),
        pytest.param(predicate('op = "eq", value = {}'), "a table is not text", id="a table"),
        pytest.param(
            added('[[variant]]\nname = "any"'),
            'variant: "any" stands there twice',
            id="a variant's name twice",
        ),
        pytest.param(
            added("".join(f'[[variant]]\nname = "v{n}"\n' for n in range(16))),
            "variant: 17 entries; at most 16",
            id="one variant too many",
        ),
        pytest.param(with_line('files = ["/etc/passwd"]'), "variant[0].files[0]", id="absolute"),
        pytest.param(with_line('files = ["a/../../b"]'), "variant[0].files[0]", id="out of it"),
        pytest.param(with_line('files = [""]'), "variant[0].files[0]", id="an empty path"),
        pytest.param(
            added('[resources]\ncpu = "0.5"'),
            'resources.cpu: "0.5" is not a number',
            id="cores in quotes",
        ),
        pytest.param(
            added("[resources]\nmemory = 1024"),
            "resources.memory: 1024 is not a size",
            id="a size without a unit",
        ),
        pytest.param(
            added('[resources]\nmemory = "1024"'),
            "write a number with B, KiB",
            id="units are named",
        ),
        pytest.param(added("[resources]\npids = -1"), "resources.pids", id="less than none"),
        pytest.param(added("[resources]\npids = 1.5"), "not a whole number", id="half a process"),
        pytest.param(added("[health]"), "health: none of them; write exactly one of", id="no way"),
        pytest.param(
            added('[health]\ntcp = "1"\nexec = "a"'),
            "health: tcp and exec; write exactly",
            id="two ways",
        ),
        pytest.param(added('[health]\nhttp = "https://a/"'), "health.http", id="no TLS in sh"),
        pytest.param(added('[health]\nhttp = "http:///x"'), "health.http", id="no host"),
        pytest.param(added('[health]\ntcp = "a b"'), "health.tcp", id="a space in an address"),
        pytest.param(
            added('[health]\ntcp = "1"\nmax_age = "1s"'),
            "only a heartbeat",
            id="an age for what has none",
        ),
        pytest.param(added('[health]\nexec = "../x"'), "health.exec", id="a check from outside"),
        pytest.param(
            added('[health]\ntcp = "1"\ninterval = "99ms"'),
            "health.interval",
            id="checks closer than they can be",
        ),
        pytest.param(
            with_line('kind = "job"') + '[health]\ntcp = "1"\n',
            "a job ends by itself",
            id="health of a job",
        ),
        pytest.param(added("[restart]\nmax = -1"), "restart.max", id="fewer than no restarts"),
        pytest.param(
            added("[restart]\nmax = 1001"), "restart.max", id="more than a node keeps moments of"
        ),
        pytest.param(added('[restart]\nwindow = "3661d"'), "restart.window", id="over ten years"),
        pytest.param(added('[policy]\nmin_trust = "friend"'), "policy.min_trust", id="no tier"),
        pytest.param(added('[policy]\nlabels = ["a", "a"]'), "policy.labels", id="a label twice"),
        pytest.param(
            added('[policy]\nperf = { id = "a", minimum = -1 }'),
            "policy.perf.minimum",
            id="a target below nothing",
        ),
        pytest.param(
            added('[policy]\npreferences = [{ id = "a", weight = inf }]'),
            "policy.preferences[0].weight",
            id="a weight without end",
        ),
        pytest.param(
            added('[lifecycle]\nstop_signal = "SIGTERM"'),
            "one of TERM, INT",
            id="signals are named without SIG",
        ),
        pytest.param(added('[lifecycle]\nlease = "999ms"'), "lifecycle.lease", id="a short lease"),
        pytest.param(with_line('kind = "interval"'), "schedule: missing", id="never due"),
        pytest.param(
            added('[schedule]\nevery = "1h"'),
            "a service is not run on a schedule",
            id="a service on a schedule",
        ),
        pytest.param(
            with_line('kind = "interval"') + "[schedule]\n",
            "exactly one of every and cron",
            id="an empty schedule",
        ),
        pytest.param(
            with_line('kind = "interval"') + '[schedule]\nevery = "1h"\ncron = "* * * * *"\n',
            "exactly one of every and cron",
            id="two schedules",
        ),
        pytest.param(
            with_line('kind = "interval"') + '[schedule]\nevery = "1h"\ntimezone = "UTC"\n',
            "only cron is read in a timezone",
            id="a timezone for nothing",
        ),
        pytest.param(
            with_line('kind = "interval"') + '[schedule]\nevery = "999ms"\n',
            "schedule.every",
            id="due all the time",
        ),
        pytest.param(
            with_line('kind = "interval"') + '[schedule]\ncron = "60 * * * *"\n',
            "'60' is not a minute",
            id="no such minute",
        ),
        pytest.param(
            with_line('kind = "interval"') + '[schedule]\ncron = "* * * *"\n',
            "4 fields; write five",
            id="a field missing",
        ),
    ],
)
def test_a_mistake_is_named_with_its_key_and_what_is_allowed(text: str, said: str) -> None:
    with pytest.raises(InvalidFile) as refusal:
        parse(text)

    assert refusal.value.message.startswith("workload.toml")
    assert said in refusal.value.message
    assert "\n" not in refusal.value.message


def test_a_long_value_is_cut_and_its_controls_are_escaped() -> None:
    with pytest.raises(InvalidFile) as refusal:
        parse(with_line('name = "\\u001b[31m' + "x" * 1000 + '"'))

    assert "\x1b" not in refusal.value.message
    assert r"\x1b[31m" in refusal.value.message
    assert len(refusal.value.message) < 200


def _is_refused_in_one_line(text: str) -> None:
    """Either it is read, or it is refused in one short line; nothing else may come out."""
    message = "workload.toml"
    try:
        parse(text)
    except InvalidFile as refusal:
        message = refusal.message
    assert message.startswith("workload.toml")
    assert message.isprintable()
    assert len(message) < 1000


@given(st.text())
def test_no_text_breaks_the_parser(text: str) -> None:
    _is_refused_in_one_line(text)


@given(st.integers(0, len(FULL)), st.integers(0, 40), st.text(max_size=10))
def test_no_slip_of_the_pen_breaks_the_parser(at: int, gone: int, typed: str) -> None:
    _is_refused_in_one_line(FULL[:at] + typed + FULL[at + gone :])


VALUES = st.one_of(
    st.integers().map(str),
    st.floats().map(str),
    st.booleans().map(lambda flag: str(flag).lower()),
    st.text(st.characters(exclude_characters="'", categories=["L", "N", "P", "S"])).map(
        lambda text: f"'{text}'"
    ),
    st.sampled_from(["[]", "{}", "[[]]", "1979-05-27", "['a', 1]", "{ a = 1 }", "'10s'", "'1MiB'"]),
)


@given(st.sampled_from(KEYS), VALUES)
def test_no_value_of_any_type_breaks_any_key(number: int, value: str) -> None:
    lines = FULL.splitlines()
    lines[number] = f"{lines[number].split(' = ', maxsplit=1)[0]} = {value}"

    _is_refused_in_one_line("\n".join(lines))


@given(st.sampled_from(KEYS), VALUES)
def test_whatever_can_be_read_can_be_decided(number: int, value: str) -> None:
    """The limits here are never wider than those that a decision insists on."""
    lines = FULL.splitlines()
    lines[number] = f"{lines[number].split(' = ', maxsplit=1)[0]} = {value}"
    try:
        workload = parse("\n".join(lines))
    except InvalidFile:
        return
    spec = spec_of(Manifest(PackageId(""), "", workload, ()))

    check_request(PlaceRequest(workload=spec), ())
