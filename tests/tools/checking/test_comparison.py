"""Comparisons: the worst element, counted over pieces."""

from __future__ import annotations

import numpy as np

from webgrad.tools.checking import comparison
from webgrad.tools.checking.comparison import compare
from webgrad.tools.checking.rounding import Bounded, unknown


def test_the_worst_element_is_found_in_any_piece() -> None:
    size = comparison.PIECE + 10
    wanted = np.zeros((2, size // 2))
    found = wanted.astype(np.float32)
    found[1, -3] = 4.0
    found[0, 0] = 2.0
    result = compare(Bounded(wanted, np.ones(wanted.shape)), found)
    assert (result.wrong, result.index, result.found, result.error) == (1, (1, size // 2 - 3), 4.0, 4.0)
    assert result.ratio == 4.0 / comparison.SLACK
    assert result.elements == size


def test_what_may_be_anything_is_not_judged() -> None:
    result = compare(unknown(np.zeros(3)), np.array([1.0, np.nan, 5.0]))
    assert result.ok
    assert result.unjudged == 3
    bools = compare(Bounded(np.array([True, True]), np.array([True, False])), np.array([False, False]))
    assert (bools.wrong, bools.unjudged, bools.index) == (1, 1, (1,))


def test_nothing_is_equal_to_nothing() -> None:
    assert compare(Bounded(np.zeros((0, 3))), np.zeros((0, 3))).ok


def test_zeros_of_both_signs_are_equal() -> None:
    assert compare(Bounded(np.array([0.0])), np.array([-0.0], np.float32)).ok
