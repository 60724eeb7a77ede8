"""The rows of the table that only the cpu has: order by NumPy's own sort, of elements as they are.

In: elements of any dtype. Out: values in order, places of them, or counts. GPUs sort unsigned keys instead
(`sort_order`), of which all of these can be made. Equal elements stay in their order; NaN is the largest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..arrays import Array, np
from ..dtypes import int32
from ..errors import DTypeError
from ..graph.node import Signature
from ..graph.op import Op

Sigs = tuple[Signature, ...]
Result = tuple[tuple[int, ...], Any]
Infer = Callable[[Sigs, tuple[Any, ...]], Result]


def _order(x: Array, descending: bool) -> Array:
    """Stable backwards is stable forwards, of the reversed line, reversed."""
    if not descending:
        return np.argsort(x, axis=-1, kind="stable")
    backwards: Array = np.argsort(x[..., ::-1], axis=-1, kind="stable")[..., ::-1]
    return np.asarray(x.shape[-1] - 1 - backwards)


def _values(sig: Signature, x: Array) -> Array:
    return np.take_along_axis(x, _order(x, *sig.attributes), -1)


def _places(sig: Signature, x: Array) -> Array:
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
                f"{name} of {sigs[0].dtype.name} is the cpu's: {sigs[0].device.name} sorts unsigned keys, by "
                "sort_order"
            )
        return rule(sigs, attributes)

    return infer


def _placed(sigs: Sigs, attributes: tuple[Any, ...]) -> Result:
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
        _places,
        result="int32",
        infer=_on_cpu("sort_places", _placed),
        doc="The first places in order along the last axis, attributes = (descending, count); on the cpu.",
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
