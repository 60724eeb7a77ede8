"""The library of functions: its text in two widths, what both compilers say of it, its casts and packing."""

from __future__ import annotations

import math
import re
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from scripts.accuracy import compute, lacks, launch
from tests.wgsl.naga import compiles
from tests.wgsl.tint import ask, needs_tint
from webgrad.errors import ShaderError
from webgrad.ops import references
from webgrad.runtime.adapters import list_adapters
from webgrad.wgsl import library

Array = npt.NDArray[Any]
ENTRY = "@compute @workgroup_size(1) fn main() {}\n"
PLAIN = [name for name in library.names() if not re.search(r"[iuf]64", library.functions([name]))]
SMALL: dict[str, Any] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "i16": np.int16,
    "u16": np.uint16,
    "i8": np.int8,
    "u8": np.uint8,
    "bool": np.bool_,
}
COMPUTE = {"f16": "f32", "bf16": "f32", "i16": "i32", "i8": "i32", "u16": "u32", "u8": "u32", "bool": "bool"}
STORED: dict[str, Any] = {"f32": np.float32, "i32": np.int32, "u32": np.uint32, "bool": np.uint32}


# Text


def test_spelling_adds_widths_and_types() -> None:
    assert library.spell("wg_exp(x) + F(1.0)", 1) == "wg_exp_1(x) + f32(1.0)"
    assert library.spell("select(I(0), wg_power_i32(a, b), B(c))", 4) == (
        "select(vec4<i32>(0), wg_power_i32_4(a, b), vec4<bool>(c))"
    )
    assert library.spell("wg_unpack4_f16(FILE[I2])", 4) == "wg_unpack4_f16(FILE[I2])"  # exists once
    assert library.spell("wg_turn_far_f64(x, q)", 4) == "wg_turn_far_f64_4(x, q)"  # written for each width


def test_functions_come_with_what_they_call_each_once() -> None:
    text = library.functions(["wg_gelu_4", "wg_erfc_4"])
    found = re.findall(r"^fn (\w+)\(", text, re.MULTILINE)
    assert len(found) == len(set(found))
    assert {"wg_gelu_4", "wg_erfc_4", "wg_exp_times_4", "wg_isnan_4"} <= set(found)
    assert not [name for name in found if name.endswith("_1")]
    assert set(re.findall(r"\bwg_\w+", text)) == set(found)
    assert "//" not in text
    assert text == library.functions(["wg_erfc_4", "wg_gelu_4", "wg_gelu_4"])
    assert library.functions([]) == ""


def body(name: str) -> str:
    found = re.search(rf"^fn {name}\(.*?^}}", library.functions([name]), re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[0]


def floats(name: str) -> set[float]:
    return {float(each) for each in re.findall(r"(?<![\w.])\d+\.\d+(?:e-?\d+)?", body(name))}


@pytest.mark.parametrize("name", ["wg_gelu_tanh_1", "wg_gelu_tanh_f64_1"])
def test_gelus_factors_are_the_references(name: str) -> None:
    for factor in (references.GELU_SCALE, references.GELU_SCALE * references.GELU_CUBIC):  # in two parts each
        sums = [one + other for one, other in product(floats(name), repeat=2)]
        assert any(math.isclose(each, factor, rel_tol=1e-11) for each in sums)


@pytest.mark.parametrize(
    ("name", "coefficients"),
    [
        ("wg_erf_1", references.ERF_NEAR),
        ("wg_erfc_near_1", references.ERFC_NEAR),
        ("wg_normal_tail_1", references.NORMAL_TAIL),
    ],
)
def test_polynomials_are_the_references(name: str, coefficients: tuple[float, ...]) -> None:
    assert set(map(abs, coefficients)) <= floats(name)


def test_random_bits_are_the_references() -> None:
    text = body("wg_random_bits_1")
    turns = [int(each) for each in re.findall(r"wg_rotate_1\(y, u32\((\d+)u\)\)", text)]
    first, second = references.THREEFRY_ROTATIONS
    assert turns == [*first, *second, *first, *second, *first]
    assert f"{references.THREEFRY_PARITY:#x}u" in text


def test_unknown_functions_are_named() -> None:
    with pytest.raises(ShaderError, match="no function wg_exq_4"):
        library.functions(["wg_exq_4"])


def test_every_function_of_the_file_is_found() -> None:
    source = "".join(file.read_text(encoding="utf-8") for file in library._FILES)
    written = re.findall(r"^fn (\w+)\(", source, re.MULTILINE)
    assert len(written) == len(set(written))
    assert {re.sub(r"_[14]$", "", name) for name in library.names()} == {
        re.sub(r"_[14]$", "", name) for name in written
    }
    assert max(map(len, source.splitlines())) <= 110


def test_no_type_word_is_left() -> None:
    text = library.functions(library.names())
    assert not re.search(rf"\b[{''.join(library.WORDS)}]\b", text)


@pytest.mark.gpu
def test_naga_takes_every_function() -> None:
    compiles(library.functions(PLAIN if lacks("f64 i64") else library.names()) + ENTRY)


@needs_tint
def test_tint_takes_every_function_without_64_bit_types() -> None:
    assert len(PLAIN) > 200
    assert ask({"library": library.functions(PLAIN) + ENTRY}) == {"library": []}


# Packed storage


def _patterns(kind: str) -> Array:
    """Every value of a small type, in order of its bits."""
    if kind == "bool":
        return np.asarray(np.arange(64) % 3 == 0)
    bits = 8 * np.dtype(SMALL[kind]).itemsize
    return np.asarray(np.arange(1 << bits, dtype=f"u{bits // 8}").view(SMALL[kind]))


def _same(actual: Array, expected: Array) -> None:
    """Equal in bits; NaN of any kind are alike."""
    if expected.dtype.kind in "fV":
        nan = np.isnan(expected.astype(np.float32))
        np.testing.assert_array_equal(np.isnan(actual.astype(np.float32)), nan)
        actual, expected = actual[~nan], expected[~nan]
    np.testing.assert_array_equal(actual.view(np.uint8), expected.view(np.uint8))


def _words(kind: str) -> str:
    return "vec2<u32>" if np.dtype(SMALL[kind]).itemsize == 2 else "u32"


def _shown(kind: str, value: str, width: int) -> tuple[str, str]:
    """An expression whose value can be stored, and its type."""
    scalar = COMPUTE[kind].replace("bool", "u32")
    stored = scalar if width == 1 else f"vec4<{scalar}>"
    return (f"select({stored}(0u), {stored}(1u), {value})" if kind == "bool" else value), stored


@pytest.mark.gpu
@pytest.mark.parametrize("kind", SMALL)
def test_every_value_is_unpacked(kind: str) -> None:
    values = _patterns(kind)
    expected = values.astype(STORED[COMPUTE[kind]])
    text, stored = _shown(kind, f"wg_unpack4_{kind}(x0[i])", 4)
    data = launch(text, [(_words(kind), values)], stored, values.size // 4)
    _same(data.view(expected.dtype), expected)
    per_word = 4 // values.itemsize
    text, stored = _shown(kind, f"wg_unpack1_{kind}(x0[i / {per_word}u], i % {per_word}u)", 1)
    data = launch(text, [("u32", values)], stored, values.size)
    _same(data.view(expected.dtype), expected)


@pytest.mark.gpu
@pytest.mark.parametrize("kind", SMALL)
def test_every_value_is_packed(kind: str) -> None:
    values = _patterns(kind)
    wide = values.astype(STORED[COMPUTE[kind]])
    scalar = COMPUTE[kind].replace("bool", "u32")
    argument = "x0[i] != vec4<u32>(0u)" if kind == "bool" else "x0[i]"
    data = launch(f"wg_pack4_{kind}({argument})", [(f"vec4<{scalar}>", wide)], _words(kind), values.size // 4)
    _same(data.view(values.dtype), values)


def _near_halves(kind: str) -> Array:
    """Every finite value of a 16-bit float, the middles between neighbours, numbers beside them, and ends."""
    bits = np.arange(0x7F80 if kind == "bf16" else 0x7C00, dtype=np.uint16)
    values = bits.view(SMALL[kind]).astype(np.float64)
    middles = (values[:-1] + values[1:]) / 2
    beside = [middles, middles * (1 + 2.0**-23), middles * (1 - 2.0**-23)]
    ends = [65504, 65519.996, 65520, 65536, 1e30, 3.4e38, 3.39e38, np.inf, np.nan, 2.0**-25, 2.0**-26, 6e-8]
    size = np.concatenate([values, *beside, ends]).astype(np.float32)
    size = np.concatenate([size, np.zeros(-size.size % 4, np.float32)])
    return np.concatenate([size, -size])


def _rounded(x: Array, kind: str) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(x.astype(SMALL[kind]))


def _normal(x: Array) -> Array:
    """Without numbers that are subnormal in float32, which a device may read as 0."""
    return np.where(np.abs(x) < 2.0**-126, np.float32(0), x)


@pytest.mark.gpu
@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_rounding_to_nearest_even(kind: str) -> None:
    x = _normal(_near_halves(kind))
    expected = _rounded(x, kind)
    data = launch(f"wg_pack4_{kind}(x0[i])", [("vec4<f32>", x)], "vec2<u32>", x.size // 4)
    _same(data.view(SMALL[kind]), expected)
    for width in (1, 4):
        actual = compute(f"wg_round_{kind}({{0}})", [x], np.float32, width)
        _same(actual, expected.astype(np.float32))


@pytest.mark.gpu
@pytest.mark.parametrize("kind", ["i8", "i16", "u8", "u16"])
def test_wrapping(kind: str) -> None:
    wide = STORED[COMPUTE[kind]]
    limits = np.iinfo(wide)
    x = np.concatenate([np.arange(-70000, 70000, 7), [limits.min, limits.max, 255, 256, 65535]]).astype(
        np.int64
    )
    x = x.astype(wide)
    for width in (1, 4):
        actual = compute(f"wg_wrap_{kind}({{0}})", [x], wide, width)
        np.testing.assert_array_equal(actual, x.astype(SMALL[kind]).astype(wide))


# Casts

TARGETS: dict[str, Any] = {
    **{kind: SMALL[kind] for kind in ("i8", "i16", "u8", "u16")},
    "i32": np.int32,
    "u32": np.uint32,
    "i64": np.int64,
    "u64": np.uint64,
}


def _cast(x: Array, target: Any) -> Array:
    """Truncated, stopped at the ends, NaN as 0: in whole numbers of Python."""
    limits = np.iinfo(target)

    def one(value: float) -> int:
        if np.isnan(value):
            return 0
        if np.isinf(value):
            return int(limits.max if value > 0 else limits.min)
        return min(max(int(value), int(limits.min)), int(limits.max))

    return np.array([one(float(value)) for value in x], target)


@pytest.mark.gpu
@pytest.mark.parametrize("width", [1, 4])
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("source", ["f32", "f64"])
def test_floats_become_integers(source: str, target: str, width: int) -> None:
    if lacks(source + target):
        pytest.skip(f"the adapter has no {source} or no {target}")
    dtype = {"f32": np.float32, "f64": np.float64}[source]
    powers = 2.0 ** np.array([7, 8, 15, 16, 23, 24, 31, 32, 52, 53, 62, 63, 64, 100])
    edges = np.concatenate([powers - 1, powers, powers + 1, powers * (1 - 2.0**-24), powers * (1 + 2.0**-23)])
    special = [0, 0.5, 0.99, 1.5, 2.5, 127.5, 255.9, np.inf, np.nan, 1e-40, 3e38]
    x = np.concatenate([edges, special, np.random.default_rng(0).uniform(0, 1e5, 200)]).astype(dtype)
    x = np.concatenate([x, -x])
    stored = {"i": np.int32, "u": np.uint32}[target[0]] if target in SMALL else TARGETS[target]
    actual = compute(f"wg_cast_{source}_{target}({{0}})", [x], stored, width)
    np.testing.assert_array_equal(actual, _cast(x, TARGETS[target]).astype(stored))


@pytest.mark.gpu
@pytest.mark.parametrize("source", ["f32", "f64"])
def test_every_float_but_zero_is_true(source: str) -> None:
    if lacks(source):
        pytest.skip(f"the adapter has no {source}")
    x = np.array(
        [0, -0.0, 1, -1, 1e-40, np.inf, np.nan, 0.25], {"f32": np.float32, "f64": np.float64}[source]
    )
    for width in (1, 4):
        actual = compute(f"wg_cast_{source}_bool({{0}})", [x], np.bool_, width)
        np.testing.assert_array_equal(actual, x != 0)


@pytest.mark.gpu
def test_a_float64_that_was_a_float32_is_rounded() -> None:
    """Compilers take f64(f32(x)) for x."""
    if lacks("f64"):
        pytest.skip("the adapter has no f64")
    x = np.array([0.1, 1e300, -1e300, np.nan, -np.nan, np.inf, -0.0, 1 / 3, -2.5])
    with np.errstate(over="ignore"):
        expected = x.astype(np.float32).astype(np.float64)
    for width in (1, 4):
        actual = compute("D(wg_cast_f64_f32({0}))", [x], np.float64, width)
        np.testing.assert_array_equal(actual, expected)
        np.testing.assert_array_equal(np.signbit(actual), np.signbit(expected))


@pytest.mark.gpu
def test_remainders_of_negative_integers_on_every_adapter() -> None:
    edges = np.array([-(2**31), -9, -1, 0, 1, 7, 2**31 - 1], np.int32)
    a, b = (each.ravel() for each in np.meshgrid(edges, edges))
    with np.errstate(all="ignore"):
        expected = a % b
    for adapter in list_adapters():  # OpenGL's GLSL, where there is such an adapter, leaves a plain % open
        given = compute("wg_remainder_i32({0}, {1})", (a, b), np.int32, 4, adapter.device)
        assert np.array_equal(given, expected), adapter.name
