"""How a rebuild is told: what is known again, what is not, and what to do next."""

from collections.abc import Iterator

from wlctl.cli import render
from wlctl.errors import ExitCode
from wlctl.flows.rebuild import Rebuilt
from wlctl.flows.recalled import Recall
from wlctl.model.event import Json


def exit_code(done: Rebuilt) -> ExitCode:
    """Say how a script is told."""
    if done.failures:
        return ExitCode.UNREACHABLE
    return ExitCode.PARTIAL if any(copy.trouble for copy in done.copies) else ExitCode.DONE


def lines(done: Rebuilt) -> Iterator[str]:
    """Say what came of it, in words."""
    what = "made another ledger of" if done.made else "asked the nodes of"
    answered = render.counted(len(done.nodes), "node")
    yield f"{what} installation {done.installation}: {answered} answered"
    for name, failure in done.failures:
        yield f"  {name} could not be asked ({failure.code}): {failure.message}"
    new = [copy for copy in done.copies if copy.is_new]
    there = render.counted(len(done.copies), "copy is", "copies are")
    yield f"  {there} there, not known before: {len(new)}"
    for copy in new:
        yield f"  {copy.name} on {copy.node}"
    for copy in done.copies:
        if copy.trouble:
            yield f"  {copy.instance} on {copy.node}: {copy.trouble}"
    for instance in done.missing:
        yield f"  {instance.name} is not on {instance.node}, which has no word of it"
    if done.departed:
        yield f"  {done.departed} were unloaded since, by their nodes' word"
    if done.revoked:
        yield f"  {done.revoked} were revoked since"
    yield from _next(done)


def _next(done: Rebuilt) -> Iterator[str]:
    if done.failures:
        yield "it is not over, so only stop, unload, cordon and revoke are done yet"
        yield "  bring them back and type this again, or `wlctl node attest-dead NODE` first"
        return
    yield f"the ledger is believed again, in epoch {done.epoch}"
    if done.made:
        yield "  no node knows these, so say them again: signers, the policy, what was set of"
        yield "  nodes, who approved what, and of orders pins, conditions, leases, secrets and keys"


def as_json(done: Rebuilt) -> dict[str, Json]:
    """Say what came of it to programs."""
    return {
        "installation": done.installation,
        "over": done.epoch is not None,
        "epoch": done.epoch,
        "made": done.made,
        "nodes": list(done.nodes),
        "copies": [_copy(copy) for copy in done.copies],
        "departed": done.departed,
        "revoked": done.revoked,
        "failures": {name: failure.code for name, failure in done.failures},
        "missing": [instance.name for instance in done.missing],
    }


def _copy(copy: Recall) -> dict[str, Json]:
    return {
        "instance": copy.instance,
        "name": copy.name,
        "node": copy.node,
        "new": copy.is_new,
        "trouble": copy.trouble,
    }
