"""Schedules that go up and down, and those made of others: one cycle, warm restarts, plateaus, sequences."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import webgrad as wg

from .optimizer import Group, Optimizer
from .schedules import LambdaLR, LRScheduler, _positive, for_each

__all__ = [
    "ChainedScheduler",
    "CosineAnnealingWarmRestarts",
    "OneCycleLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "warmup_cosine",
]


def warmup_cosine(optimizer: Optimizer, warmup: int, total: int, final: float = 0.0) -> LambdaLR:
    """Straight up to the optimiser's rate in `warmup` steps, then down half a cosine to `final` of it.

    >>> opt = wg.optim.AdamW([wg.ones(2).requires_grad_()], lr=1.0)
    >>> rates = wg.optim.lr_scheduler.warmup_cosine(opt, warmup=2, total=6)
    >>> for _ in range(4):
    ...     rates.step()
    >>> rates.get_last_lr()
    [0.5]
    """
    if not 0 <= warmup < total:
        raise wg.ArgumentError(
            f"warmup_cosine: {warmup} steps of warm-up of {total} in all: it must be fewer"
        )

    def factor(step: int) -> float:
        if step < warmup:
            return (step + 1) / warmup
        done = min(1.0, (step - warmup) / (total - warmup))
        return final + (1 - final) * (1 + math.cos(math.pi * done)) / 2

    return LambdaLR(optimizer, factor)


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half a cosine down to `eta_min`, again and again; each time `T_mult` times as long.

    >>> opt = wg.optim.SGD([wg.ones(2).requires_grad_()], lr=1.0)
    >>> rates = wg.optim.lr_scheduler.CosineAnnealingWarmRestarts(opt, T_0=2)
    >>> for _ in range(3):
    ...     opt.step(); rates.step()
    >>> [round(each, 4) for each in rates.get_last_lr()]
    [0.5]
    """

    _closed = True

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        self.T_0 = self.T_i = _positive("CosineAnnealingWarmRestarts", "T_0", T_0)
        self.T_mult = _positive("CosineAnnealingWarmRestarts", "T_mult", T_mult)
        self.eta_min = eta_min
        self.T_cur: float = 0
        super().__init__(optimizer, last_epoch)
        if last_epoch != -1:
            self.step(self.last_epoch)

    def get_lr(self) -> list[float]:
        """The rates of `T_cur` steps after the last restart."""
        height = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * height for base in self.base_lrs]

    def begin(self) -> None:
        """Go to the first step."""
        self.step(0)

    def step(self, epoch: float | None = None) -> None:
        """Go on by a step, or to one, which may lie between two."""
        if epoch is None:
            epoch = self.last_epoch + 1
        if epoch < 0:
            raise wg.ArgumentError(f"CosineAnnealingWarmRestarts: the step {epoch!r} must not be negative")
        self.T_i, self.T_cur = self.T_0, epoch
        while self.T_mult > 1 and self.T_cur >= self.T_i:
            self.T_cur -= self.T_i
            self.T_i *= self.T_mult
        self.T_cur %= self.T_i
        self.last_epoch = math.floor(epoch)
        self._write(self.get_lr())


class _Phase(NamedTuple):
    """A stretch of a cycle: its last step, and the names of what rates and momenta go from and to."""

    end: float
    rates: tuple[str, str]
    momenta: tuple[str, str]


_ANNEALING: dict[str, Callable[[float], float]] = {
    "cos": lambda part: (1 - math.cos(math.pi * part)) / 2,
    "linear": lambda part: part,
}


class OneCycleLR(LRScheduler):
    """Up to `max_lr` and down to almost nothing in one cycle, with momentum the other way (Smith, 2017).

    >>> opt = wg.optim.SGD([wg.ones(2).requires_grad_()], lr=1.0, momentum=0.9)
    >>> rates = wg.optim.lr_scheduler.OneCycleLR(opt, max_lr=2.0, total_steps=10)
    >>> for _ in range(3):
    ...     opt.step(); rates.step()
    >>> [round(each, 4) for each in rates.get_last_lr()]
    [1.901]
    """

    _closed = True

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | Sequence[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | Sequence[float] = 0.85,
        max_momentum: float | Sequence[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise wg.ArgumentError("OneCycleLR: give total_steps, or epochs and steps_per_epoch")
            total_steps = epochs * steps_per_epoch
        self.total_steps = _positive("OneCycleLR", "total_steps", total_steps)
        if not 0 <= pct_start <= 1:
            raise wg.ArgumentError(f"OneCycleLR: pct_start is {pct_start!r}, and must be from 0 to 1")
        if anneal_strategy not in _ANNEALING:
            raise wg.ArgumentError(
                f"OneCycleLR: anneal_strategy is {anneal_strategy!r}, and must be cos or linear"
            )
        self.anneal_strategy, self.cycle_momentum = anneal_strategy, cycle_momentum
        self._phases = _phases(total_steps, pct_start, three_phase)
        tops = for_each("OneCycleLR", "max_lr", max_lr, optimizer)
        if last_epoch == -1:
            for group, top in zip(optimizer.param_groups, tops, strict=True):
                group["initial_lr"] = top / div_factor
                group["max_lr"] = top
                group["min_lr"] = top / div_factor / final_div_factor
        if cycle_momentum:
            self._prepare_momenta(optimizer, base_momentum, max_momentum, first=last_epoch == -1)
        super().__init__(optimizer, last_epoch)

    def _prepare_momenta(self, optimizer: Optimizer, base: Any, top: Any, *, first: bool) -> None:
        self.use_beta1 = "betas" in optimizer.defaults
        if not self.use_beta1 and not optimizer.defaults.get("momentum"):
            raise wg.ArgumentError(
                "OneCycleLR: the optimiser has neither betas nor a momentum to cycle: say "
                "cycle_momentum=False"
            )
        lows = for_each("OneCycleLR", "base_momentum", base, optimizer)
        highs = for_each("OneCycleLR", "max_momentum", top, optimizer)
        for group, low, high in zip(optimizer.param_groups, lows, highs, strict=True):
            if first:
                group["base_momentum"], group["max_momentum"] = low, high

    def get_lr(self) -> list[float]:
        """The rates of `last_epoch`; momenta are written too."""
        if self.last_epoch > self.total_steps:
            raise wg.ArgumentError(
                f"OneCycleLR: step {self.last_epoch} of {self.total_steps}: the cycle is over; give more "
                "total_steps"
            )
        start = 0.0
        phase = self._phases[-1]
        for each in self._phases:
            phase = each
            if self.last_epoch <= each.end or each is self._phases[-1]:
                break
            start = each.end
        part = _ANNEALING[self.anneal_strategy]((self.last_epoch - start) / (phase.end - start))

        def between(group: Group, names: tuple[str, str]) -> float:
            low, high = group[names[0]], group[names[1]]
            return float(low + (high - low) * part)

        if self.cycle_momentum:
            for group in self._groups:
                set_momentum(group, between(group, phase.momenta))
        return [between(group, phase.rates) for group in self._groups]


def _phases(total: int, part: float, three: bool) -> list[_Phase]:
    up = _Phase(float(part * total) - 1, ("initial_lr", "max_lr"), ("max_momentum", "base_momentum"))
    back = ("base_momentum", "max_momentum")
    if not three:
        return [up, _Phase(total - 1, ("max_lr", "min_lr"), back)]
    return [
        up,
        _Phase(float(2 * part * total) - 2, ("max_lr", "initial_lr"), back),
        _Phase(total - 1, ("initial_lr", "min_lr"), ("max_momentum", "max_momentum")),
    ]


def set_momentum(group: Group, value: float) -> None:
    """Write a group's momentum, or the first of its betas."""
    if "betas" in group:
        group["betas"] = (value, *group["betas"][1:])
    else:
        group["momentum"] = value


class ReduceLROnPlateau(LRScheduler):
    """Times `factor` when a metric, given to `step`, has not become better for `patience` steps.

    >>> opt = wg.optim.SGD([wg.ones(2).requires_grad_()], lr=1.0)
    >>> rates = wg.optim.lr_scheduler.ReduceLROnPlateau(opt, patience=1)
    >>> for _ in range(3):
    ...     opt.step(); rates.step(0.7)
    >>> [round(each, 4) for each in rates.get_last_lr()]
    [0.1]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float | Sequence[float] = 0.0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise wg.ArgumentError(f"ReduceLROnPlateau: the factor is {factor!r}, and must be less than 1")
        if mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
            raise wg.ArgumentError(
                f"ReduceLROnPlateau: mode is {mode!r} and threshold_mode {threshold_mode!r}: they are min or "
                "max, and rel or abs"
            )
        self.mode, self.factor, self.patience = mode, factor, patience
        self.threshold, self.threshold_mode, self.cooldown, self.eps = (
            threshold,
            threshold_mode,
            cooldown,
            eps,
        )
        self.min_lrs = for_each("ReduceLROnPlateau", "min_lr", min_lr, optimizer)
        self.best = math.inf if mode == "min" else -math.inf
        self.num_bad_epochs = self.cooldown_counter = 0
        super().__init__(optimizer)

    def get_lr(self) -> list[float]:
        """The rates as they are."""
        return self._rates

    def step(self, metrics: Any = None) -> None:
        """Say how good the model is now; a tensor is read."""
        if metrics is None:
            raise wg.ArgumentError("ReduceLROnPlateau.step takes the metric that is watched: step(loss)")
        current = float(metrics)
        self.last_epoch += 1
        if self.is_better(current):
            self.best, self.num_bad_epochs = current, 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce()
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._write(self._rates)

    def is_better(self, value: float) -> bool:
        """Whether a metric is better than the best by more than the threshold."""
        margin = self.threshold * (self.best if self.threshold_mode == "rel" else 1.0)
        if self.mode == "min":
            return value < self.best - margin if math.isfinite(self.best) else value < self.best
        return value > self.best + margin if math.isfinite(self.best) else value > self.best

    def _reduce(self) -> None:
        for group, least in zip(self._groups, self.min_lrs, strict=True):
            new = max(group["lr"] * self.factor, least)
            if group["lr"] - new > self.eps:
                group["lr"] = new


class _Composed(LRScheduler):
    """A schedule made of others, whose states are kept with its own."""

    _not_saved = ("optimizer", "_schedulers")

    def __init__(self, optimizer: Optimizer | None, schedulers: Sequence[LRScheduler]) -> None:
        name = type(self).__name__
        if not schedulers:
            raise wg.ArgumentError(f"{name}: the list of schedules is empty")
        self.optimizer = optimizer or schedulers[0].optimizer
        if any(each.optimizer is not self.optimizer for each in schedulers):
            raise wg.ArgumentError(f"{name}: the schedules must all be of one optimiser")
        self._schedulers = list(schedulers)
        self.base_lrs = [group["initial_lr"] for group in self.optimizer.param_groups]
        self.last_epoch = 0
        self._last_lr = self._rates

    def state_dict(self) -> dict[str, Any]:
        """Its own state, and theirs as "_schedulers"."""
        return {**super().state_dict(), "_schedulers": [each.state_dict() for each in self._schedulers]}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` gave."""
        super().load_state_dict(state_dict)
        for each, state in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            each.load_state_dict(state)


class SequentialLR(_Composed):
    """One schedule after another; each begins at its milestone.

    >>> from webgrad.optim.lr_scheduler import ExponentialLR, LinearLR, SequentialLR
    >>> opt = wg.optim.SGD([wg.ones(2).requires_grad_()], lr=1.0)
    >>> up, down = LinearLR(opt, 0.5, total_iters=2), ExponentialLR(opt, 0.9)
    >>> rates = SequentialLR(opt, [up, down], milestones=[2])
    >>> for _ in range(3):
    ...     opt.step(); rates.step()
    >>> [round(each, 4) for each in rates.get_last_lr()]
    [0.9]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: Sequence[LRScheduler],
        milestones: Sequence[int],
        last_epoch: int = -1,
    ) -> None:
        super().__init__(optimizer, schedulers)
        if len(milestones) != len(schedulers) - 1:
            raise wg.ArgumentError(
                f"SequentialLR: {len(schedulers)} schedules need {len(schedulers) - 1} milestones, not "
                f"{len(milestones)}"
            )
        self._milestones = list(milestones)
        self.begin()
        self.last_epoch = last_epoch + 1

    def begin(self) -> None:
        """Go to the first step of the first."""
        self.last_epoch = 0
        self._start(self._schedulers[0])

    def _start(self, scheduler: LRScheduler) -> None:
        for group, base in zip(self._groups, scheduler.base_lrs, strict=True):
            group["lr"] = base
        scheduler.begin()
        self._last_lr = scheduler.get_last_lr()

    def step(self) -> None:
        """Go on by a step of the schedule whose turn it is."""
        self.last_epoch += 1
        at = bisect_right(self._milestones, self.last_epoch)
        if at > 0 and self._milestones[at - 1] == self.last_epoch:
            self._start(self._schedulers[at])
        else:
            self._schedulers[at].step()
            self._last_lr = self._schedulers[at].get_last_lr()


class ChainedScheduler(_Composed):
    """Several schedules at once: each goes on from the rates that the one before it gave.

    >>> from webgrad.optim.lr_scheduler import ChainedScheduler, ConstantLR, ExponentialLR
    >>> opt = wg.optim.SGD([wg.ones(2).requires_grad_()], lr=1.0)
    >>> rates = ChainedScheduler([ConstantLR(opt, 0.5, total_iters=4), ExponentialLR(opt, 0.9)])
    >>> opt.step(); rates.step()
    >>> [round(each, 4) for each in rates.get_last_lr()]
    [0.45]
    """

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        super().__init__(optimizer, schedulers)

    def begin(self) -> None:
        """Go to the first step of all."""
        self.last_epoch = 0
        for each in self._schedulers:
            each.begin()
        self._last_lr = self._rates

    def step(self) -> None:
        """Go on by a step of all."""
        self.last_epoch += 1
        for each in self._schedulers:
            each.step()
        self._last_lr = self._rates
