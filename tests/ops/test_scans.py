"""Running totals against NumPy: every axis and dtype, blocks, NaN and infinities, empty axes, mistakes."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from webgrad import dtypes
from webgrad.errors import AxisError, DTypeError, ShapeError
from webgrad.ops.creation import asarray
from webgrad.ops.scans import (
    cummax,
    cumprod,
    cumsum,
    cumulative_max,
    cumulative_prod,
    cumulative_sum,
    diff,
)
from webgrad.tensor import Tensor

INF, NAN = np.inf, np.nan
Array = np.ndarray[Any, Any]


def on_cpu(values: Any, dtype: Any = None) -> Tensor:
    return asarray(values, dtype, device="cpu")


def ops_in(x: Tensor) -> list[str]:
    """The names of the ops under a tensor."""
    from webgrad.graph.walk import pending

    return [node.sig.op.name for node in pending([x.node])]


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
def test_totals_along_every_axis(axis: int) -> None:
    x = np.random.default_rng(0).integers(-9, 9, (4, 5, 6)).astype(np.int32)
    np.testing.assert_array_equal(cumulative_sum(on_cpu(x), axis).numpy(), x.cumsum(axis, dtype=np.int32))
    np.testing.assert_array_equal(cumulative_prod(on_cpu(x), axis).numpy(), x.cumprod(axis, dtype=np.int32))
    np.testing.assert_array_equal(cumulative_max(on_cpu(x), axis).numpy(), np.maximum.accumulate(x, axis))


@pytest.mark.parametrize(
    ("dtype", "total"),
    [
        ("bool", "int32"),
        ("int8", "int32"),
        ("int16", "int32"),
        ("int32", "int32"),
        ("int64", "int64"),
        ("uint8", "uint32"),
        ("uint16", "uint32"),
        ("uint32", "uint32"),
        ("uint64", "uint64"),
        ("bfloat16", "bfloat16"),
        ("float16", "float16"),
        ("float32", "float32"),
        ("float64", "float64"),
    ],
)
def test_dtypes_of_totals(dtype: str, total: str) -> None:
    x = np.array([1, 0, 1, 1], dtypes.as_dtype(dtype).numpy)
    for function, expected in ((cumulative_sum, [1, 1, 2, 3]), (cumulative_prod, [1, 0, 0, 0])):
        result = function(on_cpu(x))
        assert result.dtype.name == total
        assert result.numpy().astype(np.float64).tolist() == expected
    largest = cumulative_max(on_cpu(x))
    assert largest.dtype.name == dtype
    assert largest.numpy().astype(np.float64).tolist() == [1, 1, 1, 1]


def test_a_dtype_can_be_asked_for() -> None:
    x = on_cpu(np.full(3, 200, np.uint8))
    assert cumulative_sum(x, dtype="uint8").tolist() == [200, 144, 88]
    assert cumulative_sum(x, dtype=dtypes.float32).dtype is dtypes.float32
    assert cumulative_sum(on_cpu([1.9, 1.9]), dtype="int32").tolist() == [1, 2]


def test_sixteen_bit_floats_are_added_in_float32() -> None:
    x = np.full(600, 0.1, ml_dtypes.bfloat16)
    expected = x.astype(np.float32).cumsum(dtype=np.float32).astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(cumulative_sum(on_cpu(x)).numpy(), expected)


def test_initial_values() -> None:
    x = on_cpu([[1, 2], [3, 4]])
    assert cumulative_sum(x, axis=0, include_initial=True).tolist() == [[0, 0], [1, 2], [4, 6]]
    assert cumulative_prod(x, axis=1, include_initial=True).tolist() == [[1, 1, 2], [1, 3, 12]]
    empty = on_cpu(np.zeros((0, 2), np.float32))
    assert cumulative_sum(empty, axis=0, include_initial=True).tolist() == [[0.0, 0.0]]


def test_empty_axes_and_single_elements() -> None:
    for shape, axis in [((0,), 0), ((3, 0), 1), ((0, 3), 1), ((0, 3), 0)]:
        for function in (cumulative_sum, cumulative_prod, cumulative_max):
            assert function(on_cpu(np.ones(shape, np.float32)), axis).shape == shape
    assert cumulative_sum(on_cpu([7.0])).tolist() == [7.0]


def test_nan_and_infinities_are_numpys() -> None:
    x = np.array([1, INF, -INF, 2, NAN, 3], np.float32)
    with np.errstate(invalid="ignore"):
        for rows in (x, x[::-1].copy(), np.array([-INF, 0, -0.0, INF], np.float32)):
            np.testing.assert_array_equal(cumulative_sum(on_cpu(rows)).numpy(), rows.cumsum())
            np.testing.assert_array_equal(cumulative_prod(on_cpu(rows)).numpy(), rows.cumprod())
            np.testing.assert_array_equal(cumulative_max(on_cpu(rows)).numpy(), np.maximum.accumulate(rows))


@pytest.mark.parametrize("length", [1025, 4096, 4097, 5000, 65537, 300_000])
def test_long_sums_go_by_blocks(length: int) -> None:
    x = np.random.default_rng(length).standard_normal(length).astype(np.float32)
    result = cumulative_sum(on_cpu(x))
    assert ops_in(result).count("cumulative_sum") >= 2
    exact = x.astype(np.float64).cumsum()
    allowed = 2.0**-23 * 4 * np.sqrt(length) * np.abs(x.astype(np.float64)).cumsum()
    assert (np.abs(result.numpy() - exact) <= allowed).all()


def test_blocks_keep_float_sums_accurate() -> None:
    x = np.full(1 << 20, 0.1, np.float32)
    exact = x.astype(np.float64).cumsum()
    error = np.abs(cumulative_sum(on_cpu(x)).numpy() / exact - 1).max()
    assert 20 * error < np.abs(x.cumsum() / exact - 1).max()


def test_blocks_along_other_axes() -> None:
    x = np.random.default_rng(1).integers(-99, 99, (2, 5000, 3)).astype(np.int32)
    for function, expected in (
        (cumulative_sum, x.cumsum(1, dtype=np.int32)),
        (cumulative_prod, x.cumprod(1, dtype=np.int32)),
        (cumulative_max, np.maximum.accumulate(x, 1)),
    ):
        result = function(on_cpu(x), 1)
        assert ops_in(result).count(function.__name__) == 2
        np.testing.assert_array_equal(result.numpy(), expected)


def test_blocks_keep_nan_infinities_and_negative_maxima() -> None:
    x = np.full(6000, -5.0, np.float32)
    x[5000] = NAN
    x[4000] = INF
    x[:9] = -INF
    np.testing.assert_array_equal(cumulative_max(on_cpu(x)).numpy(), np.maximum.accumulate(x))
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(np.isnan(cumulative_sum(on_cpu(x)).numpy()), np.isnan(x.cumsum()))
    low = np.full(5000, -128, np.int8)
    assert (cumulative_max(on_cpu(low)).numpy() == -128).all()
    assert cumulative_max(on_cpu(np.arange(5000) == 4999)).numpy().tolist() == [False] * 4999 + [True]


def test_float_products_are_never_cut_into_blocks() -> None:
    x = np.full(5000, 1e30, np.float32)
    x[0] = 0
    assert (cumulative_prod(on_cpu(x)).numpy() == 0).all()


def test_many_rows_need_no_blocks() -> None:
    x = on_cpu(np.ones((64, 5000), np.int32))
    assert ops_in(cumulative_sum(x, 1)).count("cumulative_sum") == 1


def test_other_names() -> None:
    x = on_cpu([[1, 3], [2, 2]])
    assert cumsum(x, 1).tolist() == [[1, 4], [2, 4]]
    assert cumprod(x, axis=0).tolist() == [[1, 3], [2, 6]]
    assert cummax(x, 0).tolist() == [[1, 3], [2, 3]]
    assert x.cumsum(axis=1).tolist() == [[1, 4], [2, 4]]


@pytest.mark.parametrize("n", [0, 1, 2, 3, 9])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_differences(n: int, axis: int) -> None:
    x = np.random.default_rng(n).integers(-99, 99, (4, 3)).astype(np.int32)
    np.testing.assert_array_equal(diff(on_cpu(x), n, axis).numpy(), np.diff(x, n, axis))


def test_differences_of_other_types_and_ends() -> None:
    assert diff(on_cpu([True, True, False])).tolist() == [False, True]
    assert diff(on_cpu(np.array([3, 1], np.uint8))).tolist() == [254]
    np.testing.assert_array_equal(diff(on_cpu([1.0, INF, INF, NAN])).numpy(), [INF, NAN, NAN])
    assert diff(on_cpu([1, 4]), prepend=on_cpu([0]), append=on_cpu([9])).tolist() == [1, 3, 5]
    assert diff(on_cpu(np.zeros(0, np.float32))).shape == (0,)
    assert cumsum(diff(on_cpu([5, 2, 8]), prepend=on_cpu([0]))).tolist() == [5, 2, 8]


def test_mistakes_are_named() -> None:
    x = on_cpu(np.ones((2, 3), np.float32))
    with pytest.raises(
        AxisError, match=r"cumulative_sum of a tensor of shape \(2, 3\): say along which axis"
    ):
        cumulative_sum(x)
    with pytest.raises(AxisError, match="cumsum"):
        cumsum(on_cpu(1.0))
    with pytest.raises(AxisError, match=r"cumulative_max.*2"):
        cumulative_max(x, 2)
    with pytest.raises(DTypeError, match="cumprod gives numbers, not bool"):
        cumprod(x, 0, dtype=bool)
    with pytest.raises(DTypeError, match="cumulative_sum takes a webgrad tensor, not a list"):
        cumulative_sum([1, 2])  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match=r"diff: n is how often .* not -1"):
        diff(x, -1)
    with pytest.raises(ShapeError, match=r"diff: n is how often .* not 1.5"):
        diff(x, 1.5)  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match="concat"):
        diff(x, prepend=on_cpu(np.ones((3, 1), np.float32)))
