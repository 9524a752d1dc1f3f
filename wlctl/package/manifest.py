"""The manifest: one statement of everything a package is, in the one spelling that is signed.

Its text is a pure function of the description and the files: whoever has those two has the text,
and a text that is not what they make is refused.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

import rfc8785

from wlctl.errors import ManifestInvalid, UnknownKind
from wlctl.model.ids import PackageId, is_sha256
from wlctl.model.package import HealthKind, Manifest, PackageFile, PackageVariant, Workload
from wlctl.model.workload import Kind, Variant, WorkloadSpec
from wlctl.package import check, plain, sheet, template, words
from wlctl.package.fault import Fault, nearest, quoted

FILE_NAME = "manifest.json"
SIGNATURES = "signatures"
SIGNATURE_SUFFIX = ".sig"
SCHEMA = "wlctl-package/1"

MAX_MANIFEST_BYTES = 1024 * 1024
MAX_FILE_BYTES = 512 * 1024 * 1024
MAX_TOTAL_BYTES = 8 * 1024 * 1024 * 1024
MAX_FILES = 4096
"""Launch sheets included."""

PLAIN = "0444"
EXECUTABLE = "0555"

TEMPORARY_PREFIX = ".wlctl-"
_OWN_NAMES = ("workload.toml", FILE_NAME, sheet.DIRECTORY, SIGNATURES)
"""What wlctl itself keeps in a package directory; no file of the workload may be called so."""


@dataclass(frozen=True, slots=True)
class Composed:
    """A manifest, and the launch sheets it states.

    Attributes:
        sheets: Path in the package to text.
    """

    manifest: Manifest
    sheets: Mapping[str, str]


def is_own(path: str) -> bool:
    """Answer whether the plain path belongs to wlctl, in whatever case it is written."""
    first = path.split("/", 1)[0].casefold()
    return first in _OWN_NAMES or first.startswith(TEMPORARY_PREFIX)


def compose(workload: Workload, files: Sequence[PackageFile]) -> Composed:
    """Make the statement, and the launch sheets it lists.

    Args:
        workload: The description; each variant's `files` are the paths found for it.
        files: Every file of every variant, in any order, without the sheets.

    Raises:
        Fault: Description and files do not go together, or there are too many of them.
    """
    check.check(workload)
    by_path = {file.path: file for file in files}
    _check_files(files)
    _check_variants(workload, by_path)
    sheets = {
        sheet.path_of(variant.name): sheet.render(
            workload, variant, [by_path[path] for path in variant.files]
        )
        for variant in workload.variants
    }
    listed = sorted((*files, *_listed_sheets(sheets)), key=lambda file: file.path)
    statement = {
        "schema": SCHEMA,
        "files": plain.encode(tuple(listed)),
        **plain.encode(workload),
    }
    text = rfc8785.dumps(statement)
    if len(text) > MAX_MANIFEST_BYTES:
        raise Fault("", f"the manifest has {len(text)} bytes; at most {MAX_MANIFEST_BYTES}")
    package_id = PackageId(hashlib.sha256(text).hexdigest())
    return Composed(Manifest(package_id, text.decode(), workload, tuple(listed)), sheets)


def read(data: bytes) -> Manifest:
    """Read a manifest that nobody has vouched for.

    Raises:
        ManifestInvalid: It is not, byte for byte, what `compose` makes of what it says.
        UnknownKind: It is, but for a kind that is not known here.
    """
    try:
        return _read(data)
    except Fault as fault:
        raise ManifestInvalid(
            f"{FILE_NAME}: {fault}", hint="build the package again: wlctl package build DIR"
        ) from fault


def spec_of(manifest: Manifest, signer_fingerprints: Sequence[str] = ()) -> WorkloadSpec:
    """Derive what a decision needs to know from a manifest alone.

    Args:
        manifest: Verified, unless the decision is only a preview.
        signer_fingerprints: Of the accepted signers; a revocation may name them.
    """
    hashes = {file.sha256 for file in manifest.files}
    refs = (manifest.package_id, *sorted(signer_fingerprints), *sorted(hashes))
    return preview(manifest.workload, refs)


def preview(workload: Workload, revocable_refs: tuple[str, ...] = ()) -> WorkloadSpec:
    """Derive what a decision needs to know from a description; unbuilt, nothing can revoke it."""
    return WorkloadSpec(
        kind=workload.kind,
        name=workload.name,
        version=workload.version,
        common=workload.common,
        variants=tuple(
            Variant(variant.name, variant.execution, variant.requires)
            for variant in workload.variants
        ),
        resources=workload.resources,
        policy=workload.policy,
        ports=tuple((port.name, port.number) for port in workload.ports),
        secrets=workload.run.secrets,
        revocable_refs=revocable_refs,
        user=workload.run.user,
        capabilities=workload.run.capabilities,
    )


def files_of(manifest: Manifest, variant: PackageVariant) -> tuple[PackageFile, ...]:
    """List the files one variant needs, its launch sheet not included, ascending by path."""
    wanted = frozenset(variant.files)
    return tuple(file for file in manifest.files if file.path in wanted)


def sheet_of(manifest: Manifest, variant: PackageVariant) -> PackageFile:
    """Find the launch sheet of one variant."""
    path = sheet.path_of(variant.name)
    return next(file for file in manifest.files if file.path == path)


def _listed_sheets(sheets: Mapping[str, str]) -> Iterator[PackageFile]:
    for path, text in sheets.items():
        data = text.encode()
        yield PackageFile(path, PLAIN, hashlib.sha256(data).hexdigest(), len(data))


def _read(data: bytes) -> Manifest:
    statement = _parse(data)
    if statement.pop("schema", None) != SCHEMA:
        raise Fault("schema", f"not {SCHEMA}")
    if not isinstance(listed := statement.pop("files", None), list):
        raise Fault("files", "missing, or not a list")
    if len(listed) > MAX_FILES:
        raise Fault("files", f"{len(listed)} files; at most {MAX_FILES}")
    kind = statement.get("kind")
    # A kind of the future is told from a broken manifest by all the rest being in order.
    stand_in = {"kind": Kind.SERVICE.value} if isinstance(kind, str) else {}
    workload = plain.decode(Workload, {**statement, **stand_in})
    files = [
        plain.decode(PackageFile, item, f"files[{index}]") for index, item in enumerate(listed)
    ]
    workload = replace(workload, kind=_kind(str(kind)))
    sheets = {sheet.path_of(variant.name) for variant in workload.variants}
    composed = compose(workload, [file for file in files if file.path not in sheets])
    if composed.manifest.files != tuple(files):
        raise Fault("files", "not in order, or a launch sheet says other things than the manifest")
    if composed.manifest.text.encode() != data:
        raise Fault("", "not in the canonical spelling (RFC 8785)")
    return composed.manifest


def _kind(word: str) -> Kind:
    try:
        return Kind(word)
    except ValueError:
        raise UnknownKind(f"{FILE_NAME}: kind {quoted(word)}; {nearest(word[:60], Kind)}") from None


def _parse(data: bytes) -> dict[str, object]:
    try:
        value = json.loads(
            data.decode("utf-8"), object_pairs_hook=_without_twins, parse_constant=_no_constant
        )
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else quoted(str(error))
        raise Fault("", f"not JSON: {reason}") from error
    if not isinstance(value, dict):
        raise Fault("", f"{quoted(value)}, not an object")
    return value


def _without_twins(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Fault("", "an object has a key twice")
    return found


def _no_constant(word: str) -> NoReturn:
    raise Fault("", f"{word} is not JSON")


def _check_files(files: Sequence[PackageFile]) -> None:
    if len(files) > MAX_FILES:
        raise Fault("files", f"{len(files)} files; at most {MAX_FILES}")
    for file in files:
        _check_file(file)
    if (total := sum(file.size_bytes for file in files)) > MAX_TOTAL_BYTES:
        raise Fault("files", f"{total} bytes in all; at most {MAX_TOTAL_BYTES}")
    if (twins := collision([file.path for file in files])) is not None:
        what = f"{quoted(twins[0])} and {quoted(twins[1])} are one name on some file systems"
        raise Fault("files", what)


def _check_file(file: PackageFile) -> None:
    where = f"files {quoted(file.path)}"
    if words.plain_path(file.path) != file.path or file.path == "." or is_own(file.path):
        raise Fault(where, "not the plain path of a file of the workload")
    if file.mode not in {PLAIN, EXECUTABLE}:
        raise Fault(where, f"mode {quoted(file.mode)} is not {PLAIN} or {EXECUTABLE}")
    if not is_sha256(file.sha256):
        raise Fault(where, "its sha256 is not 64 hex digits")
    if not 0 <= file.size_bytes <= MAX_FILE_BYTES:
        raise Fault(where, f"{file.size_bytes} bytes; at most {MAX_FILE_BYTES}")


def collision(paths: Sequence[str]) -> tuple[str, str] | None:
    """Find two paths, or directories of them, that differ only in case."""
    seen: dict[str, str] = {}
    for path in paths:
        parts = path.split("/")
        for depth in range(1, len(parts) + 1):
            spelled = "/".join(parts[:depth])
            other = seen.setdefault(spelled.casefold(), spelled)
            if other != spelled:
                return other, spelled
    return None


def _check_variants(workload: Workload, by_path: Mapping[str, PackageFile]) -> None:
    used: set[str] = set()
    for index, variant in enumerate(workload.variants):
        where = f"variant[{index}]"
        if list(variant.files) != sorted(set(variant.files)):
            raise Fault(f"{where}.files", "not ascending")
        if not by_path.keys() >= set(variant.files):
            raise Fault(f"{where}.files", "names a file that is not listed")
        used.update(variant.files)
        _check_programs(where, workload, variant, by_path)
    if used != by_path.keys():
        raise Fault("files", f"{quoted(min(by_path.keys() - used))} belongs to no variant")


def _check_programs(
    where: str, workload: Workload, variant: PackageVariant, by_path: Mapping[str, PackageFile]
) -> None:
    """What the package is to execute must be in it, for every variant, and executable."""
    argv = variant.command or workload.run.command
    programs = {f"{where}.command" if variant.command else "run.command": argv[0]}
    if workload.lifecycle.switch:
        programs["lifecycle.switch"] = workload.lifecycle.switch[0]
    if workload.health is not None and workload.health.kind is HealthKind.EXEC:
        programs["health.exec"] = f"./{workload.health.target.removeprefix('./')}"
    for key, program in programs.items():
        if "/" not in program or program.startswith("/") or template.names(program):
            continue  # found by the node: by PATH, by its own path, or not known yet
        file = by_path.get(words.plain_path(program) or "")
        if file is None or file.path not in variant.files:
            raise Fault(key, f"{quoted(program)} is not among the files of variant {variant.name}")
        if file.mode != EXECUTABLE:
            raise Fault(key, f"{quoted(program)} is not executable; chmod +x it")
