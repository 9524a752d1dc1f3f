"""Packages to test with: a directory with a description and files, and signers made up."""

from base64 import b64encode
from collections.abc import Collection, Mapping
from pathlib import Path

from wlctl.model.package import SignatureReading, Signer
from wlctl.package.verify import Trust

MINIMAL = """\
kind = "service"
name = "web"
version = "1.4.2"

[run]
command = ["./bin/web"]

[[variant]]
name = "any"
files = ["bin/web"]
"""

SCRIPT = b"#!/bin/sh\nexec sleep 1000\n"


def with_line(line: str) -> str:
    """Put a line in the place of the one that sets the same key."""
    key = line.split(" = ", maxsplit=1)[0]
    lines = [line if old.startswith(f"{key} = ") else old for old in MINIMAL.splitlines()]
    return "\n".join(lines) + "\n"


def a_package(
    directory: Path, text: str = MINIMAL, files: Mapping[str, bytes] | None = None
) -> Path:
    """Write a package directory; what lies in `bin/` is executable."""
    for path, data in {"bin/web": SCRIPT, **(files or {})}.items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_bytes(data)
        (directory / path).chmod(0o755 if path.startswith("bin/") else 0o644)
    (directory / "workload.toml").write_text(text, encoding="utf-8")
    return directory


def a_signer(name: str) -> Signer:
    return Signer(name, f"made-up {b64encode(name.encode()).decode()}", 0)


def a_trust(*names: str, revoked: Collection[str] = ()) -> Trust:
    """Accept these signers.

    A signature is two words, the signer and the first bytes of what was signed; `bad` is no
    signature of anything.
    """

    def check(signature: bytes, message: bytes) -> SignatureReading:
        name, _, start = signature.decode("ascii", errors="replace").partition(" ")
        if not start:
            return SignatureReading("", "not a signature")
        fits = message.startswith(start.encode())
        return SignatureReading(a_signer(name).fingerprint, None if fits else "it does not fit")

    accepted = {signer.fingerprint: signer for signer in map(a_signer, names)}
    return Trust(accepted, frozenset(a_signer(name).fingerprint for name in revoked), check)


def put_signature(directory: Path, name: str, text: str) -> None:
    (directory / "signatures").mkdir(exist_ok=True)
    (directory / "signatures" / f"{name}.sig").write_text(text)
