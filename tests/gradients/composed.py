"""Public functions and what they are differentiated at, as a table: `CASES`.

In: nothing. Out: a `Case` for each name: a function of tensors, and arrays; only those of float64 are
differentiated by. In `arrays` no element is near another, so that sorts and maxima stay what they are around
there; in `ties` many are equal, or zero. `KINKED` cases have no slope at some of these.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import webgrad as wg
from tests.gradients.corners import coarse
from tests.gradients.helpers import Array

__all__ = ["CASES", "KINKED", "Case"]

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """A function, and where."""

    function: Callable[..., Any]
    arrays: tuple[Array, ...]
    ties: tuple[Array, ...]


CASES: dict[str, Case] = {}
# Which of the values that are equal or zero will do, where not all
DEFINED: dict[str, Callable[..., Any]] = {"hypot": lambda a, b: np.all((a != 0) | (b != 0))}


def values(name: str, shapes: tuple[Shape, ...], low: float, high: float) -> list[Array]:
    """Elements of which none is near another, the same for a name whatever came before."""
    generator = np.random.default_rng(zlib.crc32(name.encode()))
    sizes = [int(np.prod(shape)) for shape in shapes]
    count = sum(sizes)
    places = generator.permutation(count) + generator.uniform(0.3, 0.7, count)
    flat = (low + places / max(count, 1) * (high - low)).astype(np.float32).astype(np.float64)
    parts = np.split(flat, np.cumsum(sizes)[:-1])
    return [each.reshape(shape) for each, shape in zip(parts, shapes, strict=True)]


def case(
    name: str,
    function: Callable[..., Any],
    *shapes: Shape,
    low: float = -2.0,
    high: float = 2.0,
    more: Any = (),
) -> None:
    """Add a case: `more` are arrays that are not differentiated by, given after the others."""
    assert name not in CASES, name
    others = tuple(map(np.asarray, more))
    apart, ties = values(name, shapes, low, high), tied_values(name, shapes, low, high)
    CASES[name] = Case(function, (*apart, *others), (*ties, *others))


def tied_values(name: str, shapes: tuple[Shape, ...], low: float, high: float) -> list[Array]:
    """Few values, so that many elements are equal, of different inputs too; the same for a name."""
    generator = np.random.default_rng(zlib.crc32(name.encode()) + 1)
    defined = DEFINED.get(name)
    while True:
        found = [coarse(generator, shape, low, high) for shape in shapes]
        if defined is None or defined(*found):
            return found


INTEGERS = np.array([2, 0, 2, 1], np.int32)
SQUARE = np.array([[0, 2, 1], [1, 1, 0]], np.int32)
MASK = np.array([[True, False, True, True], [False, True, True, False], [True, True, False, True]])

# Elementwise, beyond the rows
case("square", wg.square, (3, 4))
case("reciprocal", wg.reciprocal, (3, 4), low=0.5)
case("power of a number", lambda x: x**3, (3, 4))
case("power of a negative number", lambda x: x**-2.5, (3, 4), low=0.3)
case("number to a power", lambda x: 2.5**x, (3, 4))
case(
    "square of zero among others",
    lambda x: (x * wg.asarray([1.0, 0.0, 1.0, 0.0], dtype=x.dtype)) ** 2,
    (3, 4),
)
case("clip", lambda x: wg.clamp(x, -1.03, 0.97) + wg.positive(x), (3, 4))
case("clip by tensors", wg.clip, (3, 4), (4,), (3, 1))
case("copysign", wg.copysign, (3, 4), (3, 4))
case("hypot", wg.hypot, (3, 4), (3, 4))
case("logaddexp", wg.logaddexp, (3, 4), (4,))
case("lerp", wg.lerp, (3, 4), (3, 4), (3, 1))
case("nan_to_num", wg.nan_to_num, (3, 4))
case("where", lambda a, b, m: wg.where(m, a * b, a), (3, 4), (3, 4), more=[MASK])
case("masked logarithm", lambda x: wg.where(x > 0, wg.log(wg.where(x > 0, x, 1.0)), 0.0), (3, 4))
case("remainder", lambda x: x % 0.73, (3, 4))
case("astype and back", lambda x: x.astype(wg.float32).astype(x.dtype) * 0.0 + x.sin(), (3, 4))
case("detached factor", lambda x: x.sin() * x.detach() ** 0, (3, 4))

# Activations
SMOOTHED = (
    "relu",
    "relu6",
    "silu",
    "mish",
    "elu",
    "selu",
    "celu",
    "softplus",
    "hardsigmoid",
    "hardswish",
    "glu",
)
SHRUNK = ("logsigmoid", "softsign", "tanhshrink", "softshrink", "hardshrink", "softmin", "swish")
for each in (*SMOOTHED, *SHRUNK):
    case(each, getattr(wg, each), (3, 4), low=-2.9, high=2.9)
case("prelu", wg.prelu, (2, 3, 2), (3,))
case("threshold", lambda x: wg.threshold(x, 0.31, 5.0), (3, 4))
case("gelu", wg.gelu, (3, 4))
case("gelu by tanh", lambda x: wg.gelu(x, approximate="tanh"), (3, 4))
case("leaky_relu", lambda x: wg.leaky_relu(x, 0.2), (3, 4))
case("hardtanh", lambda x: wg.hardtanh(x, -1.01, 0.99), (3, 4))
case("softplus with beta", lambda x: wg.softplus(x, 2.0, 1.5), (3, 4))
case("softmax", wg.softmax, (3, 5))
case("softmax of the first axis", lambda x: wg.softmax(x, axis=0), (3, 5))
case("log_softmax", wg.log_softmax, (3, 5))

# Folds
for each in ("sum", "mean", "prod", "max", "min", "var", "std", "logsumexp", "norm"):
    case(each, getattr(wg, each), (3, 4))
    case(f"{each} of an axis", lambda x, each=each: getattr(wg, each)(x, axis=1, keepdims=True), (3, 4))
    case(f"{each} of two axes", lambda x, each=each: getattr(wg, each)(x, axis=(0, 2)), (2, 3, 2))
case("var with a correction", lambda x: wg.var(x, axis=0, correction=1), (5, 3))
case("norm of order 1", lambda x: wg.norm(x, 1, 1), (3, 4))
case("norm of order 3", lambda x: wg.norm(x, 3, 1), (3, 4))
case("norm of order inf", lambda x: wg.norm(x, float("inf"), 1), (3, 4), low=0.2)
HOLES = np.array([[1.0, 0.0, 1.0, 1.0], [0.0, 1.0, 0.0, 1.0], [1.0, 1.0, 1.0, 1.0]], np.float32)
case("prod with zeros", lambda x, holes: wg.prod(x * holes.astype(x.dtype), axis=1), (3, 4), more=[HOLES])
case(
    "cumprod with zeros", lambda x, holes: wg.cumprod(x * holes.astype(x.dtype), axis=1), (3, 4), more=[HOLES]
)
case("max pooled by reshape", lambda x: x.reshape(2, 2, 3).max(axis=1), (4, 3))

# Scans and order
for each in ("cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"):
    case(each, lambda x, each=each: getattr(wg, each)(x, axis=1), (3, 5))
    case(f"{each} of the first axis", lambda x, each=each: getattr(wg, each)(x, axis=0), (4, 3))
case("cumulative_sum with the start", lambda x: wg.cumulative_sum(x, axis=1, include_initial=True), (3, 4))
case("diff", lambda x: wg.diff(x, n=2, axis=0), (5, 3))
case("diff with ends", lambda x, a, b: wg.diff(x, prepend=a, append=b), (3, 4), (3, 1), (3, 2))
case("sort", lambda x: wg.sort(x, axis=1), (3, 5))
case("sort of the first axis, falling", lambda x: wg.sort(x, axis=0, descending=True), (5, 3))
case("topk", lambda x: wg.topk(x, 2)[0], (3, 5))
case("least of topk", lambda x: wg.topk(x, 3, axis=0, largest=False)[0], (5, 3))
case("median by sorting", lambda x: wg.sort(x, axis=1)[:, 2], (3, 5))
case("gather of argmax", lambda x: wg.take_along_axis(x * x, x.argmax(axis=1, keepdims=True), axis=1), (3, 5))

# Shapes
case("reshape, permute, flip", lambda x: wg.flip(x.reshape(4, 3).T, axis=1), (2, 6))
case("pad", lambda x: wg.pad(x, ((1, 2), (0, 3))), (3, 4))
for each in ("edge", "reflect"):
    case(f"pad, {each}", lambda x, each=each: wg.pad(x, ((1, 2), (2, 1)), mode=each), (3, 4))
case("roll", lambda x: wg.roll(x, (1, -2), (0, 1)), (3, 4))
case("repeat", lambda x: wg.repeat(x, 3, axis=1), (2, 3))
case("repeat by counts", lambda x: wg.repeat(x, [2, 0, 3], axis=1), (2, 3))
case("tile", lambda x: wg.tile(x, (2, 1, 2)), (2, 3))
case(
    "stack and concat",
    lambda a, b: wg.concat([wg.stack([a, b * b]), wg.stack([b, a])], axis=2),
    (2, 3),
    (2, 3),
)
case("split", lambda x: wg.split(x, 3, axis=1)[1] * 2 + wg.split(x, 3, axis=1)[2], (2, 6))
case("unstack", lambda x: wg.unstack(x)[0] * wg.unstack(x)[2], (3, 4))
case("tril", lambda x: wg.tril(x, -1), (4, 4))
case("triu", lambda x: wg.triu(x), (3, 4))
case("diagonal", lambda x: wg.diagonal(x, 1), (3, 4))
case("diag", lambda x: wg.diag(x, -1), (4,))
case("broadcast_to", lambda x: wg.broadcast_to(x, (2, 3, 4)), (3, 1))
case("meshgrid", lambda a, b: wg.meshgrid(a, b)[0] * wg.meshgrid(a, b)[1], (3,), (4,))
case("moveaxis", lambda x: wg.moveaxis(x, 0, -1), (2, 3, 2))

case(
    "names of movement",
    lambda x: wg.hstack(wg.chunk(wg.vstack(wg.broadcast_arrays(x, x[:1])), 2))[None].squeeze(0).unsqueeze(1),
    (2, 3),
)
case(
    "orders of axes",
    lambda x: wg.swapaxes(wg.transpose(wg.permute_dims(x, (2, 0, 1))), 0, 1).flatten(),
    (2, 3, 2),
)
case("more orders of axes", lambda x: wg.expand_dims(wg.matrix_transpose(x), 1).flatten(1), (3, 4))
case("repeat_interleave", lambda x: wg.repeat_interleave(x, 2, axis=0), (2, 3))

# Indices
case("x[1]", lambda x: x[1], (3, 4))
case("x[::-2, 1:3]", lambda x: x[::-2, 1:3], (5, 4))
case("x[..., None, 2]", lambda x: x[..., None, 2], (3, 4))
case("x[integers]", lambda x, i: x[i], (3, 4), more=[INTEGERS])
case("x[:, integers, 1:]", lambda x, i: x[:, i, 1:], (2, 3, 3), more=[INTEGERS])
case("x[integers, integers]", lambda x, i, j: x[i, j], (3, 4), more=[INTEGERS, INTEGERS[::-1].copy()])
case("x[square of integers]", lambda x, i: x[i], (3, 2), more=[SQUARE])
case("x[bools]", lambda x, m: x[m], (3, 4), more=[MASK])
case("x[row of bools]", lambda x: x[:, np.array([True, False, True, True])], (3, 4))
case("take", lambda x, i: wg.take(x, i, axis=1), (2, 4), more=[INTEGERS])
case("take_along_axis", lambda x, i: wg.take_along_axis(x, i, axis=1), (2, 4), more=[SQUARE])
case("one_hot product", lambda x, i: wg.one_hot(i, 3).astype(x.dtype) @ x, (3, 4), more=[INTEGERS])


def assigned(key: Any) -> Callable[..., Any]:
    """x[key] = y as a function of both."""

    def function(x: Any, y: Any, *more: Any) -> Any:
        result = x * 1.0
        result[key if not more else tuple(more) if len(more) > 1 else more[0]] = y * y
        return result * x

    return function


case("x[1] = y", assigned(1), (3, 4), (4,))
case("x[:, 1:3] = y", assigned((slice(None), slice(1, 3))), (3, 4), (3, 1))
case("x[::2] = y", assigned(slice(None, None, 2)), (5, 2), (3, 2))
case("x[...] = y", assigned(...), (3, 4), (4,))
case("x[integers] = y", assigned(None), (3, 4), (4, 4), more=[INTEGERS])
case(
    "x[integers, integers] = y",
    assigned(None),
    (3, 4),
    (4,),
    more=[INTEGERS, np.array([0, 1, 2, 3], np.int32)],
)
case("x[bools] = y", assigned(None), (3, 4), (), more=[MASK])
case("x[bools] = values", assigned(MASK), (3, 4), (8,))
for each in ("set", "add", "max", "min", "multiply"):
    case(
        f"index_{each}",
        lambda x, y, i, each=each: getattr(wg, f"index_{each}")(x, i, y, axis=1),
        (2, 4),
        (2, 4),
        more=[INTEGERS],
    )
    case(
        f"scatter_{each}",
        lambda x, y, i, each=each: getattr(wg, f"scatter_{each}")(x, i, y, axis=1),
        (2, 4),
        (2, 3),
        more=[SQUARE],
    )

case("scatter", lambda x, y, i: wg.scatter(x, i, y), (2, 4), (2, 3), more=[SQUARE])

# Products
case("matmul", wg.matmul, (3, 4), (4, 2))
case("matmul of batches", wg.matmul, (2, 3, 4), (4, 2))
case("matmul of vectors", lambda a, b, c: (a @ b) * (b @ c), (3,), (3,), (3, 2))
case("matmul of a transposed matrix", lambda a, b: a @ b.T, (3, 4), (2, 4))
case("linear", wg.linear, (3, 4), (2, 4), (2,))
case("outer", wg.outer, (3,), (4,))
case("vecdot", wg.vecdot, (3, 4), (3, 4))
case("tensordot", lambda a, b: wg.tensordot(a, b, axes=((1,), (0,))), (2, 3, 2), (3, 2))
case("einsum of three", lambda a, b, c: wg.einsum("ij,jk,ik->i", a, b, c), (2, 3), (3, 4), (2, 4))
case("einsum with a diagonal", lambda a, b: wg.einsum("ii,ij->j", a, b), (3, 3), (3, 2))
case("einsum of batches", lambda a, b: wg.einsum("bhqd,bhkd->bhqk", a, b), (1, 2, 3, 2), (1, 2, 2, 2))
case("einsum, broadcast", lambda a, b: wg.einsum("...i,i->...", a, b), (2, 2, 3), (3,))

case("dot", wg.dot, (4,), (4,))

# Normalisation
case("layer_norm", lambda x, w, b: wg.layer_norm(x, 4, w, b), (3, 4), (4,), (4,))
case("layer_norm of two axes", lambda x: wg.layer_norm(x, (2, 3)), (2, 2, 3))
case("rms_norm", lambda x, w: wg.rms_norm(x, 4, w), (3, 4), (4,))
case("group_norm", lambda x, w, b: wg.group_norm(x, 2, w, b), (2, 4, 3), (4,), (4,))
case("instance_norm", lambda x, w, b: wg.instance_norm(x, weight=w, bias=b), (2, 2, 3), (2,), (2,))
case(
    "batch_norm",
    lambda x, m, v, w, b: wg.batch_norm(x, m, v, w, b),
    (3, 2, 2),
    (2,),
    (2,),
    (2,),
    (2,),
    low=0.3,
)
case(
    "batch_norm in training",
    lambda x, w, b: wg.batch_norm(x, None, None, w, b, training=True),
    (3, 2, 2),
    (2,),
    (2,),
)
case(
    "batch_norm_training",
    lambda x, m, v: wg.concat(
        [wg.reshape(each, (-1,)) for each in wg.batch_norm_training(x, m, v) if each is not None]
    ),
    *((3, 2, 2), (2,), (2,)),
    low=0.3,
)
case("normalize", lambda x: wg.normalize(x, axis=1), (3, 4))

# Losses
CLASSES = np.array([1, 0, 3], np.int32)
case("mse_loss", wg.mse_loss, (3, 4), (3, 4))
case("l1_loss", wg.l1_loss, (3, 4), (3, 4))
case("huber_loss", lambda a, b: wg.huber_loss(a, b, delta=0.7), (3, 4), (3, 4))
case("smooth_l1_loss", lambda a, b: wg.smooth_l1_loss(a, b, beta=0.7), (3, 4), (3, 4))
case("cross_entropy", wg.cross_entropy, (3, 4), more=[CLASSES])
case(
    "cross_entropy, smoothed and weighted",
    lambda x, w, i: wg.cross_entropy(x, i, w, label_smoothing=0.2, ignore_index=0),
    (3, 4),
    (4,),
    low=0.2,
    more=[CLASSES],
)
case("cross_entropy of probabilities", lambda x, p: wg.cross_entropy(x, wg.softmax(p)), (3, 4), (3, 4))
case("cross_entropy of images", lambda x, i: wg.cross_entropy(x, i), (2, 3, 3), more=[SQUARE])
case("nll_loss", wg.nll_loss, (3, 4), more=[CLASSES])
case("kl_div", lambda a, b: wg.kl_div(a, b), (3, 4), (3, 4), low=0.1, high=0.9)
case("kl_div of logarithms", lambda a, b: wg.kl_div(a, b, log_target=True, reduction="sum"), (3, 4), (3, 4))
case("binary_cross_entropy", wg.binary_cross_entropy, (3, 4), (3, 4), low=0.05, high=0.95)
case("binary_cross_entropy_with_logits", wg.binary_cross_entropy_with_logits, (3, 4), (3, 4))
case(
    "binary_cross_entropy_with_logits, weighted",
    lambda x, y, p: wg.binary_cross_entropy_with_logits(x, y, pos_weight=p),
    (3, 4),
    (3, 4),
    (4,),
    low=0.1,
)

# Convolution, pooling, windows
case("conv1d", lambda x, w, b: wg.conv1d(x, w, b, padding=1), (1, 2, 5), (2, 2, 3), (2,))
case("conv2d", lambda x, w, b: wg.conv2d(x, w, b, padding=1), (1, 2, 4, 4), (2, 2, 3, 3), (2,))
case("conv2d, strided", lambda x, w: wg.conv2d(x, w, stride=2, padding=1), (1, 2, 5, 5), (3, 2, 3, 3))
case("conv2d, dilated", lambda x, w: wg.conv2d(x, w, dilation=2), (1, 1, 5, 6), (2, 1, 2, 2))
case("conv2d, grouped", lambda x, w: wg.conv2d(x, w, groups=2, stride=(1, 2)), (1, 4, 3, 4), (4, 2, 2, 2))
case("conv2d, depthwise", lambda x, w: wg.conv2d(x, w, groups=3, padding=1), (1, 3, 3, 3), (3, 1, 3, 3))
case("conv2d, of one tap", lambda x, w: wg.conv2d(x, w), (2, 3, 2, 2), (4, 3, 1, 1))
case("conv3d", lambda x, w: wg.conv3d(x, w), (1, 1, 3, 3, 3), (2, 1, 2, 2, 2))
case("conv_transpose1d", lambda x, w: wg.conv_transpose1d(x, w, stride=2), (1, 2, 3), (2, 2, 3))
case(
    "conv_transpose2d",
    lambda x, w, b: wg.conv_transpose2d(x, w, b, stride=2, padding=1, output_padding=1),
    (1, 2, 3, 3),
    (2, 2, 3, 3),
    (2,),
)
case(
    "conv_transpose2d, grouped and dilated",
    lambda x, w: wg.conv_transpose2d(x, w, groups=2, dilation=2),
    (1, 2, 3, 2),
    (2, 2, 2, 2),
)
case("conv_transpose3d", lambda x, w: wg.conv_transpose3d(x, w, stride=2), (1, 1, 2, 1, 2), (1, 2, 2, 2, 2))
case("avg_pool2d", lambda x: wg.avg_pool2d(x, 2), (1, 2, 4, 4))
case("avg_pool2d, overlapping and padded", lambda x: wg.avg_pool2d(x, 3, 2, 1), (1, 1, 5, 5))
case(
    "avg_pool2d without its padding",
    lambda x: wg.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
    (1, 1, 4, 5),
)
case("max_pool1d", lambda x: wg.max_pool1d(x, 2), (1, 2, 6))
case("max_pool2d", lambda x: wg.max_pool2d(x, 2), (1, 2, 4, 4))
case("max_pool2d, overlapping and padded", lambda x: wg.max_pool2d(x, 3, 2, 1), (1, 1, 5, 5))
case("max_pool2d, dilated, rounded up", lambda x: wg.max_pool2d(x, 2, 2, 0, 2, True), (1, 1, 5, 6))
case(
    "max_unpool2d",
    lambda x, i: wg.max_unpool2d(x, i, 2),
    (1, 1, 2, 2),
    more=[np.array([[[[0, 3], [13, 10]]]], np.int32)],
)
case("avg_pool1d", lambda x: wg.avg_pool1d(x, 3, 1), (1, 2, 6))
case("avg_pool3d", lambda x: wg.avg_pool3d(x, 2), (1, 1, 2, 2, 4))
case("max_pool3d", lambda x: wg.max_pool3d(x, 2), (1, 1, 2, 2, 4))
case("max_unpool1d", lambda x, i: wg.max_unpool1d(x, i, 2), (1, 1, 2), more=[np.array([[[1, 2]]], np.int32)])
case(
    "max_unpool3d",
    lambda x, i: wg.max_unpool3d(x, i, 2),
    (1, 1, 1, 1, 2),
    more=[np.array([[[[[5, 2]]]]], np.int32)],
)
case("adaptive_avg_pool1d", lambda x: wg.adaptive_avg_pool1d(x, 3), (1, 2, 5))
case("adaptive_max_pool1d", lambda x: wg.adaptive_max_pool1d(x, 3), (1, 2, 5))
case("adaptive_avg_pool3d", lambda x: wg.adaptive_avg_pool3d(x, 2), (1, 1, 2, 3, 2))
case("adaptive_max_pool3d", lambda x: wg.adaptive_max_pool3d(x, 2), (1, 1, 2, 3, 2))
case("adaptive_avg_pool2d", lambda x: wg.adaptive_avg_pool2d(x, (2, 3)), (1, 1, 5, 4))
case("adaptive_max_pool2d", lambda x: wg.adaptive_max_pool2d(x, (2, 3)), (1, 1, 5, 4))
case("unfold", lambda x: wg.unfold(x, 2, stride=1, padding=1), (1, 2, 3, 3))
case("fold", lambda x: wg.fold(x, (3, 3), 2), (1, 4, 4))
case("interpolate, nearest", lambda x: wg.interpolate(x, scale_factor=2), (1, 2, 2, 3))
case("interpolate, linear", lambda x: wg.interpolate(x, size=7, mode="linear"), (1, 2, 4))
case("interpolate, bilinear", lambda x: wg.interpolate(x, size=(5, 4), mode="bilinear"), (1, 1, 3, 3))
case(
    "interpolate, bicubic",
    lambda x: wg.interpolate(x, size=(5, 4), mode="bicubic", align_corners=True),
    (1, 1, 3, 3),
)

# Attention and positions
attention = wg.scaled_dot_product_attention
SEEN = np.array([[True, False, True, True], [True, True, False, True], [False, False, False, False]])
case("attention", attention, (2, 3, 2), (2, 4, 2), (2, 4, 3))
case("attention, masked", lambda q, k, v, m: attention(q, k, v, m), (3, 2), (4, 2), (4, 3), more=[SEEN])
case(
    "attention with a learnt bias",
    lambda q, k, v, b: attention(q, k, v, b),
    *((2, 3, 2), (2, 4, 2), (2, 4, 3), (1, 3, 4)),
)
case("attention, causal", lambda q, k, v: attention(q, k, v, is_causal=True, scale=0.4), *((4, 2),) * 3)
case(
    "attention of shared heads",
    lambda q, k, v: attention(q, k, v, enable_gqa=True),
    *((1, 4, 2, 2), (1, 2, 3, 2), (1, 2, 3, 2)),
)
case("attention in a window", lambda q, k, v: attention(q, k, v, window=2), *((1, 5, 2),) * 3)
case(
    "attention up to a length",
    lambda q, k, v: attention(q, k, v, is_causal=True, length=3),
    *((2, 2), (5, 2), (5, 2)),
)
case(
    "attention of large heads",
    lambda q, k, v: attention(q, k, v),
    (2, 300),
    (3, 300),
    (3, 2),
    low=-0.3,
    high=0.3,
)
case("rotary_embedding", lambda x: wg.rotary_embedding(x, offset=2), (1, 3, 4))
case("rotary_embedding, interleaved", lambda x: wg.rotary_embedding(x, interleaved=True, dims=2), (3, 4))
case("rotary_angles", lambda p: wg.rotary_angles(p, 4).astype(p.dtype), (3,), low=0.5)
case("apply_rotary", lambda x, a: wg.apply_rotary(x, a.cos(), a.sin()), (3, 4), (3, 2))
QUANTISED = {
    each: wg.quantise(wg.asarray(values("q", ((2, 32),), -1, 1)[0], device="cpu"), each)
    for each in ("Q8_0", "Q4_0")
}
case("x @ quantised.T", lambda x: x @ QUANTISED["Q8_0"].T, (2, 32))
case("x @ quantised", lambda x: x @ QUANTISED["Q4_0"], (3, 2))
case("quantised_linear", lambda x, b: wg.quantised_linear(x, QUANTISED["Q4_0"], b), (2, 32), (2,))

# Complex numbers, by their parts


def _parts_of_a_product(x: wg.Tensor, y: wg.Tensor) -> wg.Tensor:
    numbers = wg.complex(x, y)
    product = numbers * wg.exp(numbers) / (numbers + 2j)
    return wg.real(product) * 3 + wg.imag(product) + wg.abs(wg.conj(product))


case("numbers of parts, and their parts", _parts_of_a_product, (3, 2), (3, 2), low=0.3)
case(
    "pairs as numbers, and back",
    lambda x, y: wg.view_as_real(wg.view_as_complex(x) * wg.view_as_complex(y)),
    (3, 2),
    (2,),
)

# Cases that have no slope at some ties: what they have there is in kinks.py
KINKED = frozenset(
    (
        *("relu", "relu6", "selu", "hardsigmoid", "hardswish", "softshrink", "hardshrink", "prelu"),
        *("threshold", "leaky_relu", "hardtanh", "softplus with beta", "clip", "clip by tensors", "copysign"),
        *("remainder", "masked logarithm", "l1_loss", "norm of order 1", "norm of order inf"),
        *(f"{each}{axes}" for each in ("max", "min") for axes in ("", " of an axis", " of two axes")),
        *("max pooled by reshape", "sort", "sort of the first axis, falling", "topk", "least of topk"),
        *("median by sorting", "gather of argmax", "cummax", "cummax of the first axis", "cummin"),
        *("cummin of the first axis", "index_max", "index_min", "scatter_max", "scatter_min"),
        *("max_pool1d", "max_pool2d", "max_pool2d, overlapping and padded"),
        *("max_pool2d, dilated, rounded up", "max_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d"),
        "adaptive_max_pool3d",
    )
)
