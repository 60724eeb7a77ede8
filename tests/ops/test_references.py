"""What maps refer to, against Python's own numbers: whole powers, the ends of floats, both signs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from webgrad.ops import references

Array = np.ndarray[Any, Any]
ENDS = (math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e-30, -1e-30, 30.0, -30.0)
FLOATS = pytest.mark.parametrize("dtype", [np.float32, np.float64])


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint8, np.uint32])
def test_powers_of_whole_numbers(dtype: Any) -> None:
    """They wrap; of negative exponents only 1 and -1 have one."""
    limits = np.iinfo(dtype)
    low = max(-9, limits.min)
    numbers = np.array([*range(low, 10), limits.min, limits.max], dtype)
    base, exponent = (each.ravel() for each in np.meshgrid(numbers, np.arange(low, 10).astype(dtype)))
    expected = [
        (0 if y < 0 and abs(x) != 1 else x ** (abs(y) if y < 0 else y)) % 2**limits.bits
        for x, y in zip(base.tolist(), exponent.tolist(), strict=True)
    ]
    found = references.power(base, exponent)
    assert found.dtype == dtype
    assert (found.astype(object) % 2**limits.bits).tolist() == expected


def power(x: float, y: float) -> float:
    """As C has it, where Python raises."""
    try:
        return math.pow(x, y)
    except ValueError:
        return math.nan if x else math.copysign(math.inf, x if y % 2 == 1 else 1)


@FLOATS
@pytest.mark.parametrize("exponent", [0.5, -0.5, 2.0, 3.0, -1.0, 0.0, math.inf])
def test_powers_do_not_depend_on_how_operands_lie(dtype: Any, exponent: float) -> None:
    base = np.array(ENDS, dtype)
    with np.errstate(all="ignore"):
        one = references.float_power(base, np.array(exponent, dtype))
        many = references.float_power(base, np.full_like(base, exponent))
        each = np.array([power(x, exponent) for x in base.tolist()]).astype(dtype)
    for found in (one, many):
        np.testing.assert_allclose(found, each, rtol=1e-6)
        known = ~np.isnan(found)
        np.testing.assert_array_equal(np.signbit(found[known]), np.signbit(each[known]))


@FLOATS
def test_division_down_to_whole_numbers(dtype: Any) -> None:
    """Where a number is infinite it is the quotient."""
    a, b = (each.ravel() for each in np.meshgrid(np.array(ENDS, dtype), np.array(ENDS, dtype)))
    with np.errstate(all="ignore"):
        whole = np.floor_divide(a, b)
        found, quotient = references.floor_divide(a, b), a / b
    endless = np.isinf(a) | np.isinf(b)
    np.testing.assert_array_equal(found[endless], quotient[endless])
    np.testing.assert_array_equal(found[~endless], whole[~endless])
    numbers = np.array([7, -7, 6, -6, 0], np.int32)
    assert references.floor_divide(numbers, np.full_like(numbers, -2)).tolist() == [-4, 3, -3, 3, 0]


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


def gelu_tanh(x: float) -> float:
    """By its textbook formula."""
    return x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2


FUNCTIONS: dict[str, tuple[Callable[[Array], Array], Callable[[float], float]]] = {
    "sigmoid": (references.sigmoid, sigmoid),
    "erf": (references.erf, math.erf),
    "erfc": (references.erfc, math.erfc),
    "gelu": (references.gelu, lambda x: x * math.erfc(-x / math.sqrt(2)) / 2),
    "gelu_tanh": (references.gelu_tanh, gelu_tanh),
}
AT_INFINITY = {"gelu": (math.inf, 0.0), "gelu_tanh": (math.inf, 0.0)}  # the limits: the formulas have none


@FLOATS
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_floats(name: str, dtype: Any) -> None:
    reference, exact = FUNCTIONS[name]
    x = np.concatenate([np.linspace(-6, 6, 241), [1e-20, -1e-20, 0.0]]).astype(dtype)
    np.testing.assert_allclose(
        reference(x), np.array([exact(each) for each in x.tolist()]), rtol=1e-5, atol=1e-7
    )
    ends = AT_INFINITY.get(name, (exact(math.inf), exact(-math.inf)))
    with np.errstate(all="ignore"):
        found = reference(np.array([math.inf, -math.inf, math.nan], dtype))
    np.testing.assert_array_equal(found, [*ends, math.nan])


def test_random_bits_are_the_first_of_two_words() -> None:
    """Vectors that threefry's authors publish."""
    zeros, ones = np.zeros(1, np.uint32), np.full(1, 0xFFFFFFFF, np.uint32)
    assert [hex(each[0]) for each in references.threefry(zeros, zeros, zeros, zeros)] == [
        "0x6b200159",
        "0x99ba4efe",
    ]
    assert [hex(each[0]) for each in references.threefry(ones, ones, ones, ones)] == [
        "0x1cb996fc",
        "0xbb002be7",
    ]
    assert hex(references.random_bits(zeros, zeros, zeros)[0]) == "0x6b200159"
