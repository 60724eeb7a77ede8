"""Gradient descent, and what scales it by averages of squares, or by signs: SGD, RMSprop, Rprop, Lion …"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import webgrad as wg
from webgrad import Tensor

from .optimizer import Group, Inputs, Numbers, Optimizer, State

__all__ = ["ASGD", "SGD", "Adadelta", "Adagrad", "Lion", "RMSprop", "Rprop"]


class _Descent(Optimizer):
    """Those whose weight decay is part of the gradient."""

    def _options(self, group: Group) -> Group:
        return {"maximize": group["maximize"], "decay": group["weight_decay"] != 0}

    def _numbers(self, group: Group) -> dict[str, float]:
        return {"lr": group["lr"], "decay": group["weight_decay"]}

    def _decayed(self, options: Group, numbers: Numbers, parameter: Tensor, gradient: Tensor) -> Tensor:
        if options["maximize"]:
            gradient = -gradient
        return gradient + numbers["decay"] * parameter if options["decay"] else gradient


class SGD(_Descent):
    """Stochastic gradient descent, with momentum, Nesterov's too.

    >>> w = wg.asarray([1.0, 2.0]).requires_grad_()
    >>> opt = wg.optim.SGD([w], lr=0.1, momentum=0.9)
    >>> for _ in range(2):
    ...     w.grad = wg.asarray([1.0, -1.0])
    ...     opt.step()
    >>> [round(each, 4) for each in w.tolist()]
    [0.71, 2.29]
    """

    _shares = 1

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        settings = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
        }
        super().__init__(params, settings)

    def _check(self, group: Group) -> None:
        super()._check(group)
        if group["nesterov"] and (group["momentum"] == 0 or group["dampening"] != 0):
            raise wg.ArgumentError("SGD: nesterov needs a momentum, and a dampening of zero")

    def _counts(self, group: Group) -> bool:
        return bool(group["momentum"] != 0 and group["dampening"] != 0)  # which the first step goes without

    def _state_names(self, group: Group) -> tuple[str, ...]:
        return ("momentum_buffer",) if group["momentum"] != 0 else ()

    def _options(self, group: Group) -> Group:
        return {
            **super()._options(group),
            "momentum": group["momentum"] != 0,
            "damped": self._counts(group),
            "nesterov": group["nesterov"],
        }

    def _numbers(self, group: Group) -> dict[str, float]:
        kept = 1 - group["dampening"]
        return {**super()._numbers(group), "momentum": group["momentum"], "kept": kept}

    def _shared(self, options: Group, numbers: Numbers, step: Tensor) -> tuple[Tensor, ...]:
        return (wg.where(step > 1.5, numbers["kept"], 1.0),)

    def _update(self, inputs: Inputs) -> tuple[Tensor, State]:
        options, numbers, shared, parameter, gradient, state = inputs
        gradient = self._decayed(options, numbers, parameter, gradient)
        if not options["momentum"]:
            return parameter - numbers["lr"] * gradient, {}
        if "momentum_buffer" not in state:
            raise wg.ArgumentError(
                "SGD: the momentum was zero when the parameters were given, so they have no momentum_buffer: "
                "make the optimiser with a momentum, however small"
            )
        fresh = gradient * shared[0] if options["damped"] else gradient
        buffer = state["momentum_buffer"] * numbers["momentum"] + fresh
        change = gradient + numbers["momentum"] * buffer if options["nesterov"] else buffer
        return parameter - numbers["lr"] * change, {"momentum_buffer": buffer}


class RMSprop(_Descent):
    """Gradients over the root of their mean square (Tieleman and Hinton, 2012).

    >>> w = wg.asarray([1.0, 2.0]).requires_grad_()
    >>> opt = wg.optim.RMSprop([w], lr=0.1)
    >>> w.grad = wg.asarray([0.5, -3.0])
    >>> opt.step()
    >>> [round(each, 4) for each in w.tolist()]
    [0.0, 3.0]
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        centered: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        settings = {
            "lr": lr,
            "alpha": alpha,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "centered": centered,
            "maximize": maximize,
        }
        super().__init__(params, settings)

    def _state_names(self, group: Group) -> tuple[str, ...]:
        names = {"square_avg": True, "momentum_buffer": group["momentum"] > 0, "grad_avg": group["centered"]}
        return tuple(name for name, used in names.items() if used)

    def _options(self, group: Group) -> Group:
        return {
            **super()._options(group),
            "momentum": group["momentum"] > 0,
            "centered": group["centered"],
        }

    def _numbers(self, group: Group) -> dict[str, float]:
        return {
            **super()._numbers(group),
            "old": group["alpha"],
            "new": 1 - group["alpha"],
            "eps": group["eps"],
            "momentum": group["momentum"],
        }

    def _update(self, inputs: Inputs) -> tuple[Tensor, State]:
        options, numbers, _, parameter, gradient, state = inputs
        gradient = self._decayed(options, numbers, parameter, gradient)
        square = state["square_avg"] * numbers["old"] + numbers["new"] * gradient * gradient
        changed = {"square_avg": square}
        spread = square
        if options["centered"]:
            mean = state["grad_avg"] + numbers["new"] * (gradient - state["grad_avg"])
            changed["grad_avg"] = mean
            spread = square - mean * mean
        change = gradient / (wg.sqrt(spread) + numbers["eps"])
        if options["momentum"]:
            change = changed["momentum_buffer"] = state["momentum_buffer"] * numbers["momentum"] + change
        return parameter - numbers["lr"] * change, changed


class Adagrad(_Descent):
    """Gradients over the root of the sum of all their squares (Duchi et al., 2011).

    >>> w = wg.asarray([1.0, 2.0]).requires_grad_()
    >>> opt = wg.optim.Adagrad([w], lr=0.1)
    >>> w.grad = wg.asarray([0.5, -3.0])
    >>> opt.step()
    >>> [round(each, 4) for each in w.tolist()]
    [0.9, 2.1]
    """

    _shares = 1

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        lr_decay: float = 0.0,
        weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0,
        eps: float = 1e-10,
        *,
        maximize: bool = False,
    ) -> None:
        settings = {
            "lr": lr,
            "lr_decay": lr_decay,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "eps": eps,
            "maximize": maximize,
        }
        super().__init__(params, settings)

    def _state_names(self, group: Group) -> tuple[str, ...]:
        return ("sum",)

    def _initial(self, name: str, group: Group) -> float:
        return float(group["initial_accumulator_value"])

    def _numbers(self, group: Group) -> dict[str, float]:
        return {**super()._numbers(group), "lr_decay": group["lr_decay"], "eps": group["eps"]}

    def _shared(self, options: Group, numbers: Numbers, step: Tensor) -> tuple[Tensor, ...]:
        return (numbers["lr"] / (1.0 + (step - 1.0) * numbers["lr_decay"]),)

    def _update(self, inputs: Inputs) -> tuple[Tensor, State]:
        options, numbers, shared, parameter, gradient, state = inputs
        gradient = self._decayed(options, numbers, parameter, gradient)
        total = state["sum"] + gradient * gradient
        return parameter - shared[0] * (gradient / (wg.sqrt(total) + numbers["eps"])), {"sum": total}


class Adadelta(_Descent):
    """Steps in units of earlier steps (Zeiler, 2012).

    >>> w = wg.asarray([1.0, 2.0]).requires_grad_()
    >>> opt = wg.optim.Adadelta([w], lr=0.1)
    >>> w.grad = wg.asarray([0.5, -3.0])
    >>> opt.step()
    >>> [round(each, 4) for each in w.tolist()]
    [0.9997, 2.0003]
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
    ) -> None:
        settings = {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize}
        super().__init__(params, settings)

    def _check(self, group: Group) -> None:
        super()._check(group)
        if not 0 <= group["rho"] <= 1:
            raise wg.ArgumentError(f"Adadelta: rho is {group['rho']!r}, and must be from 0 to 1")

    def _state_names(self, group: Group) -> tuple[str, ...]:
        return ("square_avg", "acc_delta")

    def _numbers(self, group: Group) -> dict[str, float]:
        rho = group["rho"]
        return {**super()._numbers(group), "old": rho, "new": 1 - rho, "eps": group["eps"]}

    def _update(self, inputs: Inputs) -> tuple[Tensor, State]:
        options, numbers, _, parameter, gradient, state = inputs
        gradient = self._decayed(options, numbers, parameter, gradient)
        old, new, eps = numbers["old"], numbers["new"], numbers["eps"]
        square = state["square_avg"] * old + new * gradient * gradient
        change = wg.sqrt(state["acc_delta"] + eps) / wg.sqrt(square + eps) * gradient
        moved = state["acc_delta"] * old + new * change * change
        return parameter - numbers["lr"] * change, {"square_avg": square, "acc_delta": moved}


class ASGD(_Descent):
    """Descent whose rate falls, with the average of where it has been as "ax" (Polyak and Juditsky, 1992).

    >>> w = wg.asarray([1.0, 2.0]).requires_grad_()
    >>> opt = wg.optim.ASGD([w], lr=0.1, lambd=0.0)
    >>> w.grad = wg.asarray([0.5, -3.0])
    >>> opt.step()
    >>> [round(each, 4) for each in w.tolist()]
    [0.95, 2.3]
    """

    _shares = 2

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
    ) -> None:
        settings = {"lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay}
        super().__init__(params, {**settings, "maximize": maximize})

    def _state_names(self, group: Group) -> tuple[str, ...]:
        return ("eta", "mu", "ax")

    def _is_number(self, name: str) -> bool:
        return name in ("eta", "mu")

    def _initial(self, name: str, group: Group) -> float:
        return {"eta": float(group["lr"]), "mu": 1.0}.get(name, 0.0)

    def _numbers(self, group: Group) -> dict[str, float]:
        return {
            **super()._numbers(group),
            "lambd": group["lambd"],
            "alpha": group["alpha"],
            "t0": group["t0"],
        }

    def _shared(self, options: Group, numbers: Numbers, step: Tensor) -> tuple[Tensor, ...]:
        falling = wg.exp(-numbers["alpha"] * wg.log1p(numbers["lambd"] * numbers["lr"] * step))
        return numbers["lr"] * falling, 1.0 / wg.maximum(step - numbers["t0"], 1.0)

    def _update(self, inputs: Inputs) -> tuple[Tensor, State]:
        options, numbers, shared, parameter, gradient, state = inputs
        gradient = self._decayed(options, numbers, parameter, gradient)
        eta, mu, mean = state["eta"], state["mu"], state["ax"]
        parameter = parameter - parameter * (numbers["lambd"] * eta) - eta * gradient
        return parameter, {"ax": mean + (parameter - mean) * mu, "eta": shared[0], "mu": shared[1]}


class Rprop(Optimizer):
    """Steps of a size of their own, larger while a gradient keeps its sign (Riedmiller and Braun, 1993).

    >>> w = wg.asarray([1.0, 2.0]).requires_grad_()
    >>> opt = wg.optim.Rprop([w], lr=0.1)
    >>> for _ in range(2):
    ...     w.grad = wg.asarray([0.5, -3.0])
    ...     opt.step()
    >>> [round(each, 4) for each in w.tolist()]
    [0.78, 2.22]
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50.0),
        *,
        maximize: bool = False,
    ) -> None:
        settings = {"lr": lr, "etas": tuple(etas), "step_sizes": tuple(step_sizes), "maximize": maximize}
        super().__init__(params, settings)

    def _check(self, group: Group) -> None:
        super()._check(group)
        less, more = group["etas"]
        if not 0.0 < less < 1.0 < more:
            raise wg.ArgumentError(f"Rprop: etas are {less!r} and {more!r}: between 0 and 1, and above 1")

    def _counts(self, group: Group) -> bool:
        return False

    def _options(self, group: Group) -> Group:
        return {"maximize": group["maximize"]}

    def _state_names(self, group: Group) -> tuple[str, ...]:
        return ("prev", "step_size")

    def _initial(self, name: str, group: Group) -> float:
        return float(group["lr"]) if name == "step_size" else 0.0

    def _numbers(self, group: Group) -> dict[str, float]:
        (less, more), (least, most) = group["etas"], group["step_sizes"]
        return {"less": less, "more": more, "least": least, "most": most}

    def _update(self, inputs: Inputs) -> tuple[Tensor, State]:
        options, numbers, _, parameter, gradient, state = inputs
        if options["maximize"]:
            gradient = -gradient
        kept = gradient * state["prev"]
        factor = wg.where(kept > 0, numbers["more"], wg.where(kept < 0, numbers["less"], 1.0))
        size = wg.minimum(wg.maximum(state["step_size"] * factor, numbers["least"]), numbers["most"])
        gradient = wg.where(kept < 0, 0.0, gradient)  # a step too far is not followed by another
        return parameter - wg.sign(gradient) * size, {"prev": gradient, "step_size": size}


class Lion(Optimizer):
    """The sign of an average of gradients (Chen et al., 2023); use a tenth of AdamW's rate.

    >>> w = wg.asarray([1.0, 2.0]).requires_grad_()
    >>> opt = wg.optim.Lion([w], lr=0.1)
    >>> w.grad = wg.asarray([0.5, -3.0])
    >>> opt.step()
    >>> [round(each, 4) for each in w.tolist()]
    [0.9, 2.1]
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
    ) -> None:
        settings = {"lr": lr, "betas": tuple(betas), "weight_decay": weight_decay, "maximize": maximize}
        super().__init__(params, settings)

    def _counts(self, group: Group) -> bool:
        return False

    def _state_names(self, group: Group) -> tuple[str, ...]:
        return ("exp_avg",)

    def _options(self, group: Group) -> Group:
        return {"maximize": group["maximize"], "decay": group["weight_decay"] != 0}

    def _numbers(self, group: Group) -> dict[str, float]:
        beta1, beta2 = group["betas"]
        return {
            "lr": group["lr"],
            "old1": beta1,
            "new1": 1 - beta1,
            "old2": beta2,
            "new2": 1 - beta2,
            "shrink": 1 - group["lr"] * group["weight_decay"],
        }

    def _update(self, inputs: Inputs) -> tuple[Tensor, State]:
        options, numbers, _, parameter, gradient, state = inputs
        if options["maximize"]:
            gradient = -gradient
        if options["decay"]:
            parameter = parameter * numbers["shrink"]
        mean = state["exp_avg"]
        towards = wg.sign(mean * numbers["old1"] + gradient * numbers["new1"])
        mean = mean * numbers["old2"] + gradient * numbers["new2"]
        return parameter - numbers["lr"] * towards, {"exp_avg": mean}
