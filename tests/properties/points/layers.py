"""Layers, windows, attention and products, where another formula gives the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import webgrad as wg
from tests.properties.helpers import LEAST, Array, wide
from tests.properties.points.drawer import Cases, Points

__all__ = ["attention", "norms", "products", "windows"]


def norms(p: Points) -> Cases:
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


def windows(p: Points) -> Cases:
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
    yield p.case(
        f"einsum {text}", wg.einsum(text, p.tensor(a), p.tensor(b)), np.einsum(text, a, b), slack=LEAST
    )
    c, d = (p.random.integers(-3, 4, shape).astype(np.float32) for shape in ((4, 1), (4, 5)))
    yield p.case("einsum of 1", wg.einsum("ij,ij->j", p.tensor(c), p.tensor(d)), (c * d).sum(0), slack=LEAST)
    apart = [p.tensor(np.ones(size, np.float32)) for size in p.random.permutation((1, 3, 4))]
    try:
        wg.einsum("i,i,i->i", *apart)
        said = "nothing"
    except wg.ShapeError as error:
        said = str(error)
    assert "has size" in said, f"einsum of sizes 1, 3 and 4 says {said}"
    e, f = (p.random.integers(-3, 4, shape).astype(np.float32) for shape in ((3, 2, 4), (2, 4, 5)))
    found = wg.einsum("...i,...ik->...k", p.tensor(e), p.tensor(f))
    yield p.case("einsum of ...", found, np.einsum("...i,...ik->...k", e, f), slack=LEAST)


def attention(p: Points) -> Cases:
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


def products(p: Points) -> Cases:
    """Of small integers, exact in any order; sizes of whole tiles and beside them."""
    rows, inner, columns = (p.one((1, 3, 16, 31, 64, 70, 128)) for _ in range(3))
    batch = p.one(((), (), (2,)))
    a = p.random.integers(-3, 4, (*batch, rows, inner)).astype(np.float32)
    b = p.random.integers(-3, 4, (inner, columns)).astype(np.float32)
    label = f"product of {a.shape} and {b.shape}"
    yield p.case(label, p.tensor(a) @ p.tensor(b), a @ b, slack=LEAST)
    turned = np.ascontiguousarray(b.T)
    yield p.case(f"{label}, transposed", p.tensor(a) @ p.tensor(turned).T, a @ b, slack=LEAST)
