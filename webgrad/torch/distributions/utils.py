"""What distributions share: parameters of one shape, chances and their logits, values computed once.

In: numbers and tensors. Out: tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import webgrad as wg
import webgrad.torch as torch

from ..defaults import integer_of
from ..random import source

__all__ = [
    "broadcast_all", "clamp_probs", "draw", "euler_constant", "lazy_property", "logits_to_probs",
    "picked", "probs_to_logits", "rules", "sum_rightmost", "tril_matrix_to_vec", "unit", "vec_to_tril_matrix",
]  # fmt: skip

euler_constant = 0.57721566490153286060


def broadcast_all(*values: Any) -> tuple[Any, ...]:
    """Numbers and tensors as tensors of one shape; numbers take the dtype and the device of the tensors."""
    tensors = [each for each in values if isinstance(each, torch.Tensor)]
    for each in values:
        if not isinstance(each, torch.Tensor | int | float):
            raise ValueError(
                "Input arguments must all be instances of Number, torch.Tensor or objects implementing "
                "__torch_function__."
            )
    options: dict[str, Any] = {"dtype": torch.get_default_dtype()}
    if tensors:
        options = {"dtype": tensors[0].dtype, "device": tensors[0].device}
    made = [each if isinstance(each, torch.Tensor) else torch.tensor(each, **options) for each in values]
    return tuple(torch.broadcast_tensors(*made))


class lazy_property:
    """A property that is computed when it is first asked for, and kept."""

    def __init__(self, compute: Callable[[Any], Any]) -> None:
        self.compute = compute
        self.__doc__ = compute.__doc__
        self.name = compute.__name__

    def __get__(self, instance: Any, kind: Any = None) -> Any:
        if instance is None:
            return self
        value = instance.__dict__[self.name] = self.compute(instance)
        return value


def rules(**constraints: Any) -> dict[str, Any]:
    """The constraints of a distribution's parameters, by their names."""
    return constraints


def clamp_probs(probs: Any) -> Any:
    """Chances that are neither 0 nor 1."""
    least = torch.finfo(probs.dtype).eps
    return torch.clamp(probs, min=least, max=1 - least)


def logits_to_probs(logits: Any, is_binary: bool = False) -> Any:
    """Chances of logits: of one event each, or along the last dimension of one of several."""
    return torch.sigmoid(logits) if is_binary else torch.softmax(logits, -1)


def probs_to_logits(probs: Any, is_binary: bool = False) -> Any:
    """Logits of chances."""
    return torch.adopt(_logits(probs, is_binary))


@wg.pure
def _logits(probs: wg.Tensor, is_binary: bool) -> wg.Tensor:
    inner = clamp_probs(probs)
    return wg.log(inner) - wg.log1p(-inner) if is_binary else wg.log(inner)


@wg.pure
def picked(rows: wg.Tensor, index: wg.Tensor) -> wg.Tensor:
    """Of each row, along the last dimension, the element at an index; both are broadcast."""
    shape = wg.broadcast_shapes(tuple(index.shape), tuple(rows.shape[:-1]))
    at = wg.expand(wg.unsqueeze(index.astype(integer_of(index.device)), -1), (*shape, 1))
    return wg.squeeze(wg.gather(wg.expand(rows, (*shape, rows.shape[-1])), -1, at), -1)


def draw(kind: str, *parameters: Any) -> Any:
    """Numbers of a distribution of `wg.random`, for parameters of the whole shape."""
    return torch.adopt(getattr(source(None), kind)(*parameters))


def unit(shape: Any, like: Any) -> Any:
    """Uniform numbers between 0 and 1, without both."""
    least = torch.finfo(like.dtype).eps / 4
    return torch.rand(shape, dtype=like.dtype, device=like.device).clamp(min=least)


def sum_rightmost(value: Any, dim: int) -> Any:
    """The sum over so many of the last dimensions."""
    return value.sum(tuple(range(-dim, 0))) if dim else value


def vec_to_tril_matrix(vec: Any, diag: int = 0) -> Any:
    """Lower triangular matrices of their elements in order."""
    count = vec.shape[-1]
    size = round((-1 - 2 * diag + ((1 + 2 * diag) ** 2 + 8 * count + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2)
    matrix = torch.zeros(*vec.shape[:-1], size, size, dtype=vec.dtype, device=vec.device)
    rows, columns = torch.tril_indices(size, size, diag, device=vec.device)
    matrix[..., rows, columns] = vec
    return matrix


def tril_matrix_to_vec(mat: Any, diag: int = 0) -> Any:
    """The elements of lower triangular matrices in order."""
    rows, columns = torch.tril_indices(mat.shape[-1], mat.shape[-1], diag, device=mat.device)
    return mat[..., rows, columns]
