"""What a node keeps for its ledgers and what is taken away there: one method per action."""

from collections.abc import Sequence

from wlctl.host import kept
from wlctl.host.session import Session
from wlctl.model.actions import Refused
from wlctl.model.ids import InstallationId, InstanceId
from wlctl.model.member import member_text
from wlctl.model.upkeep import (
    Checkpoint,
    Collected,
    Fleet,
    LeaseRequest,
    Recalled,
    RevocationList,
    Supervised,
    Witness,
)

COLLECT_AGE_MIN = 60
"""A store file that was brought or offered within so many minutes may be about to be placed."""

LOG_KEEP_MIN = 7 * 24 * 60

WITNESS_MAX_BYTES = 16 << 20


FETCH_BYTES = 2 << 20
"""So much of a file comes with one answer."""

FETCH_MAX_BYTES = 2 * FETCH_BYTES
"""As text it is a third longer, and in lines."""


class Upkeep(Session):
    """The actions that run nothing."""

    def fetch(self, sha256: str, *, offset: int, size_bytes: int) -> bytes | Refused:
        """Read the part of a store file that begins at `offset`, up to `FETCH_BYTES` of it.

        Args:
            offset: A multiple of `FETCH_BYTES`, within the file.
            size_bytes: Of the whole file.

        Raises:
            GarbledAnswer: The node has a file of another size, or sent more or less of it.
        """
        found = self._run(
            "fetch",
            ("sha256", sha256),
            ("offset", str(offset)),
            ("bytes", str(FETCH_BYTES)),
            answer_max_bytes=FETCH_MAX_BYTES,
        )
        if isinstance(found, Refused):
            return found
        return kept.part(found, size_bytes, min(FETCH_BYTES, size_bytes - offset))

    def collect(
        self,
        installation: InstallationId,
        *,
        age_min: int = COLLECT_AGE_MIN,
        log_keep_min: int = LOG_KEEP_MIN,
    ) -> Collected | Refused:
        """Take away store files that nothing may still run, and this installation's old logs.

        Of what is remembered of instances that are gone, the newest and the youngest stays.
        """
        found = self._run(
            "gc",
            ("installation", installation),
            ("age_min", str(age_min)),
            ("keep_min", str(log_keep_min)),
            mutates=True,
        )
        return found if isinstance(found, Refused) else self._told(kept.collected, found)

    def renew_lease(self, request: LeaseRequest) -> int | Refused:
        """Extend a lease that has not run out; return until when it holds now, in node uptime ms.

        A moment before the one it has shortens nothing.
        """
        found = self._run(
            "lease",
            ("installation", request.installation),
            ("instance", request.instance),
            ("generation", str(request.generation)),
            ("boot", request.boot_id),
            ("until", str(request.until_ms)),
            mutates=True,
        )
        return found if isinstance(found, Refused) else self._told(kept.lease_until_ms, found)

    def supervise(
        self, installation: InstallationId, instances: Sequence[InstanceId]
    ) -> Supervised | Refused:
        """Start the supervisor again of each of these that runs and whose own has died.

        A supervisor only looks at what runs, so this is safe to repeat and never indeterminate.
        """
        asked = [("instance", instance) for instance in instances]
        found = self._run("supervise", ("installation", installation), *asked)
        return found if isinstance(found, Refused) else kept.supervised(found)

    def revoke(self, revoked: RevocationList) -> Refused | None:
        """Add to what is never started there again; a list that lacks something removes nothing."""
        found = self._run(
            "revoke",
            ("installation", revoked.installation),
            ("epoch", str(revoked.name.epoch)),
            ("serial", str(revoked.name.serial)),
            ("hash", revoked.name.sha256),
            *(("package", package) for package in revoked.packages),
            *(("artifact", artifact) for artifact in revoked.artifacts),
            mutates=True,
        )
        return found if isinstance(found, Refused) else None

    def checkpoint(
        self,
        installation: InstallationId,
        checkpoint: Checkpoint,
        fleet: Fleet | None = None,
    ) -> Refused | None:
        """Leave a checkpoint; a node that has a newer one, or another of that place, refuses.

        Args:
            fleet: Kept in place of the one before; None leaves that.
        """
        told = fleet or Fleet()
        found = self._run(
            "checkpoint",
            ("installation", installation),
            ("epoch", str(checkpoint.at.epoch)),
            ("seq", str(checkpoint.at.seq)),
            ("hash", checkpoint.at.sha256),
            ("note", checkpoint.note),
            *((("fleet", told.note),) if told.note else ()),
            *(("member", member_text(member)) for member in told.members),
            mutates=True,
        )
        return found if isinstance(found, Refused) else None

    def witness(self, installation: InstallationId) -> Witness | Refused:
        """Read back everything that was left by `checkpoint`."""
        found = self._run(
            "witness", ("installation", installation), answer_max_bytes=WITNESS_MAX_BYTES
        )
        return found if isinstance(found, Refused) else kept.witness(found)

    def installations(self) -> dict[InstallationId, Checkpoint] | Refused:
        """Ask for which installations the node keeps checkpoints, and for the newest of each."""
        found = self._run("recall", answer_max_bytes=WITNESS_MAX_BYTES)
        return found if isinstance(found, Refused) else kept.installations(found)

    def recall(self, installation: InstallationId) -> Recalled | Refused:
        """Read what a lost ledger must know again of what the node has of its."""
        found = self._run(
            "recall", ("installation", installation), answer_max_bytes=WITNESS_MAX_BYTES
        )
        return found if isinstance(found, Refused) else kept.recalled(found)
