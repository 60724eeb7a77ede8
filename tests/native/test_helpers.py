"""Threads that help: they go when nothing comes, survive a fork, and several callers may come at once."""

from __future__ import annotations

import os
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
from webgrad.native.jobs import YIELD

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
