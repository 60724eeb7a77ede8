"""Random misuse cannot abort, hang or spoil: 50 sequences here, 200 by `make test-long`, thousands by
`make fault`.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

from tests.runtime.faults.batches import run_batches
from tests.runtime.faults.misuse import ACTIONS, Actor
from tests.runtime.helpers import Bench, bench, floats
from tests.selection import first
from webgrad.errors import BufferError, DeviceError, LaunchError
from webgrad.runtime.device import open_device

pytestmark = [pytest.mark.gpu, pytest.mark.fault]


@pytest.fixture(scope="module")
def own() -> Bench:
    return bench()


@pytest.mark.parametrize("count", first(1, [50, 200]))
def test_sequences_of_misuse(count: int) -> None:
    report = run_batches(count, seed=20, per_process=100)
    assert report.clean, report.describe()
    assert report.sequences == count
    assert len(report.errors) > 8
    assert sum(report.errors.values()) < report.calls, "some calls must have been right"


def test_a_sequence_is_a_function_of_its_seed(own: Bench) -> None:
    def drawn() -> list[str]:
        actor = Actor([own], random.Random("7:3"))
        return [repr((actor.size(), actor.grid(), actor.params(), actor.junk())) for _ in range(20)]

    assert drawn() == drawn()
    assert len(ACTIONS) > 25


# What the sequences found, one by one.


@pytest.mark.parametrize("size", [1.0, 256.0, float("nan"), "64", None, b"x", 3j])
def test_a_size_that_is_no_whole_number(own: Bench, size: object) -> None:
    own.device.allocate(256)
    with pytest.raises((TypeError, ValueError)):
        own.device.allocate(size)  # type: ignore[arg-type]


def test_a_numpy_number_is_a_size(own: Bench) -> None:
    buffer = own.device.allocate(np.int64(64))  # type: ignore[arg-type]
    assert type(buffer.nbytes) is int


@pytest.mark.parametrize(
    "grid", [(1.0, 1, 1), (1, float("nan"), 1), ("1", 1, 1), (None, 1, 1), (1, 1), 1, None]
)
def test_a_grid_that_is_none(own: Bench, grid: object) -> None:
    x, y = own.upload(floats(1, 2)), own.device.allocate(8)
    pipeline = own.pipeline(
        "@group(0) @binding(0) var<storage, read_write> x: array<f32>;\n"
        f"@compute @workgroup_size(1) fn main() {{ x[0] = {hash(str(grid)) % 1000}.0; }}",
        "fresh",
    )
    with pytest.raises((TypeError, LaunchError)):
        own.device.dispatch(pipeline, [x], b"", grid)  # type: ignore[arg-type]
    own.scale_into(x, y, 2)
    assert own.numbers(y).tolist() == [2, 4]


def test_a_grid_of_numpy_numbers(own: Bench) -> None:
    x, y = own.upload(floats(1, 2)), own.device.allocate(8)
    own.device.dispatch(
        own.scale_pipeline, [x, y], np.array([2, 0x40400000], np.uint32).tobytes(), tuple(np.ones(3, int))
    )
    assert own.numbers(y).tolist() == [3, 6]


@pytest.mark.parametrize("params", ["12345678", bytearray(8), memoryview(b"12345678"), [0] * 8, None, 8])
def test_parameters_that_are_not_bytes(own: Bench, params: object) -> None:
    x, y = own.upload(floats(1, 2)), own.device.allocate(8)
    own.scale_into(x, y, 2)
    with pytest.raises((TypeError, LaunchError)):
        own.device.dispatch(own.scale_pipeline, [x, y], params)  # type: ignore[arg-type]
    assert own.numbers(y).tolist() == [2, 4]


@pytest.mark.parametrize("thing", [None, 3, "x", object(), np.zeros(2, np.float32)])
def test_what_is_no_buffer_and_no_pipeline(own: Bench, thing: object) -> None:
    x = own.upload(floats(1, 2))
    with pytest.raises(BufferError, match="is not a device"):
        own.device.dispatch(own.scale_pipeline, [x, thing], bytes(8))  # type: ignore[list-item]
    with pytest.raises((LaunchError, TypeError)):
        own.device.dispatch(thing, [x], bytes(8))  # type: ignore[arg-type]
    with pytest.raises((LaunchError, TypeError)):
        own.device.pipeline(thing)  # type: ignore[arg-type]
    if thing is not None:
        with pytest.raises(DeviceError):
            open_device(thing if not isinstance(thing, np.ndarray) else 2)  # type: ignore[arg-type]


def test_views_take_whole_numbers_only(own: Bench) -> None:
    whole = own.upload(np.arange(1024))
    for offset, nbytes in (
        (0.0, 256),
        (0, 256.0),
        (float("nan"), 256),
        ("0", 256),
        (None, 4),
        (1 << 70, 4),
        (0, 1 << 70),
    ):
        with pytest.raises((TypeError, BufferError)):
            own.queue.view(whole, offset, nbytes)  # type: ignore[arg-type]


def test_an_array_too_large_for_the_device_is_refused_before_it_is_copied(own: Bench) -> None:
    with pytest.raises(BufferError, match="split the tensor"):
        own.device.upload(np.broadcast_to(np.float32(1), (1 << 45,)))


def test_a_kernel_with_too_many_buffers(own: Bench) -> None:
    count = 70
    source = "".join(f"@group(0) @binding({n}) var<storage> x{n}: array<f32>;\n" for n in range(count))
    source += (
        "@compute @workgroup_size(1) fn main() { " + "".join(f"_ = x{n}[0];" for n in range(count)) + " }"
    )
    buffers = [own.upload(floats(1)) for _ in range(count)]
    with pytest.raises((DeviceError, LaunchError)):
        own.device.dispatch(own.pipeline(source, "many"), buffers)
    x = own.upload(floats(1, 2))
    assert own.numbers(own.scale(x, 2)).tolist() == [2, 4]
