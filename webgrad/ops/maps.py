"""The map ops, one row each: element by element, operands of one dtype, with broadcasting.

`wgsl` is an expression over {0}, {1}, …, scalars or vectors of four alike; names that begin with `wg_` are
functions of `wgsl/library*.wgsl`. A compute type that a row does not spell is not offered on GPUs. Integers
follow NumPy and wrap; floats keep NaN and infinities. Compilers assume that there are no NaN, so what depends
on them goes through functions that look at bits.
"""

from __future__ import annotations

import math
import re
from functools import cache
from typing import Any

from .. import dtypes
from ..arrays import Array, np
from ..errors import DTypeError
from ..graph.node import Signature
from ..graph.op import Op
from . import shapes

__all__ = ["MAPS", "float_power", "threefry"]

Sigs = tuple[Signature, ...]


# What NumPy lacks, or does otherwise. Each gives the dtype it was given.


def _power(base: Array, exponent: Array) -> Array:
    """Integers wrap; of negative exponents only 1 and -1 have a power, the others give 0."""
    if base.dtype.kind not in "iu":
        return float_power(base, exponent)
    square = np.broadcast_arrays(base, exponent)[0].copy()
    left = np.where(exponent < 0, exponent & 1, exponent)
    result = np.ones_like(square)
    while np.any(left):
        result = np.where(left & 1 == 1, result * square, result)
        square = square * square
        left = left >> 1
    unit = (base == 1) | (base == base.dtype.type(-1) if base.dtype.kind == "i" else False)
    return np.asarray(np.where((exponent < 0) & ~unit, base.dtype.type(0), result))


def float_power(base: Array, exponent: Array, out: Array | None = None) -> Array:
    """Floats as IEEE 754 has them; `out` shares no memory with the others.

    Where one exponent of 0.5 meets several bases, NumPy takes the square root, which is NaN at -inf and -0.0
    at -0.0: how operands lie in memory would change the result.
    """
    result = np.asarray(np.power(base, exponent)) if out is None else np.power(base, exponent, out=out)
    if np.equal(exponent, 0.5).any() and np.signbit(base).any():
        ends = np.isinf(base) | np.equal(base, 0)
        np.copyto(result, np.abs(base), where=ends & np.equal(exponent, 0.5))
    return result


def _floor_divide(a: Array, b: Array) -> Array:
    """NumPy's; where a float is infinite a / b, as the array API standard has it."""
    result = np.asarray(np.floor_divide(a, b))
    if result.dtype.kind in "iu":
        return result
    return np.where(np.isinf(a) | np.isinf(b), a / b, result)


def _sigmoid(x: Array) -> Array:
    small = np.exp(-np.abs(x))
    share: Array = np.where(np.signbit(x), small, x.dtype.type(1)) / (1 + small)
    return share


# The error function: math's in float64. In float32 the kernels' approximations, ten times as fast.

_ERF_NEAR = (
    *(0.128379166, -0.37612626, 0.112835787, -0.0268533472),
    *(0.0051871622, -0.00079978531, 7.80690316e-5),
)
_ERFC_NEAR = (
    *(1.02158272, -0.687160909, 0.279471517, -0.0364359021, -0.0215028133),
    *(0.00643521547, 0.00304291351, -0.000726362225, -0.000529147452, -4.67994578e-5),
)
_NORMAL_TAIL = (
    *(0.737438381, -0.539486647, 0.274453729, -0.0809261724, 0.00109971117, 0.00831780024),
    *(-0.00116977841, -0.00109307421, 0.000136255403, 0.000172092492, 2.57185293e-5),
)


@cache
def _of_math(name: str) -> Any:
    return np.frompyfunc(getattr(math, name), 1, 1)


def _polynomial(x: Array, coefficients: tuple[float, ...]) -> Array:
    """The sum of coefficients[i] x^i, in x's dtype."""
    result = np.full_like(x, coefficients[-1])
    for each in coefficients[-2::-1]:
        result *= x
        result += x.dtype.type(each)
    return result


def _times_exp_square(factor: Array, x: Array, scale: float) -> Array:
    """factor exp(scale x²) in float32: an error of x² would be one of the result."""
    return (factor * np.exp(np.square(x, dtype=np.float64) * scale)).astype(np.float32)


def _erfc_near(x: Array) -> Array:
    """erfc of float32 numbers from 0 up."""
    below = x + np.float32(2)
    return _times_exp_square(_polynomial(2 * (x / below) - 1, _ERFC_NEAR) / below, x, -1)


def _erf(x: Array) -> Array:
    if x.dtype != np.float32:
        return np.asarray(_of_math("erf")(x)).astype(x.dtype)
    size = np.minimum(np.abs(x), np.float32(4))
    near = size + size * _polynomial(size * size, _ERF_NEAR)
    return np.copysign(np.where(size < 1, near, 1 - _erfc_near(size)), x)


def _erfc(x: Array) -> Array:
    if x.dtype != np.float32:
        return np.asarray(_of_math("erfc")(x)).astype(x.dtype)
    near = _erfc_near(np.minimum(np.abs(x), np.float32(11)))
    return np.where(x < 0, 2 - near, near)


def _gelu(x: Array) -> Array:
    """x Φ(x); 0 at -inf, the limit."""
    if x.dtype != np.float32:
        share = 0.5 * np.asarray(_of_math("erfc")(x * -math.sqrt(0.5))).astype(x.dtype)
        return np.where(np.isneginf(x), 0, x * share)
    size = np.minimum(np.abs(x), np.float32(15))
    share = size / (size + np.float32(3.25))
    tail = _times_exp_square(share * _polynomial(2 * share - 1, _NORMAL_TAIL), size, -0.5)
    return np.maximum(x, np.float32(0)) - tail


def _gelu_tanh(x: Array) -> Array:
    wide = x.astype(np.float64)
    share = _sigmoid(math.sqrt(8 / math.pi) * (wide + 0.044715 * wide**3))
    return np.where(np.isneginf(x), 0, wide * share).astype(x.dtype)


def _rsqrt(x: Array) -> Array:
    return 1 / np.sqrt(x)


_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


def threefry(counter0: Array, counter1: Array, key0: Array, key1: Array) -> tuple[Array, Array]:
    """Threefry-2x32 with 20 rounds: two random uint32 words for a counter of two words, by a key of two."""
    keys = (key0, key1, key0 ^ key1 ^ np.uint32(0x1BD11BDA))
    x, y = counter0 + key0, counter1 + key1
    for block in range(5):
        for turn in _ROTATIONS[block % 2]:
            x = x + y
            y = ((y << np.uint32(turn)) | (y >> np.uint32(32 - turn))) ^ x
        x = x + keys[(block + 1) % 3]
        y = y + (keys[(block + 2) % 3] + np.uint32(block + 1))
    return x, y


def _random_bits(counter: Array, key0: Array, key1: Array) -> Array:
    return threefry(counter, np.zeros_like(counter), key0, key1)[0]


# Rules where operands are not all of one dtype.


def _chosen(sigs: Sigs, attributes: tuple[Any, ...]) -> tuple[tuple[int, ...], Any]:
    condition, a, b = sigs
    shapes.check_kind("where (its condition)", "b", condition.dtype)
    if a.dtype is not b.dtype:
        raise DTypeError(
            f"where: {a.dtype.name} and {b.dtype.name} must be one dtype; convert one with astype"
        )
    return shapes.broadcast("where", [each.shape for each in sigs]), a.dtype


def _words(sigs: Sigs, attributes: tuple[Any, ...]) -> tuple[tuple[int, ...], Any]:
    for each in sigs:
        if each.dtype is not dtypes.uint32:
            raise DTypeError(f"random_bits takes uint32 words, not {each.dtype.name}; convert with astype")
    return shapes.broadcast("random_bits", [each.shape for each in sigs]), dtypes.uint32


# Rows

Spelling = str | dict[str, str]
INTEGERS = ("i32", "u32", "i64", "u64")
NUMBERS = ("f32", *INTEGERS, "f64")


def _map(name: str, numpy: Any, wgsl: Spelling, types: str = "iuf", result: str = "same", **more: Any) -> Op:
    arity = more.pop("arity", None) or _operands(wgsl)
    infer = more.pop("infer", None) or shapes.elementwise(name, types, result)
    return Op(name, "map", arity, numpy, wgsl, types, result, infer, **more)


def _operands(wgsl: Spelling) -> int:
    """How many operands a spelling has: {0} is the first."""
    texts = [wgsl] if isinstance(wgsl, str) else wgsl.values()
    return 1 + max(int(place) for text in texts for place in re.findall(r"{(\d)}", text))


def _each(text: str, *types: str) -> dict[str, str]:
    """One spelling for several compute types."""
    return dict.fromkeys(types, text)


def _calls(name: str, arity: int, *types: str) -> dict[str, str]:
    """A function of the library for each of these types; the one for f32 has the plain name."""
    operands = ", ".join(f"{{{at}}}" for at in range(arity))
    return {each: f"wg_{name}{'' if each == 'f32' else '_' + each}({operands})" for each in types}


def _compare(name: str, numpy: Any, sign: str, boolean: str) -> Op:
    """Of floats by a function: compilers turn !(a < b) into a >= b, and x == x into true."""
    wgsl = _each(f"({{0}} {sign} {{1}})", *INTEGERS) | _calls(name, 2, "f32", "f64") | {"bool": boolean}
    return _map(name, numpy, wgsl, "biuf", "bool", cost=2, gradient=())


def _float(
    name: str,
    numpy: Any,
    cost: int,
    domain: tuple[float, float],
    tolerance: float,
    *gradient: str,
    doc: str = "",
) -> Op:
    """A function of floats, in the library; by each of its operands it has a gradient."""
    wgsl = _calls(name, len(gradient), "f32", "f64")
    more: dict[str, Any] = {"domain": domain, "tolerance": tolerance, "doc": doc, "gradient": gradient}
    return _map(name, numpy, wgsl, "f", cost=cost, **more)


def _test(name: str, numpy: Any, doc: str) -> Op:
    return _map(name, numpy, _calls(name, 1, "f32", "f64"), "f", "bool", cost=2, doc=doc, gradient=())


ARITHMETIC = (
    _map("add", "add", _each("({0} + {1})", *NUMBERS), gradient=("g", "g")),
    _map("subtract", "subtract", _each("({0} - {1})", *NUMBERS), gradient=("g", "-g")),
    _map("multiply", "multiply", _each("({0} * {1})", *NUMBERS), gradient=("g * b", "g * a")),
    _map(
        "divide",
        "divide",
        _each("({0} / {1})", "f32", "f64"),
        "f",
        cost=4,
        tolerance=3,
        gradient=("g / b", "-g * y / b"),
    ),
    _map(
        "floor_divide",
        _floor_divide,
        _calls("floor_divide", 2, *NUMBERS),
        arity=2,
        cost=60,
        tolerance=2,
        doc="Rounded down; where a float is infinite, a / b. Integers by 0 give 0; the lowest one by -1 "
        "wraps to itself.",
        gradient=("0", "0"),
    ),
    _map(
        "remainder",
        "remainder",
        _calls("remainder", 2, *NUMBERS),
        cost=60,
        doc="With the divisor's sign. Integers by 0 give 0.",
        gradient=("g", "remainder_divisor(g, y, a, b)"),
    ),
    _map(
        "power",
        _power,
        _calls("power", 2, *NUMBERS),
        arity=2,
        cost=110,
        domain=(0, 20),
        tolerance=4,
        doc="Integers wrap; a negative exponent gives 0, but for the bases 1 and -1.",
        gradient=("power_base(g, a, b)", "power_exponent(g, y, a, b)"),
    ),
    _map(
        "negative",
        "negative",
        _each("(-{0})", "i32", "i64", "f64")
        | {"f32": "wg_negative({0})", "u32": "(~{0} + 1u)", "u64": "(~{0} + 1lu)"},
        gradient=("-g",),
    ),
    _map(
        "abs",
        "abs",
        _each("abs({0})", "i32", "i64", "f64") | _each("{0}", "u32", "u64") | {"f32": "wg_abs({0})"},
        doc="The lowest integer of a dtype stays: it has no positive.",
        gradient=("g * sign(a)",),
    ),
    _map(
        "sign",
        "sign",
        _each("sign({0})", "i32", "i64") | _calls("sign", 1, "f32", "u32", "u64", "f64"),
        cost=3,
        doc="-1, 0 or 1; of NaN NaN.",
        gradient=("0",),
    ),
    _map(
        "maximum",
        "maximum",
        _each("max({0}, {1})", *INTEGERS) | _calls("maximum", 2, "f32", "f64") | {"bool": "({0} | {1})"},
        "biuf",
        cost=3,
        doc="NaN if either is.",
        gradient=("larger(g, a, b)", "larger(g, b, a)"),
    ),
    _map(
        "minimum",
        "minimum",
        _each("min({0}, {1})", *INTEGERS) | _calls("minimum", 2, "f32", "f64") | {"bool": "({0} & {1})"},
        "biuf",
        cost=3,
        doc="NaN if either is.",
        gradient=("larger(g, b, a)", "larger(g, a, b)"),
    ),
    _map(
        "clamp_min",
        "maximum",
        _each("max({0}, {1})", *INTEGERS) | _calls("maximum", 2, "f32", "f64") | {"bool": "({0} | {1})"},
        "biuf",
        cost=3,
        doc="maximum, but of two that are equal the first has all of the gradient.",
        gradient=("where(a < b, 0.0, g)", "where(y <= a, 0.0, g)"),  # of y, which relu stores anyway
    ),
    _map(
        "clamp_max",
        "minimum",
        _each("min({0}, {1})", *INTEGERS) | _calls("minimum", 2, "f32", "f64") | {"bool": "({0} & {1})"},
        "biuf",
        cost=3,
        doc="minimum, but of two that are equal the first has all of the gradient.",
        gradient=("where(a > b, 0.0, g)", "where(y >= a, 0.0, g)"),
    ),
)

COMPARISON = (
    _compare("equal", "equal", "==", "({0} == {1})"),
    _compare("not_equal", "not_equal", "!=", "({0} != {1})"),
    _compare("less", "less", "<", "(!{0} & {1})"),
    _compare("less_equal", "less_equal", "<=", "(!{0} | {1})"),
    _compare("greater", "greater", ">", "({0} & !{1})"),
    _compare("greater_equal", "greater_equal", ">=", "({0} | !{1})"),
    _test("isnan", "isnan", "Whether it is not a number."),
    _test("isinf", "isinf", "Whether it is infinite, of either sign."),
    _test("isfinite", "isfinite", "Whether it is a number, and finite."),
)

LOGIC = (
    _map("logical_and", "logical_and", {"bool": "({0} & {1})"}, "b", "bool", gradient=()),
    _map("logical_or", "logical_or", {"bool": "({0} | {1})"}, "b", "bool", gradient=()),
    _map("logical_xor", "logical_xor", {"bool": "({0} != {1})"}, "b", "bool", gradient=()),
    _map("logical_not", "logical_not", {"bool": "(!{0})"}, "b", "bool", gradient=()),
    _map("bitwise_and", "bitwise_and", _each("({0} & {1})", "bool", *INTEGERS), "biu", gradient=()),
    _map("bitwise_or", "bitwise_or", _each("({0} | {1})", "bool", *INTEGERS), "biu", gradient=()),
    _map(
        "bitwise_xor",
        "bitwise_xor",
        _each("({0} ^ {1})", *INTEGERS) | {"bool": "({0} != {1})"},
        "biu",
        gradient=(),
    ),
    _map("bitwise_invert", "invert", _each("(~{0})", *INTEGERS) | {"bool": "(!{0})"}, "biu", gradient=()),
    _map(
        "left_shift",
        "left_shift",
        _calls("left_shift", 2, *INTEGERS),
        "iu",
        cost=2,
        doc="By the width or more, or by a negative number, gives 0.",
        gradient=(),
    ),
    _map(
        "right_shift",
        "right_shift",
        _calls("right_shift", 2, *INTEGERS),
        "iu",
        cost=2,
        doc="Keeps the sign. By the width or more, or by a negative number, gives 0, of negative numbers -1.",
        gradient=(),
    ),
    _map(
        "where",
        "where",
        _each("select({2}, {1}, {0})", "bool", *NUMBERS),
        "biuf",
        arity=3,
        infer=_chosen,
        doc="The second operand where the first, a bool, is true; else the third.",
        gradient=("0", "where(a, g, 0.0)", "where(a, 0.0, g)"),
    ),
    _map(
        "random_bits",
        _random_bits,
        {"u32": "wg_random_bits({0}, {1}, {2})"},
        "u",
        "uint32",
        arity=3,
        infer=_words,
        cost=110,
        doc="Threefry-2x32, 20 rounds: the first word for the counter (operand 0, 0) and the key (1, 2).",
        gradient=(),
    ),
)

FUNCTIONS = (
    _float("exp", "exp", 25, (-104, 89), 4, "g * y"),
    _float("exp2", "exp2", 22, (-150, 128), 4, "g * y * LOG_2"),
    _float("expm1", "expm1", 25, (-104, 89), 4, "g * (y + 1)"),
    _float("log", "log", 30, (0, 1e3), 4, "g / a"),
    _float("log1p", "log1p", 35, (-1, 1e3), 4, "g / (1 + a)"),
    _float("log2", "log2", 30, (0, 1e3), 4, "g / (a * LOG_2)"),
    _float("log10", "log10", 32, (0, 1e3), 4, "g / (a * LOG_10)"),
    _float("sin", "sin", 100, (-1e3, 1e3), 4, "g * cos(a)"),
    _float("cos", "cos", 100, (-1e3, 1e3), 4, "-g * sin(a)"),
    _float("tan", "tan", 100, (-1e3, 1e3), 4, "g * (1 + y * y)"),
    _float("asin", "arcsin", 25, (-1, 1), 4, "g * rsqrt(1 - a * a)"),
    _float("acos", "arccos", 28, (-1, 1), 4, "-g * rsqrt(1 - a * a)"),
    _float("atan", "arctan", 28, (-1e3, 1e3), 4, "g / (1 + a * a)"),
    _float("atan2", "arctan2", 35, (-1e3, 1e3), 4, "angle_slope(g * b, a, b)", "angle_slope(-g * a, a, b)"),
    _float("sinh", "sinh", 35, (-90, 90), 4, "g * cosh(a)"),
    _float("cosh", "cosh", 28, (-90, 90), 4, "g * sinh(a)"),
    _float("tanh", "tanh", 40, (-10, 10), 4, "g * (1 - y * y)"),
    _float("asinh", "arcsinh", 55, (-1e3, 1e3), 4, "g * rsqrt(a * a + 1)"),
    _float("acosh", "arccosh", 50, (1, 1e3), 4, "g * rsqrt(a * a - 1)"),
    _float("atanh", "arctanh", 45, (-1, 1), 4, "g / (1 - a * a)"),
    _float("erf", _erf, 70, (-5, 5), 4, "g * exp(-a * a) * TWO_BY_ROOT_PI"),
    _float("erfc", _erfc, 55, (-5, 11), 4, "g * exp(-a * a) * -TWO_BY_ROOT_PI"),
    _float("sqrt", "sqrt", 5, (0, 1e3), 3, "g * 0.5 / y"),
    _float("rsqrt", _rsqrt, 8, (0, 1e3), 3, "g * -0.5 * y * y * y", doc="1 / sqrt(x)."),
    _float("sigmoid", _sigmoid, 32, (-105, 105), 4, "g * y * (1 - y)", doc="1 / (1 + exp(-x))."),
    _float(
        "gelu",
        _gelu,
        50,
        (-15, 15),
        4,
        "g * gelu_slope(a)",
        doc="x times the normal distribution's Φ(x); 0 at -inf.",
    ),
    _float(
        "gelu_tanh",
        _gelu_tanh,
        60,
        (-15, 15),
        4,
        "g * gelu_tanh_slope(a)",
        doc="gelu's approximation by tanh; 0 at -inf.",
    ),
    _map("floor", "floor", _each("floor({0})", "f32", "f64"), "f", gradient=("0",)),
    _map("ceil", "ceil", _each("ceil({0})", "f32", "f64"), "f", gradient=("0",)),
    _map(
        "round",
        "rint",
        {"f32": "round({0})", "f64": "wg_round_f64({0})"},
        "f",
        doc="Halves go to the even neighbour.",
        gradient=("0",),
    ),
    _map("trunc", "trunc", {"f32": "trunc({0})", "f64": "wg_trunc_f64({0})"}, "f", gradient=("0",)),
)

MAPS = (*ARITHMETIC, *COMPARISON, *LOGIC, *FUNCTIONS)
