"""DataLoader: batches of a dataset as tensors on a device, made ahead of use on a thread.

In: a dataset or arrays. Out: batches. The invariant: which samples a batch has depends only on the seed, the
epoch and the batch's number, so training resumed in the middle of an epoch goes on with the same ones.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import webgrad as wg

from ..arrays import np
from .order import generator_of, permutation, seed_or_drawn
from .prefetch import ahead
from .sets import as_dataset, batch_of, is_on_device

__all__ = ["DataLoader"]

_SHUFFLE, _TRANSFORM = 1, 2  # what numbers are drawn for


class DataLoader:
    """The batches of a dataset, as tensors: each loop over it is an epoch, with its own order.

    - `dataset`: arrays side by side, as a tuple; or anything with `__len__` and `__getitem__`, whose samples
      `collate` makes a batch of. A tuple of tensors stays on its device.
    - `shuffle`: another order in each epoch, the same one for the same `seed`. Without a seed it comes from
      `webgrad.random.seed`.
    - `drop_last`: leave out the last batch where it is shorter than the others.
    - `transform`: a function of the batch's NumPy arrays that returns others instead, run on the thread.
      If it takes an argument named `random`, that is a NumPy generator of the batch's own.
    - `prefetch`: how many batches are made ahead; 0 uses no thread.

    >>> loader = wg.data.DataLoader((np.arange(10), np.arange(10) % 2), batch_size=4)
    >>> [x.tolist() for x, y in loader]
    [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int = 1,
        shuffle: bool = False,
        drop_last: bool = False,
        seed: int | None = None,
        prefetch: int = 2,
        transform: Callable[..., Any] | None = None,
        collate: Callable[[list[Any]], Any] | None = None,
        device: Any = None,
    ) -> None:
        self.dataset = as_dataset(dataset)
        self.batch_size = _whole("batch_size", batch_size, least=1)
        self.shuffle = bool(shuffle)
        self.drop_last = bool(drop_last)
        self._is_random = transform is not None and "random" in _parameters(transform)
        if seed is None and not self.shuffle and not self._is_random:
            seed = 0  # nothing is drawn, so the random module is left as it is
        self.seed = seed_or_drawn("DataLoader", seed)
        self.prefetch = _whole("prefetch", prefetch, least=0)
        self.transform = transform
        self.collate = collate
        self.device = device
        self._epoch = 0
        self._position = 0  # batches of the epoch that were given
        self._resumes = False  # whether the next loop goes on in the middle of an epoch
        self._newest: object = None  # the loop whose position is this loader's
        if len(self) == 0:
            raise wg.ArgumentError(
                f"DataLoader: {len(self.dataset)} samples make no batch of {self.batch_size}"
                + (" with drop_last=True" if self.drop_last else "")
            )

    def __len__(self) -> int:
        whole, rest = divmod(len(self.dataset), self.batch_size)
        return whole + (rest > 0 and not self.drop_last)

    def __repr__(self) -> str:
        return (
            f"DataLoader({len(self.dataset)} samples, batch_size={self.batch_size}, "
            f"shuffle={self.shuffle}, {len(self)} batches)"
        )

    @property
    def epoch(self) -> int:
        """The epoch of the loop that runs, or of the last one; counted from 0."""
        return self._epoch

    @property
    def position(self) -> int:
        """How many batches of the epoch were given."""
        return self._position

    def __iter__(self) -> Iterator[Any]:
        if self._position and not self._resumes:  # a loop that was left, or is still running
            self._epoch, self._position = self._epoch + 1, 0
        self._resumes = False
        self._newest = mark = object()
        return self._loop(mark, self._epoch, self._position)

    def _loop(self, mark: object, epoch: int, first: int) -> Iterator[Any]:
        # A dataset of tensors is gathered on its device, which is quick, and leaves the graph to one thread.
        limit = 0 if is_on_device(self.dataset) else self.prefetch
        for at, batch in enumerate(ahead(lambda: self._made(epoch, first), limit), start=first + 1):
            if self._newest is mark:
                self._position = at
            yield placed(batch, self.device)
            del batch
        if self._newest is mark:
            self._epoch, self._position = epoch + 1, 0

    def _made(self, epoch: int, first: int) -> Iterator[Any]:
        """The batches of an epoch from a number on, as NumPy arrays."""
        count = len(self.dataset)
        order = permutation(count, self.seed, epoch, _SHUFFLE) if self.shuffle else np.arange(count)
        for at in range(first, len(self)):
            numbers = order[at * self.batch_size : (at + 1) * self.batch_size]
            if self.collate is None:
                batch = batch_of(self.dataset, numbers)
            else:
                batch = self.collate([self.dataset[int(number)] for number in numbers])
            yield batch if self.transform is None else self._transformed(batch, epoch, at)

    def _transformed(self, batch: Any, epoch: int, at: int) -> Any:
        assert self.transform is not None
        parts = batch if isinstance(batch, tuple) else (batch,)
        if self._is_random:
            return self.transform(*parts, random=generator_of(self.seed, epoch, at, _TRANSFORM))
        return self.transform(*parts)

    # Where it is

    def _identity(self) -> dict[str, Any]:
        return {
            "samples": len(self.dataset),
            "batch_size": self.batch_size,
            "shuffle": self.shuffle,
            "drop_last": self.drop_last,
        }

    def state_dict(self) -> dict[str, Any]:
        """Where the loader is, in plain numbers: what `load_state_dict` goes on from.

        Taken inside a loop, the batch that was given last counts as done.
        """
        return self._identity() | {"seed": self.seed, "epoch": self._epoch, "position": self._position}

    def check_state_dict(self, state: Mapping[str, Any]) -> None:
        """Raise where a state is not one of a loader like this."""
        missing = [key for key in self.state_dict() if key not in state]
        if missing:
            raise wg.ArgumentError(f"DataLoader: the state lacks {', '.join(missing)}")
        for key, mine in self._identity().items():
            if state[key] != mine:
                raise wg.ArgumentError(
                    f"DataLoader: the state is of a loader with {key}={state[key]}, and this one has "
                    f"{key}={mine}: its batches would be others"
                )
        if not (0 <= state["position"] <= len(self) and state["epoch"] >= 0):
            raise wg.ArgumentError(
                f"DataLoader: an epoch has {len(self)} batches, and the state is at {state['position']} of "
                f"epoch {state['epoch']}"
            )

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a state: the next loop gives what that loader would have given next."""
        self.check_state_dict(state)
        self.seed = seed_or_drawn("DataLoader", state["seed"])
        self._epoch, self._position = int(state["epoch"]), int(state["position"])
        if self._position == len(self):  # all were given, and the loop was not yet left
            self._epoch, self._position = self._epoch + 1, 0
        self._resumes = self._position > 0
        self._newest = None


def placed(batch: Any, device: Any) -> Any:
    """A batch with its arrays as tensors on a device."""
    if isinstance(batch, tuple | list):
        parts = [placed(each, device) for each in batch]
        if hasattr(batch, "_fields"):
            return type(batch)(*parts)
        return parts if isinstance(batch, list) else tuple(parts)
    if isinstance(batch, Mapping):
        return {key: placed(each, device) for key, each in batch.items()}
    if isinstance(batch, wg.Tensor):
        return batch if device is None else batch.to_device(device)
    if isinstance(batch, np.ndarray | np.generic | int | float):
        return wg.asarray(batch, device=device)
    return batch  # a text, say: the loop gets it as it is


def _parameters(function: Callable[..., Any]) -> frozenset[str]:
    try:
        return frozenset(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # some that are written in C do not say
        return frozenset()


def _whole(name: str, value: Any, *, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise wg.ArgumentError(f"DataLoader: {name} must be an integer, {least} or more, not {value!r}")
    return int(value)
