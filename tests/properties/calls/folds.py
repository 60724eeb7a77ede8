"""Calls along axes: folds, scans, sorts, norms, products and attention."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import webgrad as wg
from tests.properties.calls.drawer import (
    FLOATS,
    NUMBERS,
    REAL,
    Drawer,
    Family,
    Pair,
    Refused,
    alike,
    beside,
    renamed,
    same,
)
from tests.properties.helpers import Array
from webgrad.tensor import Tensor

__all__ = ["FOLDS"]


def _sum(d: Drawer) -> Pair:
    return same(
        d.one(("sum", "mean") if d.dtype.kind == "f" else ("sum",)), axis=d.axes(1), keepdims=d.chance(0.5)
    )


def _extreme(d: Drawer) -> Pair:
    d.choose()
    return same(d.one(("max", "min")), axis=d.axes(1), keepdims=d.chance(0.5))


def _place(d: Drawer) -> Pair:
    d.choose()
    return same(d.one(("argmax", "argmin")), axis=d.axis(1))


def _spread(d: Drawer) -> Pair:
    less, axis, keepdims = d.one((0, 1)), d.axis(2), d.chance(0.5)
    return renamed(
        "var",
        lambda x: np.var(x, axis, ddof=less, keepdims=keepdims),
        axis,
        correction=less,
        keepdims=keepdims,
    )


def _softmax(d: Drawer) -> Pair:
    axis, log = d.axis(1), d.chance(0.3)

    def numpy(x: Array) -> Array:
        shifted = x - x.max(axis, keepdims=True)
        total = np.exp(shifted).sum(axis, keepdims=True)
        return np.asarray(shifted - np.log(total) if log else np.exp(shifted) / total)

    return renamed("log_softmax" if log else "softmax", numpy, axis)


def _logsumexp(d: Drawer) -> Pair:
    axis = d.axis(1)
    return renamed("logsumexp", lambda x: np.log(np.exp(x).sum(axis)), axis)


def _scan(d: Drawer) -> Pair:
    axis = d.axis()
    return same(d.one(("cumsum", "cumsum", "cumprod") if d.dtype.kind != "i" else ("cumsum",)), axis=axis)


def _sort(d: Drawer) -> Pair:
    d.choose()
    axis, down = d.axis(1), d.chance(0.5)

    def numpy(x: Array) -> Array:
        """Zeros of both signs are equal, and keep their order in either direction."""
        turned = np.flip(x, axis) if down else x
        result = np.sort(turned, axis, kind="stable")
        return np.flip(result, axis) if down else result

    return renamed("sort", numpy, axis=axis, descending=down)


def _order(d: Drawer) -> Pair:
    d.choose()
    axis = d.axis(1)
    return renamed("argsort", lambda x: np.argsort(x, axis, kind="stable"), axis=axis)


def _diff(d: Drawer) -> Pair:
    axis, count, more = d.axis(2), d.one((0, 1, 1, 2)), d.number()
    if d.chance(0.5):
        return same("diff", axis=axis, n=count)
    array = d.array(tuple(1 if at == axis % len(d.shape) else side for at, side in enumerate(d.shape)))
    return (
        lambda x: wg.diff(x, axis=axis, n=count, prepend=beside(x, array + more).astype(x.dtype)),
        lambda x: np.diff(x, n=count, axis=axis, prepend=alike(x, array + more).astype(x.dtype)),
    )


def _product(d: Drawer) -> Pair:
    """With its own transpose, or with another matrix."""
    if len(d.shape) < 2:
        raise Refused("no matrix")
    if d.chance(0.5):
        return lambda x: x @ wg.swapaxes(x, -1, -2), lambda x: x @ np.swapaxes(x, -1, -2)
    other = d.array((d.shape[-1], d.one((d.shape[-1], 3))))
    return lambda x: x @ beside(x, other), lambda x: x @ alike(x, other)


def _contraction(d: Drawer) -> Pair:
    if len(d.shape) < 2:
        raise Refused("no matrix")
    text = d.one(("...ij->...ji", "...ij->j...", "...ij,...ij->...i", "...ij,...kj->...ki", "i...,i...->..."))
    if len(d.shape) == 2 and d.shape[0] == d.shape[1] and d.chance(0.7):
        text = d.one(("ij->ji", "ii->i", "ij,ij->i", "ij,ji->j", "ij,jk->ik", "ij,kj->ki"))
    count = 2 if "," in text else 1
    return lambda x: wg.einsum(text, *[x] * count), lambda x: np.einsum(text, *[x] * count)


def _dot(d: Drawer) -> Pair:
    axis = d.axis(1)
    other = d.array(d.shape)
    return (
        lambda x: wg.vecdot(x, beside(x, other), axis=axis),
        lambda x: (np.conj(x) * alike(x, other)).sum(axis),
    )


def _norm(d: Drawer) -> Pair:
    if len(d.shape) < 2 or 0 in d.shape:
        raise Refused("no matrix")
    return lambda x: wg.linalg.matrix_norm(x), lambda x: np.sqrt((x * x).sum((-2, -1)))


def _size(d: Drawer) -> Pair:
    order, axis = d.one((1, 2, math.inf, -math.inf)), d.axis(1)
    return lambda x: wg.linalg.vector_norm(x, ord=order, axis=axis), lambda x: np.linalg.norm(x, order, axis)


def _many_axes(d: Drawer) -> Pair:
    """Products over one or two axes with an array of three."""
    if len(d.shape) < 2:
        raise Refused("no matrix")
    if d.chance(0.5):
        other = d.array((2, d.shape[-1], 3))
        return lambda x: wg.dot(x, beside(x, other)), lambda x: np.dot(x, alike(x, other))
    last = d.array((*d.shape[-2:], 3))
    return lambda x: wg.tensordot(x, beside(x, last), 2), lambda x: np.tensordot(x, alike(x, last), 2)


def _normal(d: Drawer) -> Pair:
    axis = d.axis(1)

    def numpy(x: Array) -> Array:
        centred = x - x.mean(axis, keepdims=True)
        return np.asarray(
            centred / np.sqrt(np.square(centred).mean(axis, keepdims=True) + x.dtype.type(1e-5))
        )

    return renamed("layer_norm", numpy, axis=axis)


def _search(d: Drawer) -> Pair:
    d.choose()
    side = d.one(("left", "right"))
    return (
        lambda x: wg.searchsorted(wg.sort(wg.reshape(x, (x.size,))), wg.reshape(x, (x.size,)), side=side),
        lambda x: np.searchsorted(np.sort(x.ravel()), x.ravel(), side),
    )


def _largest(d: Drawer) -> Pair:
    """Of equal ones the first."""
    d.choose()
    axis = d.axis(1)
    count = int(d.random.integers(1, d.shape[axis] + 1))

    def numpy(x: Array) -> Array:
        return np.take(np.argsort(-x, axis, kind="stable"), range(count), axis)

    return lambda x: wg.topk(x, count, axis)[1], numpy


def _attention(d: Drawer) -> Pair:
    """From an array to itself, of which a mask hides a part."""
    if len(d.shape) < 2 or 0 in d.shape:
        raise Refused("no matrix")
    keys, length = d.array(d.shape), d.shape[-2]
    mask = d.random.random((length, length)) < 0.7
    mask |= np.eye(length, dtype=bool)  # each sees something

    def webgrad(x: Tensor) -> Any:
        shown = wg.asarray(mask, device=x.device)
        return wg.scaled_dot_product_attention(x, beside(x, keys), x, attn_mask=shown)

    def numpy(x: Array) -> Array:
        scores = x @ np.swapaxes(alike(x, keys), -1, -2) / np.sqrt(x.dtype.type(x.shape[-1]))
        powers = np.where(mask, np.exp(scores - scores.max(-1, keepdims=True)), 0)
        return np.asarray((powers / powers.sum(-1, keepdims=True)).astype(x.dtype) @ x)

    return webgrad, numpy


# name → kinds of dtypes, how often, the call
FOLDS: Family = {
    "sum": (NUMBERS, 3, _sum),
    "extreme": (REAL, 2, _extreme),
    "place": (REAL, 1, _place),
    "var": (FLOATS, 1, _spread),
    "softmax": (FLOATS, 2, _softmax),
    "logsumexp": (FLOATS, 1, _logsumexp),
    "scan": (NUMBERS, 2, _scan),
    "sort": (REAL, 1, _sort),
    "argsort": (REAL, 1, _order),
    "diff": (NUMBERS, 1, _diff),
    "matmul": (NUMBERS, 2, _product),
    "einsum": (NUMBERS, 1, _contraction),
    "vecdot": (NUMBERS, 1, _dot),
    "matrix_norm": (FLOATS, 1, _norm),
    "vector_norm": (FLOATS, 1, _size),
    "many axes": (NUMBERS, 1, _many_axes),
    "layer_norm": (FLOATS, 1, _normal),
    "searchsorted": (REAL, 0.5, _search),
    "topk": (FLOATS, 0.5, _largest),
    "attention": (FLOATS, 1, _attention),
}
