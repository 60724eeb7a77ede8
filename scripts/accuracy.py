"""Measure every function of floats and write docs/accuracy.md: `python -m scripts.accuracy`.

In: the rows of `webgrad.ops.maps`. Out: the page, with everything between its two marks replaced. Inputs are
taken from the whole range of float32 and of float64 by their bits; what is measured is the distance of
NumPy's and of an adapter's results from those in a wider float (float64, longdouble), in units in the last
place. `compute` runs one expression on the adapter.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import webgrad as wg
from scripts.system import ROOT
from webgrad.graph.op import Op
from webgrad.ops.maps import MAPS
from webgrad.wgsl import library

__all__ = [
    "MEASURED",
    "PAGE",
    "WIDER",
    "compute",
    "exact",
    "lacks",
    "launch",
    "main",
    "samples",
    "smallest",
    "ulps",
]

Array = npt.NDArray[Any]
PAGE = ROOT / "docs" / "accuracy.md"
BEGIN = "<!-- accuracy: made by `python -m scripts.accuracy` -->"
END = "<!-- end of accuracy -->"
WIDER: dict[str, Any] = {"float32": np.float64, "float64": np.longdouble}  # what a reference is computed in
_WGSL = {"float32": "f32", "int32": "i32", "uint32": "u32", "float64": "f64", "int64": "i64", "uint64": "u64"}
_EXACT_MAPS = ("floor", "ceil", "round", "trunc")
MEASURED: tuple[Op, ...] = tuple(
    row
    for row in MAPS
    if row.name in ("divide", "power")
    or (row.types == "f" and row.result == "same" and row.name not in _EXACT_MAPS)
)


# Running an expression


def launch(
    expression: str, inputs: Sequence[tuple[str, Array]], output: str, count: int, device: str = "webgpu"
) -> Array:
    """The bytes of y, `count` elements of type `output`, after y[i] = expression of x0[i], x1[i], …

    Each input is the WGSL type of its elements, and their values. Functions of the library are added.
    """
    bindings = [
        f"@group(0) @binding({at}) var<storage, read> x{at}: array<{kind}>;"
        for at, (kind, _) in enumerate(inputs)
    ]
    names = sorted(set(re.findall(r"\bwg_\w+", expression)))
    source = f"""{library.functions(names)}
{chr(10).join(bindings)}
@group(0) @binding({len(inputs)}) var<storage, read_write> y: array<{output}>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {{
    for (var i = id.x; i < {count}u; i += groups.x * 64u) {{ y[i] = {expression}; }}
}}"""
    opened = wg.open_device(device)
    assert isinstance(opened, wg.Device)
    kernel = wg.kernel(source, device=opened)
    size = 8 if "64" in output else 4
    lanes = 4 if "vec4" in output else 2 if "vec2" in output else 1
    result = opened.upload(np.zeros(count * lanes * size, np.uint8))
    kernel(*[opened.upload(np.ascontiguousarray(values)) for _, values in inputs], result, grid=64)
    return opened.read(result)


def compute(
    expression: str, operands: Sequence[Array], result: Any, width: int, device: str = "webgpu"
) -> Array:
    """An expression over {0}, {1}, … for each element of arrays of one length, as scalars or four at a time.

    Bools travel as uint32.
    """
    count = operands[0].size
    padded = [np.concatenate([each, np.repeat(each[-1:], -count % width)]) for each in operands]
    words: list[tuple[str, Array]] = []
    terms: list[str] = []
    for at, each in enumerate(padded):
        boolean = each.dtype == np.bool_
        values = each.astype(np.uint32) if boolean else each
        kind = _type(values.dtype, width)
        words.append((kind, values))
        terms.append(f"(x{at}[i] != {kind}(0u))" if boolean else f"x{at}[i]")
    text = library.spell(expression.format(*terms), width)
    result = np.dtype(result)
    stored = np.dtype(np.uint32) if result == np.bool_ else result
    kind = _type(stored, width)
    if result == np.bool_:
        text = f"select({kind}(0u), {kind}(1u), {text})"
    data = launch(text, words, kind, padded[0].size // width, device)
    return data.view(stored)[:count].astype(result)


def _type(dtype: np.dtype[Any], width: int) -> str:
    scalar = _WGSL[dtype.name]
    return scalar if width == 1 else f"vec4<{scalar}>"


def lacks(text: str, device: str = "webgpu") -> str:
    """The feature for 64-bit types that a text needs and the adapter has not; empty if it can run."""
    needed = {"f64": "f64", "i64": "int64", "u64": "int64"}
    have = wg.open_device(device).info.features
    return next((feature for word, feature in needed.items() if word in text and feature not in have), "")


# Measuring


def smallest(dtype: Any) -> float:
    """The smallest normal number; below it a device may give 0."""
    return float(np.finfo(dtype).smallest_normal)


def _by_math(function: Callable[[float], float]) -> Callable[[Array], Array]:
    slow: Callable[[Array], Any] = np.frompyfunc(function, 1, 1)
    return lambda x: np.asarray(slow(x)).astype(np.float64)


def _exp_square(x: Array) -> Array:
    """exp(-x²) of float64 numbers: the square of the upper half of the digits is exact."""
    upper = x.astype(np.float32).astype(x.dtype)
    return np.asarray(np.exp(-upper * upper) * np.exp(-(x - upper) * (x + upper)))


def _long_erf_near(x: Array) -> Array:
    """erf(x) = 2/sqrt(π) exp(-x²) (x + 2/3 x³ + 4/15 x⁵ + …), for |x| up to 1."""
    total = term = x
    for n in range(1, 40):
        term = term * (2 * x * x / (2 * n + 1))
        total = total + term
    return np.asarray(total * _exp_square(x) * 2 / np.sqrt(np.arccos(x.dtype.type(-1))))


def _long_erfc_far(x: Array) -> Array:
    """erfc(x) = exp(-x²)/sqrt(π) / (x + 1/2 / (x + 1 / (x + 3/2 / …))), for x from 1."""
    below = x
    for n in range(300, 0, -1):
        below = x + n / 2 / below
    return np.asarray(_exp_square(x) / np.sqrt(np.arccos(x.dtype.type(-1))) / below)


def _long_erf(x: Array) -> Array:
    size = np.abs(x)
    far = 1 - _long_erfc_far(np.clip(size, 1, 30))
    return np.where(
        np.isnan(x), x, np.copysign(np.where(size < 1, _long_erf_near(np.minimum(size, 1)), far), x)
    )


def _long_erfc(x: Array) -> Array:
    size = np.abs(x)
    far = _long_erfc_far(np.clip(size, 1, 110))
    far = np.where(x < 0, 2 - far, far)
    return np.where(np.isnan(x), x, np.where(size < 1, 1 - _long_erf_near(np.clip(x, -1, 1)), far))


def _gelu(x: Array) -> Array:
    if x.dtype == np.float64:
        share = _by_math(math.erfc)(x * -math.sqrt(0.5))
    else:
        share = _long_erfc(x * -np.sqrt(x.dtype.type(0.5)))
    return np.where(np.isneginf(x), 0.0, 0.5 * x * share)


def _gelu_tanh(x: Array) -> Array:
    factor = np.sqrt(8 / np.arccos(x.dtype.type(-1)))
    inner = factor * (x + x.dtype.type("0.044715") * x**3)
    return np.where(np.isneginf(x), 0.0, x / (1 + np.exp(-inner)))


_EXACT: dict[str, dict[str, Callable[..., Array]]] = {
    "float32": {"erf": _by_math(math.erf), "erfc": _by_math(math.erfc), "gelu": _gelu},
    "float64": {"erf": _long_erf, "erfc": _long_erfc, "gelu": _gelu, "gelu_tanh": _gelu_tanh},
}


def exact(row: Op, operands: Sequence[Array]) -> Array:
    """A row's value in a wider float: of float32 operands float64, of float64 ones longdouble."""
    narrow = operands[0].dtype.name
    with np.errstate(all="ignore"):
        wide = [each.astype(WIDER[narrow]) for each in operands]
        function: Callable[..., Any] = _EXACT[narrow].get(row.name, row.numpy)
        return np.asarray(function(*wide))


def ulps(actual: Array, expected: Array) -> Array:
    """The distance of floats from values in a wider type, in units in the last place of the narrower one.

    Infinities count as the next number after the largest; NaN beside a number is infinitely far.
    """
    info = np.finfo(actual.dtype)
    limit = np.ldexp(expected.dtype.type(1), int(info.maxexp))
    with np.errstate(all="ignore"):
        inside = np.minimum(np.abs(expected), expected.dtype.type(info.max)).astype(actual.dtype)
        unit = np.spacing(inside).astype(expected.dtype)
        wide = np.clip(actual.astype(expected.dtype), -limit, limit)
        distance = (np.abs(wide - np.clip(expected, -limit, limit)) / unit).astype(np.float64)
    distance = np.where(np.isnan(actual) & np.isnan(expected), 0.0, distance)
    return np.where(np.isnan(distance), np.inf, distance)


def _special(dtype: Any) -> Array:
    info = np.finfo(dtype)
    ends = [
        info.smallest_subnormal,
        -info.smallest_subnormal,
        info.smallest_normal * 0.99,
        info.max,
        info.min,
    ]
    return np.array([0, -0.0, 1, -1, 0.5, -0.5, 2, -2, 3, np.inf, -np.inf, np.nan, *ends], dtype)


def _patterns(count: int, generator: np.random.Generator, dtype: Any) -> Array:
    """Numbers evenly over all bit patterns, one drawn from each stretch, and special ones."""
    word = np.dtype(f"u{np.dtype(dtype).itemsize}")
    step = 256**word.itemsize // count
    bits = np.arange(count, dtype=np.uint64) * np.uint64(step) + generator.integers(0, step, count, np.uint64)
    return np.concatenate([bits.astype(word).view(dtype), _special(dtype)])


# Where results of float64 are numbers, for rows whose results of float32 end sooner.
_WIDE_DOMAIN: dict[str, tuple[float, float]] = {
    "exp": (-746, 710),
    "exp2": (-1075, 1024),
    "expm1": (-40, 710),
    "sinh": (-711, 711),
    "cosh": (-711, 711),
    "sigmoid": (-746, 746),
    "erfc": (-6, 27.3),
    "gelu": (-39, 9),
    "gelu_tanh": (-22, 9),
}


def samples(row: Op, count: int, dtype: Any = np.float32) -> list[Array]:
    """Operands for a row: half of them from all bit patterns, half from its domain."""
    generator = np.random.default_rng(0)
    domain = _WIDE_DOMAIN.get(row.name, row.domain) if dtype == np.float64 else row.domain
    usual = generator.uniform(*domain, count // 2).astype(dtype)
    first = np.concatenate([_patterns(count // 2, generator, dtype), usual])
    if row.arity == 1:
        return [first]
    if row.name != "power":
        return [first, generator.permutation(first)]
    # Half of the exponents are such that the power is within range.
    with np.errstate(all="ignore"):
        ends = math.log(smallest(dtype)), math.log(np.finfo(dtype).max)
        fitting = generator.uniform(*ends, first.size) / np.log(np.abs(first.astype(np.float64)))
    drawn = _patterns(first.size - _special(dtype).size, generator, dtype)
    return [first, np.where(generator.random(first.size) < 0.5, fitting, drawn).astype(dtype)]


@dataclass(frozen=True, slots=True)
class Worst:
    """The largest error among normal results, and where it is."""

    error: float
    place: tuple[float, ...]

    def __str__(self) -> str:
        place = ", ".join(f"{each:.9g}" for each in self.place)
        return f"{self.error:.2f} | {place}" if self.error else "0 | everywhere"


def _worst(actual: Array, expected: Array, operands: Sequence[Array]) -> Worst:
    distance = np.where(np.abs(expected) < smallest(actual.dtype), 0.0, ulps(actual, expected))
    at = int(np.argmax(distance))
    return Worst(float(distance[at]), tuple(float(each[at]) for each in operands))


def measure(row: Op, count: int, device: str, dtype: Any) -> tuple[Worst, Worst]:
    """The largest errors of NumPy and of the adapter."""
    operands = samples(row, count, dtype)
    expected = exact(row, operands)
    assert not isinstance(row.wgsl, str)
    with np.errstate(all="ignore"):
        on_cpu = np.asarray(row.numpy(*operands))
    on_gpu = compute(row.wgsl[_WGSL[np.dtype(dtype).name]], operands, dtype, 4, device)
    return _worst(on_cpu, expected, operands), _worst(on_gpu, expected, operands)


# The page


def table(count: int, device: str) -> str:
    """The measurements as Markdown tables: float32, and float64 where it can be measured."""
    opened = wg.open_device(device)
    lines = [f"Measured on NumPy {np.__version__} and on {opened.info.name}."]
    for name, most in (("float32", count), ("float64", count // 8)):
        if name == "float64" and (lacks("f64", device) or np.finfo(np.longdouble).nmant < 60):
            continue
        lines += [
            "",
            f"{name}, {most:,} inputs for each function:",
            "",
            "| function | domain | limit | cpu | at | adapter | at |",
            "|---|---|---|---|---|---|---|",
        ]
        for row in MEASURED:
            cpu, gpu = measure(row, most, device, np.dtype(name).type)
            low, high = _WIDE_DOMAIN.get(row.name, row.domain) if name == "float64" else row.domain
            lines.append(f"| `{row.name}` | {low:g} to {high:g} | {row.tolerance:g} | {cpu} | {gpu} |")
    return "\n".join(lines)


def with_table(page: str, text: str) -> str:
    """The page with another table in it."""
    before, _, rest = page.partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        raise ValueError(f"{PAGE.name} must hold the lines {BEGIN} and {END}")
    return f"{before}{BEGIN}\n{text}\n{END}{after}"


def main(arguments: Sequence[str]) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        description="Measure the functions of floats and write docs/accuracy.md."
    )
    parser.add_argument("--patterns", type=int, default=1 << 22, help="inputs for each function")
    parser.add_argument("--device", default="webgpu", help="the adapter to measure")
    chosen = parser.parse_args(arguments)
    text = table(chosen.patterns, chosen.device)
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8"), text), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
