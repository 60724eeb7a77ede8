"""Folds and scans of special values, of long lines that are folded by parts, and of nothing."""

from __future__ import annotations

import numpy as np

import webgrad as wg
from tests.properties.helpers import LEAST, flushed, wide
from tests.properties.points.drawer import LENGTHS, Cases, Points

__all__ = ["empty", "folds", "long"]


def folds(p: Points) -> Cases:
    dtype = p.dtype("iuf")
    shape = (*p.shape()[:2], p.one(LENGTHS[:6]))
    array = p.array(dtype, shape)
    if p.on_gpu:
        array = flushed(array)
    x, axis, exact = p.tensor(array), len(shape) - 1, wide(array)
    for name in ("max", "min"):
        with np.errstate(invalid="ignore"):
            wanted = getattr(np, name)(array, axis)
        # Of zeros of both signs either is the largest: a slack, for then signs are not compared.
        yield p.case(f"{name} of {dtype.name} {shape}", getattr(wg, name)(x, axis=axis), wanted, slack=LEAST)
    for name in ("argmax", "argmin"):
        place_of = getattr(np, name)(exact, axis).astype(np.int32)
        yield p.case(f"{name} of {dtype.name} {shape}", getattr(wg, name)(x, axis=axis), place_of)
    if dtype.kind == "f" and dtype.itemsize >= 4:
        small = np.where(np.abs(exact) < 1e3, exact, np.where(np.isfinite(exact), 1.0, exact))
        y = p.tensor(small.astype(dtype.numpy))
        with np.errstate(all="ignore"):
            total = np.logaddexp.reduce(small, axis)
            sums = small.sum(axis)
        yield p.case(f"logsumexp of {dtype.name} {shape}", wg.logsumexp(y, axis), total, 16, 1e-4)
        yield p.case(f"sum of {dtype.name} {shape}", wg.sum(y, axis=axis), sums, 16, 1e-2)
    elif dtype.kind == "f":  # halves are added in float32, and rounded once
        halves = (p.random.uniform(-2, 2, shape) * p.one((1, 150))).astype(
            dtype.numpy
        )  # whose squares overflow
        y, exact = p.tensor(halves), wide(halves)
        for name, found, wanted in (
            ("mean", wg.mean(y, axis=axis), exact.mean(axis)),
            ("std", wg.std(y, axis=axis), exact.std(axis)),
            ("norm", wg.linalg.vector_norm(y, axis=axis), np.sqrt((exact * exact).sum(axis))),
            ("vecdot", wg.vecdot(y, y / 256, axis=axis), (exact * exact / 256).sum(axis)),
        ):
            yield p.case(f"{name} of {dtype.name} {shape}", found, wanted, 64, 1e-4)


def long(p: Points) -> Cases:
    """Lines that are folded and scanned by parts, halves that are widened by pieces; at times an infinity."""
    dtype = p.one((wg.float32, wg.float32, wg.float16)) if not p.on_gpu else wg.float32
    length = p.one((1_024, 1_500, 4_097, 20_001, 70_000, 150_001))
    shapes = ((length,), (3, length), (length, 2), (2, length // 4, 3), (length // 8, 20), (2, length, 2))
    shape = p.one((*shapes, (length // 8, 3, 8)))
    axis = int(np.argmax(shape))
    array = p.random.uniform(-1, 1, shape).astype(dtype.numpy)
    if p.chance(0.3):
        array.flat[int(p.random.integers(array.size))] = p.one((np.inf, -np.inf))
    x, exact = p.tensor(array), wide(array)
    slack = 2e-2 if dtype is wg.float16 else 1e-3
    ulps = 64.0
    yield p.case(f"long sum of {dtype.name} {shape}", wg.sum(x, axis=axis), exact.sum(axis), ulps, slack)
    yield p.case(f"long sum of all of {dtype.name} {shape}", wg.sum(x), exact.sum(), ulps, 8 * slack)
    yield p.case(f"wide {dtype.name} {shape}", x.astype(wg.float32) * 1, array.astype(np.float32))
    whole = p.random.integers(-9, 10, shape).astype(np.int32)
    running = np.cumsum(whole, axis, dtype=np.int32)
    yield p.case(f"long cumsum of int32 {shape}", wg.cumsum(p.tensor(whole), axis=axis), running)
    if len(shape) > 2:
        outer = (0, 2)  # axes that do not lie side by side
        yield p.case(
            f"long sum over {outer} of {shape}", wg.sum(x, axis=outer), exact.sum(outer), ulps, 8 * slack
        )
    if dtype is wg.float32:
        with np.errstate(all="ignore"):
            sums = exact.cumsum(axis)
        yield p.case(f"long cumsum {shape}", wg.cumsum(x, axis=axis), sums, ulps, slack)
        other = p.random.uniform(-1, 1, shape).astype(np.float32)
        dots = np.where(np.isfinite(exact), exact, 1.0)
        y = p.tensor(dots.astype(np.float32))
        found, wanted = wg.vecdot(y, p.tensor(other), axis=axis), (dots * other).sum(axis)
        yield p.case(f"long vecdot {shape}", found, wanted, ulps, slack)


def empty(p: Points) -> Cases:
    shape = p.one(((0, 3), (3, 0), (2, 0, 4)))
    x = p.tensor(np.zeros(shape, np.float32))
    axis = int(np.argmin(shape))
    rest = tuple(size for at, size in enumerate(shape) if at != axis)
    yield p.case("product of nothing", wg.prod(x, axis=axis), np.ones(rest, np.float32))
    yield p.case("sum of nothing", wg.sum(x, axis=axis), np.zeros(rest, np.float32))
    yield p.case("all of nothing", wg.all(x > 0, axis=axis), np.ones(rest, bool))
    joined = wg.concat([x, x], axis=axis)
    yield p.case("sum of joined nothing", wg.sum(joined, axis=axis), np.zeros(rest, np.float32))
    other = 0 if axis else len(shape) - 1
    kept = tuple(size for at, size in enumerate(shape) if at != other)
    yield p.case("max beside nothing", wg.max(x, axis=other), np.zeros(kept, np.float32))
