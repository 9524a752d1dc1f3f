"""The table `[alerts]` of a settings file says whom to tell, and a mistake in it shows no value."""

from pathlib import Path

import pytest

from wlctl.config import Places, load
from wlctl.config.alerting import Alerting
from wlctl.config.secrets import SecretSource
from wlctl.errors import InvalidFile

URLS = '[alerts.urls]\nchat = { file = "/url" }\n'


def loaded(tmp_path: Path, user: str, system: str = "", project: str = "") -> Alerting:
    for name, text in (("user", user), ("system", system), ("project", project)):
        (tmp_path / name).write_text(text)
    places = Places(tmp_path / "user", tmp_path, tmp_path / "system", tmp_path / "project")
    return load({}, {}, places).alerts


def test_nobody_is_told_by_default(tmp_path: Path) -> None:
    assert loaded(tmp_path, "") == Alerting()


def test_a_command_and_urls_are_read(tmp_path: Path) -> None:
    found = loaded(tmp_path, '[alerts]\ncommand = ["/hook", "x y"]\n' + URLS)

    assert found.command == ("/hook", "x y")
    assert dict(found.urls) == {"chat": SecretSource(str(tmp_path / "user"), file="/url")}


def test_ones_own_file_says_more_than_the_systems(tmp_path: Path) -> None:
    system = '[alerts]\ncommand = ["/theirs"]\n' + URLS + 'mail = { env = "MAIL" }\n'

    assert loaded(tmp_path, "", system).command == ("/theirs",)
    found = loaded(tmp_path, '[alerts]\ncommand = ["/mine"]\n' + URLS, system)
    assert found.command == ("/mine",)
    assert {name: source.where for name, source in found.urls.items()} == {
        "chat": str(tmp_path / "user"),
        "mail": str(tmp_path / "system"),
    }


@pytest.mark.parametrize(
    ("user", "system", "tells"),
    [
        pytest.param("", "", True, id="when nobody says otherwise"),
        pytest.param("", "false", False, id="the system's file says no"),
        pytest.param("true", "false", True, id="one's own file says more"),
        pytest.param("false", "true", False, id="one's own file says no"),
    ],
)
def test_what_is_over_is_told_unless_somebody_says_otherwise(
    tmp_path: Path, user: str, system: str, tells: bool
) -> None:
    said = [f"[alerts]\nclosed = {word}\n" if word else "" for word in (user, system)]
    assert loaded(tmp_path, *said).tells_closed is tells


def test_a_project_file_may_not_name_a_program_to_run(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match="alerts"):
        loaded(tmp_path, "", project='[alerts]\ncommand = ["evil"]\n')


@pytest.mark.parametrize(
    ("said", "why"),
    [
        pytest.param('alerts = "x"', "alerts is a table", id="no table"),
        pytest.param('[alerts]\ncommand = "s3ntinel"', "a list of words", id="a shell line"),
        pytest.param('[alerts]\ncommand = ["s3ntinel", 1]', "a list of words", id="a number"),
        pytest.param('[alerts]\ncommand = ["s3ntinel\\u0000"]', "a list of words", id="a NUL"),
        pytest.param('[alerts]\nclosed = "s3ntinel"', "closed is yes or no", id="a word"),
        pytest.param('[alerts]\nurls = "s3ntinel"', "alerts.urls is a table", id="one URL"),
        pytest.param(
            '[alerts.urls]\nchat = "s3ntinel"', "alerts.urls.chat does not say", id="a URL itself"
        ),
        pytest.param('[alerts]\nurl = "s3ntinel"', "no setting alerts.url", id="a misspelling"),
    ],
)
def test_what_is_wrong_is_named_without_its_value(tmp_path: Path, said: str, why: str) -> None:
    with pytest.raises(InvalidFile, match=why) as failure:
        loaded(tmp_path, f"{said}\n")

    assert "s3ntinel" not in f"{failure.value.message}{failure.value.hint}"
