"""Casts between numbers, texts, and types that no tensor holds."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import webgrad as wg
from tests.onnx.models import floats
from tests.onnx.operators.single import run_one
from webgrad.onnx.types import code_of

NAN, INFINITE = np.nan, np.inf


def cast(x: Any, dtype: Any, **settings: Any) -> Any:
    found = run_one("Cast", x, to=code_of(np.dtype(dtype)), **settings)
    assert found.dtype == dtype
    return found


def test_numbers_to_numbers() -> None:
    assert cast(floats(2.9, -2.9), np.int32).tolist() == [2, -2]
    assert cast(np.array([300, -1]), np.uint8).tolist() == [44, 255]
    assert cast(floats(0, -0.0, NAN, 0.1), np.bool_).tolist() == [False, False, True, True]
    assert cast(np.array([True, False]), np.float16).tolist() == [1, 0]
    assert cast(floats(1e6, 2), np.float16).tolist() == [INFINITE, 2]
    assert cast(floats(1 + 2**-7), ml_dtypes.bfloat16).astype(np.float32).tolist() == [1 + 2**-7]


def test_texts_to_numbers() -> None:
    texts = np.array(["1.5", "-INF", "inf", "NaN", "1e3"], object)
    np.testing.assert_array_equal(cast(texts, np.float32), [1.5, -INFINITE, INFINITE, NAN, 1000])
    assert cast(np.array(["7", "-3"], object), np.int64).tolist() == [7, -3]


def test_numbers_to_texts() -> None:
    assert cast(floats(0.1, 2, NAN), object).tolist() == ["0.1", "2.0", "nan"]
    assert cast(np.array([5, -6]), object).tolist() == ["5", "-6"]


@pytest.mark.parametrize(
    ("dtype", "largest"),
    [
        (ml_dtypes.float8_e4m3fn, 448),
        (ml_dtypes.float8_e4m3fnuz, 240),
        (ml_dtypes.float8_e5m2, 57344),
        (ml_dtypes.float8_e5m2fnuz, 57344),
    ],
)
def test_floats_of_eight_bits_stay_in_range_if_asked(dtype: Any, largest: float) -> None:
    x = floats(1e9, -1e9, INFINITE, NAN, 1)
    found = cast(x, dtype, saturate=1).astype(np.float32)
    np.testing.assert_array_equal(found, [largest, -largest, largest, NAN, 1])
    beyond = cast(x, dtype, saturate=0).astype(np.float32)
    assert not np.isfinite(beyond[:3]).any()


def test_few_bits_hold_their_numbers_and_give_them_back() -> None:
    whole = np.arange(-8, 8, dtype=np.float32)
    assert cast(cast(whole, ml_dtypes.int4), np.int8).tolist() == whole.tolist()
    halves = floats(0.5, 1, 1.5, 2, 3, 4, 6, -6)
    assert cast(cast(halves, ml_dtypes.float4_e2m1fn), np.float32).tolist() == halves.tolist()


def test_numbers_out_of_the_range_of_four_bits() -> None:
    x = floats(9, -9)
    assert cast(x, ml_dtypes.int4, opset=23).astype(int).tolist() == [7, -8]
    assert cast(x, ml_dtypes.int4, opset=25).astype(int).tolist() == [-7, 7]


@pytest.mark.parametrize(
    ("mode", "expected"), [("up", [1, 2, 2, 0.5]), ("down", [1, 1, 1, 0.5]), ("nearest", [1, 1, 2, 0.5])]
)
def test_scales_are_powers_of_two(mode: str, expected: list[float]) -> None:
    x = floats(1, 1.25, 1.5, 0.5)
    found = cast(x, ml_dtypes.float8_e8m0fnu, opset=24, round_mode=mode)
    assert found.astype(np.float32).tolist() == expected


def test_scales_out_of_range() -> None:
    x = floats(0, INFINITE, NAN)
    kept = cast(x, ml_dtypes.float8_e8m0fnu, opset=24).astype(np.float32)
    np.testing.assert_array_equal(kept, [2.0**-127, 2.0**127, NAN])
    strict = cast(x, ml_dtypes.float8_e8m0fnu, opset=24, saturate=0).astype(np.float32)
    assert np.isnan(strict).all()


def test_cast_like_another() -> None:
    assert run_one("CastLike", floats(1.5), np.array([1])).dtype == np.int64
    assert run_one("CastLike", floats(1.5), np.array(["a"], object)).tolist() == ["1.5"]


def test_bits_of_another_type() -> None:
    to = {name: code_of(np.dtype(name)) for name in ("int32", "uint8", "int8")}
    assert run_one("BitCast", floats(1), opset=26, to=to["int32"]).tolist() == [0x3F800000]
    assert run_one("BitCast", np.array([True]), opset=26, to=to["uint8"]).tolist() == [1]
    small = np.array([-1], np.int8).view(ml_dtypes.float8_e4m3fn)
    assert run_one("BitCast", small, opset=26, to=to["int8"]).tolist() == [-1]


def test_texts_as_integers_keep_every_digit() -> None:
    given = np.array(["9007199254740993", "1e3", "-5"], object)
    assert run_one("Cast", given, to=7).tolist() == [9007199254740993, 1000, -5]


def test_texts_of_integers_that_do_not_fit_are_refused() -> None:
    with pytest.raises(wg.ModelFileError, match="out of bounds"):
        run_one("Cast", np.array(["300"], object), to=2)
