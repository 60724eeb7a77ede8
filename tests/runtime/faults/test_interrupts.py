"""Signals at every place where Python can take them: nothing torn, hung, lost, or done twice."""

from __future__ import annotations

import asyncio
import os
import signal
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import webgrad.runtime.queue
from tests.limits import HANG
from tests.runtime.faults.harness import check_books, sane
from tests.runtime.helpers import Bench, bench
from webgrad.runtime.context import Event
from webgrad.runtime.shield import Shield, shield

pytestmark = [pytest.mark.gpu, pytest.mark.fault]

RUNTIME = str(Path(webgrad.runtime.queue.__file__).parent)
VALUES = np.arange(300, dtype=np.float32)


class Interrupt:
    """Sends a signal to this process at the n-th entry to, or call out of, the runtime's functions."""

    def __init__(self, at: int, number: int) -> None:
        self.at = at
        self.number = number
        self.seen = 0

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        if event in ("call", "c_return") and frame.f_code.co_filename.startswith(RUNTIME):
            self.seen += 1
            if self.seen == self.at:
                signal.raise_signal(self.number)


class TimesUp(TimeoutError):
    """What a handler of SIGALRM usually raises: an OSError."""


@contextmanager
def raising(number: int, error: type[BaseException]) -> Iterator[list[int]]:
    """Have a signal's handler raise; gives the calls of it."""
    calls: list[int] = []

    def handle(number: int, frame: FrameType | None) -> None:
        calls.append(number)
        raise error

    before = signal.signal(number, handle)
    try:
        yield calls
    finally:
        signal.signal(number, before)


SIGNALS: dict[str, tuple[int, type[BaseException]]] = {"SIGINT": (signal.SIGINT, KeyboardInterrupt)}
if os.name != "nt":
    SIGNALS["SIGALRM"] = signal.SIGALRM, TimesUp


def interrupted(at: int, run: Callable[[], Any], name: str = "SIGINT") -> bool:
    """Run with a signal at the n-th place; whether that place was reached."""
    number, error = SIGNALS[name]
    interrupt = Interrupt(at, number)
    with raising(number, error):
        try:
            sys.setprofile(interrupt)
            try:
                run()
            finally:
                sys.setprofile(None)
        except error:
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


@pytest.mark.parametrize("name", SIGNALS)
def test_an_interrupt_anywhere_tears_nothing(name: str) -> None:
    private = bench()
    work(private)
    at = 1
    while interrupted(at, lambda: work(private), name):
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


@pytest.mark.parametrize("name", SIGNALS)
def test_an_interrupt_while_a_device_is_opened(name: str) -> None:
    opened: list[Bench] = []
    at = 1
    while interrupted(at, lambda: opened.append(bench()), name):
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
    private.spin(y, 10_000_000)
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


@pytest.mark.skipif(os.name == "nt", reason="Windows has no timers that send signals")
def test_real_alarms_at_random_times() -> None:
    """Each is raised, for the work goes on until it is."""
    private = bench()
    random = np.random.default_rng(7)
    work(private)

    def until_struck() -> None:
        signal.setitimer(signal.ITIMER_REAL, float(random.uniform(50e-6, 3e-3)))
        while True:
            work(private)
            assert not calls[count:], "it was swallowed"

    with raising(signal.SIGALRM, TimesUp) as calls:
        for count in range(200):
            with pytest.raises(TimesUp):
                until_struck()
            assert len(calls) == count + 1
            check_books(private)
    sane(private)


def test_nothing_written_in_python_runs_where_an_exception_would_be_lost() -> None:
    """When a buffer is dropped, when the driver calls back, and when a device goes."""
    private = bench()
    work(private)
    y = private.scale(private.upload(VALUES), 2)
    event = private.device.flush()
    assert event is not None
    native = private.queue.context.native
    answers: list[int] = []
    size, staged = private.queue.context.staging.take(4)
    native.map_read(staged, 4, answers)
    gone = bench()
    called: list[str] = []

    def note(frame: FrameType, what: str, _: object) -> None:
        if what == "call":
            called.append(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        del y
        while not (answers and event.finished):
            native.poll()
        del gone
    finally:
        sys.setprofile(None)
    assert answers == [1]
    assert set(called) <= {"poll", "finished", "completed"}
    native.unmap(staged)
    private.queue.context.staging.give(size, staged)


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


@contextmanager
def handlers(*numbers: int) -> Iterator[list[int]]:
    """Have these signals raise an error with their number; gives the calls of the handlers."""
    calls: list[int] = []

    def handle(number: int, frame: FrameType | None) -> None:
        calls.append(number)
        raise Struck(number)

    before = {number: signal.signal(number, handle) for number in numbers}
    try:
        yield calls
        assert all(signal.getsignal(number) is handle for number in numbers)
    finally:
        for number, each in before.items():
            signal.signal(number, each)


class Struck(Exception):
    """A handler was called."""


@pytest.mark.skipif(os.name == "nt", reason="Windows has few signals")
@pytest.mark.parametrize("name", ["SIGALRM", "SIGTERM", "SIGUSR1", "SIGINT", "SIGRTMIN"])
def test_the_shield_puts_off_every_signal(name: str) -> None:
    number = getattr(signal, name)
    own, reached = Shield(), []

    def inside() -> None:
        with own:
            os.kill(os.getpid(), number)
            reached.append("the end")

    with handlers(number) as calls:
        for count in range(1, 4):
            with pytest.raises(Struck):
                inside()
            assert (len(reached), calls) == (count, [number] * count)


@pytest.mark.skipif(os.name == "nt", reason="Windows has few signals")
def test_two_signals_under_one_shield_are_both_raised() -> None:
    own, raised = Shield(), []

    def inside() -> None:
        with own:
            for number in (signal.SIGTERM, signal.SIGALRM, signal.SIGTERM):
                signal.raise_signal(number)

    with handlers(signal.SIGTERM, signal.SIGALRM) as calls:
        try:
            try:
                inside()
            except Struck as error:
                raised += [error]
                time.sleep(0)
        except Struck as error:
            raised += [error]
    assert sorted(calls) == [signal.SIGALRM, signal.SIGTERM]
    assert [each.args for each in raised] == [(number,) for number in calls]


@pytest.mark.skipif(os.name == "nt", reason="Windows has few signals")
def test_a_signal_at_every_step_of_the_shield_is_raised_once() -> None:
    own = Shield()
    code = {getattr(Shield, name).__code__ for name in vars(Shield) if callable(getattr(Shield, name))}

    def shielded() -> None:
        with own, own:
            pass

    with handlers(signal.SIGUSR1, signal.SIGUSR2) as calls:
        at, reached = 0, True
        while reached:
            at, seen = at + 1, 0

            def strike(frame: FrameType, event: str, _: object, at: int = at) -> None:
                nonlocal seen
                if frame.f_code in code and event in ("call", "c_call", "c_return"):
                    seen += 1
                    if seen == at:
                        os.kill(os.getpid(), signal.SIGUSR1)

            try:
                sys.setprofile(strike)
                try:
                    shielded()
                finally:
                    sys.setprofile(None)
            except Struck:
                assert seen >= at
            else:
                assert seen < at, "it was swallowed"
            reached = seen >= at
            assert calls == [signal.SIGUSR1] * reached, f"at step {at}"
            calls.clear()
            with own:  # takes down what a raise may have left
                pass
        assert at > 20


@pytest.mark.skipif(os.name == "nt", reason="a loop there takes no signals")
def test_a_signal_reaches_a_handler_of_asyncio_once() -> None:
    calls: list[int] = []

    async def run() -> None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGUSR1, calls.append, signal.SIGUSR1)
        try:
            with shield:
                os.kill(os.getpid(), signal.SIGUSR1)
            for _ in range(5):
                await asyncio.sleep(0)
        finally:
            loop.remove_signal_handler(signal.SIGUSR1)

    asyncio.run(run())
    assert calls == [signal.SIGUSR1]


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

    def interrupted(event: Event) -> None:
        timer = threading.Timer(0.05, signal.raise_signal, (signal.SIGINT,))
        timer.start()
        event.wait(timeout=HANG)
        timer.join()

    heard = []
    for doublings in range(6):  # on a busy machine short work may be over before the signal
        private.spin(target, 20_000_000 << doublings)
        event = private.device.flush()
        assert event is not None
        with pytest.raises(KeyboardInterrupt):
            interrupted(event)
        heard.append(not event.done)
        event.wait()
        if heard[-1]:
            break
    assert heard[-1]
