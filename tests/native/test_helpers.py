"""Threads that help: they go when nothing comes, survive a fork, and several callers may come at once."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import threading
import time
from typing import Any

import numpy as np
import pytest

from tests.limits import HANG
from tests.native.products import multiply, random
from webgrad.native import helpers
from webgrad.native.jobs import CLOCK, REST, YIELD
from webgrad.runtime.threads import cores

X, WEIGHTS = random((1, 1, 1024)), random((1, 1024, 1024))


def product() -> Any:
    return multiply(X, WEIGHTS, form="thin", processor="SSE2", threads=4)


def test_helpers_come_and_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(helpers, "_slots", [])
    monkeypatch.setattr(helpers, "cores", lambda: 3)
    want = product()
    slot = helpers._slots[0]
    for _ in range(200):
        np.testing.assert_array_equal(product(), want)
    end = time.monotonic() + HANG
    while slot.watching and time.monotonic() < end:
        time.sleep(0.01)
    assert not slot.watching
    assert not slot.memory[:YIELD].view(np.int64)[[0, 8]].any()  # closed, and nobody inside
    np.testing.assert_array_equal(product(), want)


def test_callers_at_once() -> None:
    want = product()
    wrong: list[int] = []

    def work() -> None:
        wrong.extend(1 for _ in range(100) if not np.array_equal(product(), want))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(HANG)
    assert not wrong
    assert not any(each.is_alive() for each in threads)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_has_a_slot_of_its_own() -> None:
    want = product()
    with helpers.Helpers(0):  # as if another thread of the parent were at work
        child = os.fork()
        if child == 0:
            os._exit(0 if np.array_equal(product(), want) and len(helpers._slots) == 1 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_program_ends_while_helpers_watch() -> None:
    program = "from tests.native.test_helpers import product; [product() for _ in range(20)]; print('end')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=HANG)
    assert (done.stdout.strip(), done.stderr, done.returncode) == ("end", "", 0)


def test_while_helpers_rest_work_is_done_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    want = product()
    monkeypatch.setattr(helpers, "_slots", [])
    monkeypatch.setattr(helpers, "cores", lambda: 3)
    product()
    slot = helpers._slots[0]
    if slot.words[CLOCK // 8] == 0:
        pytest.skip("no clock here that native code can read")
    slot.words[REST // 8] = time.clock_gettime_ns(time.CLOCK_MONOTONIC) + int(2e9 * HANG)
    assert slot.is_resting()
    with helpers.Helpers(1 << 30) as address:
        assert address == 0
    monkeypatch.setattr(helpers._Slot, "is_resting", lambda self: False)  # native code looks for itself
    np.testing.assert_array_equal(product(), want)
    slot.words[REST // 8] = 1
    with helpers.Helpers(0) as address:
        assert address == slot.address


def test_without_a_clock_helpers_never_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    want = product()
    monkeypatch.setattr(helpers, "_slots", [])
    monkeypatch.setattr(helpers, "_clock", lambda: (0, 0))
    monkeypatch.setattr(helpers, "cores", lambda: 3)
    for _ in range(50):
        np.testing.assert_array_equal(product(), want)
    assert helpers._slots[0].words[REST // 8] == 0


BUSY = """
import os, sys
os.sched_setaffinity(0, {int(sys.argv[1])})
print("busy", flush=True)
while os.getppid() == int(sys.argv[2]): pass
"""


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="threads cannot be pinned here")
def test_a_busy_neighbour_makes_helped_work_no_slower() -> None:
    """A helper that lost its core was waited for; one that looked for work took the core of who had it."""
    if cores() < 2:
        pytest.skip("one core: there are no helpers")
    product()
    slot = helpers._slots[0]
    places = sorted(os.sched_getaffinity(0))[1:]
    programs = [[sys.executable, "-c", BUSY, str(each), str(os.getpid())] for each in places]
    neighbours = [subprocess.Popen(each, stdout=subprocess.PIPE, text=True) for each in programs]
    try:
        for each in neighbours:
            assert each.stdout is not None
            assert each.stdout.readline() == "busy\n"
        ratios: list[float] = []
        while not ratios or (min(ratios) > 1.15 and len(ratios) < 10):
            ratios.append(_helped_to_alone(slot))
        assert min(ratios) <= 1.15, ratios
    finally:
        slot.helpers = cores() - 1
        for each in neighbours:
            each.kill()
            each.communicate()


def _helped_to_alone(slot: Any) -> float:
    """How many times longer many products take with helpers than without, in turns."""
    times: dict[int, list[float]] = {0: [], cores() - 1: []}
    for _ in range(6):
        for slot.helpers, found in times.items():
            start = time.perf_counter()
            for _ in range(400):
                product()
            found.append(time.perf_counter() - start)
    alone, helped = (statistics.median(each) for each in times.values())
    return helped / alone
