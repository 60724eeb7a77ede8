"""Values: the same numbers as NumPy's arrays of them, from lists and buffers, in every type and back."""

from __future__ import annotations

import array
import math
import pickle
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import webgrad as wg
from webgrad import dtypes
from webgrad.dtypes import DType
from webgrad.functions.array.plain_text import plain_text
from webgrad.functions.fourier import lists, twiddles
from webgrad.ops.host_arrays import converted, host_array
from webgrad.values import Values, float_limits_of, packed, stored, values_of

REAL = [each for each in dtypes.REAL if each.kind != "b"]
HALVES = (dtypes.float16, dtypes.bfloat16)


def array_of(values: Values) -> Any:
    return np.frombuffer(values.data, values.dtype.numpy).reshape(values.shape)


def same(values: Values, expected: Any) -> None:
    found = array_of(values)
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    wide = found.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(
        found.astype(np.float32) if wide else found, expected.astype(np.float32) if wide else expected
    )


@pytest.mark.parametrize(
    "value",
    [
        *(
            5,
            2.5,
            True,
            1 + 2j,
            [1, 2],
            [1, 2.5],
            [True, False],
            [True, 2],
            [1, 1j],
            [],
            [[], []],
            [[1], [2]],
        ),
        *(
            [[[1.5]]],
            range(3),
            (1, 2),
            b"abc",
            bytearray(b"ab"),
            array.array("d", [1, 2]),
            array.array("H", [7]),
        ),
        *(memoryview(b"abcdef")[::2], np.arange(6, dtype=np.int16).reshape(2, 3).T, np.float64(2.0)),
    ],
    ids=repr,
)
def test_values_are_read_as_arrays_are(value: Any) -> None:
    same(values_of("test", value), host_array("test", value))


@pytest.mark.property
@pytest.mark.parametrize("dtype", dtypes.REAL, ids=repr)
@settings(max_examples=25)
@given(numbers=st.lists(st.floats() | st.integers(-(1 << 31), (1 << 31) - 1), max_size=5))
def test_conversions_are_those_of_tensors(dtype: DType, numbers: list[float]) -> None:
    wide = packed([float(each) for each in numbers], dtypes.float64, (len(numbers),))
    same(wide.astype(dtype), converted(array_of(wide), dtype))


@pytest.mark.parametrize("dtype", [each for each in REAL if each.kind in "iu"], ids=repr)
def test_integers_wrap(dtype: DType) -> None:
    numbers = packed([0, 1, -1, 127, 128, 300, -40000, 1 << 31, (1 << 63) - 1], dtypes.int64, (9,))
    same(numbers.astype(dtype), array_of(numbers).astype(dtype.numpy))


@pytest.mark.parametrize("dtype", HALVES, ids=repr)
def test_every_half_comes_back(dtype: DType) -> None:
    bits = np.arange(1 << 16, dtype=np.uint16)
    with np.errstate(invalid="ignore"):
        numbers = bits.view(dtype.numpy).astype(np.float64)
    np.testing.assert_array_equal(Values(bits, dtype, (1 << 16,)).numbers(), numbers)
    same(packed(numbers.tolist(), dtype, (1 << 16,)), bits.view(dtype.numpy))


@pytest.mark.property
@settings(max_examples=50)
@given(value=st.floats(allow_nan=False))
@pytest.mark.parametrize("dtype", [*HALVES, dtypes.float32], ids=repr)
def test_numbers_are_stored_rounded(dtype: DType, value: float) -> None:
    with np.errstate(all="ignore"):
        expected = float(np.float64(value).astype(np.float32).astype(dtype.numpy))
        exact = float(np.float64(value).astype(dtype.numpy))
    assert stored(value, dtype) in (exact, expected)


@pytest.mark.parametrize("dtype", dtypes.REAL[1:], ids=repr)
def test_limits(dtype: DType) -> None:
    if dtype.kind == "f":
        known = ml_dtypes.finfo(dtype.numpy)  # type: ignore[no-untyped-call]
        assert float_limits_of(dtype) == (float(known.eps), float(known.max), float(known.smallest_normal))
    else:
        whole = np.iinfo(dtype.numpy)
        assert dtype.limits == (whole.min, whole.max)


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 3, 2), (0,), (2, 0), (0, 3), (2, 0, 3)])
def test_nested_lists(shape: tuple[int, ...]) -> None:
    expected = np.arange(math.prod(shape), dtype=np.int32).reshape(shape)
    assert Values(expected, dtypes.int32, shape).tolist() == expected.tolist()


def test_places_of_what_is_not_zero() -> None:
    flags = np.array([[True, False, True], [False, False, True]])
    found = Values(flags, dtypes.bool, flags.shape).nonzero()
    assert [each.tolist() for each in found] == [each.tolist() for each in flags.nonzero()]


def test_pickles() -> None:
    values = pickle.loads(pickle.dumps(packed([1, 2], dtypes.int8, (2, 1))))
    assert (values.tolist(), values.dtype) == ([[1], [2]], dtypes.int8)


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        ([[1, 2], [3]], wg.ShapeError, "lists of different shapes"),
        (["a"], wg.DTypeError, "a str "),
        ("a", wg.DTypeError, "a str "),
        ({1: 2}, wg.DTypeError, "a dict "),
        ([None], wg.DTypeError, "a NoneType "),
        ([1 << 31], wg.DTypeError, "2147483648 does not fit int32"),
        ([1 << 64, 1.5], wg.DTypeError, "an integer of 65 bits"),
        ([10**5000], wg.DTypeError, "an integer of 16610 bits"),
        ([b"a"], wg.DTypeError, "a bytes "),
        (memoryview(b"ab").cast("c"), wg.DTypeError, "format 'c'"),
        (np.array(["a"]), wg.DTypeError, "format '1w'"),
        (np.arange(2, dtype=">i4"), wg.DTypeError, "format '>i'"),
    ],
)
def test_what_cannot_be_read(value: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        values_of("test", value)


def lists_with_types() -> list[Any]:
    return [
        [array.array("h", [1, 2]), array.array("h", [3, 4])],
        [array.array("d", [1.5])],
        [memoryview(b"ab")],
        [wg.asarray([1.5], dtype=dtypes.float16)],
        [[wg.asarray(1, dtype=dtypes.int8)], [wg.asarray(2, dtype=dtypes.int8)]],
        [wg.asarray(1, dtype=dtypes.int8), 2.5],
        [wg.asarray([True]), [2]],
    ]


def test_lists_of_what_has_a_type_keep_it() -> None:
    for value in lists_with_types():
        same(values_of("test", value), host_array("test", value))


def test_complex_numbers_are_bools() -> None:
    same(values_of("test", [1j, 0j], dtypes.bool), host_array("test", [1j, 0j], dtypes.bool))


def test_complex_numbers_have_two_parts() -> None:
    with pytest.raises(wg.DTypeError, match=r"take \.real, \.imag or abs"):
        values_of("test", [1j], dtypes.float32)


@pytest.mark.parametrize("separator", [", ", " "])
@pytest.mark.parametrize(
    "numbers", [[1, 20, -3], [[1, 2], [3, 4]], [[[1, 2]], [[3, 4]]], [True, False], [1.5, 2.25]], ids=repr
)
def test_text_is_numpys(numbers: Any, separator: str) -> None:
    values = values_of("test", numbers)
    expected = np.array2string(array_of(values), separator=separator, prefix="tensor(")
    # NumPy fills numbers up with zeros or blanks behind them, and spells what repeats shorter
    assert "".join(plain_text(values, separator, "tensor(").split()) == "".join(
        expected.replace("1.5 ", "1.5").split()
    )


@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("length", [1, 2, 5, 8, 12])
def test_fourier_tables(length: int, inverse: bool) -> None:
    padded = 1 << (2 * length - 2).bit_length()
    calls: list[tuple[str, tuple[Any, ...]]] = [
        ("twiddle_factors", (length, length // 2 + 1, inverse)),
        ("chirp", (length, inverse)),
        ("matrix", (length, inverse, 0.5)),
        ("chirp_transform", (length, padded, inverse)),
    ]
    for name, arguments in calls:
        found = array_of(getattr(lists, name)(*arguments))
        expected = getattr(twiddles, name)(*arguments)
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
