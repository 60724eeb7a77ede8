"""What becomes of data types, what fits, their kinds and limits; against NumPy where that says the same."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from webgrad import dtypes
from webgrad.errors import ArgumentError, DTypeError

NUMPY_TYPES = [each for each in (*dtypes.REAL, *dtypes.COMPLEX) if each is not dtypes.bfloat16]


def test_can_cast_goes_by_promotion() -> None:
    for own, wanted in itertools.product(NUMPY_TYPES, repeat=2):
        if own.kind == wanted.kind:
            assert wg.can_cast(own, wanted) == np.can_cast(own.numpy, wanted.numpy), (own, wanted)
    assert wg.can_cast("uint8", wg.int16)
    assert not wg.can_cast(wg.uint64, wg.int64)
    assert not wg.can_cast(wg.float64, wg.complex64)
    assert wg.can_cast(wg.zeros(1, wg.int8, device="cpu"), wg.int64)


def test_limits_are_those_of_numpy() -> None:
    for dtype in NUMPY_TYPES:
        if dtype.kind in "iu":
            found, expected = wg.iinfo(dtype), np.iinfo(dtype.numpy)
            assert (found.bits, found.min, found.max) == (expected.bits, expected.min, expected.max)
            assert found.dtype is dtype
        elif dtype.kind in "fc":
            limits, real = wg.finfo(dtype), np.finfo(dtype.numpy)
            assert limits.bits == real.bits
            assert [type(each) for each in (limits.eps, limits.max, limits.min)] == [float] * 3
            assert (limits.eps, limits.max, limits.min) == (real.eps, real.max, real.min)
            assert limits.smallest_normal == real.smallest_normal
            assert limits.dtype is dtypes.part_of(dtype)
    assert wg.finfo(wg.bfloat16).eps == 2.0**-7
    assert wg.finfo(wg.zeros(1, wg.float16, device="cpu")).dtype is wg.float16


def test_limits_are_refused_for_other_kinds() -> None:
    with pytest.raises(DTypeError, match=r"int8 is not of floats: use webgrad\.iinfo"):
        wg.finfo(wg.int8)
    with pytest.raises(DTypeError, match="bool is not of integers"):
        wg.iinfo(wg.bool)


@pytest.mark.parametrize(
    "kind",
    [
        "bool",
        "signed integer",
        "unsigned integer",
        "integral",
        "real floating",
        "complex floating",
        "numeric",
    ],
)
def test_kinds_are_those_of_numpy(kind: str) -> None:
    for dtype in NUMPY_TYPES:
        assert wg.isdtype(dtype, kind) == np.isdtype(dtype.numpy, kind), dtype


def test_kinds_can_be_several() -> None:
    assert wg.isdtype(wg.bfloat16, "real floating")
    assert wg.isdtype(wg.int8, ("bool", wg.int8))
    assert not wg.isdtype(wg.int8, (wg.int16, "unsigned integer"))
    with pytest.raises(ArgumentError, match="'float' is not a kind of data types; there are 'bool'"):
        wg.isdtype(wg.int8, "float")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((wg.int8, wg.uint8), wg.int16),
        ((wg.uint8, wg.uint16, wg.int8), wg.int32),
        ((wg.float32, 1), wg.float32),
        ((1.5, wg.int8), wg.float32),
        ((True, wg.bool), wg.bool),
        ((1, wg.bool), wg.int32),
        ((wg.float64, 1j), wg.complex128),
        (("float16", "bfloat16"), wg.float32),
    ],
)
def test_result_type(values: tuple[Any, ...], expected: dtypes.DType) -> None:
    for order in itertools.permutations(values):
        assert wg.result_type(*order) is expected
    typed = [wg.zeros(1, each, device="cpu") if isinstance(each, dtypes.DType) else each for each in values]
    assert wg.result_type(*typed) is expected


def test_limits_are_refused() -> None:
    with pytest.raises(DTypeError, match=r"finfo: int8 is not of floats: use webgrad.iinfo"):
        wg.finfo(wg.int8)
    with pytest.raises(DTypeError, match=r"iinfo: complex64 is not of integers: use webgrad.finfo"):
        wg.iinfo(wg.complex64)
    with pytest.raises(DTypeError, match="iinfo: bool is not of integers: bools have no limits"):
        wg.iinfo(wg.bool)


def test_result_type_is_refused() -> None:
    with pytest.raises(ArgumentError, match="at least one tensor or dtype"):
        wg.result_type(1, 2.0)
    with pytest.raises(DTypeError, match="uint64 have no common integer type"):
        wg.result_type(wg.int8, wg.uint64)
