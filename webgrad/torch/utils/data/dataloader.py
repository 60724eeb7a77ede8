"""DataLoader: a loop over a dataset in batches.

In: a dataset, an order, and how samples become a batch. Out: batches, made in the loop, or by worker threads
ahead of it in the same order.
"""

from __future__ import annotations

import itertools
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Generic, TypeVar

from ... import random
from ._utils.collate import default_collate, default_convert
from ._utils.fetch import Exhausted, Fetch, fetch_of
from ._utils.worker import END, Pool, get_worker_info
from .dataset import IterableDataset
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]

Sample = TypeVar("Sample", covariant=True)
_FIXED = frozenset(
    {"batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"}
)  # once the loader is made


class _Endless(Sampler[None]):
    """What an iterable dataset's batches are asked for with: nothing, without end."""

    def __iter__(self) -> Iterator[None]:
        return itertools.repeat(None)


class DataLoader(Generic[Sample]):
    """The batches of a dataset; each loop over it is an epoch.

    `num_workers` threads make up to `prefetch_factor` batches each ahead of the loop; `pin_memory` and
    `multiprocessing_context` are taken and mean nothing here.

    >>> import webgrad.torch as torch
    >>> [x.tolist() for x in torch.utils.data.DataLoader(range(5), batch_size=2)]
    [[0, 1], [2, 3], [4]]
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        batch_sampler: Any = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], Any] | None = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        iterable = isinstance(dataset, IterableDataset)
        if iterable:
            _check_iterable(shuffle, sampler, batch_sampler)
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option excludes the options batch_size, shuffle, sampler and drop_last"
                )
            batch_size, drop_last = None, False
        elif batch_size is None and drop_last:
            raise ValueError("batch_size=None disables batches, so drop_last means nothing with it")
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.persistent_workers = persistent_workers
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.generator = generator
        self.in_order = in_order
        if sampler is None:
            sampler = _order_of(dataset, iterable, bool(shuffle), generator)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        in_batches = batch_sampler is not None
        self.collate_fn = collate_fn or (default_collate if in_batches else default_convert)
        self._pool: Pool | None = None
        self._made = True

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _FIXED and self.__dict__.get("_made"):
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(name, value)

    def __len__(self) -> int:
        if not isinstance(self.dataset, IterableDataset):
            return len(self._order)
        length = len(self.dataset)  # type: ignore[arg-type]
        if self.batch_size is None:
            return length
        whole, rest = divmod(length, self.batch_size)
        return whole + (rest > 0 and not self.drop_last)

    def __iter__(self) -> _Epoch[Sample]:
        return _Epoch(self, self._ahead() if self.num_workers else self._at_once())

    @property
    def _order(self) -> Any:
        return self.sampler if self.batch_sampler is None else self.batch_sampler

    def _fetching(self) -> Callable[[Any], Fetch]:
        """What makes batches of a dataset; it does not hold the loader."""
        in_batches = self.batch_sampler is not None
        return partial(fetch_of, in_batches=in_batches, collate=self.collate_fn, drop_last=self.drop_last)

    def _at_once(self) -> Iterator[Any]:
        fetch = self._fetching()(self.dataset)
        for indices in self._order:
            try:
                batch = fetch(indices)
            except Exhausted:
                return
            yield batch
            del batch  # not held while the next is made

    def _ahead(self) -> Iterator[Any]:
        """Batches of the workers, in the order in which they were asked for."""
        pool = self._workers()
        try:
            yield from _taken(
                pool, iter(self._order), self.num_workers, self.prefetch_factor or 2, self.timeout
            )
        finally:
            if pool is not self._pool:
                pool.close()

    def _workers(self) -> Pool:
        if self._pool is not None:
            self._pool.begin()
            return self._pool
        seed = random.base_seed(self.generator)
        pool = Pool(self.dataset, self.num_workers, seed, self._fetching(), self.worker_init_fn)
        if self.persistent_workers:
            self._pool = pool
            weakref.finalize(self, pool.close)
        return pool


class _Epoch(Generic[Sample]):
    """One loop over a loader."""

    def __init__(self, loader: DataLoader[Sample], batches: Iterator[Any]) -> None:
        self._loader, self._batches = loader, batches

    def __iter__(self) -> _Epoch[Sample]:
        return self

    def __next__(self) -> Any:
        return next(self._batches)

    def __len__(self) -> int:
        return len(self._loader)


def _taken(pool: Pool, order: Iterator[Any], workers: int, ahead: int, timeout: float) -> Iterator[Any]:
    waiting: deque[tuple[int, int]] = deque()  # number of the task, and its worker
    active = list(range(workers))
    numbers, turn = itertools.count(), 0

    def ask() -> None:
        nonlocal turn
        at = next((each % workers for each in range(turn, turn + workers) if each % workers in active), None)
        if at is None:
            return
        for indices in order:
            waiting.append((next(numbers), at))
            pool.ask(at, waiting[-1][0], indices)
            turn = at + 1
            return

    for _ in range(ahead * workers):
        ask()
    while waiting:
        number, worker = waiting.popleft()
        batch = pool.result(number, timeout)
        if batch is END and worker in active:
            active.remove(worker)
        ask()
        if batch is not END:
            yield batch
        del batch


def _order_of(dataset: Any, iterable: bool, shuffle: bool, generator: Any) -> Any:
    if iterable:
        return _Endless()
    return RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)


def _check_workers(workers: int, timeout: float, prefetch: int | None, persistent: bool) -> None:
    if workers < 0:
        raise ValueError("num_workers option should be non-negative; use num_workers=0 to load in the loop")
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if workers == 0 and prefetch is not None:
        raise ValueError("prefetch_factor needs worker threads: set num_workers > 0")
    if prefetch is not None and prefetch < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if workers == 0 and persistent:
        raise ValueError("persistent_workers option needs num_workers > 0")


def _check_iterable(shuffle: Any, sampler: Any, batch_sampler: Any) -> None:
    given = {"shuffle": shuffle, "sampler": sampler, "batch_sampler": batch_sampler}
    for name, value in given.items():
        if value not in (None, False):
            raise ValueError(
                f"a DataLoader of an IterableDataset expects no {name} option, but got {value!r}"
            )
