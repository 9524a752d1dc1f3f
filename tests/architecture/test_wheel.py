"""A wheel, installed outside the source tree, has everything that makes and migrates a ledger."""

import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2]
PARTS = ("wlctl", "migrations", "docs", "pyproject.toml", "README.md", "LICENSE")

LATER = """
import sqlalchemy as sa
from alembic import op

revision = "{later}"
down_revision = "{head}"
additive = True


def upgrade() -> None:
    op.create_table("added", sa.Column("id", sa.Text, primary_key=True))
"""

MIGRATE = """
import sys
from pathlib import Path
from wlctl.ledger.migrate import SHIPPED, Migrations
from wlctl.ledger.opening import migrate_ledger
from wlctl.model.event import Author

later = f"{int(SHIPPED.head) + 1:04}"
text = Path(sys.argv[2]).read_text().format(head=SHIPPED.head, later=later)
(SHIPPED.scripts / "versions" / f"{later}_later.py").write_text(text)
migrations = Migrations(SHIPPED.scripts, later)
print(migrate_ledger(Path(sys.argv[1]), now_ms=0, author=Author("me"), migrations=migrations).after)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of a copy of the sources, so that building leaves nothing in the tree."""
    directory = tmp_path_factory.mktemp("wheel")
    sources = directory / "sources"
    sources.mkdir()
    for part in PARTS:
        if (SOURCE / part).is_dir():
            shutil.copytree(SOURCE / part, sources / part)
        else:
            shutil.copy(SOURCE / part, sources / part)
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", directory]
    subprocess.run([*map(str, build), str(sources)], check=True, capture_output=True, timeout=120)
    (made,) = directory.glob("*.whl")
    return made


@pytest.fixture
def installed(wheel: Path, tmp_path: Path) -> dict[str, str]:
    """An environment in which `wlctl` is the wheel's and nothing else is known of it."""
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    home = tmp_path / "home"
    home.mkdir()
    return {"PYTHONPATH": str(site), "HOME": str(home), "PATH": "/usr/bin:/bin"}


def run(environment: Mapping[str, str], *words: str) -> str:
    done = subprocess.run(
        [sys.executable, *words],
        cwd=environment["HOME"],
        env=dict(environment),
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_wheel_has_the_program_migrations_actions_and_glossary_and_nothing_else(
    wheel: Path,
) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()

    inside = [name for name in names if ".dist-info/" not in name]
    assert "wlctl/migrations/env.py" in names
    assert "wlctl/migrations/versions/0001_first_light.py" in names
    assert {name.partition("/")[0] for name in inside} == {"wlctl"}
    assert {Path(name).suffix for name in inside} <= {".py", ".sh", ".typed", ".toml", ".md"}
    assert [name for name in inside if name.endswith(".md")] == ["wlctl/glossary.md"]
    actions = {path.name for path in (SOURCE / "wlctl" / "host" / "actions").glob("*.sh")}
    assert actions <= {Path(name).name for name in names}


def test_an_installed_wheel_makes_a_ledger(installed: dict[str, str]) -> None:
    where = run(installed, "-c", "import wlctl; print(wlctl.__file__)")
    assert where.startswith(installed["PYTHONPATH"]), "it must not be the source tree's"

    run(installed, "-m", "wlctl", "init")

    assert run(installed, "-m", "wlctl", "audit", "verify").startswith("whole: ")
    assert "bad" not in run(installed, "-m", "wlctl", "ledger", "check")


def test_an_installed_wheel_migrates_a_ledger(installed: dict[str, str], tmp_path: Path) -> None:
    run(installed, "-m", "wlctl", "init")
    ledger = Path(installed["HOME"], ".local", "share", "wlctl", "ledger.db")
    later = tmp_path / "later.py"
    later.write_text(LATER)

    after = run(installed, "-c", MIGRATE, str(ledger), str(later))

    assert int(after) > 1
    (backup,) = ledger.parent.glob("ledger.db.backup-*")
    assert run(installed, "-m", "wlctl", "audit", "verify", "--db", str(backup))
