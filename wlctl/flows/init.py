"""Make an installation: its directory, keys and ledger. Safe to repeat, killed or not."""

import os
from dataclasses import dataclass, replace
from pathlib import Path

from wlctl import signing
from wlctl.config import DEFAULT
from wlctl.errors import LedgerUnwritten, NoLedger
from wlctl.flows import signers
from wlctl.flows.runtime import Runtime
from wlctl.gate.default import default_text
from wlctl.ledger import chain, policies
from wlctl.ledger.opening import create_ledger
from wlctl.model.ids import InstallationId
from wlctl.model.package import Signer
from wlctl.model.policy import Unreadable


@dataclass(frozen=True, slots=True)
class Initialised:
    """What there is after `init`.

    Attributes:
        made: What this run made; empty where everything was there.
        ssh_public_key: The line for `authorized_keys` on nodes.
        checkpoint_verifier: The key that checkpoints are verified with, in signed-note form.
        signer: Who was asked to be accepted.
    """

    installation: InstallationId
    ledger: Path
    made: tuple[Path, ...]
    ssh_public_key: str
    checkpoint_verifier: str
    signer: Signer | None = None


def init(rt: Runtime, signer_key: Path | None = None) -> Initialised:
    """Make whatever is missing of an installation, and change nothing that is there.

    Args:
        signer_key: A public key whose signatures are accepted, too, under the login of whoever runs
            this.

    Raises:
        WlctlError: The signer is not taken, as `signers.add` says; all else is made.
        NoLedger: The directory that the ledger was asked for in is not there.
        LedgerUnwritten: It cannot be written to.
    """
    home = rt.home
    made: list[Path] = []
    _make_directory(rt, home.directory)
    _make_private(home.keys)
    if not home.ssh_key.exists():
        signing.generate_key(home.ssh_key, comment="wlctl")
        made.append(home.ssh_key)
    if not home.checkpoint_key.exists():
        signing.generate_key(home.checkpoint_key, comment="wlctl checkpoints")
        made.append(home.checkpoint_key)
    if not home.ledger.exists():
        create_ledger(
            home.ledger,
            installation=rt.new_installation_id(),
            now_ms=rt.now_ms(),
            author=rt.author,
        ).close()
        made.append(home.ledger)
    done = complete(rt, tuple(made))
    if signer_key is None:
        return done
    return replace(done, signer=signers.add(rt, rt.author.principal, signer_key)[0])


def complete(rt: Runtime, made: tuple[Path, ...] = ()) -> Initialised:
    """Write down what every ledger has: the public keys, and a policy."""
    home = rt.home
    done = Initialised(
        installation=rt.ledger.installation,
        ledger=home.ledger,
        made=made,
        ssh_public_key=signing.public_key(home.ssh_key),
        checkpoint_verifier=signing.note_verifier(
            home.checkpoint_key, name=f"wlctl/{rt.ledger.installation}"
        ),
    )
    _record_keys(rt, done)
    _record_policy(rt)
    return done


def _record_keys(rt: Runtime, done: Initialised) -> None:
    """Put the public keys into the chain when they are not the ones it names last."""
    keys = {"ssh": done.ssh_public_key, "checkpoint": done.checkpoint_verifier}
    with rt.ledger.write(rt.now_ms(), rt.author) as tx:
        last = None
        for event in chain.events(tx, kind="ledger.keys"):
            last = {name: event.payload.get(name) for name in keys}
        if last != keys:
            chain.append(tx, "ledger.keys", keys)


def _record_policy(rt: Runtime) -> None:
    """Put the default policy in force where there never was one, in favour of whoever runs this."""
    with rt.ledger.write(rt.now_ms(), rt.author) as tx:
        if isinstance(policies.in_force(tx), Unreadable) and not policies.was_ever_applied(tx):
            policies.apply(tx, default_text(rt.author.principal))


def _make_directory(rt: Runtime, directory: Path) -> None:
    """Make the default directory; one that somebody named has to be there.

    A named one that is missing may be a disk that is not mounted: a second ledger in its place
    would be worse than an error.
    """
    if directory.is_dir():
        return
    if rt.settings.origins["db"] != DEFAULT:
        raise NoLedger(
            f"there is no directory {directory}",
            hint="make it first, if it is not a disk that ought to be mounted there",
        )
    if not Path("~").expanduser().is_dir():
        raise NoLedger(
            f"the home directory {Path('~').expanduser()} does not exist",
            hint="give --db or WLCTL_DB",
        )
    _make_private(directory, parents=True)


def _make_private(directory: Path, *, parents: bool = False) -> None:
    try:
        directory.mkdir(mode=0o700, parents=parents, exist_ok=True)
    except OSError as error:
        raise LedgerUnwritten(
            f"{directory} cannot be made: {os.strerror(error.errno or 0)}",
            hint="give --db a path in a directory you can write to",
        ) from error
