"""Measure every function of floats and write docs/accuracy.md: `python -m scripts.accuracy`.

In: the rows of `webgrad.ops.maps`. Out: the page, with everything between its two marks replaced. Inputs are
taken from the whole range of float32 and of float64 by their bits; what is measured is the distance of
NumPy's and of an adapter's results from those in a wider float (float64, longdouble), in units in the last
place. `compute` runs one expression on the adapter.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

import webgrad as wg
from scripts.figures import put_between
from scripts.system import ROOT
from webgrad.graph.op import Op
from webgrad.ops.maps import MAPS
from webgrad.tools.accuracy import WIDER, Worst, domain, exact, samples, smallest, ulps, worst
from webgrad.wgsl import library

__all__ = [
    "MEASURED",
    "PAGE",
    "WIDER",
    "compute",
    "compute_all",
    "exact",
    "lacks",
    "launch",
    "launch_all",
    "main",
    "samples",
    "smallest",
    "ulps",
]

Array = npt.NDArray[Any]
PAGE = ROOT / "docs" / "accuracy.md"
BEGIN = "<!-- accuracy: made by `python -m scripts.accuracy` -->"
END = "<!-- end of accuracy -->"
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
    return launch_all([expression], inputs, output, count, device)


def launch_all(
    expressions: Sequence[str],
    inputs: Sequence[tuple[str, Array]],
    output: str,
    count: int,
    device: str = "webgpu",
) -> Array:
    """The same for several expressions in one kernel: the results of each behind those of the one before."""
    bindings = [
        f"@group(0) @binding({at}) var<storage, read> x{at}: array<{kind}>;"
        for at, (kind, _) in enumerate(inputs)
    ]
    names = sorted(set(re.findall(r"\bwg_\w+", " ".join(expressions))))
    stores = "\n".join(f"        y[i + {at * count}u] = {each};" for at, each in enumerate(expressions))
    source = f"""{library.functions(names)}
{chr(10).join(bindings)}
@group(0) @binding({len(inputs)}) var<storage, read_write> y: array<{output}>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {{
    for (var i = id.x; i < {count}u; i += groups.x * 64u) {{
{stores}
    }}
}}"""
    opened = wg.open_device(device)
    assert isinstance(opened, wg.Device)
    kernel = wg.kernel(source, device=opened)
    size = 8 if "64" in output else 4
    lanes = 4 if "vec4" in output else 2 if "vec2" in output else 1
    result = opened.upload(np.zeros(len(expressions) * count * lanes * size, np.uint8))
    kernel(*[opened.upload(np.ascontiguousarray(values)) for _, values in inputs], result, grid=64)
    return opened.read(result)


def compute(
    expression: str, operands: Sequence[Array], result: Any, width: int, device: str = "webgpu"
) -> Array:
    """An expression over {0}, {1}, … for each element of arrays of one length, as scalars or four at a time.

    Bools travel as uint32.
    """
    return compute_all([expression], operands, result, width, device)[0]


def compute_all(
    expressions: Sequence[str], operands: Sequence[Array], result: Any, width: int, device: str = "webgpu"
) -> list[Array]:
    """The same for several expressions with results of one type, by one kernel: drivers compile slowly."""
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
    texts = [library.spell(each.format(*terms), width) for each in expressions]
    result = np.dtype(result)
    stored = np.dtype(np.uint32) if result == np.bool_ else result
    kind = _type(stored, width)
    if result == np.bool_:
        texts = [f"select({kind}(0u), {kind}(1u), {each})" for each in texts]
    data = launch_all(texts, words, kind, padded[0].size // width, device)
    rows = data.view(stored).reshape(len(expressions), -1)
    return [each[:count].astype(result) for each in rows]


def _type(dtype: np.dtype[Any], width: int) -> str:
    scalar = _WGSL[dtype.name]
    return scalar if width == 1 else f"vec4<{scalar}>"


def lacks(text: str, device: str = "webgpu") -> str:
    """The feature for 64-bit types that a text needs and the adapter has not; empty if it can run."""
    needed = {"f64": "f64", "i64": "int64", "u64": "int64"}
    have = wg.open_device(device).info.features
    return next((feature for word, feature in needed.items() if word in text and feature not in have), "")


# Measuring


def measure(row: Op, count: int, device: str, dtype: Any) -> tuple[Worst, Worst]:
    """The largest errors of NumPy and of the adapter."""
    operands = samples(row, count, dtype)
    expected = exact(row, operands)
    assert not isinstance(row.wgsl, str)
    with np.errstate(all="ignore"):
        on_cpu = np.asarray(row.numpy(*operands))
    on_gpu = compute(row.wgsl[_WGSL[np.dtype(dtype).name]], operands, dtype, 4, device)
    return worst(on_cpu, expected, operands), worst(on_gpu, expected, operands)


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
            low, high = domain(row, np.dtype(name).type)
            lines.append(f"| `{row.name}` | {low:g} to {high:g} | {row.tolerance:g} | {cpu} | {gpu} |")
    return "\n".join(lines)


def with_table(page: str, text: str) -> str:
    """The page with another table in it."""
    return put_between(PAGE.name, page, (BEGIN, END), text)


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
