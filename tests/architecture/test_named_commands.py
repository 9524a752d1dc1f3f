"""Whatever wlctl or its docs tell a reader to type can be typed."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from wlctl.cli import tree

ROOT = Path(__file__).parents[2]
PLACES = {place.words: place for place in tree.places()}
TEXTS = sorted(
    path
    for pattern in ("wlctl/**/*.py", "docs/**/*.md", "*.md", "examples/**/*.md")
    for path in ROOT.glob(pattern)
    if path.name != "CHANGELOG.md"
)


def named() -> Iterator[tuple[str, str]]:
    """Yield every command in backquotes, and every line of a shell block that runs wlctl."""
    for path in TEXTS:
        text = path.read_text(encoding="utf-8")
        lines = re.findall(r"`wlctl ([a-z][^`\n]*)`", text)
        for block in re.findall(r"^```(?:sh)?\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
            lines += re.findall(r"^(?:\$ )?wlctl ([a-z][^#|>&\n]*)", block, re.MULTILINE)
        for line in lines:
            yield str(path.relative_to(ROOT)), line.strip()


@pytest.mark.parametrize(("where", "line"), sorted(set(named())))
def test_what_is_told_to_be_typed_is_there(where: str, line: str) -> None:
    words: tuple[str, ...] = ()
    alternatives = [word.split("|")[0] for word in line.split()]
    for word in alternatives:
        if (*words, word) not in PLACES:
            break
        words = (*words, word)
    if "{" in line.split(" ", maxsplit=1)[0] or line.startswith("…"):
        return  # a verb or a name that is filled in when it is said

    assert words, f"{where}: there is no `wlctl {line}`"
    place = PLACES[words]
    assert not place.commands or len(words) == len(alternatives), f"{where}: `wlctl {line}`"
    flags = {name for option in place.options for name in option.names}
    for flag in re.findall(r"(?<=\s)--?[a-z][a-z-]*", line.partition(" -- ")[0]):
        assert flag in flags, f"{where}: `wlctl {line}` has no {flag}"
