"""The manifest: what it is a function of, and what is refused instead of one."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.packages import MINIMAL
from wlctl.errors import ManifestInvalid, UnknownKind
from wlctl.model.package import PackageFile, Workload
from wlctl.package import manifest
from wlctl.package.fault import Fault
from wlctl.package.workload import parse

FULL = Path(__file__).with_name("full.toml").read_text(encoding="utf-8")
WEB = PackageFile("bin/web", "0555", "b" * 64, 5)
WEB_PY = PackageFile("bin/web.py", "0555", "c" * 64, 7)
LOGO = PackageFile("assets/logo", "0444", "a" * 64, 3)


def found(workload: Workload, *files: tuple[str, ...]) -> Workload:
    """Give each variant the files that were found for it."""
    pairs = zip(workload.variants, files, strict=True)
    return replace(workload, variants=tuple(replace(v, files=paths) for v, paths in pairs))


FULL_WORKLOAD = found(parse(FULL), ("assets/logo", "bin/web"), ("bin/web", "bin/web.py"))
COMPOSED = manifest.compose(FULL_WORKLOAD, [WEB, WEB_PY, LOGO])
STATEMENT: dict[str, Any] = json.loads(COMPOSED.manifest.text)


def test_the_statement_is_this(golden: Callable[[Path, str], None]) -> None:
    """Nobody changes the format by accident: every package id depends on it."""
    golden(Path(__file__).with_name("full.manifest.json"), COMPOSED.manifest.text)


def test_the_id_is_the_hash_of_the_statement() -> None:
    text = COMPOSED.manifest.text.encode()

    assert COMPOSED.manifest.package_id == hashlib.sha256(text).hexdigest()


def test_a_manifest_reads_as_it_was_composed() -> None:
    assert manifest.read(COMPOSED.manifest.text.encode()) == COMPOSED.manifest


def test_every_sheet_is_listed_with_its_hash() -> None:
    listed = {file.path: file for file in COMPOSED.manifest.files}

    assert set(COMPOSED.sheets) == {"sheets/x86_64", "sheets/any"}
    for path, text in COMPOSED.sheets.items():
        assert listed[path].sha256 == hashlib.sha256(text.encode()).hexdigest()
        assert listed[path].size_bytes == len(text.encode())
        assert listed[path].mode == "0444"


@given(st.permutations([WEB, WEB_PY, LOGO]))
def test_the_order_of_the_files_never_matters(files: list[PackageFile]) -> None:
    assert manifest.compose(FULL_WORKLOAD, files) == COMPOSED


def _leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(value, dict):
        return [leaf for key in value for leaf in _leaves(value[key], (*path, key))]
    if isinstance(value, list) and value:
        return [leaf for n, item in enumerate(value) for leaf in _leaves(item, (*path, n))]
    return [path]


def _with(statement: Any, path: tuple[Any, ...], value: Any) -> bytes:
    copy = json.loads(json.dumps(statement))
    inner = copy
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return rfc8785.dumps(copy)


LEAVES = _leaves(STATEMENT)


@given(
    st.sampled_from(LEAVES),
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**53) + 1, 2**53 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(max_size=20),
        st.lists(st.text(max_size=3), max_size=3),
        st.just({}),
    ),
)
def test_no_field_can_change_and_keep_the_id(path: tuple[Any, ...], value: Any) -> None:
    """Whatever a field is changed to: it is refused, or it is another package."""
    data = _with(STATEMENT, path, value)
    if data == COMPOSED.manifest.text.encode():
        return
    try:
        read = manifest.read(data)
    except (ManifestInvalid, UnknownKind):
        return
    assert read.package_id != COMPOSED.manifest.package_id
    assert read.text.encode() == data


@given(st.sampled_from(LEAVES))
def test_no_field_can_be_left_out(path: tuple[Any, ...]) -> None:
    copy = json.loads(COMPOSED.manifest.text)
    inner = copy
    for key in path[:-1]:
        inner = inner[key]
    if isinstance(inner, list):
        return
    del inner[path[-1]]

    if isinstance(inner, dict) and path[-2:-1] == ("env",):
        return  # the author's own keys
    with pytest.raises(ManifestInvalid):
        manifest.read(rfc8785.dumps(copy))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        pytest.param(b"", "not JSON", id="nothing"),
        pytest.param(b"\xef\xbb\xbf{}", "not JSON", id="a byte order mark"),
        pytest.param(b"\xff{}", "not JSON", id="no UTF-8"),
        pytest.param(b"[]", "a list, not an object", id="a list"),
        pytest.param(b'{"a":1,"a":2}', "an object has a key twice", id="a key twice"),
        pytest.param(b'{"files":[{"a":1,"a":2}]}', "a key twice", id="a key twice deep inside"),
        pytest.param(b'{"a":NaN}', "NaN is not JSON", id="no number"),
        pytest.param(b"[" * 100_000, "nested too deeply", id="nested without end"),
        pytest.param(b'{"a":' + b"1" * 5000 + b"}", "not JSON", id="a number without end"),
        pytest.param(b"{}", "schema: not wlctl-package/1", id="no schema"),
        pytest.param(b'{"schema":"wlctl-package/2"}', "schema: not", id="a schema of the future"),
        pytest.param(b'{"schema":"wlctl-package/1"}', "files: missing", id="no files"),
        pytest.param(COMPOSED.manifest.text.encode() + b"\n", "canonical", id="a newline more"),
        pytest.param(
            json.dumps(STATEMENT, indent=1).encode(), "canonical", id="written for people"
        ),
        pytest.param(
            _with(STATEMENT, ("more",), 1), 'unknown field "more"', id="a field that is not known"
        ),
        pytest.param(
            _with(STATEMENT, ("health", "more"), 1), 'health: unknown field "more"', id="and deeper"
        ),
        pytest.param(
            COMPOSED.manifest.text.encode().replace(b"--port", b"\\ud800"),
            "lone surrogate",
            id="half a character",
        ),
        pytest.param(
            _with(STATEMENT, ("resources", "memory_bytes"), -1), "resources.memory", id="a debt"
        ),
        pytest.param(
            _with(STATEMENT, ("run", "user"), "root"),
            "a launch sheet says other things",
            id="a user that the sheets do not have",
        ),
        pytest.param(
            _with(STATEMENT, ("files", 0, "path"), "../x"), "plain path", id="a path that leads out"
        ),
        pytest.param(
            _with(STATEMENT, ("files", 0, "path"), "/etc/x"), "plain path", id="an absolute path"
        ),
        pytest.param(
            _with(STATEMENT, ("files", 0, "path"), "manifest.json"), "plain path", id="its own name"
        ),
        pytest.param(_with(STATEMENT, ("files", 0, "mode"), "0777"), "mode", id="another mode"),
        pytest.param(_with(STATEMENT, ("files", 0, "sha256"), "A" * 64), "sha256", id="upper case"),
        pytest.param(
            _with(STATEMENT, ("files", 0, "size_bytes"), 512 * 2**20 + 1),
            "at most 536870912",
            id="one byte more than a file may have",
        ),
        pytest.param(
            _with(STATEMENT, ("files",), [STATEMENT["files"][0]] * 4097),
            "4097 files; at most 4096",
            id="one file too many",
        ),
    ],
)
def test_what_no_build_writes_is_refused(data: bytes, said: str) -> None:
    with pytest.raises(ManifestInvalid) as refusal:
        manifest.read(data)

    assert refusal.value.message.startswith("manifest.json: ")
    assert said in refusal.value.message
    assert refusal.value.message.isprintable()


def test_a_kind_of_the_future_is_told_from_a_broken_manifest() -> None:
    with pytest.raises(UnknownKind) as refusal:
        manifest.read(_with(STATEMENT, ("kind",), "servce"))

    assert 'kind "servce"; did you mean service?' in refusal.value.message


@given(st.binary())
def test_no_bytes_break_the_reader(data: bytes) -> None:
    with pytest.raises(ManifestInvalid):
        manifest.read(data)


@given(st.integers(0, len(COMPOSED.manifest.text)), st.integers(0, 9), st.binary(max_size=9))
def test_no_damage_is_read_as_the_same_package(at: int, gone: int, put: bytes) -> None:
    text = COMPOSED.manifest.text.encode()
    data = text[:at] + put + text[at + gone :]
    if data == text:
        return
    try:
        read = manifest.read(data)
    except (ManifestInvalid, UnknownKind):
        return
    assert read.package_id != COMPOSED.manifest.package_id


@pytest.mark.parametrize(
    ("files", "said"),
    [
        pytest.param([], "names a file that is not listed", id="a file that is not there"),
        pytest.param(
            [WEB, replace(LOGO, path="Bin/x")],
            "one name on some file systems",
            id="directories that differ in case",
        ),
        pytest.param([WEB, LOGO], '"assets/logo" belongs to no variant', id="a file too many"),
        pytest.param(
            [replace(WEB, mode="0444")],
            'run.command: "./bin/web" is not executable',
            id="a program without its mode bit",
        ),
        pytest.param([replace(WEB, size_bytes=-1)], "at most", id="a size below nothing"),
    ],
)
def test_description_and_files_go_together(files: list[PackageFile], said: str) -> None:
    with pytest.raises(Fault) as fault:
        manifest.compose(found(parse(MINIMAL), ("bin/web",)), files)

    assert said in str(fault.value)


@pytest.mark.parametrize(
    ("section", "said"),
    [
        pytest.param('[health]\nexec = "check"', 'health.exec: "./check" is not among', id="check"),
        pytest.param(
            '[lifecycle]\nswitch = ["./bin/on"]', 'lifecycle.switch: "./bin/on" is not', id="switch"
        ),
    ],
)
def test_what_is_to_be_executed_is_in_the_package(section: str, said: str) -> None:
    with pytest.raises(Fault) as fault:
        manifest.compose(found(parse(f"{MINIMAL}{section}\n"), ("bin/web",)), [WEB])

    assert said in str(fault.value)


@pytest.mark.parametrize(
    ("paths", "twins"),
    [
        pytest.param(["a", "b"], None, id="different names"),
        pytest.param(["a/x", "a/y"], None, id="one directory twice"),
        pytest.param(["a", "A"], ("a", "A"), id="one name in two cases"),
        pytest.param(["a/x", "A/y"], ("a", "A"), id="a directory in two cases"),
        pytest.param(["straße", "STRASSE"], ("straße", "STRASSE"), id="a letter that folds to two"),
    ],
)
def test_names_that_differ_only_in_case_collide(
    paths: list[str], twins: tuple[str, str] | None
) -> None:
    assert manifest.collision(paths) == twins


def test_a_manifest_too_large_to_be_read_is_not_composed() -> None:
    names = [f"d/{'x' * 240}{number:04}" for number in range(3000)]
    workload = found(parse(MINIMAL), ("bin/web", *names))
    files = [WEB, *(PackageFile(name, "0444", "a" * 64, 1) for name in names)]

    with pytest.raises(Fault, match="bytes; at most 1048576"):
        manifest.compose(workload, files)


def test_a_spec_names_what_a_revocation_may_name() -> None:
    spec = manifest.spec_of(COMPOSED.manifest, ["SHA256:k2", "SHA256:k1"])

    assert spec.revocable_refs[:3] == (COMPOSED.manifest.package_id, "SHA256:k1", "SHA256:k2")
    assert set(spec.revocable_refs[3:]) == {file.sha256 for file in COMPOSED.manifest.files}


def test_a_spec_has_what_a_decision_needs() -> None:
    spec = manifest.spec_of(COMPOSED.manifest)

    assert (spec.kind, spec.name, spec.version) == ("service", "web", "1.4.2")
    assert [variant.name for variant in spec.variants] == ["x86_64", "any"]
    assert spec.ports == (("http", 0), ("metrics", 9100))
    assert spec.common == FULL_WORKLOAD.common
    assert spec.variants[0].requirements == FULL_WORKLOAD.variants[0].requires
    assert spec.resources == FULL_WORKLOAD.resources
    assert spec.policy == FULL_WORKLOAD.policy
    assert spec.secrets == ("API_KEY", "DB_PASSWORD")


def test_the_files_of_a_variant_are_its_own() -> None:
    stated = COMPOSED.manifest
    x86, any_ = stated.workload.variants

    assert manifest.files_of(stated, x86) == (LOGO, WEB)
    assert manifest.files_of(stated, any_) == (WEB, WEB_PY)
    assert manifest.sheet_of(stated, any_).path == "sheets/any"
