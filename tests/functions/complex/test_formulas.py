"""Functions of complex numbers: accuracy over the plane, the array API's special cases, symmetries.

Errors are in units in the last place of a result's size. The special cases are the standard's tables, written
as classes: z a zero of either sign, f finite, p positive and finite, n finite and not 0, x anything.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.functions.devices import everywhere, place

Array = np.ndarray[Any, Any]
INF, NAN, PI = math.inf, math.nan, math.pi
FUNCTIONS = (
    *("exp", "expm1", "log", "log1p", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh"),
    *("asin", "acos", "atan", "asinh", "acosh", "atanh", "log2", "log10"),
)
NUMPY = {
    name: getattr(np, name.replace("a", "arc", 1) if name.startswith("a") else name) for name in FUNCTIONS
}
BOTH = pytest.mark.parametrize("kind", ["cpu", pytest.param("software", marks=pytest.mark.gpu)])
TURNED = {"sin": "sinh", "tan": "tanh", "asin": "asinh", "atan": "atanh"}


def apply(name: str, kind: str, z: Array) -> Array:
    """A function of webgrad, on a device."""
    whole = np.pad(z, (0, -len(z) % 4))  # so that it is the same kernel for every length
    return np.asarray(getattr(wg, name)(place(kind, whole)).numpy())[: len(z)]


def points(part: Any) -> Array:
    """Numbers of many sizes, and near the places where functions have branches, zeros and infinities."""
    generator = np.random.default_rng(7)
    count, digits = 400, -np.log10(np.finfo(part).eps) + 2

    def sized(low: float, high: float) -> Array:
        parts = 10.0 ** generator.uniform(low, high, (count, 2)) * generator.choice([-1, 1], (count, 2))
        return np.asarray(parts[:, 0] + 1j * parts[:, 1])

    most = np.log10(float(np.finfo(part).max)) * 0.98
    angles = np.exp(1j * generator.uniform(-PI, PI, count))
    near = [center + sized(-digits, -0.5) for center in (0, 1, -1, 1j, -1j)]
    steep = np.log(float(np.finfo(part).max))
    return np.concatenate(
        [
            generator.uniform(-4, 4, (2, count)).T @ [1, 1j],
            sized(-3, 2),
            sized(1 - most, most),
            angles * (1 + sized(-digits, -1).real),
            generator.uniform(-steep, steep, count) + 1j * generator.uniform(-4, 4, count),
            *near,
        ]
    )


def expected(name: str, z: Array) -> Array:
    """A function in the widest complex type; NumPy's own log(1 + z) and e^z - 1 lose digits near 0."""
    z = z.astype(np.clongdouble)
    x, y = z.real, z.imag
    if name == "log1p":
        near = np.abs(z) < 0.5
        size = np.where(
            near, 0.5 * np.log1p(np.where(near, x * (x + 2) + y * y, 0)), np.log(np.hypot(1 + x, y))
        )
        return np.asarray(size + 1j * np.arctan2(y, 1 + x))
    if name == "expm1":
        real = np.expm1(x) * np.cos(y) - 2 * np.sin(y / 2) ** 2
        return np.asarray(real + 1j * (np.exp(x) * np.sin(y)))
    return np.asarray(NUMPY[name](z))


def check(result: Array, wanted: Array, ulps: float) -> None:
    """Close by the size of what is wanted, where that is in the range of floats."""
    limits = np.finfo(result.real.dtype)
    size = np.abs(wanted)
    with np.errstate(all="ignore"):
        usual = (size < 0.99 * float(limits.max)) & (size > float(limits.tiny))
        error = np.abs(result.astype(np.clongdouble) - wanted) / (size * float(limits.eps))
    assert np.all(np.isfinite(result[usual]))
    worst = int(np.argmax(np.where(usual, error, 0)))
    assert error[worst] <= ulps or not usual[worst], (worst, result[worst], wanted[worst], error[worst])


@BOTH
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_accuracy(name: str, kind: str) -> None:
    z = points(np.float32).astype(np.complex64)
    check(apply(name, kind, z), expected(name, z), 4)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_accuracy_of_double_precision(name: str) -> None:
    z = points(np.float64)
    with np.errstate(all="ignore"):
        wanted = expected(name, z)
    check(apply(name, "cpu", z), wanted, 4 if np.finfo(np.longdouble).eps < 1e-17 else 12)


@BOTH
def test_powers_of_two(kind: str) -> None:
    z = (np.random.default_rng(5).uniform(-100, 100, (2, 400)).T @ [1, 0.04j]).astype(np.complex64)
    check(apply("exp2", kind, z), np.exp(z.astype(np.clongdouble) * np.log(np.longdouble(2))), 4)


@BOTH
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_arithmetic(kind: str) -> None:
    z = points(np.float32).astype(np.complex64)
    w = np.random.default_rng(1).permutation(z)
    a, b = place(kind, z), place(kind, w)
    wide, other = z.astype(np.clongdouble), w.astype(np.clongdouble)
    check((a / b).numpy(), wide / other, 4)
    check((1 / a).numpy(), 1 / wide, 4)
    check(wg.abs(a).numpy(), np.abs(wide), 2)
    check(wg.sign(a).numpy(), wide / np.abs(wide), 2)
    with np.errstate(all="ignore"):
        tame = np.abs(wide * other) < 1e30
    check((a * b).numpy()[tame], (wide * other)[tame], 2)
    for scale in (z.real, np.float32(3)):
        by = place(kind, scale) if isinstance(scale, np.ndarray) else float(scale)
        check((a * by).numpy(), wide * scale, 1)
        check((a / by).numpy(), wide / scale, 2)


@BOTH
def test_powers(kind: str) -> None:
    generator = np.random.default_rng(3)
    z, w = (generator.uniform(-2, 2, (2, 500)).T @ [1, 1j] for _ in range(2))
    a, b = z.astype(np.complex64), w.astype(np.complex64)
    wanted = a.astype(np.complex128) ** b.astype(np.complex128)
    steps = 1 + np.abs(b * np.log(a)).max()  # the exponent's rounding is the result's error
    check((place(kind, a) ** place(kind, b)).numpy(), wanted, 4 * steps)
    for power in (0, 1, 3.0, -2):
        check((place(kind, a) ** power).numpy(), a.astype(np.complex128) ** power, 8)
    nought = place(kind, np.zeros(3, np.complex64)) ** place(kind, np.array([2 + 1j, 0, -1], np.complex64))
    np.testing.assert_array_equal(nought.numpy(), [0, 1, complex(NAN, NAN)])


# Special values

VALUES = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3e38, -3e38, 1e-37, -1e-37, INF, -INF, NAN)
CLASSES: dict[str, tuple[float, ...]] = {
    "z": (0.0, -0.0),
    "f": (0.0, -0.0, 0.5, -2.0, 3e38, -1e-37),
    "p": (0.5, 2.0, 3e38, 1e-37),
    "n": (0.5, -2.0, 3e38, -1e-37),
    "x": VALUES,
    "i": (INF, -INF),
}
# a, b → the parts of f(a + bi); ± where the sign is open; cis: an infinity or 0 in the direction of b.
CASES = {
    "exp": "z 0 1 0, f inf nan nan, f nan nan nan, inf 0 inf 0, -inf f 0cis, inf n infcis, -inf inf ±0 ±0, "
    "inf inf ±inf nan, -inf nan ±0 ±0, inf nan ±inf nan, nan 0 nan 0, nan n nan nan, nan nan nan nan",
    "expm1": "z 0 ±0 0, f inf nan nan, f nan nan nan, inf 0 inf 0, -inf inf -1 ±0, inf inf ±inf nan, "
    "inf n infcis, -inf nan -1 ±0, inf nan ±inf nan, nan 0 nan 0, nan n nan nan, nan nan nan nan",
    "log": "-0 0 -inf π, 0 0 -inf 0, f inf inf π/2, f nan nan nan, -inf p inf π, inf p inf 0, "
    "-inf inf inf 3π/4, inf inf inf π/4, i nan inf nan, nan f nan nan, nan inf inf nan, nan nan nan nan",
    "log1p": "-1 0 -inf 0, f inf inf π/2, f nan nan nan, -inf p inf π, inf p inf 0, -inf inf inf 3π/4, "
    "inf inf inf π/4, i nan inf nan, nan f nan nan, nan inf inf nan, nan nan nan nan",
    "sqrt": "z 0 0 0, x inf inf inf, f nan nan nan, -inf p 0 inf, inf p inf 0, -inf nan nan ±inf, "
    "inf nan inf nan, nan f nan nan, nan nan nan nan",
    "sinh": "0 0 0 0, 0 inf ±0 nan, 0 nan ±0 nan, p inf nan nan, p nan nan nan, inf 0 inf 0, inf p infcis, "
    "inf inf ±inf nan, inf nan ±inf nan, nan 0 nan 0, nan n nan nan, nan nan nan nan",
    "cosh": "0 0 1 0, 0 inf nan ±0, 0 nan nan ±0, n inf nan nan, n nan nan nan, inf 0 inf 0, inf n infcis, "
    "inf inf ±inf nan, inf nan inf nan, nan z nan ±0, nan n nan nan, nan nan nan nan",
    "tanh": "0 0 0 0, n inf nan nan, 0 inf 0 nan, n nan nan nan, 0 nan 0 nan, inf p 1 ±0, inf inf 1 ±0, "
    "inf nan 1 ±0, nan 0 nan 0, nan n nan nan, nan nan nan nan",
    "acos": "z 0 π/2 -0, z nan π/2 nan, f inf π/2 -inf, n nan nan nan, -inf p π -inf, inf p 0 -inf, "
    "-inf inf 3π/4 -inf, inf inf π/4 -inf, i nan nan ±inf, nan f nan nan, nan inf nan -inf, nan nan nan nan",
    "acosh": "z 0 0 π/2, f inf inf π/2, n nan nan nan, 0 nan nan ±π/2, -inf p inf π, inf p inf 0, "
    "-inf inf inf 3π/4, inf inf inf π/4, i nan inf nan, nan f nan nan, nan inf inf nan, nan nan nan nan",
    "asinh": "0 0 0 0, p inf inf π/2, f nan nan nan, inf p inf 0, inf inf inf π/4, nan 0 nan 0, "
    "nan n nan nan, nan inf ±inf nan, nan nan nan nan",
    "atanh": "0 0 0 0, 0 nan 0 nan, 1 0 inf 0, p inf 0 π/2, n nan nan nan, inf p 0 π/2, inf inf 0 π/2, "
    "inf nan 0 nan, nan f nan nan, nan inf ±0 π/2, nan nan nan nan",
    "sign": "z z 0 0, nan x nan nan, x nan nan nan",
    "abs": "i x inf, x i inf, nan f nan, f nan nan, nan nan nan",
}
ANGLES = {"π": PI, "π/2": PI / 2, "π/4": PI / 4, "3π/4": 3 * PI / 4}


def members(text: str) -> tuple[float, ...]:
    """The numbers that a word of a case's first half stands for."""
    return CLASSES.get(text) or (float(text),)


def is_word(value: float, text: str) -> bool:
    """Whether a number is what a word of a case's second half says."""
    free, text = text.startswith("±"), text.removeprefix("±")
    wanted = ANGLES[text] if text in ANGLES else float(text)
    if math.isnan(wanted):
        return math.isnan(value)
    if free:
        value, wanted = abs(value), abs(wanted)
    close = (
        value == wanted if wanted == 0 or math.isinf(wanted) else math.isclose(value, wanted, rel_tol=3e-7)
    )
    return close and math.copysign(1, value) == math.copysign(1, wanted)


def is_along(value: complex, text: str, angle: float) -> bool:
    """Whether a number is infinite, or 0, in the direction of an angle."""
    size = float(text.removesuffix("cis"))
    wanted = (math.copysign(size, math.cos(angle)), math.copysign(size, math.sin(angle)))
    return all(
        a == b and math.copysign(1, a) == math.copysign(1, b)
        for a, b in zip((value.real, value.imag), wanted, strict=True)
    )


@BOTH
@pytest.mark.parametrize("name", CASES)
def test_special_cases(name: str, kind: str) -> None:
    cases = [case.split() for case in CASES[name].split(", ")]
    inputs = [
        [complex(a, b) for a, b in itertools.product(members(first), members(second))]
        for first, second, *_ in cases
    ]
    results = iter(apply(name, kind, np.array(list(itertools.chain(*inputs)), np.complex64)))
    failures = []
    for (first, second, *words), numbers in zip(cases, inputs, strict=True):
        for z in numbers:
            value = next(results)
            if words[0].endswith("cis"):
                right = is_along(complex(value), words[0], float(np.float32(z.imag)))
            else:
                parts = (value.real, value.imag) if len(words) == 2 else (value,)
                right = all(is_word(float(part), word) for part, word in zip(parts, words, strict=True))
            if not right:
                failures.append((first, second, words, z, value))
    assert not failures


def grid() -> Array:
    return np.array([complex(a, b) for a in VALUES for b in VALUES], np.complex64)


def same(a: Array, b: Array, open_signs: bool = False) -> None:
    """Equal to the bit, but for a NaN's; where a part is NaN the other's sign may be open."""
    for one, other, beside in ((a.real, b.real, a.imag), (a.imag, b.imag, a.real)):
        np.testing.assert_array_equal(one, other)
        free = np.isnan(one) | (open_signs & np.isnan(beside))
        np.testing.assert_array_equal(np.signbit(one) | free, np.signbit(other) | free)


@BOTH
@pytest.mark.usefixtures("compiled_at_once")
@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name not in ("log2", "log10")])
def test_symmetries(name: str, kind: str) -> None:
    """f(conj z) is conj f(z), odd functions are odd, and circular ones are hyperbolic ones turned."""
    z = grid()
    lost = ~np.isfinite(z.real) & ~np.isfinite(z.imag)  # where the standard leaves signs open
    result = apply(name, kind, z)
    mirrored = apply(name, kind, z.conj()).conj()
    same(np.where(lost, 0, result), np.where(lost, 0, mirrored), open_signs=True)
    if name in ("sinh", "tanh", "asinh", "atanh"):
        same(np.where(lost, 0, result), np.where(lost, 0, -apply(name, kind, -z)), open_signs=True)
    if name in TURNED:
        turned = np.stack([-z.imag, z.real], -1).view(np.complex64)[..., 0]
        back = apply(TURNED[name], kind, turned)
        same(result, np.stack([back.imag, -back.real], -1).view(np.complex64)[..., 0])


@BOTH
def test_real_operands_have_no_imaginary_part(kind: str) -> None:
    z = place(kind, np.array([complex(INF, 1), complex(1, -0.0), complex(NAN, 2)], np.complex64))
    same((z * 2.0).numpy(), np.array([complex(INF, 2), complex(2, -0.0), complex(NAN, 4)], np.complex64))
    same((z + 1.0).numpy(), np.array([complex(INF, 1), complex(2, -0.0), complex(NAN, 2)], np.complex64))
    same((z / 2).numpy(), np.array([complex(INF, 0.5), complex(0.5, -0.0), complex(NAN, 1)], np.complex64))
    ones = place(kind, np.ones(3, np.float32))
    same((ones * z).numpy(), z.numpy())
    same((z - ones).numpy()[:2], np.array([complex(INF, 1), complex(0, -0.0)], np.complex64))


@BOTH
def test_questions(kind: str) -> None:
    z = grid()
    x = place(kind, z)
    for name in ("isnan", "isinf", "isfinite"):
        np.testing.assert_array_equal(getattr(wg, name)(x).numpy(), getattr(np, name)(z))
    turned = z[::-1].copy()
    np.testing.assert_array_equal((x == place(kind, turned)).numpy(), z == turned)
    np.testing.assert_array_equal((x != place(kind, turned)).numpy(), z != turned)


@pytest.mark.gpu
@pytest.mark.parametrize("name", [*FUNCTIONS, "exp2", "sign", "abs", "square", "reciprocal"])
def test_a_function_is_one_kernel(name: str) -> None:
    z = place("software", np.ones(64, np.complex64))
    assert len(wg.explain(getattr(wg, name)(z)).kernels) == 1


@pytest.mark.gpu
def test_chains_of_arithmetic_are_one_kernel() -> None:
    z = place("software", np.ones(64, np.complex64))
    for result in (z * z + 2j * z - 1, z / (z * z + 1), wg.exp(z * 2j) * z, wg.abs(z * z) ** 2):
        assert len(wg.explain(result).kernels) == 1


@everywhere
@pytest.mark.parametrize("shape", [(), (5,), (8,), (3, 7), (2, 3, 4), (6, 2), (0, 4)], ids=str)
def test_shapes_of_kernels(kind: str, shape: tuple[int, ...]) -> None:
    """Both parts of four numbers to a thread, or of one where rows are no fours, or are turned."""
    generator = np.random.default_rng(9)
    z, w = (
        (generator.standard_normal(shape) + 1j * generator.standard_normal(shape)).astype(np.complex64)
        for _ in range(2)
    )
    a, b = place(kind, z), place(kind, w)
    np.testing.assert_allclose((a * b + 1j).numpy(), z * w + np.complex64(1j), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose((a.T * b.T).numpy(), z.T * w.T, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        wg.where(a.real > 0, a * b, b).numpy(), np.where(z.real > 0, z * w, w), rtol=1e-5
    )


@pytest.mark.gpu
def test_a_thread_computes_both_parts() -> None:
    z = place("software", np.ones(64, np.complex64))
    (kernel,) = wg.explain(z * z).kernels
    assert kernel.text is not None
    assert kernel.text.count(" * ") < 16
    assert "if (" not in kernel.text
    assert "array<vec4<f32>>" in kernel.text
