"""Data types: their places in memory, what names them, and what two of them make together."""

from __future__ import annotations

import itertools
import pickle
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from webgrad import dtypes
from webgrad.dtypes import REAL, DType, as_dtype, dtype_of_scalar, promote
from webgrad.errors import DTypeError

INTEGERS = [each for each in REAL if each.kind in "iu"]
FLOATS = [each for each in REAL if each.kind == "f"]
# The tables of the array API standard (2023.12, "Type Promotion Rules"), row by row.
STANDARD = {
    ("int8", "int8"): "int8",
    ("int8", "int16"): "int16",
    ("int8", "int32"): "int32",
    ("int8", "int64"): "int64",
    ("int16", "int16"): "int16",
    ("int16", "int32"): "int32",
    ("int16", "int64"): "int64",
    ("int32", "int32"): "int32",
    ("int32", "int64"): "int64",
    ("int64", "int64"): "int64",
    ("uint8", "uint8"): "uint8",
    ("uint8", "uint16"): "uint16",
    ("uint8", "uint32"): "uint32",
    ("uint8", "uint64"): "uint64",
    ("uint16", "uint16"): "uint16",
    ("uint16", "uint32"): "uint32",
    ("uint16", "uint64"): "uint64",
    ("uint32", "uint32"): "uint32",
    ("uint32", "uint64"): "uint64",
    ("uint64", "uint64"): "uint64",
    ("int8", "uint8"): "int16",
    ("int8", "uint16"): "int32",
    ("int8", "uint32"): "int64",
    ("int16", "uint8"): "int16",
    ("int16", "uint16"): "int32",
    ("int16", "uint32"): "int64",
    ("int32", "uint8"): "int32",
    ("int32", "uint16"): "int32",
    ("int32", "uint32"): "int64",
    ("int64", "uint8"): "int64",
    ("int64", "uint16"): "int64",
    ("int64", "uint32"): "int64",
    ("float32", "float32"): "float32",
    ("float32", "float64"): "float64",
    ("float64", "float64"): "float64",
    ("bool", "bool"): "bool",
}


@pytest.mark.parametrize(("pair", "expected"), STANDARD.items(), ids=lambda each: str(each))
def test_promotion_is_the_standards(pair: tuple[str, str], expected: str) -> None:
    a, b = map(as_dtype, pair)
    assert promote(a, b) is as_dtype(expected)
    assert promote(b, a) is as_dtype(expected)


@pytest.mark.parametrize("signed", ["int8", "int16", "int32", "int64"])
def test_integers_without_a_common_type_are_refused(signed: str) -> None:
    for a, b in ((signed, "uint64"), ("uint64", signed)):
        with pytest.raises(DTypeError, match=rf"{a} and {b} have no common integer type.*astype"):
            promote(as_dtype(a), as_dtype(b))


def test_bool_gives_way_to_everything() -> None:
    for each in REAL:
        assert promote(dtypes.bool, each) is each
        assert promote(each, dtypes.bool) is each


def test_integers_give_way_to_floats() -> None:
    for whole, real in itertools.product(INTEGERS, FLOATS):
        assert promote(whole, real) is real
        assert promote(real, whole) is real


def test_floats_take_the_wider() -> None:
    assert promote(dtypes.float16, dtypes.bfloat16) is dtypes.float32  # neither holds the other
    assert promote(dtypes.bfloat16, dtypes.float16) is dtypes.float32
    for half in (dtypes.float16, dtypes.bfloat16):
        assert promote(half, half) is half
        assert promote(half, dtypes.float32) is dtypes.float32
        assert promote(dtypes.float64, half) is dtypes.float64


def test_promotion_agrees_with_numpy_where_both_are_defined() -> None:
    ours = [each for each in REAL if each is not dtypes.bfloat16]
    for a, b in itertools.product(ours, ours):
        mixed = {a.kind, b.kind} & {"f"} and a.kind != b.kind and "b" not in (a.kind, b.kind)
        if mixed or "uint64" in (a.name, b.name):
            continue  # NumPy widens the float for the integer; PyTorch's rule does not
        assert promote(a, b).numpy == np.promote_types(a.numpy, b.numpy), (a, b)


# Which type is meant


@pytest.mark.parametrize("dtype", REAL, ids=repr)
def test_names_numpy_types_and_itself(dtype: DType) -> None:
    assert as_dtype(dtype) is dtype
    assert as_dtype(dtype.name) is dtype
    assert as_dtype(dtype.numpy) is dtype
    assert as_dtype(dtype.numpy.type) is dtype
    assert repr(dtype) == f"webgrad.{dtype.name}"
    assert getattr(dtypes, dtype.name) is dtype


@pytest.mark.parametrize("dtype", REAL, ids=repr)
def test_pickling_keeps_identity(dtype: DType) -> None:
    assert pickle.loads(pickle.dumps(dtype)) is dtype


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (bool, "bool"),
        (int, "int32"),
        (float, "float32"),
        (">f4", "float32"),
        (np.dtype(">i8"), "int64"),
        ("f2", "float16"),
        (ml_dtypes.bfloat16, "bfloat16"),
        (np.bool_, "bool"),
        ("double", "float64"),
    ],
    ids=str,
)
def test_other_ways_to_say_it(given: Any, expected: str) -> None:
    assert as_dtype(given) is as_dtype(expected)


@pytest.mark.parametrize(
    "given", ["float8", "complex256", np.longdouble, "U5", object, 3, None, [], {}], ids=str
)
def test_what_is_no_type_is_refused(given: Any) -> None:
    with pytest.raises(DTypeError, match=r"is not a data type of webgrad; there are bool, int8, .*float64"):
        as_dtype(given)


# Numbers beside tensors


@pytest.mark.parametrize("dtype", REAL, ids=repr)
def test_python_numbers_are_weak(dtype: DType) -> None:
    assert dtype_of_scalar(True, dtype) is dtype
    assert dtype_of_scalar(3, dtype) is (dtypes.int32 if dtype.kind == "b" else dtype)
    assert dtype_of_scalar(0.5, dtype) is (dtype if dtype.kind == "f" else dtypes.float32)


def test_numpy_booleans_are_booleans() -> None:
    assert dtype_of_scalar(np.bool_(True), dtypes.bool) is dtypes.bool
    assert dtype_of_scalar(np.bool_(True), dtypes.float16) is dtypes.float16


# Memory


@pytest.mark.parametrize("dtype", REAL, ids=repr)
def test_a_type_lies_in_memory_as_numpy_has_it(dtype: DType) -> None:
    assert dtype.itemsize == dtype.numpy.itemsize
    assert dtype.itemsize in (1, 2, 4, 8)
    names = {"b": "bool", "i": "i", "u": "u", "f": "f"}
    assert dtype.compute.startswith(names[dtype.kind])
    wide = dtype.itemsize == 8
    assert dtype.compute.endswith("64") == wide
    assert bool(dtype.feature) == wide
    assert (dtype.feature == "f64") == (dtype is dtypes.float64)


def test_all_is_everything_once() -> None:
    assert len(REAL) == len(set(REAL)) == 13
    assert len({each.name for each in REAL}) == 13
    with pytest.raises(AttributeError):
        dtypes.float32.extra = 1  # type: ignore[attr-defined]
