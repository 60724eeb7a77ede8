"""Where functions have no slope, and which one they are given: PyTorch's, as a table.

In: nothing. Out: `KINKS`, by name: a function of a library (webgrad, or torch, against which
`tests/torch/test_kinks.py` holds the table itself), points, and the gradients of the sum by each input.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["KINKS", "Kink", "array_of"]

Numbers = list[Any]
INF = math.inf


@dataclass(frozen=True, slots=True)
class Kink:
    """A function of a library and tensors, what these are, and the gradients."""

    function: Callable[..., Any]
    points: tuple[Numbers, ...]
    slopes: tuple[Numbers, ...]


KINKS: dict[str, Kink] = {}


def kink(name: str, function: Callable[..., Any], *points: Numbers, by: tuple[Numbers, ...]) -> None:
    """Add a row: of as many points as inputs, and gradients `by` each of them."""
    assert name not in KINKS
    assert len(points) == len(by)
    KINKS[name] = Kink(function, points, by)


def applied(name: str, *arguments: Any, **options: Any) -> Callable[..., Any]:
    """A function of `nn.functional`, with more arguments."""
    return lambda of, *xs: getattr(of.nn.functional, name)(*xs, *arguments, **options)


def beside(of: Any, x: Any, values: Any) -> Any:
    """Numbers as a tensor of x's library, dtype and device."""
    return of.asarray(values, dtype=x.dtype, device=x.device)


def values_of(result: Any) -> Any:
    """The values, where torch gives places beside them."""
    return getattr(result, "values", result)


# Elements
kink("relu", applied("relu"), [-1.0, -0.0, 0.0, 2.0], by=([0, 0, 0, 1],))
kink("relu6", applied("relu6"), [0.0, 3.0, 6.0], by=([0, 1, 0],))
kink("hardtanh", applied("hardtanh", -1.0, 2.0), [-1.0, 0.5, 2.0], by=([0, 1, 0],))
kink("hardsigmoid", applied("hardsigmoid"), [-3.0, 0.0, 3.0], by=([0, 1 / 6, 0],))
kink("hardswish", applied("hardswish"), [-3.0, 0.0, 3.0], by=([0, 0.5, 1],))
kink("leaky_relu", applied("leaky_relu", 0.25), [-0.0, 0.0, 1.0], by=([0.25, 0.25, 1],))
kink("prelu", applied("prelu"), [0.0, 1.0, -2.0], [0.25], by=([0.25, 1, 0.25], [-2]))
kink("elu", applied("elu", 2.0), [-0.0, 0.0], by=([2, 2],))
kink("selu", applied("selu"), [0.0], by=([1.7580993408473766],))
kink("softshrink", applied("softshrink", 0.5), [-0.5, 0.0, 0.5, 2.0], by=([0, 0, 0, 1],))
kink("softshrink of 0", applied("softshrink", 0.0), [-0.0, 0.0, 1.0], by=([0, 0, 1],))
kink("hardshrink", applied("hardshrink", 0.5), [-0.5, 0.0, 0.5, 2.0], by=([0, 0, 0, 1],))
kink("threshold", applied("threshold", 1.0, 9.0), [0.0, 1.0, 2.0], by=([0, 0, 1],))
kink("softplus at its threshold", applied("softplus", 1.0, 0.0), [0.0, 1.0], by=([0.5, 1],))
kink("abs", lambda of, x: of.abs(x), [-1.0, -0.0, 0.0, 2.0], by=([-1, 0, 0, 1],))
for each in ("sign", "round", "floor", "ceil", "trunc"):
    kink(each, lambda of, x, each=each: getattr(of, each)(x), [-0.5, -0.0, 0.0, 1.0], by=([0] * 4,))
kink("sqrt", lambda of, x: of.sqrt(x), [0.0, 4.0], by=([INF, 0.25],))
kink("reciprocal", lambda of, x: 1 / x, [0.0, 2.0], by=([-INF, -0.25],))
kink("power of 0", lambda of, x: x**0, [0.0, 2.0], by=([0, 0],))
kink("power of 1", lambda of, x: x**1, [0.0, 2.0], by=([1, 1],))
kink("power of 1.5", lambda of, x: x**1.5, [0.0, 4.0], by=([0, 3],))
kink("0 to a power", lambda of, x: 0.0**x, [-1.0, 0.0, 2.0], by=([-INF, 0, 0],))
kink("remainder", lambda of, x, y: x % y, [-2.0, 0.0, 2.0], [1.0, 1.0, -2.0], by=([1, 1, 1], [2, 0, 1]))
kink("clamp, min", lambda of, x: of.clamp(x, min=1.0), [0.0, 1.0, 2.0], by=([0, 1, 1],))
kink("clamp, max", lambda of, x: of.clamp(x, max=1.0), [0.0, 1.0, 2.0], by=([1, 1, 0],))
kink("clamp", lambda of, x: of.clamp(x, -1.0, 1.0), [-2.0, -1.0, 0.0, 1.0, 2.0], by=([0, 1, 1, 1, 0],))
kink(
    "clamp by tensors",
    lambda of, x, low, high: of.clamp(x, low, high),
    *([-2.0, -1.0, 1.0, 2.0], [-1.0] * 4, [1.0] * 4),
    by=([0, 1, 1, 0], [1, 0, 0, 0], [0, 0, 0, 1]),
)
TIED: tuple[Numbers, Numbers] = ([0.0, -0.0, 1.0, 2.0], [0.0, 0.0, 1.0, 3.0])
kink("maximum", lambda of, x, y: of.maximum(x, y), *TIED, by=([0.5, 0.5, 0.5, 0], [0.5, 0.5, 0.5, 1]))
kink("minimum", lambda of, x, y: of.minimum(x, y), *TIED, by=([0.5, 0.5, 0.5, 1], [0.5, 0.5, 0.5, 0]))
kink(
    "maximum with a number",
    lambda of, x: of.maximum(x, 1.0 if of.__name__ == "webgrad" else beside(of, x, 1.0)),
    [0.0, 1.0, 2.0],
    by=([0, 0.5, 1],),
)
kink(
    "minimum with a number",
    lambda of, x: of.minimum(x, 0.0 if of.__name__ == "webgrad" else beside(of, x, 0.0)),
    [-1.0, -0.0, 0.0, 1.0],
    by=([1, 0.5, 0.5, 0],),
)
kink("atan2", lambda of, y, x: of.atan2(y, x), [0.0, -0.0, 1.0], [0.0, 0.0, 0.0], by=([0, 0, 0], [0, 0, -1]))
kink("copysign", lambda of, x, y: of.copysign(x, y), [0.0, 2.0], [-1.0, -0.0], by=([0, -1], [0, 0]))

# Among many
kink("amax", lambda of, x: of.amax(x, 0), [1.0, 3.0, 3.0], by=([0, 0.5, 0.5],))
kink("amin", lambda of, x: of.amin(x, 0), [1.0, 1.0, 3.0, 1.0], by=([1 / 3, 1 / 3, 0, 1 / 3],))
kink("max", lambda of, x: of.max(x), [0.0, -0.0, -1.0], by=([0.5, 0.5, 0],))
kink("cummax", lambda of, x: values_of(of.cummax(x, 0)), [1.0, 1.0, 0.0], by=([1, 2, 0],))
kink("cummin", lambda of, x: values_of(of.cummin(x, 0)), [2.0, 1.0, 1.0], by=([1, 1, 1],))
kink(
    "sort",
    lambda of, x: (of.sort(x, axis=0) if of.__name__ == "webgrad" else of.sort(x, dim=0, stable=True).values)[
        :1
    ],
    [2.0, 1.0, 1.0],
    by=([0, 1, 0],),
)
kink(
    "sort, falling",
    lambda of, x: (
        of.sort(x, axis=0, descending=True)
        if of.__name__ == "webgrad"
        else of.sort(x, dim=0, descending=True, stable=True).values
    )[:1],
    [1.0, 2.0, 2.0],
    by=([0, 1, 0],),
)
kink("norm", lambda of, x: of.norm(x, 2, 1), [[0.0, 0.0], [3.0, 4.0]], by=([[0, 0], [0.6, 0.8]],))
kink("norm of order 0.5", lambda of, x: of.norm(x, 0.5, 1), [[0.0, 0.0], [0.0, 4.0]], by=([[0, 0], [0, 1]],))
kink("norm of order 1", lambda of, x: of.norm(x, 1, 0), [-0.0, 0.0, -2.0], by=([0, 0, -1],))
kink("norm of order 0", lambda of, x: of.norm(x, 0, 0), [0.0, 0.0, -2.0], by=([0, 0, 0],))
kink("norm of order inf", lambda of, x: of.norm(x, INF, 0), [2.0, 1.0, -2.0], by=([0.5, 0, -0.5],))
kink("std", lambda of, x: of.std(x, 0, correction=1), [2.0, 2.0, 2.0], by=([0, 0, 0],))
ROW = [[[1.0, 1.0, 1.0, 0.0, 2.0]]]
kink("max_pool1d", applied("max_pool1d", 2, 1), ROW, by=([[[1, 1, 1, 0, 1]]],))
kink("max_pool2d", applied("max_pool2d", 2), [[[[1.0, 1.0], [1.0, 1.0]]]], by=([[[[1, 0], [0, 0]]]],))
kink("adaptive_max_pool1d", applied("adaptive_max_pool1d", 2), ROW, by=([[[1, 0, 0, 0, 1]]],))
kink("adaptive_max_pool1d, even", applied("adaptive_max_pool1d", 1), ROW[:1], by=([[[0, 0, 0, 0, 1]]],))
kink(
    "adaptive_max_pool2d",
    applied("adaptive_max_pool2d", (2, 1)),
    [[[[1.0, 1.0], [1.0, 2.0], [2.0, 2.0]]]],
    by=([[[[0, 0], [0, 2], [0, 0]]]],),
)
kink(
    "adaptive_max_pool3d",
    applied("adaptive_max_pool3d", (1, 2, 1)),
    [[[[[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]]]]],
    by=([[[[[1, 0], [1, 0], [0, 0]]]]],),
)
kink(
    "adaptive_max_pool1d with places",
    lambda of, x: of.nn.functional.adaptive_max_pool1d(x, 2, return_indices=True)[0],
    ROW,
    by=([[[1, 0, 0, 0, 1]]],),
)

# Losses
NONE: dict[str, Any] = {"reduction": "none"}
kink("l1_loss", applied("l1_loss", **NONE), [1.0, 2.0, INF], [1.0, 1.0, 1.0], by=([0, 1, 1], [0, -1, -1]))
kink(
    "smooth_l1_loss",
    applied("smooth_l1_loss", beta=0.5, **NONE),
    *([1.0, 1.5, 9.0, INF, -INF], [1.0] * 5),
    by=([0, 1, 1, 1, -1], [0, -1, -1, -1, 1]),
)
kink(
    "huber_loss",
    applied("huber_loss", delta=0.5, **NONE),
    *([1.0, 1.5, 9.0, INF, -INF], [1.0] * 5),
    by=([0, 0.5, 0.5, 0.5, -0.5], [0, -0.5, -0.5, -0.5, 0.5]),
)
kink(
    "margin_ranking_loss",
    lambda of, a, b: of.nn.functional.margin_ranking_loss(
        a, b, beside(of, a, [1.0, 1.0, -1.0]), margin=1.0, **NONE
    ),
    *([0.0, 3.0, 1.0], [-1.0, 1.0, 2.0]),
    by=([-1, 0, 1], [1, 0, -1]),
)
kink(
    "hinge_embedding_loss",
    lambda of, x: of.nn.functional.hinge_embedding_loss(x, beside(of, x, [-1.0, -1.0, 1.0]), **NONE),
    [1.0, 2.0, 1.0],
    by=([-1, 0, 1],),
)
kink(
    "triplet_margin_loss",
    applied("triplet_margin_loss", margin=1.0, p=1.0, eps=0.0, **NONE),
    *([[0.0, 0.0]], [[1.0, 0.0]], [[0.0, 2.0]]),
    by=([[-1, 1]], [[1, 0]], [[0, -1]]),
)
kink(
    "cosine_embedding_loss",
    lambda of, a, b: of.nn.functional.cosine_embedding_loss(a, b, beside(of, a, [-1.0]), **NONE),
    *([[1.0, 0.0]], [[0.0, 2.0]]),
    by=([[0, 1]], [[0.5, 0]]),
)
kink(
    "binary_cross_entropy",
    lambda of, p: of.nn.functional.binary_cross_entropy(p, beside(of, p, [1.0, 0.0, 1.0]), **NONE),
    [0.0, 1.0, 0.5],
    by=([-1e12, 1e12, -2],),
)


def array_of(numbers: Numbers) -> np.ndarray[Any, Any]:
    """A row's points or gradients."""
    return np.asarray(numbers, np.float64)
