"""Why there, and why not elsewhere? Decisions as one page that stands alone, on screen and paper.

It runs nothing and fetches nothing: no script, no picture, no address. Whatever a node or a package
says is text in it, and cannot become anything else.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from wlctl.placement.explain import answer, asked, gate, nearest, relaxations, terms_of
from wlctl.placement.shapes import CandidateShape, CheckShape, Document, RejectedShape, TallyShape
from wlctl.placement.text import count, visible

_STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem;
  padding: 0 1rem; }
h1 { font-size: 1.5rem; margin: 0 0 .3rem; }
h2 { border-bottom: 1px solid; font-size: 1.1rem; margin: 1.8rem 0 .5rem; }
article + article { border-top: 3px double; margin-top: 3rem; padding-top: 2rem; }
dl { display: grid; gap: .1rem 1rem; grid-template-columns: max-content 1fr; margin: 0; }
dt { opacity: .7; }
dd { margin: 0; overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid #8886; padding: .2rem .6rem .2rem 0; text-align: left;
  vertical-align: top; overflow-wrap: anywhere; }
th { font-weight: 600; }
.n { font-variant-numeric: tabular-nums; text-align: right; white-space: nowrap; }
.answer { font-size: 1.15rem; font-weight: 600; margin: .3rem 0 1rem; }
.no { color: #b00020; }
.yes { color: #1b7f3b; }
ul { list-style: none; margin: 0; padding: 0; }
@media (prefers-color-scheme: dark) { .no { color: #ff8a80; } .yes { color: #7bd88f; } }
@media print {
  :root { color-scheme: light; }
  body { font-size: 9.5pt; margin: 0; max-width: none; padding: 0; }
  article + article { break-before: page; border: 0; margin: 0; padding: 0; }
  h2 { break-after: avoid; }
  thead { display: table-header-group; }
  tr { break-inside: avoid; }
}
"""

_ALLOWED = "default-src 'none'; style-src 'unsafe-inline'"
"""Should anything ever get past the escaping, it is neither run nor fetched."""


@dataclass(frozen=True, slots=True)
class Article:
    """One decision of a page.

    Attributes:
        facts: What is known of it beside its document: pairs of what and value.
    """

    document: Document
    facts: Sequence[tuple[str, str]] = ()


def page(articles: Sequence[Article]) -> str:
    """Write decisions as one HTML file: every node and every reason of each, however many."""
    titles = [_title(one.document) for one in articles]
    head = [
        "<!DOCTYPE html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{_ALLOWED}">',
        '<meta name="viewport" content="width=device-width">',
        f"<title>{_text(titles[0] if len(set(titles)) == 1 else 'decisions')}</title>",
        f"<style>{_STYLE}</style>",
        "</head>",
        "<body>",
    ]
    body = [line for one in articles for line in _article(one)]
    return "\n".join([*head, *body, "</body>", "</html>"]) + "\n"


def _text(text: str) -> str:
    return escape(visible(text), quote=True)


def _title(doc: Document) -> str:
    needs = doc["workload"]
    return f"{needs['name']} {needs['version']}".strip()


def _article(one: Article) -> Iterable[str]:
    doc = one.document
    yield "<article>"
    yield f"<h1>{_text(_title(doc))}</h1>"
    placed = doc["outcome"] == "placed"
    for line in answer(doc):
        kind = "yes" if placed else "no"
        yield f'<p class="answer {kind}">{_text(line)}</p>' if line[:1] != " " else _line(line)
    yield "<dl>"
    for what, value in (*one.facts, *map(_pair, asked(doc))):
        yield f"<dt>{_text(what)}</dt><dd>{_text(value)}</dd>"
    yield "</dl>"
    yield from _fleet(doc)
    yield from _lines("The gate", gate(doc))
    yield from _eligible(doc["eligible"])
    yield from _nearest(doc["rejected"])
    yield from _lines("What the request stands in the way of", relaxations(doc))
    yield from _rejected(doc["rejected"])
    for node, checks in sorted(doc["checks"].items()):
        yield from _checks(node, checks)
    yield "</article>"


def _line(line: str) -> str:
    return f"<p>{_text(line.strip())}</p>"


def _pair(line: str) -> tuple[str, str]:
    """Take apart a line of what was asked: `needs: …`, or `workload …`."""
    what, colon, value = line.partition(": ")
    if colon:
        return what, value
    what, _, value = line.partition(" ")
    return what, value


def _fleet(doc: Document) -> Iterable[str]:
    rejected = sum(len(group["nodes"]) for group in doc["rejected"])
    eligible = len(doc["eligible"])
    yield f"<h2>{count(eligible + rejected, 'node')}: {eligible} eligible, {rejected} rejected</h2>"
    if doc["summary"]:
        yield from _table(
            ("rejected by", "alone", "among others"), map(_tally, doc["summary"]), numbers=(1, 2)
        )


def _tally(tally: TallyShape) -> Sequence[str]:
    return tally["what"], str(tally["alone"]), str(tally["among_others"])


def _eligible(eligible: Sequence[CandidateShape]) -> Iterable[str]:
    if not eligible:
        return
    names = [name for name, _worth in terms_of(eligible[0])]
    yield f"<h2>Eligible, best first ({len(eligible)})</h2>"
    yield from _table(
        ("", "node", "variant", "tier", "score", *names, "flags"),
        (_candidate(place, one) for place, one in enumerate(eligible, start=1)),
        numbers=(0, *range(4, 5 + len(names))),
    )


def _candidate(place: int, one: CandidateShape) -> Sequence[str]:
    terms = [f"{worth:.2f}" for _name, worth in terms_of(one)]
    total = f"{one['total']:.2f}"
    return (
        str(place),
        one["node"],
        one["variant"],
        one["tier"],
        total,
        *terms,
        ", ".join(one["flags"]),
    )


def _nearest(rejected: Sequence[RejectedShape]) -> Iterable[str]:
    misses = nearest(rejected)
    if not misses:
        return
    yield f"<h2>Nearest misses, each rejected by one constraint ({len(misses)})</h2>"
    rows = (
        (
            node,
            group["rejections"][0]["constraint"],
            "; ".join(dict.fromkeys(one["change"] for one in group["rejections"])),
        )
        for node, group in misses
    )
    yield from _table(("node", "constraint", "what would admit it"), rows)


def _rejected(rejected: Sequence[RejectedShape]) -> Iterable[str]:
    if not rejected:
        return
    by_node = sorted((node, group) for group in rejected for node in group["nodes"])
    yield f"<h2>Rejected ({len(by_node)})</h2>"
    yield from _table(
        ("node", "constraint", "why"),
        (
            (node if number == 0 else "", one["constraint"], one["detail"])
            for node, group in by_node
            for number, one in enumerate(group["rejections"])
        ),
    )


def _checks(node: str, checks: Sequence[CheckShape]) -> Iterable[str]:
    yield f"<h2>All checks of {_text(node)}</h2>"
    yield from _table(
        ("", "constraint", "found"),
        (("ok" if one["passed"] else "FAIL", one["constraint"], one["detail"]) for one in checks),
    )


def _lines(title: str, lines: Sequence[str]) -> Iterable[str]:
    if lines:
        yield f"<h2>{_text(title)}</h2>"
        yield "<ul>"
        yield from (f"<li>{_text(line.strip())}</li>" for line in lines)
        yield "</ul>"


def _table(
    head: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: Sequence[int] = ()
) -> Iterable[str]:
    """Write a table; `numbers` are the columns to set flush right."""

    def cells(tag: str, row: Sequence[str]) -> str:
        return "".join(
            f"<{tag}{' class=n' if column in numbers else ''}>{_text(cell)}</{tag}>"
            for column, cell in enumerate(row)
        )

    yield f"<table><thead><tr>{cells('th', head)}</tr></thead><tbody>"
    yield from (f"<tr>{cells('td', row)}</tr>" for row in rows)
    yield "</tbody></table>"
