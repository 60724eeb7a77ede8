"""torch.optim.swa_utils: averages of a model's parameters over time, and the rates that go with them.

In: a model that is trained. Out: a copy of it whose parameters are averages.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable
from typing import Any

import webgrad as wg

from ..nn.module import Module
from . import lr_scheduler

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]

Average = Callable[[Any, Any, Any], Any]


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """An average in which the past counts less and less."""
    if not 0.0 <= decay <= 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")
    return lambda average, current, count: decay * average + (1 - decay) * current


def get_swa_avg_fn() -> Average:
    """An average in which every update counts the same."""
    return lambda average, current, count: average + (current - average) / (count + 1)


def _of_many(one: Average) -> Callable[[Any, Any, Any], None]:
    def update(averages: Any, currents: Any, count: Any) -> None:
        for average, current in zip(averages, currents, strict=True):
            average[...] = one(average, current, count)

    return update


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[[Any, Any, Any], None]:
    """`get_ema_avg_fn` of lists, in place."""
    return _of_many(get_ema_avg_fn(decay))


def get_swa_multi_avg_fn() -> Callable[[Any, Any, Any], None]:
    """`get_swa_avg_fn` of lists, in place."""
    return _of_many(get_swa_avg_fn())


class AveragedModel(Module):
    """A copy of a model whose parameters are averages of those that `update_parameters` was given."""

    def __init__(
        self,
        model: Any,
        device: Any = None,
        avg_fn: Average | None = None,
        multi_avg_fn: Callable[[Any, Any, Any], None] | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", wg.zeros((), dtype=wg.int32, device=device))
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the average model computes."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Any) -> None:
        """Take a model's parameters into the average; the first ones are it."""
        averages, currents = (self._tensors(each) for each in (self.module, model))
        count = int(self.n_averaged.item())
        floats = [
            (average, current.detach().to_device(average.device))
            for average, current in zip(averages, currents, strict=True)
            if average.dtype.kind in "fc" or count == 0
        ]
        with wg.no_grad():
            if count == 0:
                for average, current in floats:
                    average[...] = current
            elif self.multi_avg_fn is not None:
                old, new = ([pair[at] for pair in floats] for at in (0, 1))
                self.multi_avg_fn(old, new, self.n_averaged)
            else:
                one = self.avg_fn or get_swa_avg_fn()
                for average, current in floats:
                    average[...] = one(average, current, self.n_averaged)
            if not self.use_buffers:
                for mine, other in zip(self.module.buffers(), model.buffers(), strict=True):
                    mine[...] = other.detach().to_device(mine.device)
            self.n_averaged[...] = self.n_averaged + 1

    def _tensors(self, model: Any) -> list[Any]:
        return [*model.parameters(), *(model.buffers() if self.use_buffers else ())]


class SWALR(lr_scheduler.LRScheduler):
    """From the rates that there are to `swa_lr` in some steps, and then constant."""

    _is_made = True
    _closed = False

    def __init__(
        self,
        optimizer: Any,
        swa_lr: Any,
        anneal_epochs: Any = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        groups = optimizer.param_groups
        rates = swa_lr if isinstance(swa_lr, list | tuple) else [swa_lr] * len(groups)
        for group, rate in zip(groups, rates, strict=True):
            group["swa_lr"] = rate
        self.anneal_epochs, self.anneal_strategy = anneal_epochs, anneal_strategy
        super().__init__(optimizer, last_epoch)

    def _part(self, step: int) -> float:
        """How much of the way is gone."""
        part = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
        return part if self.anneal_strategy == "linear" else (1 - math.cos(math.pi * part)) / 2

    def get_lr(self) -> list[float]:
        """The rates of `last_epoch`, from those before it."""
        step = self.last_epoch if self.anneal_epochs else max(1, self.last_epoch)
        before, now = self._part(step - 1), self._part(step)
        found = []
        for group in self.optimizer.param_groups:
            start = group["lr"] if before == 1 else (group["lr"] - group["swa_lr"] * before) / (1 - before)
            found.append(group["swa_lr"] * now + start * (1 - now))
        return found


def update_bn(loader: Iterable[Any], model: Any, device: Any = None) -> None:
    """Compute the running statistics of a model's batch norms anew, over some data."""
    norms = [each for each in model.modules() if getattr(each, "num_batches_tracked", None) is not None]
    if not norms:
        return
    momenta = {each: each.momentum for each in norms}
    was_training = model.training
    model.train()
    for each in norms:
        each.reset_running_stats()
        each.momentum = None
    with wg.no_grad():
        for batch in loader:
            x = batch[0] if isinstance(batch, list | tuple) else batch
            model(x if device is None else x.to(device))
    for each, momentum in momenta.items():
        each.momentum = momentum
    model.train(was_training)
