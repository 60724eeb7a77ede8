"""What is done to gradients between backward and step: clipping, by their norm or one by one.

In: parameters. Out: their gradients, changed in place; everything is computed on the device and nothing read.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import webgrad as wg
from webgrad import Tensor

__all__ = ["clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"]


def _gradients(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    given = [parameters] if isinstance(parameters, Tensor) else parameters
    return [each.grad for each in given if each.grad is not None]


def get_total_norm(tensors: Iterable[Tensor], norm_type: float = 2.0) -> Tensor:
    """The norm of all elements of all tensors, as if they were one vector: a 0-d tensor.

    >>> wg.nn.utils.get_total_norm([wg.asarray([3.0]), wg.asarray([[0.0, 4.0]])]).item()
    5.0
    """
    found = [
        each.astype(wg.float32, copy=False) if each.dtype.is_packed else each for each in tensors if each.size
    ]
    order = float(norm_type)
    if order <= 0:
        raise wg.ArgumentError(f"the norm_type is {norm_type!r}, and must be above 0, or inf")
    if not found:
        return wg.zeros(())
    if order == math.inf:
        return wg.max(wg.stack([wg.max(wg.abs(each)) for each in found]))
    if order == 2.0:
        parts = [wg.view_as_real(each) if each.dtype.kind == "c" else each for each in found]
        return wg.sqrt(wg.sum(wg.stack([wg.sum(each * each) for each in parts])))
    return wg.sum(wg.stack([wg.sum(wg.abs(each) ** order) for each in found])) ** (1.0 / order)


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
) -> Tensor:
    """Scale all gradients by one factor, so that their norm is at most `max_norm`; gives the norm they had.

    `error_if_nonfinite` reads the norm, which captured functions cannot.

    >>> w = wg.zeros(2).requires_grad_()
    >>> w.grad = wg.asarray([3.0, 4.0])
    >>> wg.nn.utils.clip_grad_norm_([w], max_norm=1.0).item()
    5.0
    >>> [round(each, 4) for each in w.grad.tolist()]
    [0.6, 0.8]
    """
    if not max_norm >= 0:
        raise wg.ArgumentError(f"clip_grad_norm_: max_norm is {max_norm!r}, and must not be negative")
    with wg.no_grad():
        gradients = _gradients(parameters)
        norm = get_total_norm(gradients, norm_type)
        if error_if_nonfinite and not math.isfinite(_read(norm)):
            raise wg.ArgumentError(
                f"clip_grad_norm_: the norm of order {norm_type} of the gradients is {_read(norm)}, so they "
                "cannot be clipped; look for the loss that overflowed, or say error_if_nonfinite=False"
            )
        _scale(gradients, max_norm, norm)
    return norm


def _scale(gradients: Iterable[Tensor], max_norm: float, norm: Tensor) -> None:
    factor = wg.minimum(max_norm / (norm + 1e-6), 1.0)
    for each in gradients:
        each *= factor.astype(each.dtype, copy=False)


def clip_grads_with_norm_(parameters: Tensor | Iterable[Tensor], max_norm: float, total_norm: Tensor) -> None:
    """Scale all gradients, whose norm is known already, so that it is at most `max_norm`.

    >>> w = wg.zeros(2).requires_grad_()
    >>> w.grad = wg.asarray([3.0, 4.0])
    >>> wg.nn.utils.clip_grads_with_norm_([w], 2.5, wg.asarray(5.0))
    >>> [round(each, 4) for each in w.grad.tolist()]
    [1.5, 2.0]
    """
    with wg.no_grad():
        _scale(_gradients(parameters), max_norm, total_norm)


def _read(norm: Tensor) -> float:
    try:
        return float(norm)
    except wg.CaptureError:
        raise wg.CaptureError(
            "clip_grad_norm_(error_if_nonfinite=True) reads the norm, and there is none yet inside a "
            "function that webgrad.jit captures: leave it out, and read the norm that is returned outside"
        ) from None


def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float) -> None:
    """Keep every element of the gradients from -clip_value to clip_value.

    >>> w = wg.zeros(2).requires_grad_()
    >>> w.grad = wg.asarray([3.0, -0.5])
    >>> wg.nn.utils.clip_grad_value_([w], 1.0)
    >>> w.grad.tolist()
    [1.0, -0.5]
    """
    if not clip_value >= 0:
        raise wg.ArgumentError(f"clip_grad_value_: clip_value is {clip_value!r}, and must not be negative")
    with wg.no_grad():
        for each in _gradients(parameters):
            each[...] = wg.clip(each, -float(clip_value), float(clip_value))
