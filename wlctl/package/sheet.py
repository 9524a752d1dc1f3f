"""The launch sheet: what exactly one variant runs, in the lines a node's shell reads.

It is a pure function of the manifest's statement, so that what a gate was shown and what a node
starts cannot differ.
"""

from collections.abc import Iterator, Sequence
from urllib.parse import quote

from wlctl.model.package import Health, HealthKind, PackageFile, PackageVariant, Workload
from wlctl.package import template, words

DIRECTORY = "sheets"
FIRST_LINE = "wlctl-launch-sheet 1"
LAST_LINE = "end"

# Besides these, quote() keeps the unreserved characters of RFC 3986: letters, digits and - . _ ~.
_KEPT = "/:=,@+"


def path_of(variant_name: str) -> str:
    """Spell where in the package the variant's sheet lies."""
    return f"{DIRECTORY}/{variant_name}"


def render(workload: Workload, variant: PackageVariant, files: Sequence[PackageFile]) -> str:
    """Write the sheet of one variant.

    Every line is `key value`. Values are percent-encoded UTF-8; a `${NAME}` that stands there
    unencoded is a variable to be substituted, and a dollar that is only a dollar is `%24`.

    Args:
        workload: Checked.
        variant: One of the workload's.
        files: The variant's own, ascending by path.
    """
    lines = [FIRST_LINE]
    lines += _lines(workload, variant, files)
    lines.append(LAST_LINE)
    return "".join(f"{line}\n" for line in lines)


def _lines(
    workload: Workload, variant: PackageVariant, files: Sequence[PackageFile]
) -> Iterator[str]:
    run = workload.run
    yield f"workload {_encoded(workload.name)}"
    yield f"version {_encoded(workload.version)}"
    yield f"kind {workload.kind}"
    yield f"variant {_encoded(variant.name)}"
    yield from (f"arg {_encoded_template(word)}" for word in variant.command or run.command)
    yield f"args {run.args}"
    yield from (f"env {name}={_encoded_template(run.env[name])}" for name in sorted(run.env))
    yield from (f"env_allow {_encoded(pattern)}" for pattern in run.env_allow)
    if run.user:
        yield f"user {_encoded(run.user)}"
    yield from (f"group {_encoded(group)}" for group in run.groups)
    yield from (f"capability {capability}" for capability in run.capabilities)
    yield from (f"secret {secret}" for secret in run.secrets)
    yield from (f"port {port.name} {port.number or 'auto'}" for port in workload.ports)
    yield f"data {'keep' if workload.keep_data else 'drop'}"
    yield f"stop_signal {workload.lifecycle.stop_signal}"
    yield f"stop_grace_ms {workload.lifecycle.stop_grace_ms}"
    yield from _limits(workload)
    yield from (f"file {file.mode} {file.sha256} {_encoded(file.path)}" for file in files)
    yield from _health(workload)


def _limits(workload: Workload) -> Iterator[str]:
    resources = workload.resources
    yield f"cpu_milli {round(resources.cpu_cores * 1000)}"
    yield f"memory_bytes {resources.memory_bytes}"
    yield f"pids {resources.pids}"
    yield f"disk_bytes {resources.disk_bytes}"


def _health(workload: Workload) -> Iterator[str]:
    health = workload.health
    if health is None:
        return
    yield f"health_kind {health.kind}"
    yield f"health_target {_target(health)}"
    yield f"health_interval_ms {health.interval_ms}"
    yield f"health_timeout_ms {health.timeout_ms}"
    yield f"health_misses {health.misses}"
    yield f"health_max_age_ms {health.max_age_ms}"


def _target(health: Health) -> str:
    if health.kind in {HealthKind.EXEC, HealthKind.HEARTBEAT}:
        return _encoded(words.plain_path(health.target) or "")
    return _encoded_template(health.target)


def _encoded(text: str) -> str:
    return quote(text, safe=_KEPT)


def _encoded_template(text: str) -> str:
    pieces = template.split(text)
    assert pieces is not None, "the description was checked"
    return "".join(
        f"${{{piece.name}}}" if isinstance(piece, template.Reference) else _encoded(piece)
        for piece in pieces
    )
