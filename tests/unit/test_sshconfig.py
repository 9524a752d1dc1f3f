"""How ssh's configuration is read: as ssh itself reads it, and nothing is run or guessed."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from wlctl.errors import InvalidSshConfig, UnsafeSshConfig
from wlctl.host.ssh.config import matches
from wlctl.host.ssh.route import Hop, Route, route
from wlctl.host.ssh.tokens import Caller


@pytest.fixture
def who(tmp_path: Path) -> Caller:
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    return Caller("me", os.getuid(), home, "desk.example", {"SOME": "thing"})


def write(path: Path, text: str, mode: int = 0o600) -> Path:
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return path


def way(who: Caller, text: str, name: str = "elm", *, user: str = "", port: int = 0) -> Route:
    config = write(who.home / ".ssh/config", text)
    return route(name, user=user, port=port, files=[config], caller=who)


def hop(who: Caller, text: str, name: str = "elm", **more: str) -> Hop:
    return way(who, text, name, **more).hops[-1]  # type: ignore[arg-type]  # its keywords


def test_without_any_file_a_name_stands_for_itself(who: Caller) -> None:
    found = route("elm", user="", port=0, files=[who.home / "none"], caller=who)

    (only,) = found.hops
    assert (only.host, only.port, only.user, found.command) == ("elm", 22, "me", "")
    assert only.identities[0] == who.home / ".ssh/id_rsa"
    assert who.home / ".ssh/known_hosts" in only.known_hosts
    assert not only.identities_only


@pytest.mark.parametrize(
    ("text", "host"),
    [
        pytest.param("Host elm\nHostName 10.0.0.5", "10.0.0.5", id="the block of its name"),
        pytest.param("Host oak\nHostName 10.0.0.5", "elm", id="not the block of another"),
        pytest.param("HostName 10.0.0.5", "10.0.0.5", id="what stands before any block"),
        pytest.param("Host e*\nHostName 10.0.0.5", "10.0.0.5", id="a star is any text"),
        pytest.param("Host e?m\nHostName 10.0.0.5", "10.0.0.5", id="a question mark one letter"),
        pytest.param("Host e?\nHostName 10.0.0.5", "elm", id="and exactly one"),
        pytest.param("Host [e]lm\nHostName 10.0.0.5", "elm", id="a bracket is only a bracket"),
        pytest.param("Host * !elm\nHostName 10.0.0.5", "elm", id="an exception counts"),
        pytest.param("Host !elm *\nHostName 10.0.0.5", "elm", id="wherever it stands"),
        pytest.param("Host !oak\nHostName 10.0.0.5", "elm", id="and alone fits nothing"),
        pytest.param("Host elm\nHostName a\nHostName b", "a", id="the first value holds"),
        pytest.param("Host elm\nHostName a\nHost *\nHostName b", "a", id="of any block"),
        pytest.param("HOST=elm\n  hostname = a", "a", id="with an equals sign, in any case"),
        pytest.param('Host "elm"\nHostName "a"', "a", id="with quotes"),
        pytest.param("# Host oak\n\nHost elm # mine\nHostName a # x", "a", id="with comments"),
        pytest.param("Host elm\nHostName %h.example", "elm.example", id="with its own name in it"),
        pytest.param("Host elm\nHostName a%%b", "a%b", id="with a percent sign"),
        pytest.param("Match host elm\nHostName a", "a", id="Match host"),
        pytest.param("Match host oak,e*\nHostName a", "a", id="Match host with a list"),
        pytest.param("Match host *,!elm\nHostName a", "elm", id="Match host with an exception"),
        pytest.param("Match !host oak\nHostName a", "a", id="Match not host"),
        pytest.param("Match !host elm\nHostName a", "elm", id="Match not this host"),
        pytest.param("Match all\nHostName a", "a", id="Match all"),
        pytest.param("Match user me\nHostName a", "a", id="Match user is the login there"),
        pytest.param("User you\nMatch user me\nHostName a", "elm", id="as set before"),
        pytest.param("Match localuser me\nHostName a", "a", id="Match localuser is the one here"),
        pytest.param("Match host elm user you\nHostName a", "elm", id="Match wants all"),
        pytest.param(
            "Host elm\nHostName a\nMatch host a\nUser x\nMatch host elm\nUser y",
            "a",
            id="Match host looks at the name found so far",
        ),
        pytest.param(
            "Host elm\nHostName a\nMatch originalhost elm\nPort 1", "a", id="Match originalhost"
        ),
        pytest.param("Match canonical\nHostName a", "elm", id="no name is made canonical"),
        pytest.param("Match final\nHostName a", "elm", id="the name stands when Match final comes"),
        pytest.param("Frobnicate yes\nHost elm\nHostName a", "a", id="an unknown keyword"),
    ],
)
def test_the_host_name_is_the_one_that_ssh_takes(who: Caller, text: str, host: str) -> None:
    assert hop(who, text).host == host


@pytest.mark.parametrize(
    ("text", "user"),
    [
        pytest.param("Match final\nUser a", "a", id="it applies"),
        pytest.param("Match final\nUser a\nHost *\nUser b", "b", id="after all others"),
        pytest.param("Match !final\nUser a", "a", id="and its opposite before"),
        pytest.param(
            "Match final host tree\nUser a\nHost elm\nHostName tree", "a", id="knowing the name"
        ),
        pytest.param(
            "Match final originalhost tree\nUser a\nHost elm\nHostName tree",
            "me",
            id="and the one that was asked for",
        ),
    ],
)
def test_match_final_comes_last(who: Caller, text: str, user: str) -> None:
    assert hop(who, text).user == user


def test_what_is_asked_for_outranks_the_files(who: Caller) -> None:
    text = "User file\nPort 1"

    assert (hop(who, text).user, hop(who, text).port) == ("file", 1)
    asked = way(who, text, user="asked", port=2).hops[-1]
    assert (asked.user, asked.port) == ("asked", 2)


def test_files_and_tokens_become_paths(who: Caller) -> None:
    found = hop(
        who,
        """
        Host elm
            HostName 10.0.0.5
            Port 2222
            User deploy
            IdentityFile ~/.ssh/%n_%r
            IdentityFile %d/keys/%h
            CertificateFile ~/.ssh/${SOME}-cert.pub
            UserKnownHostsFile ~/.ssh/known_%p /etc/known
            GlobalKnownHostsFile none
            IdentityAgent ~/agent.%u
            IdentitiesOnly yes
            HostKeyAlias tree
        """,
    )

    home = who.home
    assert found.identities == (home / ".ssh/elm_deploy", home / "keys/10.0.0.5")
    assert found.certificates == (home / ".ssh/thing-cert.pub",)
    assert found.known_hosts == (home / ".ssh/known_2222", Path("/etc/known"))
    assert found.agent == str(home / "agent.me")
    assert found.identities_only
    assert found.key_name == "tree"


@pytest.mark.parametrize(
    ("value", "agent"),
    [
        pytest.param("none", "none", id="no agent"),
        pytest.param("SSH_AUTH_SOCK", "", id="the agent of the environment"),
        pytest.param("$SOME", "thing", id="a variable"),
        pytest.param("${SOME}", "thing", id="a variable in braces"),
        pytest.param("$OTHER", "none", id="a variable that is not set"),
        pytest.param("/run/agent", "/run/agent", id="a path"),
    ],
)
def test_the_agent_is_the_one_that_is_named(who: Caller, value: str, agent: str) -> None:
    assert hop(who, f"IdentityAgent {value}").agent == agent


def test_every_identity_counts_once_in_order(who: Caller) -> None:
    text = "IdentityFile /a\nHost elm\nIdentityFile /b\nHost *\nIdentityFile /a\n"

    assert hop(who, text).identities == (Path("/a"), Path("/b"))


def test_no_identity_can_be_asked_for(who: Caller) -> None:
    assert hop(who, "IdentityFile none").identities == ()


@pytest.mark.parametrize(
    ("port", "name"),
    [pytest.param(22, "elm", id="the usual port"), pytest.param(23, "[elm]:23", id="another")],
)
def test_a_host_key_is_recorded_with_its_port(who: Caller, port: int, name: str) -> None:
    assert hop(who, f"Port {port}").key_name == name


def test_jump_hosts_come_in_the_order_of_travel(who: Caller) -> None:
    found = way(
        who,
        """
        Host elm
            ProxyJump ann@a:1,b
        Host b
            HostName 10.0.0.2
            User bob
            Port 2
        """,
    )

    assert [(one.name, one.host, one.port, one.user) for one in found.hops] == [
        ("a", "a", 1, "ann"),
        ("b", "10.0.0.2", 2, "bob"),
        ("elm", "elm", 22, "me"),
    ]


def test_the_first_jump_host_is_reached_as_its_own_block_says(who: Caller) -> None:
    text = "Host elm\nProxyJump b\nHost b\nProxyJump a\nHost a\nProxyCommand nc %h %p"

    found = way(who, text)

    assert [one.name for one in found.hops] == ["a", "b", "elm"]
    assert found.command == "nc a 22"


def test_a_jump_host_that_was_led_to_does_not_lead_elsewhere(who: Caller) -> None:
    text = "Host elm\nProxyJump a,b\nHost b\nProxyJump elsewhere"

    assert [one.name for one in way(who, text).hops] == ["a", "b", "elm"]


@pytest.mark.parametrize(
    ("text", "hops", "command"),
    [
        pytest.param("ProxyJump none", ["elm"], "", id="no jump"),
        pytest.param("ProxyCommand none", ["elm"], "", id="no command"),
        pytest.param("ProxyJump none\nProxyJump a", ["elm"], "", id="the first holds"),
        pytest.param("ProxyJump none\nProxyCommand x", ["elm"], "x", id="a command after no jump"),
        pytest.param("ProxyCommand none\nProxyJump a", ["elm"], "", id="no jump after no command"),
        pytest.param("ProxyJump a\nProxyCommand x", ["a", "elm"], "", id="jump before command"),
        pytest.param("ProxyCommand x\nProxyJump a", ["elm"], "x", id="command before jump"),
        pytest.param(
            "ProxyCommand ssh -W '%h:%p' \"%r@gate\" # 100%%",
            ["elm"],
            "ssh -W 'elm:22' \"me@gate\" # 100%",
            id="a command keeps its quotes",
        ),
        pytest.param("ProxyJump ssh://ann@a:1/", ["a", "elm"], "", id="a jump as a URI"),
        pytest.param("ProxyJump [::1]:1", ["::1", "elm"], "", id="a jump by IPv6"),
        pytest.param("Host *\nProxyJump elm", ["elm"], "", id="no jump by way of itself"),
    ],
)
def test_the_first_proxy_holds(who: Caller, text: str, hops: list[str], command: str) -> None:
    found = way(who, text if text.startswith("Host") else f"Host elm\n{text}")

    assert ([one.name for one in found.hops], found.command) == (hops, command)


def test_jumps_in_a_circle_are_an_error(who: Caller) -> None:
    with pytest.raises(InvalidSshConfig, match="hops"):
        way(who, "Host a\nProxyJump b\nHost b\nProxyJump a\nHost elm\nProxyJump a")


@pytest.mark.parametrize(
    ("name", "user"),
    [
        pytest.param("a;reboot", "me", id="a host that is a command"),
        pytest.param("a$(reboot)", "me", id="a host that is a substitution"),
        pytest.param("elm", "me`x`", id="a login that is one"),
        pytest.param("elm", "me x", id="a login with a space"),
        pytest.param("elm", "-oX", id="a login that is an option"),
    ],
)
def test_nothing_that_a_shell_would_read_goes_into_a_command(
    who: Caller, name: str, user: str
) -> None:
    with pytest.raises(InvalidSshConfig, match="cannot stand in a command"):
        way(who, "ProxyCommand nc %h %p", name, user=user)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        pytest.param("Host elm\nHostName", 2, "KEYWORD VALUE", id="no value"),
        pytest.param('Host elm\nUser "x', 2, "quote", id="an open quote"),
        pytest.param("\n\nMatch host", 3, "argument", id="a criterion without its argument"),
        pytest.param("Match exec true\nUser x", 1, "exec", id="a command that decides"),
        pytest.param('Match host elm exec "x y"', 1, "exec", id="and would be asked"),
        pytest.param("Match !exec true\nUser x", 1, "exec", id="or its opposite"),
        pytest.param("Match localnetwork 10.0.0.0/8", 1, "localnetwork", id="the network"),
        pytest.param("IdentityFile a b", 1, "one file", id="two files"),
        pytest.param("ProxyJump a b", 1, "commas", id="two jumps side by side"),
    ],
)
def test_what_cannot_be_understood_names_file_and_line(
    who: Caller, text: str, line: int, words: str
) -> None:
    with pytest.raises(InvalidSshConfig, match=words) as caught:
        way(who, text)

    assert f"{who.home}/.ssh/config, line {line}:" in caught.value.message


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("Port ssh", id="a port that is a word"),
        pytest.param("Port 0", id="port 0"),
        pytest.param("Port 65536", id="a port too high"),
        pytest.param("Host elm\nProxyJump a:70000", id="a jump to a port too high"),
        pytest.param("Host elm\nProxyJump -oProxyCommand=x", id="a jump that is an option"),
        pytest.param("Host elm\nProxyJump a,,b", id="an empty jump"),
        pytest.param("IdentityFile ~other/key", id="another user's home"),
        pytest.param("IdentityFile ${NOT_SET}/key", id="a variable that is not set"),
        pytest.param("IdentityFile %z", id="an unknown token"),
        pytest.param("HostName a%", id="a token that is cut"),
        pytest.param("ProxyCommand nc %d", id="a token that is not one there"),
    ],
)
def test_a_value_that_means_nothing_is_an_error(who: Caller, text: str) -> None:
    with pytest.raises(InvalidSshConfig):
        way(who, text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("Match host oak exec true\nUser x", id="for another host"),
        pytest.param("Match exec true host oak\nUser x", id="whatever comes first"),
        pytest.param("Host oak\nInclude bad", id="in a file for another host"),
    ],
)
def test_a_command_that_cannot_matter_is_passed_over(who: Caller, text: str) -> None:
    write(who.home / ".ssh/bad", "Match exec true\nUser x")

    assert hop(who, text).user == "me"


def test_nothing_is_ever_run(who: Caller) -> None:
    proof = who.home / "was-run"

    with pytest.raises(InvalidSshConfig):
        way(who, f'Match exec "touch {proof}"\nProxyCommand touch {proof}')
    way(who, f"ProxyCommand touch {proof}")

    assert not proof.exists()


def test_files_are_included_where_they_stand(who: Caller) -> None:
    ssh = who.home / ".ssh"
    (ssh / "more").mkdir()
    write(ssh / "more/1", "User first\nHost elm\nPort 1")
    write(ssh / "more/2", "User second\nHostName a")
    write(who.home / "far", "IdentityFile /k")

    found = hop(who, f"Include more/*\nInclude ~/far {who.home}/nowhere\nPort 9")

    assert (found.user, found.port, found.host) == ("first", 1, "a")
    assert found.identities == (Path("/k"),)


def test_a_block_of_an_included_file_ends_with_it(who: Caller) -> None:
    write(who.home / ".ssh/other", "Host oak\nUser oak")

    assert hop(who, "Include other\nUser mine").user == "mine"


def test_an_included_block_does_not_escape_the_block_that_includes_it(who: Caller) -> None:
    write(who.home / ".ssh/other", "Host *\nUser other")

    assert hop(who, "Host oak\nInclude other\nHost *\nPort 1").user == "me"


def test_files_that_include_each_other_are_an_error(who: Caller) -> None:
    write(who.home / ".ssh/a", "Include b")
    write(who.home / ".ssh/b", "Include a")

    with pytest.raises(InvalidSshConfig, match="include each other"):
        way(who, "Include a")


def test_the_users_file_comes_before_the_systems(who: Caller, tmp_path: Path) -> None:
    own = write(who.home / ".ssh/config", "User own")
    system = write(tmp_path / "system", "User system\nPort 7")

    (found,) = route("elm", user="", port=0, files=[own, system], caller=who).hops

    assert (found.user, found.port) == ("own", 7)


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_can_write_is_refused(who: Caller, mode: int) -> None:
    config = write(who.home / ".ssh/config", "User x", mode)

    with pytest.raises(UnsafeSshConfig, match=f"{config} can be written by others"):
        route("elm", user="", port=0, files=[config], caller=who)


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o400])
def test_a_file_that_others_can_only_read_is_read(who: Caller, mode: int) -> None:
    config = write(who.home / ".ssh/config", "User x", mode)

    assert route("elm", user="", port=0, files=[config], caller=who).hops[-1].user == "x"


def test_an_included_file_that_others_can_write_is_refused(who: Caller) -> None:
    write(who.home / ".ssh/other", "User x", 0o666)

    with pytest.raises(UnsafeSshConfig, match="other can be written"):
        way(who, "Include other")


def test_a_file_of_another_user_is_refused(who: Caller) -> None:
    config = write(who.home / ".ssh/config", "User x")
    stranger = replace(who, uid=who.uid + 1)
    if who.uid == 0:
        os.chown(config, 4321, 0)

    with pytest.raises(UnsafeSshConfig, match="belongs to another user"):
        route("elm", user="", port=0, files=[config], caller=stranger)


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda path: path.mkdir(), id="a directory"),
        pytest.param(os.mkfifo, id="a pipe"),
        pytest.param(lambda path: path.write_bytes(b"\xff\xfe"), id="no text"),
        pytest.param(lambda path: path.symlink_to(path), id="a link to itself"),
    ],
)
def test_what_is_no_text_file_is_refused_at_once(who: Caller, make: object) -> None:
    config = who.home / ".ssh/config"
    make(config)  # type: ignore[operator]  # one of those above

    with pytest.raises(UnsafeSshConfig):
        route("elm", user="", port=0, files=[config], caller=who)


def test_a_file_that_was_changed_is_read_again(who: Caller) -> None:
    assert hop(who, "User one").user == "one"
    assert hop(who, "User another").user == "another"


@pytest.mark.parametrize(
    ("patterns", "text", "fits"),
    [
        pytest.param(["a"], "a", True, id="itself"),
        pytest.param(["a"], "A", False, id="in its own case"),
        pytest.param(["a.b"], "axb", False, id="a dot is a dot"),
        pytest.param(["*"], "", True, id="a star is also nothing"),
        pytest.param(["a", "!a"], "a", False, id="an exception outranks"),
        pytest.param([], "a", False, id="nothing fits nothing"),
    ],
)
def test_patterns(patterns: list[str], text: str, *, fits: bool) -> None:
    assert matches(patterns, text) is fits
