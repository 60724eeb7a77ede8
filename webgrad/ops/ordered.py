"""The rows of the table that only the cpu has: sorting of elements of any dtype by NumPy.

In: elements of any dtype. Out: sorted values, their indices, or counts. GPUs sort unsigned keys instead
(`sort_order`), from which all of these can be computed. Sorting is stable; NaN is the largest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..arrays import Array, np
from ..dtypes import int32
from ..errors import DTypeError
from ..graph.node import Signature
from ..graph.op import Op

__all__ = ["ORDERED"]

Sigs = tuple[Signature, ...]
Result = tuple[tuple[int, ...], Any]
Infer = Callable[[Sigs, tuple[Any, ...]], Result]


def _order(x: Array, descending: bool) -> Array:
    """A stable descending order is the stable ascending order of the reversed line, reversed."""
    if not descending:
        return np.argsort(x, axis=-1, kind="stable")
    backwards: Array = np.argsort(x[..., ::-1], axis=-1, kind="stable")[..., ::-1]
    return np.asarray(x.shape[-1] - 1 - backwards)


def _values(sig: Signature, x: Array) -> Array:
    return np.take_along_axis(x, _order(x, *sig.attributes), -1)


def _indices(sig: Signature, x: Array) -> Array:
    descending, count = sig.attributes
    return _order(x, descending)[..., :count]


def _counts(sig: Signature, x: Array, edges: Array) -> Array:
    rises = edges[:-1] <= x[:, None]
    inside = rises & (x[:, None] < edges[1:])
    inside[:, -1] |= x == edges[-1]
    return np.asarray(inside.sum(axis=0))


def _search(sig: Signature, line: Array, x: Array) -> Array:
    return np.searchsorted(line, x, side=sig.attributes[0])


def _on_cpu(name: str, rule: Infer) -> Infer:
    """A rule that refuses GPUs."""

    def infer(sigs: Sigs, attributes: tuple[Any, ...]) -> Result:
        if sigs[0].device.is_gpu:
            raise DTypeError(
                f"{name} of {sigs[0].dtype.name} is the cpu's: {sigs[0].device.name} sorts unsigned keys, "
                "by sort_order"
            )
        return rule(sigs, attributes)

    return infer


def _indices_rule(sigs: Sigs, attributes: tuple[Any, ...]) -> Result:
    return (*sigs[0].shape[:-1], attributes[1]), int32


ORDERED = (
    Op(
        "sort_values",
        "sort",
        1,
        _values,
        infer=_on_cpu("sort_values", lambda sigs, attributes: (sigs[0].shape, sigs[0].dtype)),
        doc="The elements in order along the last axis, attributes = (descending,); on the cpu.",
        gradient=("unsorted(g, a, *attributes)",),
    ),
    Op(
        "sort_places",
        "sort",
        1,
        _indices,
        result="int32",
        infer=_on_cpu("sort_places", _indices_rule),
        doc="The indices that sort the last axis, attributes = (descending, count of them); on the cpu.",
        gradient=(),
    ),
    Op(
        "search_places",
        "sort",
        2,
        _search,
        result="int32",
        infer=_on_cpu("search_places", lambda sigs, attributes: (sigs[1].shape, int32)),
        doc="Where elements belong in a sorted line, attributes = (side,); on the cpu.",
        gradient=(),
    ),
    Op(
        "counts_between",
        "sort",
        2,
        _counts,
        result="int32",
        infer=_on_cpu("counts_between", lambda sigs, attributes: ((sigs[1].size - 1,), int32)),
        doc="How many elements lie between rising edges, the last one included; on the cpu.",
        gradient=(),
    ),
)
