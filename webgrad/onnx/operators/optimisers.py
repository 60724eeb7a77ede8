"""The domain ai.onnx.preview.training: gradients, and steps of optimisers.

The inputs of a step, after its rate and number, are groups: all tensors, all gradients, and then each kind of
what is kept between steps; so are its outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import webgrad as wg

from .table import Call, operator

__all__: list[str] = []

DOMAIN = "ai.onnx.preview.training"


def _stepped(step: Callable[..., tuple[Any, ...]], groups: int, values: Sequence[Any]) -> tuple[Any, ...]:
    """A step for each tensor, whose values stand one in each group."""
    count = len(values) // groups
    found = [step(*values[at::count]) for at in range(count)]
    return tuple(each[kind] for kind in range(len(found[0])) for each in found)


@operator("Adagrad", domain=DOMAIN)
def adagrad(
    rate: Any,
    step: Any,
    *values: Any,
    decay_factor: float = 0.0,
    epsilon: float = 1e-6,
    norm_coefficient: float = 0.0,
) -> Any:
    rate = rate / (1 + step.astype(rate.dtype) * decay_factor)

    def update(x: Any, gradient: Any, squares: Any) -> tuple[Any, ...]:
        gradient = norm_coefficient * x + gradient
        squares = squares + gradient * gradient
        return x - rate * gradient / (wg.sqrt(squares) + epsilon), squares

    return _stepped(update, 3, values)


@operator("Adam", domain=DOMAIN)
def adam(
    rate: Any,
    step: Any,
    *values: Any,
    alpha: float = 0.9,
    beta: float = 0.999,
    epsilon: float = 1e-6,
    norm_coefficient: float = 0.0,
    norm_coefficient_post: float = 0.0,
) -> Any:
    steps = step.astype(rate.dtype)
    scale = wg.sqrt(1 - wg.power(beta, steps)) / (1 - wg.power(alpha, steps))
    rate = rate * wg.where(step > 0, scale, wg.ones_like(scale))

    def update(x: Any, gradient: Any, mean: Any, squares: Any) -> tuple[Any, ...]:
        gradient = norm_coefficient * x + gradient
        mean = alpha * mean + (1 - alpha) * gradient
        squares = beta * squares + (1 - beta) * gradient * gradient
        new = x - rate * mean / (wg.sqrt(squares) + epsilon)
        return (1 - norm_coefficient_post) * new, mean, squares

    return _stepped(update, 4, values)


@operator("Momentum", domain=DOMAIN)
def momentum(
    rate: Any, step: Any, *values: Any, alpha: float, beta: float, mode: str, norm_coefficient: float
) -> Any:
    """At the first step the gradient counts in full."""
    share = wg.where(step > 0, wg.full_like(rate, beta), wg.ones_like(rate))

    def update(x: Any, gradient: Any, speed: Any) -> tuple[Any, ...]:
        gradient = norm_coefficient * x + gradient
        speed = alpha * speed + share * gradient
        return x - rate * (gradient + alpha * speed if mode == "nesterov" else speed), speed

    return _stepped(update, 3, values)


@operator("Gradient", domain=DOMAIN, folds=False)
def gradient(
    *values: Any, xs: Sequence[str], y: str, zs: Sequence[str] = (), call: Call
) -> tuple[wg.Tensor, ...]:
    """How the sum of a value of the graph changes with others, at the values that are given for them."""
    given = dict(zip((*xs, *zs), map(call.tensor, values), strict=True))

    def total(*chosen: wg.Tensor) -> wg.Tensor:
        return wg.sum(call.recomputed(y, {**given, **dict(zip(xs, chosen, strict=True))}))

    slopes = wg.grad(total, argnums=tuple(range(len(xs))))(*(given[name] for name in xs))
    return tuple(slopes)
