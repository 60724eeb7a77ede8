"""Axes carried through movement, against brute force: which axes of the result does a value depend on?"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.graph.helpers import value
from webgrad.graph.node import make
from webgrad.ops import primitives
from webgrad.ops.table import TABLE
from webgrad.schedule.axes import nontrivial, runs_of, through_map, through_move

Shape = tuple[int, ...]
Array = np.ndarray[Any, Any]


def depends(array: np.ndarray) -> frozenset[int]:
    """The axes along which an array's values differ."""
    return frozenset(
        axis
        for axis, side in enumerate(array.shape)
        if side > 1 and (array != np.take(array, [0], axis)).any()
    )


def labelled(shape: Shape, axes: frozenset[int]) -> Array:
    """An array with another value for each place along these axes, and the same along the others."""
    sides = [side if axis in axes else 1 for axis, side in enumerate(shape)]
    return np.broadcast_to(np.arange(math.prod(sides)).reshape(sides), shape)


def factorings(size: int) -> st.SearchStrategy[Shape]:
    divisors = [each for each in range(1, size + 1) if size % each == 0]

    @st.composite
    def build(draw: st.DrawFn) -> Shape:
        left, sides = size, []
        for _ in range(draw(st.integers(0, 4))):
            side = draw(st.sampled_from([each for each in divisors if left % each == 0]))
            sides.append(side)
            left //= side
        return (*sides, left) if left > 1 or not sides else tuple(sides)

    return build()


@pytest.mark.property
@given(data=st.data(), size=st.sampled_from([12, 16, 24, 60, 64]))
def test_through_reshape(data: st.DataObject, size: int) -> None:
    before, after = data.draw(factorings(size)), data.draw(factorings(size))
    axes = frozenset(data.draw(st.sets(st.sampled_from(sorted(nontrivial(before)) or [0])))) & nontrivial(
        before
    )
    node = make(TABLE["reshape"], (value(*before),), (after,))
    found = through_move(node.sig, value(*before).sig, axes)
    real = depends(labelled(before, axes).reshape(after))
    if found is None:
        return  # mixed: `test_a_reshape_that_mixes_nothing…` shows that this is not said too often
    assert real <= found
    if axes:
        assert math.prod(after[axis] for axis in found) == math.prod(before[axis] for axis in axes)
    else:
        assert found == frozenset()


@pytest.mark.parametrize(
    ("before", "axes", "after", "expected"),
    [
        ((4, 6), {0}, (4, 2, 3), {0}),
        ((4, 6), {1}, (4, 2, 3), {1, 2}),
        ((4, 6), {0, 1}, (24,), {0}),
        ((4, 6), {0}, (24,), None),
        ((4, 6), {0}, (2, 2, 6), {0, 1}),
        ((4, 6), {0}, (8, 3), None),
        ((4, 6), {0, 1}, (8, 3), {0, 1}),
        ((256,), {0}, (256, 1), {0}),
        ((256, 1), {0}, (256,), {0}),
        ((1, 5, 1), {1}, (5, 1, 1), {0}),
        ((2, 3, 4, 5), {0, 1}, (6, 20), {0}),
        ((2, 3, 4, 5), {2}, (6, 20), None),
        ((), set(), (1, 1), set()),
        ((1, 1), set(), (), set()),
        ((4, 6), set(), (6, 4), set()),
    ],
)
def test_a_reshape_that_mixes_nothing_keeps_the_axes(
    before: Shape, axes: set[int], after: Shape, expected: set[int] | None
) -> None:
    node = make(TABLE["reshape"], (value(*before),), (after,))
    found = through_move(node.sig, value(*before).sig, frozenset(axes))
    assert found == (None if expected is None else frozenset(expected))


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_through_permute(order: tuple[int, ...]) -> None:
    shape = (2, 3, 4)
    node = make(TABLE["permute"], (value(*shape),), (order,))
    for axes in ({0}, {1, 2}, {0, 1, 2}, set()):
        found = through_move(node.sig, value(*shape).sig, frozenset(axes))
        assert found == depends(labelled(shape, frozenset(axes)).transpose(order))


def test_through_expand_and_broadcasting() -> None:
    source = value(3, 1)
    node = primitives.expand(source, (5, 3, 7))
    assert through_move(node.sig, source.sig, frozenset({0})) == frozenset({1})
    assert through_map(node.sig, source.sig, frozenset({0})) == frozenset({1})
    assert through_map(node.sig, value(7).sig, frozenset({0})) == frozenset({2})
    assert through_map(node.sig, value().sig, frozenset()) == frozenset()


@pytest.mark.parametrize("name", ["flip", "slice", "pad"])
def test_axes_stay_where_nothing_changes_places(name: str) -> None:
    source = value(4, 6)
    node = {
        "flip": primitives.flip(source, (0,)),
        "slice": primitives.slice_(source, ((0, 2, 1), (0, 6, 2))),
        "pad": primitives.pad(source, ((1, 1), (0, 0))),
    }[name]
    assert through_move(node.sig, source.sig, frozenset({1})) == frozenset({1})


def test_windows_depend_on_what_they_are_cut_from() -> None:
    source = value(4, 6)
    node = primitives.window(source, 0, 2, 1, 2)
    assert through_move(node.sig, source.sig, frozenset({0})) == frozenset({0, 2})
    assert through_move(node.sig, source.sig, frozenset({1})) == frozenset({1})
    assert through_move(node.sig, source.sig, frozenset()) == frozenset()


def test_nontrivial() -> None:
    assert nontrivial((1, 4, 1, 0, 2)) == {1, 3, 4}
    assert nontrivial(()) == frozenset()


@given(st.sets(st.integers(0, 9)))
def test_runs(axes: set[int]) -> None:
    runs = runs_of(sorted(axes))
    assert [axis for run in runs for axis in run] == sorted(axes)
    assert all(run == list(range(run[0], run[-1] + 1)) for run in runs)
    assert all(after[0] > before[-1] + 1 for before, after in itertools.pairwise(runs))
