"""Settings: the nearer word wins, says where it came from, and a file says only what it may."""

import os
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path

import pytest

from wlctl import config
from wlctl.config import Origin, Places, Settings, files
from wlctl.errors import InvalidFile, NoHome, UsageError

NOBODY: Mapping[str, str] = {}
FILES = ("system", "user", "project")


@pytest.fixture
def places(tmp_path: Path) -> Places:
    """Places of a user with a home and no file anywhere."""
    return Places(
        user_file=tmp_path / "user.toml",
        data_dir=tmp_path / "data",
        system_file=tmp_path / "system.toml",
        project_file=tmp_path / "wlctl.toml",
    )


def load(
    places: Places,
    flags: Mapping[str, object] = NOBODY,
    environ: Mapping[str, str] = NOBODY,
    **written: str,
) -> Settings:
    """Write the files named `user`, `system` and `project`, then settle everything."""
    paths = {
        "user": places.user_file,
        "system": places.system_file,
        "project": places.project_file,
    }
    for name, text in written.items():
        path = paths[name]
        assert path is not None
        path.write_text(text)
        path.chmod(0o644)
    return config.load(flags, environ, places)


def test_without_a_word_from_anyone_every_setting_is_its_default(places: Places) -> None:
    settings = load(places)

    assert settings.output == "table"
    assert settings.busy_timeout_s == 30
    assert settings.facts_ttl_s == 900
    assert settings.no_color is False
    assert set(settings.origins.values()) == {config.DEFAULT}
    assert set(settings.origins) == set(config.SETTINGS)


def test_the_ledger_lies_in_the_data_directory_by_default(places: Places) -> None:
    assert load(places).db == f"{places.data_dir}/ledger.db"


SAID = {
    "system": "table",
    "user": "wide",
    "project": "json",
    "environment": "jsonl",
    "flag": "name",
    "locked": "name",  # a flag that asks for another value is refused
}
"""What each source says in the next test, from the farthest to the nearest."""


@pytest.mark.parametrize(
    "speakers",
    [some for count in range(1, 7) for some in combinations(SAID, count)],
    ids=" and ".join,
)
def test_the_nearest_word_wins_whoever_else_speaks(
    speakers: tuple[str, ...], places: Places
) -> None:
    texts = {name: f'output = "{SAID[name]}"\n' for name in speakers if name in FILES}
    if "locked" in speakers:
        texts["system"] = texts.get("system", "") + f'[locked]\noutput = "{SAID["locked"]}"\n'
    environ = {"WLCTL_OUTPUT": SAID["environment"]} if "environment" in speakers else {}
    flags = {"output": SAID["flag"]} if "flag" in speakers else {}

    settings = load(places, flags, environ, **texts)

    assert settings.output == SAID[speakers[-1]]
    assert (
        settings.origins["output"]
        == {
            "system": Origin(str(places.system_file)),
            "user": Origin(str(places.user_file)),
            "project": Origin(str(places.project_file)),
            "environment": Origin("WLCTL_OUTPUT"),
            "flag": Origin("--output"),
            "locked": Origin(str(places.system_file), locked=True),
        }[speakers[-1]]
    )


def test_a_flag_that_meets_a_lock_is_refused_and_not_passed_over(places: Places) -> None:
    with pytest.raises(
        UsageError, match=r"--db asks for /mine, but .*\[locked\] holds db at /ours"
    ):
        load(places, {"db": "/mine"}, system='[locked]\ndb = "/ours"\n')


def test_a_variable_that_meets_a_lock_is_passed_over(places: Places) -> None:
    settings = load(places, {}, {"WLCTL_DB": "/mine"}, system='[locked]\ndb = "/ours"\n')

    assert settings.db == "/ours"


@pytest.mark.parametrize(
    ("environ", "no_color"),
    [
        pytest.param({"NO_COLOR": "1"}, True, id="NO_COLOR says anything"),
        pytest.param({"NO_COLOR": "0"}, True, id="NO_COLOR says even 0"),
        pytest.param({"NO_COLOR": ""}, False, id="NO_COLOR says nothing"),
        pytest.param({"WLCTL_NO_COLOR": "yes"}, True, id="the twin says yes"),
        pytest.param({"WLCTL_NO_COLOR": "0", "NO_COLOR": "1"}, False, id="the twin is nearer"),
    ],
)
def test_colour_is_left_out_when(environ: dict[str, str], no_color: bool, places: Places) -> None:
    assert load(places, {}, environ).no_color is no_color


@pytest.mark.parametrize(
    ("name", "value", "hint"),
    [
        pytest.param("WLCTL_OUTPUT", "yaml", "say one of table, wide", id="an unknown format"),
        pytest.param("WLCTL_NO_COLOR", "perhaps", "say 1 or 0", id="neither yes nor no"),
        pytest.param("WLCTL_FACTS_TTL_S", "soon", "a number of seconds", id="no number"),
        pytest.param("WLCTL_FACTS_TTL_S", "0.5", "say 1 to 86400", id="just too short"),
        pytest.param("WLCTL_FACTS_TTL_S", "86401", "say 1 to 86400", id="just too long"),
        pytest.param("WLCTL_FACTS_TTL_S", "nan", "say 1 to 86400", id="not a number at all"),
        pytest.param("WLCTL_BUSY_TIMEOUT_S", "inf", "say 0 to 3600", id="for ever"),
        pytest.param("WLCTL_DB", "~nobody-of-that-name/l", "no home directory", id="no such home"),
    ],
)
def test_a_variable_is_refused_when_it_is(name: str, value: str, hint: str, places: Places) -> None:
    with pytest.raises(UsageError, match=f"{name} cannot be") as refused:
        load(places, {}, {name: value})

    assert hint in str(refused.value.hint)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [pytest.param("1", 1, id="the least"), pytest.param("86400", 86400, id="the most")],
)
def test_both_ends_of_a_range_belong_to_it(value: str, seconds: int, places: Places) -> None:
    assert load(places, {}, {"WLCTL_FACTS_TTL_S": value}).facts_ttl_s == seconds


def test_a_project_may_say_where_its_workloads_go(places: Places) -> None:
    settings = load(places, project='[place]\npin = "elm"\nprefer = ["oak"]\navoid = []')

    assert (settings.place_pin, settings.place_prefer) == ("elm", ("oak",))
    assert settings.place_avoid == ()
    assert settings.origins["place_avoid"] == Origin(str(places.project_file))


def test_a_variable_names_several_nodes_with_commas(places: Places) -> None:
    assert load(places, {}, {"WLCTL_PLACE_AVOID": "elm, oak"}).place_avoid == ("elm", "oak")


def test_whoever_misspells_a_table_is_told_of_every_one(places: Places) -> None:
    assert places.user_file is not None
    places.user_file.write_text("[nothing]\nx = 1\n")

    with pytest.raises(InvalidFile) as failed:
        load(places, {}, {})

    assert failed.value.hint is not None
    assert failed.value.hint.endswith(", [alerts], [secrets]")


def test_an_empty_variable_is_no_word(places: Places) -> None:
    assert load(places, {}, {"WLCTL_OUTPUT": "", "WLCTL_DB": ""}).origins["db"] is config.DEFAULT


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        pytest.param("user", 'outputx = "json"', "there is no setting outputx", id="misspelt"),
        pytest.param("user", 'output = "yaml"', "output cannot be 'yaml'", id="of no known value"),
        pytest.param("user", "output = 3", "output cannot be 3", id="of another type"),
        pytest.param("user", "busy_timeout_s = true", "cannot be True", id="a yes for seconds"),
        pytest.param("user", 'db = "ledger.db"', "db cannot be 'ledger.db'", id="a relative path"),
        pytest.param("user", "[locked]\noutput = 'json'", "no setting locked", id="a user's lock"),
        pytest.param("user", "output = \n", "not TOML: .* line 1", id="cut short"),
        pytest.param("user", "a = " + "[" * 5000, "not TOML", id="nested without end"),
        pytest.param("system", "locked = 1", "locked is a table", id="a lock without a table"),
        pytest.param("project", 'db = "/l"', "a project file may not set db", id="not its to set"),
        pytest.param("project", "busy_timeout_s = 1", "may not set busy_timeout_s", id="nor this"),
        pytest.param("user", "place = 1", "place is a table", id="a word for a table"),
        pytest.param(
            "user", "[place]\navoid = 'elm,'\nx = 1", "no setting place.x", id="there too"
        ),
        pytest.param("user", "[place]\navoid = [1]", "place.avoid cannot be", id="no names"),
        pytest.param("user", "[place]\npin = 1", "place.pin cannot be 1", id="no name"),
        pytest.param("user", "place_pin = 'elm'", "no setting place_pin", id="not so"),
        pytest.param("project", "[locked]", "no setting locked", id="a project's lock"),
    ],
)
def test_a_file_is_refused_by_name_and_key_when_it_is(
    file: str, text: str, said: str, places: Places
) -> None:
    with pytest.raises(InvalidFile, match=f"{file if file != 'project' else 'wlctl'}.toml.*{said}"):
        load(places, {}, {}, **{file: text})


def test_the_nearest_name_is_offered_for_a_misspelt_setting(places: Places) -> None:
    with pytest.raises(InvalidFile) as refused:
        load(places, user="fact_ttl_s = 1")

    assert refused.value.hint == "did you mean facts_ttl_s?"


def test_a_file_that_is_not_text_is_refused(places: Places) -> None:
    places.system_file.write_bytes(b"output = '\xff'")

    with pytest.raises(InvalidFile, match="not UTF-8 at byte 10"):
        load(places)


def test_a_file_without_end_is_refused(places: Places) -> None:
    places.system_file.write_bytes(b"#" * (files.FILE_MAX_BYTES + 1))

    with pytest.raises(InvalidFile, match="larger than"):
        load(places)


def test_a_file_of_the_largest_size_is_read(places: Places) -> None:
    places.system_file.write_bytes(b"#" * files.FILE_MAX_BYTES)

    assert load(places).origins["output"] is config.DEFAULT


def test_a_directory_of_that_name_is_refused(places: Places) -> None:
    places.system_file.mkdir()

    with pytest.raises(InvalidFile, match="not a regular file"):
        load(places)


def test_a_fifo_of_that_name_holds_nobody_up(places: Places) -> None:
    assert places.project_file is not None
    os.mkfifo(places.project_file)

    with pytest.raises(InvalidFile, match="not a regular file"):
        load(places)


def test_a_loop_of_links_is_refused(places: Places) -> None:
    places.system_file.symlink_to(places.system_file)

    with pytest.raises(InvalidFile, match="cannot be read"):
        load(places)


@pytest.mark.parametrize(
    ("mode", "read"),
    [
        pytest.param(0o644, True, id="its owner alone"),
        pytest.param(0o664, False, id="its group too"),
        pytest.param(0o646, False, id="everybody"),
    ],
)
def test_a_project_file_counts_when_it_can_be_written_by(
    mode: int, read: bool, places: Places
) -> None:
    assert places.project_file is not None
    places.project_file.write_text('output = "json"')
    places.project_file.chmod(mode)

    if read:
        assert load(places).output == "json"
    else:
        with pytest.raises(InvalidFile, match="can be written by others") as refused:
            load(places)
        assert refused.value.hint == f"chmod go-w {places.project_file}"


@pytest.mark.root
def test_a_project_file_of_somebody_else_is_refused(places: Places) -> None:
    assert places.project_file is not None
    places.project_file.write_text('output = "json"')
    os.chown(places.project_file, 65534, 65534)

    with pytest.raises(InvalidFile, match="belongs to another user"):
        load(places)


def test_no_project_file_is_read_where_none_may_be(places: Places, tmp_path: Path) -> None:
    load(places, project='output = "json"')
    apart = Places(places.user_file, places.data_dir, places.system_file, project_file=None)

    assert load(apart).output == "table"


def test_a_missing_directory_is_as_good_as_a_missing_file(tmp_path: Path) -> None:
    gone = tmp_path / "gone"

    settings = load(Places(gone / "u", gone, gone / "s", gone / "wlctl.toml"))

    assert settings.output == "table"


@pytest.mark.parametrize(
    ("said", "db"),
    [
        pytest.param("/a/l.db", "/a/l.db", id="an absolute path"),
        pytest.param("l.db", "{cwd}/l.db", id="a path below the working directory"),
        pytest.param("~/l.db", "{home}/l.db", id="a path below the home directory"),
        pytest.param("postgresql://h/d", "postgresql://h/d", id="a URL, left alone"),
    ],
)
def test_a_ledger_is_named_by(
    said: str, db: str, places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))

    assert load(places, {"db": said}).db == db.format(cwd=tmp_path, home=tmp_path / "home")


@pytest.mark.parametrize("said", ["", "a\0b"])
def test_a_ledger_is_not_named_by_an_impossible_path(said: str, places: Places) -> None:
    with pytest.raises(UsageError, match="--db cannot be"):
        load(places, {"db": said})


def test_a_relative_path_means_nothing_in_a_directory_that_is_gone(
    places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()

    with pytest.raises(UsageError, match=r"--db cannot be 'l\.db'"):
        load(places, {"db": "l.db"})


def test_without_a_home_only_a_named_ledger_is_used(places: Places) -> None:
    homeless = Places(None, None, places.system_file, None)

    assert load(homeless, {"db": "/l"}).db == "/l"
    with pytest.raises(NoHome):
        load(homeless)


@pytest.mark.parametrize(
    "home",
    [pytest.param("", id="empty"), pytest.param("home/ann", id="relative")],
)
def test_a_home_that_is_no_place_is_not_guessed_at(
    home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", home)

    found = Places.of_this_process()

    assert (found.user_file, found.data_dir) == (None, None)
    with pytest.raises(UsageError, match="--db cannot be"):
        config.load({"db": "~/l.db"}, {}, found)


def test_without_HOME_the_passwd_entry_counts(  # noqa: N802 - the variable is called that
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import pwd

    for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)

    found = Places.of_this_process()

    home = pwd.getpwuid(os.getuid()).pw_dir
    assert found.data_dir == Path(home) / ".local/share/wlctl"
    assert found.user_file == Path(home) / ".config/wlctl/config.toml"


def test_without_a_home_or_a_passwd_entry_there_is_no_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import pwd

    def nobody(_uid: int) -> pwd.struct_passwd:
        raise KeyError

    for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", nobody)

    found = Places.of_this_process()

    assert (found.user_file, found.data_dir) == (None, None)


def test_a_relative_data_directory_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ann")
    monkeypatch.setenv("XDG_DATA_HOME", "here")

    assert Places.of_this_process().data_dir == Path("/home/ann/.local/share/wlctl")


@pytest.mark.parametrize(
    ("location", "shown"),
    [
        pytest.param("/a/ledger.db", "/a/ledger.db", id="a path"),
        pytest.param("/a/u:p@h", "/a/u:p@h", id="a path that looks like more"),
        pytest.param("postgresql://u:secret@h/d", "postgresql://u:…@h/d", id="a password"),
        pytest.param("postgresql://u@h/d", "postgresql://u@h/d", id="a user alone"),
        pytest.param("postgresql://u:s@cret@h/d", "postgresql://u:…@h/d", id="an @ in it"),
        pytest.param("postgresql://:secret@h/d", "postgresql://:…@h/d", id="no user"),
        pytest.param(
            "postgresql://h/d?user=u&password=secret&sslmode=verify-full",
            "postgresql://h/d?user=u&password=…&sslmode=verify-full",
            id="a password in the query",
        ),
        pytest.param(
            "postgresql://h/d?sslpassword=secret", "postgresql://h/d?sslpassword=…", id="of a key"
        ),
    ],
)
def test_a_ledger_is_shown_without_its_password(location: str, shown: str) -> None:
    assert config.masked(location) == shown
