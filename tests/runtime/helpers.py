"""Tiny kernels and a device to run them on, for the tests of the runtime.

`Bench` is a private device with the kernels every test uses; `bench(...)` opens one with changed settings.
"""

from __future__ import annotations

import asyncio
import dataclasses
import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.limits import HANG
from webgrad import config
from webgrad.runtime.adapters import list_adapters
from webgrad.runtime.buffers import Buffer
from webgrad.runtime.pipelines import Pipeline
from webgrad.runtime.webgpu import Device
from webgrad.wgsl import program_from_source

__all__ = ["Bench", "Floats", "bench", "floats", "refuse", "run_python", "scale_params"]

Floats = np.ndarray[Any, np.dtype[np.float32]]

SCALE = """
struct Params { count: u32, factor: f32 }
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
var<uniform> p: Params;
@compute @workgroup_size(64)
fn scale(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < p.count) { y[id.x] = x[id.x] * p.factor; }
}
"""
SCALE_IN_PLACE = """
struct Params { count: u32, factor: f32 }
@group(0) @binding(0) var<storage, read_write> y: array<f32>;
var<uniform> p: Params;
@compute @workgroup_size(64)
fn scale(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < p.count) { y[id.x] = y[id.x] * p.factor; }
}
"""
ADD = """
struct Params { count: u32 }
@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
var<uniform> p: Params;
@compute @workgroup_size(64)
fn add(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < p.count) { y[id.x] = a[id.x] + b[id.x]; }
}
"""
ADD_IN_PLACE = """
struct Params { count: u32 }
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
var<uniform> p: Params;
@compute @workgroup_size(64)
fn add(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < p.count) { y[id.x] = y[id.x] + x[id.x]; }
}
"""
SPIN = """
struct Params { turns: u32 }
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
var<uniform> p: Params;
@compute @workgroup_size(1)
fn spin() {
    var value = y[0];
    for (var i = 0u; i < p.turns; i++) { value = value * 1664525u + 1013904223u; }
    y[0] = value;
}
"""
LENGTHS = """
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(1)
fn lengths() {
    y[0] = arrayLength(&x);
    y[1] = arrayLength(&y);
}
"""


def floats(*values: float) -> Floats:
    """A float32 array of these numbers."""
    return np.array(values, np.float32)


class Bench:
    """A device with the kernels of these tests; values are float32 unless said otherwise."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.queue = device.queue
        self.scale_pipeline = self.pipeline(SCALE, "scale", in_place={0: SCALE_IN_PLACE})
        self.add_pipeline = self.pipeline(ADD, "add", in_place={0: ADD_IN_PLACE, 1: ADD_IN_PLACE})
        self.spin_pipeline = self.pipeline(SPIN, "spin")

    def pipeline(
        self, source: str, label: str, *, checked: bool | None = None, in_place: dict[int, str] | None = None
    ) -> Pipeline:
        """The pipeline of a source; `in_place` holds the variants whose output lies where an input did."""
        program = program_from_source(source, label=label)
        output = len(program.bindings) - 1
        variants = [
            (((index, output),), program_from_source(text, label=f"{label} over {index}"))
            for index, text in (in_place or {}).items()
        ]
        return self.device.pipeline(program, checked=checked, in_place=variants)

    @property
    def stats(self) -> dict[str, Any]:
        """The device's counters now."""
        return dict(self.device.stats())

    def since(self, before: dict[str, Any]) -> dict[str, int]:
        """By how much each plain counter has grown."""
        now = self.stats
        return {name: now[name] - value for name, value in before.items() if isinstance(value, int)}

    def upload(self, values: Any, label: str = "", *, keep: bool = False) -> Buffer:
        """Upload numbers as float32."""
        return self.device.upload(np.asarray(values, np.float32), label, keep=keep)

    def numbers(self, buffer: Buffer) -> Floats:
        """Read a buffer of float32."""
        return self.device.read(buffer).view(np.float32)

    def scale_into(self, x: Buffer, y: Buffer, factor: float) -> None:
        """Record y = x · factor."""
        count = y.nbytes // 4
        self.device.dispatch(
            self.scale_pipeline, [x, y], scale_params(count, factor), (-(-count // 64), 1, 1)
        )

    def scale(self, x: Buffer, factor: float, label: str = "") -> Buffer:
        """Record x · factor into a new buffer."""
        y = self.device.allocate(x.nbytes, label)
        self.scale_into(x, y, factor)
        return y

    def add_into(self, a: Buffer, b: Buffer, y: Buffer) -> None:
        """Record y = a + b."""
        count = y.nbytes // 4
        self.device.dispatch(self.add_pipeline, [a, b, y], struct.pack("<I", count), (-(-count // 64), 1, 1))

    def add(self, a: Buffer, b: Buffer) -> Buffer:
        """Record a + b into a new buffer."""
        y = self.device.allocate(a.nbytes)
        self.add_into(a, b, y)
        return y

    def spin(self, y: Buffer, turns: int) -> None:
        """Record a kernel that keeps the GPU busy for about a second per 80 million turns."""
        self.device.dispatch(self.spin_pipeline, [y], struct.pack("<I", turns))

    def give_up_a_read(self, y: Buffer) -> None:
        """Begin to read what the GPU works on, and give up before it is done."""

        async def give_up() -> None:
            for doublings in range(8):  # on a busy machine short work may be over before a short while
                self.spin(y, 2_000_000 << doublings)
                try:
                    await asyncio.wait_for(self.device.read_async(y), 0.005)
                except TimeoutError:
                    return
            raise AssertionError("every read was over at once")

        asyncio.run(give_up())


def bench(**changes: Any) -> Bench:
    """A Bench on a private device, the best adapter's, with these settings changed."""
    settings = dataclasses.replace(config.settings(), **changes)
    return Bench(Device(list_adapters(settings)[0], settings))


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh interpreter that can import webgrad and these helpers."""
    root = Path(__file__).parents[2]
    environment = os.environ | {"PYTHONPATH": str(root)}
    command = [sys.executable, "-W", "error", "-c", code]
    return subprocess.run(
        command, env=environment, cwd=root, capture_output=True, text=True, timeout=HANG, check=False
    )


def scale_params(count: int, factor: float) -> bytes:
    """The parameters of the kernel `scale`."""
    return struct.pack("<If", count, factor)


def refuse(bench: Bench, kind: type[Exception], message: str, *arguments: Any) -> None:
    """Check that a dispatch is refused and that the queue goes on."""
    before = bench.scale(bench.upload(floats(1, 2)), 5)
    with pytest.raises(kind, match=message):
        bench.device.dispatch(*arguments)
    assert bench.numbers(before).tolist() == [5, 10]
