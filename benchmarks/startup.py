"""Start-up: `wlctl --version` and `--help` against a bare typer program, interleaved, medians.

Run `python benchmarks/startup.py [ROUNDS]`. Exits 1 when a ratio is above its goal.
"""

import compileall
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

GOAL = 1.3
ROUNDS = 30

# What a typer program costs that does nothing, with the settings that cost least.
BARE = """\
import sys

import typer

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


def show_version(wanted: bool) -> None:
    if wanted:
        typer.echo("bare 0.1.0")
        raise typer.Exit


@app.callback()
def bare(version: bool = typer.Option(False, "--version", is_eager=True, callback=show_version)):
    "A program that does nothing."


@app.command()
def nothing() -> None:
    "Do nothing."


if __name__ == "__main__":
    sys.exit(app())
"""


def elapsed_ms(argv: list[str]) -> float:
    """Run a program to its end and give the time that took."""
    start = time.perf_counter()
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
    return (time.perf_counter() - start) * 1000


def main() -> int:
    """Print medians and ratios."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    wlctl = Path(sys.executable).with_name("wlctl")
    if not wlctl.exists():
        sys.exit(f"{wlctl} is not installed: run `pip install -e .` first")
    compileall.compile_dir(Path(__file__).parents[1] / "wlctl", quiet=1)  # as an installation does
    with tempfile.TemporaryDirectory() as directory:
        bare = Path(directory) / "bare.py"
        bare.write_text(BARE)
        programs = {
            (name, option): [sys.executable, str(path), option]
            for option in ("--version", "--help")
            for name, path in (("bare", bare), ("wlctl", wlctl))
        }
        times: dict[tuple[str, str], list[float]] = {key: [] for key in programs}
        for turn in range(rounds + 1):
            for key, argv in programs.items():
                took = elapsed_ms(argv)
                if turn:  # the first round only warms the caches
                    times[key].append(took)
    medians = {key: statistics.median(taken) for key, taken in times.items()}
    worst = 0.0
    for option in ("--version", "--help"):
        floor, ours = medians["bare", option], medians["wlctl", option]
        worst = max(worst, ours / floor)
        print(
            f"{option:<10} bare typer {floor:6.1f} ms   wlctl {ours:6.1f} ms"
            f"   ratio {ours / floor:.2f} (goal {GOAL})"
        )
    return int(worst > GOAL)


if __name__ == "__main__":
    sys.exit(main())
