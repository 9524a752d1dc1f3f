"""The glossary: each word once, in order, explained in sentences."""

import re
from pathlib import Path

TEXT = (Path(__file__).parents[2] / "docs" / "glossary.md").read_text(encoding="utf-8")
ENTRIES = re.findall(r"^\*\*(.+?)\*\*: (.+?)(?=\n\n)", TEXT, re.MULTILINE | re.DOTALL)


def test_each_word_stands_once_and_in_order() -> None:
    words = [word for word, _ in ENTRIES]

    assert words == sorted(set(words))
    assert len(words) == TEXT.count("\n**")


def test_each_word_is_explained_in_sentences() -> None:
    assert not [word for word, text in ENTRIES if not (text[0].isupper() and text.endswith("."))]
