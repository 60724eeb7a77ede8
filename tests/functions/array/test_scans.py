"""Running totals against NumPy on every device: axes, dtypes, chunks, NaN, empty axes, mistakes."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import webgrad as wg
from tests.functions.devices import everywhere, place
from webgrad import dtypes
from webgrad.errors import AxisError, DTypeError, ShapeError
from webgrad.functions.array.creation import asarray
from webgrad.functions.array.scans import (
    cummax,
    cummin,
    cumprod,
    cumsum,
    cumulative_max,
    cumulative_min,
    cumulative_prod,
    cumulative_sum,
    diff,
)
from webgrad.tensor import Tensor

INF, NAN = np.inf, np.nan
Array = np.ndarray[Any, Any]


def on_cpu(values: Any, dtype: Any = None) -> Tensor:
    return asarray(values, dtype, device="cpu")


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


CASES = {
    "long": (300_001,),
    "groups of four": (65_536,),
    "rows": (3, 20_000),
    "odd rows": (5, 9_001),
    "columns": (20_000, 8),
    "odd columns": (2, 9_000, 3),
    "many rows": (2_000, 300),
}


@everywhere
@pytest.mark.parametrize("case", CASES)
def test_long_sums_of_floats_are_accurate(kind: str, case: str) -> None:
    shape = CASES[case]
    axis = 0 if case == "columns" else 1 % len(shape)
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    exact = x.astype(np.float64).cumsum(axis)
    allowed = 2.0**-23 * 4 * np.sqrt(shape[axis]) * np.abs(x.astype(np.float64)).cumsum(axis)
    assert (np.abs(cumulative_sum(place(kind, x), axis).numpy() - exact) <= allowed).all()


@everywhere
@pytest.mark.parametrize("case", CASES)
def test_long_totals_of_integers_are_exact(kind: str, case: str) -> None:
    shape = CASES[case]
    axis = 0 if case == "columns" else 1 % len(shape)
    x = np.random.default_rng(1).integers(-99, 99, shape).astype(np.int32)
    for function, expected in (
        (cumulative_sum, x.cumsum(axis, dtype=np.int32)),
        (cumulative_prod, x.cumprod(axis, dtype=np.int32)),
        (cumulative_max, np.maximum.accumulate(x, axis)),
        (cumulative_min, np.minimum.accumulate(x, axis)),
    ):
        np.testing.assert_array_equal(function(place(kind, x), axis).numpy(), expected)


@everywhere
def test_long_totals_of_other_types_and_layouts(kind: str) -> None:
    x = np.random.default_rng(3).integers(0, 2, (40_000, 3)).astype(np.uint8)
    np.testing.assert_array_equal(cumsum(place(kind, x), 0).numpy(), x.cumsum(0, dtype=np.uint32))
    np.testing.assert_array_equal(cumsum(place(kind, x).T, 1).numpy(), x.T.cumsum(1, dtype=np.uint32))
    np.testing.assert_array_equal(cummax(place(kind, x > 0), 0).numpy(), np.maximum.accumulate(x > 0, 0))
    halves = np.full(20_000, 0.5, np.float16)
    np.testing.assert_array_equal(
        cumsum(place(kind, halves)).numpy(), halves.cumsum(dtype=np.float32).astype(np.float16)
    )
    wide = np.random.default_rng(4).integers(-(2**60), 2**60, 50_001)
    np.testing.assert_array_equal(cumsum(place(kind, wide)).numpy(), wide.cumsum())


@everywhere
def test_what_is_scanned_may_be_computed_on_the_way(kind: str) -> None:
    x = np.random.default_rng(5).integers(-50, 50, 30_001).astype(np.int32)
    node = cumulative_sum(place(kind, x) * 3 + 1, include_initial=True)[::-1]
    expected = np.concatenate([[0], np.cumsum(x * 3 + 1)])[::-1]
    np.testing.assert_array_equal(node.numpy(), expected)


@pytest.mark.gpu
def test_three_million_elements() -> None:
    x = np.random.default_rng(6).integers(-9, 9, 3_000_001).astype(np.int32)
    np.testing.assert_array_equal(cumsum(place("software", x)).numpy(), x.cumsum(dtype=np.int32))
    np.testing.assert_array_equal(cumsum(place("software", x.astype(np.float32))).numpy(), x.cumsum())


@everywhere
def test_short_runs_keep_float_sums_accurate(kind: str) -> None:
    x = np.full(1 << 20, 0.1, np.float32)
    exact = x.astype(np.float64).cumsum()
    error = np.abs(cumulative_sum(place(kind, x)).numpy() / exact - 1).max()
    assert 500 * error < np.abs(x.cumsum() / exact - 1).max()


@everywhere
def test_chunks_keep_nan_infinities_and_negative_maxima(kind: str) -> None:
    x = np.full(20_000, -5.0, np.float32)
    x[15_000] = NAN
    x[12_000] = INF
    x[:9] = -INF
    np.testing.assert_array_equal(cumulative_max(place(kind, x)).numpy(), np.maximum.accumulate(x))
    np.testing.assert_array_equal(cumulative_min(place(kind, x)).numpy(), np.minimum.accumulate(x))
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(np.isnan(cumulative_sum(place(kind, x)).numpy()), np.isnan(x.cumsum()))
    low = np.full(20_000, -128, np.int8)
    assert (cumulative_max(place(kind, low)).numpy() == -128).all()
    last = np.arange(20_000) == 19_999
    np.testing.assert_array_equal(cumulative_max(place(kind, last)).numpy(), last)


@everywhere
def test_float_products_are_never_cut_into_chunks(kind: str) -> None:
    x = np.full(20_000, 1e30, np.float32)
    x[0] = 0
    assert (cumulative_prod(place(kind, x)).numpy() == 0).all()


def test_other_names() -> None:
    x = on_cpu([[1, 3], [2, 2]])
    assert cumsum(x, 1).tolist() == [[1, 4], [2, 4]]
    assert cumprod(x, axis=0).tolist() == [[1, 3], [2, 6]]
    assert cummax(x, 0).tolist() == [[1, 3], [2, 3]]
    assert cummin(x, 0).tolist() == [[1, 3], [1, 2]]
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
    assert diff(on_cpu([1, 4]), 0, prepend=on_cpu([0]), append=on_cpu([9])).tolist() == [1, 4]
    assert diff(on_cpu(np.zeros(0, np.float32))).shape == (0,)
    assert cumsum(diff(on_cpu([5, 2, 8]), prepend=on_cpu([0]))).tolist() == [5, 2, 8]


def test_mistakes_are_named() -> None:
    x = on_cpu(np.ones((2, 3), np.float32))
    with pytest.raises(AxisError, match=r"cumulative_sum of a tensor of shape \(2, 3\): give an axis"):
        cumulative_sum(x)
    with pytest.raises(AxisError, match="cumsum"):
        cumsum(on_cpu(1.0), axis=1)
    with pytest.raises(AxisError, match=r"cumulative_max.*2"):
        cumulative_max(x, 2)
    with pytest.raises(DTypeError, match="cumprod gives numbers, not bool"):
        cumprod(x, 0, dtype=bool)
    with pytest.raises(DTypeError, match="cumulative_sum takes a webgrad tensor, not a list"):
        cumulative_sum([1, 2])  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match=r"diff: n must be .* not -1"):
        diff(x, -1)
    with pytest.raises(ShapeError, match=r"diff: n must be .* not 1.5"):
        diff(x, 1.5)  # type: ignore[arg-type]
    for other in (np.ones((3, 1), np.float32), np.float32(1)):
        with pytest.raises(
            ShapeError, match=r"diff: prepend and append need the shape of x \(2, 3\).*reshape"
        ):
            diff(x, prepend=on_cpu(other))


@pytest.mark.parametrize("device", ["cpu", pytest.param("webgpu", marks=pytest.mark.gpu)])
def test_logcumsumexp_is_numpys_and_does_not_overflow(device: str) -> None:
    x = np.asarray([[-500.0, 3.0, 2.0, 900.0, -np.inf], [1.0, 2.0, -3.0, 0.0, 4.0]], np.float32)
    for axis in (0, 1):
        given = wg.asarray(x, device=device)
        np.testing.assert_allclose(
            wg.logcumsumexp(given, axis).numpy(), np.logaddexp.accumulate(x, axis), rtol=1e-6
        )
    z = (x[1] * (1 + 2j)).astype(np.complex64)
    found = wg.logcumsumexp(wg.asarray(z, device=device)).numpy()
    np.testing.assert_allclose(np.exp(found), np.cumsum(np.exp(z)), rtol=1e-4)
    line: Any = wg.asarray([0.0, 0.0, 0.0], device=device).requires_grad_()
    wg.logcumsumexp(line)[2].backward()
    np.testing.assert_allclose(line.grad.numpy(), [1 / 3] * 3, rtol=1e-6)
    assert wg.logcumsumexp(wg.asarray(2.5, device=device), 0).item() == 2.5
    with pytest.raises(DTypeError, match="logcumsumexp"):
        wg.logcumsumexp(wg.asarray([1], device=device))
