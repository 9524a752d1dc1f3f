"""Whatever the docs point at is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path for pattern in ("*.md", "docs/**/*.md", "examples/**/*.md") for path in ROOT.glob(pattern)
)
NAMED = re.compile(
    r"`((?:wlctl|placement|gate|lifecycle|ledger|host|package|signing|config|flows|cli|model|tests)/[\w./-]*\.(?:py|sh))`"
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_link_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), f"{page.name} points at {target}"


@pytest.mark.parametrize("name", sorted(set(NAMED.findall((ROOT / "ARCHITECTURE.md").read_text()))))
def test_a_module_that_the_map_names_is_there(name: str) -> None:
    if "NAME" in name or "CONCERN" in name:
        return  # a place holder
    places = (ROOT / name, ROOT / "wlctl" / name)
    assert any(place.exists() for place in places), f"ARCHITECTURE.md names {name}"
