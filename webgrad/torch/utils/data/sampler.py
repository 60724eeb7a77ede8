"""Samplers: in which order the numbers of samples come.

In: how many there are, or weights, and a generator. Out: iterators of numbers; those that draw are repeatable
after `torch.manual_seed`, or from a generator of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Generic, TypeVar

from ... import creation, random

__all__ = [
    "BatchSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
]

Number = TypeVar("Number", covariant=True)
_DRAWN_AT_ONCE = 1 << 16


class Sampler(Generic[Number]):
    """Numbers of samples in some order: a subclass has `__iter__`."""

    def __init__(self, data_source: Any = None) -> None:
        """The base class needs nothing."""

    def __iter__(self) -> Iterator[Number]:
        raise NotImplementedError(f"{type(self).__name__} needs __iter__, which gives numbers of samples")


class SequentialSampler(Sampler[int]):
    """0, 1, 2 …"""

    def __init__(self, data_source: Any) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """A random order: each number once, or drawn with replacement.

    >>> import webgrad.torch as torch
    >>> sorted(torch.utils.data.RandomSampler(range(4)))
    [0, 1, 2, 3]
    """

    def __init__(
        self,
        data_source: Any,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Any = None,
    ) -> None:
        if not isinstance(replacement, bool):
            raise TypeError(f"replacement should be a boolean value, but got replacement={replacement}")
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if num_samples is not None:
            _check_count(num_samples)

    @property
    def num_samples(self) -> int:
        """How many are drawn."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        count, wanted = len(self.data_source), self.num_samples
        if self.replacement:
            for first in range(0, wanted, _DRAWN_AT_ONCE):
                size = (min(_DRAWN_AT_ONCE, wanted - first),)
                yield from _drawn("randint", 0, count, size, generator=self.generator)
            return
        while wanted > 0:
            order = _drawn("randperm", count, generator=self.generator)
            yield from order[:wanted]
            wanted -= count

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """The given numbers in a random order."""

    def __init__(self, indices: Sequence[int], generator: Any = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        for each in _drawn("randperm", len(self.indices), generator=self.generator):
            yield self.indices[each]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Numbers drawn by weights, which need not add up to 1."""

    def __init__(
        self, weights: Sequence[float], num_samples: int, replacement: bool = True, generator: Any = None
    ) -> None:
        _check_count(num_samples)
        if not isinstance(replacement, bool):
            raise ValueError(f"replacement should be a boolean value, but got replacement={replacement}")
        self.weights = creation.functions["as_tensor"](weights, dtype="float64", device="cpu")
        if self.weights.ndim != 1:
            raise ValueError(f"weights should be a 1d sequence but has shape {tuple(self.weights.shape)}")
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        draw = random.functions["multinomial"]
        drawn = draw(self.weights, self.num_samples, self.replacement, generator=self.generator)
        return iter(drawn.tolist())

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """The numbers of another sampler in lists.

    >>> import webgrad.torch as torch
    >>> list(torch.utils.data.BatchSampler(range(5), 2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Iterable[int], batch_size: Any, drop_last: Any) -> None:
        if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size <= 0:
            raise ValueError(
                f"batch_size should be a positive integer value, but got batch_size={batch_size}"
            )
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        numbers = iter(self.sampler)
        while batch := [*islice(numbers, self.batch_size)]:
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        whole, rest = divmod(len(self.sampler), self.batch_size)  # type: ignore[arg-type]
        return whole + (rest > 0 and not self.drop_last)


def _check_count(count: Any) -> None:
    if not isinstance(count, int) or isinstance(count, bool) or count <= 0:
        raise ValueError(f"num_samples should be a positive integer value, but got num_samples={count}")


def _drawn(name: str, *args: Any, generator: Any) -> list[int]:
    found: list[int] = random.functions[name](*args, generator=generator, device="cpu").tolist()
    return found
