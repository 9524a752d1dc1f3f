"""Every code and state has an explanation, and `wlctl help` knows it."""

import re
from collections import Counter

import pytest

from tests.cli.program import Program
from wlctl.cli import topics
from wlctl.cli.topics import Topic
from wlctl.errors import ExitCode, WlctlError

EVERY = topics.every()
CODED = topics.coded()


@pytest.mark.parametrize("error", CODED, ids=lambda error: error.__name__)
def test_an_error_has_a_code_and_an_explanation(error: type[WlctlError]) -> None:
    assert re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", error.code)
    assert isinstance(error.exit_code, ExitCode)
    assert error.exit_code is not ExitCode.DONE
    assert error.__doc__ is not None
    assert error.__doc__ != WlctlError.__doc__


def test_an_error_has_a_code_of_its_own() -> None:
    assert not [code for code, n in Counter(error.code for error in CODED).items() if n > 1]


def test_every_error_that_can_be_raised_has_a_code() -> None:
    def leaves(error: type[WlctlError]) -> set[type[WlctlError]]:
        below = error.__subclasses__()
        return {leaf for each in below for leaf in leaves(each)} if below else {error}

    assert leaves(WlctlError) <= set(CODED)


@pytest.mark.parametrize("topic", EVERY, ids=lambda topic: f"{topic.kind}-{topic.word}")
def test_a_word_has_an_explanation(topic: Topic) -> None:
    assert topic.text.endswith((".", "?", ")")), (
        f"give {topic.word} a docstring where it is defined"
    )


def test_a_word_has_one_meaning_of_each_kind() -> None:
    assert not [word for word, n in Counter((t.kind, t.word) for t in EVERY).items() if n > 1]


def test_every_exit_code_is_listed(program: Program) -> None:
    done = program.run("help", "exit-codes")

    assert [int(line.split()[0]) for line in done.stdout.splitlines()] == sorted(ExitCode)


def test_help_knows_every_word(program: Program) -> None:
    listed = program.run("help", "topics").stdout

    for topic in EVERY:
        assert f"\n  {topic.word} " in listed


def test_help_on_a_word_gives_its_kind_exit_code_and_whole_text(program: Program) -> None:
    done = program.run("help", "no-home")

    [topic] = [topic for topic in EVERY if topic.word == "no-home"]
    assert done.stdout.startswith("no-home (error code, exit code 2)\n")
    assert topic.text.split() == done.stdout.partition("\n")[2].split()


def test_help_on_an_unknown_word_offers_the_nearest(program: Program) -> None:
    done = program.run("help", "no-hom")

    hint = "did you mean no-home? `wlctl help topics` lists all"
    assert done.stderr == f"wlctl: there is no help on no-hom: {hint} [usage]\n"
    assert done.returncode == 2
