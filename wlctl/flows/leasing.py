"""Leases: told to the ledger before they are sent, and over for certain only when that is known."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from wlctl.errors import Indeterminate
from wlctl.flows import staged
from wlctl.flows.intents import lease_until_ms
from wlctl.flows.looking import Look
from wlctl.flows.runtime import Runtime
from wlctl.ledger import leases
from wlctl.ledger.leases import Sent
from wlctl.ledger.store import ReadTx
from wlctl.lifecycle import lease as judging
from wlctl.lifecycle.seen import number_of
from wlctl.model.boottime import BootTime
from wlctl.model.ids import InstanceId
from wlctl.model.instance import Instance
from wlctl.model.upkeep import LeaseRequest

if TYPE_CHECKING:
    from wlctl.host.node import NodeSession


Leases = Sequence[tuple[Instance, int]]
"""Copies, each with the time to live of its lease in milliseconds."""


def about_to_send(rt: Runtime, instance: InstanceId, ttl_ms: int | None, read_at: BootTime) -> None:
    """Write down a lease that is sent next, so that it is never forgotten; nothing without one.

    Args:
        read_at: When the node's reading was received that it is counted from.
    """
    if ttl_ms:
        with rt.ledger.write(rt.now_ms(), rt.author) as tx:
            leases.sent(tx, instance, Sent(ttl_ms, read_at))


def renew(
    rt: Runtime, session: "NodeSession", look: Look, leases_here: Leases, read_at: BootTime
) -> None:
    """Let what has a lease run on for its whole time from this very look.

    A renewal that is refused, or whose answer is lost, changes nothing here: the node ends the copy
    when its time is over, and the next look says so.

    Args:
        leases_here: Copies that may live there, each with its time to live.
        read_at: When the look was received.
    """
    listed = [(one, ttl_ms, look.of(one.id)) for one, ttl_ms in leases_here]
    leased = [(one, ttl_ms, seen) for one, ttl_ms, seen in listed if seen is not None]
    if not leased:
        return
    with rt.ledger.write(rt.now_ms(), rt.author) as tx:
        for instance, ttl_ms, _ in leased:
            leases.sent(tx, instance.id, Sent(ttl_ms, read_at))
    for instance, ttl_ms, status in leased:
        request = LeaseRequest(
            rt.ledger.installation,
            instance.id,
            number_of(instance, status),
            look.status.boot_id,
            lease_until_ms(ttl_ms, look.status.uptime_ms),
        )
        try:
            session.renew_lease(request)
        except Indeterminate:
            continue


def left_ms(tx: ReadTx, instance: Instance, now: BootTime) -> int | None:
    """Answer how long a copy may still run by its lease; 0 where it cannot.

    None where that has to be counted anew (`count_anew`): this machine was started anew since, or
    nothing says when the lease was sent. A copy without a lease may run for ever, and waits for
    nothing: that it may run beside another one is said where it is shown.
    """
    ttl_ms = staged.lease_of(tx, instance)
    if ttl_ms is None or instance.generation == 0:
        return 0
    sent = leases.find(tx, instance.id)
    return None if sent is None else judging.left_ms(sent.ttl_ms, sent.read_at, now)


def count_anew(rt: Runtime, instance: Instance, now: BootTime) -> int:
    """Count a lease from now, as if it had just been sent; answer how long that makes."""
    with rt.ledger.write(rt.now_ms(), rt.author) as tx:
        sent = leases.find(tx, instance.id)
        ttl_ms = sent.ttl_ms if sent is not None else staged.lease_of(tx, instance)
        assert ttl_ms is not None, "it has a lease"
        leases.sent(tx, instance.id, Sent(ttl_ms, now))
    return judging.bound_ms(ttl_ms)
