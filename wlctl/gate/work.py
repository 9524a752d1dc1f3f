"""What would a package do? Read from what its signer signed and what the order adds to it."""

from collections.abc import Iterable

from wlctl.model.policy import Work
from wlctl.model.workload import Requirement, WorkloadSpec

ACCELERATOR = "accel"
"""The first segment of the id of every accelerator."""


def work_of(
    spec: WorkloadSpec,
    *,
    where: Iterable[Requirement] = (),
    project: str = "",
    emulated: bool = False,
    unsigned: bool = False,
) -> Work:
    """Derive what the gate judges.

    The accelerators are those of every variant: which one runs is only known once a node is chosen,
    and a permit must not depend on it.

    Args:
        spec: Of a verified package.
        where: What the order asks of the node on top of it.
        project: Of the order.
        emulated: The variant chosen runs through an emulator.
        unsigned: Nobody vouches for it; only ever in decisions from a saved fleet.
    """
    asked = (*spec.common, *where, *(need for one in spec.variants for need in one.requirements))
    accelerators = {name for name in map(_name, asked) if _is_accelerator(name)}
    if spec.resources.accel_memory_bytes:
        accelerators = accelerators or {ACCELERATOR}
    return Work(
        kind=spec.kind,
        refs=spec.revocable_refs,
        project=project,
        unsigned=unsigned,
        secrets=bool(spec.secrets),
        emulated=emulated,
        root=spec.user == "root",
        capabilities=tuple(sorted(spec.capabilities)),
        accelerators=tuple(sorted(accelerators)),
        cpu_cores=spec.resources.cpu_cores,
    )


def _name(requirement: Requirement) -> str:
    return requirement.id or requirement.id_prefix or ""


def _is_accelerator(name: str) -> bool:
    return name == ACCELERATOR or name.startswith(f"{ACCELERATOR}.")
