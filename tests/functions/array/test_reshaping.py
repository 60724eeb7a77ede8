"""Other shapes and orders of axes against NumPy, and mistakes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from webgrad.errors import AxisError, DTypeError, ShapeError
from webgrad.functions.array import reshaping as move
from webgrad.functions.array.creation import asarray
from webgrad.graph.walk import pending
from webgrad.tensor import Tensor

CUBE = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def on_cpu(values: Any, dtype: Any = None) -> Tensor:
    return asarray(values, dtype, device="cpu")


def check(result: Tensor, expected: Any) -> None:
    found = result.numpy()
    assert found.shape == np.shape(expected)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "shape", [24, -1, (24,), (4, 6), (-1, 2), (2, -1, 3), [1, 24, 1], (2, 3, 4), (24, -1)]
)
def test_reshape(shape: Any) -> None:
    check(move.reshape(on_cpu(CUBE), shape), CUBE.reshape(shape))


def test_reshape_of_one_and_of_nothing() -> None:
    check(move.reshape(on_cpu(5.0), (1, 1)), [[5.0]])
    check(move.reshape(on_cpu([5.0]), ()), 5.0)
    check(move.reshape(on_cpu(np.zeros((0, 3))), (3, 0, 2)), np.zeros((3, 0, 2)))
    check(move.reshape(on_cpu(np.zeros((0, 3))), (-1, 3)), np.zeros((0, 3)))


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((5, 5), r"reshape of \(2, 3, 4\) \(24 elements\) to \(5, 5\) \(25 elements\)"),
        ((-1, 5), "no number in place of -1"),
        ((-1, -1), "only one of them may be -1"),
        ((-2, 12), "sizes are 0 or more"),
        ((-1, 0), "no number in place of -1"),
    ],
)
def test_mistaken_shapes(shape: Any, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        move.reshape(on_cpu(CUBE), shape)


def test_a_size_is_a_whole_number() -> None:
    with pytest.raises(DTypeError, match=r"reshape: a size must be an integer, not 2\.0"):
        move.reshape(on_cpu(CUBE), (2.0, 12))  # type: ignore[arg-type]


def test_flatten() -> None:
    check(move.flatten(on_cpu(CUBE)), CUBE.reshape(-1))
    check(move.flatten(on_cpu(CUBE), 1), CUBE.reshape(2, 12))
    check(move.flatten(on_cpu(CUBE), 0, 1), CUBE.reshape(6, 4))
    check(move.flatten(on_cpu(5.0)), [5.0])
    with pytest.raises(AxisError, match="axis 2 comes after axis 1"):
        move.flatten(on_cpu(CUBE), 2, 1)


def test_squeeze_and_expand_dims() -> None:
    x = on_cpu(np.ones((1, 3, 1)))
    for axis in (None, 0, -1, (0, 2)):
        assert move.squeeze(x, axis).shape == np.squeeze(np.ones((1, 3, 1)), axis).shape
    for place in (0, 1, -1, (0, 2), (-1, 0), (1, 3)):
        check(move.expand_dims(on_cpu(CUBE), place), np.expand_dims(CUBE, place))
    assert move.expand_dims(on_cpu(CUBE), [1, 3]).shape == (2, 1, 3, 1, 4)
    assert move.unsqueeze(on_cpu(1.0), 0).shape == (1,)
    with pytest.raises(ShapeError, match=r"squeeze: axis 1 of a tensor of shape \(1, 3, 1\) has size 3"):
        move.squeeze(x, 1)
    with pytest.raises(AxisError, match="expand_dims: there is no axis 4"):
        move.expand_dims(on_cpu(CUBE), 4)


def test_broadcasting() -> None:
    row = np.arange(3)
    check(move.broadcast_to(on_cpu(row), (2, 3)), np.broadcast_to(row, (2, 3)))
    check(move.broadcast_to(on_cpu(7), 2), [7, 7])
    check(move.broadcast_to(on_cpu(np.ones((1, 3))), (0, 3)), np.ones((0, 3)))
    a, b = move.broadcast_arrays(on_cpu(np.ones((3, 1))), on_cpu(row))
    check(a, np.ones((3, 3)))
    check(b, np.broadcast_to(row, (3, 3)))
    assert move.broadcast_arrays() == ()
    check(move.expand(on_cpu(np.ones((3, 1))), -1, 4), np.ones((3, 4)))
    check(move.expand(on_cpu(np.ones((3, 1))), (2, -1, -1)), np.ones((2, 3, 1)))


def test_mistakes_in_broadcasting() -> None:
    x = on_cpu(np.ones((2, 3)))
    with pytest.raises(ShapeError, match=r"broadcast_to: .*\(2, 3\)"):
        move.broadcast_to(x, (3, 2))
    with pytest.raises(ShapeError, match="broadcast_to"):
        move.broadcast_to(x, (3,))
    with pytest.raises(ShapeError, match="is not a shape"):
        move.broadcast_to(x, (-1, 3))
    with pytest.raises(ShapeError, match="-1 only for an axis that x has"):
        move.expand(x, -1, 2, 3)
    with pytest.raises(ShapeError, match="broadcast_arrays: the shapes"):
        move.broadcast_arrays(x, on_cpu(np.ones(2)))


@pytest.mark.parametrize("axes", [(0, 1, 2), (2, 0, 1), (-1, 0, 1), [1, 0, 2]])
def test_permutations(axes: Any) -> None:
    check(move.permute_dims(on_cpu(CUBE), axes), np.transpose(CUBE, axes))
    check(move.transpose(on_cpu(CUBE), axes), np.transpose(CUBE, axes))


def test_transposes() -> None:
    check(move.transpose(on_cpu(CUBE)), CUBE.T)
    check(move.transpose(on_cpu(CUBE), None), CUBE.T)
    check(move.transpose(on_cpu(CUBE), 0, 1), np.swapaxes(CUBE, 0, 1))
    check(move.transpose(on_cpu(CUBE), 2, 0, 1), CUBE.transpose(2, 0, 1))
    check(move.swapaxes(on_cpu(CUBE), 0, -1), np.swapaxes(CUBE, 0, -1))
    check(move.matrix_transpose(on_cpu(CUBE)), np.swapaxes(CUBE, -1, -2))
    check(move.transpose(on_cpu(1.0)), 1.0)


@pytest.mark.parametrize(
    ("source", "destination"), [(0, -1), (-1, 0), ((0, 1), (-1, -2)), ([2, 0], [0, 1]), (1, 1)]
)
def test_moveaxis(source: Any, destination: Any) -> None:
    check(move.moveaxis(on_cpu(CUBE), source, destination), np.moveaxis(CUBE, source, destination))


def test_flip() -> None:
    for axis in (None, 0, -1, (0, 2), ()):
        check(move.flip(on_cpu(CUBE), axis), np.flip(CUBE, axis))


def test_movement_is_movement_only() -> None:
    x = move.flip(move.swapaxes(move.expand_dims(on_cpu(CUBE), 1), 0, 2), 0)
    assert {node.sig.kind for node in pending([x.node])} == {"leaf", "move"}
    assert move.permute_dims(x, (0, 1, 2, 3)).node is x.node


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: move.permute_dims(x, (0, 1)), r"permute_dims: \(0, 1\) must name each of the 3 axes"),
        (lambda x: move.permute_dims(x, (0, 1, 1)), "must name each"),
        (lambda x: move.permute_dims(x, 1), r"permute_dims: \(1,\) must name each of the 3 axes"),  # type: ignore[arg-type]
        (lambda x: move.permute_dims(x, (0, 1, 3)), "permute_dims: there is no axis 3"),
        (lambda x: move.swapaxes(x, 0, 3), "swapaxes: there is no axis 3"),
        (lambda x: move.moveaxis(x, (0, 1), (0,)), "as many destinations as sources"),
        (lambda x: move.moveaxis(x, (0, 0), (0, 1)), "each once"),
        (lambda x: move.flip(x, 5), "flip: there is no axis 5"),
    ],
)
def test_mistaken_axes(call: Callable[[Tensor], Tensor], message: str) -> None:
    with pytest.raises(AxisError, match=message):
        call(on_cpu(CUBE))


def test_a_vector_has_no_matrix_transpose() -> None:
    with pytest.raises(ShapeError, match=r"matrix_transpose: a tensor of shape \(2,\) has no two axes"):
        move.matrix_transpose(on_cpu([1, 2]))


def test_broadcast_shapes() -> None:
    assert move.broadcast_shapes() == ()
    assert move.broadcast_shapes((3, 1), (2,), 1, (1, 1, 1)) == (1, 3, 2)
    with pytest.raises(ShapeError, match=r"broadcast_shapes: the shapes \(3,\) and \(2,\) do not broadcast"):
        move.broadcast_shapes((3,), (2,))
