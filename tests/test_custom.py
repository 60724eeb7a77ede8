"""Users' kernels: right results, and an error for whatever does not fit the source."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from webgrad import custom

pytestmark = pytest.mark.gpu

AXPY = """
struct Params { factor: f32, offset: vec2<u32> }
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(7) var<uniform> p: Params;
@compute @workgroup_size(64)
fn axpy(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < arrayLength(&y)) { y[id.x] += p.factor * x[id.x + p.offset.y]; }
}
"""
TEMPLATE = """
#ifndef FACTOR
#define FACTOR 2
#endif
@group(0) @binding(0) var<storage, read_write> x: array<u32>;
@compute @workgroup_size(4)
fn times(@builtin(global_invocation_id) id: vec3<u32>) { if (id.x < arrayLength(&x)) { x[id.x] *= FACTOR; } }
@compute @workgroup_size(4)
fn plus(@builtin(global_invocation_id) id: vec3<u32>) { if (id.x < arrayLength(&x)) { x[id.x] += FACTOR; } }
"""

DOUBLE = """
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@compute @workgroup_size(64)
fn double(@builtin(global_invocation_id) id: vec3<u32>) { if (id.x < arrayLength(&x)) { x[id.x] *= 2.0; } }
"""


@pytest.fixture(scope="module")
def device() -> wg.Device:
    found = wg.open_device("webgpu")
    assert isinstance(found, wg.Device)
    return found


@pytest.fixture(scope="module")
def axpy(device: wg.Device) -> wg.Kernel:
    return wg.kernel(AXPY, device=device, label="axpy")


def test_buffers_parameters_and_threads(device: wg.Device, axpy: wg.Kernel) -> None:
    x, y = np.arange(101, dtype=np.float32), np.ones(100, np.float32)
    source, target = device.upload(x), device.upload(y)
    axpy(source, target, threads=100, factor=2.5, offset=(0, 1))
    axpy(source, target, grid=(2, 1, 1), factor=1.0, offset=(0, 0))
    assert np.array_equal(device.read(target).view(np.float32), y + np.float32(2.5) * x[1:] + x[:100])


def test_defines_and_entry_points(device: wg.Device) -> None:
    value = device.upload(np.arange(6, dtype=np.uint32))
    wg.kernel(TEMPLATE, entry="times", device=device)(value, threads=6)
    wg.kernel(TEMPLATE, entry="plus", defines={"FACTOR": 5}, device=device)(value, threads=6)
    assert device.read(value).view(np.uint32).tolist() == [5, 7, 9, 11, 13, 15]
    with pytest.raises(wg.ShaderError, match=r"(?s)times.*plus|plus.*times"):
        wg.kernel(TEMPLATE, device=device)


def test_out_of_range_is_checked(device: wg.Device) -> None:
    wild = wg.kernel(
        """
        @group(0) @binding(0) var<storage, read_write> x: array<f32>;
        @compute @workgroup_size(1) fn wild() { x[4000000000u] = 7.0; x[0] = x[123456789u]; }""",
        device=device,
    )
    value = device.upload(np.array([1, 2], np.float32))
    wild(value, grid=1)
    assert np.isfinite(device.read(value).view(np.float32)).all()


def test_kernel_in_a_batch(device: wg.Device, axpy: wg.Kernel) -> None:
    batch = wg.Batch(device)
    x = batch.upload(np.ones(8, np.float32))
    y = batch.upload(np.zeros(8, np.float32))
    batch.run(axpy, x, y, threads=8, factor=3.0, offset=(0, 0))
    result = batch.scale(y, 2.0)
    before = device.stats()["submissions"]
    batch.execute()
    assert device.stats()["submissions"] == before + 1
    assert batch.read(result).tolist() == [6] * 8


Misuse = Callable[[Any, Any, Any], object]
WRONG: list[tuple[str, str, Misuse]] = [
    ("missing parameter", "missing: offset", lambda k, x, y: k(x, y, threads=1, factor=1.0)),
    (
        "unknown parameter",
        "unknown: fator",
        lambda k, x, y: k(x, y, threads=1, fator=1.0, factor=1.0, offset=(0, 0)),
    ),
    ("vector length", "offset", lambda k, x, y: k(x, y, threads=1, factor=1.0, offset=(0, 0, 0))),
    ("negative unsigned", "offset", lambda k, x, y: k(x, y, threads=1, factor=1.0, offset=(0, -1))),
    ("not a number", "factor", lambda k, x, y: k(x, y, threads=1, factor="2", offset=(0, 0))),
    (
        "too few buffers",
        r"takes 2 buffers \(x, y\), not 1",
        lambda k, x, y: k(x, threads=1, factor=1.0, offset=(0, 0)),
    ),
    ("no grid", "either grid", lambda k, x, y: k(x, y, factor=1.0, offset=(0, 0))),
    ("both", "either grid", lambda k, x, y: k(x, y, grid=1, threads=1, factor=1.0, offset=(0, 0))),
    ("large grid", "65536", lambda k, x, y: k(x, y, grid=65536, factor=1.0, offset=(0, 0))),
    ("negative grid", "grid", lambda k, x, y: k(x, y, grid=-1, factor=1.0, offset=(0, 0))),
    ("fractional grid", "integers", lambda k, x, y: k(x, y, grid=1.5, factor=1.0, offset=(0, 0))),
    ("written and read", "bound twice", lambda k, x, y: k(y, y, threads=1, factor=1.0, offset=(0, 0))),
]


@pytest.mark.parametrize(("name", "message", "misuse"), WRONG, ids=[row[0] for row in WRONG])
def test_wrong_launches(
    device: wg.Device,
    axpy: wg.Kernel,
    name: str,
    message: str,
    misuse: Misuse,
) -> None:
    x, y = device.upload(np.ones(4, np.float32)), device.upload(np.zeros(4, np.float32))
    before = device.stats()["commands"]
    with pytest.raises(wg.LaunchError, match=message):
        misuse(axpy, x, y)
    axpy(x, y, threads=4, factor=1.0, offset=(0, 0))
    assert device.read(y).view(np.float32).tolist() == [1, 1, 1, 1]
    assert device.stats()["commands"] == before + 1


def test_shader_errors_show_the_line(device: wg.Device) -> None:
    with pytest.raises(wg.CompileError) as caught:
        wg.kernel(AXPY.replace("p.factor *", "p.factor * 1u *"), device=device, label="axpy")
    text = str(caught.value)
    assert "entry point: axpy" in text
    assert "axpy:8" in text
    assert ">     8 |     if (id.x < arrayLength(&y))" in text
    assert "Operation Multiply can't work with" in text


def test_without_native_code_the_cpu_has_no_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(custom, "is_available", lambda: False)
    with pytest.raises(wg.DeviceError, match=r"llvmlite.*need a GPU"):
        wg.kernel(AXPY, device="cpu")


def test_the_cpu_has_no_kernels_over_buffers() -> None:
    kernel = wg.kernel(AXPY, device="cpu", reference=lambda x, y, **_: y)
    with pytest.raises(wg.DeviceError, match="need a GPU"):
        kernel(1, 2, grid=1, factor=1.0, offset=(0, 0))  # type: ignore[arg-type]


def test_source_must_be_text() -> None:
    with pytest.raises(wg.LaunchError, match="WGSL text"):
        wg.kernel(b"fn", device="webgpu")  # type: ignore[arg-type]


def test_numpy_numbers_are_numbers_and_negative_ones_are_refused(device: wg.Device, axpy: wg.Kernel) -> None:
    x, y = device.upload(np.ones(4, np.float32)), device.upload(np.zeros(4, np.float32))
    axpy(x, y, threads=np.int64(4), factor=np.float32(2), offset=(0, 0))  # type: ignore[arg-type]
    assert device.read(y).view(np.float32).tolist() == [2, 2, 2, 2]
    with pytest.raises(wg.LaunchError, match="-5"):
        axpy(x, y, threads=-5, factor=1.0, offset=(0, 0))


def test_an_empty_array_has_no_length_on_a_gpu(device: wg.Device, axpy: wg.Kernel) -> None:
    empty = device.upload(np.empty(0, np.float32))
    with pytest.raises(wg.LaunchError, match="empty"):
        axpy(empty, device.upload(np.zeros(4, np.float32)), threads=4, factor=1.0, offset=(0, 0))


def test_a_parameter_cannot_be_called_threads(device: wg.Device) -> None:
    source = AXPY.replace("factor", "threads")
    with pytest.raises(wg.LaunchError, match="rename"):
        wg.kernel(source, device=device)


def test_a_batch_value_is_for_batch_run(device: wg.Device, axpy: wg.Kernel) -> None:
    value = wg.Batch(device).upload(np.ones(4, np.float32))
    with pytest.raises(wg.BufferError, match=r"Batch\.run"):
        axpy(value, value, threads=4, factor=1.0, offset=(0, 0))  # type: ignore[arg-type]


def test_a_batch_runs_kernels_among_its_operations_in_order(device: wg.Device) -> None:
    double = wg.kernel(DOUBLE, device=device)
    batch = wg.Batch(device)
    x = batch.upload(np.arange(1, 5, dtype=np.float32))
    first, second = batch.relu(x), batch.relu(x)
    batch.run(double, first, threads=4)  # after both, and of one of them only
    both = batch.add(first, second)
    batch.run(double, x, threads=4)
    last = batch.add(x, second)
    before = device.stats()["submissions"]
    batch.execute()
    assert device.stats()["submissions"] == before + 1
    found = [batch.read(each).tolist() for each in (x, first, second, both, last)]
    assert found == [[2, 4, 6, 8], [2, 4, 6, 8], [1, 2, 3, 4], [3, 6, 9, 12], [3, 6, 9, 12]]


def test_a_long_batch_is_one_submission(device: wg.Device) -> None:
    batch = wg.Batch(device)
    value = batch.upload(np.ones(8, np.float32))
    before = device.stats()["submissions"]
    for _ in range(2500):  # more than may wait elsewhere
        value = batch.scale(value, -1.0)
    assert device.stats()["submissions"] == before
    batch.execute()
    assert device.stats()["submissions"] == before + 1
    assert batch.read(value).tolist() == [1.0] * 8


def test_what_was_recorded_before_a_kernel_reads_what_was_there_before_it(device: wg.Device) -> None:
    double = wg.kernel(DOUBLE, device=device)
    batch = wg.Batch(device)
    x = batch.upload(np.arange(1, 5, dtype=np.float32))
    before = batch.relu(x)
    batch.run(double, x, threads=4)
    both = batch.add(before, x)
    del before  # nobody asks for it, but it was recorded first
    batch.execute()
    assert batch.read(both).tolist() == [3, 6, 9, 12]
