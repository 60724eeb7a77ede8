"""Complex numbers become pairs of floats: the first pass over a graph, for both backends.

In: a `Snapshot`, rewritten in place. Out: none of its nodes has a complex dtype any more. A complex value of
shape S becomes one of floats of shape (*S, 2), in the same memory; `as_real` and `as_complex`, the only ops
that take or give complex numbers, become reshapes to the same shape.
"""

from __future__ import annotations

from ..dtypes import part_of
from ..graph.node import Signature, signature
from ..graph.snapshot import Snapshot
from ..ops.table import TABLE


def split_pairs(graph: Snapshot) -> Snapshot:
    """The same graph without complex dtypes; a graph without them is not changed."""
    for number, sig in enumerate(graph.sigs):
        if sig.kind == "view" or sig.dtype.kind == "c":
            graph.sigs[number] = _as_floats(sig)
    return graph


def _as_floats(sig: Signature) -> Signature:
    shape = (*sig.shape, 2) if sig.dtype.kind == "c" else sig.shape
    op, attributes = (TABLE["reshape"], (shape,)) if sig.kind == "view" else (sig.op, sig.attributes)
    return signature(op, shape, part_of(sig.dtype), sig.device, attributes)
