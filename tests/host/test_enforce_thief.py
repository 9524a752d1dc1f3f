"""Somebody has stolen wlctl's key: what an enforced node lets them do with it, and what not."""

import contextlib
import hashlib
import os
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.host.bench import INSTALLATION, Bench, Work, nonce, script, wait_until
from tests.host.enforced import (
    Door,
    Signed,
    door,
    enforcement,
    package,
    public,
    signature,
)
from wlctl.errors import DoorRefused
from wlctl.host import door as words
from wlctl.host import script as texts
from wlctl.host import transport
from wlctl.host.transport import Call, Deadlines
from wlctl.lifecycle.proof import judge
from wlctl.model.actions import Launched, NodeFacts, RefusalCode, Refused
from wlctl.model.generation import Proven
from wlctl.model.ids import DecisionId, InstallationId, InstanceId, PackageId

pytestmark = [pytest.mark.root, pytest.mark.sshd]

KINDS = [("dash", "root"), ("bash", "sudo"), ("busybox", "root")]
"""Login shell, and whether the login is root or goes through sudo."""

FACTS = texts.text("facts")


@pytest.fixture(scope="module", params=KINDS, ids=["dash", "bash-sudo", "busybox"])
def house(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Door]:
    """An enforced node of each login shell."""
    shell, login = request.param
    with door(tmp_path_factory.mktemp("keys"), shell=shell, login=login) as found:
        found.put()
        with found.master():
            yield found


@pytest.fixture(scope="module")
def signed(house: Door) -> Signed:
    return package(house.keys / "package", house.signer)


@pytest.fixture
def ours(house: Door) -> Iterator[Bench]:
    """A session of wlctl's own code; nothing may be left of what it placed."""
    with house.bench() as ours:
        yield ours


@pytest.fixture
def untouched(house: Door) -> Iterator[None]:
    """Whatever is tried: nothing of it runs afterwards, and nothing of it is left."""
    before = _state(house)
    yield
    wait_until(lambda: not house.node.commands(), f"{house.node.commands()} to end")
    assert _state(house) == before


def _state(house: Door) -> dict[str, str]:
    """Every file that a thief would like to change, and where one could leave something."""
    directory = house.node.directory
    found = {}
    for below in ("etc/wlctl", "root", "home", "authorized_keys"):
        for path in [directory / below, *(directory / below).rglob("*")]:
            if path.is_file():
                found[str(path)] = hashlib.sha256(path.read_bytes()).hexdigest()
    (init,) = house.node.pids()[:1]
    root = Path(f"/proc/{init}/root")
    found |= {str(path): "" for path in (root / "run").iterdir()}
    return found


# --- without the project's own code ---


FORMS = [
    pytest.param("", id="a login without a command"),
    pytest.param("id", id="a command"),
    pytest.param("sh -s", id="a shell"),
    pytest.param(f"sh -s {nonce()}", id="what wlctl asks of a node that is not enforced"),
    pytest.param("wlctl-action", id="no words"),
    pytest.param("wlctl-action HASH SIZE", id="too few words"),
    pytest.param("wlctl-action HASH SIZE NONCE more", id="too many words"),
    pytest.param("wlctl-action HASH SIZE NONCE; touch /root/was-here", id="a second command"),
    pytest.param("wlctl-action HASH SIZE $(touch${IFS}/root/was-here)", id="a substitution"),
    pytest.param("wlctl-action HASH SIZE `touch /root/was-here`", id="an older substitution"),
    pytest.param("wlctl-action HASH SIZE NONCE\ntouch /root/was-here", id="a second line"),
    pytest.param("wlctl-action * SIZE NONCE", id="a pattern"),
    pytest.param(f"wlctl-action {'.' * 64} SIZE NONCE", id="an expression of the right length"),
    pytest.param("wlctl-action UPPER SIZE NONCE", id="a hash in capitals"),
    pytest.param("wlctl-action HASH 0 NONCE", id="nothing to read"),
    pytest.param("wlctl-action HASH 010 NONCE", id="a size that shells read differently"),
    pytest.param("wlctl-action HASH -1 NONCE", id="less than nothing to read"),
    pytest.param("wlctl-action HASH 1000000 NONCE", id="more to read than any action has"),
    pytest.param("wlctl-action HASH 99999999999999999999 NONCE", id="a size beyond all numbers"),
    pytest.param("wlctl-action HASH SIZE 0123456789abcde", id="a nonce that is too short"),
    pytest.param("wlctl-action HASH SIZE ../../../../../tmp/was-here", id="a nonce that is a path"),
    pytest.param("wlctl-action HASH SIZE LONG", id="a nonce that is too long"),
    pytest.param("scp -t /root", id="a copy"),
    pytest.param("/bin/sh /etc/wlctl/inst-test/doorkeeper", id="the doorkeeper by hand"),
]  # fmt: skip


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize("asked", FORMS)
def test_the_key_opens_nothing_but_the_doorkeeper(house: Door, asked: str) -> None:
    digest = hashlib.sha256(FACTS).hexdigest()
    for word, meaning in (
        ("HASH", digest), ("UPPER", digest.upper()), ("SIZE", str(len(FACTS))),
        ("NONCE", nonce()), ("LONG", "a" * 65),
    ):  # fmt: skip
        asked = asked.replace(word, meaning)

    said = house.ssh(asked, data=b"touch /root/was-here\n" * 100)

    assert (said.code, said.out) == (77, b"refused -\nwhy form\n")


EVIL = b"touch /root/was-here\n"

CHANGED: list[tuple[str, Callable[[bytes], tuple[bytes, bytes]], bytes]] = [
    ("a text of one's own", lambda t: (EVIL, EVIL), b"unlisted"),
    ("a listed text after a line of one's own", lambda t: (EVIL + t, EVIL + t), b"unlisted"),
    ("another text than was announced", lambda t: (t, EVIL.ljust(len(t), b"#")), b"short"),
    ("a text with one byte changed", lambda t: (t, t[:-20] + b"X" + t[-19:]), b"short"),
    ("a text that is cut", lambda t: (t, t[:-1]), b"short"),
    ("nothing after all", lambda t: (t, b""), b"short"),
]  # fmt: skip


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize(
    ("change", "why"), [pytest.param(change, why, id=name) for name, change, why in CHANGED]
)
def test_no_other_text_than_a_listed_one_is_run(
    house: Door, change: Callable[[bytes], tuple[bytes, bytes]], why: bytes
) -> None:
    announced, sent = change(FACTS)
    mark = nonce()

    said = house.ssh(words.request(announced, mark), data=sent)

    assert said.out == b"refused %s\nwhy %s\n" % (mark.encode(), why)
    assert said.code == 77


def test_what_follows_a_listed_text_is_data_and_nothing_else(house: Door) -> None:
    mark = nonce()
    frame = b"%015d %015d\n" % (0, 0)

    said = house.ssh(words.request(FACTS, mark), data=FACTS + frame + b"touch /root/was-here\n")

    assert said.out.startswith(f"ready {mark}\n".encode())
    assert said.out.endswith(f"end {mark} refused\n".encode())  # no installation was named


@pytest.mark.usefixtures("untouched")
def test_who_sends_nothing_is_not_waited_for_long(house: Door) -> None:
    keeper = house.own / "doorkeeper"
    text = keeper.read_text("ascii")
    keeper.write_text(text.replace("KILL 20 ", "KILL 1 "), encoding="ascii")
    argv = ["ssh", *house.target(()), words.request(FACTS, nonce())]
    try:
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as client:
            assert client.stdin is not None
            client.stdin.write(FACTS[:100])
            client.stdin.flush()
            assert client.wait(30) == 77
            assert client.stdout is not None
            assert client.stdout.read().endswith(b"\nwhy short\n")
    finally:
        keeper.write_text(text, encoding="ascii")


@pytest.mark.usefixtures("untouched")
def test_who_hangs_up_in_the_middle_leaves_nothing(house: Door) -> None:
    argv = ["ssh", *house.target(()), words.request(FACTS, nonce())]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as client:
        assert client.stdin is not None
        client.stdin.write(FACTS[:100])
        client.stdin.flush()
        wait_until(lambda: bool(house.node.commands()), "the doorkeeper to read")
        client.kill()


@pytest.mark.usefixtures("untouched")
def test_no_file_is_copied_with_the_key(house: Door, tmp_path: Path) -> None:
    (tmp_path / "evil").write_text("evil", encoding="ascii")
    address = house.node.address
    target = f"{address.user}@{address.host}:/root/was-here"

    for more in (["-O"], []):
        argv = [*house.options(), *more, "-P", str(address.port), str(tmp_path / "evil"), target]
        assert house.client("scp", *argv).code != 0


@pytest.mark.usefixtures("untouched")
def test_nothing_is_forwarded_for_the_key(house: Door) -> None:
    address = house.node.address
    there = f"{address.host}:{address.port}"
    through = house.ssh(options=["-W", there])
    back = house.ssh(options=["-N", "-R", f"0:{there}", "-o", "ExitOnForwardFailure=yes"])

    assert b"SSH-" not in through.out
    assert (through.code, back.code) == (255, 255)
    assert _says_through(house, there) == b""


def _says_through(house: Door, there: str) -> bytes:
    """What a listener of `-L` passes on of the greeting that the node's sshd has for everybody."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    argv = ["ssh", *house.target(["-N", "-L", f"{port}:{there}"])]
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as client:
        try:
            said: list[bytes] = []

            def has_answered() -> bool:
                try:
                    with socket.create_connection(("127.0.0.1", port), timeout=30) as sock:
                        said.append(sock.recv(64))
                except ConnectionRefusedError:
                    return False
                except ConnectionResetError:
                    said.append(b"")
                return True

            wait_until(has_answered, "the listener")
            return said[0]
        finally:
            client.kill()


@pytest.mark.usefixtures("untouched")
def test_there_is_no_terminal_for_the_key(house: Door) -> None:
    said = house.ssh(options=["-tt"])

    assert (said.code, said.out) == (255, b"")
    assert said.err.startswith(b"PTY allocation request failed")


def test_no_variable_reaches_an_action(house: Door) -> None:
    evil = house.node.directory / "root/evil"
    evil.write_text("touch /root/was-here\n", encoding="ascii")
    given = {"BASH_ENV": "/root/evil", "ENV": "/root/evil", "LD_PRELOAD": "/root/evil"}
    options = [f"-oSetEnv={' '.join(f'{name}={value}' for name, value in given.items())}"]
    request = f"installation {INSTALLATION}\n".encode()
    try:
        mark = nonce()
        data = FACTS + b"%015d %015d\n" % (len(request), 0) + request
        said = house.ssh(words.request(FACTS, mark), options=options, data=data)

        assert said.out.endswith(f"end {mark} ok\n".encode())
        assert not (house.node.directory / "root/was-here").exists()
    finally:
        evil.unlink()


# --- with the project's own code ---


def _own_sheet(house: Door, ours: Bench, signed: Signed) -> dict[str, object]:
    return {"sheet": ours.put(script("touch /root/was-here").sheet)}


def _own_file(house: Door, ours: Bench, signed: Signed) -> dict[str, object]:
    evil = b"#!/bin/sh\ntouch /root/was-here\n"
    sheet = signed.contents[signed.sheet]
    (run,) = [name for name in signed.contents if name != signed.sheet]
    return {"sheet": ours.put(sheet.replace(run.encode(), ours.put(evil).encode()))}


def _other_command(house: Door, ours: Bench, signed: Signed) -> dict[str, object]:
    sheet = signed.contents[signed.sheet].replace(b"arg ./bin/run", b"arg /bin/sh\narg -c\narg id")
    return {"sheet": ours.put(sheet)}


def _more_capabilities(house: Door, ours: Bench, signed: Signed) -> dict[str, object]:
    sheet = signed.contents[signed.sheet].replace(b"end\n", b"capability CAP_SYS_ADMIN\nend\n")
    return {"sheet": ours.put(sheet)}


def _own_manifest(house: Door, ours: Bench, signed: Signed) -> dict[str, object]:
    own = package(house.keys / f"own-{nonce()}", house.stranger, args="append")
    request = house.request(ours, own)
    return {"package": own.package, "sheet": own.sheet, "signatures": request.signatures}


def _signature_of_another(house: Door, ours: Bench, signed: Signed) -> dict[str, object]:
    own = package(house.keys / f"own-{nonce()}", house.stranger, args="append")
    own = replace(own, signatures=signed.signatures)
    house.request(ours, own)
    return {"package": own.package, "sheet": own.sheet, "signatures": own.signatures}


def _signed_anew(house: Door, ours: Bench, signed: Signed, old: str, new: str) -> dict[str, object]:
    """A manifest that no wlctl makes, which a signer was talked into signing."""
    manifest = signed.manifest.replace(old.encode(), new.encode())
    assert manifest != signed.manifest
    signatures = (signature(manifest, house.signer),)
    return {"package": PackageId(ours.put(manifest)), "signatures": signatures}


def _file_not_listed(house: Door, ours: Bench, signed: Signed) -> dict[str, object]:
    return _signed_anew(house, ours, signed, '"path":"bin/run"', '"path":"bin/walk"')


def _file_of_another_mode(house: Door, ours: Bench, signed: Signed) -> dict[str, object]:
    return _signed_anew(house, ours, signed, '"mode":"0555"', '"mode":"0444"')


def _sheet_not_listed(house: Door, ours: Bench, signed: Signed) -> dict[str, object]:
    return _signed_anew(house, ours, signed, '"path":"sheets/any"', '"path":"bin/any"')


def _for_something_else(house: Door, ours: Bench, signed: Signed) -> dict[str, object]:
    return {"signatures": (signature(signed.manifest, house.signer, "file"),)}


def _manifest_not_there(house: Door, ours: Bench, signed: Signed) -> dict[str, object]:
    return {"package": PackageId("0" * 64)}


ATTEMPTS = [
    pytest.param(_own_sheet, RefusalCode.VERIFY, id="a launch sheet of one's own"),
    pytest.param(_own_file, RefusalCode.VERIFY, id="a file of one's own"),
    pytest.param(_other_command, RefusalCode.VERIFY, id="another command"),
    pytest.param(_more_capabilities, RefusalCode.VERIFY, id="more capabilities"),
    pytest.param(_own_manifest, RefusalCode.VERIFY, id="a manifest that a stranger signed"),
    pytest.param(_signature_of_another, RefusalCode.VERIFY, id="a signature of another manifest"),
    pytest.param(_file_not_listed, RefusalCode.VERIFY, id="a file that the manifest has not"),
    pytest.param(_file_of_another_mode, RefusalCode.VERIFY, id="a file that it has otherwise"),
    pytest.param(_sheet_not_listed, RefusalCode.VERIFY, id="a sheet that it has as a file"),
    pytest.param(_for_something_else, RefusalCode.VERIFY, id="a signature for something else"),
    pytest.param(_manifest_not_there, RefusalCode.FETCH, id="a manifest that was never brought"),
    *(
        pytest.param(lambda h, b, s, c=change: c, code, id=name)
        for name, change, code in (
            ("no signature", {"signatures": ()}, RefusalCode.VERIFY),
            ("what is no signature", {"signatures": ("evil", "")}, RefusalCode.VERIFY),
            (
                "a package that is no hash",
                {"package": PackageId("web")},
                RefusalCode.FETCH,
            ),
            ("LD_PRELOAD", {"env": (("LD_PRELOAD", "/x.so"),)}, RefusalCode.INVALID_REQUEST),
            ("PATH", {"env": (("PATH", "/tmp"),)}, RefusalCode.INVALID_REQUEST),
            ("a variable nobody allowed", {"env": (("X", "1"),)}, RefusalCode.INVALID_REQUEST),
            (
                "a variable hidden in an allowed one",
                {"env": (("GREETING\nLD_PRELOAD", "x"),)},
                RefusalCode.INVALID_REQUEST,
            ),
            ("arguments", {"args": ("-c", "id")}, RefusalCode.INVALID_REQUEST),
            (
                "an instance outside",
                {"instance": InstanceId("../../../../root/x")},
                RefusalCode.INVALID_REQUEST,
            ),
            (
                "a decision outside",
                {"decision": DecisionId("../../x")},
                RefusalCode.INVALID_REQUEST,
            ),
            ("a name that is a path", {"name": "../x"}, RefusalCode.INVALID_REQUEST),
            (
                "another installation",
                {"installation": InstallationId("w-other")},
                RefusalCode.UNAUTHORIZED,
            ),
            (
                "an installation outside",
                {"installation": InstallationId("../inst-test")},
                RefusalCode.UNAUTHORIZED,
            ),
        )
    ),
]


@pytest.mark.parametrize(("attempt", "code"), ATTEMPTS)
def test_nothing_is_placed_but_what_an_accepted_signer_signed(
    house: Door,
    ours: Bench,
    signed: Signed,
    attempt: Callable[[Door, Bench, Signed], dict[str, object]],
    code: RefusalCode,
) -> None:
    request = house.request(ours, signed, **attempt(house, ours, signed))

    assert ours.refused(request).code is code

    ours.asked_nothing()
    assert ours.left_over() == []
    assert not (house.node.directory / "root/was-here").exists()


def test_an_honest_package_runs_and_is_stopped_with_proof(
    house: Door, ours: Bench, signed: Signed
) -> None:
    request = house.request(ours, signed, env=(("GREETING", "good day"),))

    assert isinstance(ours.session.place(request), Launched)

    ours.await_log(request, "good day with 0 from web; preload none")
    assert isinstance(ours.prove(request), Proven)
    started = ours.start(request, 3, 2)
    assert isinstance(started, Launched)
    assert all(
        isinstance(judge(each), Proven) for each in ours.stop(request, 4, generation=2).readings
    )


def test_arguments_are_added_where_the_package_lets_them(house: Door, ours: Bench) -> None:
    work = package(house.keys / f"args-{nonce()}", house.signer, args="append")
    request = house.request(ours, work, args=("one", "two words"))

    ours.place(request)

    ours.await_log(request, "hello with 2 from web")


def test_a_package_that_was_signed_once_can_be_placed_again(
    house: Door, ours: Bench, signed: Signed
) -> None:
    """That is what a thief can do: run, and stop, what was signed and is not revoked."""
    for number in (1, 2):
        request = house.request(ours, signed, name=f"web{number}")
        assert isinstance(ours.session.place(request), Launched)


ODD_PATHS = {
    "bin/a b": "x", 'bin/q"uote': "x", "bin/back\\slash": "x", "bin/br{a},{ce}]": "x",
    "bin/pünktlich": "x", "bin/per%cent": "x", "bin/do$llar": "x", "bin/[{": "x",
}  # fmt: skip


def test_files_of_any_name_are_found_in_the_manifest(house: Door, ours: Bench) -> None:
    work = package(house.keys / f"odd-{nonce()}", house.signer, files=ODD_PATHS)

    request = house.request(ours, work)
    ours.place(request)

    staged = ours.instance_dir(request) / "g1/work"
    assert {path for path in ODD_PATHS if (staged / path).exists()} == set(ODD_PATHS)


def test_a_file_that_only_looks_like_a_launch_sheet_is_none(house: Door, ours: Bench) -> None:
    """The signer signed it, as a file of the package, and not as what is to run."""
    evil = Work(("/bin/sleep", "1000")).sheet.decode()
    work = package(house.keys / f"bait-{nonce()}", house.signer, files={"bin/bait": evil})

    refused = ours.refused(
        house.request(ours, work, sheet=hashlib.sha256(evil.encode()).hexdigest())
    )

    assert refused.code is RefusalCode.VERIFY


def test_variables_that_look_like_a_listed_file_list_none(house: Door, ours: Bench) -> None:
    """A signer may be talked into odd variables; they are no file, whatever they say."""
    evil = Work(("/bin/sleep", "1000")).sheet
    path = house.keys / f"env-{nonce()}"
    package(path, house.signer)
    text = (path / "workload.toml").read_text("utf-8").replace(
        'env = { GREETING = "hello" }',
        'env = { mode = "0444", path = "sheets/x", '
        f'sha256 = "{hashlib.sha256(evil).hexdigest()}", size_bytes = "1" }}',
    )  # fmt: skip
    work = _rebuilt(path, text, house)

    refused = ours.refused(house.request(ours, work, sheet=ours.put(evil)))

    assert refused.code is RefusalCode.VERIFY


def _rebuilt(path: Path, text: str, house: Door) -> Signed:
    from wlctl.package import build

    (path / "workload.toml").write_text(text, encoding="utf-8")
    stated = build.build(path).manifest
    contents = {file.sha256: (path / file.path).read_bytes() for file in stated.files}
    sheet = next(file.sha256 for file in stated.files if file.path == "sheets/any")
    manifest = stated.text.encode()
    return Signed(
        stated.package_id, manifest, sheet, contents, (signature(manifest, house.signer),)
    )


@contextlib.contextmanager
def _put(house: Door, **changes: object) -> Iterator[None]:
    """Other lists for a while."""
    house.put(replace(house.wanted, **changes))  # type: ignore[arg-type]  # fields of Enforcement
    try:
        yield
    finally:
        house.remove()  # a revoked key is one until then
        house.put()


def test_a_package_of_a_revoked_key_neither_is_placed_nor_starts_again(
    house: Door, ours: Bench, signed: Signed
) -> None:
    placed = house.request(ours, signed)
    ours.place(placed)
    assert isinstance(ours.prove(placed), Proven)

    with _put(house, revoked=f"{public(house.signer)}\n"):
        refused = ours.refused(house.request(ours, signed))
        again = ours.start(placed, 3, 2)

    assert refused.code is RefusalCode.VERIFY
    assert isinstance(again, Refused)
    assert again.code is RefusalCode.VERIFY
    assert isinstance(ours.start(placed, 5, 3), Launched)


def test_another_signature_is_enough_when_one_key_is_revoked(
    house: Door, ours: Bench, signed: Signed
) -> None:
    both = (*signed.signatures, signature(signed.manifest, house.stranger))
    signers = enforcement({"alice": house.signer, "bob": house.stranger}).signers

    with _put(house, signers=signers, revoked=f"{public(house.signer)}\n"):
        ours.place(house.request(ours, replace(signed, signatures=both)))


def test_a_project_that_the_node_does_not_list_is_refused_by_the_node(
    house: Door, ours: Bench, signed: Signed
) -> None:
    with _put(house, projects=("shop", "web.*")):
        for project in ("", "sho", "shop\n", "web.x", "-v"):
            refused = ours.refused(house.request(ours, signed, project=project))
            assert refused.code is RefusalCode.UNAUTHORIZED
        ours.place(house.request(ours, signed, project="shop"))

    ours.place(house.request(ours, signed, project="any"))


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        pytest.param("allowed_signers", 0o646, id="signers that everybody can write"),
        pytest.param("allowed_signers", 0o664, id="signers that a group can write"),
        pytest.param("revoked_keys", 0o646, id="revoked keys"),
        pytest.param("actions.allow", 0o664, id="actions"),
        pytest.param("doorkeeper", 0o646, id="the doorkeeper itself"),
        pytest.param(".", 0o775, id="their directory"),
    ],
)
def test_nothing_is_done_by_lists_that_others_can_write(house: Door, name: str, mode: int) -> None:
    path = house.own / name
    before = path.stat().st_mode & 0o777
    path.chmod(mode)
    try:
        with house.bench() as ours, pytest.raises(DoorRefused, match="written by others"):
            ours.session.facts(INSTALLATION)
    finally:
        path.chmod(before)


def test_nothing_is_done_by_lists_that_another_login_owns(house: Door) -> None:
    path = house.own / "allowed_signers"
    os.chown(path, 1234, 0)
    try:
        with house.bench() as ours, pytest.raises(DoorRefused, match="written by others"):
            ours.session.facts(INSTALLATION)
    finally:
        os.chown(path, 0, 0)


def test_forty_at_once_are_all_answered(house: Door) -> None:
    with house.bench() as ours:
        found: list[object] = []
        call = Call("facts", FACTS, (("installation", INSTALLATION),))

        def ask() -> None:
            found.append(
                transport.run(ours.session._way, call, nonce=nonce(), deadlines=Deadlines())
            )

        threads = [threading.Thread(target=ask) for _ in range(40)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert len(found) == 40
        assert all(answer.status is transport.Status.OK for answer in found)  # type: ignore[attr-defined]  # an Answer
        assert isinstance(ours.session.facts(INSTALLATION), NodeFacts)
