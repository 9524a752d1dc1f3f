"""The fleet that these tests share: empty before each of them, and after a failure made anew."""

import contextlib
from collections.abc import Iterator

import pytest

from tests.fleet.dies import Dying
from tests.fleet.field import Fleet, fleet_in, variables
from wlctl.flows import runtime


class Fleets:
    """Hands the same fleet out again, as long as everybody leaves it empty."""

    def __init__(self, directories: pytest.TempPathFactory) -> None:
        self._directories = directories
        self._stack = contextlib.ExitStack()
        self._fleet: Fleet | None = None

    def get(self) -> Fleet:
        if self._fleet is None:
            directory = self._directories.mktemp("fleet")
            home = directory / "home"
            home.mkdir(mode=0o700)
            self._fleet = self._stack.enter_context(fleet_in(directory, home))
        return self._fleet

    def drop(self) -> None:
        self._fleet = None
        self._stack.close()


@pytest.fixture(autouse=True)
def _ssh_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No configuration of ssh, and no agent, of whoever runs the tests."""
    monkeypatch.setattr(runtime, "ssh_configs", lambda: ())
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)


@pytest.fixture(scope="session")
def fleets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleets]:
    made = Fleets(tmp_path_factory)
    try:
        yield made
    finally:
        made.drop()


@pytest.fixture
def fleet(fleets: Fleets) -> Iterator[Fleet]:
    """Two nodes with nothing on them; the test leaves them so, or has failed."""
    found = fleets.get()
    try:
        yield found
        found.proxy.plan()
        found.assert_empty()
    except BaseException:
        fleets.drop()
        raise


@pytest.fixture
def dying(fleet: Fleet) -> Iterator[Dying]:
    """The program, which ends itself when it is told to."""
    made = Dying(fleet.package.parent, variables(fleet))
    try:
        yield made
    finally:
        made.close()


@pytest.hookimpl(tryfirst=True)  # before `-m` looks at the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "_ssh_alone" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.root)
            item.add_marker(pytest.mark.sshd)
