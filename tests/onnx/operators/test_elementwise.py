"""Operators of elements: what integers, zeros, NaN, ties and types ask for, against NumPy or written out."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.onnx.models import floats
from tests.onnx.operators.single import run_one

DEVICES = ["cpu", pytest.param("webgpu:0", marks=pytest.mark.gpu)]
SIGNED = ["int8", "int16", "int32", "int64"]
NAN, INFINITE = np.nan, np.inf


@pytest.mark.parametrize("dtype", SIGNED)
@pytest.mark.parametrize("device", DEVICES)
def test_integers_are_divided_toward_zero(dtype: str, device: str) -> None:
    low = np.iinfo(dtype).min
    a = np.array([7, -7, 7, -7, low, low, 0], dtype)
    b = np.array([2, 2, -2, -2, 3, 1, -5], dtype)
    expected = [3, -3, -3, 3, -(-int(low) // 3), int(low), 0]
    found = run_one("Div", a, b, device=device)
    assert found.dtype == dtype
    assert found.tolist() == expected


def test_unsigned_integers_are_divided_by_value() -> None:
    a = np.array([250, 7], np.uint8)
    assert run_one("Div", a, np.array([3, 2], np.uint8)).tolist() == [83, 3]


@pytest.mark.parametrize("dtype", ["int8", "int64"])
def test_remainders_have_the_sign_of_the_divisor_or_of_the_dividend(dtype: str) -> None:
    a, b = np.array([7, -7, 7, -7], dtype), np.array([3, 3, -3, -3], dtype)
    assert run_one("Mod", a, b).tolist() == [1, 2, -2, -1]
    assert run_one("Mod", a, b, fmod=1).tolist() == [1, -1, 1, -1]


def test_remainders_of_floats() -> None:
    a, b = floats(5.5, -5.5, INFINITE, 3), floats(2, 2, 2, INFINITE)
    np.testing.assert_array_equal(run_one("Mod", a, b, fmod=1), floats(1.5, -1.5, NAN, 3))


@pytest.mark.parametrize(
    ("base", "exponent", "expected"),
    [
        (floats(2, 3), np.array([3, 2]), floats(8, 9)),
        (floats(2, 3), np.array(2), floats(4, 9)),
        (np.array([2, 9]), floats(3, 0.5), np.array([8, 3])),
        (np.array([2, 3], np.int32), np.array([5, 3]), np.array([32, 27], np.int32)),
        (floats(-2, 4), floats(2, 0.5), floats(4, 2)),
        (np.array(3, np.float32), floats(1, 2), floats(3, 9)),
        (floats(4), np.array([[2, 3]]), floats([16, 64])),
    ],
)
@pytest.mark.parametrize("known", [(), (1,)])
def test_powers_have_the_type_of_the_base(base: Any, exponent: Any, expected: Any, known: Any) -> None:
    found = run_one("Pow", base, exponent, known=known)
    assert found.dtype == base.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_shifts_by_the_width_and_more() -> None:
    x, by = np.array([129, 129, 255], np.uint8), np.array([1, 8, 200], np.uint8)
    assert run_one("BitShift", x, by, direction="LEFT").tolist() == [2, 0, 0]
    assert run_one("BitShift", x, by, direction="RIGHT").tolist() == [64, 0, 0]
    signed = np.array([-8, -8, 8], np.int8), np.array([1, 9, -1], np.int8)
    assert run_one("BitShift", *signed, opset=28, direction="RIGHT").tolist() == [-4, -1, 0]


def test_extremes_of_many_keep_nan() -> None:
    rows = floats(1, NAN, 3), floats([2], [0]), np.array(2, np.float32)
    np.testing.assert_array_equal(run_one("Max", *rows), [[2, NAN, 3], [2, NAN, 3]])
    np.testing.assert_array_equal(run_one("Min", *rows), [[1, NAN, 2], [0, NAN, 0]])
    assert run_one("Sum", floats(1, 2)).tolist() == [1, 2]
    assert run_one("Mean", floats(1, 2), floats(3, 5), floats(2, 2)).tolist() == [2, 3]


def test_clip_with_one_bound_with_none_and_with_two_that_cross() -> None:
    x = floats(-5, 0.5, 5, NAN)
    np.testing.assert_array_equal(run_one("Clip", x, None, floats(1).reshape(())), [-5, 0.5, 1, NAN])
    np.testing.assert_array_equal(run_one("Clip", x), x)
    np.testing.assert_array_equal(
        run_one("Clip", x, np.array(2, np.float32), np.array(1, np.float32)), [1, 1, 1, NAN]
    )
    assert run_one("Clip", floats(-5, 5), opset=6, min=-1.0).tolist() == [-1, 5]


@pytest.mark.parametrize(
    ("negative", "positive", "expected"),
    [(1, 1, [0, 1, 1, 0]), (1, 0, [0, 0, 1, 0]), (0, 1, [0, 1, 0, 0]), (0, 0, [0, 0, 0, 0])],
)
def test_which_infinities_count(negative: int, positive: int, expected: list[int]) -> None:
    x = floats(1, INFINITE, -INFINITE, NAN)
    for each in (x, x.astype(ml_dtypes.float8_e5m2)):
        found = run_one("IsInf", each, opset=20, detect_negative=negative, detect_positive=positive)
        assert found.tolist() == [bool(flag) for flag in expected]


def test_nan_of_eight_bits() -> None:
    x = floats(1, NAN).astype(ml_dtypes.float8_e4m3fn)
    assert run_one("IsNaN", x).tolist() == [False, True]


def test_halves_go_to_the_even_number() -> None:
    x = floats(0.5, 1.5, 2.5, -0.5, -1.5)
    assert run_one("Round", x).tolist() == [0, 2, 2, 0, -2]


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_halves_stay_halves(dtype: Any) -> None:
    x = np.array([0.5, 1], dtype)
    assert run_one("Sin", x).dtype == run_one("Div", x, x).dtype == x.dtype


def test_texts_are_equal_or_not() -> None:
    a, b = np.array(["a", "b"], object), np.array([["a"], ["b"]], object)
    assert run_one("Equal", a, b).tolist() == [[True, False], [False, True]]
    assert run_one("Where", np.array([True, False]), a, b).tolist() == [["a", "a"], ["a", "b"]]


def test_old_operators_broadcast_at_an_axis() -> None:
    a = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    found = run_one("Add", a, floats(1, 2, 3), opset=6, axis=1, broadcast=1)
    np.testing.assert_array_equal(found, a + floats(1, 2, 3).reshape(3, 1))


@pytest.mark.parametrize("kind", ["Erf", "Acosh", "Not"])
def test_nothing_and_a_single_number(kind: str) -> None:
    dtype = bool if kind == "Not" else np.float32
    assert run_one(kind, np.zeros((0, 2), dtype)).shape == (0, 2)
    assert run_one(kind, np.ones((), dtype)).shape == ()
