"""What an enforced node costs: the same actions with the doorkeeper and without, in turn, medians.

One real sshd each with dash, bash and busybox. `facts` is an action that only looks; `place` also
verifies signature, manifest, sheet and files on the node.

Run as root: `python benchmarks/doorkeeper.py [--rounds N]`. Prints ratios; no goal is set.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.host.bench import INSTALLATION, Bench  # noqa: E402 - the tests' nodes
from tests.host.enforced import Door, Signed, door, package  # noqa: E402
from tests.host.nodes import SHELLS  # noqa: E402


def timed_ms(act: Callable[[], object]) -> float:
    """Return how long it took."""
    began_at_s = time.perf_counter()
    act()
    return (time.perf_counter() - began_at_s) * 1000


def look(house: Door, rounds: int) -> list[float]:
    """Time `facts` over one warm connection."""
    with house.bench() as ours:
        ours.session.facts(INSTALLATION)
        return [timed_ms(lambda: ours.session.facts(INSTALLATION)) for _ in range(rounds)]


def place(house: Door, signed: Signed, rounds: int) -> list[float]:
    """Time `place`, each time of a new copy."""
    with house.bench() as ours:
        return [_placed(house, ours, signed) for _ in range(rounds)]


def _placed(house: Door, ours: Bench, signed: Signed) -> float:
    request = house.request(ours, signed)
    took_ms = timed_ms(lambda: ours.place(request))
    ours.clear()
    return took_ms


def measure(shell: str, rounds: int) -> None:
    """Print what the doorkeeper adds on a node with that shell."""
    with tempfile.TemporaryDirectory() as keys, door(Path(keys), shell=shell) as house:
        signed = package(Path(keys) / "package", house.signer)
        found: dict[str, list[float]] = {"facts": [], "place": []}
        through: dict[str, list[float]] = {"facts": [], "place": []}
        for _ in range(3):  # in turn, so that what else the machine does falls on both
            for took in (found, through):
                took["facts"] += look(house, rounds)
                took["place"] += place(house, signed, max(1, rounds // 5))
                if took is found:
                    house.put()
            house.remove()
        for name, took_ms in found.items():
            before, after = statistics.median(took_ms), statistics.median(through[name])
            print(
                f"{shell:8} {name:6} {before:6.1f} ms, enforced {after:6.1f} ms: "
                f"{after - before:+.1f} ms, {after / before:.2f} x"
            )


def main() -> None:
    """Measure on each shell."""
    asks = argparse.ArgumentParser(description=__doc__)
    asks.add_argument("--rounds", type=int, default=20)
    rounds = asks.parse_args().rounds
    for shell in SHELLS:
        measure(shell, rounds)


if __name__ == "__main__":
    main()
