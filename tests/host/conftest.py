"""The nodes that the action tests share: one of each kind, for the whole run."""

import contextlib
from collections.abc import Iterator

import pytest

from tests.host.bench import INSTALLATION, Bench
from tests.host.nodes import LOGINS, PLAIN_USER, SHELLS, SshdNode, sshd_nodes
from tests.host.systemd import container

KINDS = [(shell, login) for shell in SHELLS for login in LOGINS]


class Fleet(dict[tuple[str, str], SshdNode]):
    """The nodes by kind, each booted when it is first asked for; `systemd` is one of the kinds."""

    def __init__(self, stack: contextlib.ExitStack) -> None:
        super().__init__()
        self._stack = stack

    def __missing__(self, kind: tuple[str, str]) -> SshdNode:
        shell, login = kind
        if shell != "systemd":
            self[kind] = self._stack.enter_context(sshd_nodes(1, shell=shell, login=login))[0]
            return self[kind]
        user = "root" if login == "root" else PLAIN_USER
        node = self._stack.enter_context(container(user=user))
        node.sh(f"loginctl enable-linger {PLAIN_USER}")
        self[kind] = node
        return node


@pytest.fixture(scope="session")
def fleet() -> Iterator[Fleet]:
    """One node of each kind."""
    with contextlib.ExitStack() as stack:
        yield Fleet(stack)


@pytest.fixture
def bench(request: pytest.FixtureRequest, fleet: Fleet) -> Iterator[Bench]:
    """A session on a node of the kind that the test is marked with; nothing may be left on it."""
    bench = Bench(fleet[request.param])
    if not (bench.node.state / "node_id").exists():
        bench.session.facts(INSTALLATION)  # the first, or since a test took all of it away
    try:
        yield bench
        bench.clear()
        assert bench.left_over() == []
    finally:
        left = bench.left_over()
        bench.session.close()
        if left:
            bench.node.sweep()


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
