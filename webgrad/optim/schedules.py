"""Schedules of learning rates, as PyTorch's: each step writes every group's "lr".

In: an optimiser. Out: its groups' rates, and `get_last_lr`. Most schedules go on from the rate before, as
PyTorch's do: so several may be chained, and a rate that a user changes in between is heeded.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import webgrad as wg

from .optimizer import Group, Optimizer

__all__ = [
    "ConstantLR",
    "CosineAnnealingLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "PolynomialLR",
    "StepLR",
]


class LRScheduler:
    """The base of all schedules: `step` counts, and writes each group's rate.

    >>> opt = wg.optim.SGD([wg.ones(2).requires_grad_()], lr=1.0)
    >>> rates = wg.optim.lr_scheduler.ExponentialLR(opt, gamma=0.5)
    >>> opt.step(); rates.step()
    >>> rates.get_last_lr()
    [0.5]
    """

    _not_saved: tuple[str, ...] = ("optimizer",)
    _closed = False  # whether rates follow from the step alone, not from the rates before

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise wg.DTypeError(f"{type(self).__name__} takes an optimiser, not a {type(optimizer).__name__}")
        for at, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise wg.ArgumentError(
                    f"{type(self).__name__}: group {at} has no 'initial_lr', which going on from step "
                    f"{last_epoch} needs: load the optimiser's state first"
                )
        self.optimizer = optimizer
        self.base_lrs: list[float] = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch + 1
        self._write(self.get_lr() if last_epoch == -1 or self._closed else self._rates)

    def get_lr(self) -> list[float]:
        """The rates of `last_epoch`."""
        raise NotImplementedError

    def get_last_lr(self) -> list[float]:
        """The rates that were written last, one for each group."""
        return list(self._last_lr)

    def step(self) -> None:
        """Go on by a step; call it after the optimiser's."""
        self.last_epoch += 1
        self._write(self.get_lr())

    def begin(self) -> None:
        """Go to the first step, from the rates that the groups have."""
        self.last_epoch = 0
        self._write(self.get_lr())

    def _write(self, rates: Sequence[float]) -> None:
        for group, rate in zip(self._groups, rates, strict=True):
            group["lr"] = rate
        self._last_lr = list(rates)

    @property
    def _groups(self) -> list[Group]:
        return self.optimizer.param_groups

    @property
    def _rates(self) -> list[float]:
        return [group["lr"] for group in self._groups]

    def _scaled(self, factor: float) -> list[float]:
        """The rates before, times a factor."""
        return [rate * factor for rate in self._rates]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimiser and functions."""
        return {key: value for key, value in vars(self).items() if key not in self._not_saved}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` gave; load the optimiser's, which holds the rates, too."""
        vars(self).update({key: value for key, value in state_dict.items() if key not in self._not_saved})


class LambdaLR(LRScheduler):
    """The first rate times a function of the step; one function, or one for each group.

    >>> opt = wg.optim.SGD([wg.ones(2).requires_grad_()], lr=1.0)
    >>> rates = wg.optim.lr_scheduler.LambdaLR(opt, lambda step: 1 / (1 + step))
    >>> for _ in range(3):
    ...     opt.step(); rates.step()
    >>> [round(each, 4) for each in rates.get_last_lr()]
    [0.25]
    """

    _not_saved = ("optimizer", "lr_lambdas")
    _closed = True

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        self.lr_lambdas = for_each(type(self).__name__, "lr_lambda", lr_lambda, optimizer)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rates of `last_epoch`."""
        pairs = zip(self.base_lrs, self.lr_lambdas, strict=True)
        return [base * each(self.last_epoch) for base, each in pairs]


class MultiplicativeLR(LambdaLR):
    """The rate before times a function of the step.

    >>> opt = wg.optim.SGD([wg.ones(2).requires_grad_()], lr=1.0)
    >>> rates = wg.optim.lr_scheduler.MultiplicativeLR(opt, lambda step: 0.5)
    >>> for _ in range(3):
    ...     opt.step(); rates.step()
    >>> [round(each, 4) for each in rates.get_last_lr()]
    [0.125]
    """

    _closed = False

    def get_lr(self) -> list[float]:
        """The rates of `last_epoch`."""
        if self.last_epoch <= 0:
            return self._rates
        pairs = zip(self._rates, self.lr_lambdas, strict=True)
        return [rate * each(self.last_epoch) for rate, each in pairs]


class StepLR(LRScheduler):
    """Times gamma every `step_size` steps.

    >>> opt = wg.optim.SGD([wg.ones(2).requires_grad_()], lr=1.0)
    >>> rates = wg.optim.lr_scheduler.StepLR(opt, step_size=2, gamma=0.5)
    >>> for _ in range(3):
    ...     opt.step(); rates.step()
    >>> [round(each, 4) for each in rates.get_last_lr()]
    [0.5]
    """

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.step_size, self.gamma = _positive("StepLR", "step_size", step_size), gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rates of `last_epoch`."""
        falls = self.last_epoch > 0 and self.last_epoch % self.step_size == 0
        return self._scaled(self.gamma if falls else 1.0)


class MultiStepLR(LRScheduler):
    """Times gamma at each milestone.

    >>> opt = wg.optim.SGD([wg.ones(2).requires_grad_()], lr=1.0)
    >>> rates = wg.optim.lr_scheduler.MultiStepLR(opt, milestones=[1, 3], gamma=0.5)
    >>> for _ in range(3):
    ...     opt.step(); rates.step()
    >>> [round(each, 4) for each in rates.get_last_lr()]
    [0.25]
    """

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rates of `last_epoch`."""
        return self._scaled(self.gamma ** self.milestones.get(self.last_epoch, 0))


class ConstantLR(LRScheduler):
    """The first rate times a factor, until `total_iters` steps are done.

    >>> opt = wg.optim.SGD([wg.ones(2).requires_grad_()], lr=1.0)
    >>> rates = wg.optim.lr_scheduler.ConstantLR(opt, factor=0.5, total_iters=4)
    >>> for _ in range(3):
    ...     opt.step(); rates.step()
    >>> [round(each, 4) for each in rates.get_last_lr()]
    [0.5]
    """

    def __init__(
        self, optimizer: Optimizer, factor: float = 1 / 3, total_iters: int = 5, last_epoch: int = -1
    ) -> None:
        if not 0 < factor <= 1:  # the rate is divided by it in the end
            raise wg.ArgumentError(f"ConstantLR: the factor is {factor!r}, and must be above 0, up to 1")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rates of `last_epoch`."""
        if self.last_epoch == 0:
            return self._scaled(self.factor)
        return self._scaled(1 / self.factor if self.last_epoch == self.total_iters else 1.0)


class LinearLR(LRScheduler):
    """A factor that goes straight from one number to another in `total_iters` steps: a warm-up.

    >>> opt = wg.optim.SGD([wg.ones(2).requires_grad_()], lr=1.0)
    >>> rates = wg.optim.lr_scheduler.LinearLR(opt, start_factor=0.2, total_iters=4)
    >>> for _ in range(3):
    ...     opt.step(); rates.step()
    >>> [round(each, 4) for each in rates.get_last_lr()]
    [0.8]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 < start_factor <= 1 or not 0 <= end_factor <= 1:
            raise wg.ArgumentError(
                f"LinearLR: the factors are {start_factor!r} and {end_factor!r}: the first must be above 0, "
                "and neither above 1"
            )
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rates of `last_epoch`."""
        if self.last_epoch == 0:
            return self._scaled(self.start_factor)
        if self.last_epoch > self.total_iters:
            return self._rates
        change = self.end_factor - self.start_factor
        before = self.total_iters * self.start_factor + (self.last_epoch - 1) * change
        return self._scaled(1 + change / before)


class ExponentialLR(LRScheduler):
    """Times gamma at every step.

    >>> opt = wg.optim.SGD([wg.ones(2).requires_grad_()], lr=1.0)
    >>> rates = wg.optim.lr_scheduler.ExponentialLR(opt, gamma=0.5)
    >>> for _ in range(3):
    ...     opt.step(); rates.step()
    >>> [round(each, 4) for each in rates.get_last_lr()]
    [0.125]
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rates of `last_epoch`."""
        return self._scaled(self.gamma if self.last_epoch > 0 else 1.0)


class PolynomialLR(LRScheduler):
    """The first rate times (1 - step / total_iters) to a power, and then zero.

    >>> opt = wg.optim.SGD([wg.ones(2).requires_grad_()], lr=1.0)
    >>> rates = wg.optim.lr_scheduler.PolynomialLR(opt, total_iters=4)
    >>> for _ in range(3):
    ...     opt.step(); rates.step()
    >>> [round(each, 4) for each in rates.get_last_lr()]
    [0.25]
    """

    def __init__(
        self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1
    ) -> None:
        self.total_iters, self.power = _positive("PolynomialLR", "total_iters", total_iters), power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rates of `last_epoch`."""
        if self.last_epoch == 0 or self.last_epoch > self.total_iters:
            return self._rates
        left = 1.0 - self.last_epoch / self.total_iters
        return self._scaled((left / (1.0 - (self.last_epoch - 1) / self.total_iters)) ** self.power)


class CosineAnnealingLR(LRScheduler):
    """Half a cosine from the first rate to `eta_min` in `T_max` steps, and back again.

    >>> opt = wg.optim.SGD([wg.ones(2).requires_grad_()], lr=1.0)
    >>> rates = wg.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=6)
    >>> for _ in range(3):
    ...     opt.step(); rates.step()
    >>> [round(each, 4) for each in rates.get_last_lr()]
    [0.5]
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max, self.eta_min = _positive("CosineAnnealingLR", "T_max", T_max), eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rates of `last_epoch`."""
        if self.last_epoch == 0:
            return self._rates
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            rise = (1 - math.cos(math.pi / self.T_max)) / 2
            return [
                rate + (base - self.eta_min) * rise
                for rate, base in zip(self._rates, self.base_lrs, strict=True)
            ]
        now = 1 + math.cos(math.pi * self.last_epoch / self.T_max)
        before = 1 + math.cos(math.pi * (self.last_epoch - 1) / self.T_max)
        return [now / before * (rate - self.eta_min) + self.eta_min for rate in self._rates]


def _positive(name: str, what: str, value: Any) -> int:
    if not isinstance(value, int) or value <= 0:
        raise wg.ArgumentError(f"{name}: {what} is {value!r}, and must be an integer above 0")
    return value


def for_each(name: str, what: str, value: Any, optimizer: Optimizer) -> list[Any]:
    """One value for each group: those given, or the same for all."""
    count = len(optimizer.param_groups)
    if not isinstance(value, list | tuple):
        return [value] * count
    if len(value) != count:
        raise wg.ArgumentError(f"{name}: {what} has {len(value)} entries for {count} groups of parameters")
    return list(value)
