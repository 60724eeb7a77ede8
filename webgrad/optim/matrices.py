"""Optimisers that know a parameter is a matrix: Adafactor's averages of rows and columns, Muon's rotations.

In: parameters, matrices or stacks of them. Out: the same, changed. What is kept is smaller than the matrix,
or its update is made orthogonal.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import webgrad as wg
from webgrad import Tensor

from .optimizer import Group, Inputs, Numbers, Optimizer, State

__all__ = ["Adafactor", "Muon"]


class Adafactor(Optimizer):
    """Adam's squares by the averages of rows and columns alone (Shazeer and Stern, 2018).

    >>> w = wg.asarray([[1.0, 2.0]]).requires_grad_()
    >>> opt = wg.optim.Adafactor([w], lr=0.1)
    >>> w.grad = wg.asarray([[0.5, -0.5]])
    >>> opt.step()
    >>> [round(each, 4) for each in w.flatten().tolist()]
    [0.8419, 2.1581]
    """

    _shares = 2

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
    ) -> None:
        settings = {
            "lr": lr,
            "beta2_decay": beta2_decay,
            "eps": tuple(eps),
            "d": d,
            "weight_decay": weight_decay,
            "maximize": maximize,
        }
        super().__init__(params, settings)

    def _check(self, group: Group) -> None:
        super()._check({key: value for key, value in group.items() if key != "eps"})
        if any(each.dtype.kind == "c" for each in group["params"]):
            raise wg.DTypeError("Adafactor optimises floats, not complex numbers")
        if group["beta2_decay"] > 0 or group["d"] < 1:
            raise wg.ArgumentError(
                f"Adafactor: beta2_decay is {group['beta2_decay']!r}, and must not be above 0, and d is "
                f"{group['d']!r}, and must not be below 1"
            )

    def _state_shapes(self, parameter: Tensor, group: Group) -> dict[str, tuple[int, ...]]:
        shape = parameter.shape
        if len(shape) < 2:
            return {"variance": shape}
        return {"row_var": (*shape[:-1], 1), "col_var": (*shape[:-2], 1, shape[-1])}

    def _options(self, group: Group) -> Group:
        return {"maximize": group["maximize"], "eps": group["eps"][0]}

    def _numbers(self, group: Group) -> dict[str, float]:
        return {
            "lr": group["lr"],
            "decay": group["beta2_decay"],
            "least": group["eps"][1],
            "d": group["d"],
            "shrink": 1 - group["lr"] * group["weight_decay"],
        }

    def _shared(self, options: Group, numbers: Numbers, step: Tensor) -> tuple[Tensor, ...]:
        return wg.exp(numbers["decay"] * wg.log(step)), wg.minimum(numbers["lr"], wg.rsqrt(step))

    def _update(self, inputs: Inputs) -> tuple[Tensor, State]:
        options, numbers, (new, rate), parameter, gradient, state = inputs
        if options["maximize"]:
            gradient = -gradient
        small = wg.finfo(parameter.dtype).eps if options["eps"] is None else options["eps"]
        length = wg.maximum(numbers["least"], wg.sqrt(wg.mean(parameter * parameter))) * rate
        parameter = parameter * numbers["shrink"]
        squares = gradient * gradient
        changed: State = {}
        if "variance" in state:
            found = changed["variance"] = state["variance"] + new * (squares - state["variance"])
        else:
            for name, axis in (("row_var", -1), ("col_var", -2)):
                mean = wg.mean(squares, axis, keepdims=True)
                changed[name] = state[name] + new * (mean - state[name])
            rows, columns = changed["row_var"], changed["col_var"]
            found = rows * columns / wg.maximum(wg.mean(rows, -2, keepdims=True), small)
        update = gradient * wg.rsqrt(wg.maximum(found, small * small))
        size = wg.maximum(wg.sqrt(wg.mean(update * update)) / numbers["d"], 1.0)
        return parameter - update * (length / size), changed


class Muon(Optimizer):
    """Momentum made orthogonal by a few products of bfloat16 matrices (Jordan et al., 2024); for matrices.

    >>> w = wg.asarray([[1.0, 0.0], [0.0, 1.0]]).requires_grad_()
    >>> opt = wg.optim.Muon([w], lr=0.1, weight_decay=0.0)
    >>> w.grad = wg.asarray([[2.0, 0.0], [0.0, 2.0]])
    >>> opt.step()
    >>> bool(w[0, 0].item() < 0.95), w[0, 1].item()
    (True, 0.0)
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        settings = {
            "lr": lr,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "nesterov": nesterov,
            "ns_coefficients": tuple(ns_coefficients),
            "eps": eps,
            "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        }
        super().__init__(params, settings)

    def _check(self, group: Group) -> None:
        super()._check(group)
        if group["adjust_lr_fn"] not in (None, "original", "match_rms_adamw"):
            raise wg.ArgumentError(
                f"Muon: adjust_lr_fn is 'original' or 'match_rms_adamw', not {group['adjust_lr_fn']!r}"
            )
        for each in group["params"]:
            if each.ndim != 2:
                raise wg.ShapeError(f"Muon optimises matrices, not a parameter of shape {each.shape}")

    def _counts(self, group: Group) -> bool:
        return False

    def _state_names(self, group: Group) -> tuple[str, ...]:
        return ("momentum_buffer",)

    def _options(self, group: Group) -> Group:
        names = ("nesterov", "ns_coefficients", "eps", "ns_steps", "adjust_lr_fn")
        return {name: group[name] for name in names}

    def _numbers(self, group: Group) -> dict[str, float]:
        shrink = 1 - group["lr"] * group["weight_decay"]
        return {"lr": group["lr"], "momentum": group["momentum"], "shrink": shrink}

    def _update(self, inputs: Inputs) -> tuple[Tensor, State]:
        options, numbers, _, parameter, gradient, state = inputs
        old, momentum = state["momentum_buffer"], numbers["momentum"]
        mean = old + (1.0 - momentum) * (gradient - old)
        ahead = gradient + momentum * (mean - gradient) if options["nesterov"] else mean
        update = _orthogonal(ahead, options).astype(parameter.dtype)
        rows, columns = parameter.shape
        if options["adjust_lr_fn"] == "match_rms_adamw":
            ratio = 0.2 * math.sqrt(max(rows, columns))
        else:
            ratio = math.sqrt(max(1.0, rows / columns))
        changed = {"momentum_buffer": mean}
        return parameter * numbers["shrink"] - numbers["lr"] * ratio * update, changed


def _orthogonal(x: Tensor, options: Group) -> Tensor:
    """About the orthogonal matrix that is nearest, by Newton and Schulz's iteration."""
    a, b, c = options["ns_coefficients"]
    y = x.astype(wg.bfloat16)
    is_tall = x.shape[0] > x.shape[1]
    y = y.T if is_tall else y
    y = y / wg.clip(wg.vector_norm(y), min=options["eps"])
    for _ in range(options["ns_steps"]):
        gram = y @ y.T
        y = a * y + (b * gram + c * (gram @ gram)) @ y
    return y.T if is_tall else y
