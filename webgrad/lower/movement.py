"""Movement: reshape, permute, expand, slice, window and flip only rewrite indices.

In: a movement's signature, its input's shape, and the indices of an element of its result. Out: the indices
of that element in the input.
"""

from __future__ import annotations

from ..graph.node import Signature
from .index import Index, broadcast, flatten, unflatten


def moved(sig: Signature, shape: tuple[int, ...], indices: tuple[Index, ...]) -> tuple[Index, ...]:
    """The indices in the input of the element at a movement's indices."""
    name = sig.op.name
    if name == "reshape":
        return unflatten(flatten(indices, sig.shape), shape)
    if name == "permute":
        order = dict(zip(sig.attributes[0], indices, strict=True))
        return tuple(order[axis] for axis in range(len(indices)))
    if name == "expand":
        return broadcast(indices, shape)
    if name == "slice":
        return tuple(
            (index * step).shifted(start)
            for index, (start, _, step) in zip(indices, sig.attributes[0], strict=True)
        )
    if name == "window":
        axis, _, stride, dilation = sig.attributes
        place = indices[axis] * stride + indices[-1] * dilation
        return (*indices[:axis], place, *indices[axis + 1 : -1])
    assert name == "flip", name
    return tuple(
        (index * -1).shifted(size - 1) if axis in sig.attributes[0] else index
        for axis, (index, size) in enumerate(zip(indices, shape, strict=True))
    )
