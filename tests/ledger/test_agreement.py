"""Every row that an event tells of is held to it; what is not told may change."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import insert

from tests.ledger.made import AUTHOR, NOW_MS, opened, tamper
from tests.ledger.test_verify import rewritten
from wlctl.ledger import chain, decisions, instances, nodes, sayings, signers
from wlctl.ledger.schema import packages
from wlctl.ledger.store import Ledger
from wlctl.ledger.verify import Broken, Verified, verify
from wlctl.model.ids import InstanceId, NodeName, PackageId
from wlctl.model.instance import Desired, State
from wlctl.model.node import Address, Enforced, Liveness, Node, Settles, Tier, TransportKind
from wlctl.model.workload import Kind, WorkloadSpec

WEB = InstanceId("iaaaaaaaaaaaaaaa")
PACKAGE = PackageId("c" * 64)
ELM = Node(
    name=NodeName("elm"),
    address=Address(TransportKind.SSH, "elm.example", host_key="ssh-ed25519 AAAA"),
    tier=Tier.PAIRED,
    liveness=Liveness.ALIVE,
    cordoned=False,
    node_id="a" * 32,
    machine_id="b" * 32,
    boot_id="boot",
    failed_contacts=0,
    added_at_ms=NOW_MS,
    seen_at_ms=NOW_MS,
    facts=None,
)


@pytest.fixture
def told(ledger: Ledger, path: Path) -> dict[str, int]:
    """A ledger in which something happened to everything, closed; event to its number.

    A kind that comes more than once is numbered by its last; life steps by the state they reach.
    """
    with ledger.write(NOW_MS, AUTHOR) as tx:
        signers.add(tx, "alice", "ssh-ed25519 AAAA")
        nodes.add(tx, ELM)
        nodes.record_silence(tx, ELM.name, "connect-timeout")
        nodes.enforce(tx, ELM.name, Enforced(NOW_MS, "d" * 64, ("shop",)))
        nodes.unenforce(tx, ELM.name)
        sayings.say(tx, ELM.name, settles=Settles.LEADER_ONLY)
        row = {
            "id": PACKAGE,
            "name": "web",
            "version": "1",
            "manifest": "{}",
            "signatures": "[]",
            "admitted_at_ms": NOW_MS,
        }
        tx.conn.execute(insert(packages).values(row))
        decision = decisions.record(
            tx,
            b"{}",
            name="web",
            workload="web",
            package_id=PACKAGE,
            node=ELM.name,
            instance_id=WEB,
            counts={"eligible": 1},
            dry_run=False,
        )
        instances.reserve(
            tx,
            instance_id=WEB,
            name="web",
            order=instances.open_order(tx, name="web", package_id=PACKAGE, options={}),
            decision=decision,
            node=ELM.name,
            variant="default",
            package_id=PACKAGE,
            spec=WorkloadSpec(Kind.SERVICE, "web"),
            claims=(),
            desired=Desired.RUNNING,
        )
        way = (State.PLACED, State.FETCHING)
        instances.advance(tx, instances.get(tx, WEB), way, "it was free")
    with ledger.read() as tx:
        events = list(chain.events(tx))
    ledger.close()
    return {str(event.payload.get("to", event.kind)): event.seq for event in events}


def verdict(path: Path) -> Verified | Broken:
    with opened(path) as ledger:
        return verify(ledger)


def test_a_ledger_that_nobody_touched_agrees(told: dict[str, int], path: Path) -> None:
    assert isinstance(verdict(path), Verified)


@pytest.mark.parametrize(
    "statement",
    [
        pytest.param("UPDATE decisions SET document = NULL", id="a document that was pruned"),
        pytest.param("UPDATE nodes SET failed_contacts = 9", id="what no event tells of"),
        pytest.param("UPDATE instances SET desired = 'stopped'", id="a wish"),
    ],
)
def test_what_is_not_told_may_change(told: dict[str, int], path: Path, statement: str) -> None:
    tamper(path, statement)

    assert isinstance(verdict(path), Verified)


@pytest.mark.parametrize(
    ("statement", "event"),
    [
        pytest.param("UPDATE installation SET id = 'wother'", None, id="another installation"),
        pytest.param("UPDATE signers SET public_key = 'x'", "signer.add", id="another key"),
        pytest.param("DELETE FROM signers", "signer.add", id="a signer that is gone"),
        pytest.param(
            "INSERT INTO signers (name, public_key, added_at_ms) VALUES ('mallory', 'y', 0)",
            None,
            id="a signer from nowhere",
        ),
        pytest.param("UPDATE nodes SET host = 'evil'", "node.add", id="a node at another address"),
        pytest.param("UPDATE nodes SET host_key = 'x'", "node.add", id="with another host key"),
        pytest.param("UPDATE nodes SET tier = 'trusted'", "node.add", id="trusted by nobody"),
        pytest.param(
            "UPDATE nodes SET settles = 'auto'", "node.set", id="settled for what was not said"
        ),
        pytest.param("UPDATE nodes SET enforced = 1", "node.enforce", id="enforced by nobody"),
        pytest.param(
            "UPDATE nodes SET enforcement_sha256 = 'x'", "node.enforce", id="by other lists"
        ),
        pytest.param("UPDATE nodes SET liveness = 'alive'", "suspect", id="said to live"),
        pytest.param(
            "UPDATE decisions SET document = X'00'", "workload.place", id="a document that is none"
        ),
        pytest.param(
            "UPDATE decisions SET sha256 = 'x'", "workload.place", id="another document's hash"
        ),
        pytest.param("UPDATE decisions SET id = 'x'", "workload.place", id="another id"),
        pytest.param("DELETE FROM decisions", "workload.place", id="a decision that is gone"),
        pytest.param(
            "INSERT INTO decisions (id, seq, at_ms, workload, name, dry_run, sha256)"
            " VALUES ('x', 2, 0, '', '', 0, 'x')",
            "workload.place",
            id="a decision from nowhere",
        ),
        pytest.param("UPDATE instances SET state = 'running'", "fetching", id="another state"),
        pytest.param(
            "UPDATE life_events SET to_state = 'running' WHERE to_state = 'placed'",
            "placed",
            id="another step",
        ),
        pytest.param("UPDATE life_events SET reason = 'x'", "requested", id="another reason"),
        pytest.param(
            "DELETE FROM life_events WHERE to_state = 'placed'", "placed", id="a step that is gone"
        ),
        pytest.param("DELETE FROM life_events", "requested", id="a whole history that is gone"),
        pytest.param(
            "INSERT INTO life_events (instance_id, to_state, at_ms, reason, seq)"
            f" VALUES ('{WEB}', 'b', 0, '', 1)",
            "requested",
            id="a step from nowhere",
        ),
    ],
)
def test_what_is_told_may_not(
    told: dict[str, int], path: Path, statement: str, event: str | None
) -> None:
    tamper(path, statement)

    found = verdict(path)

    assert isinstance(found, Broken)
    assert found.seq == (0 if event is None else told[event])


def test_a_tail_that_was_cut_is_missed_by_the_rows_it_told_of(
    told: dict[str, int], path: Path
) -> None:
    tamper(path, f"DELETE FROM chain WHERE seq >= {told['placed']}")

    found = verdict(path)

    assert isinstance(found, Broken)
    assert found.seq == told["placed"]


@pytest.mark.parametrize(
    "forge",
    [
        pytest.param(lambda payload: payload.pop("node"), id="without what it is about"),
        pytest.param(lambda payload: payload.update(node=[]), id="with a list in its place"),
    ],
)
def test_a_payload_that_was_forged_under_all_hashes_is_named(
    told: dict[str, int], path: Path, forge: Callable[[dict[str, Any]], None]
) -> None:
    rewritten(path, told["node.add"], forge)

    assert verdict(path) == Broken(
        told["node.add"], "its payload is not what this kind of event tells"
    )


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param("[", id="no JSON"),
        pytest.param("[]", id="no object"),
        pytest.param("{TEXT} ", id="a space too many"),
    ],
)
def test_a_payload_that_was_never_written_is_named(
    told: dict[str, int], path: Path, payload: str
) -> None:
    seq = told["fetching"]
    with opened(path) as ledger, ledger.read() as tx:
        event = next(chain.events(tx, after_seq=seq - 1))
    text = payload.replace("{TEXT}", chain.canonical(event.payload).decode())
    content = chain.hashed_bytes(
        actor=json.dumps(event.actor).encode(),
        at=event.at.encode(),
        kind=event.kind.encode(),
        payload=text.encode(),
        prev_hash=event.prev_hash.encode(),
        seq=seq,
    )
    digest = chain.sha256(content)
    tamper(path, f"UPDATE chain SET payload = '{text}', hash = '{digest}' WHERE seq = {seq}")

    found = verdict(path)

    assert isinstance(found, Broken)
    assert found.seq == seq
