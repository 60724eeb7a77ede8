"""Ops on elements at special values, against other formulas than those of webgrad/ops/references.py."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

import webgrad as wg
from tests.properties.helpers import Array, Case, flushed, place, slack_of, wide
from tests.properties.points.drawer import Cases, Points
from webgrad.dtypes import DType
from webgrad.graph.node import make
from webgrad.ops.table import TABLE
from webgrad.reference.plan import value_of

__all__ = ["bools", "elements", "maps"]


def elements(function: Callable[[float], float]) -> Callable[[Array], Array]:
    return lambda x: np.asarray(np.vectorize(function, otypes=[np.float64])(x))


def _power(base: Array, exponent: Array) -> Array:
    base, exponent = (np.ascontiguousarray(each) for each in np.broadcast_arrays(base, exponent))
    if base.dtype.kind not in "iu":
        return np.asarray(np.power(base, exponent))
    wraps = 1 << 8 * base.dtype.itemsize

    def one(a: int, b: int) -> int:
        if b < 0:
            return (a if b % 2 else 1) % wraps if a in (1, -1) else 0
        return pow(a, b, wraps)

    numbers = [one(int(a), int(b)) for a, b in zip(base.flat, exponent.flat, strict=True)]
    unsigned = np.dtype(f"u{base.dtype.itemsize}")
    return np.array(numbers, unsigned).view(base.dtype).reshape(base.shape)


def _floor_divide(a: Array, b: Array) -> Array:
    """Of infinities a / b, as in the array API standard."""
    result = np.floor_divide(a, b)
    return result if a.dtype.kind in "iu" else np.where(np.isfinite(a) & np.isfinite(b), result, a / b)


MAPS: dict[str, Callable[..., Array]] = {
    "power": _power,
    "floor_divide": _floor_divide,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "erf": elements(math.erf),
    "erfc": elements(math.erfc),
    "gelu": lambda x: np.where(x == -np.inf, 0, x * (elements(math.erfc)(-x / math.sqrt(2)) / 2)),
    "gelu_tanh": lambda x: np.where(
        x == -np.inf, 0, x / (1 + np.exp(-math.sqrt(8 / math.pi) * (x + 0.044715 * x**3)))
    ),
}
NAMES = [name for name, op in TABLE.items() if op.kind == "map"]


def maps(p: Points) -> Cases:
    """Maps of the same operands, the last of which is one number at times."""
    name = p.one(list(MAPS) if p.chance(0.3) else NAMES)
    first = TABLE[name]
    dtype = wg.uint32 if name == "random_bits" else p.dtype(first.types)
    names = [each for each in NAMES if _is_alike(each, name, dtype)]
    shape = p.shape()
    types = (wg.bool, dtype, dtype) if name == "where" else (dtype,) * first.arity
    arrays = [p.array(each, shape, 40) for each in types]
    if len(arrays) > 1 and p.chance(0.4):
        arrays[-1] = (
            np.asarray(p.one((0.5, 1, 2)), types[-1].numpy) if p.chance(0.5) else p.array(types[-1], ())
        )
    nodes = tuple(place(each, p.device) for each in arrays)
    others = (p.one(names) for _ in range(16))  # a GPU's driver compiles slowly
    for each in dict.fromkeys((name, *others) if p.on_gpu else names):
        op = TABLE[each]
        if p.on_gpu and not (isinstance(op.wgsl, str) or dtype.compute in op.wgsl):
            continue
        node = make(op, nodes)
        ulps = op.tolerance if node.sig.dtype.kind == "f" else 0.0
        numpy = MAPS.get(each)
        choices = [arrays, [flushed(array) for array in arrays]] if p.on_gpu else [arrays]
        wanted = []
        for given in choices:
            with np.errstate(all="ignore"):
                if ulps or (numpy and dtype.kind == "f"):
                    exact = (numpy or op.numpy)(*map(wide, given))
                else:
                    exact = numpy(*given) if numpy else value_of(node.sig, given)
            wanted.append(np.asarray(exact).reshape(node.sig.shape))
        yield Case(f"{each} of {dtype.name} {shape}", node, tuple(wanted), ulps, slack_of(op))
        if numpy and not p.on_gpu:  # the cpu has ways of its own; others are compared with the reference
            reference = place(np.asarray(value_of(node.sig, arrays)), p.device)
            yield Case(f"reference of {each} of {dtype.name}", reference, tuple(wanted), ulps, slack_of(op))


def _is_alike(name: str, other: str, dtype: DType) -> bool:
    """Whether two maps take the same operands."""
    alone = ("where", "random_bits")
    if name in alone or other in alone:
        return name == other
    return TABLE[name].arity == TABLE[other].arity and dtype.kind in TABLE[name].types


# Bools


def bools(p: Points) -> Cases:
    shape = p.shape()
    x, y, mask = (p.array(wg.bool, shape) for _ in range(3))
    a, b, m = map(p.tensor, (x, y, mask))
    number = p.one((0, 1, True, False))
    yield p.case("masked_fill of bools", wg.masked_fill(a, m, number), np.where(mask, bool(number), x))
    for name in ("less_equal", "greater_equal", "less", "greater", "equal", "maximum", "minimum"):
        yield p.case(f"{name} of bools", getattr(wg, name)(a, b), getattr(np, name)(x, y))
    yield p.case("where of bools", wg.where(m, a, b), np.where(mask, x, y))
    if x.ndim and x.shape[0]:
        yield p.case("any of bools", wg.any(a, axis=0), x.any(0))
        yield p.case("argmax of bools", wg.argmax(a, axis=0), x.argmax(0).astype(np.int32))
        yield p.case("count of bools", wg.count_nonzero(a, axis=0), np.count_nonzero(x, 0).astype(np.int32))
