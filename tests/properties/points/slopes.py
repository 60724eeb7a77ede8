"""Gradients where slopes are not plain: at kinks, at zeros, bounds and ties of smooth functions, of padding.

Kinks are those of the table of conventions (tests/gradients/kinks.py), wherever its points lie in an array.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import webgrad as wg
from tests.gradients.kinks import KINKS, array_of
from tests.properties.drawing import draw_few
from tests.properties.helpers import Array, wide
from tests.properties.points.drawer import Cases, Points
from tests.properties.points.maps import elements

__all__ = ["kinks", "pool", "slopes"]

ELEMENTS = [
    name
    for name, row in KINKS.items()
    if name
    not in (
        *("prelu", "amax", "amin", "max", "cummax", "cummin", "sort", "sort, falling", "std", "remainder"),
        *("margin_ranking_loss", "hinge_embedding_loss", "binary_cross_entropy"),
    )
    and not name.startswith("norm")
    and all(array_of(each).ndim == 1 for each in (*row.points, *row.slopes))
    and len({len(each) for each in (*row.points, *row.slopes)}) == 1
]


def kinks(p: Points) -> Cases:
    """Rows of the table: those of elements anywhere in an array, weighted, at times between transposes."""
    for name in {p.one(list(KINKS)), p.one(ELEMENTS)}:
        row = KINKS[name]
        points, slopes = ([array_of(each) for each in part] for part in (row.points, row.slopes))
        weights: Any = 1.0
        axes: tuple[int, ...] | None = None
        if name in ELEMENTS:
            shape = p.shape()
            places = p.random.integers(0, len(points[0]), shape)
            points, slopes = ([each[places] for each in part] for part in (points, slopes))
            weights = p.random.choice((0.5, 1.0, -2.0), shape)
            axes = tuple(range(len(shape)))[::-1] if p.chance(0.3) else None
        factors = p.tensor(np.asarray(weights, np.float32))

        def total(*xs: Any, row: Any = row, axes: Any = axes, factors: Any = factors) -> Any:
            if axes is None:
                return (row.function(wg, *xs) * factors).sum()
            moved = row.function(wg, *(wg.permute_dims(x, axes) for x in xs))
            return (wg.permute_dims(moved, axes) * factors).sum()

        tensors = [p.tensor(each.astype(np.float32)) for each in points]
        found = wg.grad(total, argnums=tuple(range(len(tensors))))(*tensors)
        for each, slope in zip(found, slopes, strict=True):
            with np.errstate(all="ignore"):
                yield p.case(f"slope of {name} at a kink", each, slope * weights, 16, 1e-6)


def _share(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


# Smooth functions of one array and their slopes, which must be these at zeros, bounds and ties too
SLOPES: dict[str, tuple[Callable[[Any], Any], Callable[[Array], Array]]] = {
    "logsigmoid": (lambda x: wg.logsigmoid(x), lambda x: _share(-x)),
    "softplus": (lambda x: wg.softplus(x), _share),
    "sigmoid": (lambda x: wg.sigmoid(x), lambda x: _share(x) * _share(-x)),
    "silu": (lambda x: wg.silu(x), lambda x: _share(x) * (1 + x * _share(-x))),
    "tanh": (lambda x: wg.tanh(x), lambda x: 1 - np.tanh(x) ** 2),
    "exp": (lambda x: wg.exp(x), np.exp),
    "expm1": (lambda x: wg.expm1(x), np.exp),
    "sin": (lambda x: wg.sin(x), np.cos),
    "square": (lambda x: wg.square(x), lambda x: 2 * x),
    "x * x": (lambda x: x * x, lambda x: 2 * x),
    "power": (lambda x: x**3, lambda x: 3 * x**2),
    "gelu": (
        lambda x: wg.gelu(x),
        lambda x: (
            elements(math.erfc)(-x / math.sqrt(2)) / 2 + x * np.exp(-x * x / 2) / math.sqrt(2 * math.pi)
        ),
    ),
    "logaddexp of equals": (lambda x: wg.logaddexp(x, x), np.ones_like),
    "logaddexp": (lambda x: wg.logaddexp(x, wg.zeros_like(x)), _share),
    "binary_cross_entropy_with_logits": (
        lambda x: wg.nn.functional.binary_cross_entropy_with_logits(x, wg.ones_like(x), reduction="none"),
        lambda x: -_share(-x),
    ),
    "softmax of equals": (lambda x: wg.softmax(wg.stack([x, x]), 0)[0], np.zeros_like),
    "logsumexp of equals": (lambda x: wg.logsumexp(wg.stack([x, x]), 0), np.ones_like),
}


def slopes(p: Points) -> Cases:
    """Smooth functions at zeros and bounds, of which a program takes no heed."""
    shape = p.shape()
    array = draw_few(p.random, wg.float32, shape)
    weights = p.random.choice((0.5, 1.0, -2.0), shape).astype(np.float32)
    x, factors = p.tensor(array), p.tensor(weights)
    for name in dict.fromkeys(p.one(list(SLOPES)) for _ in range(3 if p.on_gpu else 8)):
        function, slope = SLOPES[name]
        found = wg.grad(lambda x, function=function: (function(x) * factors).sum())(x)
        yield p.case(f"slope of {name}", found, slope(wide(array)) * weights, 16, 1e-6)


def pool(p: Points) -> Cases:
    """Padding has no gradient, of -inf neither: each window gives all of it to an element."""
    x = np.where(p.random.random((1, 2, 9)) < 0.6, -np.inf, 1.0).astype(np.float32)
    taps, stride = p.one((2, 3)), p.one((1, 2))
    windows = wg.max_pool1d(p.tensor(x), taps, stride, 1)
    slope = wg.grad(lambda each: wg.max_pool1d(each, taps, stride, 1).sum())(p.tensor(x))
    yield p.case(f"slope of max_pool1d of -inf, {taps} by {stride}", slope.sum(), np.float32(windows.size))
