"""Doing one thing for many nodes at once."""

import threading
import time

import pytest

from wlctl.flows import fanout

SLOW_S = 0.3


def test_every_item_is_worked_on_once() -> None:
    done = dict(fanout.each([str(number) for number in range(50)], int))

    assert done == {number: number for number in range(50)}


def test_nothing_to_do_is_nothing_done() -> None:
    assert list(fanout.each([], int)) == []


def test_no_more_than_the_width_are_at_work() -> None:
    at_work = 0
    most = 0
    lock = threading.Lock()

    def work(_item: int) -> None:
        nonlocal at_work, most
        with lock:
            at_work += 1
            most = max(most, at_work)
        time.sleep(0.005)
        with lock:
            at_work -= 1

    list(fanout.each(range(40), work, width=4, patience_s=60))

    assert most == 4


def test_the_slow_ones_keep_nobody_waiting() -> None:
    gate = threading.Event()

    def work(item: int) -> int:
        if item < 6:
            gate.wait(20)
        return item

    order = []
    for position, _ in fanout.each(range(30), work, width=3, patience_s=0.02):
        order.append(position)
        if len(order) == 24:
            gate.set()

    assert set(order[:24]) == set(range(6, 30))
    assert set(order) == set(range(30))


def test_the_slow_ones_are_bounded_too() -> None:
    gate = threading.Event()
    begun = []

    def work(item: int) -> None:
        begun.append(item)
        gate.wait(20)

    def watch() -> None:
        time.sleep(SLOW_S)
        counts.append(len(begun))
        gate.set()

    counts: list[int] = []
    watcher = threading.Thread(target=watch)
    watcher.start()
    list(fanout.each(range(20), work, width=2, width_max=5, patience_s=0.01))
    watcher.join()

    assert counts == [5]
    assert sorted(begun) == list(range(20))


def test_what_work_raises_ends_all() -> None:
    begun = []

    def work(item: int) -> None:
        begun.append(item)
        if item == 3:
            raise LookupError("a bug")
        time.sleep(0.01)

    with pytest.raises(LookupError, match="a bug"):
        list(fanout.each(range(1000), work, width=2))

    assert len(begun) < 20


def test_a_failure_that_is_returned_is_a_result() -> None:
    failure = ValueError("of one")

    assert list(fanout.each([1], lambda _: failure)) == [(0, failure)]


def test_nothing_more_is_begun_when_nobody_reads_on() -> None:
    begun: list[int] = []

    for _ in fanout.each(range(1000), begun.append, width=2):
        break
    so_far = len(begun)
    time.sleep(0.05)

    assert so_far < 20
    assert len(begun) <= so_far + 2
