"""Faults on purpose: a device lost at a chosen native call, memory that runs out at a chosen allocation.

Both wrap methods of one device's `NativeDevice` (or of its encoder), so that the loss is a real one, by
wgpuDeviceDestroy, and everything above the wrapped call is the shipped code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tests.runtime.helpers import Bench
from webgrad.errors import OutOfMemoryError
from webgrad.runtime.layer import DeviceLayer
from webgrad.runtime.queue import Queue

__all__ = ["LOSS_POINTS", "Memory", "check_books", "check_queue", "fresh_kernel", "lose_at", "sane"]

# Where a loss strikes: what it is called → (whose method, which, at which of its calls in `disturbed`).
LOSS_POINTS: dict[str, tuple[str, str, int]] = {
    "create (pool buffer)": ("native", "create_buffer", 1),
    "create (read-back buffer)": ("native", "create_buffer", 3),
    "write": ("native", "write", 1),
    "bind group layout": ("native", "create_group_layout", 1),
    "pipeline layout": ("native", "create_pipeline_layout", 1),
    "compile": ("native", "create_pipeline", 1),
    "bind group": ("native", "create_bind_group", 1),
    "begin": ("native", "begin", 1),
    "encode": ("encoder", "run", 1),
    "finish": ("native", "finish", 1),
    "submit": ("native", "submit", 1),
    "read, before map": ("native", "map_read", 1),
    "read, between map and poll": ("native", "poll", 2),
    "read, before the copy out": ("native", "copy_mapped", 1),
}


def wrap(target: Any, method: str, before: Callable[[int], None]) -> None:
    """Call `before(n)` ahead of the n-th call of a method of this one object."""
    original = getattr(target, method)
    calls = 0

    def wrapped(*arguments: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        before(calls)
        return original(*arguments, **options)

    setattr(target, method, wrapped)


def lose_at(bench: Bench, point: str) -> None:
    """Have the device lost at a point of LOSS_POINTS, once."""
    owner, method, at = LOSS_POINTS[point]
    context = bench.queue.context
    native = context.native

    def strike(call: int) -> None:
        if call == at:
            native.destroy()

    wrap(native if owner == "native" else context.encoder, method, strike)


def fresh_kernel(bench: Bench, number: int = 0) -> Any:
    """A kernel no test has compiled on this device, with a list of accesses nobody else has."""
    source = f"""
    @group(0) @binding(0) var<storage, read> a: array<f32>;
    @group(0) @binding(1) var<storage, read_write> b: array<f32>;
    @group(0) @binding(2) var<storage, read> c: array<f32>;
    @group(0) @binding(3) var<storage, read_write> d: array<f32>;
    @compute @workgroup_size(64)
    fn both(@builtin(global_invocation_id) id: vec3<u32>) {{
        b[id.x] = a[id.x] + {number}.0;
        d[id.x] = c[id.x] * 2.0;
    }}
    """
    return bench.pipeline(source, f"both {number}", checked=True)


class Memory:
    """Native buffers that cannot be had: `fails(n)` says of the n-th creation whether it fails."""

    def __init__(self, native: DeviceLayer) -> None:
        self.calls = 0
        self.asked: list[tuple[int, ...]] = []
        self._fails: Callable[[int], bool] = lambda call: False
        self._original = native.create_buffer
        setattr(native, "create_buffer", self._create)  # noqa: B010  (a method of this one object)

    def _create(self, *arguments: int) -> Any:
        self.calls += 1
        self.asked.append(arguments)
        if self._fails(self.calls):
            raise OutOfMemoryError("injected: the driver has no memory left")
        return self._original(*arguments)

    @contextmanager
    def failing(self, fails: Callable[[int], bool]) -> Iterator[None]:
        """Let creations fail, numbered from 1 anew."""
        self.calls, self._fails = 0, fails
        self.asked.clear()
        try:
            yield
        finally:
            self._fails = lambda call: False


def check_books(bench: Bench) -> None:
    """The same of a bench's queue."""
    check_queue(bench.queue)


def check_queue(queue: Queue) -> None:
    """The pool's accounts agree with its buffers, no buffer is lent to two tensors or to none, and nothing
    that is remembered has a buffer that is gone.
    """
    with queue.lock:
        queue.drain()
        pool = queue.context.pool
        sizes = {buffer: physical.size for buffer, physical in pool.buffers.items()}
        listed = [buffer for buffers in pool._lists.values() for buffer in buffers]
        assert pool.bytes_total == sum(sizes.values())
        assert pool.bytes_live + pool.bytes_free == pool.bytes_total
        assert pool.bytes_free == sum(sizes[buffer] for buffer in pool.free)
        assert sorted(listed) == sorted(pool.free)
        assert all(buffers == sorted(buffers) for buffers in pool._lists.values())
        held = [each.physical for each in queue.virtuals if each.physical]
        held += [each.physical for each in queue.pending.virtuals if each.pending is None and each.physical]
        assert len(set(held)) == len(held)
        assert set(held) == set(sizes) - pool.free
        for variants in queue.context.resolved._queues.values():
            assert all(each.touched <= set(sizes) for each in variants)
        assert set(queue.context.groups._of_buffer) <= set(sizes)


def sane(bench: Bench, scale: float = 3.0) -> None:
    """A small computation on fresh buffers is right."""
    values = np.arange(100, dtype=np.float32)
    x = bench.upload(values)
    y = bench.add(bench.scale(x, scale), x)
    np.testing.assert_array_equal(bench.numbers(y), values * np.float32(scale) + values)
