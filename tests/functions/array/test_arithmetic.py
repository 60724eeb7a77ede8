"""Divisors, steps, remainders and the rest of NumPy's arithmetic, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webgrad as wg

FLOATS = np.asarray([0.0, -0.0, 1.5, -7.25, np.inf, -np.inf, np.nan, 1e-40, 3e38], np.float32)
INTEGERS = np.asarray([0, 1, -1, 12, -18, 27, 2**31 - 1, -(2**31) + 1], np.int32)


@pytest.mark.parametrize("name", ["fmax", "fmin", "heaviside"])
def test_pairs_of_floats_are_numpys(name: str) -> None:
    first, second = FLOATS[:, None], FLOATS[None, :]
    ours = getattr(wg, name)(wg.asarray(first), wg.asarray(second)).numpy()
    np.testing.assert_array_equal(ours, getattr(np, name)(first, second))


def test_the_remainder_has_the_sign_of_the_dividend() -> None:
    first, second = np.asarray([[7.5], [-7.5], [3.0]], np.float32), np.asarray([2.0, -2.0, 7.0], np.float32)
    for kind in (np.float32, np.int32, np.uint8):
        a, b = np.abs(first).astype(kind) if kind is np.uint8 else first.astype(kind), second.astype(kind)
        b = np.abs(second).astype(kind) if kind is np.uint8 else b
        np.testing.assert_array_equal(wg.fmod(wg.asarray(a), wg.asarray(b)).numpy(), np.fmod(a, b))


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
def test_the_remainder_of_the_lowest_integer(dtype: type[np.signedinteger[Any]]) -> None:
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    a = np.asarray([[low], [low + 1], [high]], dtype)
    b = np.asarray([3, -3, 1, -1, low, high], dtype)
    np.testing.assert_array_equal(wg.fmod(wg.asarray(a), wg.asarray(b)).numpy(), np.fmod(a, b))


@pytest.mark.parametrize("name", ["gcd", "lcm"])
def test_divisors_and_multiples_are_numpys(name: str) -> None:
    small = np.asarray([0, 1, -1, 12, -18, 27, 97, 102334155 >> 12], np.int32)
    for values in (small, np.abs(small).astype(np.uint8), small.astype(np.int16)):
        first, second = values[:, None], values[None, :]
        ours = getattr(wg, name)(wg.asarray(first), wg.asarray(second)).numpy()
        np.testing.assert_array_equal(ours, getattr(np, name)(first, second))


def test_the_longest_division_is_finished() -> None:
    first, second = wg.asarray(1836311903), wg.asarray(1134903170)  # neighbours in Fibonacci's sequence
    assert wg.gcd(first, second).item() == 1
    assert wg.gcd(wg.asarray(INTEGERS), 2**31 - 1).tolist() == np.gcd(INTEGERS, 2**31 - 1).tolist()


def test_mantissas_and_powers_are_numpys() -> None:
    for kind in (np.float32, np.float16, np.float64):
        with np.errstate(over="ignore"):
            values = FLOATS.astype(kind)
        mantissas, powers = (each.numpy() for each in wg.frexp(wg.asarray(values)))
        finite = np.isfinite(values)
        wanted = np.frexp(values)
        np.testing.assert_array_equal(mantissas, wanted[0])
        np.testing.assert_array_equal(powers[finite], wanted[1][finite])
        assert mantissas.dtype == kind
        back = wg.ldexp(wg.asarray(wanted[0]), wg.asarray(wanted[1])).numpy()
        np.testing.assert_array_equal(back[finite], values[finite])


def test_sums_of_powers_of_two_do_not_overflow() -> None:
    first, second = np.asarray([1.0, 2000.0, -np.inf], np.float32), np.asarray([3.0, 2000.0, 5.0], np.float32)
    ours = wg.logaddexp2(wg.asarray(first), wg.asarray(second)).numpy()
    np.testing.assert_allclose(ours, np.logaddexp2(first, second), rtol=1e-6)


@pytest.mark.parametrize("name", ["deg2rad", "rad2deg", "isposinf", "isneginf", "isreal"])
def test_functions_of_one_are_numpys(name: str) -> None:
    with np.errstate(over="ignore"):
        wanted = getattr(np, name)(FLOATS)
    np.testing.assert_allclose(getattr(wg, name)(wg.asarray(FLOATS)).numpy(), wanted, rtol=1e-6)
    assert wg.isreal(wg.asarray([1, 2])).tolist() == [True, True]


@pytest.mark.parametrize("call", [lambda: wg.gcd(wg.ones(1), 2.0), lambda: wg.frexp(wg.asarray([1]))])
def test_other_types_are_refused(call: Any) -> None:
    with pytest.raises(wg.DTypeError, match="is not offered for"):
        call()
