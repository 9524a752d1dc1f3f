"""Rules about the source that no linter knows."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "wlctl"
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if "__pycache__" not in path.parts)
EMPTY_WORDS = {"util", "utils", "helper", "helpers", "base", "manager", "common", "misc"}


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


each_module = pytest.mark.parametrize("path", MODULES, ids=name_of)


@each_module
def test_a_module_says_in_one_line_what_it_is_for(path: Path) -> None:
    docstring = ast.get_docstring(ast.parse(path.read_text()))

    assert docstring
    assert docstring.partition("\n\n")[0].count("\n") == 0
    assert docstring.partition("\n")[0].endswith((".", "?"))


@each_module
def test_a_module_is_named_after_a_concern(path: Path) -> None:
    assert not EMPTY_WORDS & set(path.relative_to(PACKAGE).with_suffix("").parts)


@each_module
def test_only_the_streams_write_to_stdout_and_stderr(path: Path) -> None:
    if name_of(path) == "cli/streams.py":
        return
    written = {
        ast.unparse(node)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Name | ast.Attribute)
        and ast.unparse(node) in ("print", "sys.stdout", "sys.stderr", "typer.echo", "typer.secho")
    }

    assert written == set()


def own_exceptions(path: Path) -> Iterator[str]:
    """Name the classes of a module that are derived from something ending like an error."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ClassDef):
            bases = {ast.unparse(base).rpartition(".")[2] for base in node.bases}
            if bases & ERRORS:
                yield node.name


def _errors() -> set[str]:
    tree = ast.parse((PACKAGE / "errors.py").read_text())
    return {node.name for node in tree.body if isinstance(node, ast.ClassDef)} - {"ExitCode"}


ERRORS = _errors()


@each_module
def test_every_error_that_a_user_meets_is_in_errors(path: Path) -> None:
    if name_of(path) != "errors.py":
        assert list(own_exceptions(path)) == []
