"""What place does on a node: what a process is given, held to, and what is refused."""

import os
import socket
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from tests.host.bench import INSTALLATION, PACKAGE, Bench, Work, encoded, script, sha256, wait_until
from wlctl.model.actions import Launched, LogTail, Placed, RefusalCode, Refused
from wlctl.model.generation import Containment, Liveliness

ONE = [("dash", "root")]
SOME = [("dash", "root"), ("bash", "sudo"), ("busybox", "plain")]
ROOTS = [(shell, login) for shell in ("dash", "bash", "busybox") for login in ("root", "sudo")]

SLEEP = script("exec sleep 1000")


def test_a_process_is_given_what_is_documented_and_nothing_else(bench: Bench) -> None:
    work = Work(("env",), more=("port http auto", "port admin-ui auto", "env LOG=x-${WLCTL_NAME}"))
    request = bench.request(work)

    done = bench.place(request)

    bench.await_log(request, "LOG=")
    wait_until(lambda: bench.status(request).generations[0].exit_status == 0, "its end")  # type: ignore[union-attr]  # it is there
    given = dict(line.split("=", 1) for line in bench.log(request).splitlines())
    ports = dict(done.ports)
    assert set(given) == {
        *("PATH", "HOME", "TMPDIR", "PORT", "PORT_HTTP", "PORT_ADMIN_UI", "LOG"),
        *("WLCTL_NAME", "WLCTL_INSTANCE", "WLCTL_NODE", "WLCTL_GENERATION", "WLCTL_FENCE"),
        *("WLCTL_RUN_DIR", "WLCTL_DATA_DIR"),
    }
    assert given["LOG"] == "x-web"
    assert given["WLCTL_INSTANCE"] == request.instance
    assert given["WLCTL_NODE"] == "elm"
    assert given["PORT"] == given["PORT_HTTP"] == str(ports["http"])
    assert given["PORT_ADMIN_UI"] == str(ports["admin-ui"])
    assert 20000 <= ports["http"] <= 29999
    assert given["HOME"] == given["WLCTL_DATA_DIR"] == done.data_dir
    assert given["TMPDIR"] == "/tmp"


HOSTILE = ("", " ", "a b", "-n", "$HOME `id` $(id)", "'\"\\", "%41", "ü€\u202e", "a\nb\n", "*", "~")


@pytest.mark.kinds(SOME)
def test_words_arrive_as_they_were_written(bench: Bench) -> None:
    words = tuple(encoded(word) for word in HOSTILE)
    work = script("for w; do printf '<%s>' \"$w\"; done; echo done", command=("./run", *words))
    request = bench.run(replace(work, args="append"), args=HOSTILE)

    log = bench.await_log(request, "done")

    assert log == "".join(f"<{word}>" for word in HOSTILE * 2) + "done\n"


@pytest.mark.kinds(SOME)
def test_an_order_may_set_the_variables_that_the_package_allows(bench: Bench) -> None:
    work = Work(("env",), more=("env FEATURE_A=old", "env_allow FEATURE_%2A"))
    request = bench.run(work, env=(("FEATURE_A", "new = \n$x"), ("FEATURE_B", "")))

    log = bench.await_log(request, "FEATURE_B")

    assert "FEATURE_A=new = \n$x\n" in log


@pytest.mark.kinds(ROOTS)
def test_an_isolated_process_has_a_uid_of_its_own_and_no_way_out(bench: Bench) -> None:
    request = bench.run(
        script(
            """
            try() { if "$@" 2>/dev/null; then echo "ALLOWED $*"; fi; }
            own=/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)
            try sh -c "echo 0 > /sys/fs/cgroup/cgroup.procs"
            try sh -c "echo 0 > ${own%/limit/*}/ctl/g1/cgroup.procs"
            try mkdir "$own/x"
            try kill -9 1
            try kill -9 "$PPID"
            try touch ./new
            try sh -c 'echo x >> run'
            try chmod 0755 run
            for f in record exit fifo launch open init.sh out; do try sh -c "echo x >> ../$f"; done
            try mv ../open ../gone
            try ls ..
            try ls ../..
            try ls /var/lib/wlctl
            try unshare -m true
            try head -c1 /proc/1/mem
            grep -E '^(Uid|Gid|Groups|Cap[EPB]..|NoNewPrivs):' /proc/self/status
            for d in /tmp /var/tmp /run/lock /dev/shm; do echo x > "$d/$WLCTL_INSTANCE"; done
            touch "$WLCTL_DATA_DIR/d" "$WLCTL_RUN_DIR/r" && echo done
            exec sleep 1000"""
        )
    )

    log = bench.await_log(request, "done")

    assert "ALLOWED" not in log
    outside = Path(f"/proc/{bench.node.pids()[0]}/root")
    shared = [outside / place for place in ("tmp", "var/tmp", "run/lock", "dev/shm")]
    assert not [place for place in shared if (place / request.instance).exists()]
    status = bench.status(request)
    assert status is not None
    uid = status.generations[0].uid
    assert uid is not None
    assert 1_900_000_000 <= uid < 1_900_100_000
    facts = dict(line.split(":\t", 1) for line in log.splitlines() if ":\t" in line)
    assert facts["Uid"].split() == facts["Gid"].split() == [str(uid)] * 4
    assert facts["Groups"].split() in ([], [str(uid)])
    assert {facts[name] for name in ("CapEff", "CapPrm", "CapBnd")} == {"0" * 16}
    assert facts["NoNewPrivs"] == "1"


@pytest.mark.kinds([("dash", "plain"), ("bash", "plain"), ("busybox", "plain")])
def test_a_plain_login_contains_by_cgroup_and_says_so(bench: Bench) -> None:
    request = bench.request(script("cat /proc/self/cgroup; echo x > /tmp/t; exec sleep 1000"))

    done = bench.place(request)

    assert done.containment is Containment.CGROUP
    assert done.uid is None
    assert bench.cgroup(request).stat().st_ino == done.cgroup_inode
    bench.await_log(request, f"{request.instance}/limit/g1")


@pytest.mark.kinds(SOME)
def test_the_leader_is_the_process_that_was_recorded(bench: Bench) -> None:
    request = bench.request(SLEEP)

    done = bench.place(request)

    members = (bench.cgroup(request) / "cgroup.procs").read_text("ascii").split()
    assert len(members) == 1
    process = Path("/proc") / members[0]
    lines = (process / "status").read_text("ascii").splitlines()
    numbers = next(line for line in lines if line.startswith("NSpid")).split()
    assert int(numbers[2]) == done.pid, "as the node numbers it"
    columns = (process / "stat").read_text("ascii").rpartition(") ")[2].split()
    shifted_s = int((process / "timens_offsets").read_text("ascii").split()[4])
    shifted_ticks = shifted_s * os.sysconf("SC_CLK_TCK")  # of a node that was booted anew
    assert int(columns[19]) + shifted_ticks == done.start_ticks


@pytest.mark.parametrize(
    ("text", "status"),
    [
        pytest.param("exit 0", 0, id="a clean end"),
        pytest.param("exit 3", 3, id="a status of its own"),
        pytest.param("kill -9 $$", 137, id="a signal, as shells count"),
        pytest.param("exec ./missing", 127, id="a program that is not there"),
    ],
)
@pytest.mark.kinds(SOME)
def test_how_it_ended_is_kept(bench: Bench, text: str, status: int) -> None:
    request = bench.run(script(text))

    wait_until(lambda: _exit(bench, request) is not None, "its end")

    assert _exit(bench, request) == status


def _exit(bench: Bench, request: object) -> int | None:
    status = bench.status(request)  # type: ignore[arg-type]  # a request
    assert status is not None
    return status.generations[0].exit_status


@pytest.mark.kinds(ONE)
def test_the_end_of_the_output_is_bounded_by_lines_and_bytes(bench: Bench) -> None:
    request = bench.run(
        script("printf '\\377\\033[1m\\n'; seq 1 50000; echo done; exec sleep 1000")
    )
    bench.await_log(request, "done")

    tail = bench.session.logs(request.installation, request.instance, lines=2)
    some = bench.session.logs(request.installation, request.instance, lines=99999, max_bytes=10)
    whole = bench.session.logs(
        request.installation, request.instance, lines=99999, max_bytes=1 << 20
    )

    assert not isinstance(tail, Refused)
    assert not isinstance(some, Refused)
    assert not isinstance(whole, Refused)
    assert tail.text == "50000\ndone\n"
    assert some.text == "50000\ndone\n"[-10:]
    assert tail.size_bytes == len("".join(f"{n}\n" for n in range(1, 50001))) + 6 + 5
    assert whole.text.startswith("\ufffd\x1b[1m\n1\n")


@pytest.mark.kinds(SOME)
def test_output_is_read_on_from_where_it_was_left_in_whole_lines(bench: Bench) -> None:
    request = bench.run(
        script(
            "echo one; printf tw; until [ -e $WLCTL_DATA_DIR/go ]; do sleep 0.05; done;"
            ' printf "o\\nthree"'
        )
    )
    bench.await_log(request, "tw")

    def after(byte: int, max_bytes: int = 1000) -> tuple[str, int, bool]:
        found = bench.session.logs(
            request.installation, request.instance, after=byte, max_bytes=max_bytes
        )
        assert isinstance(found, LogTail)
        return found.text, found.next_byte, found.is_over

    assert after(0) == ("one\n", 4, False)
    assert after(4) == ("", 4, False), "a line that is not whole yet"
    assert after(0, 2) == ("on", 2, False), "a line that is longer than all that may be sent"
    (data,) = bench.instance_dir(request).glob("g1/data")
    (data / "go").touch()
    wait_until(lambda: bench.status(request).generations[0].exit_status == 0, "its end")  # type: ignore[union-attr]  # it is there
    assert after(4) == ("two\nthree", 13, True)
    assert after(13) == ("", 13, True)
    assert after(99) == ("one\ntwo\nthree", 13, True), "the output was bounded meanwhile"


@pytest.mark.kinds(SOME)
def test_staged_is_not_started_and_start_starts_it(bench: Bench) -> None:
    request = bench.request(SLEEP, start=False)

    assert bench.session.place(request) == Placed(already=False)
    staged = bench.status(request)
    assert staged is not None
    assert (staged.desired, staged.current, staged.generations) == ("stopped", 0, ())
    done = bench.start(request, 2, 1)

    assert isinstance(done, Launched)
    running = bench.status(request)
    assert running is not None
    assert (running.desired, running.current, running.number) == ("running", 1, 2)
    assert running.generations[0].leader is Liveliness.ALIVE


@pytest.mark.kinds(SOME)
def test_whoever_never_had_the_answer_of_a_launch_finds_it_in_the_status(bench: Bench) -> None:
    request = bench.request(replace(SLEEP, more=("port http auto",)))
    told = bench.place(request)

    first = bench.status(request)
    bench.stop(request, 2)
    again = bench.start(request, 3, 2)
    second = bench.status(request)

    assert first is not None
    assert second is not None
    assert isinstance(again, Launched)
    assert [one.launch for one in first.generations] == [replace(told, already=True)]
    assert [one.launch for one in second.generations] == [None, replace(again, already=True)]


@pytest.mark.kinds(ONE)
def test_a_further_generation_starts_only_where_the_last_is_proven_gone(bench: Bench) -> None:
    request = bench.run(replace(SLEEP, more=("port http auto",)), number=1)
    first = bench.status(request)

    early = bench.start(request, 2, 2)
    assert isinstance(early, Refused)
    assert early.code is RefusalCode.BUSY
    bench.stop(request, 3)
    again = bench.start(request, 4, 2)
    used = bench.start(request, 5, 1)

    assert isinstance(again, Launched)
    assert isinstance(used, Refused)
    assert used.code is RefusalCode.INVALID_REQUEST
    assert first is not None
    assert again.uid == first.generations[0].uid


@pytest.mark.kinds(ONE)
def test_kept_data_and_ports_outlive_a_generation(bench: Bench) -> None:
    work = script(
        'cat "$WLCTL_DATA_DIR/d"; echo mark > "$WLCTL_DATA_DIR/d"; echo up; exec sleep 1000',
        keep=True,
        more=("port http auto",),
    )
    request = bench.request(work)
    first = bench.place(request)
    bench.await_log(request, "up")
    bench.stop(request, 2)

    second = bench.start(request, 3, 2)

    assert isinstance(second, Launched)
    assert second.ports == first.ports
    assert "mark" in bench.await_log(request, "up")
    kept = bench.unload(request, 4, generation=2, purge=False)
    assert not isinstance(kept, Refused)
    assert (bench.node.directory / "varlib" / kept.kept_data.removeprefix("/var/lib/")).exists()


@pytest.mark.kinds(ONE)
def test_data_that_is_not_kept_goes_with_its_generation(bench: Bench) -> None:
    request = bench.run(script('echo x > "$WLCTL_DATA_DIR/d"; echo up; exec sleep 1000'))
    bench.await_log(request, "up")

    bench.stop(request)

    left = {path.name for path in (bench.instance_dir(request) / "g1").iterdir()}
    assert left == {"closed", "ended", "err", "exit", "how", "out", "proof", "record"}


@pytest.mark.kinds(ONE)
def test_a_port_that_somebody_listens_on_is_passed_over(bench: Bench) -> None:
    asks = replace(SLEEP, more=("port http auto",))
    first = bench.request(asks)
    port = dict(bench.place(first).ports)["http"]
    bench.unload(first)

    with socket.create_server(("127.0.0.1", port)):
        done = bench.place(bench.request(asks))

    assert dict(done.ports)["http"] == (port + 1 if port < 29999 else 20000)


@pytest.mark.kinds(ROOTS)
def test_a_port_that_somebody_took_between_two_runs_is_given_up_for_another(bench: Bench) -> None:
    work = Work(("env",), more=("port http-alt auto", "port http auto"))
    request = bench.request(work)
    first = dict(bench.place(request).ports)
    bench.stop(request, 2)

    with socket.create_server(("127.0.0.1", first["http"])):
        done = bench.start(request, 3, 2)
        assert isinstance(done, Launched)
        second = dict(done.ports)
        bench.await_log(request, f"PORT_HTTP={second['http']}\n")
        bench.stop(request, 4, generation=2)

    assert second["http"] not in first.values()
    assert second["http-alt"] == first["http-alt"]
    third = bench.start(request, 5, 3)
    assert isinstance(third, Launched)
    assert dict(third.ports) == second, "and that one is kept"


@pytest.mark.kinds(ONE)
def test_a_fixed_port_that_somebody_took_between_two_runs_is_a_refusal(bench: Bench) -> None:
    request = bench.run(replace(SLEEP, more=("port http 20778",)))
    bench.stop(request, 2)

    with socket.create_server(("127.0.0.1", 20778)):
        done = bench.start(request, 3, 2)

    assert done == Refused(RefusalCode.PORT, "20778 is taken")
    assert isinstance(bench.start(request, 4, 3), Launched)


@pytest.mark.kinds(ONE)
def test_a_fixed_port_is_given_once(bench: Bench) -> None:
    first = bench.run(replace(SLEEP, more=("port http 20777",)))

    second = bench.refused(bench.request(replace(SLEEP, more=("port http 20777",))))

    assert second == Refused(RefusalCode.PORT, "20777 is taken")
    bench.unload(first)
    bench.run(replace(SLEEP, more=("port http 20777",)))


@pytest.mark.kinds(ONE)
def test_limits_that_the_node_cannot_hold_it_to_are_named(bench: Bench) -> None:
    limits = ("cpu_milli 500", "memory_bytes 1048576", "pids 64", "disk_bytes 4096")

    done = bench.place(bench.request(replace(SLEEP, more=limits)))

    assert set(done.unenforced) == {"cpu", "memory", "disk"}


@pytest.mark.kinds([("dash", "root"), ("bash", "sudo"), ("busybox", "root")])
def test_the_number_of_processes_is_held_to_its_limit(bench: Bench) -> None:
    work = script("for i in 1 2 3 4 5 6 7 8; do sleep 1000 & done; wait", more=("pids 4",))
    request = bench.run(work)

    wait_until(lambda: "fork" in bench.log(request).lower(), "a fork that fails")

    assert len((bench.cgroup(request) / "cgroup.procs").read_text("ascii").split()) <= 4


@pytest.mark.parametrize(
    ("work", "changes", "code"),
    [
        pytest.param(
            replace(SLEEP, more=("user web",)), {}, "no_user", id="a user who is not there"
        ),
        pytest.param(
            replace(SLEEP, more=("group video",)), {}, "no_user", id="a group that is not there"
        ),
        pytest.param(
            replace(SLEEP, more=("capability CAP_FLY",)), {}, "governance", id="a capability"
        ),
        pytest.param(
            replace(SLEEP, more=("secret TOKEN",)), {}, "secret_unavailable", id="a secret"
        ),
        pytest.param(
            replace(SLEEP, more=("health_kind tcp",)), {}, "verify", id="a check of nothing"
        ),
        pytest.param(
            replace(SLEEP, more=("health_kind exec", "health_target ../x")),
            {},
            "verify",
            id="a check that leads out",
        ),
        pytest.param(replace(SLEEP, more=("colour blue",)), {}, "verify", id="an unknown key"),
        pytest.param(replace(SLEEP, more=("pids many",)), {}, "verify", id="a limit that is none"),
        pytest.param(replace(SLEEP, more=("end",)), {}, "verify", id="lines after its end"),
        pytest.param(replace(SLEEP, command=()), {}, "verify", id="no command"),
        pytest.param(replace(SLEEP, command=("./a=b",)), {}, "verify", id="an = in the command"),
        pytest.param(replace(SLEEP, command=("${NO}",)), {}, "verify", id="an unknown reference"),
        pytest.param(replace(SLEEP, command=("a$b",)), {}, "verify", id="a bare dollar"),
        pytest.param(replace(SLEEP, command=("a;b",)), {}, "verify", id="what is not encoded"),
        pytest.param(replace(SLEEP, command=("%00",)), {}, "verify", id="a NUL"),
        pytest.param(Work(files={"../up": b""}), {}, "verify", id="a path that leads out"),
        pytest.param(Work(files={"/etc/x": b""}), {}, "verify", id="an absolute path"),
        pytest.param(Work(files={"a\nb": b""}), {}, "verify", id="a newline in a path"),
        pytest.param(
            replace(SLEEP, more=(f"file 0444 {sha256(SLEEP.files['run'])} run",)),
            {},
            "verify",
            id="a path twice",
        ),
        pytest.param(
            replace(SLEEP, more=(f"file 0555 {'0' * 64} x",)), {}, "fetch", id="a missing file"
        ),
        pytest.param(SLEEP, {"sheet": "0" * 64}, "fetch", id="a missing sheet"),
        pytest.param(SLEEP, {"args": ("more",)}, "invalid_request", id="arguments not taken"),
        pytest.param(SLEEP, {"env": (("X", "1"),)}, "invalid_request", id="a variable not allowed"),
        pytest.param(
            replace(SLEEP, more=("env_allow %2A",)), {}, "verify", id="a pattern that allows all"
        ),
        pytest.param(
            replace(SLEEP, more=("env_allow LD_%2A",)),
            {"env": (("LD_PRELOAD", "x"),)},
            "invalid_request",
            id="a variable that is never allowed",
        ),
        pytest.param(SLEEP, {"deadline_ms": 1}, "clock", id="a request that came too late"),
        pytest.param(SLEEP, {"name": "a/b"}, "invalid_request", id="a name with a slash"),
        pytest.param(SLEEP, {"instance": ".."}, "invalid_request", id="dots for an id"),
        pytest.param(SLEEP, {"number": 0}, "invalid_request", id="operation zero"),
        pytest.param(SLEEP, {"generation": 0}, "invalid_request", id="generation zero"),
    ],
)
@pytest.mark.kinds(ONE)
def test_a_refusal_says_why_and_leaves_nothing(
    bench: Bench, work: Work, changes: dict[str, object], code: str
) -> None:
    request = replace(bench.request(work), **changes)  # type: ignore[arg-type]  # its fields

    refused = bench.refused(request)

    assert refused.code.value == code, refused
    assert bench.left_over() == []
    if code not in {"clock", "invalid_request"} or not changes.keys() - {"env", "args"}:
        assert bench.refused(request) == refused, "asked again, it answers the same"


@pytest.mark.kinds(SOME)
def test_a_file_that_was_changed_in_the_store_is_thrown_away(bench: Bench) -> None:
    work = script("exec sleep 1000 # its own")
    request = bench.request(work)
    name = sha256(work.files["run"])
    stored = bench.node.state / "store" / name
    stored.chmod(0o644)
    stored.write_bytes(b"#!/bin/sh\nevil\n")

    refused = bench.refused(request)

    assert refused.code is RefusalCode.VERIFY
    offered = bench.session.offer(INSTALLATION, [name])
    assert not isinstance(offered, Refused)
    assert offered.missing == (name,)
    bench.run(work)


@pytest.mark.kinds(ONE)
def test_files_are_links_that_nobody_can_write(bench: Bench) -> None:
    work = Work(("sleep", "1000"), files={"a/b c": b"one", "d": b"two"})
    request = bench.run(work)
    view = bench.instance_dir(request) / "g1/work"

    assert (view / "a/b c").read_bytes() == b"one"
    for path in (view / "a/b c", view / "d"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o555
        assert path.stat().st_nlink == 2


@pytest.mark.kinds(ONE)
def test_a_start_of_another_package_is_refused(bench: Bench) -> None:
    request = bench.run(SLEEP)
    bench.stop(request)

    refused = bench.start(replace(request, package=PACKAGE[::-1]), 3, 2)  # type: ignore[arg-type]  # an id

    assert isinstance(refused, Refused)
    assert refused.code is RefusalCode.INVALID_REQUEST
    assert isinstance(bench.start(request, 4, 2), Launched)
