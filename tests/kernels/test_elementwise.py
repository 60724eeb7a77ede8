"""Maps against NumPy: every op and dtype, lengths about the group sizes, NaN and infinities, in place."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from tests.kernels.harness import DTYPES, NATIVE_F16, PROFILES, Array, as_float64, random_values, run
from webgrad.errors import DTypeError, LaunchError
from webgrad.kernels.choose import BINARY_OPS, BROADCAST_OPS, UNARY_OPS, binary, fill, unary
from webgrad.kernels.elementwise import Broadcast
from webgrad.runtime.profile import PORTABLE

SOFTWARE = PROFILES["software"]
SHAPES = {"chunks": SOFTWARE, "grid": PORTABLE}
LENGTHS = (1, 2, 3, 4, 5, 7, 8, 9, 255, 256, 257, 100003)
EPSILON = {"f32": 2.0**-23, "f16": 2.0**-10, "bf16": 2.0**-7}
# How many units in the last place of float32 an op may be wrong by, and absolutely.
ULPS = {"relu": 0, "neg": 0, "abs": 0, "add": 1, "sub": 1, "mul": 1, "maximum": 0, "minimum": 0}
ABSOLUTE = {"gelu": 1e-6, "gelu_tanh": 1e-6, "log": 1e-6}
SPECIAL = [math.nan, -math.nan, math.inf, -math.inf, 0.0, -0.0, 1e-30, -1e-30, 1e30, -1e30, 1e-4, -1e-4]
SPECIAL += [0.624, -0.626, 9.0, -9.0, 50.0, -50.0, 88.0, -88.0, 100.0, -101.0, 1e4, -1e4, 3e38, -3e38]


def _gelu(x: Array) -> Array:
    phi = np.vectorize(lambda v: 0.5 * math.erfc(-v / math.sqrt(2)), otypes=[np.float64])(x)
    return np.where(np.isneginf(x), 0.0, x * phi)


def _gelu_tanh(x: Array) -> Array:
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
    return np.where(x < -1e3, 0.0, 0.5 * x * (1 + np.tanh(inner)))


def _silu(x: Array) -> Array:
    return np.where(np.isneginf(x), 0.0, x / (1 + np.exp(-x)))


UNARY: dict[str, Callable[[Array], Array]] = {
    "relu": lambda x: np.maximum(x, 0),
    "neg": np.negative,
    "abs": np.abs,
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "tanh": np.tanh,
    "silu": _silu,
    "scale": lambda x: x * 1.5,
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
}
BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "silu_mul": lambda a, b: _silu(a) * b,
}


def scalars(op: str) -> tuple[float, ...]:
    return (1.5,) if op == "scale" else ()


def expected_unary(op: str, x: Array) -> Array:
    with np.errstate(all="ignore"):
        return UNARY[op](as_float64(x) if x.dtype.kind not in "iu" else x)


def expected_binary(op: str, a: Array, b: Array) -> Array:
    with np.errstate(all="ignore"):
        if a.dtype.kind in "iu":
            return BINARY[op](a, b)
        return BINARY[op](as_float64(a), as_float64(b))


def check(op: str, dtype: str, actual: Array, expected: Array) -> None:
    """Equal for integers; for floats within the op's error and one rounding to the dtype."""
    if dtype not in EPSILON:
        np.testing.assert_array_equal(actual, expected)
        return
    with np.errstate(over="ignore"):
        rounded = as_float64(expected.astype(DTYPES[dtype]))
    relative = ULPS.get(op, 16) * 2.0**-23 + (EPSILON[dtype] if dtype != "f32" else 0)
    # Numbers below float32's normal range may be flushed to zero.
    np.testing.assert_allclose(as_float64(actual), rounded, rtol=relative, atol=ABSOLUTE.get(op, 2e-38))


def cases(table: dict[str, frozenset[str]]) -> list[tuple[str, str, str]]:
    """Each op with every dtype, and in float32 in both shapes: only storage differs between the dtypes."""
    return [
        (op, dtype, shape)
        for op, dtypes in table.items()
        for dtype in sorted(dtypes)
        for shape in SHAPES
        if shape == "chunks" or dtype == "f32" or op == "abs"
    ]


@pytest.mark.gpu
@pytest.mark.parametrize(("op", "dtype", "shape"), cases(UNARY_OPS))
def test_unary(op: str, dtype: str, shape: str) -> None:
    profile = SHAPES[shape]
    for n in (7, 256, 100003) if dtype == "f32" else (257,):
        x = random_values(dtype, n)
        if op in ("log", "sqrt"):
            x = np.abs(x)
        launch = unary(profile, op, dtype, n, *scalars(op))
        actual = run(launch, [x], x.dtype, n)
        check(op, dtype, actual, expected_unary(op, x))
        if dtype in ("f32", "i8"):
            np.testing.assert_array_equal(run(launch, [x], x.dtype, n, in_place=0), actual)


@pytest.mark.gpu
@pytest.mark.parametrize("shape", SHAPES)
def test_every_length(shape: str) -> None:
    for n in LENGTHS:
        x = random_values("f32", n, seed=n)
        np.testing.assert_array_equal(run(unary(SHAPES[shape], "neg", "f32", n), [x], x.dtype, n), -x)


@pytest.mark.gpu
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("op", UNARY_OPS)
def test_unary_of_special_values_is_numpys(op: str, shape: str) -> None:
    x = np.array(SPECIAL, np.float32)
    actual = run(unary(SHAPES[shape], op, "f32", x.size, *scalars(op)), [x], x.dtype, x.size)
    check(op, "f32", actual, expected_unary(op, x))


@pytest.mark.gpu
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("op", BINARY_OPS)
def test_binary_of_special_values_is_numpys(op: str, shape: str) -> None:
    a, b = (
        side.ravel() for side in np.meshgrid(np.array(SPECIAL, np.float32), np.array(SPECIAL, np.float32))
    )
    actual = run(binary(SHAPES[shape], op, "f32", a.size), [a, b], a.dtype, a.size)
    expected = expected_binary(op, a, b)
    if op == "silu_mul":  # where silu alone is below float32's range, so is what is left of the product
        known = np.isnan(a) | (a > -87)
        actual, expected = actual[known], expected[known]
    check(op, "f32", actual, expected)


@pytest.mark.gpu
@pytest.mark.parametrize(("op", "dtype", "shape"), cases(BINARY_OPS))
def test_binary(op: str, dtype: str, shape: str) -> None:
    for n in (5, 257):
        a, b = random_values(dtype, n, 1), random_values(dtype, n, 2)
        launch = binary(SHAPES[shape], op, dtype, n)
        actual = run(launch, [a, b], a.dtype, n)
        check(op, dtype, actual, expected_binary(op, a, b))
        if op in ("sub", "silu_mul"):  # where the order of the inputs matters
            for target, _ in launch.in_place:
                np.testing.assert_array_equal(run(launch, [a, b], a.dtype, n, in_place=target), actual)


@pytest.mark.gpu
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", sorted(BROADCAST_OPS["add"]))
def test_broadcast_row(dtype: str, shape: str) -> None:
    for columns in (1, 2, 3, 4, 5, 8, 31, 36, 1000):
        check_broadcast_row(columns, dtype, shape)


def check_broadcast_row(columns: int, dtype: str, shape: str) -> None:
    rows = 37
    a, b = random_values(dtype, rows * columns, 1), random_values(dtype, columns, 2)
    launch = binary(SHAPES[shape], "sub", dtype, a.size, "row", columns)
    actual = run(launch, [a, b], a.dtype, a.size)
    check("sub", dtype, actual, expected_binary("sub", a.reshape(rows, columns), b).ravel())
    np.testing.assert_array_equal(run(launch, [a, b], a.dtype, a.size, in_place=0), actual)


@pytest.mark.gpu
def test_broadcast_row_across_chunks() -> None:
    rows, columns = 97, 1031
    a, b = random_values("f32", rows * columns, 1), random_values("f32", columns, 2)
    actual = run(binary(SOFTWARE, "add", "f32", a.size, "row", columns), [a, b], a.dtype, a.size)
    np.testing.assert_array_equal(actual, (a.reshape(rows, columns) + b).ravel())


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("op", "broadcast"), [(op, kind) for op in BROADCAST_OPS for kind in ("row", "scalar")]
)
def test_broadcast_ops(op: str, broadcast: Broadcast) -> None:
    columns = 12 if broadcast == "row" else 1
    a, b = random_values("f32", 120, 1), random_values("f32", columns, 2)
    actual = run(binary(SOFTWARE, op, "f32", 120, broadcast, columns), [a, b], a.dtype, 120)
    check(op, "f32", actual, expected_binary(op, a.reshape(-1, columns), b).ravel())


@pytest.mark.gpu
@pytest.mark.parametrize("op", ["relu", "gelu", "add"])
def test_native_float16(op: str) -> None:
    a, b = random_values("f16", 1001, 1), random_values("f16", 1001, 2)
    if op in UNARY_OPS:
        actual, expected = run(unary(NATIVE_F16, op, "f16", 1001), [a], a.dtype, 1001), expected_unary(op, a)
    else:
        actual = run(binary(NATIVE_F16, op, "f16", 1001), [a, b], a.dtype, 1001)
        expected = expected_binary(op, a, b)
    check(op, "f16", actual, expected)


@pytest.mark.gpu
@pytest.mark.parametrize("shape", SHAPES)
def test_fill(shape: str) -> None:
    assert (run(fill(SHAPES[shape], 4 * 1001, 0xDEADBEEF), [], np.uint32, 1001) == 0xDEADBEEF).all()


@pytest.mark.gpu
def test_a_launch_over_nothing_does_nothing() -> None:
    empty = np.zeros(0, np.float32)
    assert run(unary(SOFTWARE, "relu", "f32", 0), [empty], empty.dtype, 0).size == 0


@pytest.mark.gpu
def test_bool_as_bytes() -> None:
    a, b = np.array([0, 0, 1, 1, 1], np.bool_), np.array([0, 1, 0, 1, 0], np.bool_)
    for op, reference in (("maximum", a | b), ("minimum", a & b), ("mul", a & b)):
        np.testing.assert_array_equal(run(binary(SOFTWARE, op, "bool", 5), [a, b], np.bool_, 5), reference)


def test_what_is_not_offered_is_named() -> None:
    with pytest.raises(DTypeError, match="gelu is not offered for i32, only for bf16, f16, f32"):
        unary(PORTABLE, "gelu", "i32", 4)
    with pytest.raises(DTypeError, match="there is no unary op 'gelo'; there are relu, "):
        unary(PORTABLE, "gelo", "f32", 4)
    with pytest.raises(DTypeError, match="add is not offered for f64"):
        binary(PORTABLE, "add", "f64", 4)
    with pytest.raises(DTypeError, match="there is no broadcasting op 'maximum'"):
        binary(PORTABLE, "maximum", "f32", 4, "scalar")
    with pytest.raises(LaunchError, match="10 elements are not whole rows of 4 columns"):
        binary(PORTABLE, "add", "f32", 10, "row", 4)
    with pytest.raises(LaunchError, match="scale takes 1 run-time scalars, 0 given"):
        unary(PORTABLE, "scale", "f32", 4)


def test_numpys_names_are_taken_too() -> None:
    assert unary(PORTABLE, "relu", "float32", 9).program is unary(PORTABLE, "relu", "f32", 5).program
