"""The only writer to stdout and stderr: data on the one, everything else on the other."""

import os
import select
import sys
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from typing import TextIO

from wlctl.cli.escape import visible
from wlctl.errors import OutputFailed, WlctlError

STDERR = 2
LINES = "\n"
"""What a text of several lines keeps of its control characters."""


class Streams:
    """Stdout and stderr of one command.

    Attributes:
        err: Stderr; only a progress bar writes to it by itself.
        reader_gone: Whoever read stdout has closed it (`| head`): print no more, fail no less.
    """

    def __init__(self, out: TextIO, err: TextIO) -> None:
        self._out = out
        self.err = err
        self.reader_gone = False

    @classmethod
    def of_this_process(cls) -> "Streams":
        """Take over the process's own, closed or odd as they may be."""
        _hold_standard_descriptors()
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")
        return cls(sys.stdout or _nowhere(), sys.stderr or _nowhere())

    @property
    def out_is_terminal(self) -> bool:
        """Answer whether a person reads stdout."""
        return self._out.isatty()

    @property
    def err_is_terminal(self) -> bool:
        """Answer whether a person reads stderr."""
        return self.err.isatty()

    def is_read(self) -> bool:
        """Answer whether somebody may still read stdout: of a pipe, without writing to it."""
        if self.reader_gone:
            return False
        try:
            watched = select.poll()
            watched.register(self._out, 0)  # errors alone, which are always told
            return not any(event & select.POLLERR for _, event in watched.poll(0))
        except (OSError, ValueError):  # ValueError: it has no descriptor, as in a test
            return True

    @property
    def out_is_unicode(self) -> bool:
        """Answer whether stdout can carry every character."""
        return (self._out.encoding or "").lower().replace("-", "").startswith("utf")

    def data(self, text: str, *, now: bool = False) -> None:
        """Print `text`, already escaped and with its newlines, as the answer.

        Args:
            text: Whole lines.
            now: Do not wait for more of it; for output that comes as things happen.

        Raises:
            OutputFailed: It cannot be written, for another reason than a reader who left.
        """
        try:
            self._out.write(text)
            if now:
                self._out.flush()
        except BrokenPipeError:
            self._leave_out()
        except OSError as error:
            raise _output_failed(error) from error

    def note(self, text: str) -> None:
        """Say one line to whoever watches; where nobody can, nothing is lost."""
        with suppress(OutputFailed):  # `finish` meets it again, and says so
            self._flush()
        self._say(f"wlctl: {visible(text)}")

    def failure(self, failure: WlctlError) -> None:
        """Say what happened, what to do, and the code that `wlctl help` explains."""
        hint = f": {failure.hint}" if failure.hint else ""
        self.note(f"{failure.message}{hint} [{failure.code}]")

    def trace(self, lines: str) -> None:
        """Print a traceback."""
        self._say(visible(lines.rstrip(LINES), keep=LINES))

    def aside(self, text: str) -> None:
        """Print a text of several lines that is not data: help nobody asked for."""
        self._say(visible(text, keep=LINES))

    def ask(self, question: str) -> str:
        """Put `question` to the terminal and return the line typed; empty at its end."""
        with suppress(OSError):
            self.err.write(f"{visible(question)} ")
            self.err.flush()
        return sys.stdin.readline()

    def finish(self) -> None:
        """Send what is still buffered.

        Raises:
            OutputFailed: It cannot be written; nothing of it will be tried again.
        """
        try:
            self._flush()
        except OutputFailed:
            self._leave_out()
            raise

    def _flush(self) -> None:
        try:
            self._out.flush()
        except BrokenPipeError:
            self._leave_out()
        except OSError as error:
            raise _output_failed(error) from error

    def _say(self, text: str) -> None:
        try:
            self.err.write(f"{text}\n")
            self.err.flush()
        except OSError:
            _send_nowhere(self.err)

    def _leave_out(self) -> None:
        self.reader_gone = True
        _send_nowhere(self._out)


def _send_nowhere(stream: TextIO) -> None:
    """Drop what a stream still holds, or the interpreter would fail over it at its end."""
    with suppress(OSError, ValueError):  # ValueError: it has no descriptor, as in a test
        nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def _nowhere() -> TextIO:
    return Path(os.devnull).open("w", encoding="utf-8")


def _output_failed(error: OSError) -> OutputFailed:
    return OutputFailed(
        f"the answer could not be written: {error.strerror}",
        hint="what the command did is done; send stdout elsewhere and ask again",
    )


def _hold_standard_descriptors() -> None:
    """Keep 0, 1 and 2 taken, so that no ledger or socket is ever opened as one of them."""
    descriptor = os.open(os.devnull, os.O_RDWR)
    while descriptor <= STDERR:
        descriptor = os.open(os.devnull, os.O_RDWR)
    os.close(descriptor)
