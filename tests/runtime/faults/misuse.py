"""What a user can do wrong: one function per kind of call, each fed from a pool of good and bad values.

An `Actor` has things (buffers, kernels, batches …) it made, lost or freed, and draws from them by its random
source. `ACTIONS` is every call there is; an action makes one or two calls and lets their errors through.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import gc
import random
import signal
import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

import webgrad as wg
from tests.runtime.helpers import ADD, SCALE, Bench
from webgrad.runtime.shield import shield
from webgrad.wgsl import program_from_source

__all__ = ["ACTIONS", "Actor", "interrupted"]

JUNK: tuple[Any, ...] = (
    *(-1, 0, 1, 3, 4, 255, 256, 1 << 16, 1 << 31, 1 << 32, 3 << 30, 1 << 63, 1 << 80, -(1 << 70)),
    *(float("nan"), float("inf"), -0.5, 1.5, 1e300, 3j, True, None, Ellipsis),
    *("", "text", "webgpu:99", b"", b"1234", bytearray(8), memoryview(b"12345678")),
    *([], (), {}, set(), object(), len, int, [1, 2, 3], (1, 1, 1), (0, 0, 0), (1, -1, 1), (65536, 1, 1)),
    *(np.int64(4), np.float32(2), np.zeros(3), np.zeros((0, 3)), np.array("text"), np.array(None)),
)
ARRAYS: tuple[Callable[[], Any], ...] = (
    lambda: np.arange(16, dtype=np.float32),
    lambda: np.zeros(0, np.float32),
    lambda: np.ones((3, 5), np.float16),
    lambda: np.ones((7, 3), np.int8)[::2, ::2],
    lambda: np.array([1, 2, 3], ">f4"),
    lambda: np.array([object()]),
    lambda: np.array(["text"]),
    lambda: np.array([(1, 2.0)], [("a", "i4"), ("b", "f4")]),
    lambda: np.float32(3),
    lambda: np.ones(3, np.complex64),
    lambda: np.array(["2020-01-01"], "M8[D]"),
    lambda: np.broadcast_to(np.float32(1), (1 << 40,)),
    lambda: np.ma.masked_array([1.0, 2.0], [True, False]),
    lambda: memoryview(b"abcdefgh")[::2],
    lambda: [1.0, 2.0],
    lambda: b"abc",
    lambda: range(10),
)
HEADER = "@group(0) @binding(0) var<storage, read_write> x: array<f32>;\n"
BROKEN_WGSL: tuple[Callable[[], Any], ...] = (
    lambda: "",
    lambda: "fn main() {}",
    lambda: "@compute @workgroup_size(0) fn main() {}",
    lambda: "@compute @workgroup_size(1024, 1024, 64) fn main() {}",
    lambda: HEADER + "@compute @workgroup_size(1) fn main() { x[0] = ; }",
    lambda: HEADER + "@compute @workgroup_size(1) fn main() { x[0] = unknown(1); }",
    lambda: HEADER + "@compute @workgroup_size(1) fn main() { x = 1.0; }",
    lambda: HEADER + "@compute @workgroup_size(1) fn main() { f(); } fn f() { f(); }",
    lambda: (
        HEADER + "@compute @workgroup_size(1) fn main() { x[0] = " + "(" * 5000 + "1.0" + ")" * 5000 + "; }"
    ),
    lambda: HEADER + "@compute @workgroup_size(1) fn main() { x[0] = " + "+".join(["1.0"] * 40_000) + "; }",
    lambda: (
        HEADER + "@compute @workgroup_size(1) fn main() { " + "if (x[0] > 0.0) {" * 200 + "}" * 200 + " }"
    ),
    lambda: HEADER + "@compute @workgroup_size(1) fn main() {} //" + "x" * 3_000_000,
    lambda: HEADER + "@compute @workgroup_size(1) fn main() { x[0] = 1.0; } \0 \ud800",
    lambda: (
        "struct S { a: S }\n" + HEADER + "@compute @workgroup_size(1) fn main() { var s: S; x[0] = 1.0; }"
    ),
    lambda: (
        "".join(f"@group(0) @binding({n}) var<storage> x{n}: array<f32>;\n" for n in range(70))
        + "@compute @workgroup_size(1) fn main() { "
        + "".join(f"let y{n} = x{n}[0];\n" for n in range(70))
        + "}"
    ),
    lambda: "#if 1\n" * 100,
    lambda: "#define F(a) F(a) F(a)\n" + HEADER + "@compute @workgroup_size(1) fn main() { F(1) }",
    lambda: '#include "/etc/passwd"\n',
    lambda: "@group(0) @binding(0) var t: texture_2d<f32>; @compute @workgroup_size(1) fn main() { _ = t; }",
    lambda: (
        HEADER
        + "var<workgroup> w: array<f32, 1000000>; @compute @workgroup_size(1) fn main() { w[0] = 1.0; }"
    ),
)
GOOD_WGSL = (SCALE, ADD, HEADER + "@compute @workgroup_size(1) fn main() { x[arrayLength(&x) + 5u] = 1.0; }")


def interrupted(after: float, call: Callable[[], Any]) -> None:
    """Make a call with a Ctrl-C on its way; KeyboardInterrupt where it arrives in time."""
    usual = signal.signal(signal.SIGALRM, lambda number, frame: signal.raise_signal(signal.SIGINT))
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, after)
            call()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.signal(signal.SIGALRM, usual)


class Actor:
    """A careless user."""

    def __init__(self, benches: Sequence[Bench], source: random.Random) -> None:
        self.benches = benches
        self.random = source
        self.bench = source.choice(benches)
        self.buffers: list[Any] = []
        self.kernels: list[Any] = []
        self.pipelines: list[Any] = [self.bench.scale_pipeline, self.bench.add_pipeline]
        self.batches: list[Any] = []
        self.arrays: list[Any] = []
        self.events: list[Any] = []

    def fork(self) -> Actor:
        """Another one, for a thread, with the same things in hand."""
        other = Actor(self.benches, random.Random(self.random.random()))
        other.bench = self.bench
        for name in ("buffers", "kernels", "pipelines", "batches", "arrays", "events"):
            getattr(other, name).extend(getattr(self, name))
        return other

    def close(self) -> None:
        """Let everything go."""
        for name in ("buffers", "kernels", "pipelines", "batches", "arrays", "events"):
            getattr(self, name).clear()

    # Drawing

    def junk(self) -> Any:
        return self.random.choice(JUNK)

    def one_of(self, things: Sequence[Any], junk: float = 0.1) -> Any:
        """One of these; now and then, or where there are none, anything."""
        if not things or self.random.random() < junk:
            return self.junk() if self.random.random() < 0.5 else self.random.choice(self.buffers or JUNK)
        return self.random.choice(things)

    def some_of(self, things: Sequence[Any]) -> Any:
        if self.random.random() < 0.1:
            return self.junk()
        return [self.one_of(things) for _ in range(self.random.choice((0, 1, 2, 2, 3, 3, 4)))]

    def size(self) -> Any:
        return self.random.choice((4, 64, 1200, 4096, 1 << 20)) if self.random.random() < 0.7 else self.junk()

    def array(self) -> Any:
        if self.random.random() < 0.5:
            count = self.random.choice((1, 16, 300, 5000))
            return np.arange(count, dtype=self.random.choice((np.float32, np.int8, np.uint32)))
        return self.random.choice(ARRAYS)()

    def grid(self) -> Any:
        return (
            self.random.choice(((1, 1, 1), (5, 1, 1), (2, 2, 2)))
            if self.random.random() < 0.7
            else self.junk()
        )

    def params(self) -> Any:
        good = (struct.pack("<If", 300, 2.0), struct.pack("<I", 300), struct.pack("<If", 1 << 31, 2.0), b"")
        return self.random.choice(good) if self.random.random() < 0.8 else self.junk()

    def source(self) -> Any:
        return self.random.choice(
            (self.junk, lambda: self.random.choice(GOOD_WGSL), lambda: self.random.choice(BROKEN_WGSL)())
        )()


# Buffers


def allocate(actor: Actor) -> None:
    label = actor.random.choice(("", "a", actor.junk()))
    actor.buffers.append(actor.bench.device.allocate(actor.size(), label))


def upload(actor: Actor) -> None:
    actor.buffers.append(actor.bench.device.upload(actor.array(), keep=actor.random.random() < 0.5))


def upload_elsewhere(actor: Actor) -> None:
    actor.buffers.append(actor.random.choice(actor.benches).device.upload(actor.array()))


def write(actor: Actor) -> None:
    actor.bench.queue.write(actor.one_of(actor.buffers), actor.array(), keep=actor.junk() is None)


def read(actor: Actor) -> None:
    actor.bench.device.read(actor.one_of(actor.buffers))


def read_async(actor: Actor) -> None:
    async def at_most(seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(actor.bench.device.read_async(actor.one_of(actor.buffers)), seconds)

    asyncio.run(at_most(actor.random.choice((0.0, 1e-4, 10.0))))


def view(actor: Actor) -> None:
    offset = actor.random.choice((0, 32, 256, actor.junk()))
    actor.buffers.append(actor.bench.queue.view(actor.one_of(actor.buffers), offset, actor.size()))


def free(actor: Actor) -> None:
    buffer = actor.one_of(actor.buffers)
    if isinstance(buffer, wg.Buffer):
        for _ in range(actor.random.randint(1, 2)):
            buffer.free()


def drop(actor: Actor) -> None:
    del actor.buffers[: actor.random.randint(0, 3)]


def copy_buffer(actor: Actor) -> None:
    actor.buffers.append(copy.copy(actor.one_of(actor.buffers, junk=0)))


# Commands


def dispatch(actor: Actor) -> None:
    actor.bench.device.dispatch(
        actor.one_of(actor.pipelines), actor.some_of(actor.buffers), actor.params(), actor.grid()
    )


def right_dispatch(actor: Actor) -> None:
    x = actor.bench.upload(np.arange(300))
    y = actor.bench.scale(x, 2)
    actor.buffers += [x, y]
    actor.bench.scale_into(actor.one_of(actor.buffers, junk=0), y, 3)


def pipeline(actor: Actor) -> None:
    program: Any = actor.junk()
    if actor.random.random() < 0.8:
        program = program_from_source(actor.source())
    in_place = actor.random.choice(((), (), actor.junk(), [(((9, 1),), program)], [(((0, 1),), program)]))
    actor.pipelines.append(actor.bench.device.pipeline(program, checked=True, in_place=in_place))


def hold(actor: Actor) -> None:
    with actor.bench.queue.hold():
        right_dispatch(actor)
        dispatch(actor)


def flush(actor: Actor) -> None:
    actor.events.append(actor.bench.device.flush())


def synchronize(actor: Actor) -> None:
    actor.bench.device.synchronize()


def wait(actor: Actor) -> None:
    event = actor.one_of(actor.events, junk=0)
    if isinstance(event, wg.Event):
        assert event.done in (True, False)
        timeouts: tuple[Any, ...] = (None, 0, 0.001, -1, float("nan"), "text")
        event.wait(actor.random.choice(timeouts))


def stats(actor: Actor) -> None:
    assert str(actor.bench.device.stats())
    actor.bench.device.reset_stats()
    wg.stats()


def lose(actor: Actor) -> None:
    if actor.random.random() < 0.3:
        actor.bench.queue.context.native.destroy()


def evict(actor: Actor) -> None:
    with shield, actor.bench.queue.lock:
        actor.bench.queue.context.pool.clear()
    gc.collect()


# Devices, kernels, batches


def open_any(actor: Actor) -> None:
    wg.open_device(actor.random.choice(("cpu", "webgpu", actor.junk())))


def make_kernel(actor: Actor) -> None:
    device = actor.random.choice((actor.bench.device, actor.bench.device, "cpu", actor.junk()))
    options = actor.random.choice(({}, {}, {"entry": actor.junk()}, {"defines": actor.junk()}))
    actor.kernels.append(wg.kernel(actor.source(), device=device, **options))


def launch(actor: Actor) -> None:
    kernel = actor.one_of(actor.kernels, junk=0)
    if isinstance(kernel, wg.Kernel):
        where = actor.random.choice(("grid", "threads", "nowhere"))
        names = [field.name for field in kernel.program.params]
        params: dict[str, Any] = {name: actor.random.choice((1, 2.5, actor.junk())) for name in names}
        params |= actor.random.choice(({}, {}, {}, {where: actor.grid()}, {where: actor.junk()}))
        kernel(*_list(actor.some_of(actor.buffers)), **params)


def _list(things: Any) -> Iterable[Any]:
    return things if isinstance(things, list) else [things]


def batch(actor: Actor) -> None:
    device = actor.random.choice((actor.bench.device, actor.bench.device, "cpu", actor.junk()))
    actor.batches.append(wg.Batch(device))


def batch_upload(actor: Actor) -> None:
    actor.arrays.append(actor.one_of(actor.batches, junk=0).upload(actor.array()))


def batch_empty(actor: Actor) -> None:
    actor.arrays.append(
        actor.one_of(actor.batches, junk=0).empty(actor.random.choice((4, (2, 3), actor.junk())))
    )


def batch_import(actor: Actor) -> None:
    shape, dtype = (
        actor.random.choice((None, (4,), actor.junk())),
        actor.random.choice(("f4", "i1", actor.junk())),
    )
    thing = actor.one_of(actor.arrays + actor.buffers)
    actor.arrays.append(actor.one_of(actor.batches, junk=0).import_buffer(thing, shape, dtype))


def batch_operation(actor: Actor) -> None:
    unary, binary = ("relu", "gelu", "sigmoid", "softmax"), ("matmul", "add", "sub", "mul", "div", "dot")
    name = actor.random.choice((*unary, *binary, "scale"))
    operands = [actor.one_of(actor.arrays) for _ in range(2 if name in binary else 1)]
    if name == "scale":
        operands.append(actor.random.choice((2.0, actor.junk())))
    actor.arrays.append(getattr(actor.one_of(actor.batches, junk=0), name)(*operands))


def batch_run(actor: Actor) -> None:
    owner, kernel = actor.one_of(actor.batches, junk=0), actor.one_of(actor.kernels)
    owner.run(kernel, *_list(actor.some_of(actor.arrays)), grid=actor.grid())


def batch_execute(actor: Actor) -> None:
    actor.events.append(actor.one_of(actor.batches, junk=0).execute())


def batch_read(actor: Actor) -> None:
    actor.one_of(actor.batches, junk=0).read(actor.one_of(actor.arrays))


def _with_batch(action: Callable[[Actor], None]) -> Callable[[Actor], None]:
    """An action on a batch: makes one where there is none."""

    def act(actor: Actor) -> None:
        if not actor.batches:
            actor.batches.append(wg.Batch(actor.bench.device))
        action(actor)

    return act


_PLAIN = (
    allocate,
    upload,
    upload_elsewhere,
    write,
    read,
    read_async,
    view,
    free,
    drop,
    copy_buffer,
    dispatch,
    right_dispatch,
    pipeline,
    hold,
    flush,
    synchronize,
    wait,
    stats,
    lose,
    evict,
    open_any,
    make_kernel,
    launch,
)
_BATCH = (batch_upload, batch_empty, batch_import, batch_operation, batch_run, batch_execute, batch_read)
ACTIONS: dict[str, Callable[[Actor], None]] = {action.__name__: action for action in (*_PLAIN, batch)} | {
    action.__name__: _with_batch(action) for action in _BATCH
}
