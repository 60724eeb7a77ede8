"""Every map op's WGSL as native code, in any number of lanes, against NumPy; casts; conditions by lane."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from scripts.accuracy import MEASURED, WIDER, exact, samples, smallest, ulps
from tests.native.texts import PROCESSORS, SCALARS, Array, Compiled, function, spelled
from webgrad import dtypes
from webgrad.dtypes import DType
from webgrad.graph.op import Op
from webgrad.lower.casts import cast_text
from webgrad.native.text import Function
from webgrad.native.translation.expressions import WORDS, Pointer, Variable, Vector
from webgrad.native.translation.translator import Translator, parsed_functions
from webgrad.native.value import Value
from webgrad.ops.maps import MAPS
from webgrad.wgsl import library

NUMPY = {scalar: np.dtype(name) for name, scalar in SCALARS.items()}
# Each number of lanes on the processor at hand; elsewhere those of its registers, and one.
PLACES = [(each, width) for each in PROCESSORS for width in ((0, 4, 8, 16) if each == "host" else (0, 8))]
ROWS = {row.name: row for row in MAPS}


def _hard(scalar: str) -> Array:
    """Numbers at which functions go wrong."""
    dtype = NUMPY[scalar]
    if scalar == "bool":
        return np.array([False, True])
    if dtype.kind == "f":
        most, least = np.finfo(dtype).max, np.finfo(dtype).smallest_subnormal
        sizes = [
            0,
            1,
            0.5,
            2,
            2.5,
            3.7,
            7,
            0.1,
            1e-7,
            1e-40,
            1e7,
            16777217,
            6401.3,
            1e9,
            3e38,
            88.7,
            104,
            709.8,
        ]
        sizes = [*sizes, most, least, np.finfo(dtype).tiny, np.inf]
        return np.array([*sizes, *(-each for each in sizes), np.nan], dtype)
    limits = np.iinfo(dtype)
    values = [0, 1, 2, 3, 7, 31, 32, 33, 63, 64, limits.max, limits.max - 1, limits.min, limits.min + 1]
    if dtype.kind == "i":
        values += [-1, -2, -7, -31, -32]
    return np.array(values, dtype)


def _random(scalar: str, count: int) -> Array:
    generator, dtype = np.random.default_rng(1), NUMPY[scalar]
    if scalar == "bool":
        return generator.random(count) < 0.5
    if dtype.kind == "f":
        drawn = generator.standard_normal(count) * 10.0 ** generator.integers(-3, 4, count)
        return drawn.astype(dtype)
    small = generator.integers(-40 if dtype.kind == "i" else 0, 70, count // 2).astype(dtype)
    bits = generator.integers(0, 256, count // 2 * dtype.itemsize, np.uint8).view(dtype)
    return np.concatenate([small, bits])


@cache
def _operands(row: Op, scalar: str) -> tuple[Array, ...]:
    """Each hard number beside each, then random ones."""
    hard, drawn, generator = _hard(scalar), _random(scalar, 400), np.random.default_rng(2)
    if row.arity == 1:
        return (np.concatenate([hard, drawn]),)
    first, second = (np.array(each, hard.dtype) for each in zip(*product(hard, hard), strict=True))
    a, b = (np.concatenate([each, generator.permutation(drawn)]) for each in (first, second))
    if row.arity == 2:
        return a, b
    if row.name == "where":
        return generator.random(a.size) < 0.5, a, b
    return a, b, generator.permutation(a)


@cache
def _expected(row: Op, scalar: str) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(row.numpy(*_operands(row, scalar)))


@cache
def _compiled(scalar: str, processor: str, width: int) -> Compiled:
    """All that is spelled in a type, in one module."""
    made = []
    for row in MAPS:
        assert not isinstance(row.wgsl, str)
        if scalar in row.wgsl:
            operands = [SCALARS[each.dtype.name] for each in _operands(row, scalar)]
            result = SCALARS[_expected(row, scalar).dtype.name]
            made.append(function(f"op_{row.name}", spelled(row.wgsl[scalar]), operands, result, width))
    return Compiled(made, processor)


def _excess(row: Op, actual: Array, expected: Array) -> Array:
    """By how many units in the last place more than the row allows; a subnormal result may be 0."""
    tiny = smallest(actual.dtype)
    limit = row.tolerance if np.finfo(expected.dtype).eps < np.finfo(actual.dtype).eps else 2 * row.tolerance
    subnormal = tiny / float(np.finfo(actual.dtype).smallest_subnormal)
    return np.asarray(ulps(actual, expected) - np.where(np.abs(expected) < tiny, subnormal, limit))


@pytest.mark.parametrize(("processor", "width"), PLACES)
@pytest.mark.parametrize("scalar", NUMPY)
def test_every_op(scalar: str, processor: str, width: int) -> None:
    compiled = _compiled(scalar, processor, width)
    for row in MAPS:
        assert not isinstance(row.wgsl, str)
        if scalar not in row.wgsl:
            continue
        operands, expected = _operands(row, scalar), _expected(row, scalar)
        actual = compiled(f"op_{row.name}", operands, expected.dtype, width)
        if row.tolerance and expected.dtype.kind == "f":
            wide = exact(row, operands) if row in MEASURED else expected.astype(WIDER[expected.dtype.name])
            wrong = np.flatnonzero(_excess(row, actual, wide) > 0)
        else:
            same = actual == expected
            if expected.dtype.kind == "f":
                same |= np.isnan(actual) & np.isnan(expected)
            wrong = np.flatnonzero(~same)
        shown = [([one[at] for one in operands], actual[at], expected[at]) for at in wrong[:3]]
        assert not wrong.size, (row.name, wrong.size, shown)


@pytest.mark.parametrize(("processor", "width"), PLACES[:4:3])
@pytest.mark.parametrize("scalar", ["f32", "f64"])
def test_functions_keep_to_their_tolerance_everywhere(scalar: str, processor: str, width: int) -> None:
    """Inputs from the whole range of a type, by their bits."""
    compiled, dtype = _compiled(scalar, processor, width), NUMPY[scalar].type
    for row in MEASURED:
        operands = samples(row, 1 << (12 if scalar == "f64" else 13), dtype)
        actual = compiled(f"op_{row.name}", operands, dtype, width)
        excess = _excess(row, actual, exact(row, operands))
        at = int(np.argmax(excess))
        assert excess[at] <= 0, (row.name, [one[at] for one in operands], actual[at])


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16], ids=lambda dtype: dtype.name)
def test_half_floats(dtype: DType) -> None:
    """They are computed as float32 and then rounded."""
    rows = [row for row in MAPS if "f" in row.types and row.result == "same" and row.name != "where"]
    rounded = cast_text(dtypes.float32, dtype, False, "{0}", 1)
    made = []
    for row in rows:
        assert not isinstance(row.wgsl, str)
        text = rounded.format(row.wgsl["f32"])
        made.append(function(f"op_{row.name}", spelled(text), ["f32"] * row.arity, "f32", 16))
    compiled = Compiled(made, "host")
    for row in rows:
        with np.errstate(all="ignore"):
            operands = [each.astype(dtype.numpy).astype(np.float32) for each in _operands(row, "f32")]
            actual = compiled(f"op_{row.name}", operands, np.float32, 16).astype(dtype.numpy)
            expected = np.asarray(row.numpy(*operands)).astype(dtype.numpy)
        same = (actual == expected) | (np.isnan(actual) & np.isnan(expected))
        if row.tolerance:  # the other neighbour, where float32's error is across the middle
            same |= np.nextafter(expected, actual) == actual
            same |= (actual == 0) & (np.abs(expected.astype(np.float32)) < np.finfo(np.float32).tiny)
        at = int(np.argmin(same))
        assert same[at], (row.name, [each[at] for each in operands], actual[at], expected[at])


@pytest.mark.parametrize("width", [0, 8])
@pytest.mark.parametrize("scalar", ["f32", "f64"])
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_huge_angles(name: str, scalar: str, width: int) -> None:
    """Multiples of π/2 and numbers nearest to them, where the reduced angle is smallest."""
    dtype = NUMPY[scalar].type
    hardest = 6381956970095103 * 2.0 ** (74 if scalar == "f32" else 797)
    ends = (120, 76) if scalar == "f32" else (1000, 640)
    quarters = [np.arange(1, 900), 2.0 ** np.arange(10, ends[0]), 3.0 ** np.arange(6, ends[1])]
    near = (np.concatenate(quarters) * (np.pi / 2)).astype(dtype)
    x = np.concatenate([near, np.nextafter(near, dtype(0)), -near, [hardest]]).astype(dtype)
    row = ROWS[name]
    actual = _compiled(scalar, "host", width)(f"op_{name}", [x], dtype, width)
    excess = _excess(row, actual, exact(row, [x]))
    assert excess.max() <= 0, x[int(np.argmax(excess))]


@pytest.mark.parametrize("scalar", ["f32", "f64"])
def test_the_sign_of_zero(scalar: str) -> None:
    """An odd function keeps it."""
    zeros = np.array([0.0, -0.0], NUMPY[scalar])
    rounding = "negative abs sign floor ceil round trunc sqrt"
    for name in f"{rounding} expm1 log1p sin tan asin atan sinh tanh asinh atanh erf".split():
        actual = _compiled(scalar, "host", 4)(f"op_{name}", [zeros], zeros.dtype, 4)
        with np.errstate(all="ignore"):
            expected = ROWS[name].numpy(zeros)
        assert np.signbit(actual).tolist() == np.signbit(expected).tolist(), name


# Casts


def _values_of(dtype: DType) -> Array:
    """Hard numbers of a dtype, as it is computed with."""
    hard, compute = _hard(dtype.compute), NUMPY[dtype.compute]
    if not dtype.is_packed or dtype.kind == "b":
        return hard
    with np.errstate(all="ignore"):
        return hard.astype(dtype.numpy).astype(compute)


def _pairs() -> list[tuple[DType, DType, bool]]:
    values = [(a, b, False) for a, b in product(dtypes.REAL, dtypes.REAL)]
    same_size = [(a, b, True) for a, b, _ in values if a.itemsize == b.itemsize]
    return values + [each for each in same_size if "b" not in (each[0].kind, each[1].kind)]


@pytest.mark.parametrize(("processor", "width"), [("host", 0), ("host", 8), (PROCESSORS[-1], 4)])
def test_casts(processor: str, width: int) -> None:
    pairs, functions = _pairs(), []
    for at, (source, target, by_bits) in enumerate(pairs):
        write = spelled(cast_text(source, target, by_bits, "{0}", 1))
        functions.append(function(f"cast_{at}", write, [source.compute], target.compute, width))
    compiled = Compiled(functions, processor)
    for at, (source, target, by_bits) in enumerate(pairs):
        values = _values_of(source)
        actual = compiled(f"cast_{at}", [values], NUMPY[target.compute], width)
        with np.errstate(all="ignore"):
            stored = values.astype(source.numpy)
            if by_bits:
                expected = stored.view(target.numpy)
            elif source.kind == "f" and target.kind in "iu":
                low, high = target.limits
                expected = np.array([_whole(float(each), low, high) for each in stored], target.numpy)
            else:
                expected = stored.astype(target.numpy)
            expected = expected.astype(NUMPY[target.compute])
        np.testing.assert_array_equal(actual, expected, f"{source} {target} {by_bits}")


def _whole(value: float, low: int, high: int) -> int:
    """Truncated, within a range, 0 for NaN."""
    if np.isnan(value):
        return 0
    return min(max(low, int(np.trunc(value)) if np.isfinite(value) else (high if value > 0 else low)), high)


# Conditions that differ from lane to lane

FUNCTIONS = """
fn wg_collatz(start: U) -> U {
    var x = start;
    var steps = U(0u);
    while (x > U(1u)) {
        if ((x & U(1u)) == U(0u)) { x = x >> U(1u); } else { x = x * U(3u) + U(1u); }
        steps += U(1u);
        if (steps >= U(50u)) { return steps + x; }
    }
    return steps;
}
fn wg_divisors(x: U) -> U {
    var count = U(0u);
    for (var by = U(1u); by <= x; by++) {
        if (x % by != U(0u)) { continue; }
        count += by;
        if (count > U(40u)) { break; }
    }
    return count;
}
fn wg_both(x: U) -> U {
    var sum = U(0u);
    var i = U(0u);
    loop {
        if (i == x) { break; }
        var j = U(0u);
        loop {
            if (j > i) { break; }
            if ((i ^ j) == U(5u)) { return sum; }
            let more = wg_less_first(i, j, &sum);
            sum += more;
            continuing { j += U(1u); }
        }
        continuing { i += U(1u); break if (i > U(30u)); }
    }
    return sum + U(1000u);
}
fn wg_less_first(a: U, b: U, sum: ptr<function, U>) -> U {
    if (a < b) { return U(7u); }
    if ((a & U(3u)) == U(1u)) { *sum = *sum ^ b; }
    return a - b;
}
fn wg_guarded(x: U) -> U {
    var result = x;
    if (x > U(10u)) {
        var left = x;
        while (any(left > U(4u))) { left = select(left, left - U(3u), left > U(4u)); }
        result = left;
    } else if (x == U(3u)) { result = U(77u); }
    return result;
}
"""


def _collatz(x: int) -> int:
    steps = 0
    while x > 1:
        x = x // 2 if x % 2 == 0 else 3 * x + 1
        steps += 1
        if steps >= 50:
            return steps + x
    return steps


def _divisors(x: int) -> int:
    count = 0
    for by in range(1, x + 1):
        if x % by:
            continue
        count += by
        if count > 40:
            break
    return count


def _both(x: int) -> int:
    total = i = 0
    while i != x:
        for j in range(i + 1):
            if i ^ j == 5:
                return total
            if i & 3 == 1:
                total ^= j
            total += i - j
        i += 1
        if i > 30:
            break
    return total + 1000


def _guarded(x: int) -> int:
    if x <= 10:
        return 77 if x == 3 else x
    while x > 4:
        x -= 3
    return x


@pytest.mark.parametrize("width", [0, 4, 16])
@pytest.mark.parametrize("reference", [_collatz, _divisors, _both, _guarded], ids=lambda each: each.__name__)
def test_lanes_go_their_own_ways(reference: Callable[[int], int], width: int) -> None:
    functions, name = parsed_functions(FUNCTIONS), f"wg{reference.__name__}"

    def write(code: Function, args: Sequence[Value]) -> Value:
        return Translator(code, functions.__getitem__).call(name, args)

    x = np.random.default_rng(5).permutation(np.arange(100, dtype=np.uint32))
    compiled = Compiled([function("f", write, ["u32"], "u32", width)], "host")
    actual = compiled("f", [x], np.uint32, width)
    assert actual.tolist() == [reference(int(each)) for each in x]


def test_every_function_of_the_library_is_translated() -> None:
    """But for the one that is written for four lanes beside one for any number."""
    for name in library.names():
        if name.endswith("_4") or name == "wg_turn_far_f64_1":
            continue
        written = library.written(name)
        args: list[Any] = []
        for kind in re.findall(r"\w+: ((?:ptr<function, )?\w+(?:<\w+>)?)", written[: written.index("{")]):
            words = re.findall(r"\w+", kind)
            value = Value("%x", WORDS[words[-1]], 8)
            if words[0] == "ptr":
                args.append(Pointer(Variable("%p", value.scalar, 8)))
            else:
                args.append(Vector((value,) * int(words[0][3])) if words[0].startswith("vec") else value)
        assert Translator(Function("kernel", [])).called(name.removesuffix("_1"), args) is not None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fn wg_f(x: F) -> F { return sinh(x); }", "sinh of WGSL is not translated"),
        ("fn wg_f(x: F) -> F { return y; }", "text:1: `y` is not known"),
        ("fn wg_f(x: F) -> F {\n switch 1 { default { return x; } } }", "text:2: switch is not translated"),
        ("fn wg_f(x: F) -> F { x = x; return x; }", "only variables"),
        ("fn wg_f(x: F) -> F { return x +; }", "`;` is unexpected|a name is expected"),
    ],
)
def test_what_is_not_translated(text: str, message: str) -> None:
    with pytest.raises(wg.CompileError, match=message):
        Translator(Function("f", []), lambda name: parsed_functions(text)[name]).call(
            "wg_f", [Value("%x", "f32")]
        )
