"""What a command pays that only reads the ledger."""

import subprocess
import sys
from pathlib import Path

from wlctl.ledger.store import Ledger

OPEN_AND_READ = """
import sys
from pathlib import Path
from wlctl.ledger.opening import open_ledger
from wlctl.ledger import chain
from wlctl.model.event import Author
ledger = open_ledger(Path(sys.argv[1]), now_ms=0, author=Author("me"))
with ledger.read() as tx:
    assert list(chain.events(tx))
ledger.close()
print(*sys.modules)
"""

SPARED = {
    *("alembic", "mako", "rich", "typer", "cryptography", "paramiko"),
    *("sqlalchemy.orm", "sqlalchemy.dialects.postgresql", "sqlalchemy.dialects.mysql"),
}


def test_reading_a_ledger_loads_neither_migrations_nor_other_databases(
    ledger: Ledger, path: Path
) -> None:
    ledger.close()
    done = subprocess.run(
        [sys.executable, "-c", OPEN_AND_READ, path],
        cwd=Path(__file__).parents[2],
        check=True,
        capture_output=True,
        text=True,
    )

    assert set(done.stdout.split()) & SPARED == set()
