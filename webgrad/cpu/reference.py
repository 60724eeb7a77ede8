"""The reference: every node by NumPy, one after another, with nothing fused.

In: nodes. Out: NumPy arrays. float16 and bfloat16 are computed in float32 and rounded, as kernels do.
"""

from __future__ import annotations

from ..arrays import Array, np
from ..graph.node import Node, Signature
from ..graph.walk import pending

__all__ = ["compute", "value_of"]


def value_of(sig: Signature, inputs: list[Array]) -> Array:
    """One node's value from its inputs' values."""
    widened = inputs if sig.op.name == "bitcast" else [_widen(each) for each in inputs]
    with np.errstate(all="ignore"):
        result = sig.op.numpy(*widened) if sig.kind == "map" else sig.op.numpy(sig, *widened)
        return np.asarray(result).astype(sig.dtype.numpy, copy=False).reshape(sig.shape)


def _widen(array: Array) -> Array:
    return array.astype(np.float32) if array.dtype.kind in "fV" and array.dtype.itemsize == 2 else array


def compute(roots: list[Node]) -> list[Array]:
    """The values of nodes on the cpu."""
    values: dict[int, Array] = {}
    for node in pending(roots):
        if node.storage is not None:
            values[id(node)] = np.asarray(node.storage, node.sig.dtype.numpy)
        else:
            values[id(node)] = value_of(node.sig, [values[id(each)] for each in node.inputs])
    return [values[id(each)] for each in roots]
