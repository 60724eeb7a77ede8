"""Adam and its kin: averages of gradients and of their squares, freed from the bias towards zero.

1 - beta^t is computed as -expm1(t · log beta), with the logarithm from the host: in float32 the difference
itself would lose half of its digits in the first steps.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import webgrad as wg
from webgrad import Tensor

from .optimizer import Group, Inputs, Numbers, Optimizer, State

__all__ = ["LAMB", "Adam", "AdamW", "Adamax", "NAdam", "RAdam"]


def _log(beta: float) -> float:
    return math.log(beta) if beta else -1e30  # whose powers are all zero


def _one_less(step: Tensor, log: Tensor) -> Tensor:
    """1 - beta^step."""
    return -wg.expm1(step * log)


def _lerp(old: Tensor, new: Tensor, weight: Tensor) -> Tensor:
    return old + weight * (new - old)


class _Averages(Optimizer):
    """What they have in common: settings, and the two averages."""

    _shares = 2

    def _state_names(self, group: Group) -> tuple[str, ...]:
        return ("exp_avg", "exp_avg_sq")

    def _options(self, group: Group) -> Group:
        return {
            "maximize": group.get("maximize", False),
            "decay": group["weight_decay"] != 0,
            "decoupled": group.get("decoupled_weight_decay", False),
        }

    def _numbers(self, group: Group) -> dict[str, float]:
        beta1, beta2 = group["betas"]
        return {
            "lr": group["lr"],
            "new1": 1 - beta1,
            "old2": beta2,
            "new2": 1 - beta2,
            "log1": _log(beta1),
            "log2": _log(beta2),
            "eps": group["eps"],
            "decay": group["weight_decay"],
            "shrink": 1 - group["lr"] * group["weight_decay"],
        }

    def _decayed(
        self, options: Group, numbers: Numbers, parameter: Tensor, gradient: Tensor
    ) -> tuple[Tensor, Tensor]:
        """A parameter and its gradient after weight decay, of one or of the other."""
        if options["maximize"]:
            gradient = -gradient
        if options["decay"] and options["decoupled"]:
            parameter = parameter * numbers["shrink"]
        elif options["decay"]:
            gradient = gradient + numbers["decay"] * parameter
        return parameter, gradient

    def _averaged(self, numbers: Numbers, gradient: Tensor, state: State) -> tuple[Tensor, Tensor]:
        mean = _lerp(state["exp_avg"], gradient, numbers["new1"])
        return mean, state["exp_avg_sq"] * numbers["old2"] + numbers["new2"] * gradient * gradient


class Adam(_Averages):
    """Adam (Kingma and Ba, 2014); weight decay is part of the gradient.

    >>> w = wg.asarray([1.0, 2.0]).requires_grad_()
    >>> opt = wg.optim.Adam([w], lr=0.1)
    >>> w.grad = wg.asarray([0.5, -3.0])
    >>> opt.step()
    >>> [round(each, 4) for each in w.tolist()]
    [0.9, 2.1]
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        decoupled_weight_decay: bool = False,
    ) -> None:
        settings = {
            "lr": lr,
            "betas": tuple(betas),
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, settings)

    def _options(self, group: Group) -> Group:
        return {**super()._options(group), "amsgrad": group["amsgrad"]}

    def _state_names(self, group: Group) -> tuple[str, ...]:
        return ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")[: 3 if group["amsgrad"] else 2]

    def _shared(self, options: Group, numbers: Numbers, step: Tensor) -> tuple[Tensor, ...]:
        # m / a / (√(v / b) + ε) = (√b / a) m / (√v + ε √b): both corrections in two numbers
        root = wg.sqrt(_one_less(step, numbers["log2"]))
        return numbers["lr"] * root / _one_less(step, numbers["log1"]), numbers["eps"] * root

    def _update(self, inputs: Inputs) -> tuple[Tensor, State]:
        options, numbers, shared, parameter, gradient, state = inputs
        size, eps = shared
        parameter, gradient = self._decayed(options, numbers, parameter, gradient)
        mean, square = self._averaged(numbers, gradient, state)
        changed = {"exp_avg": mean, "exp_avg_sq": square}
        largest = square
        if options["amsgrad"]:
            largest = changed["max_exp_avg_sq"] = wg.maximum(state["max_exp_avg_sq"], square)
        return parameter - size * (mean / (wg.sqrt(largest) + eps)), changed


class AdamW(Adam):
    """Adam with weight decay of its own, apart from the gradient (Loshchilov and Hutter, 2017).

    >>> w = wg.asarray([1.0, 2.0]).requires_grad_()
    >>> opt = wg.optim.AdamW([w], lr=0.1)
    >>> w.grad = wg.asarray([0.5, -3.0])
    >>> opt.step()
    >>> [round(each, 4) for each in w.tolist()]
    [0.899, 2.098]
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(
            params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize, decoupled_weight_decay=True
        )


class Adamax(_Averages):
    """Adam by the largest gradient instead of the mean square.

    >>> w = wg.asarray([1.0, 2.0]).requires_grad_()
    >>> opt = wg.optim.Adamax([w], lr=0.1)
    >>> w.grad = wg.asarray([0.5, -3.0])
    >>> opt.step()
    >>> [round(each, 4) for each in w.tolist()]
    [0.9, 2.1]
    """

    _shares = 1

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
    ) -> None:
        settings = {"lr": lr, "betas": tuple(betas), "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, {**settings, "maximize": maximize})

    def _state_names(self, group: Group) -> tuple[str, ...]:
        return ("exp_avg", "exp_inf")

    def _shared(self, options: Group, numbers: Numbers, step: Tensor) -> tuple[Tensor, ...]:
        return (numbers["lr"] / _one_less(step, numbers["log1"]),)

    def _update(self, inputs: Inputs) -> tuple[Tensor, State]:
        options, numbers, shared, parameter, gradient, state = inputs
        parameter, gradient = self._decayed(options, numbers, parameter, gradient)
        mean = _lerp(state["exp_avg"], gradient, numbers["new1"])
        largest = wg.maximum(state["exp_inf"] * numbers["old2"], wg.abs(gradient) + numbers["eps"])
        return parameter - shared[0] * (mean / largest), {"exp_avg": mean, "exp_inf": largest}


class NAdam(_Averages):
    """Adam with Nesterov's momentum (Dozat, 2016).

    >>> w = wg.asarray([1.0, 2.0]).requires_grad_()
    >>> opt = wg.optim.NAdam([w], lr=0.1)
    >>> w.grad = wg.asarray([0.5, -3.0])
    >>> opt.step()
    >>> [round(each, 4) for each in w.tolist()]
    [0.8944, 2.1056]
    """

    _shares = 3

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        settings = {
            "lr": lr,
            "betas": tuple(betas),
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
        }
        super().__init__(params, settings)

    def _state_names(self, group: Group) -> tuple[str, ...]:
        return ("exp_avg", "exp_avg_sq", "mu_product")

    def _is_number(self, name: str) -> bool:
        return name == "mu_product"

    def _initial(self, name: str, group: Group) -> float:
        return float(name == "mu_product")

    def _numbers(self, group: Group) -> dict[str, float]:
        decay = group["momentum_decay"] * math.log(0.96)
        return {**super()._numbers(group), "beta1": group["betas"][0], "momentum_decay": decay}

    def _shared(self, options: Group, numbers: Numbers, step: Tensor) -> tuple[Tensor, ...]:
        def momentum(at: Tensor) -> Tensor:
            return numbers["beta1"] * (1.0 - 0.5 * wg.exp(at * numbers["momentum_decay"]))

        return momentum(step), momentum(step + 1.0), _one_less(step, numbers["log2"])

    def _update(self, inputs: Inputs) -> tuple[Tensor, State]:
        options, numbers, shared, parameter, gradient, state = inputs
        now, after, correction = shared
        parameter, gradient = self._decayed(options, numbers, parameter, gradient)
        mean, square = self._averaged(numbers, gradient, state)
        product = state["mu_product"] * now
        scale = wg.sqrt(square / correction) + numbers["eps"]
        parameter = parameter - (numbers["lr"] * (1.0 - now) / (1.0 - product)) * (gradient / scale)
        parameter = parameter - (numbers["lr"] * after / (1.0 - product * after)) * (mean / scale)
        return parameter, {"exp_avg": mean, "exp_avg_sq": square, "mu_product": product}


class RAdam(_Averages):
    """Adam that trusts its mean squares only once they rest on enough steps (Liu et al., 2019).

    >>> w = wg.asarray([1.0, 2.0]).requires_grad_()
    >>> opt = wg.optim.RAdam([w], lr=0.1)
    >>> w.grad = wg.asarray([0.5, -3.0])
    >>> opt.step()
    >>> [round(each, 4) for each in w.tolist()]
    [0.95, 2.3]
    """

    _shares = 3

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        decoupled_weight_decay: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        settings = {
            "lr": lr,
            "betas": tuple(betas),
            "eps": eps,
            "weight_decay": weight_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
        }
        super().__init__(params, settings)

    def _numbers(self, group: Group) -> dict[str, float]:
        beta2 = group["betas"][1]
        rate = -_log(beta2)
        most = 2 / (1 - beta2) - 1
        return {
            **super()._numbers(group),
            "most": most,
            "start": most - 2 / rate,
            "span": 2 / rate,
            "whole": most / ((most - 4) * (most - 2) or 1.0),
        }

    def _shared(self, options: Group, numbers: Numbers, step: Tensor) -> tuple[Tensor, ...]:
        # The length of the average is most - 2 t β^t / (1 - β^t), a small difference of large numbers. With
        # x = -t log β it is start + t - span (x / (e^x - 1) - 1 + x / 2), whose bracket is a quick series.
        x = -step * numbers["log2"]
        series = x * x * (1 / 12 - x * x * (1 / 720 - x * x * (1 / 30240)))
        length = (
            numbers["start"]
            + step
            - numbers["span"] * wg.where(x < 0.5, series, x / wg.expm1(x) - 1.0 + 0.5 * x)
        )
        trusted = length > 5.0
        safe = wg.where(trusted, length, 6.0)
        scale = wg.sqrt((safe - 4.0) * (safe - 2.0) * numbers["whole"] / safe)
        size = numbers["lr"] / _one_less(step, numbers["log1"])
        return size, scale * wg.sqrt(_one_less(step, numbers["log2"])), wg.where(trusted, 1.0, 0.0)

    def _update(self, inputs: Inputs) -> tuple[Tensor, State]:
        options, numbers, shared, parameter, gradient, state = inputs
        size, scale, trusted = shared
        parameter, gradient = self._decayed(options, numbers, parameter, gradient)
        mean, square = self._averaged(numbers, gradient, state)
        factor = wg.where(trusted > 0.5, scale / (wg.sqrt(square) + numbers["eps"]), 1.0)
        return parameter - size * mean * factor, {"exp_avg": mean, "exp_avg_sq": square}


class LAMB(_Averages):
    """Adam whose step has the length of the parameter, times lr (You et al., 2019): for large batches.

    >>> w = wg.asarray([1.0, 2.0]).requires_grad_()
    >>> opt = wg.optim.LAMB([w], lr=0.1)
    >>> w.grad = wg.asarray([0.5, -3.0])
    >>> opt.step()
    >>> [round(each, 4) for each in w.tolist()]
    [0.8419, 2.1581]
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
    ) -> None:
        settings = {"lr": lr, "betas": tuple(betas), "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, {**settings, "maximize": maximize})

    def _shared(self, options: Group, numbers: Numbers, step: Tensor) -> tuple[Tensor, ...]:
        return _one_less(step, numbers["log1"]), wg.sqrt(_one_less(step, numbers["log2"]))

    def _update(self, inputs: Inputs) -> tuple[Tensor, State]:
        options, numbers, shared, parameter, gradient, state = inputs
        first, root = shared
        if options["maximize"]:
            gradient = -gradient
        mean, square = self._averaged(numbers, gradient, state)
        change = (mean / first) / (wg.sqrt(square) / root + numbers["eps"])
        if options["decay"]:
            change = change + numbers["decay"] * parameter
        length, other = wg.vector_norm(parameter), wg.vector_norm(change)
        ratio = wg.where((length > 0.0) & (other > 0.0), length / other, 1.0)
        return parameter - numbers["lr"] * ratio * change, {"exp_avg": mean, "exp_avg_sq": square}
