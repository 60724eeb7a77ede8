"""Softmax, reductions and dot against NumPy: both shapes, split rows, odd columns, NaN and infinities."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.kernels.harness import (
    DTYPES,
    FULL_GPU,
    NATIVE_F16,
    PROFILES,
    Array,
    as_float64,
    random_values,
    run,
    run_stages,
)
from webgrad.errors import DTypeError, ShapeError
from webgrad.kernels.choose import REDUCE_OPS, dot, reduce, softmax
from webgrad.runtime.profile import PORTABLE, DeviceProfile

SOFTWARE = PROFILES["software"]
SHAPES = {"threads": SOFTWARE, "groups": PORTABLE}
SOFTMAX_SHAPES = {**SHAPES, "subgroups": PROFILES["integrated"]}
FLOATS = ("f32", "f16", "bf16")
EPSILON = {"f32": 2.0**-23, "f16": 2.0**-10, "bf16": 2.0**-7}
REFERENCE: dict[str, Any] = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min}
INF, NAN = np.inf, np.nan


def expected_softmax(x: Array) -> Array:
    with np.errstate(invalid="ignore"):
        e = np.exp(as_float64(x) - as_float64(x).max(1, keepdims=True))
        return np.asarray(e / e.sum(1, keepdims=True))


def check_softmax(profile: DeviceProfile, dtype: str, rows: int, columns: int) -> None:
    x = random_values(dtype, (rows, columns), rows + columns)
    launch = softmax(profile, dtype, rows, columns)
    actual = run(launch, [x], x.dtype, x.size).reshape(x.shape)
    np.testing.assert_allclose(as_float64(actual), expected_softmax(x), rtol=8e-6 + EPSILON[dtype], atol=1e-7)
    if launch.in_place:
        again = run(launch, [x], x.dtype, x.size, in_place=0).reshape(x.shape)
        np.testing.assert_array_equal(as_float64(again), as_float64(actual))


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", SOFTMAX_SHAPES)
def test_softmax(shape: str, dtype: str) -> None:
    for rows, columns in [(1, 1), (3, 4), (9, 7), (17, 64), (5, 65), (33, 100), (3, 1001), (2, 1024)]:
        check_softmax(SOFTMAX_SHAPES[shape], dtype, rows, columns)


@pytest.mark.gpu
def test_softmax_of_few_long_rows_and_native_float16() -> None:
    check_softmax(SOFTWARE, "f32", 2, 20000)
    for columns in (12, 13, 100, 101):
        check_softmax(NATIVE_F16, "f16", 5, columns)
        check_softmax(FULL_GPU, "f16", 5, columns)
    check_softmax(DeviceProfile("discrete", max_workgroups=4), "f32", 15, 100)


@pytest.mark.gpu
@pytest.mark.parametrize("shape", SOFTMAX_SHAPES)
@pytest.mark.parametrize("columns", [8, 7, 68, 67])
def test_softmax_of_special_rows_is_numpys(columns: int, shape: str) -> None:
    x = np.zeros((8, columns), np.float32)
    x[0, 2] = NAN
    x[1, 5] = -NAN
    x[2, 1] = INF
    x[3] = -INF
    x[4, 3] = -INF
    x[5, 1:3] = (3e38, -3e38)
    x[6] = -3.4028235e38
    x[7, 0] = -200
    actual = run(softmax(SOFTMAX_SHAPES[shape], "f32", 8, columns), [x], x.dtype, x.size).reshape(x.shape)
    np.testing.assert_allclose(actual, expected_softmax(x), rtol=1e-6, atol=1e-37)


def check_reduce(profile: DeviceProfile, op: str, dtype: str, rows: int, columns: int) -> None:
    x = random_values(dtype, (rows, columns), rows + columns)
    if op == "prod" and dtype in FLOATS:
        x = (1 + as_float64(x) / 64).astype(x.dtype)
    actual = run_stages(reduce(profile, op, dtype, rows, columns), [x], x.dtype, rows)
    if dtype not in FLOATS:
        np.testing.assert_array_equal(actual, _wrapped(op, x))
        return
    exact = REFERENCE[op](as_float64(x), axis=1)
    scale = np.abs(as_float64(x)).sum(1) if op == "sum" else np.abs(exact)
    bound = EPSILON[dtype] * np.abs(exact)
    if op in ("sum", "prod"):
        bound = bound + (columns + 1) * 2.0**-23 * scale
    else:
        bound = 0 * bound
    assert (np.abs(as_float64(actual) - exact) <= bound).all(), (op, dtype, rows, columns)


def _wrapped(op: str, x: Array) -> Array:
    if op in ("sum", "prod"):
        with np.errstate(over="ignore"):
            return np.asarray(REFERENCE[op](x, axis=1, dtype=x.dtype))
    return np.asarray(REFERENCE[op](x, axis=1))


@pytest.mark.gpu
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("op", REDUCE_OPS)
def test_reduce_float32(op: str, shape: str) -> None:
    for rows, columns in [(1, 1), (5, 3), (9, 8), (70, 257), (17, 1024), (3, 5000), (1, 100003), (2, 70000)]:
        check_reduce(SHAPES[shape], op, "f32", rows, columns)


@pytest.mark.gpu
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [name for name in DTYPES if name != "f32"])
def test_reduce_other_types(dtype: str, shape: str) -> None:
    for op in ("sum", "min") if dtype in ("f16", "i8", "i32") else ("max",):
        for rows, columns in [(5, 12), (7, 101), (3, 6000)]:
            check_reduce(SHAPES[shape], op, dtype, rows, columns)


@pytest.mark.gpu
def test_reduce_integer_products_wrap() -> None:
    check_reduce(SOFTWARE, "prod", "i32", 4, 33)
    check_reduce(SOFTWARE, "prod", "u32", 4, 32)


@pytest.mark.gpu
def test_reduce_native_float16() -> None:
    for rows, columns in [(5, 12), (7, 101), (2, 6001)]:
        check_reduce(NATIVE_F16, "sum", "f16", rows, columns)


@pytest.mark.gpu
@pytest.mark.parametrize("shape", SHAPES)
def test_max_and_min_of_special_rows_are_numpys(shape: str) -> None:
    for columns in (8, 9, 5000):
        x = np.zeros((5, columns), np.float32)
        x[0, -1] = NAN
        x[1] = -INF
        x[2] = INF
        x[3, 2] = -NAN
        x[4, :2] = (INF, -INF)
        for op in ("max", "min"):
            actual = run_stages(reduce(SHAPES[shape], op, "f32", 5, columns), [x], x.dtype, 5)
            np.testing.assert_array_equal(actual, REFERENCE[op](x, axis=1))


@pytest.mark.gpu
@pytest.mark.parametrize("shape", SHAPES)
def test_reduce_rows_without_elements(shape: str) -> None:
    x = np.zeros(0, np.float32)
    for op, value in (("sum", 0), ("prod", 1)):
        assert (run_stages(reduce(SHAPES[shape], op, "f32", 3, 0), [x], x.dtype, 3) == value).all()
    with pytest.raises(ShapeError, match=r"max of rows without elements, shape \(3, 0\), has no value"):
        reduce(SHAPES[shape], "max", "f32", 3, 0)


@pytest.mark.gpu
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [*FLOATS, "i32"])
def test_dot(dtype: str, shape: str) -> None:
    for n in (1, 9, 4096, 100003) if dtype == "f32" else (36, 5001):
        a, b = random_values(dtype, n, 1), random_values(dtype, n, 2)
        actual = run_stages(dot(SHAPES[shape], dtype, n), [a, b], a.dtype, 1)[0]
        if dtype == "i32":
            with np.errstate(over="ignore"):
                assert actual == (a * b).sum(dtype=np.int32)
            continue
        exact = as_float64(a) @ as_float64(b)
        bound = (n + 1) * 2.0**-23 * (np.abs(as_float64(a)) @ np.abs(as_float64(b)))
        assert abs(float(actual) - exact) <= bound + EPSILON[dtype] * abs(exact)


def test_long_rows_are_split_and_sized() -> None:
    for profile in SHAPES.values():
        launches = reduce(profile, "sum", "f16", 1, 16 * 2**20)
        assert len(launches) == 2
        assert launches[0].temporary_bytes == 4 * 1024
        assert launches[1].temporary_bytes == 0
        assert len(reduce(profile, "sum", "f32", 1, 2**30)) == 3
        assert len(reduce(profile, "sum", "f32", 4096, 4096)) == 1


def test_what_is_not_offered_is_named() -> None:
    with pytest.raises(DTypeError, match="there is no reduction 'mean'; there are sum, prod, max, min"):
        reduce(PORTABLE, "mean", "f32", 2, 2)
    with pytest.raises(DTypeError, match="prod is not offered for i8"):
        reduce(PORTABLE, "prod", "i8", 2, 2)
    with pytest.raises(DTypeError, match="softmax is not offered for i32"):
        softmax(PORTABLE, "i32", 2, 2)
    with pytest.raises(ShapeError, match=r"softmax over \(-1, 2\)"):
        softmax(PORTABLE, "f32", -1, 2)
