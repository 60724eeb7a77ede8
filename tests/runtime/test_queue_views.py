"""Views: parts of a buffer bound on their own, and buffers too large to be bound as a whole."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.runtime.helpers import Bench, floats, refuse, scale_params
from webgrad.errors import BufferError, LaunchError, StaleBufferError

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize(
    ("offset", "nbytes"), [(4, 4), (-256, 4), (0, 0), (0, 3), (256, 260), (512, 4), (0, 520), (0, -4)]
)
def test_a_view_must_lie_inside_and_be_aligned(shared: Bench, offset: int, nbytes: int) -> None:
    x = shared.upload(np.zeros(128), "whole")
    with pytest.raises(BufferError, match=r"a view of .* of 'whole' \(512 bytes\) cannot be"):
        shared.queue.view(x, offset, nbytes)


def test_a_view_is_bound_where_it_begins(encoded: Bench) -> None:
    x = encoded.upload(np.arange(192))
    y = encoded.upload(np.zeros(192))
    encoded.scale_into(encoded.queue.view(x, 256, 128), encoded.queue.view(y, 512, 128), 10)
    expected = np.zeros(192)
    expected[128:160] = 10 * np.arange(64, 96)
    assert encoded.numbers(y).tolist() == expected.tolist()


def test_a_view_of_a_view(shared: Bench) -> None:
    x = shared.upload(np.arange(256))
    inner = shared.queue.view(shared.queue.view(x, 256, 768), 256, 8)
    del x
    assert shared.numbers(shared.scale(inner, 1)).tolist() == [128, 129]


def test_a_view_keeps_its_whole(alone: Bench) -> None:
    view = alone.queue.view(alone.upload(np.arange(128)), 256, 4)
    for _ in range(3):
        assert alone.numbers(alone.scale(view, 1)).tolist() == [64]
    del view
    for _ in range(2):
        alone.device.flush()
    assert alone.stats["bytes_live"] == 0


def test_a_view_is_neither_read_nor_written_by_itself(shared: Bench) -> None:
    view = shared.queue.view(shared.upload(np.arange(128)), 256, 4)
    with pytest.raises(BufferError, match="is a view: read the whole buffer"):
        shared.device.read(view)
    with pytest.raises(BufferError, match="is a view: write to the whole buffer"):
        shared.queue.write(view, floats(1))


def test_a_view_too_small_for_an_element(shared: Bench) -> None:
    source = """
    @group(0) @binding(0) var<storage, read_write> y: array<vec4<f32>>;
    @compute @workgroup_size(1) fn fill() { y[0] = vec4<f32>(1.0); }
    """
    view = shared.queue.view(shared.upload(np.zeros(64)), 0, 4)
    message = r"y \(array<vec4<f32>>\) needs 16 bytes, not 4"
    refuse(shared, LaunchError, message, shared.pipeline(source, "fill"), [view])


def test_a_buffer_above_the_binding_limit_works_in_pieces(alone: Bench) -> None:
    limit = alone.queue.limits.max_binding
    assert limit == 128 << 20
    large = alone.device.allocate(limit + (16 << 20), "large")
    two = alone.upload(floats(2))
    with pytest.raises(LaunchError, match=r"'large' .* cannot be bound to y as a whole: .* bind views"):
        alone.device.dispatch(alone.scale_pipeline, [two, large], scale_params(1, 1))
    pieces = [(0, limit), (limit, 16 << 20)]
    for offset, nbytes in pieces:
        view = alone.queue.view(large, offset, nbytes)
        last = alone.queue.view(large, offset + nbytes - 256, 4)
        # The first word through a view of the greatest size, the last through a small one.
        alone.device.dispatch(alone.scale_pipeline, [two, view], scale_params(1, 1 + offset))
        alone.scale_into(two, last, 3 + offset)
    numbers = alone.numbers(large)
    found = [numbers[at // 4] for offset, nbytes in pieces for at in (offset, offset + nbytes - 256)]
    assert found == [2, 6, 2 * (1 + limit), 2 * np.float32(3 + limit)]


def test_a_size_class_does_not_pass_the_binding_limit(alone: Bench) -> None:
    alone.queue.limits = dataclasses.replace(alone.queue.limits, max_binding=1000)  # its class: 1,024 bytes
    x = alone.upload(np.arange(250))
    assert x.virtual.size == 1000
    assert alone.numbers(alone.scale(x, 2)).tolist() == [2 * i for i in range(250)]
    assert alone.stats["bytes_live"] % 1000 == 0


def test_a_view_is_stale_with_its_whole(alone: Bench) -> None:
    whole = alone.upload(np.ones(256, np.float32))
    view = alone.queue.view(whole, 0, 256)
    alone.scale(view, 2.0)
    whole.free()
    with pytest.raises(StaleBufferError):
        alone.scale(view, 2.0)
    alone.device.synchronize()
    with pytest.raises(StaleBufferError):
        alone.scale(view, 2.0)


def test_wholes_of_views_give_their_memory_back_within_a_queue(alone: Bench) -> None:
    """A chain through parts of buffers needs two of them at a time, however long it is."""
    numbers = np.arange(16384, dtype=np.float32)
    half = numbers.nbytes // 2
    x = alone.upload(numbers)
    for _ in range(8):
        y = alone.device.allocate(numbers.nbytes)
        for offset in (0, half):
            alone.scale_into(alone.queue.view(x, offset, half), alone.queue.view(y, offset, half), 2)
        x = y
    del y
    alone.device.flush()
    assert alone.stats["bytes_peak"] <= 2 * numbers.nbytes
    assert alone.numbers(x).tolist() == (256 * numbers).tolist()
