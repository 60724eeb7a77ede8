"""Probes of what moving and launching costs: uploads, read-backs, launches, compiling, and the GPU's clock.

In: an open GPU. Out: findings with times; the host's clock is read, so a busy machine makes them larger.
"""

from __future__ import annotations

import time
from statistics import median
from typing import TYPE_CHECKING, Any

from ...arrays import np
from ...runtime.command_list import CommandList
from ...runtime.timer import Timer
from ...wgsl import Program, program_from_source
from .findings import Finding, judged, note, ok, significant
from .results import quickest

if TYPE_CHECKING:
    from ...runtime.queue import Recorder
    from ...runtime.webgpu import Device

__all__ = ["clock", "compiling", "latency", "launches", "transfers"]

_BYTES = 32 << 20
_LAUNCHES = 500
_SPACE = "\N{NO-BREAK SPACE}"

SCALE = """
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64)
fn scale(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    for (var i = id.x; i < arrayLength(&y); i += groups.x * 64u) { y[i] = x[i] * FACTOR; }
}"""


def _program(factor: str) -> Program:
    return program_from_source(SCALE.replace("FACTOR", factor), label="scale")


def transfers(device: Device) -> Finding:
    """Upload and read-back of 32 MiB, and that they are the same bytes."""
    data = np.random.default_rng(0).integers(0, 256, _BYTES, np.uint8)
    small = device.upload(np.ones(1, np.float32))

    def upload() -> None:
        kept = device.upload(data)
        device.read(small)  # comes after it in the GPU's queue
        del kept

    up = quickest(upload)
    buffer = device.upload(data)
    down = quickest(lambda: device.read(buffer))
    wrong = [] if np.array_equal(device.read(buffer), data) else ["the bytes that come back are others"]
    speeds: dict[str, Any] = {"upload": _BYTES / up / 1e9, "read_back": _BYTES / down / 1e9}
    text = ", ".join(
        f"{name.replace('_', '-')} {significant(each)}{_SPACE}GB/s" for name, each in speeds.items()
    )
    found = judged("transfers", text, wrong, **speeds)
    if not wrong and min(speeds.values()) < 0.2:
        advice = "moving is slow here: keep values on the device, read late and in one go"
        return note(found.name, text, advice, **speeds)
    return found


def latency(device: Device) -> Finding:
    """How long a value of four bytes takes to come back."""
    buffer = device.upload(np.ones(1, np.float32))
    device.read(buffer)
    times = []
    for _ in range(50):
        began = time.perf_counter()
        device.read(buffer)
        times.append((time.perf_counter() - began) * 1e6)
    figures = {"least_us": min(times), "median_us": median(times)}
    text = f"4 bytes in {significant(median(times))}{_SPACE}µs, at best {significant(min(times))}"
    if min(times) > 2000:
        return note("read-back", text, "read seldom: each .item() waits so long", **figures)
    return ok("read-back", text, **figures)


def launches(device: Device) -> Finding:
    """What the host pays for a launch that is recorded, for one that is replayed, and when that is done."""
    pipeline = device.pipeline(_program("1.5"))
    start = device.upload(np.ones(64, np.float32))

    def record() -> None:
        value = start
        with device.queue.hold() as recorder:
            for _ in range(_LAUNCHES):
                value = recorder.compute(pipeline, (value,), 256)
        device.flush()

    commands = CommandList(device.queue.limits.max_binding)
    slot = commands.slot(256, given=True)
    for _ in range(_LAUNCHES):
        source, slot = slot, commands.slot(256)
        commands.launch(pipeline, (1, 1, 1), (source, slot))
    commands.outputs.append(slot)
    params = [b""] * _LAUNCHES

    def replay() -> object:
        return device.queue.replay(commands, [start], params)

    times: dict[str, list[float]] = {"recorded": [], "replayed": [], "finished": []}
    for _ in range(5):
        for name, run in (("recorded", record), ("replayed", replay)):
            device.synchronize()
            began = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - began)
        device.synchronize()
        times["finished"].append(time.perf_counter() - began)
    figures = {f"{name}_us": min(each[1:]) / _LAUNCHES * 1e6 for name, each in times.items()}
    shown = ", ".join(f"{name[:-3]} {significant(each)}{_SPACE}µs" for name, each in figures.items())
    if figures["recorded_us"] > 50:
        advice = "launches cost much here: put steps into wg.jit; WEBGRAD_ENCODER should be fast"
        return note("a launch", shown, advice, **figures)
    return ok("a launch", shown, **figures)


def compiling(device: Device) -> Finding:
    """How long a small kernel that nobody has seen takes until it has run."""
    start, target = (device.upload(np.ones(64, np.float32)) for _ in range(2))
    device.synchronize()
    began = time.perf_counter()
    new = (
        time.time_ns() // 100 % 10**6
    )  # six digits: float32 tells them apart, so no cache of a driver's helps
    pipeline = device.pipeline(_program(f"1.{new:06}"))
    device.dispatch(pipeline, (start, target))
    device.synchronize()
    taken = (time.perf_counter() - began) * 1e3
    text = f"a small kernel in {significant(taken)}{_SPACE}ms, the first time"
    if taken > 1000:
        return note(
            "compiling",
            text,
            "first runs will be slow: repeat shapes, so that kernels are found again",
            ms=taken,
        )
    return ok("compiling", text, ms=taken)


def clock(device: Device) -> Finding:
    """Whether the GPU's timestamps run forwards, and as quickly as the host's clock."""
    name = "GPU's clock"
    if "timestamps" not in device.features:
        return ok(name, "no timestamps: times are the host's", there=False)
    pipeline = device.pipeline(_program("2.5"))
    nbytes = _BYTES if not device.info.software else _BYTES // 4
    source, target = (device.upload(np.ones(nbytes // 4, np.float32)) for _ in range(2))

    def record(recorder: Recorder) -> None:
        recorder.dispatch(pipeline, (source, target), b"", (64, 1, 1))

    with Timer(device) as timer:
        period = timer.period
        pairs = [timer.both(record) for _ in range(4)]
    stamped = [gpu for gpu, _ in pairs[1:] if gpu is not None]
    share = median(gpu / host for gpu, host in pairs[1:] if gpu is not None) if stamped else 0.0
    figures = {"period_ns": period * 1e9, "of_host_time": share, "seconds": stamped}
    text = f"steps of {significant(period * 1e9)}{_SPACE}ns, {share:.0%} of the host's time for a kernel"
    if not stamped or min(stamped) <= 0 or share > 1.1:
        advice = "the GPU's clock cannot be trusted: profiles take the host's; update the driver"
        return note(name, text, advice, **figures)
    return ok(name, text, **figures)
