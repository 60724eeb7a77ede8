"""Functions of single elements against NumPy: names, dtypes, special values, and what is composed of rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from scripts.reference_page import names_of
from tests.functions.devices import everywhere, place
from webgrad import dtypes
from webgrad.errors import ArgumentError, DTypeError
from webgrad.functions.array import elementwise, maps
from webgrad.functions.array.creation import asarray
from webgrad.functions.array.manipulation import stack
from webgrad.functions.complex import parts
from webgrad.graph.op import Op
from webgrad.ops.table import TABLE
from webgrad.tensor import Tensor

SPECIAL = np.array(
    [0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -2.5, 3.7, 1e-30, 1e30, -1e30, np.inf, -np.inf, np.nan], np.float32
)
# names that differ from NumPy's
NUMPY: dict[str, Callable[..., Any]] = {
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "atanh": np.arctanh,
    "bitwise_left_shift": np.left_shift,
    "bitwise_right_shift": np.right_shift,
    "floor_divide": lambda a, b: np.where(np.isinf(a) | np.isinf(b), a / b, np.floor_divide(a, b)),
    "pow": np.power,
    "round": np.rint,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x.astype(np.float64))),
    "erf": np.vectorize(math.erf, otypes=[float]),
    "erfc": np.vectorize(math.erfc, otypes=[float]),
}
# rows that have another public name, or another home
ELSEWHERE = {"left_shift", "right_shift", "gelu", "gelu_tanh", "random_bits", "clamp_min", "clamp_max"}
OF_FLOATS = [
    "exp",
    "exp2",
    "expm1",
    "log",
    "log1p",
    "log2",
    "log10",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "acosh",
    "atanh",
    "erf",
    "erfc",
    "sqrt",
    "rsqrt",
    "sigmoid",
    "floor",
    "ceil",
    "round",
    "trunc",
    "isnan",
    "isinf",
    "isfinite",
    "abs",
    "negative",
    "sign",
    "square",
    "positive",
    "reciprocal",
    "signbit",
    "logical_not",
]
ROUNDING = ["floor", "ceil", "round", "trunc"]
OF_TWO = [
    "add",
    "subtract",
    "multiply",
    "divide",
    "floor_divide",
    "remainder",
    "maximum",
    "minimum",
    "atan2",
    "hypot",
    "logaddexp",
    "copysign",
]
COMPARISONS = [
    "equal",
    "not_equal",
    "less",
    "less_equal",
    "greater",
    "greater_equal",
    "logical_and",
    "logical_or",
    "logical_xor",
]


def cpu(value: Any, dtype: Any = None) -> Tensor:
    return asarray(value, dtype, device="cpu")


def ours(name: str) -> Callable[..., Tensor]:
    return getattr(elementwise, name)  # type: ignore[no-any-return]


def numpys(name: str) -> Callable[..., Any]:
    found: Callable[..., Any] = NUMPY.get(name) or getattr(np, name)
    return found


def close(x: Tensor, expected: Any) -> None:
    wanted = np.asarray(expected)
    array = x.numpy()
    assert x.shape == array.shape == wanted.shape
    np.testing.assert_allclose(array, wanted.astype(x.dtype.numpy), rtol=2e-6, atol=1e-38)


@pytest.mark.parametrize("name", OF_FLOATS)
def test_functions_of_one(name: str) -> None:
    with np.errstate(all="ignore"):
        close(ours(name)(cpu(SPECIAL)), numpys(name)(SPECIAL))
        close(ours(name)(cpu(1.0)), numpys(name)(np.float32(1)))
        assert ours(name)(cpu(np.zeros((0, 2), np.float32))).shape == (0, 2)


@pytest.mark.parametrize("name", OF_TWO)
def test_functions_of_two(name: str) -> None:
    with np.errstate(all="ignore"):
        close(ours(name)(cpu(SPECIAL[:, None]), cpu(SPECIAL)), numpys(name)(SPECIAL[:, None], SPECIAL))
        close(ours(name)(cpu(SPECIAL), 3), numpys(name)(SPECIAL, np.float32(3)))
        close(ours(name)(3, cpu(SPECIAL)), numpys(name)(np.float32(3), SPECIAL))
        close(ours(name)(cpu(SPECIAL), SPECIAL[::-1].copy()), numpys(name)(SPECIAL, SPECIAL[::-1]))


@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons(name: str) -> None:
    result = ours(name)(cpu(SPECIAL[:, None]), cpu(SPECIAL))
    assert result.dtype is dtypes.bool
    np.testing.assert_array_equal(result.numpy(), numpys(name)(SPECIAL[:, None], SPECIAL))
    np.testing.assert_array_equal(ours(name)(cpu([0, 1, 2]), 1).numpy(), numpys(name)(np.array([0, 1, 2]), 1))


@pytest.mark.parametrize("name", ["bitwise_and", "bitwise_or", "bitwise_xor"])
def test_bits(name: str) -> None:
    a, b = np.array([12, -7, 0], np.int16), np.array([10, 3, -1], np.int16)
    np.testing.assert_array_equal(ours(name)(cpu(a), cpu(b)).numpy(), numpys(name)(a, b))
    np.testing.assert_array_equal(ours(name)(cpu(a != 0), True).numpy(), numpys(name)(a != 0, True))


def test_shifts_and_inversion() -> None:
    a = np.array([1, -8, 100], np.int32)
    np.testing.assert_array_equal(elementwise.bitwise_left_shift(cpu(a), 2).numpy(), a << 2)
    np.testing.assert_array_equal(elementwise.bitwise_right_shift(cpu(a), 2).numpy(), a >> 2)
    np.testing.assert_array_equal(elementwise.bitwise_invert(cpu(a)).numpy(), ~a)


def test_pow() -> None:
    a = np.array([0.5, 2.0, 3.0, 0.0, np.inf], np.float32)
    for function in (elementwise.pow, elementwise.power):
        close(function(cpu(a), cpu(a)), a**a)
        close(function(cpu(a), 2), a * a)
        close(function(2, cpu(a)), 2**a)
    assert elementwise.pow(cpu([2, 3]), 3).tolist() == [8, 27]


@pytest.mark.parametrize("name", ["floor", "ceil", "round", "trunc"])
def test_rounding_leaves_integers(name: str) -> None:
    x = cpu([1, -2])
    assert ours(name)(x).dtype is dtypes.int32
    assert ours(name)(x).tolist() == [1, -2]
    halves = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5], np.float32)
    np.testing.assert_array_equal(ours(name)(cpu(halves)).numpy(), numpys(name)(halves))


def test_tests_of_integers() -> None:
    for value in ([1, 2], [True, False]):
        assert elementwise.isnan(cpu(value)).tolist() == [False, False]
        assert elementwise.isinf(cpu(value)).tolist() == [False, False]
        assert elementwise.isfinite(cpu(value)).tolist() == [True, True]


@everywhere
@pytest.mark.parametrize("dtype", [dtypes.bool, dtypes.int8, dtypes.int32])
def test_functions_of_floats_take_integers_as_float32(kind: str, dtype: dtypes.DType) -> None:
    x = place(kind, [1, 0, 1], dtype)
    floats = x.astype(dtypes.float32)
    names = OF_FLOATS[: OF_FLOATS.index("floor")]
    pairs = [(ours(each)(x), ours(each)(floats)) for each in names]
    for name in ("atan2", "hypot", "copysign", "logaddexp", "nextafter"):
        pairs.append((ours(name)(x, 1), ours(name)(floats, 1.0)))
        assert ours(name)(1, x).dtype is ours(name)(x, x).dtype is dtypes.float32
    assert {found.dtype for found, _ in pairs} == {dtypes.float32}
    found, expected = (stack(each).numpy() for each in zip(*pairs, strict=True))
    np.testing.assert_array_equal(found, expected)
    assert elementwise.atan2(x, place(kind, [1.0, 2.0, 3.0], dtypes.float16)).dtype is dtypes.float16


def test_rounding_keeps_integers_and_bools() -> None:
    for values in ([1, -2], [True, False]):
        for name in ROUNDING:
            assert ours(name)(cpu(values)).tolist() == values


def test_errors_name_the_function_that_was_called() -> None:
    numbers, bytes_ = cpu([1j]), cpu([1], dtypes.uint8)
    mistakes: list[tuple[Callable[[], Any], str]] = [
        (lambda: elementwise.clip(bytes_, 0, 300), "clip: 300 does not fit uint8.*wider type"),
        (lambda: elementwise.clip(numbers, 0, 1), "clip is not offered for complex64"),
        (lambda: elementwise.clip(cpu([1.0]), "a"), "clip takes a webgrad tensor, not a str"),
        (lambda: parts.view_as_real(bytes_), r"view_as_real is not offered for uint8.*complex64\)"),
        (lambda: elementwise.signbit(numbers), "signbit is not offered for complex64"),
        (lambda: elementwise.square(cpu([True])), "square is not offered for bool"),
        (lambda: elementwise.bitwise_and(cpu([1.0]), 1), "bitwise_and is not offered for float32"),
    ]
    for call, message in mistakes:
        with pytest.raises(DTypeError, match=message):
            call()


def test_half_types_are_rounded_once() -> None:
    for dtype in (dtypes.float16, dtypes.bfloat16):
        a = np.linspace(0.1, 3, 50).astype(dtype.numpy)
        expected = np.exp(a.astype(np.float32)).astype(dtype.numpy)
        result = elementwise.exp(cpu(a))
        assert result.dtype is dtype
        np.testing.assert_array_equal(result.numpy(), expected)


def test_where_of_a_condition_alone() -> None:
    condition = np.array([[True, False], [True, True]])
    found = elementwise.where(cpu(condition))
    assert [each.tolist() for each in found] == [each.tolist() for each in np.where(condition)]
    with pytest.raises(ArgumentError, match="where takes a condition and two choices"):
        elementwise.where(cpu(condition), 1)  # type: ignore[call-overload]


def test_where() -> None:
    condition = np.array([True, False, True])
    a, b = np.array([1, 2, 3], np.int32), np.array([[10.0], [20.0]], np.float32)
    np.testing.assert_array_equal(
        elementwise.where(cpu(condition), cpu(a), cpu(b)).numpy(),
        np.where(condition, a, b).astype(np.float32),
    )
    for x, y, dtype in ((1, 2, dtypes.int32), (1, 2.5, dtypes.float32), (True, False, dtypes.bool)):
        result = elementwise.where(cpu(condition), x, y)
        assert result.dtype is dtype
        assert result.tolist() == [x, y, x]
    assert elementwise.where(cpu(condition), 5, cpu(a)).tolist() == [5, 2, 5]
    assert elementwise.where(cpu(condition), cpu(a), float("nan")).dtype is dtypes.float32
    assert elementwise.where(cpu([2, 0, -1]), 1, 0).tolist() == [1, 0, 1]
    assert elementwise.where(cpu(condition), a, 0).tolist() == [1, 0, 3]
    assert elementwise.where(cpu(True), cpu([1, 2]), 0).tolist() == [1, 2]
    nan = elementwise.where(cpu(condition), 1.0, cpu([np.nan] * 3))
    np.testing.assert_array_equal(nan.numpy(), np.array([1, np.nan, 1], np.float32))


def test_clip() -> None:
    a = np.array([-2.0, 0.5, 7.0, np.nan, np.inf], np.float32)
    for low, high in ((0, 1), (None, 1), (0, None), (None, None), (-np.inf, 2)):
        expected = a if low is None and high is None else np.clip(a, low, high)
        np.testing.assert_array_equal(elementwise.clip(cpu(a), low, high).numpy(), expected)
    assert elementwise.clamp is elementwise.clip
    assert elementwise.clip(cpu([1, 5, 9]), min=2, max=8).tolist() == [2, 5, 8]
    assert elementwise.clip(cpu([1, 5, 9]), cpu([3, 3, 3])).tolist() == [3, 5, 9]


def test_lerp_is_exact_at_both_ends() -> None:
    a, b = np.array([1e-3, 1e8, -5.0], np.float32), np.array([1e8, 1e-3, 5.0], np.float32)
    np.testing.assert_array_equal(elementwise.lerp(cpu(a), cpu(b), 0).numpy(), a)
    np.testing.assert_array_equal(elementwise.lerp(cpu(a), cpu(b), 1.0).numpy(), b)
    weight = np.array([0.25, 0.5, 0.75], np.float32)
    close(elementwise.lerp(cpu(a), cpu(b), cpu(weight)), a + (b - a) * weight)


def test_nan_to_num() -> None:
    np.testing.assert_array_equal(elementwise.nan_to_num(cpu(SPECIAL)).numpy(), np.nan_to_num(SPECIAL))
    close(
        elementwise.nan_to_num(cpu(SPECIAL), nan=1, posinf=2, neginf=3),
        np.nan_to_num(SPECIAL, nan=1, posinf=2, neginf=3),
    )
    assert elementwise.nan_to_num(cpu([1])).tolist() == [1]
    assert elementwise.nan_to_num(cpu([np.inf], dtypes.float16)).tolist() == [65504.0]


def test_signbit_of_all_kinds() -> None:
    assert elementwise.signbit(cpu([-1, 0, 1])).tolist() == [True, False, False]
    for dtype in (dtypes.float16, dtypes.bfloat16, dtypes.float64):
        assert elementwise.signbit(cpu([-0.0, 0.0, -1e-300], dtype)).tolist() == [True, False, True]


@pytest.mark.parametrize("equal_nan", [False, True])
def test_isclose(equal_nan: bool) -> None:
    a = np.array([1.0, 1.0, np.nan, np.inf, -np.inf, np.inf, 0.0], np.float32)
    b = np.array([1.000001, 1.1, np.nan, np.inf, np.inf, 1.0, 1e-9], np.float32)
    expected = np.isclose(a, b, equal_nan=equal_nan)
    np.testing.assert_array_equal(elementwise.isclose(cpu(a), cpu(b), equal_nan=equal_nan).numpy(), expected)
    assert elementwise.allclose(cpu(a), cpu(b), equal_nan=equal_nan) is bool(expected.all())


def test_whole_comparisons() -> None:
    assert elementwise.allclose(cpu([1, 2]), 1.5, atol=0.6) is True
    assert elementwise.array_equal(cpu([1, 2]), cpu([1, 2])) is True
    assert elementwise.array_equal(cpu([1, 2]), cpu([1, 3])) is False
    assert elementwise.array_equal(cpu([1, 2]), cpu([[1, 2]])) is False
    assert elementwise.array_equal(cpu([np.nan]), cpu([np.nan])) is False
    assert elementwise.array_equal(cpu([np.nan]), cpu([np.nan]), equal_nan=True) is True
    assert elementwise.array_equal(cpu([]), cpu([])) is True


def test_bitcast() -> None:
    a = np.array([1.0, -0.0, np.inf], np.float32)
    assert elementwise.bitcast(cpu(a), dtypes.uint32).tolist() == a.view(np.uint32).tolist()
    assert elementwise.bitcast(elementwise.bitcast(cpu(a), "int32"), "float32").tolist() == a.tolist()
    x = cpu([1], dtypes.int16)
    assert elementwise.bitcast(x, dtypes.int16).tolist() == [1]
    with pytest.raises(DTypeError, match="bitcast from int16 to float32: both must have the same width"):
        elementwise.bitcast(x, dtypes.float32)
    with pytest.raises(DTypeError, match="neither be bool"):
        elementwise.bitcast(cpu([True]), dtypes.uint8)


def test_every_row_is_public() -> None:
    rows = {name for name, row in TABLE.items() if row.kind == "map"} - ELSEWHERE
    assert sorted(rows - set(wg.__all__)) == []


def test_names_and_documentation() -> None:
    for name in names_of(maps, elementwise):
        function = ours(name)
        assert function.__doc__, name
        assert function.__name__ == ("clip" if name == "clamp" else name)
    assert isinstance(TABLE["add"], Op)
    assert elementwise.add is not elementwise.subtract


@everywhere
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_nextafter(kind: str, dtype: Any) -> None:
    most, least = np.finfo(dtype).max, np.finfo(dtype).smallest_subnormal
    start = [0.0, -0.0, -0.0, 0.0, 1, -1, np.inf, -np.inf, most, least, -least, np.nan, 1, 7, -7]
    stop = [-0.0, 0.0, 1, -1, 2, 2, 0, 0, np.inf, -1, 1, 0, np.nan, 7, -8]
    first, second = np.array(start, dtype), np.array(stop, dtype)
    with np.errstate(over="ignore"):
        expected = np.nextafter(first, second)
    expected[:2] = second[:2]  # which NumPy gets right for wider types only
    found = elementwise.nextafter(place(kind, first), place(kind, second)).numpy()
    np.testing.assert_array_equal(found, expected)
    number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found[number]), np.signbit(expected[number]))


@everywhere
def test_nextafter_of_bfloat16(kind: str) -> None:
    x = place(kind, [1.0, -2.0], dtypes.bfloat16)
    assert elementwise.nextafter(x, 0.0).tolist() == [1 - 2.0**-8, -2 + 2.0**-7]


@pytest.mark.parametrize(
    "call",
    [
        wg.ceil, wg.floor, wg.round, wg.trunc, wg.nan_to_num, wg.fft.fftshift,
        lambda x: wg.roll(x, 0, 0), lambda x: wg.rot90(x, 4), lambda x: wg.fft.fftshift(x, ()),
        lambda x: wg.pad(x, ((0, 0), (0, 0)), mode="edge"),
        lambda x: wg.interpolate(x[None, None], size=(2, 2))[0, 0],
    ],
)  # fmt: skip
def test_a_result_that_equals_its_argument_is_a_tensor_of_its_own(call: Any) -> None:
    x = wg.asarray([[1, 1], [1, 1]])
    call(x).fill_(5)
    assert x.tolist() == [[1, 1], [1, 1]]
