"""Memory: aligned, used again once nothing refers to it, never lent twice, bounded."""

from __future__ import annotations

import gc
import math
import mmap
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from webgrad.runtime import host_buffers as memory
from webgrad.runtime.host_buffers import (
    ALIGNMENT,
    IDLE,
    LARGE,
    SMALL,
    aligned,
    empty,
    is_own,
    owner,
    rewrapped,
)
from webgrad.runtime.stats import host_memory

FLOAT = np.dtype(np.float32)


@pytest.fixture(autouse=True)
def _nothing_waits() -> Iterator[None]:
    memory.clear()
    yield
    memory.clear()


def waiting() -> list[int]:
    """The bytes of each block that waits to be lent."""
    memory._settle()
    return [each.nbytes for each in memory._free]


def address(array: np.ndarray[Any, Any]) -> int:
    return int(array.ctypes.data)


@pytest.mark.parametrize("elements", [0, 1, SMALL // 4 - 1, SMALL // 4, LARGE // 4, LARGE // 4 + 77])
def test_arrays_of_every_size(elements: int) -> None:
    array = empty((elements,), FLOAT)
    assert array.shape == (elements,)
    assert array.dtype == FLOAT
    assert array.flags.writeable
    array[...] = 3
    assert array.sum() == 3 * elements
    if array.nbytes >= SMALL:
        assert address(array) % ALIGNMENT == 0


def test_shapes_and_dtypes() -> None:
    assert empty((), FLOAT).shape == ()
    assert empty((3, 0, 2), FLOAT).size == 0
    assert address(aligned((3, 5), np.dtype(np.float64))) % ALIGNMENT == 0
    assert empty((1 << 10, 1 << 9), np.dtype(np.float64)).dtype == np.float64


def test_memory_is_lent_again_only_when_nothing_refers_to_it() -> None:
    first = empty((LARGE,), FLOAT)
    place = address(first)
    part = first.reshape(2, -1)[1, 5:]  # a view of a view
    del first
    gc.collect()
    other = empty((LARGE,), FLOAT)
    assert not np.shares_memory(other, part)
    part[...] = 7
    other[...] = 0
    assert (part == 7).all()
    del part
    assert address(empty((LARGE,), FLOAT)) == place


def test_what_waits_for_long_goes_back_to_the_system() -> None:
    old, used = empty((4 * LARGE,), FLOAT), empty((LARGE,), FLOAT)
    del old, used
    for _ in range(IDLE):
        memory.tick()
        empty((LARGE,), FLOAT)  # which comes back at once
    assert host_memory.pooled == 20 * LARGE
    memory.tick()
    assert host_memory.pooled == 4 * LARGE


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="it says how much memory there is")
def test_what_is_let_go_is_the_process_no_more() -> None:
    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE

    blocks = [empty((2 * LARGE,), np.dtype(np.uint8)) for _ in range(64)]
    for each in blocks:
        each[...] = 1
    full, kept = resident(), blocks[-1]
    del blocks, each
    memory.clear()
    assert resident() < full - 100 * LARGE
    assert kept.all()


def test_a_block_of_another_size_is_not_taken() -> None:
    first = empty((8 * LARGE,), FLOAT)
    place = address(first)
    del first
    small = empty((LARGE,), FLOAT)
    assert len(waiting()) == 1
    nearly = empty((7 * LARGE,), FLOAT)
    assert address(nearly) == place
    assert not waiting()
    del small, nearly
    assert len(waiting()) == 2


def test_what_waits_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "LIMIT", 8 * LARGE)
    monkeypatch.setattr(memory, "_keepers", {os.getpid()})  # no thread beside
    arrays = [empty((LARGE,), np.dtype(np.uint8)) for _ in range(20)]
    arrays.clear()
    assert sum(waiting()) == 8 * LARGE
    huge = empty((9 * LARGE,), np.dtype(np.uint8))
    del huge
    assert sum(waiting()) <= 8 * LARGE


def test_what_waits_is_bounded_while_nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Any] = []
    monkeypatch.setattr(memory, "LIMIT", 8 * LARGE)
    monkeypatch.setattr(threading.Thread, "start", lambda thread: started.append(thread))
    arrays = [empty((LARGE,), np.dtype(np.uint8)) for _ in range(20)]
    [thread] = started
    monkeypatch.setattr(time, "sleep", lambda _: arrays.clear())
    thread.run()
    assert sum(each.nbytes for each in memory._free) == 8 * LARGE
    assert os.getpid() not in memory._keepers


def test_the_end_of_an_array_runs_no_python() -> None:
    """Where it did, the exception of a signal's handler would be swallowed there."""
    calls: list[str] = []
    array = empty((LARGE,), FLOAT)
    sys.setprofile(lambda frame, event, _: calls.append(f"{event} {frame.f_code.co_name}"))
    try:
        del array
    finally:
        sys.setprofile(None)
    assert not [each for each in calls if each.startswith("call ")]
    assert len(waiting()) == 1


def test_without_memory_what_waits_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    first = empty((LARGE,), FLOAT)
    del first
    assert waiting()
    real, failed = memory._mapped, []

    def scarce(nbytes: int) -> Any:
        if memory._free:
            failed.append(nbytes)
            raise MemoryError
        return real(nbytes)

    monkeypatch.setattr(memory, "_mapped", scarce)
    kept = empty((4 * LARGE,), FLOAT)
    assert kept.shape == (4 * LARGE,)
    assert failed
    assert not waiting()


def test_threads_never_share_memory() -> None:
    wrong: list[int] = []

    def work(number: int) -> None:
        for _ in range(100):
            mine = empty((LARGE,), np.dtype(np.uint8))
            mine[:: 1 << 12] = number
            if (mine[:: 1 << 12] != number).any():
                wrong.append(number)
            del mine

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong


def test_results_of_tensors_stay_what_they_were() -> None:
    x = wg.asarray(np.arange(LARGE, dtype=np.float32), device="cpu")
    kept = [(x + number).numpy() for number in range(4)]
    for _ in range(3):
        wg.eval(x * 2)
    for number, each in enumerate(kept):
        np.testing.assert_array_equal(each, np.arange(LARGE, dtype=np.float32) + number)


def test_a_view_of_all_becomes_an_array_of_its_own() -> None:
    for elements in (60, LARGE // 4):
        whole = empty((elements // 6, 6), FLOAT)
        whole[...] = 1
        flat = rewrapped(whole.reshape(-1))
        assert flat.shape == (whole.size,)
        assert address(flat) == address(whole)
        assert is_own(flat)
        assert not is_own(whole.reshape(-1))
        again: Any = flat
        for _ in range(2):  # no layers are added
            again = rewrapped(again.reshape(6, -1).reshape(-1, 3))
            assert address(again) == address(whole)
            assert is_own(again)
        del whole, flat
        gc.collect()
        assert again.sum() == elements - elements % 6
    array = np.ones((3, 4), np.float32)
    assert rewrapped(array) is array
    assert rewrapped(array.reshape(12).reshape(3, 4)) is array
    part = rewrapped(array[:2])
    assert address(part) != address(array)
    array.flags.writeable = False
    assert not is_own(array)


@pytest.mark.parametrize("shape", [(3, 3), (4, 4, 4), (2, 5, 5)], ids=str)
def test_a_view_keeps_the_order_of_its_elements(shape: tuple[int, ...]) -> None:
    """Its base may be of the same shape, but in Fortran's order."""
    for elements in (1, LARGE // 4):
        sides = (elements, *shape)
        whole = np.asfortranarray(np.arange(math.prod(sides), dtype=np.float32).reshape(sides))
        view = whole.transpose()
        assert view.flags.c_contiguous
        want = view.copy()
        found = rewrapped(view)
        np.testing.assert_array_equal(found, want)
        assert is_own(found)
        assert address(found) == address(whole)


def test_views_have_the_owner_of_their_memory() -> None:
    for nbytes in (SMALL // 2, SMALL, LARGE):
        whole = empty((nbytes // 4,), FLOAT)
        part = whole[3:9]
        assert owner(part)[0] is owner(whole)[0]
        assert nbytes <= owner(part)[1] <= nbytes + ALIGNMENT
        assert owner(empty((nbytes // 4,), FLOAT))[0] is not owner(whole)[0]
    text = b"12345678"
    assert owner(np.frombuffer(text, np.uint8)) == (text, 8, False)


def test_what_is_lent_and_what_waits_is_counted() -> None:
    lent, waits = host_memory.live, host_memory.pooled
    arrays = [empty((LARGE // 4,), FLOAT) for _ in range(3)]
    assert (host_memory.live, host_memory.pooled) == (lent + 3 * LARGE, waits)
    assert host_memory.peak >= host_memory.live
    arrays.pop()
    assert (host_memory.live, host_memory.pooled) == (lent + 2 * LARGE, waits + LARGE)
    arrays.append(empty((LARGE // 4,), FLOAT))
    assert (host_memory.live, host_memory.pooled) == (lent + 3 * LARGE, waits)
    arrays.clear()
    memory.clear()
    assert (host_memory.live, host_memory.pooled) == (lent, 0)


def test_a_view_of_a_transposed_square_is_not_its_base() -> None:
    base = np.asfortranarray(np.arange(9.0).reshape(3, 3))
    view = base.T
    assert view.base is base
    assert view.flags.c_contiguous
    found = rewrapped(view)
    np.testing.assert_array_equal(found, np.arange(9.0).reshape(3, 3).T)
    assert is_own(found)
