"""torch.optim.lr_scheduler: webgrad's schedules, and the base of programs' own.

In: an optimiser. Out: rates, written into its groups. A program's schedule defines `get_lr`, and is begun as
torch begins it: by its own `step`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import webgrad as wg

_schedules = wg.optim.lr_scheduler
__all__ = [*_schedules.__all__, "_LRScheduler"]


class LRScheduler(_schedules.LRScheduler):
    """The base of all schedules."""

    _is_made = False  # whether webgrad defines its rates
    _get_lr_called_within_step = True  # torch warns of `get_lr` elsewhere

    def __init__(self, optimizer: Any, last_epoch: int = -1) -> None:
        self._step_count = 1
        if self._is_made:
            super().__init__(optimizer, last_epoch)
            return
        if not isinstance(optimizer, wg.optim.Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        for at, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{at}] when resuming an optimizer"
                )
        self.optimizer = optimizer
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch, self._step_count = last_epoch, 0
        self.step()

    def step(self, epoch: int | None = None) -> None:
        """Go on by a step, or to one."""
        self._step_count += 1
        if epoch is None:
            self.last_epoch += 1
            self._write(self.get_lr())
        elif hasattr(self, "_get_closed_form_lr"):
            self.last_epoch = epoch
            self._write(self._get_closed_form_lr())
        elif self._is_made and not self._closed:
            self._replay(epoch)
        else:
            self.last_epoch = epoch
            self._write(self.get_lr())

    def _replay(self, epoch: int) -> None:
        """The rates of a step, from the first ones on."""
        self._write(self.base_lrs)
        self.begin()
        for at in range(1, int(epoch) + 1):
            self.last_epoch = at
            self._write(self.get_lr())
        self.last_epoch = epoch

    def print_lr(self, is_verbose: bool, group: int, lr: float, epoch: int | None = None) -> None:
        """Say which rate a group has."""
        if is_verbose:
            print(f"Adjusting learning rate of group {group} to {lr:.4e}.")


_LRScheduler = LRScheduler


def _counterpart(original: type) -> type:
    """torch's class of one of webgrad's schedules."""
    if original is _schedules.LRScheduler:
        return LRScheduler
    above = original.__mro__[1]
    bases = (original, LRScheduler) if above is _schedules.LRScheduler else (original, _counterpart(above))
    return _CLASSES.setdefault(
        original,
        type(
            original.__name__, bases, {"_is_made": True, "__module__": __name__, "__doc__": original.__doc__}
        ),
    )


_CLASSES: dict[type, type] = {}
for _name in _schedules.__all__:
    _each = getattr(_schedules, _name)
    if isinstance(_each, type):
        globals()[_name] = _counterpart(_each)
    else:
        globals()[_name] = _each

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
