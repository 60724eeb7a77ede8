"""Sharing work: all of it is done once, errors arrive, and a forked child has threads of its own."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest

from tests.limits import HANG
from webgrad.runtime import threads
from webgrad.runtime.threads import Scratch, cores, share


def test_every_item_is_taken_once_by_several_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "cores", lambda: 3)
    monkeypatch.setattr(threads, "_pools", {})
    taken: list[int] = []
    workers: set[int] = set()
    several = threading.Event()

    def work(left: Iterator[int]) -> None:
        for each in left:
            workers.add(threading.get_ident())
            taken.append(each)
            if len(workers) > 1:
                several.set()
            several.wait(HANG)

    share(work, list(range(100)))
    assert sorted(taken) == list(range(100))
    assert 1 < len(workers) <= 3
    assert cores() >= 1


def test_one_item_needs_no_other_thread() -> None:
    workers: list[int] = []
    share(lambda left: workers.extend(threading.get_ident() for _ in left), [1])
    assert workers == [threading.get_ident()]


@pytest.mark.parametrize("where", ["caller", "helper"])
def test_errors_arrive_and_the_rest_is_dropped(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "cores", lambda: 2)
    monkeypatch.setattr(threads, "_pools", {})
    caller, failed = threading.get_ident(), threading.Event()
    taken: list[int] = []

    def work(left: Iterator[int]) -> None:
        for each in left:
            taken.append(each)
            if (threading.get_ident() == caller) == (where == "caller"):
                failed.set()
                raise ValueError("block")
            failed.wait(HANG)

    with pytest.raises(ValueError, match="block"):
        share(work, list(range(200)))
    assert where == "helper" or len(taken) < 200


def test_without_more_threads_the_caller_does_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the interpreter's end a pool takes no more tasks."""

    class Closed:
        def submit(self, *_: object) -> None:
            raise RuntimeError("cannot schedule new futures after interpreter shutdown")

    monkeypatch.setattr(threads, "_pools", {(os.getpid(), "cpu"): Closed()})
    monkeypatch.setattr(threads, "cores", lambda: 2)
    taken: list[int] = []
    share(taken.extend, [1, 2, 3])
    assert taken == [1, 2, 3]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_has_threads_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "cores", lambda: 2)
    total: list[int] = []
    share(total.extend, list(range(50)))
    child = os.fork()
    if child == 0:
        taken: list[int] = []

        def work(left: Iterator[int]) -> None:
            for each in left:
                taken.append(each)
                time.sleep(0.001)

        share(work, list(range(50)))
        os._exit(0 if sorted(taken) == list(range(50)) else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def test_scratch_is_used_again_and_is_a_threads_own() -> None:
    scratch = Scratch()
    dtype = np.dtype(np.float32)
    first = scratch.array(1, (4, 5), dtype, 80)
    again = scratch.array(1, (2, 3), np.dtype(np.int8), 6)
    assert np.shares_memory(first, again)
    assert not np.shares_memory(first, scratch.array(0, (4, 5), dtype, 80))
    assert not np.shares_memory(first, scratch.array(1, (99,), dtype, 396))  # grown
    others: list[bool] = []
    mine = scratch.array(1, (3,), dtype, 12)
    thread = threading.Thread(
        target=lambda: others.append(np.shares_memory(mine, scratch.array(1, (3,), dtype, 12)))
    )
    thread.start()
    thread.join()
    assert others == [False]
