"""Fuzz the parsers, led by what they reach: `python -m tests.fuzz.campaign [SECONDS [TARGET]]`.

The first byte of an input chooses the parser, so one run goes through all of them. A find ends the
run: its traceback is printed and the input kept, for `python -m tests.fuzz.campaign replay FILE`.
"""

import importlib
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any, NoReturn

MAX_INPUT_BYTES = 8192
HANGS_S = 20
USAGE = "usage: python -m tests.fuzz.campaign [SECONDS [TARGET]] | replay FILE"


def main(argv: list[str]) -> int:
    """Run until the time is over or something is found; nothing is left where nothing was."""
    if argv[1:2] == ["replay"]:
        from tests.fuzz.targets import TARGETS

        _chosen(Path(argv[2]).read_bytes(), list(TARGETS.values()))
        return 0
    corpus = Path(tempfile.mkdtemp(prefix="wlctl-fuzz-"))
    child = os.fork()  # the fuzzer ends its process
    if child == 0:
        _fuzz(argv, corpus)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code == 0:
        shutil.rmtree(corpus)
    return code


def _fuzz(argv: list[str], corpus: Path) -> NoReturn:
    seconds = int(argv[1]) if len(argv) > 1 else 600
    atheris: Any = importlib.import_module("atheris")
    with atheris.instrument_imports(include=["wlctl"]):
        targets = importlib.import_module("tests.fuzz.targets").TARGETS
    wanted = list(targets) if len(argv) <= 2 else [argv[2]]
    functions = [targets[name] for name in wanted]
    for number, (_, seed) in enumerate(functions):
        (corpus / str(number)).write_bytes(bytes([number]) + seed)
    options = [f"-max_total_time={seconds}", f"-timeout={HANGS_S}", f"-max_len={MAX_INPUT_BYTES}"]
    options += [f"-artifact_prefix={corpus}/find-", "-print_final_stats=1", "-rss_limit_mb=2048"]
    atheris.Setup([argv[0], *options, str(corpus)], lambda data: _chosen(data, functions))
    atheris.Fuzz()
    raise AssertionError(USAGE)


def _chosen(data: bytes, functions: list[Any]) -> None:
    if data:
        functions[data[0] % len(functions)][0](data[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv))
