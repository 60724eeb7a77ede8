"""Functions at the points where they go wrong: infinities, NaN, zeros of both signs, limits, ties, kinks.

In: a seed and a device. Out: what is wrong, against NumPy, or the empty text. Programs of several calls stay
where numbers are small and slopes are plain; here one function at a time meets what is not. Gradients at
kinks are those of the table of conventions (tests/gradients/kinks.py), wherever its points lie in an array.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import webgrad as wg
from tests.gradients.kinks import KINKS, array_of
from tests.properties.drawing import draw_few, draw_shape
from tests.properties.helpers import (
    AnyDevice,
    Array,
    Case,
    Shape,
    differences,
    flushed,
    place,
    specials,
    wide,
)
from webgrad import dtypes
from webgrad.dtypes import DType
from webgrad.graph.node import make
from webgrad.ops.table import TABLE
from webgrad.reference.plan import value_of
from webgrad.runtime.webgpu import Device
from webgrad.tensor import Tensor

__all__ = ["ROWS", "Points", "difference", "wrong"]

MOST = 600  # elements
MORE = (0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 6.0, 1e-30, -1e-20, 87.5, 88.5, -87.0)  # beside the special values
TINY = float(np.finfo(np.float64).tiny)
LENGTHS = (1, 2, 5, 9, 33, 70, 300, 1_000, 5_000)
Cases = Iterator[Case]


class Points:
    """Draws arrays that are full of special values, and makes cases of them."""

    def __init__(self, seed: int, device: AnyDevice) -> None:
        self.random, self.device = np.random.default_rng(seed), device
        self.on_gpu = device.name != "cpu"

    def one(self, choices: Sequence[Any]) -> Any:
        return choices[int(self.random.integers(len(choices)))]

    def chance(self, share: float) -> bool:
        return bool(self.random.random() < share)

    def dtype(self, kinds: str, most: int = 8) -> DType:
        """Of some kinds, that the device has."""
        having = [
            each
            for each in dtypes.REAL
            if each.kind in kinds
            and each.itemsize <= most
            and (
                not isinstance(self.device, Device)
                or not each.feature
                or each.feature in self.device.features
            )
        ]
        return self.one([*having, wg.float32]) if "f" in kinds else self.one(having)  # type: ignore[no-any-return]

    def shape(self) -> Shape:
        while True:
            shape = draw_shape(self.random)
            if math.prod(shape) <= MOST:
                return shape

    def array(self, dtype: DType, shape: Shape, most: int = 6) -> Array:
        """Some of the special values, or of these some among others: NaN would hide the rest of a row."""
        if dtype.kind == "b":
            return self.random.random(shape) < 0.5
        choices = specials(dtype)
        if dtype.kind == "f":
            choices = np.concatenate([choices, np.array(MORE).astype(dtype.numpy)])
        chosen = choices[self.random.permutation(len(choices))[: int(self.random.integers(1, most + 1))]]
        if dtype.kind == "f" and self.chance(0.5):
            often = np.array(self.one(((np.nan,), (np.inf,), (-np.inf,), (0.0, -0.0)))).astype(dtype.numpy)
            chosen = np.concatenate([chosen, often])
        drawn = np.asarray(chosen[self.random.integers(0, len(chosen), shape)])
        if self.chance(0.5):
            small = self.random.uniform(-2, 2, shape)
            plain = small if dtype.kind == "f" else self.random.integers(0, 5, shape)
            drawn = np.where(self.random.random(shape) < 0.8, plain.astype(dtype.numpy), drawn)
        return np.asarray(drawn)

    def tensor(self, array: Array) -> Tensor:
        return Tensor(place(array, self.device))

    def case(self, label: str, found: Tensor, wanted: Any, ulps: float = 0.0, slack: float = 0.0) -> Case:
        """A result, which must have the dtype that is wanted; floats may be wanted more exactly."""
        wanted = np.asarray(wanted)
        kinds = ("f", "V") if found.dtype.kind == "f" else (found.dtype.numpy.kind,)
        if wanted.dtype.kind not in kinds:
            raise AssertionError(f"{label}: the dtype is {found.dtype.name}, not {wanted.dtype}")
        return Case(label, found.node, (wanted,), ulps, slack)


# Maps: what NumPy lacks, by other formulas than those of webgrad/ops/references.py.


def _elements(function: Callable[[float], float]) -> Callable[[Array], Array]:
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
    "erf": _elements(math.erf),
    "erfc": _elements(math.erfc),
    "gelu": lambda x: np.where(x == -np.inf, 0, x * (_elements(math.erfc)(-x / math.sqrt(2)) / 2)),
    "gelu_tanh": lambda x: np.where(
        x == -np.inf, 0, x / (1 + np.exp(-math.sqrt(8 / math.pi) * (x + 0.044715 * x**3)))
    ),
}
NAMES = [name for name, op in TABLE.items() if op.kind == "map"]


def _maps(p: Points) -> Cases:
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
        yield Case(f"{each} of {dtype.name} {shape}", node, tuple(wanted), ulps)
        if numpy and not p.on_gpu:  # the cpu has ways of its own; others are compared with the reference
            reference = place(np.asarray(value_of(node.sig, arrays)), p.device)
            yield Case(f"reference of {each} of {dtype.name}", reference, tuple(wanted), ulps)


def _is_alike(name: str, other: str, dtype: DType) -> bool:
    """Whether two maps take the same operands."""
    alone = ("where", "random_bits")
    if name in alone or other in alone:
        return name == other
    return TABLE[name].arity == TABLE[other].arity and dtype.kind in TABLE[name].types


# Bools


def _bools(p: Points) -> Cases:
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


# Folds and scans


def _folds(p: Points) -> Cases:
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
        yield p.case(f"{name} of {dtype.name} {shape}", getattr(wg, name)(x, axis=axis), wanted, slack=TINY)
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


def _long(p: Points) -> Cases:
    """Lines that are folded and scanned by parts, halves that are widened by pieces; at times an infinity."""
    dtype = p.one((wg.float32, wg.float32, wg.float16)) if not p.on_gpu else wg.float32
    length = p.one((1_024, 1_500, 4_097, 20_001, 70_000, 150_001))
    shape = p.one(
        ((length,), (3, length), (length, 2), (2, length // 4, 3), (length // 8, 20), (2, length, 2))
    )
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


def _empty(p: Points) -> Cases:
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


# Order: NaN is the largest, zeros of both signs are equal, equals keep their order


def _ranks(array: Array) -> Array:
    """Integers in the order of the elements."""
    values = wide(array)
    if values.dtype.kind == "f":
        values = values + 0.0
    return np.asarray(np.unique(values, return_inverse=True)[1]).reshape(array.shape)


def _order(p: Points) -> Cases:
    dtype = p.dtype("iuf")
    shape = (*p.one(((), (1,), (3,), (4,))), p.one(LENGTHS))
    array = p.array(dtype, shape)
    if dtype.kind in "iu" and p.chance(0.5):
        limits = np.iinfo(dtype.numpy)
        array = p.random.integers(limits.min, limits.max, shape, dtype.numpy, endpoint=True)
    if p.on_gpu:
        array = flushed(array)
    x, ranks = p.tensor(array), _ranks(array)
    rising = np.argsort(ranks, -1, kind="stable")
    falling = np.argsort(-ranks, -1, kind="stable")
    label = f"of {dtype.name} {shape}"
    for down, order in ((False, rising), (True, falling)):
        # Which of a row's zeros come first is the order in which they are: signs are compared too.
        values = np.take_along_axis(array, order, -1)
        yield p.case(f"sort {label} {down}", wg.sort(x, axis=-1, descending=down), values)
        yield p.case(
            f"argsort {label} {down}", wg.argsort(x, axis=-1, descending=down), order.astype(np.int32)
        )
    count = min(shape[-1], p.one((1, 3, 10, max(1, shape[-1] // 2), shape[-1])))
    yield p.case(f"topk {count} {label}", wg.topk(x, count, -1)[1], falling[..., :count].astype(np.int32))
    line = array.reshape(-1)
    known = line[~np.isnan(wide(line))] if dtype.kind == "f" else line
    known = known[np.argsort(_ranks(known), kind="stable")] if known.size else known
    side = p.one(("left", "right"))
    found = wg.searchsorted(p.tensor(known), p.tensor(line), side=side)
    yield p.case(f"searchsorted {side} {label}", found, _searched(known, line, side).astype(np.int32))


def _searched(line: Array, values: Array, side: str) -> Array:
    """NumPy's search; where 16-bit floats have none, in float64."""
    return np.searchsorted(wide(line), wide(values), "left" if side == "left" else "right")


# Indices out of range, which are clamped


INDEXED: dict[str, Callable[[Array, Array], Array]] = {
    "index_add": np.add,
    "index_max": np.maximum,
    "index_set": lambda old, new: new,
}


def _scatters(p: Points) -> Cases:
    dtype = p.dtype("if", 4)
    rank = int(p.random.integers(2, 4))
    shape = tuple(int(each) for each in p.random.integers(2, 7, rank))
    x = p.random.integers(0, 9, shape).astype(dtype.numpy)
    axis = int(p.random.integers(rank))
    places = tuple(3 if at == axis else size for at, size in enumerate(shape))
    index = p.random.integers(0, shape[axis] + 3, places).astype(np.int32)
    updates = p.random.integers(0, 9, places).astype(dtype.numpy)
    inside = np.minimum(index, shape[axis] - 1)
    wanted = x.copy()
    for at in np.ndindex(*places):
        spot = (*at[:axis], int(inside[at]), *at[axis + 1 :])
        wanted[spot] = updates[at]
    found = wg.scatter_set(p.tensor(x), p.tensor(index), p.tensor(updates), axis=axis)
    yield p.case(f"scatter_set of {dtype.name} {shape} along {axis}", found, wanted)
    line = p.random.integers(-2 * shape[axis], shape[axis] + 3, 5).astype(np.int32)
    rows = np.clip(np.where(line < 0, line + shape[axis], line), 0, shape[axis] - 1)
    more = p.random.integers(0, 4, (*shape[:axis], 5, *shape[axis + 1 :])).astype(dtype.numpy)
    for name, changed in INDEXED.items():
        wanted = x.copy()
        for turn, row in enumerate(rows):
            to: Any = (slice(None),) * axis + (int(row),)
            by: Any = (slice(None),) * axis + (turn,)
            wanted[to] = changed(wanted[to], more[by])
        found = getattr(wg, name)(p.tensor(x), p.tensor(line), p.tensor(more), axis=axis)
        yield p.case(f"{name} of {dtype.name} {shape} along {axis}", found, wanted)


# Layers


def _norms(p: Points) -> Cases:
    shape = tuple(int(each) for each in p.random.integers(2, 6, 3))
    x = (p.random.uniform(-2, 2, shape) * p.one((1.0, 1e-3))).astype(np.float32)
    mean, var = (p.random.uniform(0.5, 2, shape[1]).astype(np.float32) for _ in range(2))
    momentum, exact = p.one((0.1, 0.3)), wide(x)
    tensors = (p.tensor(x), p.tensor(mean), p.tensor(var))
    _, new_mean, new_var = wg.batch_norm_training(*tensors, momentum=momentum)
    assert new_mean is not None
    assert new_var is not None
    moved = wide(mean) * (1 - momentum) + momentum * exact.mean((0, 2))
    yield p.case("running mean", new_mean, moved, 16, 1e-5)
    moved = wide(var) * (1 - momentum) + momentum * exact.var((0, 2), ddof=1)
    yield p.case("running variance", new_var, moved, 16, 1e-5)
    count = p.one((1, 2, 3))
    sizes, axes = shape[-count:], tuple(range(3 - count, 3))
    weight = p.random.uniform(-1, 1, sizes).astype(np.float32)
    centred = exact - exact.mean(axes, keepdims=True)
    result = centred / np.sqrt(np.square(centred).mean(axes, keepdims=True) + 1e-5) * wide(weight)
    found = wg.layer_norm(p.tensor(x), sizes, p.tensor(weight))
    yield p.case(f"layer_norm of {shape} over {count}", found, result, 64, 1e-4)


def _windows(p: Points) -> Cases:
    """Fold is the adjoint of unfold; widths below 0 crop; sizes of 1 broadcast in einsum."""
    taps, dilation, stride = (int(p.random.integers(1, each)) for each in (4, 3, 3))
    padding = int(p.random.integers(0, 2))
    image = p.random.integers(-3, 4, (1, 2, 7, 7)).astype(np.float32)
    how = (taps, dilation, padding, stride)
    columns = wg.unfold(p.tensor(image), *how)
    others = p.random.integers(-3, 4, columns.shape).astype(np.float32)
    folded = wg.fold(p.tensor(others), 7, *how)
    back = (columns * p.tensor(others)).sum() - (folded * p.tensor(image)).sum()
    yield p.case(f"fold and unfold {how}", back, np.float32(0), 1, 1e-2)
    before, after = (int(each) for each in p.random.integers(-2, 3, 2))
    cropped = image[..., max(0, -before) : 7 - max(0, -after)]
    wanted = np.pad(cropped, [(0, 0)] * 3 + [(max(0, before), max(0, after))])
    found = wg.nn.functional.pad(p.tensor(image), (before, after))
    yield p.case(f"pad by {before}, {after}", found, wanted)
    a, b = (p.random.integers(-3, 4, shape).astype(np.float32) for shape in ((1, 3), (4, 5)))
    a = a[:, :1] if p.chance(0.5) else a
    text = p.one(("ij,kl->ikl", "...j,kl->...kl", "ij,kl->lki"))
    yield p.case(f"einsum {text}", wg.einsum(text, p.tensor(a), p.tensor(b)), np.einsum(text, a, b), 1)
    c, d = (p.random.integers(-3, 4, shape).astype(np.float32) for shape in ((4, 1), (4, 5)))
    yield p.case("einsum of 1", wg.einsum("ij,ij->j", p.tensor(c), p.tensor(d)), (c * d).sum(0), 1)
    apart = [p.tensor(np.ones(size, np.float32)) for size in p.random.permutation((1, 3, 4))]
    try:
        wg.einsum("i,i,i->i", *apart)
        said = "nothing"
    except wg.ShapeError as error:
        said = str(error)
    assert "has size" in said, f"einsum of sizes 1, 3 and 4 says {said}"
    e, f = (p.random.integers(-3, 4, shape).astype(np.float32) for shape in ((3, 2, 4), (2, 4, 5)))
    found = wg.einsum("...i,...ik->...k", p.tensor(e), p.tensor(f))
    yield p.case("einsum of ...", found, np.einsum("...i,...ik->...k", e, f), 1)


def _attention(p: Points) -> Cases:
    """A window is a mask: the same result, and the same gradient."""
    length, window = int(p.random.integers(2, 7)), int(p.random.integers(1, 4))
    dtype = wg.float32 if p.on_gpu else p.one((wg.float32, wg.float64))
    q, k, v = (p.random.uniform(-2, 2, (1, 2, length, 4)).astype(dtype.numpy) for _ in range(3))
    at, key = np.arange(length)[:, None], np.arange(length)[None]
    shown = (key <= at) & (key > at - window)
    added = np.where(shown, p.random.uniform(-1, 1, shown.shape), -np.inf).astype(dtype.numpy)

    def attend(mask: Array) -> Array:
        a, b, c = exact
        scores = a @ np.swapaxes(b, -1, -2) / 2 + mask
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        return np.asarray(powers / powers.sum(-1, keepdims=True) @ c)

    tensors: Any = [p.tensor(each) for each in (q, k, v)]
    exact = [wide(each) for each in (q, k, v)]
    slack = 1e-5 if dtype is wg.float32 else 1e-13
    found = wg.scaled_dot_product_attention(tensors[0], tensors[1], tensors[2], p.tensor(added))
    yield p.case(f"attention of {dtype.name}, masked", found, attend(wide(added)), 0.5, slack)
    by: list[Callable[..., Any]] = [
        lambda q, k, v: wg.scaled_dot_product_attention(q, k, v, is_causal=True, window=window),
        lambda q, k, v: wg.scaled_dot_product_attention(q, k, v, attn_mask=p.tensor(shown)),
    ]
    weights = p.tensor(p.random.uniform(-1, 1, v.shape).astype(dtype.numpy))
    plain = np.where(shown, 0, -np.inf)
    slopes = []
    for each in by:
        yield p.case(f"attention, window {window}", each(*tensors), attend(plain), 1, 1e-5)
        slope = wg.grad(lambda *xs, each=each: (each(*xs) * weights).sum(), argnums=(0, 1, 2))
        slopes.append(slope(*tensors))
    for name, one, other in zip("qkv", *slopes, strict=True):
        yield p.case(f"slope of attention by {name}, {window}", one - other, np.zeros(q.shape), 1, 1e-4)


def _products(p: Points) -> Cases:
    """Of small integers, exact in any order; sizes of whole tiles and beside them."""
    rows, inner, columns = (p.one((1, 3, 16, 31, 64, 70, 128)) for _ in range(3))
    batch = p.one(((), (), (2,)))
    a = p.random.integers(-3, 4, (*batch, rows, inner)).astype(np.float32)
    b = p.random.integers(-3, 4, (inner, columns)).astype(np.float32)
    label = f"product of {a.shape} and {b.shape}"
    yield p.case(label, p.tensor(a) @ p.tensor(b), a @ b, 1)
    turned = np.ascontiguousarray(b.T)
    yield p.case(f"{label}, transposed", p.tensor(a) @ p.tensor(turned).T, a @ b, 1)


# What a GPU does with buffers


KERNEL = """
struct Params { factor: f32, offset: f32 }
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
var<uniform> p: Params;
@compute @workgroup_size(64)
fn scale(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < arrayLength(&y)) { y[id.x] += p.factor * x[id.x] + p.offset; }
}
"""


def _kernel(p: Points) -> Cases:
    """A user's kernel that adds to what its result begins with, which stays what it was."""
    if not p.on_gpu:
        return
    scale = wg.kernel(KERNEL, label="scale", device=p.device, threads=lambda x, *_, **__: x.size)
    shape = tuple(int(each) for each in p.random.integers(1, 6, 2))
    x, y = (p.random.integers(-9, 10, shape).astype(np.float32) for _ in range(2))
    factor, offset = (float(each) for each in p.random.integers(2, 9, 2))
    given = p.tensor(y)
    found = scale(p.tensor(x), given, factor=factor, offset=offset)
    wanted = y + factor * x + offset
    yield p.case("a user's kernel", found + 0, wanted, 1)
    yield p.case("what a user's kernel began with", given + 0, y, 1)


def _again(p: Points) -> Cases:
    """The same steps several times, of other inputs or of one given twice, while results before live on."""
    size = int(p.random.integers(2, 40))
    kept: list[tuple[str, Tensor, Array]] = []
    captured = p.chance(0.5)
    which = int(p.random.integers(3))

    def steps(of: Any, x: Any, y: Any) -> Any:
        first = x * 2 + y
        if which == 0:
            return first, (first.sum(axis=0) + x) * y
        turned = first.T @ x
        return (turned, turned + first) if which == 1 else (of.cumsum(first, axis=0) - turned, x + 1)

    call = wg.jit(lambda x, y: steps(wg, x, y)) if captured else lambda x, y: steps(wg, x, y)
    given: list[tuple[Array, Tensor]] = []
    for turn in range(int(p.random.integers(3, 7))):
        array = p.random.integers(-3, 4, (size, size)).astype(np.float32)
        given.append((array, p.tensor(array)))
        (a, x), (b, y) = (p.one(given) for _ in range(2))
        if p.chance(0.3):  # a value that nobody else refers to
            a, x = a + 1, x + 1
        found, wanted = call(x, y), steps(np, a, b)
        kept += [
            (f"result {at} of turn {turn}, {'captured ' * captured}{which}", *pair)
            for at, pair in enumerate(zip(found, wanted, strict=True))
        ]
        del x, y, found
        if p.chance(0.5):
            label, tensor, exact = kept.pop(int(p.random.integers(len(kept))))
            yield p.case(label, p.tensor(tensor.numpy()), exact, 1, 1e-3)
        if p.chance(0.3):
            given.pop(0)
    for label, tensor, exact in [*kept, *(("an input", tensor, array) for array, tensor in given)]:
        yield p.case(label, p.tensor(tensor.numpy()), exact, 1, 1e-3)


# Gradients at kinks

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


def _kinks(p: Points) -> Cases:
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
            _elements(math.erfc)(-x / math.sqrt(2)) / 2 + x * np.exp(-x * x / 2) / math.sqrt(2 * math.pi)
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


def _slopes(p: Points) -> Cases:
    """Smooth functions at zeros and bounds, of which a program takes no heed."""
    shape = p.shape()
    array = draw_few(p.random, wg.float32, shape)
    weights = p.random.choice((0.5, 1.0, -2.0), shape).astype(np.float32)
    x, factors = p.tensor(array), p.tensor(weights)
    for name in dict.fromkeys(p.one(list(SLOPES)) for _ in range(3 if p.on_gpu else 8)):
        function, slope = SLOPES[name]
        found = wg.grad(lambda x, function=function: (function(x) * factors).sum())(x)
        yield p.case(f"slope of {name}", found, slope(wide(array)) * weights, 16, 1e-6)


def _pool(p: Points) -> Cases:
    """Padding has no gradient, of -inf neither: each window gives all of it to an element."""
    x = np.where(p.random.random((1, 2, 9)) < 0.6, -np.inf, 1.0).astype(np.float32)
    taps, stride = p.one((2, 3)), p.one((1, 2))
    windows = wg.max_pool1d(p.tensor(x), taps, stride, 1)
    slope = wg.grad(lambda each: wg.max_pool1d(each, taps, stride, 1).sum())(p.tensor(x))
    yield p.case(f"slope of max_pool1d of -inf, {taps} by {stride}", slope.sum(), np.float32(windows.size))


# name → how often, the cases
ROWS: dict[str, tuple[float, Callable[[Points], Cases]]] = {
    "maps": (8, _maps),
    "bools": (1, _bools),
    "folds": (2, _folds),
    "long": (1, _long),
    "empty": (0.5, _empty),
    "order": (2, _order),
    "scatters": (1, _scatters),
    "norms": (1, _norms),
    "windows": (1, _windows),
    "attention": (1, _attention),
    "kinks": (3, _kinks),
    "slopes": (1, _slopes),
    "pool": (0.5, _pool),
    "products": (1, _products),
    "kernel": (0.5, _kernel),
    "again": (2, _again),
}


def difference(seed: int, device: AnyDevice) -> str:
    """What is wrong with some functions at special points; the empty text: nothing."""
    shares = np.array([share for share, _ in ROWS.values()])
    at = int(np.random.default_rng((seed, 1)).choice(len(ROWS), p=shares / shares.sum()))
    return wrong(list(ROWS)[at], seed, device)


def wrong(name: str, seed: int, device: AnyDevice) -> str:
    """The same of one row."""
    try:
        lines = differences(lambda: ROWS[name][1](Points(seed, device)), may_flush=device.name != "cpu")
    except Exception as error:
        return f"{name}: {type(error).__name__}: {' '.join(str(error).split())}"
    return f"{name}: " + "; ".join(lines[:4]) if lines else ""
