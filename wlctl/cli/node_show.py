"""How one node is explained: at a glance to a person, in full to a program."""

from collections.abc import Iterator

from wlctl.cli import times
from wlctl.flows.node_view import NodeReport
from wlctl.ledger.sayings import Saying
from wlctl.lifecycle.oddity import SKEW_MAX_MS, skew_text
from wlctl.model.event import Json, rfc3339
from wlctl.model.facts import AttrValue, Capability, CapabilityState, Facts, Provenance
from wlctl.model.node import Address, Enforced, Node, Settles, TransportKind

MARGIN = 13

PORTS_SHOWN = 12

CONTAINMENT = {
    "isolated": "each workload has a uid, a PID namespace and a cgroup of its own",
    "cgroup": "each workload has a cgroup of its own, and shares the login's uid",
    "leader-only": "there is no cgroup for a workload; only its leader and its namespace are known",
}
"""What each containment means to whoever places something."""

TIERS = {
    "discovered": "may only be looked at",
    "paired": "runs signed work",
    "trusted": "runs signed work, and may receive secrets",
}


def where(address: Address) -> str:
    """Write an address as it is typed."""
    if address.transport is TransportKind.LOCAL:
        return "local"
    user = f"{address.user}@" if address.user else ""
    port = "" if address.port in {0, 22} else f":{address.port}"
    return f"{user}{address.host}{port}"


def gib(count_bytes: int) -> str:
    """Write a size."""
    return f"{count_bytes / 2**30:.1f} GiB"


def lines(report: NodeReport) -> Iterator[str]:
    """Explain a node to a person."""
    node, facts = report.node, report.node.facts
    yield f"{node.name}: {_standing(report)}"
    for one in report.odd:
        yield f"  ! {one.text}{f': {one.hint}' if one.hint else ''}"
    through = ", through sudo" if node.address.sudo else ""
    yield _line("address", f"{where(node.address)}{through}")
    if report.fingerprint:
        yield _line("host key", report.fingerprint)
    yield _line("tier", f"{node.tier.word}: {TIERS[node.tier.word]}")
    yield from _enforced(report)
    if facts is not None:
        meaning = CONTAINMENT.get(facts.containment, "unknown to this version")
        yield _line("containment", f"{facts.containment}: {meaning}")
    if node.settles is not Settles.AUTO:
        yield _line("", f"set to {node.settles.value}: {_settled(node)}")
    if facts is not None:
        yield from _facts(report, facts)
        yield from _hardware(facts)
    yield from _said(report)
    yield from _instances(report)


def _settled(node: Node) -> str:
    if node.is_leader_only:
        return "workloads run there without a cgroup, a lease or a secret"
    return "not needed, it has cgroups to give"


def _enforced(report: NodeReport) -> Iterator[str]:
    node = report.node
    if node.enforced is None:
        if node.address.transport is not TransportKind.LOCAL:
            yield _line("enforced", "no: wlctl's key opens a shell there")
        return
    since = node.enforced.at_ms
    words = "yes" if since is None else f"since {times.local(since)}"
    projects = ", ".join(node.enforced.projects)
    yield _line("enforced", f"{words}{f', for projects {projects}' if projects else ''}")
    if not report.lists_are_current:
        yield _line("", f"its lists are older: `wlctl node enforce {node.name} --as LOGIN`")


def _standing(report: NodeReport) -> str:
    node, now_ms = report.node, report.now_ms
    seen = "never seen" if node.seen_at_ms is None else f"seen {_ago(node.seen_at_ms, now_ms)}"
    words = [node.liveness.value, seen]
    if node.is_cordoned_at(now_ms):
        until_ms = node.cordoned_until_ms
        words.append("cordoned" if until_ms is None else f"cordoned until {times.local(until_ms)}")
    return ", ".join(words)


def _facts(report: NodeReport, facts: Facts) -> Iterator[str]:
    age = _ago(facts.probed_at_ms, report.now_ms)
    left_ms = facts.expires_at_ms - report.now_ms
    lasting = f"good for {_span(left_ms)}" if left_ms > 0 else "run out"
    yield _line("facts", f"number {facts.seq}, {age}, {lasting}")
    if abs(facts.clock_skew_ms) > SKEW_MAX_MS:
        yield _line("clock", skew_text(facts))
    system = next((one for one in facts.capabilities if one.id.startswith("os.")), None)
    if system is not None:
        release = [str(system.attrs.get(key, "")) for key in ("distribution", "version")]
        kernel = f"{system.id.removeprefix('os.')} {system.attrs.get('kernel', '')}"
        yield _line("system", ", ".join(filter(None, [" ".join(filter(None, release)), kernel])))
    arch = [_last(one) for one in facts.capabilities if one.id.startswith("cpu.arch.")]
    load = "" if facts.load is None else f", load {facts.load:.0%}"
    yield _line("processors", f"{facts.cpu_cores} cores, {', '.join(arch)}{load}")
    free, total = gib(facts.memory_available_bytes), gib(facts.memory_total_bytes)
    yield _line("memory", f"{free} of {total} free, {gib(facts.memory_ours_bytes)} ours")
    yield _line("disk", f"{gib(facts.disk_free_bytes)} free at {facts.state_dir}")
    if facts.cgroup_root:
        found = next((one for one in facts.capabilities if one.id == "node.cgroup"), None)
        controllers = () if found is None else found.attrs.get("controllers", ())
        named = _value(controllers) or "no controllers"
        yield _line("cgroup", f"v2 at {facts.cgroup_root}, {named}")
    if facts.ports_listening:
        shown = ", ".join(map(str, facts.ports_listening[:PORTS_SHOWN]))
        more = len(facts.ports_listening) - PORTS_SHOWN
        yield _line("listens on", f"{shown}{f' and {more} more' if more > 0 else ''}")


def _hardware(facts: Facts) -> Iterator[str]:
    runtimes = [
        f"{_last(one)} {one.attrs.get('version', '')}".rstrip()
        for one in facts.capabilities
        if one.id.startswith("runtime.")
    ]
    if runtimes:
        yield _line("runtimes", ", ".join(runtimes))
    title = "has"
    for one in facts.capabilities:
        if one.id.split(".", 1)[0] in ("accel", "device") or one.id == "store.mount":
            yield _line(title, _capability(one))
            title = ""


def _said(report: NodeReport) -> Iterator[str]:
    labels = [one for one in report.said if one.capability.id.startswith("node.label.")]
    if labels:
        named = (f"{_label(one)}={one.capability.attrs.get('value')}" for one in labels)
        yield _line("labels", ", ".join(named))
    for provenance in (Provenance.CLAIMED, Provenance.MEASURED):
        title = provenance.word
        for one in report.said:
            if one.capability.provenance is provenance and one not in labels:
                yield _line(title, _claim_or_figure(one, report.now_ms))
                title = ""


def _claim_or_figure(one: Saying, now_ms: int) -> str:
    attrs = one.capability.attrs
    if one.capability.provenance is not Provenance.MEASURED:
        return _capability(one.capability)
    figure = f"{_value(attrs.get('value', '-'))} {attrs.get('unit', '')}".rstrip()
    return f"{one.capability.id}: {figure}, {_ago(one.at_ms, now_ms)}"


def _instances(report: NodeReport) -> Iterator[str]:
    title = "runs"
    for one in report.instances:
        unsure = ", unsettled" if one.unsettled else ""
        yield _line(title, f"{one.name} {one.version}, {one.state.value}{unsure}")
        title = ""
    named = {one.name for one in report.instances}
    for name in report.held:
        if name not in named:
            yield _line(title, f"{name}, held until its end is proven")
            title = ""
    if not report.instances and not report.held:
        yield _line(title, "nothing")


def _line(title: str, text: str) -> str:
    return f"  {title:<{MARGIN}}{text}".rstrip()


def _label(one: Saying) -> str:
    return one.capability.id.removeprefix("node.label.")


def _last(one: Capability) -> str:
    return one.id.rpartition(".")[2]


def _capability(one: Capability) -> str:
    attrs = ", ".join(
        f"{key.removesuffix('_bytes')} {_amount(key, value)}" for key, value in one.attrs.items()
    )
    remarks = ["one at a time"] if one.exclusive else []
    if one.state is not CapabilityState.AVAILABLE:
        remarks.append(one.state.value)
    remark = f" ({', '.join(remarks)})" if remarks else ""
    return f"{one.id}{remark}{f': {attrs}' if attrs else ''}"


def _amount(key: str, value: AttrValue) -> str:
    if key.endswith("_bytes") and isinstance(value, int | float):
        return gib(int(value))
    return _value(value)


def _value(value: AttrValue) -> str:
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _ago(at_ms: int, now_ms: int) -> str:
    age = times.ago(at_ms, now_ms)
    return age if age.startswith("in ") else f"{age} ago"


def _span(length_ms: int) -> str:
    return times.ago(0, length_ms)


def node_json(node: Node) -> dict[str, Json]:
    """Write what a list says of a node."""
    return {
        "name": node.name,
        "address": where(node.address),
        "tier": node.tier.word,
        "liveness": node.liveness.value,
        "node_id": node.node_id,
        "containment": node.facts.containment if node.facts else None,
        "containment_set": node.settles.value,
        "enforced": node.enforced is not None,
    }


def document(report: NodeReport) -> dict[str, Json]:
    """Write all that is known of a node."""
    node, facts = report.node, report.node.facts
    until_ms = node.cordoned_until_ms
    return {
        **node_json(node),
        "transport": node.address.transport.value,
        "host": node.address.host,
        "port": node.address.port,
        "user": node.address.user,
        "sudo": node.address.sudo,
        "host_key": node.address.host_key,
        "host_key_fingerprint": report.fingerprint,
        "enforcement": None if node.enforced is None else _enforcement_json(report, node.enforced),
        "cordoned": node.is_cordoned_at(report.now_ms),
        "cordoned_until": None if until_ms is None else rfc3339(until_ms),
        "machine_id": node.machine_id,
        "boot_id": node.boot_id,
        "failed_contacts": node.failed_contacts,
        "failure": node.failure or None,
        "added_at": rfc3339(node.added_at_ms),
        "seen_at": None if node.seen_at_ms is None else rfc3339(node.seen_at_ms),
        "facts": None if facts is None else _facts_json(facts),
        "said": [
            {**_capability_json(one.capability), "at": rfc3339(one.at_ms)} for one in report.said
        ],
        "instances": [
            {
                "id": one.id,
                "name": one.name,
                "workload": one.workload,
                "version": one.version,
                "actual": one.state.value,
                "unsettled": one.unsettled,
            }
            for one in report.instances
        ],
        "held": list(report.held),
        "odd": [{"code": one.code, "text": one.text, "hint": one.hint} for one in report.odd],
    }


def _enforcement_json(report: NodeReport, enforced: Enforced) -> dict[str, Json]:
    return {
        "since": None if enforced.at_ms is None else rfc3339(enforced.at_ms),
        "projects": list(enforced.projects),
        "current": report.lists_are_current,
    }


def _facts_json(facts: Facts) -> dict[str, Json]:
    return {
        "seq": facts.seq,
        "probed_at": rfc3339(facts.probed_at_ms),
        "expires_at": rfc3339(facts.expires_at_ms),
        "ttl_ms": facts.ttl_ms,
        "uptime_ms": facts.uptime_ms,
        "clock_skew_ms": facts.clock_skew_ms,
        "load": facts.load,
        "cpu_cores": facts.cpu_cores,
        "memory_total_bytes": facts.memory_total_bytes,
        "memory_available_bytes": facts.memory_available_bytes,
        "memory_ours_bytes": facts.memory_ours_bytes,
        "disk_free_bytes": facts.disk_free_bytes,
        "ports_listening": list(facts.ports_listening),
        "state_dir": facts.state_dir,
        "cgroup_root": facts.cgroup_root,
        "instances": list(facts.instances),
        "missing": list(facts.missing),
        "capabilities": [_capability_json(one) for one in facts.capabilities],
    }


def _capability_json(one: Capability) -> dict[str, Json]:
    return {
        "id": one.id,
        "attrs": dict(one.attrs),
        "provenance": one.provenance.word,
        "state": one.state.value,
        "exclusive": one.exclusive,
    }
