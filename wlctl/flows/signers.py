"""Signers: whose signatures admit a package, and what nobody vouches for once one is gone."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from wlctl import signing
from wlctl.errors import InvalidFile, SignerConflict, UsageError
from wlctl.flows import gate, trust
from wlctl.flows.runtime import Runtime
from wlctl.ledger import chain, instances, packages, signers
from wlctl.ledger.store import ReadTx, WriteTx
from wlctl.model.instance import Instance
from wlctl.model.package import Signer, fingerprint
from wlctl.model.policy import Action
from wlctl.signing.allowed import NAME, Allowed


@dataclass(frozen=True, slots=True)
class Imported:
    """What became of a list of allowed signers.

    Attributes:
        added: New ones, in the order of the file.
        known: Those that were accepted already, as the file has them.
        passed_over: Lines that are for other things than packages.
    """

    added: tuple[Signer, ...]
    known: tuple[Signer, ...]
    passed_over: tuple[Allowed, ...]


@dataclass(frozen=True, slots=True)
class Removed:
    """A signer who is accepted no longer, or would not be.

    Attributes:
        orphaned: Current copies of packages that no other accepted signer vouches for.
    """

    signer: Signer
    orphaned: tuple[Instance, ...]


def add(rt: Runtime, name: str, key_file: Path) -> tuple[Signer, bool]:
    """Accept the signatures of the public key in a file.

    Returns:
        The signer, and whether this is new.

    Raises:
        UsageError: The name is none.
        InvalidFile, UnsafeKey, UnusableKey, FilesUnreadable: As `signing.load_public_key`.
        GateDenied: Whoever runs this may not change whose signatures count.
        SignerConflict: The name has another key, or the key another name.
    """
    if NAME.fullmatch(name) is None:
        raise UsageError(
            f"{name} cannot be the name of a signer",
            hint="use letters, digits and . _ @ + - after the first, up to 128",
        )
    public_key = signing.load_public_key(key_file)
    with gate.permitted(rt, Action.SIGNER_ADD, name) as tx:
        is_new = signers.add(tx, name, public_key)
        return signers.accepted(tx)[fingerprint(public_key)], is_new


def ls(rt: Runtime) -> list[Signer]:
    """List everyone whose signatures are accepted, or will be or were, ascending by name."""
    with rt.ledger.read() as tx:
        return signers.ls(tx)


def rm(rt: Runtime, name: str, *, dry_run: bool = False) -> Removed:
    """Accept somebody's signatures no longer; what runs goes on, and is not started again.

    Args:
        dry_run: Only say what would be vouched for by nobody.

    Raises:
        UnknownName: There is no such signer.
        GateDenied: Whoever runs this may not; or what is revoked cannot be read.
    """
    if dry_run:
        now_ms = rt.now_ms()
        with rt.ledger.read() as tx:
            found = signers.get(tx, name)
            return Removed(found, _orphaned(tx, found, now_ms))
    with rt.ledger.read() as tx:
        signers.get(tx, name)  # a name that is none is no question for the gate
    with gate.permitted(rt, Action.SIGNER_RM, name) as tx:
        orphaned = _orphaned(tx, signers.get(tx, name), tx.now_ms)
        return Removed(signers.rm(tx, name), orphaned)


def import_(rt: Runtime, path: Path, *, dry_run: bool = False) -> Imported:
    """Accept the signers of a list as ssh-keygen has it: all of them or nobody.

    Args:
        dry_run: Only say who would be new.

    Raises:
        InvalidFile: A line is not taken, or does not go together with who is accepted already.
        UnsafeKey, UnusableKey, FilesUnreadable: As `signing.load_allowed_signers`.
        GateDenied: Whoever runs this may not change whose signatures count.
    """
    listed = signing.load_allowed_signers(path)
    wanted = [one for one in listed if one.for_packages]
    passed_over = tuple(one for one in listed if not one.for_packages)
    if not wanted:
        raise InvalidFile(f"{path} lists nobody who signs packages")
    if dry_run:
        now_ms = rt.now_ms()
        with rt.ledger.read() as tx:
            new, known = _sort_out(path, wanted, partial(signers.is_new, tx))
            return Imported(
                tuple(replace(one, added_at_ms=now_ms) for one in new),
                tuple(signers.get(tx, one.name) for one in known),
                passed_over,
            )
    digest = chain.sha256(signing.allowed_signers(one.signer for one in wanted).encode())
    about = f"{len(wanted)} signers {digest[:12]}"
    with gate.permitted(rt, Action.SIGNER_ADD, about) as tx:
        new, known = _sort_out(path, wanted, partial(_add, tx))
        return Imported(
            tuple(signers.get(tx, one.name) for one in new),
            tuple(signers.get(tx, one.name) for one in known),
            passed_over,
        )


def _add(tx: WriteTx, one: Signer) -> bool:
    return signers.add(
        tx,
        one.name,
        one.public_key,
        valid_after_ms=one.valid_after_ms,
        valid_before_ms=one.valid_before_ms,
    )


def _sort_out(
    path: Path, wanted: Iterable[Allowed], is_new: Callable[[Signer], bool]
) -> tuple[list[Signer], list[Signer]]:
    """Tell who is new from who was known; a conflict names its line."""
    found: dict[bool, list[Signer]] = {True: [], False: []}
    for one in wanted:
        try:
            found[is_new(one.signer)].append(one.signer)
        except SignerConflict as conflict:
            said = f"{path}: line {one.line}: {conflict.message}"
            raise SignerConflict(said, hint=conflict.hint) from conflict
    return found[True], found[False]


def export(rt: Runtime) -> str:
    """Write everyone as a list of allowed signers, for `ssh-keygen -Y verify`."""
    return signing.allowed_signers(ls(rt))


def _orphaned(tx: ReadTx, removed: Signer, now_ms: int) -> tuple[Instance, ...]:
    """Find the current copies that only the removed signer vouches for."""
    counts = trust.trust_in(tx, now_ms)
    vouched: dict[str, Sequence[str]] = {}
    found: list[Instance] = []
    for one in instances.current(tx):
        if one.package_id not in vouched:
            vouched[one.package_id] = trust.signers_of(packages.get(tx, one.package_id), counts)
        if vouched[one.package_id] == (removed.name,):
            found.append(one)
    return tuple(found)
