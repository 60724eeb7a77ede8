"""Index expressions: always equal to brute force, and without divisions where none are needed."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.graph.helpers import value
from webgrad.graph.node import make
from webgrad.lower.index import ZERO, Atom, Index, constant, flatten, unflatten, variable
from webgrad.lower.movement import moved
from webgrad.ops.table import TABLE

Shape = tuple[int, ...]
WORD = 1 << 32


def evaluate(index: Index, values: Mapping[Any, int]) -> int:
    """An index as a number; every part must stay in its bounds, and unsigned arithmetic must be exact."""
    total = index.constant
    for atom, factor in index.terms.items():
        number = evaluate_atom(atom, values)
        assert atom.low <= number <= atom.high, f"{atom!r} = {number}, not {atom.low} to {atom.high}"
        total += factor * number
    assert index.low <= total <= index.high
    return total


def evaluate_atom(atom: Atom, values: Mapping[Any, int]) -> int:
    if atom.expression is None:
        return values[atom.name]
    inner = evaluate(atom.expression, values)
    if atom.kind == "limit":  # as unsigned: what is negative is beyond the size
        return min(inner % WORD, atom.divisor - 1)
    assert inner >= 0, f"{atom!r} divides {inner}: unsigned division would be wrong"
    return inner // atom.divisor if atom.kind == "quotient" else inner % atom.divisor


def divisions(*indices: Index) -> int:
    """How many quotients and remainders are left."""
    return sum(
        (atom.kind in ("quotient", "remainder")) + (divisions(atom.expression) if atom.expression else 0)
        for index in indices
        for atom in index.terms
    )


# Rules


X = variable("x", 1000)
A, R = variable("a", 50), variable("r", 6)


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ((A * 6 + R) // 6, A),
        ((A * 6 + R) % 6, R),
        ((A * 12 + R) // 12, A),
        ((A * 6 + R) // 24, A // 4),
        ((A * 6 + R) % 24, (A % 4) * 6 + R),
        ((X // 5) // 7, X // 35),
        ((X % 35) // 5, (X // 5) % 7),
        ((X % 35) % 5, X % 5),
        ((X % 7) * 3 + (X // 7) * 21, X * 3),
        ((X % 7) + ((X // 7) % 5) * 7, X % 35),
        ((X // 7) * 7 + X % 7, X),
        (X // 1, X),
        (X % 1, ZERO),
        (X // 1000, ZERO),
        (X % 1000, X),
        (R.shifted(6) // 6, constant(1)),
        ((A * 6 + R).shifted(12) // 6, A.shifted(2)),
        (X + X * -1, ZERO),
        (X * 0, ZERO),
    ],
    ids=str,
)
def test_rules_that_remove_divisions(made: Index, expected: Index) -> None:
    assert made == expected
    assert hash(made) == hash(expected)


def test_the_outermost_index_takes_no_remainder() -> None:
    row, column = unflatten(variable("i", 24 * 16), (24, 16))
    assert divisions(row) == 1
    assert row == variable("i", 24 * 16) // 16
    assert column == variable("i", 24 * 16) % 16
    inner = unflatten(variable("i", 24 * 16), (1, 24, 16))
    assert inner[0] == ZERO
    assert inner[1:] == (row, column)


@pytest.mark.parametrize("shape", [(24, 16), (4, 6, 16), (2, 3, 4, 16), (384,), (1, 24, 1, 16)])
def test_flattening_undoes_unflattening(shape: Shape) -> None:
    flat = variable("i", 384)
    assert flatten(unflatten(flat, shape), shape) == flat
    fours = variable("q", 96) * 4 + variable("lane", 4, "lane")
    assert flatten(unflatten(fours, shape), shape) == fours


def test_reshapes_of_reshapes_leave_nothing() -> None:
    flat = variable("i", 384)
    for shape in itertools.permutations((4, 6, 16)):
        indices = unflatten(flatten(unflatten(flat, (24, 16)), (24, 16)), shape)
        assert flatten(indices, shape) == flat


def test_limits() -> None:
    assert X.limited(1000) is X
    cut = X.shifted(-5).limited(900)
    assert (cut.low, cut.high) == (0, 899)
    assert evaluate(cut, {"x": 5}) == 0
    assert evaluate(cut, {"x": 999}) == 899
    assert evaluate(cut, {"x": 2}) == 899  # below zero: the last one


def test_replace_simplifies_anew() -> None:
    lane = variable("lane", 4, "lane")
    index = (variable("q", 25) * 4 + lane) % 10 + (variable("q", 25) * 4 + lane) // 10 * 20
    for number in range(4):
        chosen = index.replace(lambda atom, n=number: constant(n) if atom.kind == "lane" else None)  # type: ignore[misc]
        for q in range(25):
            assert evaluate(chosen, {"q": q}) == evaluate(index, {"q": q, "lane": number})
    assert index.mentions(lambda atom: atom.kind == "lane")
    assert not chosen.mentions(lambda atom: atom.kind == "lane")
    assert constant(3).fixed
    assert not X.fixed


# Chains of movement, as kernels make them


def attributes_of(name: str, attribute: Any) -> tuple[Any, ...]:
    """A window has several, any other movement one."""
    return attribute if name == "window" else (attribute,)


def chain(index: Index, shape: Shape, moves: list[tuple[str, Any]]) -> Index:
    """The place in the source of the element at `index` of the result; `moves` begin at the source."""
    nodes = [value(*shape)]
    for name, attribute in moves:
        nodes.append(make(TABLE[name], (nodes[-1],), attributes_of(name, attribute)))
    indices = unflatten(index, nodes[-1].sig.shape)
    for node, source in zip(reversed(nodes[1:]), reversed(nodes[:-1]), strict=True):
        indices = moved(node.sig, source.sig.shape, indices)
    return flatten(indices, shape)


def applied(shape: Shape, moves: list[tuple[str, Any]]) -> np.ndarray[Any, Any]:
    """The same by NumPy, on an array that holds its own places."""
    array = np.arange(math.prod(shape)).reshape(shape)
    node = value(*shape)
    for name, attribute in moves:
        node = make(TABLE[name], (node,), attributes_of(name, attribute))
        array = TABLE[name].numpy(node.sig, array)
    return array


@st.composite
def movements(draw: st.DrawFn) -> tuple[Shape, list[tuple[str, Any]]]:
    shape = tuple(draw(st.lists(st.sampled_from([1, 2, 3, 4, 5, 6, 8, 12]), min_size=1, max_size=4)))
    source, moves = shape, []
    for _ in range(draw(st.integers(1, 5))):
        name = draw(st.sampled_from(["reshape", "permute", "flip", "slice", "expand", "window"]))
        attribute: Any
        if name == "reshape":
            left = math.prod(shape)
            sides: list[int] = []
            while left > 1 and len(sides) < 4:
                side = draw(st.sampled_from([each for each in range(1, left + 1) if left % each == 0]))
                sides.append(side)
                left //= side
            attribute = shape = (*sides, left)
        elif name == "permute":
            attribute = tuple(draw(st.permutations(range(len(shape)))))
            shape = tuple(shape[axis] for axis in attribute)
        elif name == "flip":
            attribute = tuple(sorted(draw(st.sets(st.sampled_from(range(len(shape)))))))
        elif name == "slice":
            ranges = []
            for side in shape:
                start = draw(st.integers(0, side - 1))
                ranges.append((start, draw(st.integers(start + 1, side)), draw(st.integers(1, 3))))
            attribute = tuple(ranges)
            shape = tuple(len(range(*each)) for each in ranges)
        elif name == "window":
            axis = draw(st.integers(0, len(shape) - 1))
            stride, dilation = draw(st.integers(1, 3)), draw(st.integers(1, 3))
            size = draw(st.integers(1, (shape[axis] - 1) // dilation + 1))
            count = (shape[axis] - dilation * (size - 1) - 1) // stride + 1
            attribute = (axis, size, stride, dilation)
            if math.prod(shape) * size > 5000 or len(shape) > 4:
                break
            shape = (*shape[:axis], count, *shape[axis + 1 :], size)
        else:
            front = (draw(st.integers(1, 3)),) if len(shape) < 5 else ()
            attribute = shape = (*front, *[3 if side == 1 else side for side in shape])
            if math.prod(shape) > 5000:
                break
        moves.append((name, attribute))
    return source, moves


@pytest.mark.property
@settings(max_examples=300)
@given(movement=movements())
def test_chains_of_movement_equal_brute_force(movement: tuple[Shape, list[tuple[str, Any]]]) -> None:
    shape, moves = movement
    expected = applied(shape, moves)
    size = expected.size
    flat = chain(variable("i", size), shape, moves)
    fours = chain(variable("q", max(1, size // 4)) * 4 + variable("lane", 4, "lane"), shape, moves)
    for at in range(min(size, 300)):
        assert evaluate(flat, {"i": at}) == expected.flat[at]
        if size % 4 == 0:
            assert evaluate(fours, {"q": at // 4, "lane": at % 4}) == expected.flat[at]


@pytest.mark.property
@given(
    factors=st.lists(st.tuples(st.integers(-40, 40), st.integers(1, 9)), min_size=1, max_size=4),
    offset=st.integers(0, 50),
    divisor=st.integers(1, 48),
    data=st.data(),
)
def test_division_of_any_sum(
    factors: list[tuple[int, int]], offset: int, divisor: int, data: st.DataObject
) -> None:
    index = constant(offset)
    for name, (factor, side) in enumerate(factors):
        index = index + variable(name, side) * factor
    index = index.shifted(max(0, -index.low))  # an index is never negative
    quotient, remainder = index // divisor, index % divisor
    values = {name: data.draw(st.integers(0, side - 1)) for name, (_, side) in enumerate(factors)}
    number = evaluate(index, values)
    assert evaluate(quotient, values) == number // divisor
    assert evaluate(remainder, values) == number % divisor


@pytest.mark.property
@given(
    side=st.integers(1, 60),
    steps=st.lists(
        st.tuples(st.sampled_from("//%%*+"), st.integers(0, 5), st.integers(1, 12)), min_size=2, max_size=5
    ),
)
def test_divisions_of_divisions(side: int, steps: list[tuple[str, int, int]]) -> None:
    """Quotients and remainders of each other, by numbers that need not divide one another, and their sums."""
    made, expected = [variable("x", side)], [np.arange(side)]
    for sign, place, number in steps:
        at, other = place % len(made), number % len(made)
        if sign == "+":
            made.append(made[at] + made[other])
            expected.append(expected[at] + expected[other])
        else:
            change = {"/": operator.floordiv, "%": operator.mod, "*": operator.mul}[sign]
            made.append(change(made[at], number))
            expected.append(change(expected[at], number))
    for index, numbers in zip(made, expected, strict=True):
        assert [evaluate(index, {"x": x}) for x in range(side)] == numbers.tolist()


def test_division_of_every_small_sum() -> None:
    """Exhaustive where ranges end exactly at, or next to, a multiple of the divisor."""
    factors, sides = (-4, -3, -1, 1, 2, 3, 4, 6), ((2, 3), (3, 2), (4, 4))
    for first, second, (m, n) in itertools.product(factors, factors, sides):
        x, y = variable("x", m), variable("y", n)
        total = x * first + y * second
        total = total.shifted(max(0, -total.low))
        for offset, divisor in itertools.product(range(3), range(2, 8)):
            index = total.shifted(offset)
            quotient, remainder = index // divisor, index % divisor
            for at, other in itertools.product(range(m), range(n)):
                values = {"x": at, "y": other}
                number = evaluate(index, values)
                assert (evaluate(quotient, values), evaluate(remainder, values)) == divmod(number, divisor)


# Where no division is needed


R8, C16, L4 = variable("row", 24), variable("column", 16), variable("lane", 4, "lane")


@pytest.mark.parametrize(
    ("index", "shape", "moves", "left"),
    [
        # element by element, the thread's number flat
        (variable("i", 384), (24, 16), [], 0),
        (variable("i", 384), (4, 6, 16), [("reshape", (24, 16))], 0),
        (variable("i", 384), (4, 96), [("reshape", (4, 6, 16)), ("reshape", (24, 16))], 0),
        (variable("i", 96), (384,), [("slice", ((96, 192, 1),))], 0),
        (variable("i", 192), (384,), [("slice", ((0, 384, 2),))], 0),
        (variable("i", 384), (384,), [("flip", (0,))], 0),
        (variable("i", 192), (24, 16), [("slice", ((6, 18, 1), (0, 16, 1)))], 0),
        (variable("i", 384), (24, 1), [("expand", (24, 16))], 1),
        (variable("i", 384), (16,), [("expand", (24, 16))], 1),
        (variable("i", 384), (16, 24), [("permute", (1, 0))], 2),
        # row by row: the row and the column are loops
        (R8 * 16 + C16, (16, 24), [("permute", (1, 0))], 0),
        (R8 * 16 + C16, (32, 48), [("permute", (1, 0)), ("slice", ((0, 48, 2), (4, 20, 1)))], 0),
        (R8 * 16 + C16, (16, 1), [("expand", (16, 24)), ("permute", (1, 0))], 0),
        (R8 * 16 + C16, (24, 16), [("reshape", (24, 4, 4)), ("reshape", (24, 16)), ("flip", (0, 1))], 0),
        (R8 * 16 + C16, (4, 6, 16), [("reshape", (24, 16))], 0),
        (
            R8 * 16 + C16,
            (26, 16),
            [("window", (0, 3, 1, 1)), ("slice", ((0, 24, 1), (0, 16, 1), (1, 2, 1)))],
            0,
        ),
        (
            variable("i", 384),
            (24, 19),
            [("window", (1, 4, 1, 1)), ("reshape", (24, 64)), ("slice", ((0, 24, 1), (0, 64, 4)))],
            2,
        ),
        # four at once
        (variable("q", 96) * 4 + L4, (24, 16), [("reshape", (384,))], 0),
        (R8 * 16 + variable("q", 4) * 4 + L4, (24, 32), [("slice", ((0, 24, 1), (8, 24, 1)))], 0),
    ],
)
def test_divisions_left(index: Index, shape: Shape, moves: list[tuple[str, Any]], left: int) -> None:
    assert divisions(chain(index, shape, moves)) == left
