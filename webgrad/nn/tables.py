"""Rows of tables and products of two inputs: the functions behind `Embedding` and `Bilinear`.

In: tensors. Out: tensors, lazily; PyTorch's names and arguments.
"""

from __future__ import annotations

import webgrad as wg

from .checks import check_tensor

__all__ = ["bilinear", "embedding"]


@wg.pure
def embedding(x: wg.Tensor, weight: wg.Tensor, padding_idx: int | None = None) -> wg.Tensor:
    """The rows of a weight (rows, features) at integers x; the row `padding_idx` gets no gradient.

    >>> wg.nn.functional.embedding(wg.asarray([2, 0]), wg.eye(3)).tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """
    if weight.ndim != 2:
        raise wg.ShapeError(f"embedding: the weight is a matrix (rows, features), not {weight.shape}")
    check_tensor("embedding", x)
    if x.dtype.kind not in "iu":
        raise wg.DTypeError(f"embedding takes integers, rows of its weight, not {x.dtype.name}")
    rows = wg.take(weight, x, axis=0)
    if padding_idx is None:
        return rows
    padding = (x == padding_idx % weight.shape[0]).reshape((*x.shape, 1))
    return wg.where(padding, rows.detach(), rows)


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
