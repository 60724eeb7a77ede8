"""Random programs of public functions: a few calls on one array, beside NumPy in its dtype and in float64.

In: a seed. Out: `Calls`, which `difference` runs on a device. Shapes and values are `drawing`'s, so that
squares, ties and zeros come often; calls come between two transposes at times. A call that rounding changes
by a good part of what tests allow, or that decides between numbers that were rounded, is not taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import webgrad as wg
from tests.properties.drawing import BOUNDS, draw_few, draw_shape
from tests.properties.helpers import AnyDevice, Array, Shape, place, wide
from tests.properties.programs import Value, allowed
from tests.properties.slopes import wrong_slope
from webgrad.reference.plan import compute
from webgrad.tensor import Tensor

__all__ = ["CALLS", "Calls", "difference", "write_calls"]

Function = Callable[[Any], Any]
Pair = tuple[Function, Function]  # webgrad's, NumPy's
KINDS: dict[wg.DType, float] = {
    wg.float32: 0.5,
    wg.float16: 0.1,
    wg.bfloat16: 0.05,
    wg.float64: 0.1,
    wg.int32: 0.12,
    wg.int8: 0.05,
    wg.complex64: 0.08,
}
FEW, TURNED, GRADIENT = 0.4, 0.3, {False: 0.4, True: 0.1}  # shares; of gradients: on the cpu, on a GPU
MOST = 2_000  # elements
ANY, REAL, FLOATS, NUMBERS = "ifc", "if", "f", "fc"


class Refused(Exception):
    """A call that cannot be made here, or that would make the comparison meaningless."""


@dataclass(slots=True)
class Calls:
    """An array, and calls one after another; `wanted` is what comes of them, in its dtype and exactly."""

    dtype: wg.DType
    start: Array
    steps: list[tuple[str, Pair]] = field(default_factory=list)
    wanted: Array = field(default_factory=lambda: np.zeros(0))
    exact: Array = field(default_factory=lambda: np.zeros(0))
    smooth: bool = True  # no choice was made between numbers that were rounded

    def __repr__(self) -> str:
        names = " → ".join(name for name, _ in self.steps)
        return f"{self.dtype.name} {self.start.shape}: {names}"


class Drawer:
    """Draws the arguments of a call on an array."""

    def __init__(self, random: np.random.Generator, dtype: wg.DType) -> None:
        self.random, self.dtype = random, dtype
        self.shape: Shape = ()
        self.settled = True  # whether the array has been rounded nowhere

    def one(self, choices: Any) -> Any:
        return choices[int(self.random.integers(len(choices)))]

    def chance(self, share: float) -> bool:
        return bool(self.random.random() < share)

    def axis(self, least: int = 0) -> int:
        """An axis, at times counted from the end; of so many elements at least."""
        rank = len(self.shape)
        axis = int(self.random.integers(rank)) if rank else 0
        if not rank or self.shape[axis] < least:
            raise Refused("no axis")
        return axis - rank if self.chance(0.3) else axis

    def axes(self, least: int = 0) -> Any:
        if self.chance(0.2) and 0 not in self.shape:
            return None
        return self.axis(least)

    def order(self) -> tuple[int, ...]:
        if len(self.shape) < 2:
            raise Refused("nothing to transpose")
        return tuple(int(each) for each in self.random.permutation(len(self.shape)))

    def number(self) -> float | int:
        value = self.one(BOUNDS)
        return int(value) if self.dtype.kind == "i" else float(value)

    def array(self, shape: Shape) -> Array:
        """Another array of the dtype."""
        return draw_values(self.random, self.dtype, shape)

    def index(self, size: int, shape: Shape) -> Array:
        return self.random.integers(0, size, shape).astype(np.int32)

    def choose(self) -> None:
        """Refuse a choice between numbers that were rounded: others may round otherwise."""
        if not self.settled:
            raise Refused("a choice by a hair")


def draw_values(random: np.random.Generator, dtype: wg.DType, shape: Shape) -> Array:
    """Small numbers; often few different ones."""
    if dtype.kind == "i":
        return random.integers(-3, 4, shape).astype(dtype.numpy)
    if dtype.kind == "c":
        both = [draw_values(random, wg.float32, shape) for _ in range(2)]
        return np.asarray(both[0] + 1j * both[1]).astype(dtype.numpy)
    if random.random() < FEW:
        return draw_few(random, dtype, shape)
    return np.asarray(random.uniform(-2, 2, shape)).astype(dtype.numpy)


def same(name: str, *args: Any, **options: Any) -> Pair:
    """Functions that have one name and one way to be called."""
    return (
        lambda x: getattr(wg, name)(x, *args, **options),
        lambda x: getattr(np, name)(x, *args, **options),
    )


def renamed(name: str, numpy: Function, *args: Any, **options: Any) -> Pair:
    return lambda x: getattr(wg, name)(x, *args, **options), numpy


def beside(x: Tensor, array: Array) -> Tensor:
    """Numbers on a tensor's device, in its dtype."""
    return wg.asarray(array, device=x.device).astype(x.dtype)


def alike(x: Array, array: Array) -> Array:
    """An array in the precision of another."""
    return array.astype(x.dtype) if array.dtype.kind not in "biu" else array


# Movement


def _transpose(d: Drawer) -> Pair:
    order = d.order()
    return renamed("permute_dims", lambda x: np.transpose(x, order), order)


def _reshape(d: Drawer) -> Pair:
    shape = d.one([(-1,), (*d.shape, 1), (1, *d.shape), d.shape[::-1]])
    if shape == (-1,) and not np.prod(d.shape):
        raise Refused("empty")
    return same("reshape", shape)


def _join(d: Drawer) -> Pair:
    axis, turned = d.axis(), d.axis()
    return (
        lambda x: wg.concat([x, wg.flip(x, axis=turned)], axis=axis),
        lambda x: np.concatenate([x, np.flip(x, turned)], axis),
    )


def _stack(d: Drawer) -> Pair:
    axis = int(d.random.integers(len(d.shape) + 1))
    return lambda x: wg.stack([x, -x], axis=axis), lambda x: np.stack([x, -x], axis)


def _pad(d: Drawer) -> Pair:
    if not d.shape:
        raise Refused("0-d")
    widths = [tuple(int(each) for each in d.random.integers(0, 3, 2)) for _ in d.shape]
    number = d.number()
    return renamed("pad", lambda x: np.pad(x, widths, constant_values=number), widths, constant_values=number)


def _slice(d: Drawer) -> Pair:
    def part(size: int) -> slice:
        start, stop = sorted(int(each) for each in d.random.integers(0, size + 1, 2))
        return slice(start, stop, d.one((1, 1, 2))) if d.chance(0.7) else slice(None, None, -1)

    index = tuple(part(size) for size in d.shape)
    return lambda x: x[index], lambda x: x[index]


def _take(d: Drawer) -> Pair:
    axis = d.axis(1)
    index = d.index(d.shape[axis], (d.one((1, 3, d.shape[axis])),))
    return lambda x: wg.take(x, wg.asarray(index, device=x.device), axis=axis), lambda x: np.take(
        x, index, axis
    )


def _take_along(d: Drawer) -> Pair:
    axis = d.axis(1)
    index = d.index(d.shape[axis], d.shape)
    return (
        lambda x: wg.take_along_axis(x, wg.asarray(index, device=x.device), axis=axis),
        lambda x: np.take_along_axis(x, index, axis),
    )


def _triangle(d: Drawer) -> Pair:
    if len(d.shape) < 2:
        raise Refused("no matrix")
    return same(d.one(("tril", "triu")), int(d.random.integers(-2, 3)))


def _diagonal(d: Drawer) -> Pair:
    first, second, *_ = d.order()
    return renamed(
        "diagonal",
        lambda x: np.diagonal(x, 0, first, second),
        axis1=first,
        axis2=second,
    )


def _roll(d: Drawer) -> Pair:
    return same("roll", int(d.random.integers(-3, 4)), axis=d.axis())


def _index_add(d: Drawer) -> Pair:
    axis = d.axis(1) % len(d.shape)
    index = d.index(d.shape[axis], (int(d.random.integers(1, 5)),))
    shape = (*d.shape[:axis], len(index), *d.shape[axis + 1 :])
    updates = d.array(shape)

    def numpy(x: Array) -> Array:
        result = x.copy()
        rows: Any = (slice(None),) * axis + (index,)
        np.add.at(result, rows, alike(x, updates))
        return result

    return lambda x: wg.index_add(x, wg.asarray(index, device=x.device), beside(x, updates), axis=axis), numpy


# Element by element


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


# Folds, scans and products


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
        return np.flip(np.sort(x, axis), axis) if down else np.sort(x, axis)

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


# Windows: an array is channels of one line


def _windows(d: Drawer, longest: int) -> tuple[Shape, int, int, int, tuple[int, int]]:
    """The shape of the lines; taps, dilation, stride and padding of windows that fit into them."""
    if len(d.shape) < 2 or 0 in d.shape:
        raise Refused("no lines")
    lines = (1, d.shape[0], int(np.prod(d.shape[1:])))
    taps, dilation, stride = (int(d.random.integers(1, each + 1)) for each in (longest, 2, 2))
    width = int(d.random.integers(0, taps // 2 + 1))
    if lines[2] + 2 * width < dilation * (taps - 1) + 1:
        raise Refused("short lines")
    return lines, taps, dilation, stride, (width, width)


def _taps(x: Array, taps: int, dilation: int, stride: int, padding: tuple[int, int], fill: float) -> Array:
    """What each tap of the windows over the last axis sees, one tap after the other."""
    padded = np.pad(x, ((0, 0), (0, 0), padding), constant_values=fill)
    count = (padded.shape[2] - dilation * (taps - 1) - 1) // stride + 1
    return np.stack(
        [
            padded[:, :, at * dilation : at * dilation + stride * (count - 1) + 1 : stride]
            for at in range(taps)
        ]
    )


def _convolution(d: Drawer) -> Pair:
    lines, taps, dilation, stride, padding = _windows(d, 4)
    weight = d.array((3, lines[1], taps))
    same_length = stride == 1 and d.chance(0.3)
    total = dilation * (taps - 1)
    around = (total // 2, total - total // 2) if same_length else padding

    def webgrad(x: Tensor) -> Any:
        how: Any = "same" if same_length else padding[0]
        return wg.conv1d(wg.reshape(x, lines), beside(x, weight), None, stride, how, dilation)

    def numpy(x: Array) -> Array:
        seen = _taps(x.reshape(lines), taps, dilation, stride, around, 0)
        return np.asarray(np.einsum("tncl,oct->nol", seen, alike(x, weight)))

    return webgrad, numpy


def _transposed(d: Drawer) -> Pair:
    lines, taps, dilation, stride, (less, _) = _windows(d, 4)
    weight, more = d.array((lines[1], 2, taps)), int(d.random.integers(0, stride))
    length = (lines[2] - 1) * stride - 2 * less + dilation * (taps - 1) + 1 + more
    if length < 1:
        raise Refused("nothing is left")

    def numpy(x: Array) -> Array:
        result = np.zeros((1, 2, length + 2 * less), x.dtype)
        for at in range(taps):
            part = np.einsum("ncl,co->nol", x.reshape(lines), alike(x, weight)[:, :, at])
            result[:, :, at * dilation : at * dilation + stride * (lines[2] - 1) + 1 : stride] += part
        return result[:, :, less : less + length]

    return (
        lambda x: wg.conv_transpose1d(
            wg.reshape(x, lines), beside(x, weight), None, stride, less, more, dilation=dilation
        ),
        numpy,
    )


def _pool(d: Drawer) -> Pair:
    d.choose()
    lines, taps, dilation, stride, padding = _windows(d, 3)
    return (
        lambda x: wg.max_pool1d(wg.reshape(x, lines), taps, stride, padding[0], dilation),
        lambda x: _taps(x.reshape(lines), taps, dilation, stride, padding, -math.inf).max(0),
    )


def _parts(d: Drawer) -> Pair:
    return same(d.one(("conj", "conj", "real", "imag")))


# name → kinds of dtypes, how often, the call
CALLS: dict[str, tuple[str, float, Callable[[Drawer], Pair]]] = {
    "transpose": (ANY, 4, _transpose),
    "flip": (ANY, 1, lambda d: same("flip", axis=d.axis())),
    "roll": (ANY, 1, _roll),
    "swapaxes": (ANY, 1, lambda d: same("swapaxes", d.axis(), d.axis())),
    "reshape": (ANY, 2, _reshape),
    "concat": (ANY, 1, _join),
    "stack": (ANY, 1, _stack),
    "pad": (ANY, 1, _pad),
    "slice": (ANY, 2, _slice),
    "take": (ANY, 1, _take),
    "take_along_axis": (ANY, 1, _take_along),
    "triangle": (ANY, 1, _triangle),
    "diagonal": (ANY, 1, _diagonal),
    "index_add": (ANY, 1, _index_add),
    "repeat": (ANY, 0.5, lambda d: same("repeat", 2, axis=d.axis())),
    "tile": (ANY, 0.5, lambda d: same("tile", (2,) * len(d.shape))),
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
    "parts": ("c", 3, _parts),
    "vector_norm": (FLOATS, 1, _size),
    "many axes": (NUMBERS, 1, _many_axes),
    "layer_norm": (FLOATS, 1, _normal),
    "searchsorted": (REAL, 0.5, _search),
    "topk": (FLOATS, 0.5, _largest),
    "attention": (FLOATS, 1, _attention),
    "convolution": (FLOATS, 1, _convolution),
    "transposed": (FLOATS, 0.5, _transposed),
    "pool": (FLOATS, 1, _pool),
}
# Where NumPy rounds nothing, no device does; a fold in any order neither.
ROUND_NOTHING = {
    *("transpose", "flip", "roll", "swapaxes", "reshape", "concat", "stack", "pad", "slice", "take", "clip"),
    *(
        "take_along_axis",
        "triangle",
        "diagonal",
        "repeat",
        "tile",
        "abs",
        "negative",
        "step",
        "where",
        "sort",
    ),
    *("extreme", "place", "argsort", "with number", "with other", "diff", "parts"),
    *("division", "fill", "searchsorted", "topk", "pool"),
}
KINKS = {
    "abs",
    "clip",
    "with number",
    "where",
    "extreme",
    "step",
    "division",
    "pool",
    "sort",
    "vector_norm",
}  # their gradients depend on a choice


def _value(dtype: wg.DType, array: Array, exact: Array) -> Value:
    return Value(dtype, array, exact)


def write_calls(seed: int, *, on_gpu: bool = False) -> Calls:
    """One to five calls; for a GPU, whose drivers compile slowly, up to three."""
    random = np.random.default_rng(seed)
    kinds = [each for each in KINDS if not (on_gpu and each is wg.float64)]
    weights = np.array([KINDS[each] for each in kinds])
    dtype = kinds[int(random.choice(len(kinds), p=weights / weights.sum()))]
    d = Drawer(random, dtype)
    start = draw_values(random, dtype, draw_shape(random))
    made = Calls(dtype, start, wanted=start, exact=_widest(start))
    names = [name for name, (kinds_of, *_) in CALLS.items() if dtype.kind in kinds_of]
    shares = np.array([CALLS[name][1] for name in names])
    wanted = int(random.integers(1, 4 if on_gpu else 6))
    for _ in range(30):
        if len(made.steps) >= wanted or made.wanted.dtype.kind not in _kinds(dtype):
            break
        name = names[int(random.choice(len(names), p=shares / shares.sum()))]
        d.shape = made.wanted.shape
        try:
            _add(made, d, name)
        except Refused:
            continue
    return made if made.steps else write_calls(seed + 1_000_003, on_gpu=on_gpu)


def _kinds(dtype: wg.DType) -> str:
    return "fV" if dtype.kind == "f" else dtype.kind


def _widest(array: Array) -> Array:
    return array.astype(np.complex128) if array.dtype.kind == "c" else wide(array)


def _add(made: Calls, d: Drawer, name: str) -> None:
    """A call, at times between two transposes, if its value may be compared."""
    build = CALLS[name][2]
    order = d.order() if len(d.shape) > 1 and d.chance(TURNED) else None
    shape = d.shape
    if order is not None:
        d.shape = tuple(shape[axis] for axis in order)
    webgrad, numpy = build(d)
    inner = d.shape
    array, exact = made.wanted, made.exact
    if order is not None:
        array, exact = array.transpose(order), exact.transpose(order)
    with np.errstate(all="ignore"):
        narrow = array.astype(np.float32) if array.dtype.kind in "fV" and array.dtype.itemsize == 2 else array
        result, exact = np.asarray(numpy(narrow)), np.asarray(numpy(exact))
        if result.dtype.kind == made.dtype.kind and made.dtype.kind != "i":
            result = result.astype(made.dtype.numpy)
    back = order is not None and result.shape == inner
    if back and order is not None:
        undo = tuple(int(each) for each in np.argsort(order))
        result, exact = result.transpose(undo), exact.transpose(undo)
    _refuse(result, exact, made.dtype)
    settled = d.settled and (name in ROUND_NOTHING or made.dtype.kind == "i")
    settled = settled and bool(np.array_equal(_widest(result), exact))
    made.smooth = made.smooth and (d.settled or name not in KINKS)
    d.settled = settled
    made.steps.append(_turned(name, (webgrad, numpy), order, back))
    made.wanted, made.exact = result, exact


def _turned(name: str, pair: Pair, order: tuple[int, ...] | None, back: bool) -> tuple[str, Pair]:
    if order is None:
        return name, pair
    webgrad, numpy = pair
    undo = tuple(int(each) for each in np.argsort(order))

    def run(x: Tensor) -> Tensor:
        found: Tensor = webgrad(wg.permute_dims(x, order))
        return wg.permute_dims(found, undo) if back else found

    return f"{name} between {order}", (run, numpy)


def _refuse(result: Array, exact: Array, dtype: wg.DType) -> None:
    if result.size > MOST:
        raise Refused("large")
    if result.dtype.kind not in "fcV":
        return
    most = 1e4 if dtype.itemsize >= 4 else 200
    if not np.all(np.abs(exact) < most):
        raise Refused("range")
    if not np.all(np.abs(_widest(result) - exact) <= 0.2 * _allowed(dtype, exact)):
        raise Refused("rounding")


def _allowed(dtype: wg.DType, exact: Array) -> Array:
    part = wg.float32 if dtype.kind == "c" else dtype
    return allowed(_value(part, np.zeros(exact.shape, np.float32), np.abs(exact)))


# Running


def difference(calls: Calls, device: AnyDevice, seed: int) -> str:
    """What is wrong with a result on a device, or with its gradient; the empty text: nothing."""
    try:
        return _difference(calls, device) or _wrong_gradient(calls, device, seed)
    except Exception as error:
        return f"{calls}: {type(error).__name__}: {' '.join(str(error).split())}"


def _run(calls: Calls, x: Tensor) -> Tensor:
    for _, (webgrad, _) in calls.steps:
        x = webgrad(x)
    return x


def _difference(calls: Calls, device: AnyDevice) -> str:
    found = _run(calls, Tensor(place(calls.start, device))).numpy()
    if found.shape != calls.exact.shape:
        return f"{calls}: the shape is {found.shape}, not {calls.exact.shape}"
    if calls.wanted.dtype.kind in "fcV":
        bad = ~(np.abs(_widest(found) - calls.exact) <= _allowed(calls.dtype, calls.exact))
    else:
        bad = found != calls.wanted
    return _first(calls, "result", bad, found, calls.wanted)


def _first(calls: Calls, what: str, bad: Array, found: Array, wanted: Array) -> str:
    if not np.any(bad):
        return ""
    at = tuple(int(each) for each in np.argwhere(bad)[0])
    count = np.count_nonzero(bad)
    return f"{calls}: {count} of {bad.size} of the {what} wrong, first at {at}: {found[at]}, not {wanted[at]}"


def _wrong_gradient(calls: Calls, device: AnyDevice, seed: int) -> str:
    """The gradient against that of the same calls in float64, computed node by node, and that against the
    difference between results a little apart.
    """
    random = np.random.default_rng(seed)
    floats = calls.dtype in (wg.float32, wg.float64) and calls.wanted.dtype.kind == "f"
    if (
        not floats
        or not calls.smooth
        or not calls.wanted.size
        or random.random() > GRADIENT[device.name != "cpu"]
    ):
        return ""
    weights = np.asarray(random.uniform(-1, 1, calls.wanted.shape))
    grad = _gradient(calls, wg.asarray(calls.start, device=device), weights)
    exact = _gradient(calls, wg.asarray(wide(calls.start), device="cpu"), weights)
    if grad is None or exact is None:
        return ""
    (wanted,), found = compute([exact.node]), wide(grad.numpy())
    if found.shape != wanted.shape:
        return f"{calls}: the gradient's shape is {found.shape}, not {wanted.shape}"
    slack = 1e-3 * max(1.0, float(np.abs(wanted).max(initial=0.0)))
    wrong = _first(calls, "gradient", ~(np.abs(found - wanted) <= slack), found, wanted)
    return wrong or _wrong_slope(calls, weights, random)


def _gradient(calls: Calls, x: Tensor, weights: Array) -> Tensor | None:
    total = (_run(calls, x.requires_grad_()) * beside(x, weights)).sum()
    if not total.requires_grad:
        return None
    total.backward()
    return x.grad


def _wrong_slope(calls: Calls, weights: Array, random: np.random.Generator) -> str:
    """A gradient in float64 against the slope of results.

    Where one kink hides another, as the lowest of [-2, -1] clipped to at least -1, results are constant and
    the gradient is not, by convention: then only what is wrong beside the kinks too is wrong.
    """
    start = wide(calls.start)
    wrong = _wrong_slope_at(calls, start, weights, random)
    if wrong and sum(name.split(" between")[0] in KINKS for name, _ in calls.steps) > 1:
        wrong = _wrong_slope_at(calls, start + random.uniform(-1e-3, 1e-3, start.shape), weights, random)
    return f"{calls}: {wrong}" if wrong else ""


def _wrong_slope_at(calls: Calls, start: Array, weights: Array, random: np.random.Generator) -> str:
    def total(offset: Array) -> float:
        x = wg.asarray(start + offset, device="cpu")
        return float(compute([(_run(calls, x) * beside(x, weights)).sum().node])[0])

    gradient = _gradient(calls, wg.asarray(start, device="cpu"), weights)
    return "" if gradient is None else wrong_slope(total, compute([gradient.node])[0], random)
