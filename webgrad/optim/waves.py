"""CyclicLR: rates that go up and down between two bounds, over and over, with momentum the other way.

In: an optimiser. Out: its groups' rates and momenta.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import webgrad as wg

from .cycles import set_momentum
from .optimizer import Optimizer
from .schedules import LRScheduler, for_each

__all__ = ["CyclicLR"]

_SHRINKING: dict[str, tuple[Callable[[float, float], float], str]] = {
    "triangular": (lambda x, gamma: 1.0, "cycle"),
    "triangular2": (lambda x, gamma: 1 / 2.0 ** (x - 1), "cycle"),
    "exp_range": (lambda x, gamma: gamma**x, "iterations"),
}


class CyclicLR(LRScheduler):
    """From `base_lr` up to `max_lr` in `step_size_up` steps and down again, over and over (Smith, 2015).

    Modes: triangular; triangular2, each cycle half as high; exp_range, by gamma to the power of the step. Or
    a function of one's own, `scale_fn`, of the cycle or of the step, as `scale_mode` says.

    >>> opt = wg.optim.SGD([wg.ones(2).requires_grad_()], lr=1.0, momentum=0.9)
    >>> rates = wg.optim.lr_scheduler.CyclicLR(opt, base_lr=0.1, max_lr=0.5, step_size_up=4)
    >>> for _ in range(3):
    ...     opt.step(); rates.step()
    >>> [round(each, 4) for each in rates.get_last_lr()]
    [0.4]
    """

    _not_saved = ("optimizer", "scale_fn")
    _closed = True

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | Sequence[float],
        max_lr: float | Sequence[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | Sequence[float] = 0.8,
        max_momentum: float | Sequence[float] = 0.9,
        last_epoch: int = -1,
    ) -> None:
        if mode not in _SHRINKING and scale_fn is None:
            names = ", ".join(map(repr, _SHRINKING))
            raise wg.ArgumentError(f"CyclicLR: mode is one of {names}, not {mode!r}; or give scale_fn")
        up = float(step_size_up)
        self.total_size = up + float(step_size_up if step_size_down is None else step_size_down)
        self.step_ratio = up / self.total_size
        self.mode, self.gamma, self.scale_fn, self.scale_mode = mode, gamma, scale_fn, scale_mode
        if scale_fn is None:
            self.scale_mode = _SHRINKING[mode][1]
        self.max_lrs: list[float] = for_each("CyclicLR", "max_lr", max_lr, optimizer)
        rates = for_each("CyclicLR", "base_lr", base_lr, optimizer)
        self.cycle_momentum = cycle_momentum
        if cycle_momentum and "betas" not in optimizer.defaults and "momentum" not in optimizer.defaults:
            raise wg.ArgumentError(
                "CyclicLR: the optimiser has neither betas nor a momentum to cycle: say cycle_momentum=False"
            )
        self.base_momentums: list[float] = for_each("CyclicLR", "base_momentum", base_momentum, optimizer)
        self.max_momentums: list[float] = for_each("CyclicLR", "max_momentum", max_momentum, optimizer)
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            if last_epoch == -1:
                group["initial_lr"] = group["lr"] = rate
        super().__init__(optimizer, last_epoch)
        self.base_lrs = rates

    def get_lr(self) -> list[float]:
        """The rates of `last_epoch`; momenta are written too."""
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        at = cycle if self.scale_mode == "cycle" else self.last_epoch
        if self.scale_fn is None:
            height *= _SHRINKING[self.mode][0](at, self.gamma)
        else:
            height *= self.scale_fn(at)
        if self.cycle_momentum:
            pairs = zip(self._groups, self.base_momentums, self.max_momentums, strict=True)
            for group, low, high in pairs:
                set_momentum(group, high - (high - low) * height)
        bounds = zip(self.base_lrs, self.max_lrs, strict=True)
        return [low + (high - low) * height for low, high in bounds]
