"""Rotary position embedding: pairs of features rotated by angles that grow with the position.

In: queries or keys (…, positions, features). Out: the same, rotated. Pairs are adjacent (GPT-J: interleaved)
or half the features apart (Llama, GPT-NeoX). Written as x·cos + flip(x)·±sin over the pair's own axis, so
that there is movement and arithmetic only: it fuses with whatever reads or makes x.
"""

from __future__ import annotations

import math
from typing import Any

from ... import dtypes
from ...errors import ArgumentError, ShapeError
from ...ops import primitives
from ...ops.shapes import broadcast, check_kind
from ...tensor import Tensor
from ..array.creation import as_tensor
from ..array.elementwise import cos as cosine
from ..array.elementwise import exp
from ..array.elementwise import sin as sine
from ..array.manipulation import concat
from ..array.reductions import converted, floating, widened
from ..array.reshaping import expand_dims, part, whole
from ..pure import pure


def rotary_embedding(
    x: Tensor,
    positions: Tensor | None = None,
    *,
    offset: Any = 0,
    base: float = 10000.0,
    interleaved: bool = False,
    dims: int | None = None,
) -> Tensor:
    """x (…, positions, features) rotated by its positions: those given, or offset, offset + 1, …

    `positions` broadcasts with x without its last axis; `offset` is a number or a 0-d tensor; only the first
    `dims` features are rotated.

    >>> x = wg.asarray([[1.0, 0.0], [1.0, 0.0]])
    >>> [[round(each, 4) for each in row] for row in wg.rotary_embedding(x).tolist()]
    [[1.0, 0.0], [0.5403, 0.8415]]
    """
    op = "rotary_embedding"
    x = as_tensor(op, x)
    if x.ndim < 2:
        raise ShapeError(f"{op}: x of shape {x.shape} needs two axes or more: …, positions, features")
    rotated = x.shape[-1] if dims is None else whole(op, "dims", dims)
    if rotated % 2 or not 0 <= rotated <= x.shape[-1]:
        raise ShapeError(
            f"{op}: features are rotated in pairs: {rotated} of the {x.shape[-1]} features of x {x.shape} "
            "is not an even number; give dims="
        )
    if positions is None:
        positions = Tensor(primitives.iota(x.shape[-2], dtypes.int32, x.node.sig.device)) + offset
    else:
        positions = as_tensor(op, positions)
        if broadcast(op, [positions.shape, x.shape[:-1]]) != x.shape[:-1]:
            raise ShapeError(f"{op}: positions of shape {positions.shape} do not broadcast to {x.shape[:-1]}")
    angles = rotary_angles(positions, rotated, base)
    return apply_rotary(x, cosine(angles), sine(angles), interleaved)


@pure
def rotary_angles(positions: Tensor, dims: int, base: float = 10000.0) -> Tensor:
    """position · base^(-2i/dims), i along a new last axis of dims / 2, as float32.

    >>> wg.rotary_angles(wg.asarray([0, 2]), 2).tolist()
    [[0.0], [2.0]]
    """
    op = "rotary_angles"
    positions = as_tensor(op, positions)
    check_kind(op, "iuf", positions.dtype)
    if not base > 0:
        raise ArgumentError(f"{op}: base is a positive number, not {base}")
    pairs = whole(op, "dims", dims) // 2
    place = Tensor(primitives.iota(pairs, dtypes.float32, positions.node.sig.device))
    frequencies = exp(place * (-math.log(base) / max(pairs, 1)))
    return expand_dims(converted(positions, dtypes.float32), -1) * frequencies


@pure
def apply_rotary(x: Tensor, cos: Tensor, sin: Tensor, interleaved: bool = False) -> Tensor:
    """Pairs of features (a, b) as (a·cos - b·sin, b·cos + a·sin).

    cos and sin have one number per pair along their last axis, and broadcast with x on the others; features
    beyond the last pair stay as they are.

    >>> wg.apply_rotary(wg.asarray([1.0, 2.0]), wg.asarray([0.0]), wg.asarray([1.0])).tolist()
    [-2.0, 1.0]
    """
    op = "apply_rotary"
    x, cos, sin = (as_tensor(op, each) for each in (x, cos, sin))
    if cos.shape != sin.shape or cos.ndim == 0 or x.ndim == 0:
        raise ShapeError(
            f"{op}: cos {cos.shape} and sin {sin.shape} have one shape, with one number per pair of "
            f"features of x {x.shape} along the last axis"
        )
    pairs, features = cos.shape[-1], x.shape[-1]
    if 2 * pairs > features or broadcast(op, [cos.shape[:-1], x.shape[:-1]]) != x.shape[:-1]:
        raise ShapeError(
            f"{op}: cos and sin of shape {cos.shape} do not fit x of shape {x.shape}: they need at most "
            f"{features // 2} pairs, and their other axes must broadcast to x's"
        )
    wide, axis = floating(op, x), x.ndim - 1
    rotated = _rotated(part(wide, axis, 0, 2 * pairs), cos, sin, interleaved)
    if 2 * pairs < features:
        rotated = concat([rotated, part(wide, axis, 2 * pairs, features)], axis)
    return converted(rotated, x.dtype)


def _rotated(x: Tensor, cos: Tensor, sin: Tensor, interleaved: bool) -> Tensor:
    """With an axis of two for the members of a pair: each by cos, and its partner by -sin or +sin."""
    pairs = cos.shape[-1]
    pair_axis = -1 if interleaved else -2
    sizes = (pairs, 2) if interleaved else (2, pairs)
    members = primitives.reshape(x.node, (*x.shape[:-1], *sizes))
    partners = Tensor(primitives.flip(members, (len(members.sig.shape) + pair_axis,)))
    sign = Tensor(primitives.iota(2, x.dtype, x.node.sig.device)) * 2.0 - 1.0
    if not interleaved:
        sign = expand_dims(sign, -1)
    cos, sin = (expand_dims(widened(each), pair_axis) for each in (cos, sin))
    result = Tensor(members) * cos + partners * (sin * sign)
    return Tensor(primitives.reshape(result.node, x.shape))
