"""Activations with chance in them: slopes drawn anew, and samples of classes that gradients go through.

In: a tensor of floats. Out: one of the same shape and dtype, drawn from webgrad.random.
"""

from __future__ import annotations

import webgrad as wg

from .checks import check_floats

__all__ = ["gumbel_softmax", "rrelu"]


def rrelu(x: wg.Tensor, lower: float = 0.125, upper: float = 1 / 3, training: bool = False) -> wg.Tensor:
    """x where it is positive, else x times a slope drawn from lower to upper; the mean slope if not training.

    >>> wg.nn.functional.rrelu(wg.asarray([-2.0, 2.0]), 0.25, 0.75).tolist()
    [-1.0, 2.0]
    """
    check_floats("rrelu", x)
    if lower > upper:
        raise wg.ArgumentError(
            f"rrelu: slopes are drawn from lower to upper, not from {lower!r} to {upper!r}"
        )
    if not training:
        return wg.leaky_relu(x, (lower + upper) / 2)
    slopes = wg.random.rand(*x.shape, device=x.device) * (upper - lower) + lower
    return wg.where(x > 0, x, x * slopes.astype(x.dtype, copy=False))


def gumbel_softmax(x: wg.Tensor, tau: float = 1.0, hard: bool = False, axis: int = -1) -> wg.Tensor:
    """A sample of the classes that x are the logits of, softened: softmax((x + Gumbel noise) / tau).

    With `hard` it is one-hot, and has the soft one's gradient.

    >>> wg.nn.functional.gumbel_softmax(wg.asarray([0.0, 1000.0]), hard=True).tolist()
    [0.0, 1.0]
    """
    check_floats("gumbel_softmax", x)
    if not tau > 0:
        raise wg.ArgumentError(f"gumbel_softmax: tau is a positive number, not {tau!r}")
    drawn = 1.0 - wg.random.rand(*x.shape, device=x.device)  # above 0
    noise = -wg.log(wg.clip(-wg.log(drawn), min=1e-30)).astype(x.dtype, copy=False)
    soft = wg.softmax((x + noise) / tau, axis=axis)
    if not hard:
        return soft
    places = wg.arange(x.shape[axis], device=x.device)
    shape = [1] * x.ndim
    shape[axis] = x.shape[axis]
    chosen = places.reshape(tuple(shape)) == wg.argmax(soft.detach(), axis, keepdims=True)
    return chosen.astype(x.dtype) + (soft - soft.detach())
