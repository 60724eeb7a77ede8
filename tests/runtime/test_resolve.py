"""Resolving: buffers are reused inside a queue and overwritten where that is right, and bound to the byte."""

from __future__ import annotations

import numpy as np
import pytest

from tests.runtime.helpers import LENGTHS, Bench, floats, scale_params

# Reuse inside a queue


@pytest.mark.gpu
def test_a_chain_of_dropped_results_needs_two_buffers(alone: Bench) -> None:
    x = alone.upload(np.arange(10))
    y = x
    with alone.queue.hold():
        for step in range(50):
            y = alone.add(y, x) if step % 2 else alone.add(x, y)
    del x
    assert alone.numbers(y).tolist() == [51 * i for i in range(10)]
    assert alone.stats["buffers_created"] <= 3


@pytest.mark.gpu
def test_results_that_are_held_have_buffers_of_their_own(alone: Bench) -> None:
    x = alone.upload(floats(1))
    held = [alone.scale(x, factor) for factor in range(10)]
    alone.device.flush()
    assert len({buffer.virtual.physical for buffer in [x, *held]}) == 11
    assert [alone.numbers(buffer).tolist() for buffer in held] == [[factor] for factor in range(10)]


@pytest.mark.gpu
def test_a_dropped_input_is_lent_again_after_its_last_reader(alone: Bench) -> None:
    x = alone.upload(np.arange(4))
    y = alone.add(x, x)  # not in place: x is bound twice
    z = alone.add(y, y)
    del x
    assert alone.numbers(z).tolist() == [0, 4, 8, 12]
    assert alone.stats["buffers_created"] == 2  # z sits where x was
    assert alone.numbers(y).tolist() == [0, 2, 4, 6]


@pytest.mark.gpu
def test_a_dropped_buffer_that_no_command_uses_is_there_for_the_first(alone: Bench) -> None:
    x, unused = alone.upload(np.arange(4)), alone.upload(np.arange(4))
    y = alone.scale(x, 2)
    del unused
    assert alone.numbers(y).tolist() == [0, 2, 4, 6]
    assert alone.stats["buffers_created"] == 2


# In place


@pytest.mark.gpu
def test_a_result_takes_over_an_input_that_dies(encoded: Bench) -> None:
    before = encoded.stats
    x = encoded.upload(np.arange(5))
    where = x.virtual.physical
    y = encoded.scale(x, 3)
    del x
    assert encoded.numbers(y).tolist() == [0, 3, 6, 9, 12]
    assert y.virtual.physical == where
    assert encoded.since(before)["in_place"] == 1


@pytest.mark.gpu
@pytest.mark.parametrize("target", [0, 1])
def test_either_input_may_be_taken_over(encoded: Bench, target: int) -> None:
    before = encoded.stats
    inputs = [encoded.upload(floats(1, 2)), encoded.upload(floats(10, 20))]
    y = encoded.add(inputs[0], inputs[1])
    del inputs[target]
    assert encoded.numbers(y).tolist() == [11, 22]
    assert encoded.numbers(inputs[0]).tolist() == ([10, 20] if target == 0 else [1, 2])
    assert encoded.since(before)["in_place"] == 1


@pytest.mark.gpu
def test_where_nothing_is_left_to_do_in_place_nothing_is_launched(encoded: Bench) -> None:
    copy = encoded.device.pipeline(encoded.scale_pipeline.program, in_place=[(((0, 1),), None)])
    for held in (True, False):
        x = encoded.upload(np.arange(5))
        y, before = encoded.device.allocate(x.nbytes), encoded.stats
        encoded.device.dispatch(copy, [x, y], scale_params(5, 1), (1, 1, 1))
        z = encoded.scale(y, 3)
        if not held:
            del x
        assert encoded.numbers(z).tolist() == [0, 3, 6, 9, 12]
        grown = encoded.since(before)
        assert (grown["commands"], grown["dispatches"]) == (2, 2 if held else 1)
        assert encoded.numbers(y).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.gpu
def test_a_chain_runs_in_one_buffer(alone: Bench) -> None:
    x = alone.upload(floats(1))
    for _ in range(10):
        x = alone.scale(x, 2)
    assert alone.numbers(x).tolist() == [1024]
    assert alone.stats["in_place"] == 10
    assert alone.stats["buffers_created"] == 1


@pytest.mark.gpu
def test_an_input_that_is_held_is_not_overwritten(alone: Bench) -> None:
    x = alone.upload(floats(1, 2))
    y = alone.scale(x, 5)
    assert alone.numbers(y).tolist() == [5, 10]
    assert alone.numbers(x).tolist() == [1, 2]
    assert alone.stats["in_place"] == 0


@pytest.mark.gpu
def test_an_input_that_is_read_later_is_not_overwritten(alone: Bench) -> None:
    x = alone.upload(floats(1, 2))
    y = alone.scale(x, 5)
    z = alone.scale(x, 7)  # the last to read x
    del x
    assert alone.numbers(y).tolist() == [5, 10]
    assert alone.numbers(z).tolist() == [7, 14]
    assert alone.stats["in_place"] == 1


@pytest.mark.gpu
def test_an_input_of_another_size_class_is_not_overwritten(alone: Bench) -> None:
    x = alone.upload(np.arange(128))
    y = alone.device.allocate(4)
    alone.scale_into(x, y, 5)
    del x
    assert alone.numbers(y).tolist() == [0]
    assert alone.stats["in_place"] == 0


@pytest.mark.gpu
def test_an_input_bound_twice_is_not_overwritten(alone: Bench) -> None:
    x = alone.upload(floats(1, 2))
    y = alone.add(x, x)
    del x
    assert alone.numbers(y).tolist() == [2, 4]
    assert alone.stats["in_place"] == 0


@pytest.mark.gpu
def test_an_input_that_is_a_view_is_not_overwritten(alone: Bench) -> None:
    x = alone.upload(np.arange(128))
    y = alone.scale(alone.queue.view(x, 256, 256), 2)
    del x
    assert alone.numbers(y).tolist() == [2 * i for i in range(64, 128)]
    assert alone.stats["in_place"] == 0


@pytest.mark.gpu
def test_an_input_that_is_bound_once_more_through_a_view_is_not_overwritten(alone: Bench) -> None:
    x = alone.upload(np.arange(64))
    y = alone.add(x, alone.queue.view(x, 0, 256))
    x.free()  # though the view would keep it
    assert alone.numbers(y).tolist() == [2 * i for i in range(64)]
    assert alone.stats["in_place"] == 0


@pytest.mark.gpu
def test_an_output_that_has_contents_is_not_moved(alone: Bench) -> None:
    x, y = alone.upload(floats(1, 2)), alone.upload(floats(0, 0))
    where = y.virtual.physical
    alone.scale_into(x, y, 4)
    del x
    assert alone.numbers(y).tolist() == [4, 8]
    assert y.virtual.physical == where
    assert alone.stats["in_place"] == 0


@pytest.mark.gpu
def test_a_kernel_without_the_variant_is_not_run_in_place(alone: Bench) -> None:
    source = """
    @group(0) @binding(0) var<storage, read> x: array<f32>;
    @group(0) @binding(1) var<storage, read_write> y: array<f32>;
    @compute @workgroup_size(1) fn swap() { y[0] = x[1]; y[1] = x[0]; }
    """
    x, y = alone.upload(floats(1, 2)), alone.device.allocate(8)
    alone.device.dispatch(alone.pipeline(source, "swap"), [x, y])
    del x
    assert alone.numbers(y).tolist() == [2, 1]
    assert alone.stats["in_place"] == 0


@pytest.mark.gpu
@pytest.mark.parametrize(("nbytes", "times"), [(40, 0), (20, 1)])
def test_a_kernel_that_asks_for_lengths_is_run_in_place_for_equal_ones_only(
    alone: Bench, nbytes: int, times: int
) -> None:
    source = """
    @group(0) @binding(0) var<storage, read> x: array<f32>;
    @group(0) @binding(1) var<storage, read_write> y: array<f32>;
    @compute @workgroup_size(1) fn mark() {
        for (var i = 0u; i < arrayLength(&y); i++) { y[i] = select(-1.0, x[i], i < 5u); }
    }
    """
    variant = """
    @group(0) @binding(0) var<storage, read_write> x: array<f32>;
    @compute @workgroup_size(1) fn mark() {
        for (var i = 5u; i < arrayLength(&x); i++) { x[i] = -1.0; }
    }
    """
    pipeline = alone.pipeline(source, "mark", in_place={0: variant})
    x, y = alone.upload(np.arange(5)), alone.device.allocate(nbytes)
    alone.device.dispatch(pipeline, [x, y])
    del x
    assert alone.numbers(y).tolist() == [0, 1, 2, 3, 4, -1, -1, -1, -1, -1][: nbytes // 4]
    assert alone.stats["in_place"] == times


# Exact sizes


@pytest.mark.gpu
@pytest.mark.parametrize(("nbytes", "length"), [(4, 1), (10, 3), (12, 3), (1000, 250), (70_000, 17_500)])
def test_array_length_is_the_buffers_own(encoded: Bench, nbytes: int, length: int) -> None:
    pipeline = encoded.pipeline(LENGTHS, "lengths")
    x, y = encoded.device.upload(bytes(nbytes)), encoded.device.allocate(8)
    encoded.device.dispatch(pipeline, [x, y])
    assert encoded.device.read(y).view(np.uint32).tolist() == [length, 2]


@pytest.mark.gpu
def test_array_length_of_buffers_that_share_a_size_class(alone: Bench) -> None:
    pipeline = alone.pipeline(LENGTHS, "lengths")
    found = []
    for _ in range(2):
        for words in (1, 2, 3, 64):
            x, y = alone.upload(np.zeros(words)), alone.device.allocate(8)
            alone.device.dispatch(pipeline, [x, y])
            found.append(int(alone.device.read(y).view(np.uint32)[0]))
    assert found == [1, 2, 3, 64] * 2


@pytest.mark.gpu
def test_array_length_of_a_view(alone: Bench) -> None:
    x, y = alone.upload(np.zeros(200)), alone.device.allocate(8)
    alone.device.dispatch(alone.pipeline(LENGTHS, "lengths"), [alone.queue.view(x, 256, 12), y])
    assert alone.device.read(y).view(np.uint32).tolist() == [3, 2]
