"""The five fields of a cron line: are they well-formed? When they are due is not decided here."""

import re

_FIELDS = (
    ("minute", 0, 59),
    ("hour", 0, 23),
    ("day of month", 1, 31),
    ("month", 1, 12),
    ("day of week", 0, 7),
)
_ITEM = re.compile(r"(?:\*|([0-9]{1,2})(?:-([0-9]{1,2}))?)(?:/([0-9]{1,2}))?")


def fault(line: str) -> str | None:
    """Say what is wrong with a cron line, or None.

    A field is `*`, a number, `A-B`, any of these with `/STEP`, or several of them with commas.

    Source: crontab(5), without names and without `@` words.
    """
    fields = line.split(" ")
    if len(fields) != len(_FIELDS):
        return f"{len(fields)} fields; write five: minute hour day month weekday"
    for text, (noun, least, most) in zip(fields, _FIELDS, strict=True):
        if not all(_is_item(item, least, most) for item in text.split(",")):
            return f"{text[:40]!r} is not a {noun}: *, {least}-{most}, A-B, with /STEP, or a list"
    return None


def _is_item(item: str, least: int, most: int) -> bool:
    match = _ITEM.fullmatch(item)
    if match is None:
        return False
    first, last, step = (None if group is None else int(group) for group in match.groups())
    if step == 0 or (step is not None and first is not None and last is None):
        return False
    if first is None:
        return True
    return least <= first <= (first if last is None else last) <= most
