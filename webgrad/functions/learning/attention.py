"""Attention: for every query the mean of values, weighted by the softmax of its scores with the keys.

In: queries (…, heads, l, e), keys (…, heads, s, e), values (…, heads, s, w). Out: (…, heads, l, w). One
attend node, which is one kernel: scores are never in memory. Heads of more than 256 columns are composed of
products and maps. The number of keys is a run-time number: a cache that grows needs no new plan.
"""

from __future__ import annotations

import math
from typing import Any

from ... import dtypes
from ...dtypes import DType
from ...errors import ArgumentError, DTypeError, ShapeError
from ...gradients.attention import composed
from ...graph.node import Node, make
from ...ops import primitives
from ...ops.shapes import broadcast, check_kind
from ...ops.table import TABLE
from ...tensor import Tensor
from ..array.creation import as_number, as_tensor, zeros
from ..array.elementwise import where
from ..array.reductions import converted
from ..array.reshaping import whole
from ..pure import pure
from ..random import bernoulli
from .autocast import in_half

OP = "scaled_dot_product_attention"
MOST_COLUMNS = 256  # of a head in one kernel
Shape = tuple[int, ...]


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    *,
    window: int | None = None,
    length: Any = None,
) -> Tensor:
    """softmax(query @ key.mT * scale + mask) @ value, as in PyTorch.

    Of query (…, l, e), key (…, s, e) and value (…, s, w) it gives (…, l, w). A mask broadcasts to (…, l, s):
    bools are True where a key is seen, floats are added to the scores. With `is_causal` query i sees keys up
    to i. `scale` is 1/sqrt(e) unless given. With `enable_gqa` key and value may have fewer heads (the third
    axis from the last), each shared by equally many of query. A query that sees no key gives 0. What a mask
    hides is weighted with 0, so NaN and infinities in hidden keys and values show; beyond `length` nothing
    is read.

    `length` says how many of the s keys there are, as a number or a 0-d tensor of integers: for caches with
    room to grow. Then queries are the last l of these positions: causal query i sees keys up to
    length - l + i. `window`: a query sees only the last so many keys up to its own position, and no later
    ones. With `dropout_p` each weight is zero with that probability, and else divided by 1 - dropout_p.

    >>> q = wg.ones((2, 4)); k = wg.zeros((3, 4)); v = wg.asarray([[1.0], [2.0], [6.0]])
    >>> wg.scaled_dot_product_attention(q, k, v).tolist()
    [[3.0], [3.0]]
    >>> wg.scaled_dot_product_attention(q, k, v, is_causal=True).tolist()
    [[1.0], [1.5]]
    >>> wg.scaled_dot_product_attention(q, k, v, is_causal=True, length=3).tolist()
    [[1.5], [3.0]]
    """
    if isinstance(length, int):
        key = as_tensor(OP, key)
        length = Tensor(_checked_length(length, key.shape[-2] if key.ndim > 1 else length, key))
    options = (attn_mask, dropout_p, is_causal, scale, enable_gqa, window, length)
    return _attention(query, key, value, *options)


@pure
@in_half
def _attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None,
    dropout_p: float,
    is_causal: bool,
    scale: float | None,
    enable_gqa: bool,
    window: int | None,
    length: Tensor | None,
) -> Tensor:
    """The same, the number of keys as a tensor: it is a number of each run."""
    if not 0.0 <= dropout_p <= 1.0:
        raise ArgumentError(
            f"{OP}: dropout_p is the probability of a weight to be dropped, not {dropout_p!r}"
        )
    tensors = [as_tensor(OP, each) for each in (query, key, value)]
    nodes = primitives.common(OP, [each.node for each in tensors])
    check_kind(OP, "f", nodes[0].sig.dtype)
    q, k, v = (Tensor(each) for each in nodes)
    before = _check_shapes(q, k, v, bool(enable_gqa))
    queries, keys, columns = q.shape[-2], k.shape[-2], v.shape[-1]
    causal, reach = bool(is_causal) or window is not None, _checked_window(window)
    count = _checked_length(length, keys, q)
    shape = (*before, queries, columns)
    wide = dtypes.float64 if q.dtype is dtypes.float64 else dtypes.float32
    mask = None if attn_mask is None else _added(attn_mask, q, shape, keys, wide)
    if not math.prod(shape) or not keys:
        return zeros(shape, q.dtype, device=q.device)
    factor = primitives.constant(OP, _checked_scale(scale, q.shape[-1]), wide, q.node.sig.device)
    inputs = [*_by_heads(q, k, v, before), factor, count]
    if mask is not None:
        inputs.append(mask)
    attributes = (causal, reach, length is not None, 0)
    if 0 < q.shape[-1] <= MOST_COLUMNS and columns <= MOST_COLUMNS and not dropout_p:
        result = make(TABLE["attention"], tuple(inputs), attributes)
    else:
        kept = _kept(dropout_p, (math.prod(before[:-1]), *(before[-1:] or (1,)), queries, keys), wide, q)
        result = converted(composed([Tensor(each) for each in inputs], attributes, kept), q.dtype).node
    return Tensor(primitives.reshape(result, shape))


def _kept(p: float, shape: Shape, dtype: DType, like: Tensor) -> Tensor | None:
    """Factors of weights of which some are dropped."""
    if not p:
        return None
    kept = converted(bernoulli(1.0 - p, shape, device=like.device), dtype)
    return kept if p == 1.0 else kept * (1.0 / (1.0 - p))


# Checks


def _check_shapes(q: Tensor, k: Tensor, v: Tensor, grouped: bool) -> Shape:
    """The shape of the result without its last two axes."""
    call = f"{OP} of query {q.shape}, key {k.shape} and value {v.shape}"
    if min(q.ndim, k.ndim, v.ndim) < 2:
        raise ShapeError(f"{call}: each has two axes or more: …, positions, columns")
    if q.shape[-1] != k.shape[-1]:
        raise ShapeError(f"{call}: query and key must have the same size along the last axis")
    if k.shape[-2] != v.shape[-2]:
        raise ShapeError(f"{call}: key and value must have equally many positions (axis -2)")
    if grouped:
        return _check_groups(call, q, k, v)
    try:
        return broadcast(OP, [each.shape[:-2] for each in (q, k, v)])
    except ShapeError:
        raise ShapeError(
            f"{call}: the axes before the last two must broadcast; where key and value have fewer heads, "
            "give enable_gqa=True"
        ) from None


def _check_groups(call: str, q: Tensor, k: Tensor, v: Tensor) -> Shape:
    if min(q.ndim, k.ndim, v.ndim) < 3:
        raise ShapeError(f"{call}: with enable_gqa each has three axes or more: …, heads, positions, columns")
    heads, shared = q.shape[-3], k.shape[-3]
    if v.shape[-3] != shared or not shared or heads % shared:
        raise ShapeError(
            f"{call}: with enable_gqa key and value have equally many heads, and their number divides the "
            "query's"
        )
    try:
        before = broadcast(OP, [each.shape[:-3] for each in (q, k, v)])
    except ShapeError:
        raise ShapeError(f"{call}: the axes before the heads must broadcast") from None
    return (*before, heads)


def _checked_window(window: Any) -> int:
    """The window, 0 where there is none."""
    if window is None:
        return 0
    reach = whole(OP, "window", window)
    if reach < 1:
        raise ArgumentError(
            f"{OP}: window={window!r} must be 1 or more: a query sees its own position at least"
        )
    return min(reach, 0x3FFFFFFF)


def _checked_scale(scale: Any, columns: int) -> float:
    return 1.0 / math.sqrt(max(columns, 1)) if scale is None else float(as_number(OP, scale))


def _checked_length(length: Any, keys: int, q: Tensor) -> Node:
    """The number of keys as a node: kernels take it at run time."""
    if isinstance(length, Tensor):
        if length.size != 1 or length.dtype.kind not in "iu":
            raise DTypeError(
                f"{OP}: length must be an integer or a 0-d tensor of integers, not one of shape "
                f"{length.shape} and {length.dtype.name}"
            )
        primitives.check_device(OP, q.node, length.node)
        return primitives.cast(primitives.reshape(length.node, ()), dtypes.int32)
    count = keys if length is None else whole(OP, "length", length)
    if not 0 <= count <= keys:
        raise ArgumentError(
            f"{OP}: length={count} must be from 0 to {keys}, the positions that key has room for"
        )
    return primitives.constant(OP, count, dtypes.int32, q.node.sig.device)


# Operands in the form of the node


def _by_heads(q: Tensor, k: Tensor, v: Tensor, before: Shape) -> list[Node]:
    """Queries, keys and values with four axes: batches, heads, positions, columns.

    One head of keys and values may serve all of the query's: they need not be repeated.
    """
    batches = before[:-1]
    shared = max(each.shape[-3] if each.ndim > 2 else 1 for each in (k, v))
    heads = (before[-1] if before else 1, shared, shared)
    made = []
    for each, count in zip((q, k, v), heads, strict=True):
        whole_shape = (*batches, count, *each.shape[-2:])
        node = each.node
        if len(node.sig.shape) < len(whole_shape):
            node = primitives.reshape(node, (*(1,) * (len(whole_shape) - each.ndim), *each.shape))
        node = primitives.expand(node, whole_shape)
        made.append(primitives.reshape(node, (math.prod(batches), count, *each.shape[-2:])))
    return made


def _added(mask: Any, q: Tensor, shape: Shape, keys: int, wide: DType) -> Node:
    """A mask as numbers to add, of the scores' dtype, with four axes, each of size 1 or full size."""
    mask = as_tensor(OP, mask)
    primitives.check_device(OP, q.node, mask.node)
    wanted = (*shape[:-1], keys)
    sizes = (*(1,) * (len(wanted) - mask.ndim), *mask.shape)
    if len(sizes) > len(wanted) or any(
        each not in (1, size) for each, size in zip(sizes, wanted, strict=True)
    ):
        raise ShapeError(
            f"{OP}: the mask {mask.shape} does not broadcast to (…, queries, keys), here {wanted}"
        )
    if mask.dtype.kind == "b":
        mask = where(mask, 0.0, -math.inf)
    elif mask.dtype.kind != "f":
        raise DTypeError(
            f"{OP}: a mask must be of bools (True: the key is seen) or floats (added to the scores), not of "
            f"{mask.dtype.name}: convert with mask.astype(webgrad.bool)"
        )
    node = primitives.cast(mask.node, wide)
    sizes = (*(1,) * (3 - len(sizes)), *sizes)
    node = primitives.reshape(node, sizes)
    batches = shape[:-3]
    if any(size != 1 for size in sizes[:-3]):
        node = primitives.expand(node, (*batches, *sizes[-3:]))
        return primitives.reshape(node, (math.prod(batches), *sizes[-3:]))
    return primitives.reshape(node, (1, *sizes[-3:]))
