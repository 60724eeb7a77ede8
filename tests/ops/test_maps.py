"""Every map row: its NumPy side against what it promises, its WGSL in every compute type against NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from scripts.accuracy import (
    MEASURED,
    PAGE,
    WIDER,
    compute,
    compute_all,
    exact,
    lacks,
    samples,
    smallest,
    ulps,
)
from webgrad import dtypes
from webgrad.errors import DTypeError, ShapeError
from webgrad.graph.node import leaf, make
from webgrad.graph.op import Op
from webgrad.ops import references
from webgrad.ops.maps import MAPS
from webgrad.runtime.device import open_device

Array = npt.NDArray[Any]
ROWS = {row.name: row for row in MAPS}
NUMPY: dict[str, Any] = {
    "f32": np.float32,
    "i32": np.int32,
    "u32": np.uint32,
    "bool": np.bool_,
    "i64": np.int64,
    "u64": np.uint64,
    "f64": np.float64,
}
KINDS = {"f32": "f", "f64": "f", "i32": "i", "i64": "i", "u32": "u", "u64": "u", "bool": "b"}
SPELLED = [(row.name, kind) for row in MAPS if not isinstance(row.wgsl, str) for kind in row.wgsl]


def call(name: str, *operands: Any) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(ROWS[name].numpy(*operands))


# The NumPy side


def test_names_are_the_contract() -> None:
    expected = """
        add subtract multiply divide floor_divide remainder power negative abs sign maximum minimum
        clamp_min clamp_max
        equal not_equal less less_equal greater greater_equal isnan isinf isfinite
        logical_and logical_or logical_xor logical_not bitwise_and bitwise_or bitwise_xor bitwise_invert
        left_shift right_shift where random_bits
        exp exp2 expm1 log log1p log2 log10 sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh
        erf erfc sqrt rsqrt sigmoid gelu gelu_tanh floor ceil round trunc
    """
    assert sorted(ROWS) == sorted(expected.split())
    assert len(ROWS) == len(MAPS)


@pytest.mark.parametrize("row", MAPS, ids=lambda row: row.name)
def test_rows_claim_what_they_spell(row: Op) -> None:
    assert not isinstance(row.wgsl, str)
    assert {KINDS[kind] for kind in row.wgsl} == set(row.types)
    assert row.cost >= 1
    for kind, text in row.wgsl.items():
        assert all(f"{{{at}}}" in text for at in range(row.arity)), (kind, text)


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64])
def test_integer_division_follows_numpy(dtype: Any) -> None:
    low = np.iinfo(dtype).min
    a = np.array([7, -7, 7, -7, 5, -5, low, low], dtype)
    b = np.array([2, 2, -2, -2, 0, 0, -1, 1], dtype)
    assert call("floor_divide", a, b).tolist() == [3, -4, -4, 3, 0, 0, low, low]
    assert call("remainder", a, b).tolist() == [1, 1, -1, -1, 0, 0, 0, 0]


def test_integer_powers_wrap_and_have_no_fractions() -> None:
    low = np.iinfo(np.int32).min
    base = np.array([2, -1, 1, 0, 3, -3, -1, 0, 2, 7], np.int32)
    exponent = np.array([31, -3, -5, -1, -1, 5, low, 0, 32, 20], np.int32)
    wrapped = (7**20 + 2**31) % 2**32 - 2**31
    assert call("power", base, exponent).tolist() == [low, -1, 1, 0, 0, -243, 1, 1, 0, wrapped]
    big = np.array([3, 2], np.uint64)
    assert call("power", big, np.array([100, 64], np.uint64)).tolist() == [3**100 % 2**64, 0]
    assert call("power", np.int8(5), np.array([[3], [4]], np.int8)).tolist() == [[125], [113]]


def test_shifts_by_more_than_the_width() -> None:
    a = np.array([1, -1, -8, 5], np.int32)
    for by in (32, 40, -1):
        assert call("left_shift", a, np.full_like(a, by)).tolist() == [0, 0, 0, 0]
        assert call("right_shift", a, np.full_like(a, by)).tolist() == [0, -1, -1, 0]


def test_floats_keep_nan_and_signs() -> None:
    nan, inf = np.nan, np.inf
    np.testing.assert_array_equal(call("maximum", [nan, 1, 2], [1, nan, 3]), [nan, nan, 3])
    np.testing.assert_array_equal(call("sign", np.array([nan, -2.0, 0.0])), [nan, -1, 0])
    np.testing.assert_array_equal(call("remainder", [-1.0, 1, inf, 1], [inf, inf, 1, 0]), [inf, 1, nan, nan])
    np.testing.assert_array_equal(call("round", np.array([0.5, 1.5, -2.5])), [0, 2, -2])
    x = np.array([-inf, inf, nan], np.float32)
    np.testing.assert_array_equal(call("gelu", x), [0, inf, nan])
    np.testing.assert_array_equal(call("gelu_tanh", x), [0, inf, nan])
    np.testing.assert_array_equal(call("sigmoid", x), [0, 1, nan])


@pytest.mark.parametrize("name", ["erf", "erfc", "gelu"])
def test_error_functions_are_accurate_in_float64(name: str) -> None:
    x = np.concatenate([np.linspace(-6, 30, 4001), np.geomspace(1e-300, 1, 500), [-1e300, 0.0, -0.0]])
    by_math: Callable[[float], float] = {
        "erf": math.erf,
        "erfc": math.erfc,
        "gelu": lambda each: 0.5 * each * math.erfc(-each * math.sqrt(0.5)),
    }[name]
    expected = np.array([by_math(float(each)) for each in x])
    kept = np.abs(expected) > 1e-300
    actual = call(name, x)
    np.testing.assert_allclose(actual[kept], expected[kept], rtol=2e-15 if name == "erf" else 4e-13)
    np.testing.assert_allclose(actual[~kept], 0, atol=1e-299)


@pytest.mark.parametrize(
    ("key", "counter", "expected"),
    [
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
        ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
    ],
)
def test_threefry_gives_the_published_words(
    key: tuple[int, int], counter: tuple[int, int], expected: tuple[int, int]
) -> None:
    words = [np.array([each], np.uint32) for each in (*counter, *key)]
    x, y = references.threefry(*words)
    assert (int(x[0]), int(y[0])) == expected


def test_random_bits_is_the_first_word() -> None:
    counter = np.arange(1000, dtype=np.uint32)
    key0, key1 = np.full_like(counter, 7), np.full_like(counter, 0x80000001)
    bits = call("random_bits", counter, key0, key1)
    np.testing.assert_array_equal(bits, references.threefry(counter, np.zeros_like(counter), key0, key1)[0])
    ones = np.unpackbits(bits.view(np.uint8)).mean()
    assert 0.48 < ones < 0.52
    assert np.unique(bits).size == 1000


def _node(dtype: Any, shape: tuple[int, ...] = (2,)) -> Any:
    return leaf(np.zeros(shape, dtype.numpy), shape, dtype, open_device("cpu"))


def test_where_checks_its_operands() -> None:
    condition, x = _node(dtypes.bool, (3, 1)), _node(dtypes.float32)
    chosen = make(ROWS["where"], (condition, x, x))
    assert chosen.sig.shape == (3, 2)
    assert chosen.sig.dtype is dtypes.float32
    with pytest.raises(DTypeError, match=r"where \(its condition\) is not offered for float32"):
        make(ROWS["where"], (x, x, x))
    with pytest.raises(DTypeError, match="where: float32 and int32 must be one dtype"):
        make(ROWS["where"], (condition, x, _node(dtypes.int32)))
    with pytest.raises(ShapeError, match="where: the shapes"):
        make(ROWS["where"], (_node(dtypes.bool, (3,)), x, x))


def test_unclaimed_dtypes_are_refused() -> None:
    with pytest.raises(DTypeError, match=r"exp is not offered for int32.*astype"):
        make(ROWS["exp"], (_node(dtypes.int32),))
    with pytest.raises(DTypeError, match="random_bits takes uint32 words, not uint8"):
        make(ROWS["random_bits"], (_node(dtypes.uint8),) * 3)
    assert make(ROWS["less"], (_node(dtypes.float32),) * 2).sig.dtype is dtypes.bool


def test_the_page_has_every_function() -> None:
    """Of float32, then of float64; there NumPy's own gelu is not within the limit, which is the adapters'."""
    lines = [line.split(" | ") for line in PAGE.read_text(encoding="utf-8").splitlines() if " to " in line]
    rows = [
        (line[0], float(line[2]), float(line[3]), float(line[5]))
        for line in lines
        if line[0].startswith("| `")
    ]
    assert [row[:2] for row in rows] == 2 * [(f"| `{row.name}`", row.tolerance) for row in MEASURED]
    assert [name for name, limit, _, adapter in rows if adapter > limit] == []
    assert [name for name, limit, cpu, _ in rows[: len(MEASURED)] if cpu > limit] == []


# The WGSL


def _values(kind: str, count: int) -> Array:
    """Special values, and random ones of every size."""
    generator = np.random.default_rng(1)
    dtype = np.dtype(NUMPY[kind])
    if kind == "bool":
        return generator.random(count) < 0.5
    if dtype.kind == "f":
        special = [0, -0.0, 1, -1, 0.5, 2.5, -1.5, np.nan, np.inf, -np.inf, 1e-40, -1e-40, 3e38, -3e38, 1e7]
        drawn = generator.standard_normal(count) * 10.0 ** generator.integers(-3, 4, count)
        return np.concatenate([special, drawn]).astype(dtype)
    limits = np.iinfo(dtype)
    special = [0, 1, 2, 3, 7, 31, 32, 33, 63, 64, limits.max, limits.max - 1, limits.min, limits.min + 1]
    small = generator.integers(-40 if dtype.kind == "i" else 0, 70, count)
    bits = generator.integers(0, 256, count * dtype.itemsize, np.uint8).view(dtype)
    if dtype.kind == "i":
        special += [-1, -2, -7, -31, -32]
    return np.concatenate([np.array(special, dtype), small.astype(dtype), bits])


def _operands(row: Op, kind: str) -> list[Array]:
    """Each special value beside each; random ones beside random ones. Odd in number."""
    values = _values(kind, 1200)
    if row.arity == 1:
        return [values]
    head, generator = values[:19], np.random.default_rng(2)
    first, second = (np.array(each, values.dtype) for each in zip(*product(head, head), strict=True))
    a = np.concatenate([first, generator.permutation(values)])
    b = np.concatenate([second, generator.permutation(values)])
    if row.arity == 2:
        return [a, b]
    if row.name == "where":
        return [generator.random(a.size) < 0.5, a, b]
    return [a, b, generator.permutation(a)]


def _keeps_to_tolerance(row: Op, operands: list[Array], actual: Array, expected: Array) -> None:
    """A subnormal result may be 0. Where NumPy has nothing wider than float64, it may err as much as we."""
    tiny = smallest(actual.dtype)
    limit = row.tolerance if np.finfo(expected.dtype).eps < np.finfo(actual.dtype).eps else 2 * row.tolerance
    allowed = np.where(
        np.abs(expected) < tiny, tiny / float(np.finfo(actual.dtype).smallest_subnormal), limit
    )
    error = ulps(actual, expected)
    at = int(np.argmax(error - allowed))
    assert error[at] <= allowed[at], [each[at] for each in operands]


@cache
def _signature(name: str, kind: str) -> tuple[int, str, np.dtype[Any]]:
    """What decides on the operands, and the type of the result: rows that share it can share a kernel."""
    row = ROWS[name]
    operands = _operands(row, kind)
    return row.arity, operands[0].dtype.name, call(name, *operands).dtype


@cache
def _by_wgsl(kind: str, signature: tuple[int, str, np.dtype[Any]], width: int) -> dict[str, Array]:
    """The results of all rows of a signature, by one kernel."""
    names = [name for name, other in SPELLED if other == kind and _signature(name, kind) == signature]
    texts = [ROWS[name].wgsl for name in names]
    expressions = [text[kind] for text in texts if not isinstance(text, str)]
    results = compute_all(expressions, _operands(ROWS[names[0]], kind), signature[-1], width)
    return dict(zip(names, results, strict=True))


@pytest.mark.gpu
@pytest.mark.parametrize("width", [1, 4])
@pytest.mark.parametrize(("name", "kind"), SPELLED)
def test_wgsl_agrees_with_numpy(name: str, kind: str, width: int) -> None:
    row = ROWS[name]
    if lacks(kind):
        pytest.skip(f"the adapter has no {kind}")
    operands = _operands(row, kind)
    expected = call(name, *operands)
    actual = _by_wgsl(kind, _signature(name, kind), width)[name]
    if row.tolerance and kind in ("f32", "f64"):
        wide = exact(row, operands) if row in MEASURED else expected.astype(WIDER[expected.dtype.name])
        _keeps_to_tolerance(row, operands, actual, wide)
    else:
        np.testing.assert_array_equal(actual, expected)  # NaN is equal to NaN, and -0 to 0


@pytest.mark.gpu
@pytest.mark.parametrize("row", MEASURED, ids=lambda row: row.name)
@pytest.mark.parametrize("where", ["cpu", "f32", "f64"])
def test_functions_keep_to_their_tolerance(row: Op, where: str) -> None:
    if lacks(where):
        pytest.skip(f"the adapter has no {where}")
    dtype = NUMPY["f64" if where == "f64" else "f32"]
    operands = samples(row, 1 << (14 if where == "f64" else 16), dtype)
    assert not isinstance(row.wgsl, str)
    actual = call(row.name, *operands) if where == "cpu" else compute(row.wgsl[where], operands, dtype, 4)
    _keeps_to_tolerance(row, operands, actual, exact(row, operands))


@pytest.mark.gpu
@pytest.mark.parametrize("kind", ["f32", "f64"])
@pytest.mark.parametrize("row", [row for row in MEASURED if row.arity == 1], ids=lambda row: row.name)
def test_functions_of_sums_and_products_are_as_accurate(row: Op, kind: str) -> None:
    """In a fused kernel compilers see how the argument was made, and may reorder the function's own sums."""
    if lacks(kind):
        pytest.skip(f"the adapter has no {kind}")
    generator, dtype = np.random.default_rng(3), NUMPY[kind]
    a = generator.uniform(0.3, 3, 1 << (14 if kind == "f32" else 12)).astype(dtype)
    b = (generator.uniform(*row.domain, a.size) / a).astype(dtype)
    assert not isinstance(row.wgsl, str)
    inners = (("({0} + {1} * {0})", a + b * a), ("({0} * {1})", a * b))
    for inner, argument in inners if kind == "f32" else inners[:1]:  # drivers compile slowly
        actual = compute(row.wgsl[kind].replace("{0}", inner), [a, b], dtype, 4)
        _keeps_to_tolerance(row, [a, b, argument], actual, exact(row, [argument]))


@pytest.mark.gpu
def test_comparisons_survive_what_compilers_do_to_them() -> None:
    """x == x is not true of NaN, and !(a < b) is not a >= b."""
    nan = np.array([np.nan, 1, np.inf, -0.0], np.float32)
    one = np.ones_like(nan)
    cases = {
        "wg_equal({0}, {0})": [False, True, True, True],
        "wg_not_equal({0}, {0})": [True, False, False, False],
        "wg_less_equal({0}, {0})": [False, True, True, True],
        "!wg_less({0}, {1})": [True, True, True, False],
        "!wg_greater_equal({0}, {1})": [True, False, False, True],
        "!wg_not_equal({0}, {1})": [False, True, False, False],
    }
    for expression, expected in cases.items():
        operands = [nan, one] if "{1}" in expression else [nan]
        for width in (1, 4):
            assert compute(expression, operands, np.bool_, width).tolist() == expected, expression


@pytest.mark.gpu
@pytest.mark.parametrize(("kind", "count"), [("f32", 250), ("f64", 2040)])
def test_powers_between_whole_exponents(kind: str, count: int) -> None:
    """y log2(x) close to a half, where it is rounded either way."""
    if lacks(kind):
        pytest.skip(f"the adapter has no {kind}")
    generator, dtype = np.random.default_rng(4), NUMPY[kind]
    x = np.exp(generator.uniform(-80, 80, 1 << 15)).astype(dtype)
    y = ((np.arange(x.size) % count - count / 2 - 0.5) / np.log2(x.astype(np.float64))).astype(dtype)
    row = ROWS["power"]
    assert not isinstance(row.wgsl, str)
    _keeps_to_tolerance(row, [x, y], compute(row.wgsl[kind], [x, y], dtype, 4), exact(row, [x, y]))


@pytest.mark.gpu
@pytest.mark.parametrize("kind", ["f32", "f64"])
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_huge_angles(name: str, kind: str) -> None:
    """Multiples of π/2 and numbers nearest to them, where the reduced angle is smallest."""
    if lacks(kind):
        pytest.skip(f"the adapter has no {kind}")
    dtype, hardest = NUMPY[kind], {"f32": 6381956970095103 * 2.0**74, "f64": 6381956970095103 * 2.0**797}
    ends = {"f32": (120, 76), "f64": (1000, 640)}[kind]
    quarters = np.concatenate(
        [np.arange(1, 9000), 2.0 ** np.arange(13, ends[0]), 3.0 ** np.arange(9, ends[1])]
    )
    near = (quarters * (math.pi / 2)).astype(dtype)
    x = np.concatenate([near, np.nextafter(near, dtype(0)), -near, [hardest[kind]]]).astype(dtype)
    row = ROWS[name]
    assert not isinstance(row.wgsl, str)
    for width in (1, 4):
        _keeps_to_tolerance(row, [x], compute(row.wgsl[kind], [x], dtype, width), exact(row, [x]))
