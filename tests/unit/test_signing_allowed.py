"""Lists of allowed signers: what is taken, what is not, and that ssh-keygen reads them alike."""

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.unit.test_signing_keys import TYPES, Keygen, keygen
from wlctl import signing
from wlctl.errors import InvalidFile, UnsafeKey, UnusableKey, WlctlError
from wlctl.model.package import Signer
from wlctl.signing import Allowed

__all__ = ["keygen"]

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMhOFXtrGsA/8Vx8/0L1jKDJ5ErWcfMkGR+bis9qBcoo"
OTHER = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIcPJ/hCqCRPWDKPLVSzpPdfMCmVqLgVvZ2YSWEBZgC3"
NEW_YEAR_MS = int(datetime(2027, 1, 1, tzinfo=UTC).timestamp()) * 1000


def read(text: str) -> tuple[Allowed, ...]:
    return signing.parse_allowed_signers(text, "list")


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine an hour ahead of UTC in winter, two in summer."""
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_a_line_is_a_name_and_a_key_and_a_comment_is_none_of_it() -> None:
    found = read(f"# the team\n\n  ann {KEY} ann@example\r\n\tbob@example.org {OTHER}")

    assert [(one.line, one.signer) for one in found] == [
        (3, Signer("ann", KEY, 0)),
        (4, Signer("bob@example.org", OTHER, 0)),
    ]
    assert all(one.for_packages for one in found)


@pytest.mark.parametrize(
    ("options", "after_ms", "before_ms"),
    [
        pytest.param('valid-after="20270101Z"', NEW_YEAR_MS, None, id="a day in UTC"),
        pytest.param('valid-after="202701010001Z"', NEW_YEAR_MS + 60_000, None, id="a minute"),
        pytest.param('valid-before="20270101000002UTC"', None, NEW_YEAR_MS + 2000, id="a second"),
        pytest.param('valid-before="20270101"', None, NEW_YEAR_MS - 3_600_000, id="a local day"),
        pytest.param(
            'VALID-BEFORE="20270701z"', None, NEW_YEAR_MS + 181 * 86_400_000, id="in any case"
        ),
        pytest.param(
            'valid-before="20270701"',
            None,
            NEW_YEAR_MS + 181 * 86_400_000 - 7_200_000,
            id="a local day in summer",
        ),
        pytest.param(
            'valid-after="20270101Z",namespaces="wlctl-package",valid-before="20270101000001Z"',
            NEW_YEAR_MS,
            NEW_YEAR_MS + 1000,
            id="both, and more",
        ),
    ],
)
def test_validity_is_read_as_ssh_keygen_reads_it(
    options: str, after_ms: int | None, before_ms: int | None, berlin: None
) -> None:
    [found] = read(f"ann {options} {KEY}")

    assert (found.signer.valid_after_ms, found.signer.valid_before_ms) == (after_ms, before_ms)


@pytest.mark.parametrize(
    ("listed", "is_for_packages"),
    [
        pytest.param("wlctl-package", True, id="named"),
        pytest.param("git,wlctl-package", True, id="among others"),
        pytest.param("wlctl-*", True, id="a pattern"),
        pytest.param("wlctl-packag?", True, id="one letter"),
        pytest.param("*", True, id="everything"),
        pytest.param("*,!wlctl-package", False, id="everything but it"),
        pytest.param("!wlctl-p*,*", False, id="excluded first"),
        pytest.param("git", False, id="something else"),
        pytest.param("", False, id="nothing"),
        pytest.param("wlctl.package", False, id="a dot is a dot"),
        pytest.param("wlctl-package2", False, id="a longer one"),
    ],
)
def test_namespaces_are_honoured(listed: str, is_for_packages: bool) -> None:
    [found] = read(f'ann namespaces="{listed}" {KEY}')

    assert found.for_packages is is_for_packages


@pytest.mark.parametrize(
    ("line", "said"),
    [
        pytest.param(f"*@example.org {KEY}", "not one plain name", id="a pattern"),
        pytest.param(f"ann,bob {KEY}", "not one plain name", id="two names"),
        pytest.param(f"!ann {KEY}", "not one plain name", id="an exclusion"),
        pytest.param(f'"ann b" {KEY}', "not one plain name", id="quotes"),
        pytest.param(f"ann cert-authority {KEY}", "cert-authority is not taken", id="a CA"),
        pytest.param(
            f'ann namespaces="wlctl-package",CERT-AUTHORITY {KEY}', "cert-authority", id="a late CA"
        ),
        pytest.param(f'ann no-touch-required="" {KEY}', "is no option", id="an unknown option"),
        pytest.param(f"ann namespaces {KEY}", "has no value", id="an option without a value"),
        pytest.param(f"ann namespaces=x {KEY}", "cannot be read", id="a value without quotes"),
        pytest.param(f'ann namespaces="x {KEY}', "cannot be read", id="an open quote"),
        pytest.param(f'ann namespaces="x","y" {KEY}', "cannot be read", id="no name"),
        pytest.param(
            f'ann namespaces="x",namespaces="wlctl-package" {KEY}', "is there twice", id="twice"
        ),
        pytest.param(f'ann valid-after="tomorrow" {KEY}', "is no moment", id="a word"),
        pytest.param(f'ann valid-after="20271301Z" {KEY}', "is no moment", id="month 13"),
        pytest.param(f'ann valid-after="2027010124Z" {KEY}', "is no moment", id="an hour alone"),
        pytest.param(f'ann valid-after="19690101Z" {KEY}', "after 1970", id="before there was"),
        pytest.param(
            f'ann valid-after="20270101Z",valid-before="20270101Z" {KEY}',
            "valid-after is not before",
            id="never valid",
        ),
        pytest.param("ann", "not a public key", id="no key"),
        pytest.param("ann ssh-ed25519", "not a public key", id="half a key"),
        pytest.param("ann ssh-ed25519 AAAA", "not a whole", id="a broken key"),
        pytest.param("ann ssh-dss AAAA", "no type of key that is taken", id="an old type"),
        pytest.param(f"ann {KEY}\nann {OTHER}", "line 2: the same name", id="a name twice"),
        pytest.param(
            f"ann {KEY}\nbob {KEY}", "line 2: the same name or key as in line 1", id="key"
        ),
    ],
)
def test_what_is_not_taken_is_named_with_its_line(line: str, said: str) -> None:
    with pytest.raises(InvalidFile) as refusal:
        read(line)

    assert said in refusal.value.message
    assert refusal.value.message.startswith("list: line ")


def test_several_faults_are_told_at_once_and_many_are_counted() -> None:
    text = f"ann {KEY}\n" + "bad\n" * 5

    with pytest.raises(InvalidFile) as refusal:
        read(text)

    assert refusal.value.message.count("line ") == 3
    assert refusal.value.message.endswith("; and 2 more")


@pytest.mark.parametrize("mode", [0o664, 0o646, 0o666], ids=oct)
def test_a_list_that_others_can_change_is_refused(mode: int, tmp_path: Path) -> None:
    path = tmp_path / "allowed"
    path.write_text(f"ann {KEY}\n")
    path.chmod(0o644)
    assert len(signing.load_allowed_signers(path)) == 1

    path.chmod(mode)
    with pytest.raises(UnsafeKey):
        signing.load_allowed_signers(path)


@pytest.mark.parametrize(
    ("data", "error"),
    [
        pytest.param(None, InvalidFile, id="not there"),
        pytest.param(b"ann \xff", InvalidFile, id="no UTF-8"),
        pytest.param(b"#" * (1 << 20) + b"\n", UnusableKey, id="too large"),
    ],
)
def test_what_is_no_list_is_refused(
    data: bytes | None, error: type[WlctlError], tmp_path: Path
) -> None:
    path = tmp_path / "allowed"
    if data is not None:
        path.write_bytes(data)
        path.chmod(0o600)

    with pytest.raises(error):
        signing.load_allowed_signers(path)


names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,127}", fullmatch=True)
moments = st.none() | st.integers(1, 250_000_000_000).map(lambda second: second * 1000)


@given(names, moments, moments)
@example("a", 1000, None)
def test_what_is_written_is_read_back(
    name: str, after_ms: int | None, before_ms: int | None
) -> None:
    if after_ms is not None and before_ms is not None and after_ms >= before_ms:
        before_ms = None
    signer = Signer(name, KEY, 0, after_ms, before_ms)

    [found] = read(signing.allowed_signers([signer]))

    assert (found.signer, found.for_packages) == (signer, True)


@given(st.text())
def test_no_text_breaks_the_reader(text: str) -> None:
    try:
        found = read(text)
    except InvalidFile as refusal:
        message = refusal.message
    else:
        assert found == ()
        message = "list"
    assert message.isprintable()


@given(st.text(max_size=30), st.integers(0, 80), st.integers(0, 10))
def test_no_slip_of_the_pen_breaks_the_reader(typed: str, at: int, gone: int) -> None:
    line = f'ann namespaces="wlctl-package",valid-before="20270101Z" {KEY}'
    with suppress(InvalidFile):
        for one in read(line[:at] + typed + line[at + gone :]):
            assert one.signer.public_key == KEY


def keygen_accepts(directory: Path, text: str, principal: str, at: str) -> bool:
    """Ask the real one, at a moment, about a signature of `key` in the directory."""
    (directory / "allowed").write_text(text)
    command = ["ssh-keygen", "-Y", "verify", "-f", "allowed", "-I", principal, "-s", "m.sig"]
    command += ["-n", "wlctl-package", "-O", f"verify-time={at}"]
    done = subprocess.run(
        command, cwd=directory, input=b"m", capture_output=True, check=False, env=os.environ
    )
    return done.returncode == 0


@pytest.mark.parametrize("arguments", TYPES)
def test_ssh_keygen_accepts_by_our_list_when_we_would_and_not_otherwise(
    arguments: tuple[str, ...], keygen: Keygen, tmp_path: Path, berlin: None
) -> None:
    key = signing.load_private_key(keygen(*arguments))
    (tmp_path / "m.sig").write_text(signing.sign(b"m", key))
    signer = Signer("ann", key.public, 0, NEW_YEAR_MS, NEW_YEAR_MS + 5000)
    text = signing.allowed_signers([signer, Signer("bob", OTHER, 0)])

    for second in (-1, 0, 5, 6):
        at_ms = NEW_YEAR_MS + second * 1000
        stamp = datetime.fromtimestamp(at_ms / 1000, tz=UTC).strftime("%Y%m%d%H%M%SZ")
        assert keygen_accepts(tmp_path, text, "ann", stamp) == signer.is_valid_at(at_ms + 999)
        assert not keygen_accepts(tmp_path, text, "bob", stamp)
