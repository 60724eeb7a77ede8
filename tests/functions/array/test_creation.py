"""Creation: every kind of value in, with the dtype it should have; and tensors made from a shape."""

from __future__ import annotations

import array
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import webgrad
from webgrad import dtypes
from webgrad.errors import ArgumentError, BufferError, DTypeError, ShapeError
from webgrad.functions.array.creation import (
    arange,
    as_tensor,
    asarray,
    empty,
    empty_like,
    eye,
    full,
    full_like,
    linspace,
    meshgrid,
    ones,
    ones_like,
    tensor,
    zeros,
    zeros_like,
)
from webgrad.graph.op import LEAF


def cpu(value: Any, dtype: Any = None, **options: Any) -> Any:
    return asarray(value, dtype, device="cpu", **options)


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        ([1.0, 2.5], dtypes.float32, [1.0, 2.5]),
        ([1, 2], dtypes.int32, [1, 2]),
        ([1, 2.5], dtypes.float32, [1.0, 2.5]),
        ([True, False], dtypes.bool, [True, False]),
        ([True, 2], dtypes.int32, [1, 2]),
        (((1, 2), (3, 4)), dtypes.int32, [[1, 2], [3, 4]]),
        (3, dtypes.int32, 3),
        (2.5, dtypes.float32, 2.5),
        (True, dtypes.bool, True),
        ([], dtypes.float32, []),
        ([[], []], dtypes.float32, [[], []]),
        (range(3), dtypes.int32, [0, 1, 2]),
        (b"\x01\xff", dtypes.uint8, [1, 255]),
        (bytearray(b"\x02"), dtypes.uint8, [2]),
        (array.array("d", [1.5]), dtypes.float64, [1.5]),
        (np.array([[1, 2]], np.int16).data, dtypes.int16, [[1, 2]]),
        (np.float64(1.5), dtypes.float64, 1.5),
        (np.float16(1.5), dtypes.float16, 1.5),
        ([np.array([1, 2], np.int8), np.array([3, 4], np.int8)], dtypes.int8, [[1, 2], [3, 4]]),
        (np.array([1.5], ml_dtypes.bfloat16), dtypes.bfloat16, [1.5]),
        (np.arange(3, dtype=">i4"), dtypes.int32, [0, 1, 2]),
        (np.arange(3, dtype=">f8")[::-1], dtypes.float64, [2.0, 1.0, 0.0]),
        (np.asfortranarray([[1, 2], [3, 4]]), dtypes.int64, [[1, 2], [3, 4]]),
        (np.arange(12).reshape(3, 4)[::2, ::-2], dtypes.int64, [[3, 1], [11, 9]]),
        (np.array(7, np.uint16), dtypes.uint16, 7),
        (np.zeros((0, 2), np.uint8), dtypes.uint8, []),
    ],
    ids=repr,
)
def test_values(value: Any, dtype: dtypes.DType, expected: Any) -> None:
    x = cpu(value)
    assert x.dtype is dtype
    assert x.tolist() == expected
    assert x.shape == np.shape(value if not isinstance(value, (bytes, bytearray)) else list(value))


@pytest.mark.parametrize("dtype", dtypes.REAL, ids=lambda dtype: dtype.name)
def test_every_dtype(dtype: dtypes.DType) -> None:
    x = cpu(np.array([0, 1, 1]), dtype)
    assert x.dtype is dtype
    assert x.numpy().dtype == dtype.numpy
    assert x.numpy().astype(np.int32).tolist() == [0, 1, 1]
    assert cpu(x.numpy()).dtype is dtype
    assert zeros(2, dtype, device="cpu").dtype is dtype
    assert ones((), dtype, device="cpu").astype(dtypes.int32).item() == 1


def test_conversion_on_the_way_in() -> None:
    assert cpu([1.9, -1.9, float("nan"), 1e30], dtypes.int32).tolist() == [1, -1, 0, 2**31 - 1]
    assert cpu(np.array([300, -1]), dtypes.uint8).tolist() == [44, 255]
    assert cpu([1, 2], "float16").dtype is dtypes.float16
    assert cpu([2**40], dtypes.int64).tolist() == [2**40]
    assert cpu([2**64 - 1], dtypes.uint64).tolist() == [2**64 - 1]
    assert cpu([1e300], dtypes.float32).tolist() == [float("inf")]


def test_values_are_copied() -> None:
    host = np.array([1.0, 2.0], np.float32)
    x = cpu(host)
    y = tensor(host, device="cpu")
    host[0] = 9
    assert x.tolist() == y.tolist() == [1.0, 2.0]


def test_copy_false_shares() -> None:
    host = np.array([1.0, 2.0], np.float32)
    x = cpu(host, copy=False)
    assert np.shares_memory(x.node.storage, host)
    with pytest.raises(BufferError, match="copy=False"):
        cpu(host, dtypes.float64, copy=False)
    with pytest.raises(BufferError, match="not contiguous"):
        cpu(host[::2].reshape(1, 1)[:, ::-1].repeat(2, 1)[:, ::-1], copy=False)
    with pytest.raises(BufferError, match=r"copy=False.*list"):
        cpu([1.0], copy=False)


def test_tensors_pass() -> None:
    x = cpu([1, 2])
    assert asarray(x) is x
    assert asarray(x, dtypes.int32) is x
    assert asarray(x, copy=True) is not x
    assert asarray(x, dtypes.float32).dtype is dtypes.float32
    assert cpu([x[0], x[1]]).tolist() == [1, 2]
    assert cpu([x, x]).tolist() == [[1, 2], [1, 2]]


def test_other_libraries() -> None:
    class HasArray:
        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            return np.array([1.5, 2.5])

    class HasDlpack:
        def __dlpack__(self, **options: Any) -> Any:
            return np.array([1, 2], np.int16).__dlpack__()

        def __dlpack_device__(self) -> tuple[int, int]:
            return (1, 0)

    assert cpu(HasArray()).dtype is dtypes.float64
    x = cpu(HasDlpack())
    assert x.dtype is dtypes.int16
    assert x.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (["a"], DTypeError, "asarray: a list of <U1 values"),
        ([None], DTypeError, "asarray: a list of object values"),
        (object(), DTypeError, "asarray: a object of object values"),
        (np.datetime64("2020-01-01"), DTypeError, "datetime64"),
        (np.zeros(2, np.longdouble), DTypeError, "not a data type of webgrad"),
        ([[1, 2], [3]], ShapeError, "asarray: these values do not make an array"),
        ([2**40], DTypeError, r"1099511627776 does not fit int32.*dtype=webgrad\.int64"),
        ([2**80], DTypeError, "object values"),
    ],
    ids=repr,
)
def test_what_is_no_tensor(value: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        cpu(value)


def test_numbers_must_fit_the_dtype_asked_for() -> None:
    with pytest.raises(DTypeError, match=r"300 does not fit uint8, which holds 0 to 255"):
        cpu([1, 300], dtypes.uint8)
    with pytest.raises(DTypeError, match=r"-1 does not fit uint8"):
        cpu([-1, 0], dtypes.uint8)


def test_as_tensor() -> None:
    x = cpu([1])
    assert as_tensor("sum", x) is x
    with pytest.raises(
        DTypeError, match=r"sum takes a webgrad tensor, not a list.*webgrad\.asarray\(\[1, 2\]\)"
    ):
        as_tensor("sum", [1, 2])
    with pytest.raises(DTypeError, match=r"sum takes a webgrad tensor, not a ndarray.*asarray\(…\)"):
        as_tensor("sum", np.zeros(3))


# From a shape


def test_full() -> None:
    assert full((2, 3), 7, device="cpu").dtype is dtypes.int32
    assert full((2,), 1.5, device="cpu").tolist() == [1.5, 1.5]
    assert full((), True, device="cpu").item() is True
    assert full(3, np.float64(2), device="cpu").dtype is dtypes.float32
    assert full((0, 2), 1, device="cpu").shape == (0, 2)
    assert zeros([2, 1], device="cpu").tolist() == [[0.0], [0.0]]
    assert ones(2, dtypes.uint8, device="cpu").tolist() == [1, 1]
    assert empty((2, 2), device="cpu").shape == (2, 2)
    assert np.isnan(full(2, float("nan"), device="cpu").numpy()).all()


def test_constants_take_no_memory() -> None:
    for x in (zeros((1 << 20, 1 << 10), device="cpu"), arange(1 << 40 >> 10, device="cpu")):
        assert x.node.sig.op is not LEAF
        assert x.node.storage is None


def test_like() -> None:
    x = cpu(np.ones((2, 3), np.int16))
    for function, value in ((zeros_like, 0), (ones_like, 1), (empty_like, 0)):
        y = function(x)
        assert (y.shape, y.dtype, y.device) == (x.shape, x.dtype, x.device)
        assert y[0, 0].item() == value
        assert function(x, dtypes.float32).dtype is dtypes.float32
    assert full_like(x, 5).tolist() == [[5, 5, 5]] * 2
    with pytest.raises(DTypeError, match="zeros_like takes a webgrad tensor"):
        zeros_like(np.zeros(2))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "arguments",
    [
        (5,),
        (0,),
        (-3,),
        (2, 7),
        (7, 2, -2),
        (0, 10, 3),
        (5, 5),
        (10, 0, -1),
        (-5, 5, 4),
        (1.5,),
        (0.0, 1.0, 0.25),
    ],
)
def test_arange(arguments: tuple[Any, ...]) -> None:
    x = arange(*arguments, device="cpu")
    expected = np.arange(*arguments)
    assert x.dtype is (dtypes.float32 if expected.dtype.kind == "f" else dtypes.int32)
    assert x.tolist() == expected.tolist()


def test_arange_of_other_types() -> None:
    assert arange(5, 0, -2, dtypes.uint8, device="cpu").tolist() == [5, 3, 1]
    assert arange(2**33, 2**33 + 3, dtype=dtypes.int64, device="cpu").tolist() == [
        2**33 + i for i in range(3)
    ]
    assert arange(2**32 - 1, 2**32 - 4, -1, dtypes.uint32, device="cpu").tolist() == [
        2**32 - i for i in (1, 2, 3)
    ]
    assert arange(3, dtype=dtypes.bfloat16, device="cpu").tolist() == [0.0, 1.0, 2.0]
    np.testing.assert_allclose(arange(0, 100, 0.1, device="cpu").numpy(), np.arange(0, 100, 0.1), rtol=1e-6)
    with pytest.raises(DTypeError, match="arange: 299 does not fit uint8"):
        arange(300, dtype=dtypes.uint8, device="cpu")
    with pytest.raises(DTypeError, match="arange is not offered for bool"):
        arange(2, dtype=bool, device="cpu")
    with pytest.raises(ShapeError, match="arange from 0 to 5 by 0 does not end"):
        arange(0, 5, 0, device="cpu")
    with pytest.raises(ShapeError, match="does not end"):
        arange(float("inf"), device="cpu")


@pytest.mark.parametrize(
    "arguments", [(0, 1, 5), (0, 1, 1), (0, 1, 0), (3, 3, 4), (-2.5, 7.25, 13), (5, -5, 101)]
)
def test_linspace(arguments: tuple[Any, ...]) -> None:
    for endpoint in (True, False):
        x = linspace(*arguments, device="cpu", endpoint=endpoint)
        start, stop, num = arguments
        expected = np.linspace(start, stop, num, endpoint=endpoint)
        assert x.dtype is dtypes.float32
        np.testing.assert_allclose(x.numpy(), expected, rtol=3e-7, atol=1e-6)
        if arguments[2] and endpoint:
            assert x[0].item() == arguments[0]
            assert arguments[2] == 1 or x[-1].item() == arguments[1]
    with pytest.raises(DTypeError, match="linspace is not offered for int32"):
        linspace(0, 1, 3, dtypes.int32, device="cpu")


def test_linspace_of_thirds_is_rounded_once() -> None:
    np.testing.assert_array_equal(
        linspace(0, 1, 7, device="cpu").numpy(), np.linspace(0, 1, 7, dtype=np.float32)
    )


def test_linspace_without_its_end_is_the_same_without_it() -> None:
    longer = linspace(0.0, 13.0, 6, device="cpu")
    np.testing.assert_array_equal(
        linspace(0.0, 13.0, 5, endpoint=False, device="cpu").numpy(), longer[:-1].numpy()
    )


def test_linspace_of_complex_numbers() -> None:
    x = linspace(1j, 2 - 1j, 5, device="cpu")
    assert x.dtype is dtypes.complex64
    np.testing.assert_array_equal(x.numpy(), np.linspace(1j, 2 - 1j, 5).astype(np.complex64))
    assert linspace(0, 1, 3, dtypes.complex128, device="cpu").tolist() == [0, 0.5, 1]
    with pytest.raises(DTypeError, match=r"float32 from 0 to 1j"):
        linspace(0, 1j, 3, dtypes.float32, device="cpu")
    assert linspace(np.complex128(1j), np.complex128(3j), 3, device="cpu").tolist() == [1j, 2j, 3j]


def test_linspace_over_more_than_a_type_holds() -> None:
    most = float(np.finfo(np.float32).max)
    assert linspace(-most, most, 5, device="cpu").tolist() == [-most, -most / 2, 0, most / 2, most]


@pytest.mark.parametrize("num", [-1, 2.5, None])
def test_linspace_counts_in_whole_numbers(num: Any) -> None:
    with pytest.raises(ShapeError, match=rf"linspace: num must be an integer.*not {num}"):
        linspace(0, 1, num, device="cpu")


def test_eye() -> None:
    for rows, columns, k in ((3, None, 0), (2, 4, 1), (4, 2, -1), (0, 3, 0), (3, 3, 7), (3, 3, -7)):
        x = eye(rows, columns, k=k, dtype=dtypes.int8, device="cpu")
        np.testing.assert_array_equal(x.numpy(), np.eye(rows, columns, k=k, dtype=np.int8))
    assert eye(2, device="cpu").dtype is dtypes.float32
    assert eye(2, k=1 << 40, device="cpu").tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_meshgrid() -> None:
    sizes = [np.arange(2), np.arange(3.0), np.arange(4)]
    for indexing in ("xy", "ij"):
        for count in (1, 2, 3):
            ours = meshgrid(*map(cpu, sizes[:count]), indexing=indexing)
            for a, b in zip(ours, np.meshgrid(*sizes[:count], indexing=indexing), strict=True):
                np.testing.assert_array_equal(a.numpy(), b)
    assert meshgrid() == ()
    with pytest.raises(ShapeError, match="one dimension"):
        meshgrid(zeros((2, 2), device="cpu"))
    with pytest.raises(ArgumentError, match="'xy' or 'ij', not 'yx'"):
        meshgrid(cpu([1]), indexing="yx")


@pytest.mark.parametrize(
    ("shape", "message"),
    [((-1, 2), "negative"), ((1.5,), "not a shape"), ("ab", "not a shape"), (None, "not a shape")],
)
def test_shapes_that_are_none(shape: Any, message: str) -> None:
    with pytest.raises(ShapeError, match=f"zeros.*{message}"):
        zeros(shape, device="cpu")


def test_a_fill_value_may_be_a_tensor_of_no_axes() -> None:
    value = cpu(2.5)
    assert full((2,), value).tolist() == [2.5, 2.5]
    assert full((2,), value).device is value.device
    assert full((2, 1), value, dtypes.int32).tolist() == [[2], [2]]
    assert full_like(cpu([1, 2, 3]), value).tolist() == [2, 2, 2]
    captured = webgrad.jit(lambda number: full((2,), number) + 1)
    assert captured(cpu(1.0)).tolist() == [2, 2]
    assert captured(cpu(4.0)).tolist() == [5, 5]


def test_bounds_may_be_tensors_of_one_element() -> None:
    assert arange(cpu(1), cpu([7]), cpu(2), device="cpu").tolist() == [1, 3, 5]
    assert arange(cpu(2.0), device="cpu").dtype is dtypes.float32
    with pytest.raises(DTypeError, match="arange takes a real number here, not a tensor of shape"):
        arange(cpu([1, 2]), device="cpu")


def test_what_nobody_counts_is_refused() -> None:
    with pytest.raises(ShapeError, match=r"arange: a size of 1000000.*too large.*smaller parts"):
        arange(1e30, device="cpu")
    with pytest.raises(ShapeError, match=r"full: a size of 1000000.*too large.*smaller parts"):
        full(10**30, 1, device="cpu")
    with pytest.raises(DTypeError, match=r"eye: k, the diagonal, must be an integer, not 1\.5"):
        eye(2, k=1.5)  # type: ignore[arg-type]


def test_fill_values_that_are_none() -> None:
    with pytest.raises(DTypeError, match="full takes a real number here, not 'a'"):
        full((2,), "a", device="cpu")
    with pytest.raises(DTypeError, match="full takes a real number here, not a tensor"):
        full((2,), cpu([1]), device="cpu")
    with pytest.raises(DTypeError, match="full: 300 does not fit uint8"):
        full((2,), 300, dtypes.uint8, device="cpu")
    with pytest.raises(DTypeError, match="nan is not a number of int32"):
        full((2,), float("nan"), dtypes.int32, device="cpu")


def test_a_tensor_without_a_copy() -> None:
    x = cpu([1.0, 2.0])
    assert asarray(x, dtypes.float32, device="cpu", copy=False) is x
    with pytest.raises(BufferError, match=r"copy=False is impossible.*float32 on cpu as int8 on cpu"):
        asarray(x, dtypes.int8, copy=False)
