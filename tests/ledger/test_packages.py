"""Packages as the ledger remembers them: once each, with the newest signatures."""

from dataclasses import replace

from tests.ledger.made import AUTHOR, NOW_MS
from wlctl.ledger import packages
from wlctl.ledger.store import Ledger
from wlctl.model.ids import PackageId
from wlctl.model.package import Manifest
from wlctl.package import workload

DESCRIBED = workload.parse('kind = "job"\nname = "web"\nversion = "1"\n[run]\ncommand = ["true"]\n')


def stated(id_: str, *, name: str = "web", version: str = "1") -> Manifest:
    described = replace(DESCRIBED, name=name, version=version)
    return Manifest(PackageId(id_), f'{{"{id_}"}}', described, ())


def put(ledger: Ledger, manifest: Manifest, *signatures: str, now_ms: int = NOW_MS) -> None:
    with ledger.write(now_ms, AUTHOR) as tx:
        packages.put(tx, manifest, signatures)


def test_a_package_is_remembered(ledger: Ledger) -> None:
    put(ledger, stated("aa11"), "one", "two")

    with ledger.read() as tx:
        [package] = packages.ls(tx)
    assert package == packages.StoredPackage(
        PackageId("aa11"), "web", "1", '{"aa11"}', ("one", "two"), NOW_MS
    )


def test_a_known_package_gets_the_newest_signatures(ledger: Ledger) -> None:
    put(ledger, stated("aa11"), "one")
    put(ledger, stated("aa11"), "two", now_ms=NOW_MS + 1)

    with ledger.read() as tx:
        [package] = packages.ls(tx)
    assert package.signatures == ("two",)
    assert package.admitted_at_ms == NOW_MS


def test_packages_are_found_by_version_and_by_the_beginning_of_their_id(ledger: Ledger) -> None:
    put(ledger, stated("ab11"), "s")
    put(ledger, stated("ab22"), "s")
    put(ledger, stated("cd33", version="2"), "s")
    put(ledger, stated("ef44", name="db"), "s")

    with ledger.read() as tx:
        assert [it.id for it in packages.of_version(tx, "web", "1")] == ["ab11", "ab22"]
        assert [it.id for it in packages.of_version(tx, "web", "2")] == ["cd33"]
        assert packages.of_version(tx, "web", "3") == []
        assert [it.id for it in packages.beginning_with(tx, "ab")] == ["ab11", "ab22"]
        assert [it.id for it in packages.beginning_with(tx, "ab2")] == ["ab22"]
        assert packages.beginning_with(tx, "%") == []
        assert packages.beginning_with(tx, "ab_1") == []
        assert [it.name for it in packages.ls(tx)] == ["db", "web", "web", "web"]
