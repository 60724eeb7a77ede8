"""Values on the cpu that are known already: what moves few of their elements is done at once, by NumPy.

In: a node. Out: its array, or None where it waits, or gradients go through it, or a function is captured.
Slices of a data set, items that are put together element by element: as nodes each of these would be another
small graph, which costs more to find than to compute. The invariant: nobody writes to these arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..arrays import Array, np
from ..gradients.history import grad_mode
from ..graph.node import Node, leaf
from ..graph.op import SCALAR
from ..graph.trace import current_trace

__all__ = ["FEW", "known_array", "known_arrays", "node_of"]

FEW = 1 << 12  # elements


def known_array(node: Node, most: int | None = None) -> Array | None:
    """The array of a value that is known; of one number in many places, if these are `most` at most."""
    sig = node.sig
    if sig.device.is_gpu or sig.dtype.numpy.kind in "cV" or (node.history is not None and grad_mode.on):
        return None
    if current_trace() is not None or (most is not None and sig.size > most):
        return None
    storage: Any = node.storage
    if storage is not None:
        return storage if storage.__class__ is np.ndarray else np.asarray(storage, sig.dtype.numpy)
    inputs = node.inputs  # read once: another thread may compute the node, which then has no inputs
    if most is None or sig.op.name != "expand" or not inputs or inputs[0].sig.op is not SCALAR:
        return None
    return np.full(sig.shape, inputs[0].storage, sig.dtype.numpy)


def known_arrays(nodes: Sequence[Node]) -> list[Array] | None:
    """The arrays of values that are all known, and few elements together."""
    if sum([each.sig.size for each in nodes]) > FEW:
        return None
    found: list[Array] = []
    for each in nodes:
        array = known_array(each)
        if array is None:
            return None
        found.append(array)
    return found


def node_of(array: Any, like: Node) -> Node:
    """A value that is known: a copy of an array, in the dtype and on the device of a node."""
    own = np.array(array, order="C")
    return leaf(own, own.shape, like.sig.dtype, like.sig.device)
