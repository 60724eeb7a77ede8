"""Half-width weights, which are read as they are stored: a pass over graphs, and its op.

In: a graph for the cpu, in which a product is one with a matrix made float32 and transposed. Out: the same
graph, in which it reads what is stored, where there is native code: to move all of it through memory in
float32 would take many times as long.
"""

from __future__ import annotations

from ..arrays import Array, np
from ..graph.node import Signature, signature
from ..graph.op import Op
from ..graph.snapshot import Snapshot
from ..native.calls import multiply_rows, widen_rows
from ..native.compiler import is_available
from .panels import multiply_panels

__all__ = ["keep_narrow", "multiply_narrow"]

LEAST = 1 << 12  # weights from which it pays


def keep_narrow(graph: Snapshot) -> None:
    """Rewrite a graph in place; numbers of nodes stay."""
    for number in graph.order():
        sig = graph.sigs[number]
        if sig.op.name != "matmul" or sig.dtype.name != "float32":
            continue
        a, b = graph.inputs[number]
        if graph.sigs[b].op.name != "permute" or graph.sigs[b].attributes[0] != (1, 0):
            continue
        (weights,) = graph.inputs[b]
        if graph.sigs[weights].op.name != "cast" or graph.sigs[weights].size < LEAST or not sig.size:
            continue
        (stored,) = graph.inputs[weights]
        if graph.sigs[stored].dtype.name in ("float16", "bfloat16") and is_available():
            graph.sigs[number] = signature(_MATMUL_ROWS, sig.shape, sig.dtype, sig.device, ())
            graph.inputs[number] = (a, stored)


def multiply_narrow(a: Array, weights: Array, out: Array | None = None) -> Array:
    """(…, k) floats by the transpose of (n, k) half floats, in float32."""
    n, k = weights.shape
    result = np.empty((*a.shape[:-1], n), np.float32) if out is None else out
    left, right = np.ascontiguousarray(a).reshape(-1, k), result.reshape(-1, n)
    stored = np.ascontiguousarray(weights)

    def unpack(first: int, panel: Array) -> None:
        rows = stored[first : first + len(panel)]
        if not widen_rows(rows, panel):
            np.copyto(panel, rows)

    if not multiply_rows(left, stored, right):
        multiply_panels(left, unpack, right)
    return result


def _reference(sig: Signature, a: Array, weights: Array) -> Array:
    return multiply_narrow(a, weights)


_MATMUL_ROWS = Op(
    "matmul_rows",
    "contract",
    2,
    _reference,
    types="f",
    doc="(…, k) floats by a matrix (n, k) of half floats, transposed; made on the cpu.",
    gradient=(),
)
