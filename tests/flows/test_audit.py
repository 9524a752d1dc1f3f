from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest

from tests.flows.setting import Setting, TestRuntime
from wlctl.errors import AmbiguousName, InvalidFile, UnknownName, UntrustedSigner, UsageError
from wlctl.flows import audit, init
from wlctl.flows.audit import Wanted
from wlctl.ledger import chain
from wlctl.ledger.verify import Broken, Verified
from wlctl.model.event import Event

ALL = Wanted()


def seqs(rt: TestRuntime, wanted: Wanted = ALL, *, tail: int | None = None) -> list[int]:
    return [event.seq for event in audit.log(rt, wanted, tail=tail, follow=False)]


def note(rt: TestRuntime, text: str) -> Event:
    with rt.ledger.write(rt.now_ms(), rt.author) as tx:
        return chain.append(tx, "slot.tick", {"note": text})


def test_a_log_begins_with_the_oldest_or_with_the_tail(setting: Setting) -> None:
    with setting.runtime() as rt:
        everything = seqs(rt)

        assert everything == list(range(1, len(everything) + 1))
        assert seqs(rt, tail=2) == everything[-2:]
        assert seqs(rt, tail=0) == []
        assert seqs(rt, tail=999) == everything


def test_a_log_is_read_a_batch_at_a_time(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "BATCH", 2)
    with setting.runtime() as rt:
        for number in range(7):
            note(rt, str(number))

        assert seqs(rt, Wanted(kind="slot.*")) == seqs(rt)[-7:]


def test_a_followed_log_begins_with_the_tail_and_goes_on(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "POLL_S", 0.01)
    with setting.runtime() as rt, setting.runtime() as other:
        before = note(rt, "before")
        followed = audit.log(rt, Wanted(kind="slot.*"), tail=1, follow=True)
        assert next(followed) == before
        after = [note(other, "one"), note(other, "two")]

        assert list(islice(followed, 2)) == after


class TestAboutAnInstance:
    @pytest.fixture
    def placed(self, setting: Setting) -> Setting:
        setting.add_node("elm")
        setting.place(name="web")
        return setting

    def test_it_is_found_by_name_id_or_beginning_of_one(self, placed: Setting) -> None:
        one = placed.instance("web")
        with placed.runtime() as rt:
            by_name = seqs(rt, Wanted(instance="web"))

            assert by_name
            assert seqs(rt, Wanted(instance=one.id)) == by_name
            assert seqs(rt, Wanted(instance=one.id[:5])) == by_name

    def test_it_is_found_when_it_is_gone(self, placed: Setting) -> None:
        placed.unload("web")

        with placed.runtime() as rt:
            kinds = {e.kind for e in audit.log(rt, Wanted(instance="web"), tail=None, follow=False)}
        assert "workload.unload" in kinds

    def test_one_that_never_was_is_unknown(self, placed: Setting) -> None:
        with placed.runtime() as rt, pytest.raises(UnknownName):
            seqs(rt, Wanted(instance="wep"))

    def test_a_beginning_that_fits_two_is_ambiguous(self, placed: Setting) -> None:
        placed.place(name="another")

        with placed.runtime() as rt, pytest.raises(AmbiguousName):
            seqs(rt, Wanted(instance="i"))


def test_a_node_that_never_was_is_unknown(setting: Setting) -> None:
    setting.add_node("elm")

    with setting.runtime() as rt:
        assert seqs(rt, Wanted(node="elm"))
        with pytest.raises(UnknownName):
            seqs(rt, Wanted(node="helm"))


@pytest.mark.parametrize("kind", ["", "*", "node", "node.", "nodes.*", "workload.places"])
def test_a_kind_that_does_not_exist_is_a_mistake_and_not_an_empty_list(
    setting: Setting, kind: str
) -> None:
    with setting.runtime() as rt, pytest.raises(UsageError, match="there is no kind"):
        seqs(rt, Wanted(kind=kind))


class TestACheckpoint:
    @pytest.fixture
    def kept(self, setting: Setting, tmp_path: Path) -> Path:
        path = tmp_path / "checkpoint"
        with setting.runtime() as rt:
            path.write_text(audit.checkpoint(rt).note, encoding="utf-8")
        return path

    def verdict(self, setting: Setting, kept: Path) -> Verified | Broken:
        with setting.runtime() as rt:
            return audit.verify(rt, against=kept, progress=lambda _seq: None)

    def test_holds_the_chain_that_it_was_made_of(self, setting: Setting, kept: Path) -> None:
        setting.add_node("elm")

        assert isinstance(self.verdict(setting, kept), Verified)

    def test_holds_it_after_the_key_was_made_anew(self, setting: Setting, kept: Path) -> None:
        with setting.runtime() as rt:
            for file in rt.home.keys.glob("checkpoint*"):
                file.unlink()
            init.init(rt)

        assert isinstance(self.verdict(setting, kept), Verified)

    def test_holds_a_copy_of_the_ledger_that_has_no_keys(
        self, setting: Setting, kept: Path
    ) -> None:
        with setting.runtime() as rt:
            rt.home.checkpoint_key.unlink()

        assert isinstance(self.verdict(setting, kept), Verified)

    def test_of_another_installation_is_signed_by_nobody_known(
        self, setting: Setting, kept: Path, tmp_path: Path
    ) -> None:
        other = Setting(tmp_path / "other", setting.world, setting.clock)
        other.home.mkdir()
        with other.runtime() as rt:
            init.init(rt)

        with pytest.raises(UntrustedSigner):
            self.verdict(other, kept)

    @pytest.mark.parametrize(
        "change",
        [
            pytest.param(lambda kept: kept.unlink(), id="nothing there"),
            pytest.param(lambda kept: kept.write_bytes(b"\xff"), id="no text"),
            pytest.param(lambda kept: kept.write_bytes(b""), id="nothing in it"),
            pytest.param(lambda kept: kept.write_bytes(b"x\n" * 99_999), id="far too long"),
            pytest.param(lambda kept: (kept.unlink(), kept.mkdir()), id="a directory"),
        ],
    )
    def test_that_is_none_is_refused(
        self, setting: Setting, kept: Path, change: Callable[[Path], object]
    ) -> None:
        change(kept)

        with pytest.raises(InvalidFile):
            self.verdict(setting, kept)
