"""Every mistake raises where it is made, and says which op, shapes, dtypes or devices, and what to do."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from webgrad import dtypes, errors
from webgrad.errors import AxisError, DTypeError, IndexingError, ShapeError, WebgradError
from webgrad.functions.array import elementwise
from webgrad.functions.array.creation import asarray, full, ones, zeros
from webgrad.runtime.device import CpuDevice
from webgrad.tensor import Tensor


def cpu(value: Any, dtype: Any = None) -> Tensor:
    return asarray(value, dtype, device="cpu")


A, B = zeros((2, 3), device="cpu"), zeros((4,), device="cpu")
INTEGERS, BOOLS = ones((2, 3), dtypes.int32, device="cpu"), ones(3, dtypes.bool, device="cpu")
BYTES = ones(3, dtypes.uint8, device="cpu")

MISTAKES: list[tuple[Callable[[], Any], type[WebgradError], str]] = [
    # shapes
    (lambda: A + B, ShapeError, r"add: the shapes \(2, 3\) and \(4,\) do not broadcast.*reshape"),
    (lambda: A < B, ShapeError, r"less: the shapes \(2, 3\) and \(4,\)"),
    (
        lambda: elementwise.where(A > 0, A, B),
        ShapeError,
        r"where: the shapes \(2, 3\) and \(2, 3\) and \(4,\)",
    ),
    (lambda: elementwise.hypot(A, B), ShapeError, r"the shapes \(2, 3\) and \(4,\)"),
    (lambda: A @ B, ShapeError, r"matmul.*\(2, 3\).*\(4,\)"),
    (lambda: A @ A, ShapeError, r"matmul of \(2, 3\) and \(2, 3\).*\.mT"),
    (lambda: A.reshape(4, 2), ShapeError, r"reshape.*\(2, 3\).*6 elements.*\(4, 2\)"),
    (lambda: A.reshape(-1, 4), ShapeError, r"reshape.*\(2, 3\)"),
    (lambda: A.expand(3, 3), ShapeError, r"\(2, 3\).*\(3, 3\)"),
    (lambda: A.item(), ShapeError, r"item\(\).*6.*\(2, 3\).*tolist"),
    (lambda: bool(A), ShapeError, r"bool\(\).*any\(\), all\(\)"),
    (lambda: float(A), ShapeError, r"float\(\)"),
    # axes
    (lambda: A.sum(axis=2), AxisError, r"sum: there is no axis 2 in a tensor of 2 dimensions.*-2 to 1"),
    (lambda: A.sum(axis=(0, 0)), AxisError, r"sum: an axis is named twice in \(0, 0\)"),
    (lambda: A.sum(axis=0.5), AxisError, "sum: an axis must be an integer, not 0.5"),
    (lambda: A.permute(0, 2), AxisError, "there is no axis 2"),
    (lambda: A.transpose(0, 5), AxisError, "there is no axis 5"),
    # dtypes
    (
        lambda: INTEGERS.softmax(),
        DTypeError,
        r"softmax is not offered for int32.*x\.astype\(webgrad\.float32\)",
    ),
    (lambda: BOOLS + BOOLS, DTypeError, r"add is not offered for bool"),
    (lambda: -BOOLS, DTypeError, "negative is not offered for bool"),
    (lambda: A & A, DTypeError, r"bitwise_and is not offered for float32.*x\.astype\(webgrad\.int32\)"),
    (lambda: ~A, DTypeError, "bitwise_invert is not offered for float32"),
    (lambda: A << 2, DTypeError, "left_shift is not offered for float32"),
    (lambda: BYTES + 300, DTypeError, r"add: 300 does not fit uint8, which holds 0 to 255.*wider"),
    (lambda: BYTES + -1, DTypeError, "add: -1 does not fit uint8"),
    (lambda: INTEGERS + 2**31, DTypeError, "add: 2147483648 does not fit int32"),
    (
        lambda: cpu([1], dtypes.uint64) + cpu([1], dtypes.int64),
        DTypeError,
        "uint64 and int64 have no common integer type.*astype",
    ),
    (
        lambda: A.astype("float31"),
        DTypeError,
        "'float31' is not a data type of webgrad; there are bool, int8",
    ),
    (lambda: [1, 2, 3] - A, DTypeError, r"subtract: a list cannot be an operand.*webgrad\.asarray"),
    (lambda: elementwise.add(A, "x"), DTypeError, r"add takes a webgrad tensor, not a str"),
    (lambda: elementwise.add(1, 2), DTypeError, r"add takes a webgrad tensor, not a int.*asarray\(1\)"),
    (lambda: elementwise.exp(1.5), DTypeError, r"exp takes a webgrad tensor, not a float.*asarray\(1\.5\)"),  # type: ignore[arg-type]
    (lambda: elementwise.exp(np.ones(2)), DTypeError, "exp takes a webgrad tensor, not a ndarray"),  # type: ignore[arg-type]
    (lambda: elementwise.where(True, A, A), DTypeError, "where takes a webgrad tensor, not a bool"),  # type: ignore[call-overload]
    (lambda: elementwise.where(A > 0, "a", 1), DTypeError, "where takes a webgrad tensor, not a str"),
    (lambda: elementwise.clip(A, "a"), DTypeError, "clip takes a webgrad tensor, not a str"),
    (lambda: elementwise.nan_to_num([1.0]), DTypeError, "nan_to_num takes a webgrad tensor, not a list"),  # type: ignore[arg-type]
    (lambda: elementwise.array_equal(A, [1]), DTypeError, "array_equal takes a webgrad tensor"),  # type: ignore[arg-type]
    (lambda: full((2,), None, device="cpu"), DTypeError, "full takes a real number here, not None"),
    # indices
    (lambda: A[2], IndexingError, r"index 2 is out of range for axis 0 with size 2 \(shape \(2, 3\)\)"),
    (lambda: A[0, 0, 0], IndexingError, "3 indices for a tensor of 2 dimensions"),
    (lambda: A["a"], IndexingError, "'a' is not an index"),
]


@pytest.mark.parametrize(("mistake", "error", "message"), MISTAKES, ids=[each[2][:50] for each in MISTAKES])
def test_mistakes(mistake: Callable[[], Any], error: type[WebgradError], message: str) -> None:
    with pytest.raises(error) as found:
        mistake()
    assert type(found.value) is error
    assert re.search(message, str(found.value)), str(found.value)
    assert "\n" not in str(found.value)


def test_our_errors_are_pythons_too() -> None:
    """Programs written for NumPy catch these."""
    with pytest.raises(ValueError, match="broadcast"):
        A + B
    with pytest.raises(IndexError, match="out of range"):
        A[9]
    with pytest.raises(TypeError, match="not offered"):
        INTEGERS.softmax()
    with pytest.raises(IndexError, match="no axis"):
        A.sum(axis=9)


def test_two_devices() -> None:
    other = CpuDevice()
    other.name = "webgpu:3"
    x, y = cpu([1.0]), asarray([1.0], device=other)
    for call in (
        lambda: x + y,
        lambda: elementwise.where(x > 0, y, y),
        lambda: elementwise.where(x > 0, x, y),
        lambda: x[y.astype(dtypes.int32)],
        lambda: x.__setitem__(0, y),
        lambda: elementwise.maximum(x, y),
    ):
        with pytest.raises(errors.DeviceError, match=r"on (cpu|webgpu:3).*on (cpu|webgpu:3).*to_device\("):
            call()


def test_a_mistake_in_place_changes_nothing() -> None:
    x = cpu([1, 2, 3])
    before = x.node
    for bad in (2.5, cpu([1.0, 2.0, 3.0]), cpu([[1], [2]]), "text"):
        with pytest.raises((WebgradError, TypeError)):
            x += bad
    assert x.node is before


def test_public_dtype_names() -> None:
    assert [each.name for each in dtypes.REAL] == [
        "bool",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "bfloat16",
        "float16",
        "float32",
        "float64",
    ]
    for each in dtypes.REAL:
        assert getattr(dtypes, each.name) is each
        assert dtypes.as_dtype(each.name) is dtypes.as_dtype(each.numpy) is each
        assert repr(each) == f"webgrad.{each.name}"
