"""A ledger on a real file for each test that asks for one."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ledger.made import a_ledger, opened
from wlctl.ledger.store import Ledger


@pytest.fixture(scope="session")
def new_ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new ledger that nobody has open, to be copied: making one takes a while."""
    path = tmp_path_factory.mktemp("new") / "ledger.db"
    with a_ledger(path):
        pass
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the ledger of this test is, or is to be."""
    return tmp_path / "ledger.db"


@pytest.fixture
def ledger(path: Path, new_ledger: Path) -> Iterator[Ledger]:
    """A new ledger, whose chain has one event."""
    shutil.copy(new_ledger, path)  # and its mode
    with opened(path) as ledger:
        yield ledger
