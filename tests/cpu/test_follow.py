"""Which part of every value a block needs: the part of a result, computed from the parts, is the part."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from tests.cpu.helpers import RNG, apply, drawn, fold, node_of
from webgrad.cpu.follow import Part, block_shape, cut, follow, index_of
from webgrad.cpu.operations import operation_of
from webgrad.graph.node import Node
from webgrad.ops import primitives

X = drawn(4, 6, 10)
INDEX = node_of(RNG.integers(0, 4, (3, 5)).astype(np.int32))
MADE: dict[str, Callable[[], Node]] = {
    "map": lambda: apply("add", X, drawn(6, 1)),
    "expand": lambda: primitives.expand(drawn(6, 1), (4, 6, 10)),
    "permute": lambda: primitives.permute(X, (2, 0, 1)),
    "join": lambda: primitives.reshape(X, (24, 10)),
    "split": lambda: primitives.reshape(X, (2, 2, 6, 5, 2)),
    "line": lambda: primitives.reshape(X, (240,)),
    "mix": lambda: primitives.reshape(X, (6, 4, 10)),
    "units": lambda: primitives.reshape(X, (1, 4, 1, 60, 1)),
    "slice": lambda: primitives.slice_(X, ((0, 4, 1), (1, 6, 2), (0, 10, 1))),
    "flip": lambda: primitives.flip(X, (1,)),
    "window": lambda: primitives.window(X, 1, 3, 2, 1),
    "pad": lambda: primitives.pad(X, ((0, 0), (0, 0), (1, 2)), 3.0),
    "take": lambda: primitives.take(X, INDEX, 1),
    "take_along": lambda: primitives.take_along(
        X, node_of(RNG.integers(0, 10, (4, 1, 7)).astype(np.int32)), 2
    ),
    "concat": lambda: primitives.concat([X, X], 1),
    "reduce": lambda: fold("sum", X, 1),
}
# Axes of the result that cannot be cut; all others can
REFUSED = {
    "join": {0},
    "split": {1, 4},
    "line": {0},
    "mix": {0, 1},
    "units": {3},
    "slice": {1},
    "flip": {1},
    "window": {1, 3},
    "pad": {2},
    "concat": {1},
}


@pytest.mark.parametrize("name", MADE)
def test_a_block_is_made_of_its_parts(name: str) -> None:
    node = MADE[name]()
    inputs = [each.sig for each in node.inputs]
    arrays = [np.asarray(each.storage, each.sig.dtype.numpy) for each in node.inputs]
    whole = operation_of(node.sig, inputs, node.sig.shape).function(*arrays)
    for axis in range(len(node.sig.shape)):
        side = node.sig.shape[axis]
        if side == 1:
            continue
        part: Part = tuple((axis, 1) if at == axis else None for at in range(len(node.sig.shape)))
        parts = follow(node.sig, inputs, part)
        assert (parts is None) == (axis in REFUSED.get(name, ()))
        if parts is None:
            continue
        for start, stop in ((0, 1), (1, side), (0, side)):
            block = {axis: (start, stop)}
            shape = block_shape(node.sig.shape, part, {axis: stop - start})
            pieces = [array[index_of(each, block)] for array, each in zip(arrays, parts, strict=True)]
            got = operation_of(node.sig, inputs, shape).function(*pieces)
            np.testing.assert_allclose(got, whole[index_of(part, block)], rtol=1e-6)


@pytest.mark.parametrize(
    ("shape", "pieces", "lengths"),
    [
        ((1 << 20,), 16, [(1 << 16,)]),
        ((3, 1000), 4, [(1, 500)]),
        ((100, 7), 10, [(10, 7)]),
        ((5, 3, 4), 1, [(5, 3, 4)]),
        ((10,), 3, [(4,), (2,)]),
    ],
)
def test_cuts(shape: tuple[int, ...], pieces: int, lengths: list[tuple[int, ...]]) -> None:
    ranges = cut(shape, range(len(shape)), pieces, {})
    full = [ranges.get(axis, [(0, side)]) for axis, side in enumerate(shape)]
    found = {tuple(stop - start for start, stop in block) for block in itertools.product(*full)}
    assert found == set(lengths)
    for axis, each in ranges.items():
        assert [start for start, _ in each] == [0, *(stop for _, stop in each[:-1])]
        assert each[-1][1] == shape[axis]


def test_a_cut_keeps_the_least_side() -> None:
    assert cut((100, 100), (0, 1), 50, {0: 40, 1: 10}) == {
        0: [(0, 50), (50, 100)],
        1: [(start, start + 10) for start in range(0, 100, 10)],
    }
