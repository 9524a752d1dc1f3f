"""Is this package what an accepted signer signed? Asked in a fixed order, answered with a code."""

import hashlib
import os
import stat
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from wlctl.errors import (
    BadSignature,
    FileMissing,
    FileTampered,
    ManifestInvalid,
    MissingSignature,
    Revoked,
    RevokedSigner,
    UntrustedSigner,
)
from wlctl.model.event import rfc3339
from wlctl.model.package import Manifest, PackageFile, SignatureReading, Signer
from wlctl.package import manifest, tree
from wlctl.package.fault import quoted
from wlctl.package.store import ContentDiffers, Store

SignatureCheck = Callable[[bytes, bytes], SignatureReading]
"""Reads a signature file and judges it against the bytes it should be about."""

MAX_SIGNATURES = 64
MAX_SIGNATURE_BYTES = 16 * 1024


@dataclass(frozen=True, slots=True)
class Trust:
    """Whose signatures count.

    Attributes:
        accepted: By fingerprint.
        revoked: Fingerprints, package ids and hashes of files; a key that is both accepted and
            revoked is revoked.
        check: Reads and judges one signature.
        lapsed: Signers that are accepted no longer or not yet, by fingerprint.
    """

    accepted: Mapping[str, Signer]
    revoked: Collection[str]
    check: SignatureCheck
    lapsed: Mapping[str, Signer] = field(default_factory=dict)

    def knows(self, fingerprint: str) -> bool:
        """Answer whether a bad signature by this key is one too many."""
        return any(fingerprint in one for one in (self.accepted, self.revoked, self.lapsed))


@dataclass(frozen=True, slots=True)
class Verified:
    """A package that an accepted signer signed, and every file of it as it was signed.

    Attributes:
        signers: Whose signatures were accepted, ascending by name; never empty.
        signatures: Theirs, in the same order.
    """

    manifest: Manifest
    signers: tuple[Signer, ...]
    signatures: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Statement:
    """A package's manifest and what stands in `signatures`, none of it believed yet.

    Attributes:
        signatures: File name and bytes, ascending by name; None for one that is no readable file.
    """

    manifest: Manifest
    signatures: tuple[tuple[str, bytes | None], ...]


def read(directory: Path) -> Statement:
    """Read what a package says of itself, and believe nothing.

    Raises:
        InvalidFile: There is no such directory.
        ManifestInvalid: The manifest is missing or not what a build writes.
        UnknownKind: It is of a kind that is not known here.
        FilesUnreadable: The system does not give a file.
    """
    with tree.opened(directory) as root:
        return _read(directory, root)


def verify(directory: Path, trust: Trust, store: Store | None = None) -> Verified:
    """Verify a package, and copy what was verified.

    First the manifest, then the signatures, and only then the files. Each file is hashed from the
    same descriptor that is copied, so nothing can be exchanged in between.

    Args:
        directory: Of the package.
        trust: Whose signatures count.
        store: Where the files are copied to; None copies nothing.

    Raises:
        InvalidFile, ManifestInvalid, UnknownKind, FilesUnreadable: As `read`.
        MissingSignature, UntrustedSigner, RevokedSigner, BadSignature, Revoked: As `accept`.
        FileMissing: A listed file is not there.
        FileTampered: A listed file is not what the manifest states.
    """
    with tree.opened(directory) as root:
        statement = _read(directory, root)
        verified = accept(statement, trust)
        for file in statement.manifest.files:
            _check_file(root, file, store)
    return verified


def check_files(directory: Path) -> Statement:
    """Compare a package's files with its own manifest, whoever signed it.

    Raises:
        InvalidFile, ManifestInvalid, UnknownKind, FilesUnreadable: As `read`.
        FileMissing, FileTampered: As `verify`.
    """
    with tree.opened(directory) as root:
        statement = _read(directory, root)
        for file in statement.manifest.files:
            _check_file(root, file, None)
    return statement


def accept(statement: Statement, trust: Trust) -> Verified:
    """Find the accepted signers of a statement.

    A signature by an unknown key is passed over; one by a known key that does not fit, and a file
    that is no signature at all, are not.

    Raises:
        MissingSignature: There is none.
        BadSignature: One by a known key does not fit, or one cannot be read.
        RevokedSigner: Only revoked keys signed.
        UntrustedSigner: Nobody who is accepted signed, or only who is so no longer or not yet.
        Revoked: The package, or a file in it, is revoked, whoever signed.
    """
    text = statement.manifest.text.encode()
    found: dict[str, str] = {}
    unknown: list[str] = []
    revoked: list[str] = []
    for name, data in statement.signatures:
        reading = _reading(name, data, text, trust)
        if reading.fingerprint in trust.revoked:
            revoked.append(reading.fingerprint)
        elif reading.fingerprint in trust.accepted:
            found[reading.fingerprint] = (data or b"").decode("ascii")
        else:
            unknown.append(reading.fingerprint)
    if not found:
        raise _nobody(statement.manifest, trust, unknown, revoked)
    _refuse_revoked(statement.manifest, trust)
    signers = sorted((trust.accepted[key] for key in found), key=lambda signer: signer.name)
    signatures = tuple(found[signer.fingerprint] for signer in signers)
    return Verified(statement.manifest, tuple(signers), signatures)


def _reading(name: str, data: bytes | None, text: bytes, trust: Trust) -> SignatureReading:
    if data is None:
        raise BadSignature(
            f"signature {quoted(name)} is not a plain file of at most {MAX_SIGNATURE_BYTES} bytes",
            hint="remove it and sign again",
        )
    reading = trust.check(data, text)
    is_known = trust.knows(reading.fingerprint)
    if reading.fault is not None and (is_known or not reading.fingerprint):
        signer = trust.accepted.get(reading.fingerprint)
        by = f" by {signer.name}" if signer else ""
        raise BadSignature(
            f"signature {quoted(name)}{by}: {reading.fault}",
            hint="if you built again since, sign again; if not, find out who changed what",
        )
    return reading


def _refuse_revoked(stated: Manifest, trust: Trust) -> None:
    what = f"package {stated.workload.name} {stated.workload.version}"
    if stated.package_id in trust.revoked:
        raise Revoked(f"{what} is revoked: {stated.package_id}")
    for file in stated.files:
        if file.sha256 in trust.revoked:
            raise Revoked(f"{what} has {quoted(file.path)} in it, which is revoked: {file.sha256}")


def _nobody(
    stated: Manifest, trust: Trust, unknown: Sequence[str], revoked: Sequence[str]
) -> MissingSignature | RevokedSigner | UntrustedSigner:
    what = f"package {stated.workload.name} {stated.workload.version}"
    if revoked:
        return RevokedSigner(f"{what} is signed by a revoked key: {', '.join(sorted(revoked))}")
    lapsed = [trust.lapsed[key] for key in unknown if key in trust.lapsed]
    if lapsed:
        return UntrustedSigner(
            f"{what} is signed by {_when(lapsed[0])}",
            hint="have it signed by somebody who is accepted now: `wlctl signer ls`",
        )
    if unknown:
        return UntrustedSigner(
            f"{what} is signed by no accepted key, only by {', '.join(sorted(unknown))}",
            hint="`wlctl signer ls` lists the accepted ones; "
            "`wlctl signer add NAME KEYFILE` adds one",
        )
    return MissingSignature(
        f"{what} is not signed", hint="sign it: wlctl package sign DIR --key FILE"
    )


def _when(signer: Signer) -> str:
    after, before = signer.valid_after_ms, signer.valid_before_ms
    since = "" if after is None else f" from {rfc3339(after)}"
    until = "" if before is None else f" until {rfc3339(before)}"
    return f"{signer.name}, who is accepted{since}{until} only"


def _read(directory: Path, root: int) -> Statement:
    build_it = f"build the package: wlctl package build {directory}"
    try:
        with tree.opened_file(root, manifest.FILE_NAME) as file:
            data = tree.read_bounded(file, manifest.MAX_MANIFEST_BYTES)
        if data is None:
            most = manifest.MAX_MANIFEST_BYTES
            raise ManifestInvalid(f"{manifest.FILE_NAME} has more than {most} bytes")
        return Statement(manifest.read(data), tuple(_signatures(root)))
    except FileNotFoundError as error:
        raise ManifestInvalid(f"{directory} has no {manifest.FILE_NAME}", hint=build_it) from error
    except tree.NotPlain as error:
        raise ManifestInvalid(error.what, hint=build_it) from error
    except OSError as error:
        raise tree.unreadable(str(directory), error) from error


def _signatures(root: int) -> Iterator[tuple[str, bytes | None]]:
    try:
        names = [
            path
            for path, _ in tree.listing(root, manifest.SIGNATURES)
            if path.count("/") == 1 and path.endswith(manifest.SIGNATURE_SUFFIX)
        ]
    except FileNotFoundError:
        return
    except tree.NotPlain as error:
        raise BadSignature(error.what) from error
    if len(names) > MAX_SIGNATURES:
        raise BadSignature(f"{len(names)} signatures; at most {MAX_SIGNATURES} are read")
    for path in names:
        try:
            with tree.opened_file(root, path) as file:
                yield path, tree.read_bounded(file, MAX_SIGNATURE_BYTES)
        except tree.NotPlain:
            yield path, None


def _check_file(root: int, file: PackageFile, store: Store | None) -> None:
    try:
        with tree.opened_file(root, file.path) as opened:
            _check_opened(opened, file, store)
    except FileNotFoundError as error:
        raise FileMissing(f"{quoted(file.path)} is listed and not there") from error
    except tree.NotPlain as error:
        raise FileTampered(error.what) from error
    except ContentDiffers as error:
        raise FileTampered(
            f"{quoted(file.path)} has other bytes than the manifest states"
        ) from error
    except OSError as error:
        raise tree.unreadable(file.path, error) from error


def _check_opened(opened: int, file: PackageFile, store: Store | None) -> None:
    status = os.fstat(opened)
    if status.st_size != file.size_bytes:
        raise FileTampered(
            f"{quoted(file.path)} has {status.st_size} bytes, the manifest states {file.size_bytes}"
        )
    mode = manifest.EXECUTABLE if status.st_mode & stat.S_IXUSR else manifest.PLAIN
    if mode != file.mode:
        word = "is executable" if mode == manifest.EXECUTABLE else "is not executable"
        raise FileTampered(f"{quoted(file.path)} {word}, the manifest states {file.mode}")
    chunks = _bounded(tree.chunks(opened), file.size_bytes)
    if store is not None:
        store.put(file.sha256, chunks)
    else:
        _compare(chunks, file.sha256)


def _compare(chunks: Iterator[bytes], sha256: str) -> None:
    digest = hashlib.sha256()
    for chunk in chunks:
        digest.update(chunk)
    if digest.hexdigest() != sha256:
        raise ContentDiffers


def _bounded(chunks: Iterator[bytes], most_bytes: int) -> Iterator[bytes]:
    """Pass the chunks on; a file that grows while it is read is cut off, not followed."""
    left = most_bytes
    for chunk in chunks:
        left -= len(chunk)
        if left < 0:
            raise ContentDiffers
        yield chunk
