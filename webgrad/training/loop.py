"""fit: the loop that people expect, over public parts that can be used one by one.

In: a model, batches, an optimiser and a loss. Out: what the losses were. The invariant: a run that was
interrupted and resumed from its checkpoint computes what one in one piece computes, bit by bit.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import webgrad as wg

from .checkpoint import SUFFIXES, load_checkpoint, save_checkpoint
from .interrupt import finish_step
from .meter import Progress, progress, shown

__all__ = ["History", "fit"]

_SLOTS = 64  # losses that stay on the device before they are read together: a read waits for the device

Metrics = Mapping[str, float]


@dataclass(slots=True)
class History:
    """What training gave: the loss of every step, the metrics of every epoch.

    >>> wg.training.History(losses=[0.5, 0.25]).step
    2
    """

    losses: list[float] = field(default_factory=list)
    epochs: list[dict[str, float]] = field(default_factory=list)
    position: int = 0  # batches of the epoch that is not yet over

    @property
    def step(self) -> int:
        """How many steps were taken."""
        return len(self.losses)


class _Losses:
    """The last losses, in a tensor that a captured step writes to, and those before in the history."""

    def __init__(self, history: History, device: Any) -> None:
        self._history = history
        self._slots = wg.zeros(_SLOTS, device=device)
        self._places = wg.arange(_SLOTS, device=device)
        self.waiting = 0
        wg.eval(self._slots, self._places)

    def write(self, slot: Any, value: wg.Tensor) -> None:
        """Inside the step: put a loss where it belongs."""
        self._slots[...] = wg.where(self._places == slot, value.astype(wg.float32), self._slots)

    def taken(self) -> None:
        """After a step: one more loss is there."""
        self.waiting += 1
        if self.waiting == _SLOTS:
            self.read()

    def read(self) -> None:
        """Bring the losses to the history."""
        if self.waiting:
            self._history.losses += self._slots.numpy()[: self.waiting].tolist()
            self.waiting = 0


def fit(
    model: Any,
    loader: Iterable[Any],
    optimiser: Any,
    loss: Callable[[Any, Any], wg.Tensor],
    epochs: Any = 1,
    schedule: Any = None,
    clip: float | None = None,
    scaler: Any = None,
    validate: Callable[[], Metrics | float] | None = None,
    checkpoint: str | Path | None = None,
    every: Any = None,
    jit: bool = True,
    on_step: Callable[[int, wg.Tensor], Any] | None = None,
    show: bool = True,
) -> History:
    """Train a model: for each batch (inputs …, target) a step down loss(model(inputs …), target).

    - `schedule.step()` is called after every step, `validate()` after every epoch, in eval mode and without
      gradients: it gives metrics by name, or one number.
    - `clip` is the largest norm of all gradients together; `scaler` scales the loss for half precision.
    - `checkpoint` is a .safetensors file, written after every epoch, every `every` steps, at the end, and at
      Ctrl-C, which lets the step finish (a second one does not). If it is there at the start, training goes
      on from it.
    - `on_step(step, loss)` is called after every step, counted from 1, and ends training by returning True.
      The loss is a tensor: reading it waits for the device.
    - `jit=False` runs the step's Python code each time.

    >>> x = wg.asarray([[0.0], [1.0], [2.0], [3.0]])
    >>> loader = wg.data.DataLoader(wg.data.TensorDataset(x, 2 * x + 1), batch_size=4)
    >>> model = wg.nn.Linear(1, 1)
    >>> optimiser = wg.optim.Adam(model.parameters(), lr=0.3)
    >>> history = wg.training.fit(model, loader, optimiser, wg.mse_loss, epochs=99, show=False)
    >>> history.losses[-1] < 0.1 * history.losses[0]
    True
    """
    if not isinstance(epochs, int) or epochs < 0:
        raise wg.ArgumentError(f"fit: epochs must be an integer, 0 or more, not {epochs!r}")
    if every is not None and (not isinstance(every, int) or every < 1):
        raise wg.ArgumentError(f"fit: every must be a number of steps, 1 or more, not {every!r}")
    history = History()
    first = next(iter(model.parameters()), None)
    if first is None:
        raise wg.ArgumentError("fit: the model has no parameters, so there is nothing to learn")
    losses = _Losses(history, first.device)
    step = _step(model, optimiser, loss, clip, scaler, losses)
    run = _Run(
        model=model,
        loader=loader,
        schedule=schedule,
        step=wg.jit(step) if jit else step,
        parts={"model": model, "optimiser": optimiser, "schedule": schedule, "scaler": scaler},
        history=history,
        losses=losses,
        path=None if checkpoint is None else Path(checkpoint),
        every=every,
        on_step=on_step,
        show=show,
    )
    run.resume()
    with finish_step() as is_interrupted:
        while len(history.epochs) < epochs:
            label = f"epoch {len(history.epochs) + 1}/{epochs}"
            if not run.train(label, is_interrupted):
                break
            run.end_epoch(validate, label)
            run.save()
            if is_interrupted():
                break
        run.save()
        if is_interrupted():
            if run.path is not None:
                _say(f"stopped after step {history.step}; {run.path} has all that is needed to go on")
            raise KeyboardInterrupt
    return history


def _step(
    model: Any, optimiser: Any, loss: Callable[[Any, Any], wg.Tensor], clip: Any, scaler: Any, losses: _Losses
) -> Callable[..., wg.Tensor]:
    def step(slot: Any, *batch: Any) -> wg.Tensor:
        optimiser.zero_grad()
        value = loss(model(*batch[:-1]), batch[-1])
        (value if scaler is None else scaler.scale(value)).backward()
        if clip is not None:
            if scaler is not None:
                scaler.unscale_(optimiser)
            wg.nn.utils.clip_grad_norm_(model.parameters(), clip)
        if scaler is None:
            optimiser.step()
        else:
            scaler.step(optimiser)
            scaler.update()
        found = value.detach()
        losses.write(slot, found)
        return found

    return step


@dataclass(slots=True)
class _Run:
    """One call of fit."""

    model: Any
    loader: Any
    schedule: Any
    step: Callable[..., wg.Tensor]
    parts: dict[str, Any]  # what a checkpoint takes, by name
    history: History
    losses: _Losses
    path: Path | None
    every: int | None
    on_step: Callable[[int, wg.Tensor], Any] | None
    show: bool
    saved: tuple[int, int] | None = None  # the steps and epochs that the file has

    def __post_init__(self) -> None:
        if hasattr(self.loader, "state_dict"):
            self.parts["loader"] = self.loader

    def train(self, label: str, is_interrupted: Callable[[], bool]) -> bool:
        """Go through what is left of an epoch; False where it is not to be finished."""
        self.model.train()
        with self._bar(label) as bar:
            for batch in self._batches():
                parts = _parts_of(batch)
                value = self.step(self.losses.waiting, *parts)
                self.losses.taken()
                self.history.position += 1
                if self.schedule is not None:
                    self.schedule.step()
                bar.set(loss=value)
                bar.advance(samples=_samples(parts))
                number = self.history.step + self.losses.waiting
                if self.on_step is not None and self.on_step(number, value) is True:
                    return False
                if is_interrupted():
                    return False
                if self.every is not None and number % self.every == 0:
                    self.save()
        return True

    def _batches(self) -> Iterator[Any]:
        """What is left of the epoch: a loader with a state knows, in others batches are skipped."""
        done = self.history.position
        if done == 0 or "loader" not in self.parts:
            return islice(iter(self.loader), done, None)
        return iter(self.loader) if done < len(self.loader) else iter(())

    def _bar(self, label: str) -> Progress[Any]:
        total = len(self.loader) if hasattr(self.loader, "__len__") else None
        return progress(None, total, label, start=self.history.position, show=self.show)

    def end_epoch(self, validate: Callable[[], Metrics | float] | None, label: str) -> None:
        """The metrics of an epoch that is over."""
        self.losses.read()
        steps = self.history.losses[-self.history.position :] if self.history.position else []
        metrics = {"loss": sum(steps) / len(steps)} if steps else {}
        if validate is not None:
            self.model.eval()
            with wg.no_grad():
                found = validate()
            self.model.train()
            named = found if isinstance(found, Mapping) else {"metric": found}
            metrics |= {name: float(value) for name, value in named.items()}
        self.history.epochs.append(metrics)
        self.history.position = 0
        if self.show and metrics:
            _say(f"{label}: " + ", ".join(f"{name} {shown(value)}" for name, value in metrics.items()))

    def save(self) -> None:
        """Write a checkpoint of this moment, if there is a path for one, and it is not there yet."""
        self.losses.read()
        now = self.history.step, len(self.history.epochs)
        if self.path is None or self.saved == now:
            return
        past = wg.asarray(self.history.losses, dtype=wg.float32, device="cpu")
        extra = {"losses": past, "epochs": self.history.epochs, "position": self.history.position}
        save_checkpoint(self.path, **self.parts, step=self.history.step, extra=extra)
        self.saved = now

    def resume(self) -> None:
        """Go on from the checkpoint, if there is one; where none could be written, say so now."""
        if self.path is None:
            return
        wg.io.check_writable(self.path, SUFFIXES)
        if not self.path.exists():
            return
        found = load_checkpoint(self.path, **self.parts)
        if not {"losses", "epochs", "position"} <= found.extra.keys():
            raise wg.ModelFileError(f"{self.path} was not written by fit: it has no losses of steps")
        self.history.losses[:] = found.extra["losses"].tolist()
        self.history.epochs[:] = found.extra["epochs"]
        self.history.position = int(found.extra["position"])
        self.saved = self.history.step, len(self.history.epochs)
        if self.show:
            _say(f"{self.path}: going on after step {found.step}")


def _parts_of(batch: Any) -> Sequence[Any]:
    """The inputs and the target of a batch; one that is a single tensor is its own target."""
    if not isinstance(batch, tuple | list):
        return batch, batch
    if len(batch) < 2:
        raise wg.ArgumentError(
            f"fit: a batch is (inputs …, target), and this is a {type(batch).__name__} of {len(batch)}: give "
            "the loader inputs and targets; for a model that gives back its input, the inputs alone"
        )
    return batch


def _samples(batch: Any) -> int:
    """How many samples a batch has: the first size of its first array."""
    while not hasattr(batch, "shape"):
        values = list(batch.values()) if isinstance(batch, Mapping) else batch
        if not isinstance(values, tuple | list) or not values:
            return 1
        batch = values[0]
    return int(batch.shape[0]) if batch.shape else 1


def _say(text: str) -> None:
    with suppress(OSError, ValueError):  # nobody reads any more: not a reason to stop
        print(text, file=sys.stderr, flush=True)
