"""Joined, cut, repeated, padded and masked tensors against NumPy, and mistakes."""

from __future__ import annotations

from typing import Any

import hypothesis.extra.numpy as arrays
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from webgrad import dtypes
from webgrad.errors import AxisError, DTypeError, ShapeError
from webgrad.functions.array import manipulation as move
from webgrad.functions.array.creation import asarray
from webgrad.graph.walk import pending
from webgrad.tensor import Tensor

Array = np.ndarray[Any, Any]
CUBE = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def on_cpu(values: Any, dtype: Any = None) -> Tensor:
    return asarray(values, dtype, device="cpu")


def check(result: Tensor, expected: Any) -> None:
    found = result.numpy()
    assert found.shape == np.shape(expected)
    np.testing.assert_array_equal(found, expected)


# Rolling


@pytest.mark.parametrize("shift", [0, 1, -1, 3, 7, -25])
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_roll(shift: int, axis: int | None) -> None:
    check(move.roll(on_cpu(CUBE), shift, axis), np.roll(CUBE, shift, axis))


def test_roll_along_several_axes() -> None:
    check(move.roll(on_cpu(CUBE), (1, -2), (0, 2)), np.roll(CUBE, (1, -2), (0, 2)))
    check(move.roll(on_cpu(CUBE), 1, (1, 2)), np.roll(CUBE, 1, (1, 2)))
    check(move.roll(on_cpu(CUBE), (1, 2)), np.roll(CUBE, (1, 2)))
    check(move.roll(on_cpu(np.zeros((0, 2))), 3, 0), np.zeros((0, 2)))
    with pytest.raises(ShapeError, match="as many shifts as axes"):
        move.roll(on_cpu(CUBE), (1, 2, 3), (0, 1))
    with pytest.raises(DTypeError, match="a shift must be an integer"):
        move.roll(on_cpu(CUBE), 1.5)  # type: ignore[arg-type]


# Joining


@pytest.mark.parametrize("axis", [0, 1, -1, None])
def test_concat(axis: int | None) -> None:
    check(move.concat([on_cpu(CUBE), on_cpu(CUBE + 100)], axis), np.concatenate([CUBE, CUBE + 100], axis))


@pytest.mark.parametrize("count", [1, 2, 6, 7, 36, 37, 100])
def test_concat_of_many_is_a_tree(count: int) -> None:
    parts = [np.full((2, number % 3), number, np.int32) for number in range(count)]
    result = move.concat([on_cpu(each) for each in parts], axis=1)
    widest = max(len(node.inputs) for node in pending([result.node]))
    assert widest <= 6
    check(result, np.concatenate(parts, axis=1))


def test_concat_brings_dtypes_together() -> None:
    assert move.concat([on_cpu([1], dtypes.int8), on_cpu([2], dtypes.uint8)]).dtype is dtypes.int16
    many = [on_cpu([1], dtypes.int32)] * 7 + [on_cpu([2.5])]
    assert move.concat(many).tolist() == [1.0] * 7 + [2.5]


def test_stack_hstack_vstack() -> None:
    a, b = np.array([1, 2, 3]), np.array([4, 5, 6])
    for axis in (0, 1, -1, -2):
        check(move.stack([on_cpu(a), on_cpu(b)], axis), np.stack([a, b], axis))
    for mine, theirs in ((move.hstack, np.hstack), (move.vstack, np.vstack)):
        check(mine([on_cpu(a), on_cpu(b)]), theirs([a, b]))
        check(mine([on_cpu(CUBE), on_cpu(CUBE)]), theirs([CUBE, CUBE]))
        check(mine([on_cpu(1), on_cpu(2)]), theirs([1, 2]))
    check(move.stack([on_cpu(np.zeros((0, 2)))] * 3), np.zeros((3, 0, 2)))
    check(move.vstack([on_cpu(np.zeros(0))] * 2), np.zeros((2, 0)))


def test_mistakes_in_joining() -> None:
    x = on_cpu(CUBE)
    with pytest.raises(ShapeError, match=r"concat along axis 0: the shapes \(2, 3, 4\) and \(2, 3\)"):
        move.concat([x, on_cpu(np.ones((2, 3)))])
    with pytest.raises(ShapeError, match="must be equal on every other axis"):
        move.concat([x, on_cpu(np.ones((2, 4, 4)))])
    with pytest.raises(ShapeError, match="concat of no tensors"):
        move.concat([])
    with pytest.raises(DTypeError, match="a list or tuple of tensors, not a Tensor"):
        move.concat(x)  # type: ignore[arg-type]
    with pytest.raises(AxisError, match="concat: there is no axis 3"):
        move.concat([x, x], axis=3)
    with pytest.raises(ShapeError, match=r"stack: the shapes \(2, 3, 4\) and \(3,\) differ"):
        move.stack([x, on_cpu(np.ones(3))])
    with pytest.raises(DTypeError, match="stack takes a webgrad tensor, not a ndarray"):
        move.stack([x, CUBE])  # type: ignore[list-item]


# Cutting


@pytest.mark.parametrize("where", [1, 2, 3, 6, [2], [1, 4], [2, 2], [4, 1], [-2], [0, 9], np.array([3])])
def test_split(where: Any) -> None:
    values = np.arange(12).reshape(2, 6)
    found = move.split(on_cpu(values), where, axis=1)
    expected = np.split(values, where, axis=1)
    assert len(found) == len(expected)
    for each, wanted in zip(found, expected, strict=True):
        check(each, wanted)


@pytest.mark.parametrize(
    ("size", "count", "expected"), [(5, 2, [3, 2]), (6, 4, [2, 2, 2]), (2, 5, [1, 1]), (0, 2, [0, 0])]
)
def test_chunk(size: int, count: int, expected: list[int]) -> None:
    parts = move.chunk(on_cpu(np.arange(size)), count)
    assert [each.shape[0] for each in parts] == expected
    assert [value for each in parts for value in each.tolist()] == list(range(size))


def test_unstack() -> None:
    for axis in (0, 1, -1):
        for found, expected in zip(move.unstack(on_cpu(CUBE), axis), np.moveaxis(CUBE, axis, 0), strict=True):
            check(found, expected)
    assert move.unstack(on_cpu(np.zeros((0, 2)))) == ()


def test_mistakes_in_cutting() -> None:
    x = on_cpu(np.arange(5))
    with pytest.raises(ShapeError, match=r"size 5, which does not make 2 equal parts; use chunk"):
        move.split(x, 2)
    with pytest.raises(ShapeError, match="equal parts"):
        move.split(x, 0)
    with pytest.raises(ShapeError, match="the number of parts must be 1 or more, not 0"):
        move.chunk(x, 0)
    with pytest.raises(AxisError, match="unstack: there is no axis 0"):
        move.unstack(on_cpu(1.0))


# Repeating


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_repeat(axis: int | None) -> None:
    for times in (0, 1, 3):
        check(move.repeat(on_cpu(CUBE), times, axis), np.repeat(CUBE, times, axis))


def test_repeat_each_so_many_times() -> None:
    counts = [2, 0, 3]
    expected = np.repeat(CUBE, counts, 1)
    check(move.repeat(on_cpu(CUBE), counts, 1), expected)
    check(move.repeat(on_cpu(CUBE), on_cpu(counts), 1), expected)
    check(move.repeat_interleave(on_cpu(CUBE), tuple(counts), 1), expected)
    twos: list[Any] = [np.array(2), on_cpu(np.array(2)), on_cpu(np.array([2], np.uint8))]
    for twice in twos:
        check(move.repeat(on_cpu(CUBE), twice, 1), np.repeat(CUBE, 2, 1))
    check(move.tile(on_cpu(CUBE), twos[0]), np.tile(CUBE, 2))
    with pytest.raises(DTypeError, match="an integer"):
        move.repeat(on_cpu(CUBE), on_cpu(np.array([1.0, 2.0])), 1)
    with pytest.raises(ShapeError, match="has size 3, and 2 repeats were given"):
        move.repeat(on_cpu(CUBE), [1, 2], 1)
    with pytest.raises(ShapeError, match="must be 0 or more, not -1"):
        move.repeat(on_cpu(CUBE), -1)


@pytest.mark.parametrize("times", [2, (2,), (2, 1), (1, 2, 3), (2, 1, 1, 2), 0, ()])
def test_tile(times: Any) -> None:
    check(move.tile(on_cpu(CUBE), times), np.tile(CUBE, times))
    check(move.tile(on_cpu(5), times), np.tile(5, times))


# Padding


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect"])
@pytest.mark.parametrize(
    "widths", [0, 1, 2, (1, 2), ((0, 1), (2, 0), (1, 3)), [[1, 1]], ((0, 0), (0, 0), (4, 9))]
)
def test_pad(mode: Any, widths: Any) -> None:
    check(move.pad(on_cpu(CUBE), widths, mode), np.pad(CUBE, widths, mode))


def test_pad_with_other_values() -> None:
    check(move.pad(on_cpu(CUBE), 1, constant_values=-np.inf), np.pad(CUBE, 1, constant_values=-np.inf))
    check(move.pad(on_cpu([5]), 2, "reflect"), [5] * 5)
    check(move.pad(on_cpu([5]), 2, "edge"), [5] * 5)
    check(move.pad(on_cpu(np.zeros((0, 2))), ((1, 0), (0, 0))), np.zeros((1, 2)))
    assert move.pad(on_cpu([True]), 1).tolist() == [False, True, False]


def test_mistakes_in_padding() -> None:
    x = on_cpu(CUBE)
    with pytest.raises(ShapeError, match=r'mode must be one of "constant", "edge", "reflect", not \'wrap\''):
        move.pad(x, 1, "wrap")
    with pytest.raises(ShapeError, match="for each of the 3 axes"):
        move.pad(x, ((1, 1), (2, 2)))
    with pytest.raises(ShapeError, match="widths are 0 or more"):
        move.pad(x, -1)
    with pytest.raises(DTypeError, match="a width must be an integer"):
        move.pad(x, 1.5)  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match="is empty: there is no element to repeat"):
        move.pad(on_cpu(np.zeros((0, 2))), 1, "edge")
    with pytest.raises(DTypeError, match="pad"):
        move.pad(on_cpu([1], dtypes.int8), 1, constant_values=1000)


# Triangles, diagonals, one-hot


@pytest.mark.parametrize("k", [-5, -1, 0, 1, 2, 9])
@pytest.mark.parametrize("shape", [(3, 3), (2, 4), (4, 2), (2, 3, 5), (0, 3)])
def test_triangles(k: int, shape: tuple[int, ...]) -> None:
    values = np.arange(1, np.prod(shape) + 1, dtype=np.int32).reshape(shape)
    check(move.tril(on_cpu(values), k), np.tril(values, k))
    check(move.triu(on_cpu(values), k), np.triu(values, k))


def test_triangles_drop_what_is_not_a_number() -> None:
    assert move.tril(on_cpu([[1.0, np.nan], [np.inf, 2.0]])).tolist() == [[1.0, 0.0], [np.inf, 2.0]]
    assert move.triu(on_cpu([[True, True], [True, True]])).dtype is dtypes.bool
    with pytest.raises(ShapeError, match=r"tril: a tensor of shape \(3,\) is not a matrix"):
        move.tril(on_cpu([1, 2, 3]))


@pytest.mark.parametrize("offset", [-4, -2, -1, 0, 1, 3, 7])
@pytest.mark.parametrize("axes", [(0, 1), (1, 0), (0, 2), (-1, -2)])
def test_diagonals(offset: int, axes: tuple[int, int]) -> None:
    check(move.diagonal(on_cpu(CUBE), offset, *axes), np.diagonal(CUBE, offset, *axes))


@pytest.mark.parametrize("k", [-3, -1, 0, 2])
@pytest.mark.parametrize("values", [[1, 2, 3], [7], [], [[1, 2, 3], [4, 5, 6]]])
def test_diag(values: Any, k: int) -> None:
    array = np.asarray(values, np.int32)
    check(move.diag(on_cpu(array), k), np.diag(array, k))


def test_mistakes_with_diagonals() -> None:
    with pytest.raises(ShapeError, match="are the same"):
        move.diagonal(on_cpu(CUBE), 0, 1, -2)
    with pytest.raises(ShapeError, match="neither a vector nor a matrix"):
        move.diag(on_cpu(CUBE))
    with pytest.raises(AxisError, match="diagonal: there is no axis 1"):
        move.diagonal(on_cpu([1, 2]))


@pytest.mark.parametrize("dtype", [each for each in dtypes.REAL if each.kind in "iu"])
def test_one_hot(dtype: dtypes.DType) -> None:
    places = on_cpu([[2, 0], [1, 3]], dtype)
    result = move.one_hot(places, 4)
    assert result.dtype is dtypes.int32
    check(result, np.eye(4, dtype=np.int32)[[[2, 0], [1, 3]]])
    assert move.one_hot(places, 4, dtype=dtypes.float32).dtype is dtypes.float32


def test_one_hot_out_of_range_is_all_zeros() -> None:
    assert move.one_hot(on_cpu([-1, 3, 1]), 3).tolist() == [[0, 0, 0], [0, 0, 0], [0, 1, 0]]
    assert move.one_hot(on_cpu([44], dtypes.uint8), 301).numpy().nonzero()[1].tolist() == [44]
    with pytest.raises(DTypeError, match="one_hot is not offered for float32"):
        move.one_hot(on_cpu([1.0]), 3)
    with pytest.raises(ShapeError, match="num_classes must be 1 or more, not 0"):
        move.one_hot(on_cpu([1]), 0)


@pytest.mark.property
@given(
    arrays.arrays(
        np.int32, arrays.array_shapes(min_dims=1, max_dims=3, max_side=4), elements=st.integers(-9, 9)
    ),
    st.data(),
)
def test_padding_by_any_widths(values: Array, data: st.DataObject) -> None:
    widths = data.draw(
        st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), min_size=values.ndim, max_size=values.ndim)
    )
    for mode in ("constant", "edge", "reflect"):
        check(move.pad(on_cpu(values), widths, mode), np.pad(values, widths, mode))


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", dtypes.REAL, ids=lambda dtype: dtype.name)
def test_pairs_of_every_dtype_are_joined(dtype: dtypes.DType) -> None:
    for count in (1, 3, 4):
        ones = asarray(np.ones((count, 1)), dtype, device="webgpu:0")
        joined = move.concat([ones, ones == 0], axis=1)  # as the parts of complex numbers are
        assert joined.astype(dtypes.float32).tolist() == [[1.0, 0.0]] * count
