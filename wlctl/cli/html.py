"""Decisions as a page in a file, for whoever has no terminal at hand."""

from collections.abc import Sequence
from pathlib import Path

from wlctl.errors import InvalidFile
from wlctl.flows.decisions import Explained
from wlctl.flows.place import Report
from wlctl.model.event import rfc3339
from wlctl.placement.page import Article, page


def of_stored(found: Sequence[Explained]) -> list[Article]:
    """Make articles of stored decisions."""
    return [
        Article(
            one.document,
            (
                ("decision", one.stored.id),
                ("decided", rfc3339(one.stored.at_ms)),
                ("about", one.stored.name),
                ("event", str(one.stored.seq)),
                *((("dry run", "yes"),) if one.stored.dry_run else ()),
            ),
        )
        for one in found
    ]


def of_report(report: Report) -> list[Article]:
    """Make an article of what `place` decided; none where there was nothing to decide."""
    doc = report.document
    if doc is None:
        return []
    facts = [
        ("decision", report.decision or "of a saved fleet, in no chain"),
        ("decided", rfc3339(doc["decided_at_ms"])),
        ("about", report.name),
    ]
    return [Article(doc, (*facts, *([("dry run", "yes")] if report.dry_run else ())))]


def write(file: Path, articles: Sequence[Article]) -> None:
    """Write a page, unless there is nothing to tell.

    Raises:
        InvalidFile: The file cannot be written.
    """
    if not articles:
        return
    try:
        file.write_text(page(articles), encoding="utf-8")
    except OSError as error:
        raise InvalidFile(f"{file} cannot be written: {error.strerror}") from error
