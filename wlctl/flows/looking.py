"""What people look at: the current copies, and the output of one. Nothing here changes anything."""

from dataclasses import dataclass

from wlctl.errors import NoOutput
from wlctl.flows.runtime import Runtime
from wlctl.ledger import generations, instances, nodes
from wlctl.ledger.generations import Generation
from wlctl.model.actions import LogTail, Refused
from wlctl.model.instance import Instance


@dataclass(frozen=True, slots=True)
class Listed:
    """One line of `ps`.

    Attributes:
        run: The newest run; None before the first.
    """

    instance: Instance
    run: Generation | None

    @property
    def ports(self) -> tuple[tuple[str, int], ...]:
        """Name to number, as the node gave them to the newest run."""
        launch = self.run.launch if self.run is not None else None
        return tuple((name, number) for name, number in launch["ports"]) if launch else ()


def ps(rt: Runtime) -> list[Listed]:
    """Return the current copies as the ledger has them, ascending by name."""
    with rt.ledger.read() as tx:
        newest = generations.newest(tx)
        return [Listed(one, newest.get(one.id)) for one in instances.current(tx)]


def logs(rt: Runtime, word: str, *, generation: int | None = None, lines: int) -> LogTail:
    """Fetch the end of what a copy has printed.

    Args:
        generation: Which run; None for the newest.

    Raises:
        NoOutput: It never ran, or the node no longer has that output.
        UnknownName, AmbiguousName: `word` means none, or more than one.
        Unreachable: The node does not answer.
    """
    with rt.ledger.read() as tx:
        instance = instances.find(tx, word)
        node = nodes.get(tx, instance.node)
    number = instance.generation if generation is None else generation
    if number == 0:
        raise NoOutput(f"{instance.name} never ran, so there is no output")
    with rt.connect(node.address) as session:
        found = session.logs(rt.ledger.installation, instance.id, generation=number, lines=lines)
    if isinstance(found, Refused):
        raise NoOutput(f"{node.name} has no output of {instance.name} g{number}: {found.detail}")
    return found
