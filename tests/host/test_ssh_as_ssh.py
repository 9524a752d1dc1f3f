"""ssh's configuration and known_hosts files, read by wlctl and by OpenSSH: both find the same."""

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from wlctl.host.ssh.known_hosts import known
from wlctl.host.ssh.route import Hop, route
from wlctl.host.ssh.tokens import caller

pytestmark = [pytest.mark.sshd]

NAMES = ("elm", "elm.example", "oak", "10.0.0.5")
NOT_OURS = {"none", "~/.ssh/id_dsa", "~/.ssh/id_xmss"}
"""What stands for no file, and keys of types that nobody takes any more."""

PATTERNS = ("*", "elm", "e*", "?lm", "!oak", "*.example", "10.0.0.*", "!elm", "nobody")

NO_CIRCLE = ("Host a b", "ProxyJump none", "Host *")
"""Else the jump hosts lead to themselves, for wlctl an error and for ssh no end."""

patterns = st.lists(st.sampled_from(PATTERNS), min_size=1, max_size=3)
settings_lines = st.one_of(
    st.sampled_from(["HostName oak", "HostName %h.example", "HostName 10.0.0.5"]),
    st.sampled_from(["User ann", "User bob", "Port 22", "Port=2222", 'Port "23"']),
    st.sampled_from(["IdentityFile /k1", "IdentityFile /k/%r@%h:%p", "IdentityFile ~/k2 # mine"]),
    st.sampled_from(["CertificateFile /c1", "CertificateFile /c/%n"]),
    st.sampled_from(["IdentitiesOnly yes", "IdentitiesOnly no", "HostKeyAlias tree"]),
    st.sampled_from(["UserKnownHostsFile /u1 /u2", "UserKnownHostsFile /u/%k"]),
    st.sampled_from(["ProxyJump none", "ProxyJump a,ann@b:7", "ProxyCommand nc %h %p"]),
    st.sampled_from(["ForwardAgent yes", "Compression no", "# nothing", ""]),
)
blocks = st.one_of(
    patterns.map(lambda found: f"Host {' '.join(found)}"),
    patterns.map(lambda found: f"Match host {','.join(found)}"),
    patterns.map(lambda found: f"Match originalhost {','.join(found)} user ann,bob"),
    st.sampled_from(["Match all", "Match final", "Match !final host *", "Match user root,!bob"]),
    st.sampled_from(["Match final all", "Match canonical", "Match !host elm", "Match localuser *"]),
)
configs = st.lists(st.one_of(blocks, settings_lines, settings_lines), max_size=14)


def of_openssh(config: Path, name: str) -> dict[str, list[str]]:
    done = subprocess.run(
        ["ssh", "-G", "-F", str(config), name], capture_output=True, text=True, check=True
    )
    found: dict[str, list[str]] = {}
    for line in done.stdout.splitlines():
        keyword, _, value = line.partition(" ")
        found.setdefault(keyword, []).append(value)
    return found


def plain(values: list[str]) -> list[Path]:
    home = str(caller().home)
    return [Path(value.replace("~", home, 1)) for value in values]


def compare(ours: Hop, theirs: dict[str, list[str]]) -> None:
    assert [ours.host] == theirs["hostname"]
    assert [str(ours.port)] == theirs["port"]
    assert [ours.user] == theirs["user"]
    assert ours.identities_only == (theirs["identitiesonly"] == ["yes"])
    if "hostkeyalias" in theirs:
        assert [ours.key_name] == theirs["hostkeyalias"]
    # `ssh -G` expands no tokens in these, so only those without any are compared
    for ours_are, keyword in (
        (ours.identities, "identityfile"),
        (ours.certificates, "certificatefile"),
    ):
        written = theirs.get(keyword, [])
        if not any("%" in value for value in written):
            assert list(ours_are) == plain([word for word in written if word not in NOT_OURS])
    users = theirs["userknownhostsfile"][0].split()
    if not any("%" in value for value in users):
        assert list(ours.known_hosts[: len(users)]) == plain(users)


@given(configs, st.sampled_from(NAMES))
@example(["ProxyJump a,ann@b:7", "ProxyCommand nc %h %p"], "elm")  # the command is the jump's own
@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_a_configuration_means_what_it_means_to_ssh(
    tmp_path: Path, lines: list[str], name: str
) -> None:
    config = tmp_path / "config"
    config.write_text("\n".join([*NO_CIRCLE, *lines]), encoding="utf-8")
    config.chmod(0o600)

    way = route(name, user="", port=0, files=[config], caller=caller())

    theirs = of_openssh(config, name)
    compare(way.hops[-1], theirs)
    jump = theirs.get("proxyjump", ["none"])[0]
    assert (len(way.hops) > 1) == (jump != "none")
    # a command leads to the first hop; `ssh -G` leaves its tokens to the moment that it is run
    first = theirs if jump == "none" else of_openssh(config, way.hops[0].name)
    assert bool(way.command) == (first.get("proxycommand", ["none"])[0] != "none")


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param("elm {key}", id="a name"),
        pytest.param("ELM {key}", id="a name in another case"),
        pytest.param("oak,elm {key}", id="one of several"),
        pytest.param("e* {key}", id="a pattern"),
        pytest.param("*,!elm {key}", id="an exception"),
        pytest.param("[elm]:22 {key}", id="the usual port written out"),
        pytest.param("[elm]:23 {key}", id="another port"),
        pytest.param("oak {key}", id="another name"),
        pytest.param("# elm {key}", id="a comment"),
        pytest.param("elm {key} and a comment", id="with a comment"),
        pytest.param("  elm   {key}", id="with spaces"),
    ],
)
@pytest.mark.parametrize("hashed", [False, True], ids=["plain", "hashed"])
@pytest.mark.parametrize("name", ["elm", "[elm]:23"])
def test_a_known_host_is_the_one_that_ssh_keygen_finds(
    tmp_path: Path, entry: str, name: str, *, hashed: bool
) -> None:
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    words = " ".join(key.with_suffix(".pub").read_text("ascii").split()[:2])
    file = tmp_path / "known_hosts"
    file.write_text(entry.format(key=words) + "\n", encoding="ascii")
    if hashed:
        subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(file)], check=True, capture_output=True)
    file.chmod(0o600)

    theirs = subprocess.run(
        ["ssh-keygen", "-F", name, "-f", str(file)], capture_output=True, check=False
    )

    assert bool(known(name, [file], os.getuid()).keys) == (theirs.returncode == 0)
