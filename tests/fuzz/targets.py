"""Every parser of bytes from outside, as a function that any bytes may be given to.

Each of them either takes the bytes, and then what it took is held to a rule, or refuses them in one
printable line; anything else is a find.
"""

import base64
import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from wlctl import signing
from wlctl.errors import GarbledAnswer, InvalidFile, ManifestInvalid, UnknownKind, WlctlError
from wlctl.gate import file as policies
from wlctl.gate.judge import judge
from wlctl.host import answer, kept, outcome
from wlctl.host.answer import Answer
from wlctl.model.package import Workload
from wlctl.model.policy import Action, GateRequest
from wlctl.package import manifest, workload
from wlctl.package.manifest import preview

ROOT = Path(__file__).parents[1]

NONCE = "0123456789abcdef"

MESSAGE = b"what was signed"
SIGNATURE = b"""\
-----BEGIN SSH SIGNATURE-----
U1NIU0lHAAAAAQAAADMAAAALc3NoLWVkMjU1MTkAAAAg6kpsY+KcUgq+9VB7Ey7F+ZVHdq
6+vnuSQh7qaRRG0iwAAAANd2xjdGwtcGFja2FnZQAAAAAAAAAGc2hhNTEyAAAAUwAAAAtz
c2gtZWQyNTUxOQAAAEAO1qqsEmEXhvEeGVXkFUq/w7Ho3IzVzjzQynhwaLoNt3mlukZ//j
JeEmEWYn14cTQwOJsoAiwxVPxocc41M00I
-----END SSH SIGNATURE-----
"""
"""Of the message above, by a key of nobody."""


def take_manifest(data: bytes) -> None:
    """A manifest is taken only in the one spelling of what it says, and is named by it."""
    with _refusals(ManifestInvalid, UnknownKind):
        found = manifest.read(data)
        assert found.text.encode() == data
        assert found.package_id == hashlib.sha256(data).hexdigest()
        manifest.spec_of(found)


def take_workload(data: bytes) -> None:
    """A description that is taken can be built into what a decision needs."""
    with _refusals(InvalidFile):
        found = workload.parse(data.decode("utf-8", errors="replace"))
        assert isinstance(found, Workload)
        preview(found)


def take_signature(data: bytes) -> None:
    """No bytes are a signature but the one that was made."""
    reading = signing.read_signature(data, MESSAGE)
    assert reading.fault is None or reading.fault.isprintable()
    if reading.fault is None:
        assert _blob(data) == _blob(SIGNATURE)


def _blob(armored: bytes) -> bytes:
    return base64.b64decode(b"".join(armored.strip().splitlines()[1:-1]))


def take_allowed_signers(data: bytes) -> None:
    """A list that is taken says the same when it is written and read again."""
    with _refusals(InvalidFile):
        found = signing.parse_allowed_signers(data.decode("utf-8", errors="replace"), "list")
        signers = [one.signer for one in found]
        again = signing.parse_allowed_signers(signing.allowed_signers(signers), "list")
        assert [one.signer for one in again] == signers


def take_policy(data: bytes) -> None:
    """A policy that is taken answers every question."""
    with _refusals(InvalidFile):
        policy = policies.parse(data.decode("utf-8", errors="replace"))
        for action in Action:
            judge(policy, (), GateRequest(action, "ann"))


def take_answer(data: bytes) -> None:
    """Whatever a node answers is an answer, or is said to be none."""
    raw = data + f"\nend {NONCE} ok\n".encode()
    end = answer.end_of(raw, NONCE)
    assert end
    with _refusals(GarbledAnswer):
        found = answer.parse(raw[:end], NONCE)
        for read in READERS:
            with suppress(GarbledAnswer):
                read(found)


def _part(found: Answer) -> bytes:
    return kept.part(found, 5, 5)


READERS: tuple[Callable[[Answer], object], ...] = (
    *(outcome.placed, outcome.launched, outcome.stopped, outcome.unloaded, outcome.settled),
    *(outcome.status, outcome.measured, outcome.cleaned, outcome.log_tail, outcome.refusal),
    *(kept.collected, kept.lease_until_ms, kept.witness, _part),
    *(kept.recalled, kept.installations),
)


@contextmanager
def _refusals(*kinds: type[WlctlError]) -> Iterator[None]:
    try:
        yield
    except kinds as refusal:
        if not refusal.message.isprintable():
            raise AssertionError(f"a refusal has control characters: {refusal}") from refusal


STATUS = (
    b"node_id aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\nboot_id b\nuptime_ms 5\n"
    b"instance i1 desired=running number=1 current=1 name=web package=- supervisor=alive\n"
    b"generation i1 1 closed=no record=whole boot=b leader=alive populated=1 exit=- pid=7 uid=-"
    b" oom=- health=- misses=0\nlog 1 size=3\ntext abc\nsize 5\ndata aGVsbG8="
)

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMhOFXtrGsA/8Vx8/0L1jKDJ5ErWcfMkGR+bis9qBcoo"
ALLOWED = f'# team\nann namespaces="wlctl-*",valid-before="20270101Z" {KEY} comment\n'
POLICY = f"""\
[[permit]]
id = "a"
actions = ["place", "policy.apply"]
principals = ["*"]
min_node_tier = "trusted"
max_cpu = 4.0
[[deny]]
id = "b"
actions = ["swap"]
reason = "no"
[effect]
ceiling = 0.8
human_approval = true
[[approver]]
principal = "bob"
key = "{KEY}"
"""

TARGETS: Mapping[str, tuple[Callable[[bytes], None], bytes]] = {
    "manifest": (take_manifest, (ROOT / "unit/full.manifest.json").read_bytes()),
    "workload": (take_workload, (ROOT / "unit/full.toml").read_bytes()),
    "signature": (take_signature, SIGNATURE),
    "allowed_signers": (take_allowed_signers, ALLOWED.encode()),
    "policy": (take_policy, POLICY.encode()),
    "answer": (take_answer, STATUS),
}
"""Each parser, and bytes that it takes."""
