"""The table `[secrets]` of a settings file says where values are, and never has one."""

from pathlib import Path

import pytest

from wlctl.config import Places, load
from wlctl.config.secrets import SecretSource
from wlctl.errors import InvalidFile


def loaded(tmp_path: Path, user: str, system: str = "", project: str = "") -> object:
    for name, text in (("user", user), ("system", system), ("project", project)):
        (tmp_path / name).write_text(text)
    places = Places(tmp_path / "user", tmp_path, tmp_path / "system", tmp_path / "project")
    return load({}, {}, places).secrets


def test_each_of_the_three_places_is_read(tmp_path: Path) -> None:
    text = '[secrets]\nA = { env = "X" }\nb-c = { file = "/x" }\n'
    found = loaded(tmp_path, text + '"d.e" = { command = ["p", "q"] }\n')

    where = str(tmp_path / "user")
    assert found == {
        "A": SecretSource(where, env="X"),
        "b-c": SecretSource(where, file="/x"),
        "d.e": SecretSource(where, command=("p", "q")),
    }


def test_ones_own_file_says_more_than_the_systems(tmp_path: Path) -> None:
    found = loaded(
        tmp_path,
        '[secrets]\nA = { env = "MINE" }\n',
        '[secrets]\nA = { env = "X" }\nB = { env = "Y" }\n',
    )

    assert found == {
        "A": SecretSource(str(tmp_path / "user"), env="MINE"),
        "B": SecretSource(str(tmp_path / "system"), env="Y"),
    }


def test_a_project_file_may_not_say_where_secrets_are(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match="secrets"):
        loaded(tmp_path, "", project='[secrets]\nA = { command = ["evil"] }\n')


@pytest.mark.parametrize(
    "said",
    [
        pytest.param('"s3ntinel"', id="a value"),
        pytest.param('{ value = "s3ntinel" }', id="a value in a table"),
        pytest.param('{ env = "s3ntinel", file = "/x" }', id="two places"),
        pytest.param("{}", id="no place"),
        pytest.param('{ env = "A=s3ntinel" }', id="a variable with its value"),
        pytest.param('{ file = "s3ntinel" }', id="a relative path"),
        pytest.param('{ command = "s3ntinel" }', id="a line for a shell"),
        pytest.param("{ command = [] }", id="no command"),
        pytest.param("{ command = [1] }", id="a number in a command"),
    ],
)
def test_an_entry_that_is_none_is_refused_without_showing_what_it_says(
    tmp_path: Path, said: str
) -> None:
    with pytest.raises(InvalidFile, match=r"secrets\.A does not say where its value is") as failure:
        loaded(tmp_path, f"[secrets]\nA = {said}\n")
    assert "s3ntinel" not in failure.value.message


def test_a_name_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match="is not a name"):
        loaded(tmp_path, '[secrets]\n"a b" = { env = "X" }\n')
