"""Decisions as a page: all that was decided, and nothing that runs or is fetched."""

import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit import test_explain as scenes
from tests.unit.fleets import a_capability, a_node, a_workload, needs, place, where
from wlctl.model.fleet import Ruling, Verdict
from wlctl.model.placement import Decision
from wlctl.placement.document import document
from wlctl.placement.page import Article, page
from wlctl.placement.shapes import Document
from wlctl.placement.text import visible

GOLDEN = Path(__file__).parent / "golden"

TAGS = {
    *("html", "head", "meta", "title", "style", "body", "article", "h1", "h2", "p", "dl", "dt"),
    *("dd", "table", "thead", "tbody", "tr", "th", "td", "ul", "li"),
}
ATTRIBUTES = {"lang", "charset", "http-equiv", "content", "name", "class"}


class Seen(HTMLParser):
    """What a browser would make of a page: its elements, and the text between them."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.open: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _value in attrs}
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["style"]:
            self.words.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")

    def handle_pi(self, data: str) -> None:
        raise AssertionError(f"an instruction: {data}")


def seen(doc: Document, *facts: tuple[str, str]) -> Seen:
    found = Seen(page([Article(doc, facts)]))
    assert found.open == [], "every element is closed"
    assert set(found.tags) <= TAGS
    assert found.attributes <= ATTRIBUTES
    return found


@pytest.mark.parametrize(
    "scene", [scenes.one_node, scenes.everything_wrong_at_once, scenes.hostile_words]
)
def test_a_page_reads_as_it_should(
    scene: Callable[[], Decision], golden: Callable[[Path, str], None]
) -> None:
    article = Article(document(scene()), (("decision", "3f9a2c"), ("decided", "2027-01-15")))
    golden(GOLDEN / f"{scene.__name__}.html", page([article]))


@pytest.mark.parametrize("scene", scenes.SCENES, ids=lambda scene: scene.__name__)
def test_every_node_and_every_reason_is_on_the_page(scene: Callable[[], Decision]) -> None:
    doc = document(scene())
    cells = seen(doc).words

    for candidate in doc["eligible"]:
        assert visible(candidate["node"]) in cells
        assert f"{candidate['total']:.2f}" in cells
    for group in doc["rejected"]:
        assert {visible(node) for node in group["nodes"]} <= set(cells)
        for one in group["rejections"]:
            assert visible(one["detail"]) in cells
    for checks in doc["checks"].values():
        assert {visible(one["detail"]) for one in checks} <= set(cells)


@pytest.mark.parametrize("scene", scenes.SCENES, ids=lambda scene: scene.__name__)
def test_a_page_fetches_nothing(scene: Callable[[], Decision]) -> None:
    text = page([Article(document(scene()))])

    assert re.search(r"://|@import|url\(|\bsrc=|\bhref=|<script|\bon[a-z]+=", text) is None


HOSTILE = (
    "<script>alert(1)</script>",
    "</style><script>",
    "</td></table><img src=x onerror=alert(1)>",
    '" onmouseover="alert(1)',
    "<!-- ", "-->", "<![CDATA[", "<?xml", "&lt;b&gt;", "&#60;script&#62;", "</title>",
    "javascript:alert(1)", "{{7*7}}", "\u202e<b>", "\x00<b>", "\ud800<b>",
)  # fmt: skip


def a_document(text: str) -> Document:
    """One in which nodes, the policy, the package and the operator all say `text`."""
    claimed = a_capability("os.linux", version="plain")
    decision = place(
        a_workload(needs("os.linux", where("version", "eq", "3")), name="plain", labels=("plain",)),
        a_node("plain", claimed),
        a_node("ok", a_capability("os.linux"), gate=Verdict(Ruling.DENIED, "plain", "plain")),
        a_node("good", a_capability("os.linux", version="3")),
        why=("plain",),
        avoid=("plain",),
    )
    return cast("Document", _said(document(decision), text))


def _said(value: object, text: str) -> object:
    match value:
        case str():
            return value.replace("plain", text)
        case dict():
            return {_said(key, text): _said(one, text) for key, one in value.items()}
        case list():
            return [_said(one, text) for one in value]
        case _:
            return value


@pytest.mark.parametrize("text", HOSTILE, ids=visible)
def test_what_comes_from_outside_is_text_and_nothing_else(text: str) -> None:
    found = seen(a_document(text), (text, text))

    assert visible(text) in found.words
    assert "".join(found.words).replace("\n", "").isprintable()


@settings(max_examples=60, deadline=None)
@given(st.text(st.sampled_from("<>&\"'/=-! \n;#abix\x00\u202e"), min_size=1, max_size=20))
def test_no_text_whatever_becomes_an_element(text: str) -> None:
    plain = seen(a_document("plain"), ("plain", "plain"))
    found = seen(a_document(text), (text, text))

    assert found.tags == plain.tags


def test_several_decisions_stand_one_after_the_other() -> None:
    articles = [Article(document(scenes.one_node())), Article(document(scenes.three_copies()))]

    found = Seen(page(articles))

    assert found.tags.count("article") == 2
    assert found.words[found.words.index("decisions")] == "decisions"
