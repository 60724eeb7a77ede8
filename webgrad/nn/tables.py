"""Rows of tables and products of two inputs: the functions behind `Embedding`, `EmbeddingBag`, `Bilinear`.

In: tensors. Out: tensors, lazily; PyTorch's names and arguments.
"""

from __future__ import annotations

import math

import webgrad as wg

from .checks import check_tensor

__all__ = ["bilinear", "embedding", "embedding_bag"]


@wg.pure
def embedding(
    x: wg.Tensor,
    weight: wg.Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
) -> wg.Tensor:
    """The rows of a weight (rows, features) at integers x; the row `padding_idx` gets no gradient.

    With `max_norm` rows that are read and longer than it are made shorter, in the weight itself. With
    `scale_grad_by_freq` a row's gradient is divided by how often the row occurs in x.

    >>> wg.nn.functional.embedding(wg.asarray([2, 0]), wg.eye(3)).tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """
    _check_table("embedding", x, weight)
    if max_norm is not None:
        _shorten(x, weight, float(max_norm), norm_type)
    rows = wg.take(weight, x, axis=0)
    if scale_grad_by_freq:
        rows = _by_frequency(rows, x, weight.shape[0])
    if padding_idx is None:
        return rows
    padding = (x == padding_idx % weight.shape[0]).reshape((*x.shape, 1))
    return wg.where(padding, rows.detach(), rows)


def _check_table(op: str, x: wg.Tensor, weight: wg.Tensor) -> None:
    if weight.ndim != 2:
        raise wg.ShapeError(f"{op}: the weight is a matrix (rows, features), not {weight.shape}")
    check_tensor(op, x)
    if x.dtype.kind not in "iu":
        raise wg.DTypeError(f"{op} takes integers, rows of its weight, not {x.dtype.name}")


def _shorten(x: wg.Tensor, weight: wg.Tensor, most: float, order: float) -> None:
    """Give the rows of a weight that x names at most a norm, in place."""
    with wg.no_grad():
        rows = weight.detach()
        norms = wg.vector_norm(rows, axis=-1, keepdims=True, ord=order)
        flat = x.reshape((-1,))
        read = wg.index_max(wg.zeros(weight.shape[0], dtype=wg.int32, device=weight.device), flat, 1) > 0
        longer = wg.unsqueeze(read, -1) & (norms > most)
        weight[...] = wg.where(longer, rows * (most / (norms + 1e-7)), rows)


def _by_frequency(rows: wg.Tensor, x: wg.Tensor, count: int) -> wg.Tensor:
    """The same rows, whose gradients are divided by how often each occurs."""
    flat = x.reshape((-1,))
    often = wg.index_add(wg.zeros(count, dtype=rows.dtype, device=rows.device), flat, 1.0)
    share = wg.unsqueeze(1.0 / wg.take(often, x, axis=0), -1)
    fixed = rows.detach()
    return fixed + (rows - fixed) * share


def embedding_bag(
    x: wg.Tensor,
    weight: wg.Tensor,
    offsets: wg.Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    per_sample_weights: wg.Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> wg.Tensor:
    """The sum, mean or maximum of the rows of a weight that each bag of integers names.

    The bags are the rows of x, or begin at `offsets` in an x of one axis. `per_sample_weights` weigh the rows
    of sums; entries that are `padding_idx` do not count. A bag without entries gives zeros.

    >>> x, starts = wg.asarray([0, 1, 1]), wg.asarray([0, 2])
    >>> wg.nn.functional.embedding_bag(x, wg.eye(2), starts, mode="sum").tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """
    op = "embedding_bag"
    _check_table(op, x, weight)
    if mode not in ("sum", "mean", "max"):
        raise wg.ArgumentError(f"{op}: mode must be one of 'sum', 'mean', 'max', not {mode!r}")
    if per_sample_weights is not None and (mode != "sum" or per_sample_weights.shape != x.shape):
        raise wg.ArgumentError(
            f"{op}: per_sample_weights are for mode='sum', one for each of {x.shape}, not "
            f"{per_sample_weights.shape} with mode={mode!r}"
        )
    if (x.ndim == 2) != (offsets is None) or x.ndim not in (1, 2):
        raise wg.ShapeError(f"{op} takes x (bags, entries), or x (entries,) and offsets, not {x.shape}")
    wide = weight.dtype.wide
    rows = embedding(x, weight, padding_idx, max_norm, norm_type, scale_grad_by_freq).astype(wide, copy=False)
    counted = wg.ones(x.shape, dtype=wg.bool, device=x.device)
    if padding_idx is not None:
        counted = x != padding_idx % weight.shape[0]
    if per_sample_weights is not None:
        rows = rows * wg.unsqueeze(per_sample_weights.astype(wide, copy=False), -1)
    if offsets is None:
        found = _folded(rows, counted, mode)
    else:
        bags = offsets[:-1] if include_last_offset else offsets
        found = _gathered(rows, counted, bags, mode)
    return found.astype(weight.dtype, copy=False)


def _folded(rows: wg.Tensor, counted: wg.Tensor, mode: str) -> wg.Tensor:
    """Bags that are one axis: (bags, entries, features) → (bags, features)."""
    mask = wg.unsqueeze(counted, -1)
    often = counted.astype(rows.dtype).sum(axis=1, keepdims=True)
    if mode == "max":
        if not rows.shape[1]:
            return rows.sum(axis=1)
        best = wg.argmax(wg.where(mask, rows.detach(), -math.inf), 1, keepdims=True)
        return wg.where(often > 0, wg.squeeze(wg.take_along_axis(rows, best, 1), 1), 0.0)
    total = wg.where(mask, rows, 0.0).sum(axis=1)
    return total if mode == "sum" else total / wg.maximum(often, 1.0)


def _gathered(rows: wg.Tensor, counted: wg.Tensor, starts: wg.Tensor, mode: str) -> wg.Tensor:
    """Bags one after the other: (entries, features) → (bags, features)."""
    entries, features = rows.shape
    bags = starts.shape[0]
    places = wg.arange(entries, dtype=starts.dtype, device=rows.device)
    bag = wg.searchsorted(starts, places, side="right") - 1
    bag = bag.astype(wg.int32, copy=False)
    zeros = wg.zeros((bags, features), dtype=rows.dtype, device=rows.device)
    mask = wg.unsqueeze(counted, -1)
    if mode != "max":
        total = wg.index_add(zeros, bag, wg.where(mask, rows, 0.0))
        often = wg.index_add(zeros[:, :1], bag, mask.astype(rows.dtype))
        return total if mode == "sum" else total / wg.maximum(often, 1.0)
    fixed = wg.where(mask, rows.detach(), -math.inf)
    largest = wg.index_max(zeros - math.inf, bag, fixed)
    # The first entry that is the largest of its bag is the one that the gradient goes to
    order = wg.where(fixed == wg.take(largest, bag, axis=0), wg.unsqueeze(places, -1), entries)
    first = wg.index_min(
        wg.full((bags, features), entries, dtype=order.dtype, device=rows.device), bag, order
    )
    found = wg.take_along_axis(rows, wg.clip(first, max=max(entries - 1, 0)), 0) if entries else zeros
    return wg.where(largest > -math.inf, found, 0.0)


def bilinear(x1: wg.Tensor, x2: wg.Tensor, weight: wg.Tensor, bias: wg.Tensor | None = None) -> wg.Tensor:
    """x1 (…, i), x2 (…, j) and a weight (o, i, j) → Σ x1ᵢ wₒᵢⱼ x2ⱼ (…, o), plus a bias (o,).

    >>> wg.nn.functional.bilinear(wg.ones((2, 3)), wg.ones((2, 4)), wg.ones((5, 3, 4)))[0, 0].item()
    12.0
    """
    if (
        weight.ndim != 3
        or x1.shape[:-1] != x2.shape[:-1]
        or (x1.shape[-1:], x2.shape[-1:])
        != (
            weight.shape[1:2],
            weight.shape[2:],
        )
    ):
        raise wg.ShapeError(
            f"bilinear of {x1.shape} and {x2.shape} with weight {weight.shape}: they are (…, i), (…, j), "
            "(o, i, j)"
        )
    outputs, first, second = weight.shape
    rows = x1 @ weight.permute(1, 0, 2).reshape(first, outputs * second)
    result = (rows.reshape(*x1.shape[:-1], outputs, second) * x2.reshape(*x2.shape[:-1], 1, second)).sum(
        axis=-1
    )
    return result if bias is None else result + bias
