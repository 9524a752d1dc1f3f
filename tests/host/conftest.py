"""The nodes that the action tests share: one of each kind, for the whole run."""

import contextlib
import shutil
from collections.abc import Iterator

import pytest

from tests.host.bench import Bench
from tests.host.nodes import LOGINS, SHELLS, SshdNode, sshd_nodes

KINDS = [(shell, login) for shell in SHELLS for login in LOGINS]


@pytest.fixture(scope="session")
def fleet() -> Iterator[dict[tuple[str, str], SshdNode]]:
    """One node of each kind."""
    with contextlib.ExitStack() as stack:
        yield {
            (shell, login): stack.enter_context(sshd_nodes(1, shell=shell, login=login))[0]
            for shell, login in KINDS
        }


@pytest.fixture
def bench(
    request: pytest.FixtureRequest, fleet: dict[tuple[str, str], SshdNode]
) -> Iterator[Bench]:
    """A session on a node of the kind that the test is marked with; nothing may be left on it."""
    bench = Bench(fleet[request.param])
    try:
        yield bench
        bench.clear()
        assert bench.left_over() == []
    finally:
        left = bench.left_over()
        bench.session.close()
        if left:
            _sweep(bench.node)


def _sweep(node: SshdNode) -> None:
    """Give the next test an empty node, whatever became of this one."""
    node.kill()
    shutil.rmtree(node.state)
    node.start()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "kinds(list): the (shell, login) nodes a test wants; all by default"
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "bench" not in metafunc.fixturenames:
        return
    marker = metafunc.definition.get_closest_marker("kinds")
    kinds = KINDS if marker is None else marker.args[0]
    metafunc.parametrize(
        "bench", kinds, ids=[f"{shell}-{login}" for shell, login in kinds], indirect=True
    )


@pytest.hookimpl(tryfirst=True)  # before `-m` looks at the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "fleet" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.root)
            item.add_marker(pytest.mark.sshd)
