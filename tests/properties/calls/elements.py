"""Calls on each element: with numbers and other arrays, choices, and smooth functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import webgrad as wg
from tests.properties.calls.drawer import (
    ANY,
    FLOATS,
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

__all__ = ["ELEMENTS"]


def _with_number(d: Drawer) -> Pair:
    name, number = d.one(("add", "multiply", "maximum", "minimum", "subtract")), d.number()
    if d.dtype.kind == "c" and name in ("maximum", "minimum"):
        raise Refused("complex")
    return same(name, number)


def _with_other(d: Drawer) -> Pair:
    """With an array that broadcasts, transposed at times."""
    name = d.one(("add", "multiply", "subtract"))
    shape = tuple(1 if d.chance(0.2) else size for size in d.shape)
    other = d.array(shape)
    if d.chance(0.4) and shape[::-1] == shape and len(shape) > 1:
        return (
            lambda x: getattr(wg, name)(x, beside(x, other).permute(*reversed(range(x.ndim)))),
            lambda x: getattr(np, name)(x, alike(x, other).T),
        )
    return lambda x: getattr(wg, name)(x, beside(x, other)), lambda x: getattr(np, name)(x, alike(x, other))


def _clip(d: Drawer) -> Pair:
    low, high = sorted((d.number(), d.number()))
    if low == high and d.dtype.kind == "f":
        raise Refused("a constant, which has a gradient at its bounds")
    return same("clip", low, high)


def _step(d: Drawer) -> Pair:
    d.choose()
    return same(d.one(("sign", "floor", "ceil", "round", "trunc")))


def _choice(d: Drawer) -> Pair:
    d.choose()
    number, other = d.number(), d.number()
    return (
        lambda x: wg.where(x > number, x, other),
        lambda x: np.where(x > number, x, np.asarray(other, x.dtype)),
    )


def _smooth(d: Drawer) -> Pair:
    name = d.one(
        [
            *("exp", "expm1", "tanh", "sin", "cos", "square", "root", "log", "quotient", "sigmoid", "silu"),
            *("gelu", "erf", "erfc", "logsigmoid", "softplus"),
        ]
    )
    functions: dict[str, Pair] = {
        "gelu": renamed("gelu", lambda x: x * (1 + _erf(x / math.sqrt(2))) / 2),
        "erf": renamed("erf", _erf),
        "erfc": renamed("erfc", lambda x: 1 - _erf(x)),
        "logsigmoid": renamed("logsigmoid", lambda x: -np.logaddexp(0, -x)),
        "softplus": renamed("softplus", lambda x: np.logaddexp(0, x)),
        "sigmoid": renamed("sigmoid", lambda x: 1 / (1 + np.exp(-x))),
        "silu": renamed("silu", lambda x: x / (1 + np.exp(-x))),
        "root": (lambda x: wg.sqrt(x * x + 1), lambda x: np.sqrt(x * x + 1)),
        "log": (lambda x: wg.log1p(x * x), lambda x: np.log1p(x * x)),
        "quotient": (lambda x: x / (x * x + 1), lambda x: x / (x * x + 1)),
    }
    return functions.get(name) or same(name)


def _erf(x: Array) -> Array:
    return np.asarray(np.vectorize(math.erf, otypes=[float])(x), x.dtype)


def _pair(d: Drawer) -> Pair:
    """Of two arrays, either of which is the first."""
    name, first = d.one(("logaddexp", "atan2", "quotient", "power")), d.chance(0.5)
    if name == "atan2":
        d.choose()  # between the two sides of a half line
    functions: dict[str, tuple[Any, Any]] = {
        "logaddexp": (wg.logaddexp, np.logaddexp),
        "atan2": (wg.atan2, np.arctan2),
        "quotient": (lambda a, b: a / (b * b + 1), lambda a, b: a / (b * b + 1)),
        "power": (lambda a, b: wg.power(a * a + 0.5, b), lambda a, b: np.power(a * a + 0.5, b)),
    }
    webgrad, numpy = functions[name]
    other = d.array(d.shape)
    if first:
        return lambda x: webgrad(x, beside(x, other)), lambda x: numpy(x, alike(x, other))
    return lambda x: webgrad(beside(x, other), x), lambda x: numpy(alike(x, other), x)


def _division(d: Drawer) -> Pair:
    """Down to whole numbers."""
    d.choose()
    return same(d.one(("floor_divide", "remainder")), d.one((2, 3, -2, -3, -5)))


def _fill(d: Drawer) -> Pair:
    mask, number = d.random.random(d.shape) < 0.3, d.number()
    return (
        lambda x: wg.masked_fill(x, wg.asarray(mask, device=x.device), number),
        lambda x: np.where(mask, np.asarray(number, x.dtype), x),
    )


def _parts(d: Drawer) -> Pair:
    return same(d.one(("conj", "conj", "real", "imag")))


# name → kinds of dtypes, how often, the call
ELEMENTS: Family = {
    "with number": (ANY, 3, _with_number),
    "with other": (ANY, 4, _with_other),
    "clip": (REAL, 1, _clip),
    "abs": (REAL, 1, lambda d: same("abs")),
    "negative": (ANY, 1, lambda d: same("negative")),
    "step": (FLOATS, 1, _step),
    "where": (REAL, 1, _choice),
    "smooth": (FLOATS, 4, _smooth),
    "pair": (FLOATS, 2, _pair),
    "division": (REAL, 1, _division),
    "fill": (REAL, 0.5, _fill),
    "parts": ("c", 3, _parts),
}
