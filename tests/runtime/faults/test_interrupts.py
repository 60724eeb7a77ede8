"""Ctrl-C at every place where Python can take it: nothing torn, nothing hung, nothing done twice."""

from __future__ import annotations

import os
import signal
import struct
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import webgrad.runtime.queue
from tests.runtime.faults.harness import check_books, sane
from tests.runtime.helpers import Bench, bench
from webgrad.runtime.shield import Shield, shield

pytestmark = [pytest.mark.gpu, pytest.mark.fault]

RUNTIME = str(Path(webgrad.runtime.queue.__file__).parent)
VALUES = np.arange(300, dtype=np.float32)


class Interrupt:
    """Sends SIGINT to this process at the n-th entry to, or call out of, the runtime's functions."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.seen = 0

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        # Python itself swallows what is raised in a finalizer.
        if (
            event in ("call", "c_return")
            and code.co_filename.startswith(RUNTIME)
            and code.co_name != "__del__"
        ):
            self.seen += 1
            if self.seen == self.at:
                signal.raise_signal(signal.SIGINT)


def interrupted(at: int, run: Callable[[], Any]) -> bool:
    """Run with an interrupt at the n-th place; whether that place was reached."""
    interrupt = Interrupt(at)
    try:
        sys.setprofile(interrupt)
        try:
            run()
        finally:
            sys.setprofile(None)
    except KeyboardInterrupt:
        pass
    else:
        assert interrupt.seen < at, "the interrupt was swallowed"
    return interrupt.seen >= at


def work(private: Bench) -> None:
    """Upload, record, cut, flush, read, drop."""
    x = private.upload(VALUES, "x", keep=True)
    large = private.device.allocate(100_000, "large")
    params = struct.pack("<If", 300, 3.0)
    private.device.dispatch(private.scale_pipeline, [x, large], params, (5, 1, 1))
    private.device.flush()
    y = private.add(private.scale(x, 2), x)
    x.free()
    np.testing.assert_array_equal(private.numbers(y), 3 * VALUES)
    del large
    private.device.synchronize()


def test_an_interrupt_anywhere_tears_nothing() -> None:
    private = bench()
    work(private)
    at = 1
    while interrupted(at, lambda: work(private)):
        check_books(private)
        if at % 10 == 1:
            sane(private)
        at += 1
    assert at > 300
    sane(private)
    private.device.flush()
    check_books(private)


def test_an_interrupted_command_runs_once_or_not_at_all() -> None:
    """The counter is read and written by each command: a second run would show."""
    private = bench()
    add_one = private.pipeline(
        "@group(0) @binding(0) var<storage, read_write> x: array<u32>;\n"
        "@compute @workgroup_size(1) fn add_one() { x[0] += 1u; }",
        "add one",
    )
    counter = private.device.upload(np.zeros(1, np.uint32))

    def count() -> int:
        return int(private.device.read(counter).view(np.uint32)[0])

    def step() -> None:
        private.device.dispatch(add_one, [counter])
        private.device.flush()

    step()
    before = count()
    at = 1
    while interrupted(at, step):
        now = count()
        assert now - before in (0, 1)
        before = now
        at += 1
    assert at > 50


def test_an_interrupt_while_a_device_is_opened() -> None:
    opened: list[Bench] = []
    at = 1
    while interrupted(at, lambda: opened.append(bench())):
        at += 23  # each turn opens a device
    assert opened
    sane(opened[-1])
    sane(bench())


@pytest.mark.parametrize("wait", ["read", "synchronize", "event"])
def test_an_interrupt_during_a_long_wait_is_raised_after_it(wait: str) -> None:
    private = bench()
    y = private.device.upload(np.zeros(1, np.uint32))
    private.spin(y, 1)
    private.device.synchronize()
    private.spin(y, 60_000_000)
    timer = threading.Timer(0.05, lambda: os.kill(os.getpid(), signal.SIGINT))

    def run() -> None:
        timer.start()
        if wait == "read":
            private.device.read(y)
        elif wait == "synchronize":
            private.device.synchronize()
        else:
            event = private.device.flush()
            assert event is not None
            event.wait()
        time.sleep(1)  # where the wait was shorter than the timer

    with pytest.raises(KeyboardInterrupt):
        run()
    timer.join()
    assert private.device.read(y).size == 4
    sane(private)
    check_books(private)


# One that strikes in a finalizer is swallowed by Python, which says so; the buffer is then never freed.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_real_interrupts_at_random_times() -> None:
    private = bench()
    random = np.random.default_rng(7)
    work(private)
    count = 0

    previous = signal.signal(signal.SIGALRM, lambda number, frame: signal.raise_signal(signal.SIGINT))
    try:
        until = time.monotonic() + 3
        while time.monotonic() < until:
            try:
                signal.setitimer(signal.ITIMER_REAL, float(random.uniform(50e-6, 3e-3)))
                for _ in range(20):  # not for ever: an interrupt in a finalizer is swallowed by Python
                    work(private)
            except KeyboardInterrupt:
                count += 1
            check_books(private)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    assert count > 100
    sane(private)


def test_the_lock_is_free_after_an_interrupt() -> None:
    private = bench()
    x = private.upload(VALUES)
    at = 1
    while interrupted(at, lambda: private.scale(x, 2)):
        at += 1
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(private.numbers(x)))
    thread.start()
    thread.join(10)
    np.testing.assert_array_equal(found[0], VALUES)


def test_the_shield_puts_off_and_nests() -> None:
    reached = []

    def interrupt_inside() -> None:
        with shield:
            with shield:
                signal.raise_signal(signal.SIGINT)
                reached.append("inner")
            reached.append("outer")

    with pytest.raises(KeyboardInterrupt):
        interrupt_inside()
    assert reached == ["inner", "outer"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_the_shield_calls_the_users_handler_and_leaves_others_alone() -> None:
    called: list[int] = []
    previous = signal.signal(signal.SIGINT, lambda number, frame: called.append(number))
    try:
        with shield:
            signal.raise_signal(signal.SIGINT)
            assert not called
        assert called == [signal.SIGINT]
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with shield:
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, previous)
    assert called == [signal.SIGINT]


def test_the_shield_does_nothing_in_another_thread() -> None:
    own = Shield()
    handlers: list[Any] = []

    def look() -> None:
        with own:
            handlers.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert handlers == [signal.default_int_handler]


def test_ctrl_c_is_heard_while_the_gpu_works() -> None:
    private = bench()
    target = private.device.allocate(4)
    private.spin(target, 1000)
    private.device.synchronize()
    private.spin(target, 500_000_000)  # a second
    event = private.device.flush()
    assert event is not None
    timer = threading.Timer(0.1, signal.raise_signal, (signal.SIGINT,))
    timer.start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        event.wait(timeout=20)
    assert time.monotonic() - began < 5
    event.wait()
