"""Launches the queue refuses: nothing of them is recorded, and what was recorded before still runs."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from tests.runtime.helpers import Bench, floats, refuse, scale_params
from webgrad.errors import BufferError, ForeignBufferError, LaunchError

pytestmark = pytest.mark.gpu


def test_the_wrong_number_of_buffers(shared: Bench) -> None:
    x = shared.upload(floats(1))
    refuse(
        shared, LaunchError, r"scale takes 2 buffers \(x, y\), not 1", shared.scale_pipeline, [x], bytes(8)
    )


@pytest.mark.parametrize("size", [0, 4, 7, 12])
def test_the_wrong_number_of_parameter_bytes(shared: Bench, size: int) -> None:
    buffers = [shared.upload(floats(1)), shared.device.allocate(4)]
    message = rf"takes 8 bytes of parameters \(count: u32, factor: f32\), not {size}"
    refuse(shared, LaunchError, message, shared.scale_pipeline, buffers, bytes(size))


@pytest.mark.parametrize(
    "grid", [(65536, 1, 1), (1, 65536, 1), (1, 1, 65536), (-1, 1, 1), (1, 1), (1, 1, 1, 1)]
)
def test_a_grid_outside_the_limits(shared: Bench, grid: tuple[int, ...]) -> None:
    buffers = [shared.upload(floats(1)), shared.device.allocate(4)]
    refuse(shared, LaunchError, r"grid .* from 0 to 65535", shared.scale_pipeline, buffers, bytes(8), grid)


def test_the_largest_grid_runs(shared: Bench) -> None:
    x, y = shared.upload(floats(1)), shared.device.allocate(4)
    shared.device.dispatch(shared.scale_pipeline, [x, y], scale_params(1, 4), (65535, 1, 1))
    assert shared.numbers(y).tolist() == [4]


@pytest.mark.parametrize("grid", [(0, 1, 1), (1, 0, 1), (1, 1, 0), (0, 0, 0)])
def test_a_grid_with_a_zero_does_nothing(alone: Bench, grid: tuple[int, int, int]) -> None:
    x, y = alone.upload(floats(1)), alone.upload(floats(7))
    for _ in range(3):
        alone.device.dispatch(alone.scale_pipeline, [x, y], scale_params(1, 4), grid)
    alone.device.flush()
    assert alone.stats["commands"] == 0
    assert alone.numbers(y).tolist() == [7]


def test_a_buffer_of_another_device(shared: Bench, alone: Bench) -> None:
    foreign = alone.upload(floats(1))
    buffers = [foreign, shared.device.allocate(4)]
    message = "belongs to another device"
    refuse(shared, ForeignBufferError, message, shared.scale_pipeline, buffers, scale_params(1, 2))
    with pytest.raises(ForeignBufferError, match=message):
        shared.device.read(foreign)


def test_a_buffer_too_small_for_a_fixed_size(shared: Bench) -> None:
    source = """
    @group(0) @binding(0) var<storage, read_write> table: array<u32, 100>;
    @compute @workgroup_size(1) fn fill() { table[99] = 1u; }
    """
    pipeline = shared.pipeline(source, "fill")
    refuse(
        shared,
        LaunchError,
        r"table \(array<u32, ?100>\) needs 400 bytes, not 396",
        pipeline,
        [shared.device.allocate(396)],
    )


def test_never_written(shared: Bench) -> None:
    buffer = shared.device.allocate(16, "nothing")
    for _ in range(2):
        with pytest.raises(BufferError, match=r"'nothing' \(16 bytes\) was never written"):
            shared.device.read(buffer)
    shared.queue.write(buffer, np.arange(4, dtype=np.float32))
    assert shared.numbers(buffer).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("nbytes", [-1, 1 << 60])
def test_a_size_that_cannot_be(shared: Bench, nbytes: int) -> None:
    with pytest.raises(BufferError, match="cannot be: this device's have from 0 to"):
        shared.device.allocate(nbytes, "huge")


# Aliases


def test_one_buffer_may_be_read_twice(shared: Bench) -> None:
    x = shared.upload(floats(1, 2))
    assert shared.numbers(shared.add(x, x)).tolist() == [2, 4]


@pytest.mark.parametrize("place", [0, 1])
def test_one_buffer_may_not_be_read_and_written(alone: Bench, place: int) -> None:
    x, other = alone.upload(floats(1)), alone.upload(floats(2))
    inputs = [x, other] if place == 0 else [other, x]
    for _ in range(2):  # the second time the launch is a known one
        with pytest.raises(LaunchError, match="one buffer is bound twice and written"):
            alone.device.dispatch(alone.add_pipeline, [*inputs, x], struct.pack("<I", 1))
    assert alone.stats["submissions"] == 0
    alone.device.flush()
    assert alone.stats["commands"] == 0
    assert alone.numbers(x).tolist() == [1]


def test_two_views_of_one_buffer_may_not_be_read_and_written(alone: Bench) -> None:
    x = alone.upload(np.arange(128))
    low, high = alone.queue.view(x, 0, 256), alone.queue.view(x, 256, 256)
    with pytest.raises(LaunchError, match="bound twice and written"):
        alone.scale_into(low, high, 2)
    with pytest.raises(LaunchError, match="bound twice and written"):
        alone.scale_into(x, high, 2)
    assert alone.numbers(alone.add(low, high)).tolist() == [2 * i + 64 for i in range(64)]
