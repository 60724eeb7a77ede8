"""Holding contents of buffers against recorded ones."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from webgrad.tools.recording.comparison import Outcome, compare, element_type


def compared(was: Any, now: Any, dtype: Any) -> Outcome:
    first, second = (np.asarray(each, dtype) for each in (was, now))
    return compare(first.tobytes(), second.tobytes(), first.dtype)


@pytest.mark.parametrize(
    ("dtype", "wgsl", "expected"),
    [
        ("", "array<f32>", np.float32),
        ("", "array<vec4<f32>>", np.float32),
        ("", "array<atomic<u32>>", np.uint32),
        ("", "array<vec2<f16>>", np.float16),
        ("", "array<i64>", np.int64),
        ("", "array<Item>", np.uint32),
        ("float16", "array<u32>", np.float16),
        ("bfloat16", "array<vec4<u32>>", ml_dtypes.bfloat16),
        ("complex64", "array<f32>", np.float32),
        ("bool", "array<u32>", np.bool_),
        ("nonsense", "array<f64>", np.float64),
    ],
)
def test_the_type_of_elements(dtype: str, wgsl: str, expected: Any) -> None:
    assert element_type(dtype, wgsl) == np.dtype(expected)


def test_equal_bits_are_equal_whatever_they_are() -> None:
    assert compared([np.nan, np.inf, 1], [np.nan, np.inf, 1], np.float32) == Outcome(same=True, right=True)


def test_nan_and_infinities_stand_in_place() -> None:
    other_nan = np.array([0x7FC00001], np.uint32).view(np.float32)[0]
    assert compared([np.nan, np.inf, 1], [other_nan, np.inf, 1], np.float32).right
    for wrong in ([np.nan, 1.0], [np.inf, np.inf], [1.0, 1.0], [-np.inf, 1.0]):
        outcome = compared([np.inf, 1.0], wrong, np.float32)
        assert not outcome.right
        assert outcome.error == np.inf


@pytest.mark.parametrize(
    ("dtype", "off"),
    [(np.float16, 4e-3), (ml_dtypes.bfloat16, 2e-2), (np.float32, 2e-5), (np.float64, 1e-10)],
)
def test_floats_may_be_off_a_little(dtype: Any, off: float) -> None:
    values = np.linspace(-2, 3, 50).astype(dtype)
    near, far = ((values.astype(np.float64) * (1 + off * times)).astype(dtype) for times in (1, 100))
    outcome = compared(values, near, dtype)
    assert outcome.right
    assert not outcome.same
    assert 0 < outcome.error < 4 * off
    outcome = compared(values, far, dtype)
    assert not outcome.right
    assert outcome.places > 10


def test_a_large_mask_hides_nothing() -> None:
    was = np.array([1.0, 2.0, -3.4e38], np.float32)
    outcome = compared(was, was + np.array([0, 0.01, 0], np.float32), np.float32)
    assert (outcome.right, outcome.places, outcome.first) == (False, 1, 1)


def test_what_cancels_out_leaves_noise() -> None:
    assert compared([3e-8, 0, -2e-8], [-3e-8, 1e-8, 0], np.float32).right


def test_integers_are_equal_or_not() -> None:
    outcome = compared([1, 2, 3, 4], [1, 5, 3, 0], np.int32)
    assert (outcome.right, outcome.places, outcome.first, outcome.error) == (False, 2, 1, 4.0)


def test_bytes_that_are_no_whole_elements() -> None:
    assert not compare(b"abcde", b"abcdf", np.dtype(np.float32)).right
