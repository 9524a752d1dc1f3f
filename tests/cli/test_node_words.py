"""What operators may write about nodes, and what they are told when they write something else."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wlctl.cli.node_words import address, claim, machine_list, node_label, settles, tier
from wlctl.errors import InvalidFile, UsageError
from wlctl.model.facts import AttrValue, Provenance
from wlctl.model.node import Settles, Tier, TransportKind

KEY = "SHA256:" + "a" * 43


@pytest.mark.parametrize(
    ("text", "id_", "attrs"),
    [
        pytest.param("sensor.cam.front", "sensor.cam.front", {}, id="an id alone"),
        pytest.param("a.b,n=1080", "a.b", {"n": 1080}, id="a number"),
        pytest.param("a.b,n=-2.5", "a.b", {"n": -2.5}, id="a decimal"),
        pytest.param("a.b,n=true,m=false", "a.b", {"n": True, "m": False}, id="yes and no"),
        pytest.param("a.b,version=3.11", "a.b", {"version": "3.11"}, id="a version is text"),
        pytest.param("a.b,fw_version=3", "a.b", {"fw_version": "3"}, id="and so is any other"),
        pytest.param('a.b,n="1080"', "a.b", {"n": "1080"}, id="quotes make text"),
        pytest.param("a.b,n=x=y z", "a.b", {"n": "x=y z"}, id="text may have equal signs"),
        pytest.param("a.b,n=1e9", "a.b", {"n": "1e9"}, id="no other number is one"),
        pytest.param("a.b,n=" + "9" * 16, "a.b", {"n": "9" * 16}, id="nor a long one"),
    ],
)
def test_a_claim_is_read(text: str, id_: str, attrs: dict[str, AttrValue]) -> None:
    one = claim(text)

    assert (one.id, dict(one.attrs), one.exclusive) == (id_, attrs, False)
    assert one.provenance is Provenance.CLAIMED
    assert claim(f"{text},exclusive").exclusive


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("a..b", id="an empty segment"),
        pytest.param("a b", id="a space"),
        pytest.param("é", id="not ASCII"),
        pytest.param("a" * 129, id="too long an id"),
        pytest.param("a,n", id="an attribute without a value"),
        pytest.param("a,n=", id="an empty value"),
        pytest.param("a,N=1", id="a capital"),
        pytest.param("a,n=1,n=2", id="one twice"),
        pytest.param("a,n=\x1b[31m", id="a control character"),
        pytest.param("a,n=" + "x" * 257, id="too long a value"),
        pytest.param("a,exclusive=no", id="a word of ours as an attribute"),
        pytest.param("node.label.env,value=prod", id="a label"),
        pytest.param("node.label", id="all labels"),
    ],
)
def test_what_is_no_claim_is_said(text: str) -> None:
    with pytest.raises(UsageError):
        claim(text)


def test_a_label_is_a_claim_of_text() -> None:
    one = node_label("rack=12")

    assert (one.id, one.attrs["value"]) == ("node.label.rack", "12")


@pytest.mark.parametrize("text", ["env", "=prod", "env=", "e nv=x", "env=\n", "é=x"])
def test_what_is_no_label_is_said(text: str) -> None:
    with pytest.raises(UsageError):
        node_label(text)


@pytest.mark.parametrize("where", ["", "@", "root@", "-oProxy=x", "-x@h", "a b", "h\u202e", "h\n"])
def test_what_is_no_address_is_said(where: str) -> None:
    with pytest.raises(UsageError):
        address(where, port=0, sudo=False)


@pytest.mark.parametrize("word", ["isolated", "cgroup", "none", "LEADER-ONLY", ""])
def test_containment_is_set_to_one_of_two_words(word: str) -> None:
    assert settles("leader-only") is Settles.LEADER_ONLY
    assert settles("auto") is Settles.AUTO
    with pytest.raises(UsageError) as caught:
        settles(word)

    assert caught.value.hint == "one of auto, leader-only"


def test_a_tier_is_one_of_three() -> None:
    assert tier("trusted") is Tier.TRUSTED
    with pytest.raises(UsageError, match="discovered, paired, trusted"):
        try:
            tier("root")
        except UsageError as failure:
            raise UsageError(failure.hint or "") from None


def listed(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "machines"
    file.write_text(text, encoding="utf-8")
    return file


def test_a_list_is_read_whole(tmp_path: Path) -> None:
    text = f"""\
# ours
web1 deploy@10.0.0.5 sudo=yes host_key={KEY} label.env=prod label.rack=7  # the first

web2\talias tier=trusted port=2222
here local
"""
    first, second, third = machine_list(listed(tmp_path, text))

    assert (first.name, first.address.user, first.address.host) == ("web1", "deploy", "10.0.0.5")
    assert (first.address.sudo, first.address.port, first.tier) == (True, 0, Tier.PAIRED)
    assert first.fingerprint == KEY
    assert [(one.id, one.attrs["value"]) for one in first.claims] == [
        ("node.label.env", "prod"),
        ("node.label.rack", "7"),
    ]
    assert (second.address.host, second.address.port, second.tier) == ("alias", 2222, Tier.TRUSTED)
    assert third.address.transport is TransportKind.LOCAL


@pytest.mark.parametrize(
    ("line", "says"),
    [
        pytest.param("web1", "no address", id="a name alone"),
        pytest.param("web1 tier=paired", "no address", id="a setting for an address"),
        pytest.param("Web1 h", "cannot be the name", id="no name of a node"),
        pytest.param("web1 a@", "not [USER@]HOST", id="no address"),
        pytest.param("web1 h colour=red", "not a setting", id="an unknown setting"),
        pytest.param("web1 h sudo", "not a setting", id="a setting without a value"),
        pytest.param("web1 h sudo=1", "neither yes nor no", id="a sudo that is neither"),
        pytest.param("web1 h tier=root", "not a tier", id="no tier"),
        pytest.param("web1 h port=65536", "not a port", id="no port"),
        pytest.param("web1 h port=0x16", "not a port", id="a port in another notation"),
        pytest.param("web1 h port=22 port=23", "given twice", id="a setting twice"),
        pytest.param("web1 h host_key=MD5:aa", "not a fingerprint", id="no fingerprint"),
        pytest.param("web1 h label.=x", "cannot be a label", id="a label without a name"),
        pytest.param("web0 h", "line 1 already", id="a name twice"),
    ],
)
def test_a_wrong_line_is_named(line: str, says: str, tmp_path: Path) -> None:
    file = listed(tmp_path, f"web0 h\n{line}\n")

    with pytest.raises(InvalidFile) as caught:
        machine_list(file)

    assert caught.value.message.startswith(f"{file}:2: ")
    assert says in caught.value.message


@pytest.mark.parametrize("content", [b"", b"# nobody\n", b"\xff\xfe\n"])
def test_a_file_that_lists_nobody_is_none(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "machines"
    file.write_bytes(content)

    with pytest.raises(InvalidFile):
        machine_list(file)


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match="cannot be read"):
        machine_list(tmp_path / "none")


@given(text=st.text(max_size=200))
def test_no_text_does_anything_but_be_read_or_refused(text: str) -> None:
    for read in (claim, node_label):
        try:
            found = read(text)
        except UsageError:
            continue
        assert found.id.isascii()
        assert all(str(value).isprintable() for value in found.attrs.values())
