"""What is said of an enforced node's lists, also when nobody can say what they were."""

from collections.abc import Callable

import pytest

from tests.flows.policed import tamper
from tests.flows.setting import Setting
from wlctl.flows import enforce, node_view, revocations, signers
from wlctl.flows.runtime import Runtime
from wlctl.ledger import nodes
from wlctl.model.node import Enforced
from wlctl.model.revocation import RevocationKind


@pytest.fixture
def enforced(setting: Setting) -> Setting:
    """A node that goes by what would be put there now."""
    setting.add_node("elm")
    with setting.runtime() as rt:
        with rt.ledger.read() as tx:
            wanted = enforce.to_put(tx, nodes.get(tx, "elm"), None, rt.now_ms())
        with rt.ledger.write(rt.now_ms(), rt.author) as tx:
            name = nodes.get(tx, "elm").name
            nodes.enforce(tx, name, Enforced(at_ms=tx.now_ms, sha256=wanted.sha256))
    return setting


def is_current(setting: Setting) -> bool | None:
    with setting.runtime() as rt:
        return node_view.report(rt, "elm").lists_are_current


def test_what_was_put_there_is_current(enforced: Setting) -> None:
    assert is_current(enforced)


def test_a_key_that_was_revoked_since_makes_it_old(enforced: Setting) -> None:
    with enforced.runtime() as rt:
        revocations.revoke(rt, RevocationKind.KEY, "me", "leaked", dry_run=False)

    assert is_current(enforced) is False


def test_where_what_is_revoked_cannot_be_read_it_is_shown_as_old(enforced: Setting) -> None:
    with enforced.runtime() as rt:
        revocations.revoke(rt, RevocationKind.PACKAGE, "a" * 64, "leaked", dry_run=False)
    tamper(enforced, "DELETE FROM revocations")

    assert is_current(enforced) is False


@pytest.mark.parametrize(
    ("change", "named"),
    [
        pytest.param(lambda rt: None, (), id="nothing has changed"),
        pytest.param(
            lambda rt: signers.rm(rt, "me"), ("elm",), id="a signer is accepted no longer"
        ),
        pytest.param(
            lambda rt: revocations.revoke(rt, RevocationKind.KEY, "me", "leaked"),
            ("elm",),
            id="a key was revoked",
        ),
    ],
)
def test_the_enforced_nodes_that_still_go_by_older_lists_are_named(
    enforced: Setting, change: Callable[[Runtime], object], named: tuple[str, ...]
) -> None:
    enforced.add_node("oak")
    with enforced.runtime() as rt:
        change(rt)
        assert enforce.outdated(rt) == named
