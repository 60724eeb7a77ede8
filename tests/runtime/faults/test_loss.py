"""A device lost at every native call: DeviceLostError, then a new device, with what was kept brought back."""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import threading
import time
from typing import Any

import numpy as np
import pytest

from tests.limits import HANG
from tests.runtime.faults.harness import LOSS_POINTS, check_books, fresh_kernel, lose_at, sane
from tests.runtime.helpers import Bench, Floats, bench, floats
from webgrad.errors import BufferError, DeviceLostError
from webgrad.runtime.buffers import Buffer
from webgrad.runtime.contents import start_read
from webgrad.runtime.native import native_object_counts

pytestmark = [pytest.mark.gpu, pytest.mark.fault]

ENCODINGS: list[dict[str, Any]] = [
    {"encoder": "fast", "immediates": True},
    {"encoder": "fast", "immediates": False},
    {"encoder": "plain", "immediates": True},
    {"encoder": "plain", "immediates": False},
]
VALUES = np.arange(300, dtype=np.float32)


@dataclasses.dataclass
class Before:
    """What is on the device before it is lost."""

    kept: Buffer
    plain: Buffer
    computed: Buffer
    overwritten: Buffer
    about_to_be: Buffer

    @classmethod
    def on(cls, bench: Bench) -> Before:
        plain = bench.upload(VALUES, "plain")
        overwritten = bench.upload(VALUES, "overwritten", keep=True)
        bench.scale_into(plain, overwritten, 7)
        before = cls(
            kept=bench.upload(VALUES, "kept", keep=True),
            plain=plain,
            computed=bench.scale(plain, 2, "computed"),
            overwritten=overwritten,
            about_to_be=bench.upload(VALUES, "about to be", keep=True),
        )
        bench.device.synchronize()
        return before


def disturbed(bench: Bench, before: Before) -> Floats:
    """Work that passes every point of LOSS_POINTS."""
    bench.scale_into(before.plain, before.about_to_be, 9)
    first, second = bench.device.allocate(1200, "first"), bench.device.allocate(20_000, "second")
    bench.upload(np.ones(4000))
    bench.device.dispatch(fresh_kernel(bench), [before.plain, first, before.kept, second], grid=(5, 1, 1))
    return bench.numbers(second)


def check_after(bench: Bench, before: Before) -> None:
    """On the new device: what was kept is back, everything else says by name that it is lost."""
    sane(bench)
    np.testing.assert_array_equal(bench.numbers(before.kept), VALUES)
    np.testing.assert_array_equal(bench.numbers(bench.scale(before.kept, 3)), 3 * VALUES)
    for name in ("plain", "computed", "overwritten"):
        lost = getattr(before, name)
        with pytest.raises(DeviceLostError, match=f"'{name}'.* lost"):
            bench.numbers(lost)
        with pytest.raises(DeviceLostError, match=f"'{name}'.* lost"):
            bench.scale(lost, 2)
    bench.queue.write(before.plain, VALUES + 1)
    np.testing.assert_array_equal(bench.numbers(before.plain), VALUES + 1)
    check_books(bench)


@pytest.mark.parametrize("settings", ENCODINGS, ids=["-".join(map(str, each.values())) for each in ENCODINGS])
@pytest.mark.parametrize("point", LOSS_POINTS)
def test_a_loss_at_any_point_is_a_device_lost_error(point: str, settings: dict[str, Any]) -> None:
    private = bench(**settings)
    before = Before.on(private)
    lose_at(private, point)
    with pytest.raises(DeviceLostError):
        disturbed(private, before)
    check_after(private, before)


@pytest.mark.parametrize("point", ["encode", "finish", "submit"])
def test_a_host_copy_older_than_the_dropped_commands_is_not_brought_back(point: str) -> None:
    private = bench()
    before = Before.on(private)
    lose_at(private, point)
    with pytest.raises(DeviceLostError):
        disturbed(private, before)
    with pytest.raises(DeviceLostError, match="'about to be'"):
        private.numbers(before.about_to_be)


@pytest.mark.parametrize("point", ["encode", "finish", "submit"])
def test_a_loss_in_a_replayed_queue(point: str) -> None:
    private = bench()
    kept = private.upload(VALUES, "kept", keep=True)
    for _ in range(3):
        np.testing.assert_array_equal(private.numbers(private.scale(kept, 2)), 2 * VALUES)
    assert private.stats["queues_replayed"] > 0
    lose_at(private, point)
    with pytest.raises(DeviceLostError):
        private.numbers(private.scale(kept, 2))
    for _ in range(3):
        np.testing.assert_array_equal(private.numbers(private.scale(kept, 2)), 2 * VALUES)
    check_books(private)


def test_a_loss_found_by_any_entry() -> None:
    def upload(private: Bench, kept: Buffer) -> None:
        private.upload(VALUES)

    def large_upload(private: Bench, kept: Buffer) -> None:
        private.device.upload(np.zeros(20 << 20, np.uint8))

    def write(private: Bench, kept: Buffer) -> None:
        private.queue.write(kept, VALUES)

    def compile_one(private: Bench, kept: Buffer) -> None:
        private.queue.compile(fresh_kernel(private))

    def flush(private: Bench, kept: Buffer) -> None:
        y = private.scale(kept, 2)
        private.device.flush()
        del y

    def synchronize(private: Bench, kept: Buffer) -> None:
        private.device.synchronize()

    def read(private: Bench, kept: Buffer) -> None:
        private.numbers(kept)

    def read_async(private: Bench, kept: Buffer) -> None:
        asyncio.run(private.device.read_async(kept))

    for entry in (upload, large_upload, write, compile_one, flush, synchronize, read, read_async):
        private = bench()
        kept = private.upload(VALUES, "kept", keep=True)
        private.numbers(kept)
        private.queue.context.native.destroy()
        with pytest.raises(DeviceLostError):
            entry(private, kept)
        if entry is not write:
            np.testing.assert_array_equal(private.numbers(kept), VALUES)
        sane(private)
        check_books(private)


def test_recording_goes_on_while_the_device_is_gone() -> None:
    private = bench()
    kept = private.upload(VALUES, "kept", keep=True)
    y = private.scale(kept, 2, "y")
    private.queue.context.native.destroy()
    z = private.scale(y, 2, "z")
    with pytest.raises(DeviceLostError):
        private.numbers(z)
    for lost, name in ((y, "y"), (z, "z")):
        with pytest.raises(DeviceLostError, match=f"'{name}' .*was to be computed"):
            private.numbers(lost)
    np.testing.assert_array_equal(private.numbers(private.scale(kept, 4)), 4 * VALUES)


def test_a_view_of_a_lost_buffer_names_the_whole() -> None:
    private = bench()
    whole = private.upload(np.arange(1024), "whole")
    part = private.queue.view(whole, 256, 256)
    private.queue.context.native.destroy()
    with pytest.raises(DeviceLostError):
        private.numbers(private.scale(part, 2))
    with pytest.raises(DeviceLostError, match="'whole'"):
        private.scale(part, 2)


def test_a_view_of_a_kept_buffer_comes_back() -> None:
    private = bench()
    whole = private.upload(np.arange(1024), "whole", keep=True)
    part = private.queue.view(whole, 256, 256)
    private.queue.context.native.destroy()
    with pytest.raises(DeviceLostError):
        private.numbers(whole)
    np.testing.assert_array_equal(private.numbers(private.scale(part, 2)), 2 * np.arange(64, 128))


def test_a_commands_part_written_through_a_view_is_lost_with_its_whole() -> None:
    private = bench()
    whole = private.upload(np.arange(1024), "whole", keep=True)
    part = private.queue.view(whole, 256, 256)
    private.scale_into(private.upload(np.ones(64)), part, 5)
    private.queue.context.native.destroy()
    with pytest.raises(DeviceLostError):
        private.device.flush()
    with pytest.raises(DeviceLostError, match="'whole'"):
        private.numbers(whole)


def test_events_and_reads_outlive_their_device() -> None:
    private = bench()
    y = private.upload([1.0])
    private.spin(y, 1000)
    event = private.device.flush()
    assert event is not None
    started = start_read(private.queue, y)
    assert started is not None
    private.queue.context.native.destroy()
    with pytest.raises(DeviceLostError):
        private.upload(VALUES)
    sane(private)
    assert event.lost
    assert event.wait(HANG)
    assert event.done
    with pytest.raises(DeviceLostError):
        started.wait()
    sane(private)


def test_a_cancelled_read_gives_its_buffer_back() -> None:
    private = bench()
    y = private.device.upload(np.zeros(1, np.uint32))
    private.give_up_a_read(y)
    private.device.synchronize()
    staging = private.queue.context.staging
    assert len(staging._abandoned) == 1
    assert private.device.read(y).size == 4
    assert not staging._abandoned
    assert sum(map(len, staging._free.values())) == 1, "the read took the buffer that was given back"


@pytest.mark.parametrize("immediates", [True, False])
def test_lost_devices_are_let_go(immediates: bool) -> None:
    private = bench(immediates=immediates)
    kept = private.upload(VALUES, "kept", keep=True)

    def lose() -> None:
        private.numbers(private.scale(kept, 2))
        private.queue.context.native.destroy()
        with pytest.raises(DeviceLostError):
            private.numbers(private.scale(kept, 2))
        private.numbers(private.scale(kept, 2))
        gc.collect()

    def counts() -> dict[str, int]:
        # wgpu-native keeps a record of each encoder that was lost before its end: not ours to let go.
        return {
            kind: count
            for kind, count in native_object_counts().items()
            if kind not in ("CommandBuffer", "total")
        }

    lose()
    before = counts()
    for _ in range(5):
        lose()
    assert counts() == before


def test_a_device_that_cannot_be_opened_again_is_tried_at_every_use(monkeypatch: pytest.MonkeyPatch) -> None:
    private = bench()
    kept = private.upload(VALUES, "kept", keep=True)
    private.queue.context.native.destroy()
    with pytest.raises(DeviceLostError):
        private.numbers(kept)
    reopen = private.queue.open_context

    def refuse() -> Any:
        raise DeviceLostError("still resetting")

    monkeypatch.setattr(private.queue, "open_context", refuse)
    for _ in range(2):
        with pytest.raises(DeviceLostError, match="still resetting"):
            private.numbers(kept)
    monkeypatch.setattr(private.queue, "open_context", reopen)
    np.testing.assert_array_equal(private.numbers(kept), VALUES)


def test_threads_get_a_right_result_or_the_loss() -> None:
    private = bench()
    kept = private.upload(VALUES, "kept", keep=True)
    right, lost = [0] * 6, [0] * 6
    wrong: list[BaseException | str] = []
    stop = threading.Event()

    def work(number: int) -> None:
        while not stop.is_set():
            try:
                own = private.upload(VALUES + number)
                y = private.add(private.scale(own, 2), kept)
                if not np.array_equal(private.numbers(y), 2 * (VALUES + number) + VALUES):
                    wrong.append(f"thread {number}")
                right[number] += 1
            except DeviceLostError:
                lost[number] += 1
            except BaseException as error:
                wrong.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    until = time.monotonic() + HANG
    losses = 0
    while (losses < 12 or not sum(lost)) and time.monotonic() < until:
        stop.wait(0.05)
        private.queue.context.native.destroy()
        losses += 1
    while not (all(right) or wrong) and time.monotonic() < until:
        stop.wait(0.05)
    stop.set()
    for thread in threads:
        thread.join(HANG)
        assert not thread.is_alive()
    assert not wrong
    assert all(right)
    assert sum(lost) > 0
    sane(private)
    check_books(private)


def test_never_written_is_no_loss() -> None:
    private = bench()
    empty = private.device.allocate(64, "empty")
    private.queue.context.native.destroy()
    with pytest.raises(DeviceLostError):
        private.upload(floats(1))
    with pytest.raises(BufferError, match=r"'empty'.*never written"):
        private.numbers(empty)
