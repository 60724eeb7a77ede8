"""Functions of tensors against torch's: results and gradients of all floating inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import webgrad as wg
import webgrad.nn.functional as F
from tests.torch.checking import Input, bools, classes, compare, distinct, normal, torch, uniform

TF = torch.nn.functional
Case = tuple[Callable[..., Any], Callable[..., Any], tuple[Input, ...]]


def case(ours: Callable[..., Any], theirs: Callable[..., Any], *inputs: Input) -> Case:
    """A row of the table: the same in webgrad and in torch."""
    return ours, theirs, inputs


def same(name: str, *inputs: Input) -> Case:
    """A function that has one name and one order of arguments."""
    return getattr(wg, name), getattr(torch, name), inputs


def both(function: Callable[..., Any], *inputs: Input) -> Case:
    """Of methods and operators that both kinds of tensors have."""
    return function, function, inputs


APART, POSITIVE, BETWEEN = distinct(4, 6), uniform(0.3, 3.0, 4, 6), uniform(-0.9, 0.9, 4, 6)
WORDS = [
    "sin",
    "cos",
    "tan",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "atan",
    "exp",
    "expm1",
    "erf",
    "abs",
    "square",
    "sigmoid",
    "floor",
    "ceil",
    "round",
    "trunc",
    "sign",
]
MAPS = {name: same(name, APART) for name in WORDS}
MAPS |= {
    name: same(name, POSITIVE)
    for name in ["log", "log2", "log10", "log1p", "sqrt", "rsqrt", "reciprocal"]
    if hasattr(wg, name)
}
MAPS |= {name: same(name, BETWEEN) for name in ["asin", "acos", "atanh"]}
MAPS |= {
    "acosh": same("acosh", uniform(1.2, 3.0, 4, 6)),
    "add, broadcast": both(lambda a, b: a + b, normal(4, 1, 6), normal(5, 1)),
    "subtract, number": both(lambda a: 2.5 - a, normal(4, 6)),
    "multiply, broadcast": both(lambda a, b: a * b, normal(4, 6), normal(6)),
    "divide": both(lambda a, b: a / b, normal(4, 6), uniform(0.5, 2.0, 4, 1)),
    "divide, number": both(lambda a: 3.0 / a, POSITIVE),
    "power": both(lambda a, b: a**b, POSITIVE, normal(4, 6)),
    "power, number": both(lambda a: a**3, normal(4, 6)),
    "power, base number": both(lambda a: 2.0**a, normal(4, 6)),
    "remainder": both(lambda a: a % 0.7, APART),
    "atan2": same("atan2", normal(4, 6), normal(4, 6)),
    "hypot": same("hypot", normal(4, 6), normal(4, 6)),
    "maximum": same("maximum", APART, normal(4, 6)),
    "minimum": same("minimum", APART, normal(4, 6)),
    "maximum, ties": both(
        lambda a: wg.maximum(a, a * 1) if isinstance(a, wg.Tensor) else torch.maximum(a, a * 1), APART
    ),
    "logaddexp": same("logaddexp", normal(4, 6), normal(4, 6)),
    "clip": case(lambda a: wg.clip(a, -0.5, 0.7), lambda a: torch.clip(a, -0.5, 0.7), APART),
    "where": same("where", bools(4, 6), normal(4, 6), normal(6)),
}

REDUCTIONS = {
    "sum": same("sum", APART),
    "sum, axis": case(lambda a: wg.sum(a, axis=0), lambda a: a.sum(0), normal(4, 6, 3)),
    "sum, axes, kept": case(
        lambda a: wg.sum(a, axis=(0, 2), keepdims=True),
        lambda a: a.sum((0, 2), keepdim=True),
        normal(4, 6, 3),
    ),
    "mean": case(lambda a: wg.mean(a, axis=1), lambda a: a.mean(1), normal(4, 6, 3)),
    "var": case(lambda a: wg.var(a, axis=1, correction=1), lambda a: a.var(1), normal(4, 6)),
    "std": case(lambda a: wg.std(a, axis=0, correction=0), lambda a: a.std(0, correction=0), normal(4, 6)),
    "max": same("max", APART),
    "max, axis": case(lambda a: wg.max(a, axis=1), lambda a: a.max(1).values, APART),
    "max, ties shared": case(
        lambda a: wg.max(a * 0 + 1, axis=1) * wg.sum(a), lambda a: torch.amax(a * 0 + 1, 1) * a.sum(), APART
    ),
    "min, axes": case(lambda a: wg.min(a, axis=(0, 2)), lambda a: torch.amin(a, (0, 2)), distinct(4, 6, 3)),
    "prod": same("prod", uniform(0.5, 1.5, 4, 3)),
    "prod, axis": case(lambda a: wg.prod(a, axis=1), lambda a: a.prod(1), uniform(-1.5, 1.5, 4, 6)),
    "logsumexp": case(lambda a: wg.logsumexp(a, axis=1), lambda a: torch.logsumexp(a, 1), normal(4, 6)),
    "vector_norm": case(
        lambda a: wg.vector_norm(a, axis=1), lambda a: torch.linalg.vector_norm(a, 2, 1), normal(4, 6)
    ),
    "vector_norm, 1": case(
        lambda a: wg.vector_norm(a, axis=1, ord=1), lambda a: torch.linalg.vector_norm(a, 1, 1), APART
    ),
    "vector_norm, 3": case(
        lambda a: wg.vector_norm(a, axis=0, ord=3), lambda a: torch.linalg.vector_norm(a, 3, 0), APART
    ),
    "vector_norm, infinity": case(
        lambda a: wg.vector_norm(a, axis=0, ord=np.inf),
        lambda a: torch.linalg.vector_norm(a, float("inf"), 0),
        APART,
    ),
    "cumsum": case(lambda a: wg.cumsum(a, axis=1), lambda a: a.cumsum(1), normal(4, 6)),
    "cumsum, first axis": case(lambda a: wg.cumsum(a, axis=0), lambda a: a.cumsum(0), normal(70, 3)),
    "cumprod": case(lambda a: wg.cumprod(a, axis=1), lambda a: a.cumprod(1), uniform(0.5, 1.5, 4, 6)),
    "cummax": case(lambda a: wg.cummax(a, axis=1), lambda a: a.cummax(1).values, APART),
    "cummin": case(lambda a: wg.cummin(a, axis=0), lambda a: a.cummin(0).values, APART),
    "diff": case(lambda a: wg.diff(a, axis=1), lambda a: torch.diff(a, dim=1), normal(4, 6)),
    "softmax": case(lambda a: wg.softmax(a, axis=0), lambda a: a.softmax(0), normal(4, 6)),
    "log_softmax": case(lambda a: wg.log_softmax(a, axis=1), lambda a: a.log_softmax(1), normal(4, 6)),
}

ORDER = {
    "sort": case(lambda a: wg.sort(a, axis=1), lambda a: a.sort(1).values, APART),
    "sort, descending": case(
        lambda a: wg.sort(a, axis=0, descending=True), lambda a: a.sort(0, descending=True).values, APART
    ),
    "topk": case(lambda a: wg.topk(a, 3)[0], lambda a: torch.topk(a, 3).values, APART),
    "topk, places": case(lambda a: tuple(wg.topk(a, 2)), lambda a: tuple(torch.topk(a, 2)), APART),
    "argsort": case(lambda a: wg.argsort(a, axis=1), lambda a: a.argsort(1), APART),
    "argmax": case(lambda a: wg.argmax(a, axis=1), lambda a: a.argmax(1), APART),
}

PLACES = np.asarray([[0, 3, 3], [1, 0, 5], [2, 2, 2], [5, 4, 3]])
ROWS = [2, 0, 0, 3]
INDEXING = {
    "slice": both(lambda a: a[1:3, ::2], APART),
    "one row": both(lambda a: a[-1], APART),
    "list": both(lambda a: a[ROWS], APART),
    "two lists": both(lambda a: a[ROWS, [1, 5, 1, 0]], APART),
    "new axis": both(lambda a: a[:, None, 2], APART),
    "tensor": both(lambda a, index: a[index], APART, classes(4, 7)),
    "gather": case(
        lambda a: wg.take_along_axis(a, wg.asarray(PLACES.astype(np.int32)), axis=1),
        lambda a: torch.gather(a, 1, torch.tensor(PLACES)),
        APART,
    ),
    "take": case(
        lambda a, i: wg.take(a, i, axis=1), lambda a, i: torch.index_select(a, 1, i), APART, classes(6, 9)
    ),
    "index_add": case(
        lambda a, i, u: wg.index_add(a, i, u),
        lambda a, i, u: a.index_add(0, i, u),
        APART,
        classes(4, 5),
        normal(5, 6),
    ),
    "scatter_add": case(
        lambda a, u: wg.scatter_add(a, wg.asarray(PLACES.astype(np.int32)), u, axis=1),
        lambda a, u: a.scatter_add(1, torch.tensor(PLACES), u),
        APART,
        normal(4, 3),
    ),
    "scatter_set": case(
        lambda a, u: wg.scatter_set(a, wg.asarray(PLACES[1:2, :2].astype(np.int32)), u, axis=1),
        lambda a, u: a.scatter(1, torch.tensor(PLACES[1:2, :2]), u),
        normal(1, 6),
        normal(1, 2),
    ),
    "set in place": both(lambda a, u: _set(a, u), normal(4, 6), normal(2, 3)),
    "diagonal": case(lambda a: wg.diagonal(a, 1), lambda a: torch.diagonal(a, 1), APART),
    "tril": case(lambda a: wg.tril(a, -1), lambda a: torch.tril(a, -1), APART),
    "triu": case(lambda a: wg.triu(a, 1), lambda a: torch.triu(a, 1), APART),
}


def _set(a: Any, updates: Any) -> Any:
    made = a * 2
    made[1:3, 0:3] = updates
    return made * a


def unpooled(library: Any, x: Any) -> Any:
    values, places = library.max_pool2d(x, 2, return_indices=True)
    return library.max_unpool2d(values, places, 2)


SHAPES = {
    "reshape": both(lambda a: a.reshape((3, 8)), APART),
    "permute": both(lambda a: a.permute(2, 0, 1) * 2, normal(2, 3, 4)),
    "expand": case(lambda a: wg.broadcast_to(a, (5, 4, 6)), lambda a: a.expand(5, 4, 6), normal(4, 1)),
    "concat": case(
        lambda a, b: wg.concat([a, b, a], 1), lambda a, b: torch.cat([a, b, a], 1), APART, normal(4, 2)
    ),
    "stack": case(lambda a, b: wg.stack([a, b], 1), lambda a, b: torch.stack([a, b], 1), APART, normal(4, 6)),
    "split": case(lambda a: tuple(wg.split(a, 3, axis=1)), lambda a: a.split(2, 1), APART),
    "unstack": case(lambda a: wg.unstack(a), lambda a: a.unbind(0), APART),
    "flip": case(lambda a: wg.flip(a, axis=1), lambda a: a.flip(1), APART),
    "roll": case(lambda a: wg.roll(a, 2, axis=1), lambda a: a.roll(2, 1), APART),
    "repeat": case(lambda a: wg.repeat(a, 3, axis=1), lambda a: a.repeat_interleave(3, 1), APART),
    "tile": case(lambda a: wg.tile(a, (2, 3)), lambda a: a.tile(2, 3), APART),
    "pad": case(lambda a: wg.pad(a, ((0, 1), (2, 0))), lambda a: TF.pad(a, (2, 0, 0, 1)), APART),
    "pad, reflect": case(
        lambda a: wg.pad(a, ((0, 0), (2, 1)), mode="reflect"),
        lambda a: TF.pad(a, (2, 1), mode="reflect"),
        APART,
    ),
    "astype": case(lambda a: a.astype(wg.float16).astype(wg.float32), lambda a: a.half().float(), APART),
}

PRODUCTS = {
    "matmul": both(lambda a, b: a @ b, normal(4, 6), normal(6, 5)),
    "matmul, vector": both(lambda a, b: a @ b, normal(4, 6), normal(6)),
    "matmul, batches": both(lambda a, b: a @ b, normal(3, 4, 6), normal(3, 6, 5)),
    "matmul, broadcast": both(lambda a, b: a @ b, normal(2, 1, 4, 6), normal(3, 6, 5)),
    "matmul, transposed": both(lambda a, b: a.T @ b.T, normal(6, 4), normal(5, 6)),
    "matmul, itself": both(lambda a: a @ a, normal(5, 5)),
    "outer": same("outer", normal(4), normal(6)),
    "tensordot": case(
        lambda a, b: wg.tensordot(a, b, axes=1),
        lambda a, b: torch.tensordot(a, b, dims=1),
        normal(3, 4),
        normal(4, 5),
    ),
    "einsum, trace": case(lambda a: wg.einsum("ii", a), lambda a: torch.einsum("ii", a), normal(4, 4)),
    "einsum, batches": case(
        lambda a, b: wg.einsum("bij,bkj->bik", a, b),
        lambda a, b: torch.einsum("bij,bkj->bik", a, b),
        normal(2, 3, 4),
        normal(2, 5, 4),
    ),
    "einsum, three": case(
        lambda a, b, c: wg.einsum("ij,jk,kl->il", a, b, c),
        lambda a, b, c: torch.einsum("ij,jk,kl->il", a, b, c),
        normal(2, 3),
        normal(3, 4),
        normal(4, 5),
    ),
    "einsum, sums": case(
        lambda a, b: wg.einsum("abc,cd->bd", a, b),
        lambda a, b: torch.einsum("abc,cd->bd", a, b),
        normal(2, 3, 4),
        normal(4, 5),
    ),
    "linear": case(F.linear, TF.linear, normal(4, 6), normal(5, 6), normal(5)),
}

HEADS = (normal(2, 3, 5, 4), normal(2, 3, 7, 4), normal(2, 3, 7, 6))
FUNCTIONAL = {
    "attention": case(F.scaled_dot_product_attention, TF.scaled_dot_product_attention, *HEADS),
    "attention, causal": case(
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        lambda q, k, v: TF.scaled_dot_product_attention(q, k, v, is_causal=True),
        *HEADS,
    ),
    "attention, hidden": case(
        lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, ~m, scale=0.7),
        lambda q, k, v, m: TF.scaled_dot_product_attention(q, k, v, ~m, scale=0.7),
        *HEADS,
        bools(5, 7),
    ),
    "attention, added mask": case(
        F.scaled_dot_product_attention, TF.scaled_dot_product_attention, *HEADS, normal(2, 3, 5, 7)
    ),
    "attention, mask for all": case(
        F.scaled_dot_product_attention, TF.scaled_dot_product_attention, *HEADS, normal(5, 7)
    ),
    "attention, shared heads": case(
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True),
        lambda q, k, v: TF.scaled_dot_product_attention(q, k, v, enable_gqa=True),
        normal(2, 6, 5, 4),
        normal(2, 2, 7, 4),
        normal(2, 2, 7, 4),
    ),
    "attention, wide heads": case(
        F.scaled_dot_product_attention,
        TF.scaled_dot_product_attention,
        normal(1, 2, 5, 300),
        normal(1, 2, 6, 300),
        normal(1, 2, 6, 300),
    ),
    "conv2d": case(
        lambda x, w, b: F.conv2d(x, w, b, stride=(2, 1), padding=(1, 2), dilation=(1, 2), groups=2),
        lambda x, w, b: TF.conv2d(x, w, b, stride=(2, 1), padding=(1, 2), dilation=(1, 2), groups=2),
        normal(2, 4, 9, 8),
        normal(6, 2, 3, 3),
        normal(6),
    ),
    "conv1d": case(F.conv1d, TF.conv1d, normal(2, 3, 9), normal(4, 3, 3), normal(4)),
    "conv3d": case(F.conv3d, TF.conv3d, normal(1, 2, 4, 5, 4), normal(3, 2, 2, 3, 2), normal(3)),
    "conv_transpose2d": case(
        lambda x, w: F.conv_transpose2d(x, w, stride=3, padding=1),
        lambda x, w: TF.conv_transpose2d(x, w, stride=3, padding=1),
        normal(2, 3, 4, 5),
        normal(3, 2, 4, 3),
    ),
    "avg_pool2d, ceil": case(
        lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True),
        lambda x: TF.avg_pool2d(x, 3, 2, 1, ceil_mode=True),
        normal(2, 3, 8, 7),
    ),
    "unfold": case(
        lambda x: F.unfold(x, (2, 3), padding=1),
        lambda x: TF.unfold(x, (2, 3), padding=1),
        normal(2, 3, 5, 6),
    ),
    "fold": case(
        lambda x: F.fold(x, (4, 5), (2, 2), padding=1),
        lambda x: TF.fold(x, (4, 5), (2, 2), padding=1),
        normal(2, 12, 30),
    ),
    **{
        f"interpolate, {mode}{', corners' if corners else ''}": case(
            lambda x, mode=mode, corners=corners: F.interpolate(
                x, size=(9, 4), mode=mode, align_corners=corners
            ),
            lambda x, mode=mode, corners=corners: TF.interpolate(
                x, size=(9, 4), mode=mode, align_corners=corners
            ),
            normal(2, 3, 5, 6),
        )
        for mode, corners in (
            ("nearest", None),
            ("nearest-exact", None),
            ("bilinear", False),
            ("bilinear", True),
            ("bicubic", False),
        )
    },
    "interpolate, factor": case(
        lambda x: F.interpolate(x, scale_factor=1.7, mode="linear"),
        lambda x: TF.interpolate(x, scale_factor=1.7, mode="linear"),
        normal(2, 3, 6),
    ),
    "batch_norm": case(
        lambda x, m, v, w, b: F.batch_norm(x, m, v, w, b),
        lambda x, m, v, w, b: TF.batch_norm(x, m, v, w, b),
        normal(4, 3, 5),
        normal(3, fixed=True),
        uniform(0.5, 2.0, 3, fixed=True),
        normal(3),
        normal(3),
    ),
    "layer_norm": case(
        lambda x, w, b: F.layer_norm(x, (6,), w, b),
        lambda x, w, b: TF.layer_norm(x, (6,), w, b),
        normal(4, 6),
        normal(6),
        normal(6),
    ),
    "rms_norm": case(
        lambda x, w: F.rms_norm(x, (6,), w), lambda x, w: TF.rms_norm(x, (6,), w), normal(4, 6), normal(6)
    ),
    "normalize": case(lambda x: F.normalize(x), lambda x: TF.normalize(x), normal(4, 6)),
    "normalize, 3": case(
        lambda x: F.normalize(x, 3.0, 0), lambda x: TF.normalize(x, 3.0, 0), uniform(0.3, 2.0, 4, 6)
    ),
    "cross_entropy, weights": case(
        lambda x, t, w: F.cross_entropy(x, t, weight=w),
        lambda x, t, w: TF.cross_entropy(x, t, weight=w),
        normal(6, 5),
        classes(5, 6),
        uniform(0.5, 2.0, 5, fixed=True),
    ),
    "cross_entropy, weights and smoothing": case(
        lambda x, t, w: F.cross_entropy(x, t, weight=w, label_smoothing=0.1, ignore_index=2),
        lambda x, t, w: TF.cross_entropy(x, t, weight=w, label_smoothing=0.1, ignore_index=2),
        normal(6, 5),
        classes(5, 6),
        uniform(0.5, 2.0, 5, fixed=True),
    ),
    "nll_loss, weights": case(
        lambda x, t, w: F.nll_loss(x, t, weight=w, reduction="none"),
        lambda x, t, w: TF.nll_loss(x, t, weight=w, reduction="none"),
        normal(6, 5),
        classes(5, 6),
        uniform(0.5, 2.0, 5, fixed=True),
    ),
    "binary_cross_entropy, weights": case(
        lambda x, t, w: F.binary_cross_entropy(x, t, weight=w),
        lambda x, t, w: TF.binary_cross_entropy(x, t, weight=w),
        uniform(0.1, 0.9, 6, 5),
        uniform(0, 1, 6, 5, fixed=True),
        uniform(0.5, 2.0, 5, fixed=True),
    ),
    "binary_cross_entropy_with_logits, pos_weight": case(
        lambda x, t, w: F.binary_cross_entropy_with_logits(x, t, pos_weight=w),
        lambda x, t, w: TF.binary_cross_entropy_with_logits(x, t, pos_weight=w),
        normal(6, 5),
        uniform(0, 1, 6, 5, fixed=True),
        uniform(0.5, 2.0, 5, fixed=True),
    ),
    "mse_loss, both": case(F.mse_loss, TF.mse_loss, normal(6, 5), normal(6, 5)),
    "smooth_l1_loss, both": case(F.smooth_l1_loss, TF.smooth_l1_loss, normal(6, 5), normal(6, 5)),
    "kl_div, both": case(
        lambda x, t: F.kl_div(x, t, reduction="sum"),
        lambda x, t: TF.kl_div(x, t, reduction="sum"),
        normal(6, 5),
        uniform(0.2, 1.0, 6, 5),
    ),
    "glu": case(lambda x: F.glu(x, 0), lambda x: TF.glu(x, 0), normal(4, 6)),
    "max_pool2d, places": case(
        lambda x: F.max_pool2d(x, 2, return_indices=True),
        lambda x: TF.max_pool2d(x, 2, return_indices=True),
        distinct(2, 3, 6, 4),
    ),
    "max_unpool2d": case(
        lambda x: unpooled(F, x),
        lambda x: unpooled(TF, x),
        distinct(2, 3, 6, 4),
    ),
}
TABLE = MAPS | REDUCTIONS | ORDER | INDEXING | SHAPES | PRODUCTS | FUNCTIONAL


@pytest.mark.parametrize("name", TABLE)
def test_it_is_torchs(name: str) -> None:
    ours, theirs, inputs = TABLE[name]
    compare(name, ours, theirs, inputs)


def second(library: Any, function: Callable[..., Any], x: Any, way: Any) -> Any:
    """The gradient of (gradient · way)."""
    first = function(x)
    if library is torch:
        (gradient,) = torch.autograd.grad(first.sum(), x, create_graph=True)
        return torch.autograd.grad((gradient * way).sum(), x)[0]
    return wg.grad(lambda x: wg.sum(wg.grad(lambda x: wg.sum(function(x)))(x) * way))(x)


SECOND: dict[str, Callable[[Any], Any]] = {
    "cube": lambda x: x**3,
    "softmax": lambda x: (x.softmax(-1) if isinstance(x, torch.Tensor) else wg.softmax(x)) * x,
    "tanh of a product": lambda x: (x @ x.T).tanh() if isinstance(x, torch.Tensor) else wg.tanh(x @ x.T),
    "layer norm": lambda x: (
        TF.layer_norm(x, (6,)) ** 3 if isinstance(x, torch.Tensor) else F.layer_norm(x, (6,)) ** 3
    ),
    "gelu": lambda x: TF.gelu(x) if isinstance(x, torch.Tensor) else F.gelu(x),
}


@pytest.mark.parametrize("name", SECOND)
def test_second_derivatives_are_torchs(name: str) -> None:
    random = np.random.default_rng(0)
    x, way = (random.standard_normal((4, 6)).astype(np.float32) for _ in range(2))
    found = second(wg, SECOND[name], wg.asarray(x), wg.asarray(way)).numpy()
    wanted = second(torch, SECOND[name], torch.tensor(x, requires_grad=True), torch.tensor(way)).numpy()
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4 * np.abs(wanted).max())
