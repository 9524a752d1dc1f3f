"""The restart policy of a node's shell is that of `lifecycle.restart`, whichever shell it is."""

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.policies import EDGES, NOW
from wlctl.host import script
from wlctl.lifecycle.restart import Answer, Exhausted, Restart, Wait, decide, remembered
from wlctl.model.package import RestartPolicy

SHELLS = [("dash",), ("bash",), ("busybox", "ash")]
each_shell = pytest.mark.parametrize("shell", SHELLS, ids=lambda argv: argv[0])

POLICY_SH = (Path(script.__file__).parent / "actions/policy.sh").read_text("ascii")

Asked = tuple[RestartPolicy, Sequence[int], int]


def ask(shell: tuple[str, ...], asked: Sequence[Asked]) -> list[tuple[Answer, list[int]]]:
    """Ask a shell each of these; give what it answers, and which moments it keeps."""
    lines = "".join(
        f"decide {now} {policy.max_restarts} {policy.window_ms} {policy.backoff_base_ms}"
        f" {policy.backoff_max_ms} {' '.join(map(str, at_ms))}; echo $verdict $within $times\n"
        for policy, at_ms, now in asked
    )
    program = f"set -fu\n{POLICY_SH}\n{lines}"
    done = subprocess.run([*shell, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return [_read(line.split()) for line in done.stdout.splitlines()]


def _read(words: list[str]) -> tuple[Answer, list[int]]:
    word, number, within, *times = words
    assert int(within) == len(times)
    answers: dict[str, Callable[[int], Answer]] = {
        "exhausted": Exhausted,
        "wait": Wait,
        "restart": Restart,
    }
    return answers[word](int(number)), [int(at) for at in times]


@each_shell
def test_each_edge_of_the_policy(shell: tuple[str, ...]) -> None:
    found = ask(shell, [(case.policy, case.at_ms, NOW) for case in EDGES])

    assert dict(
        zip((case.rule for case in EDGES), (answer for answer, _ in found), strict=True)
    ) == {case.rule: case.answer for case in EDGES}


SPANS = st.one_of(st.integers(0, 5), st.integers(0, 100_000), st.integers(0, 10**15 - 1))
MOMENTS = st.integers(0, 10**15 - 1)


@st.composite
def questions(draw: st.DrawFn) -> Asked:
    now = draw(MOMENTS)
    near = st.integers(max(0, now - 200_000), now + 1_000)
    at_ms = draw(st.lists(st.one_of(near, MOMENTS), max_size=30))
    policy = RestartPolicy(draw(st.integers(0, 30)), draw(SPANS), draw(SPANS), draw(SPANS))
    return policy, at_ms, now


@each_shell
@settings(max_examples=25, deadline=None)
@given(asked=st.lists(questions(), min_size=1, max_size=40))
def test_whatever_it_is_asked_it_answers_as_this_side_does(
    shell: tuple[str, ...], asked: list[Asked]
) -> None:
    for (policy, at_ms, now), (answer, kept) in zip(asked, ask(shell, asked), strict=True):
        assert answer == decide(policy, at_ms, now), (policy, at_ms, now)
        assert sorted(kept) == list(remembered(policy, at_ms, now))
