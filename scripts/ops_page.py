"""Write docs/ops.md from the table of ops and the public functions: `python -m scripts.ops_page`.

In: `webgrad.ops.table.TABLE`, and the modules of functions. Out: the page. A test fails where the page is not
what this would write.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Iterator

import webgrad as wg
from scripts.reference_page import anchors, names_of, told_elsewhere
from scripts.system import ROOT
from webgrad.graph.op import Op
from webgrad.ops.table import TABLE

__all__ = ["PAGE", "functions_of", "main", "page", "says", "sentence"]

PAGE = ROOT / "docs" / "ops.md"
KINDS = {"b": "bool", "i": "integers", "u": "unsigned", "f": "floats", "c": "complex"}
# kind → the compute type of its 64-bit dtype, and that dtype's name
WIDE = {"i": ("i64", "int64"), "u": ("u64", "uint64"), "f": ("f64", "float64")}
# Rows whose `doc` is for readers of the table, or whose function says more than they do
SENTENCES = {
    "cast": "The values in another dtype: floats to integers by truncation, kept in range, NaN as 0.",
    "bitcast": "The same bits as another dtype of the same width.",
    "reshape": "The same elements in another shape.",
    "permute": "The axes in another order.",
    "expand": "The elements repeated along axes of size 1 and new leading ones.",
    "pad": "A number before and after each axis.",
    "slice": "Parts of each axis, by start, stop and a positive step.",
    "window": "Windows along an axis, which may overlap: their elements are a new last axis.",
    "take": "Slices of an axis by index; indices out of range are clamped.",
    "take_along": "Elements of an axis, by an index for each; indices out of range are clamped.",
    "scatter_set": "Rows replaced at computed places; of several for one row the last stays.",
    "scatter_add": "Rows added at computed places; every one counts.",
    "scatter_max": "The larger of the rows there and the rows given, at computed places; NaN stays.",
    "attention": "Means of values, weighted by the softmax of products of queries and keys.",
    "sum": "The sum over axes; of floats in short runs, so that rounding errors stay small.",
    "prod": "The product over axes.",
    "sort_order": "The stable order of keys along the last axis.",
}
# (op, column) → what the row alone does not tell
CELLS = {
    ("cast", "result"): "any",
    ("bitcast", "result"): "any",
    ("sort_order", "result"): "int32",
    ("sort_order", "gpus"): "not uint64",
    ("decode", "dtypes"): "uint32",
    ("decode_rows", "dtypes"): "uint32",
    ("matmul_blocks", "dtypes"): "float32",
    ("attention", "gpus"): "not float64",
    ("fft", "dtypes"): "float32, float64",
    ("rfft", "dtypes"): "float32, float64",
    ("irfft", "dtypes"): "float32, float64",
    ("random_bits", "dtypes"): "uint32",
    ("random_bits", "gpus"): "all",
}
# What tests/properties allow where results are rounded more than once; everything else is exact
BOUNDS = {
    **dict.fromkeys(
        ("sum", "prod", "cumulative_sum", "cumulative_prod"), "1 ulp + min(n, 64) ε fold(\\|a\\|)"
    ),
    "scatter_add": "1 ulp + n ε fold(\\|a\\|, \\|c\\|)",
    "matmul": "1 ulp + n ε \\|a\\| @ \\|b\\|",
    "matmul_blocks": "1 ulp + 16 ε \\|a\\| @ \\|b\\|",
    "attention": "1 ulp + 16 ε max(\\|values\\|)",
    **dict.fromkeys(("fft", "rfft", "irfft"), "1 ulp + 4 n ε max(\\|a\\|)"),
}
MODULES = (
    ("array.creation", "Making tensors"),
    ("array.interop", "From other libraries"),
    ("array.elementwise array.maps array.arithmetic", "Element by element"),
    ("complex.parts", "Complex numbers"),
    ("array.indexing", "Indexing"),
    ("array.manipulation array.reshaping", "Shapes and arrangement"),
    ("array.pieces array.places", "Pieces, places and choices"),
    ("array.reductions array.nan_folds", "Over axes"),
    ("array.scans", "Along an axis"),
    ("array.sorting", "Order"),
    ("array.sets", "Sets"),
    ("array.types", "Data types, asked about"),
    ("array.inspection", "The namespace, asked about"),
    ("array.scatters", "Writing to computed places"),
    ("array.histograms array.statistics", "Counting and statistics"),
    ("array.calculus array.distances", "Slopes, areas and distances"),
    ("array.patterns array.strided", "Matrices by a pattern, windows and strides"),
    ("array.products", "Products"),
    ("series", "Lines, polynomials, more products"),
    ("learning.quantised", "Quantised weights"),
    ("learning.activations", "Activations"),
    ("learning.attention", "Attention"),
    ("learning.normalisation", "Normalisation"),
    ("learning.losses", "Losses"),
    ("learning.images", "Images"),
    ("learning.positions", "Positions"),
    ("convolution.convolution", "Convolution"),
    ("convolution.pooling", "Pooling"),
    ("convolution.adaptive", "Adaptive pooling"),
    ("convolution.unpooling", "Pooling backwards"),
    ("convolution.windows", "Windows"),
    ("random", "Random numbers, as `webgrad.random.…`"),
    ("sampling", "Random numbers that a tensor describes"),
    ("array.pytorch", "By PyTorch's names"),
    ("array.numpy_names", "By NumPy's names"),
    ("array.evaluation", "Computing now"),
    ("pure", "Functions whose graphs are built once"),
)

HEAD = """\
---
hide:
  - toc
---

# Ops

<!-- made by `python -m scripts.ops_page` -->

The primitives are rows of a table, `webgrad/ops/table.py`; both backends and the property tests are made from
them. Every other function is composed of primitives, and fusion makes one kernel of it where it can.

## Primitives

Dtypes: **floats** are bfloat16, float16, float32 and float64; **integers** int8 to int64; **unsigned** uint8
to uint64. On the cpu all of them work. GPUs need a feature for 64-bit dtypes, and "not …" says what is not
offered on any GPU. Where no result is named it has the dtype of the operands; functions may convert them
first, so that the sum of an int8 tensor is int32.

"Error" is what tests allow a float32 result, against float64 (what was measured: [accuracy.md](accuracy.md)).
*Exact* is NumPy's own result; an ulp is a unit in the last place. What adds many numbers may also be off by
ε = 2⁻²³ times what the same op gives for sizes without signs; n is how many numbers are added. Integers and
bools are exact everywhere.

"Gradient" is by each operand a, b, c, where g is that of the result y: a formula over webgrad's functions and
those of `webgrad/gradients/rules.py`. There is none where the result is no float, or depends on no float, or
where the op is made by the scheduler, after gradients.

| op | kind | dtypes | on GPUs | result | error | gradient | |
|---|---|---|---|---|---|---|---|"""

MIDDLE = """
## Functions

All take and give tensors; a second operand may be a Python number. Many are methods too: `x.sum(axis=0)`.
Each name leads to its entry in the [reference](reference/index.md): signature, text, example."""


def page() -> str:
    """The page as it should be."""
    rows = [_row(op) for op in TABLE.values() if op.kind not in ("leaf", "scalar")]
    return "\n".join([HEAD, *rows, MIDDLE, *_functions(), ""])


def _row(op: Op) -> str:
    columns = {"dtypes": _dtypes(op), "gpus": _on_gpus(op), "result": _result(op), "error": _error(op)}
    columns["gradient"] = _gradient(op)
    cells = [CELLS.get((op.name, column), text) for column, text in columns.items()]
    return "| " + " | ".join([f"`{op.name}`", op.kind, *cells, says(op)]) + " |"


def _dtypes(op: Op) -> str:
    return "all" if op.types == "biuf" else ", ".join(KINDS[each] for each in op.types)


def _on_gpus(op: Op) -> str:
    """What a map op, or the one that folds, does not spell in WGSL; all else only moves elements."""
    spelled = TABLE[op.wgsl].wgsl if op.kind in ("reduce", "scan") and isinstance(op.wgsl, str) else op.wgsl
    if isinstance(spelled, str):
        return "all"
    missing = [name for kind, (compute, name) in WIDE.items() if kind in op.types and compute not in spelled]
    return f"not {', '.join(missing)}" if missing else "all"


def _result(op: Op) -> str:
    return "" if op.result == "same" else op.result


def _error(op: Op) -> str:
    return BOUNDS.get(op.name) or (f"{op.tolerance:g} ulp" if op.tolerance else "exact")


def _gradient(op: Op) -> str:
    texts = (op.gradient,) if isinstance(op.gradient, str) else op.gradient or ()
    return ", ".join(f"`{each}`" for each in texts) or "none"


def says(op: Op) -> str:
    """What an op does: its row's own words, or those of the function of its name."""
    said = SENTENCES.get(op.name) or op.doc.replace("|", "\\|")
    return said or sentence(getattr(wg, op.name))


def _functions() -> Iterator[str]:
    addresses = anchors()
    for homes, title in MODULES:
        yield f"\n### {title}\n"
        yield "| | |\n|---|---|"
        for name, function in functions_of(homes):
            spelling = f"wg.random.{name}" if homes == "random" else f"wg.{name}"
            address = addresses[told_elsewhere(spelling, function) or spelling]
            yield f"| [`{name}`](reference/{address}) | {sentence(function)} |"


def functions_of(homes: str) -> list[tuple[str, object]]:
    """The public functions of some modules of functions, by their names."""
    modules = [importlib.import_module(f"webgrad.functions.{home}") for home in homes.split()]
    space, names = (wg.random, wg.random.__all__) if homes == "random" else (wg, names_of(*modules))
    return [(name, getattr(space, name)) for name in sorted(names, key=str.lower)]


def sentence(function: object) -> str:
    """The first paragraph of a docstring on one line, fit for a table."""
    text = inspect.getdoc(function) or ""
    return " ".join(text.split("\n\n")[0].split()).replace("|", "\\|")


def main() -> int:
    """The command line."""
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
