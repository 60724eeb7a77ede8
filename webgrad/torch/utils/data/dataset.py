"""Datasets: what gives a sample for a number, or samples one after another, and datasets made of others.

In: tensors, other datasets, numbers. Out: samples. A dataset may have `__getitems__` too, which gives the
samples of a list of numbers at once.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain
from typing import Any, Generic, TypeVar

from ... import random

__all__ = [
    "ChainDataset",
    "ConcatDataset",
    "Dataset",
    "IterableDataset",
    "StackDataset",
    "Subset",
    "TensorDataset",
    "random_split",
]

Sample = TypeVar("Sample", covariant=True)


class Dataset(Generic[Sample]):
    """Samples by number: a subclass has `__getitem__`, and `__len__` for most samplers."""

    def __getitem__(self, index: Any) -> Sample:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset[Any]) -> ConcatDataset[Any]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[Sample], Iterable[Sample]):
    """Samples one after another: a subclass has `__iter__`."""

    def __add__(self, other: Dataset[Any]) -> ChainDataset:  # type: ignore[override]
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Any, ...]]):
    """Tensors side by side: sample i has each one's element i.

    >>> import webgrad.torch as torch
    >>> data = torch.utils.data.TensorDataset(torch.zeros(5, 2), torch.arange(5))
    >>> len(data), data[3][1].item()
    (5, 3)
    """

    def __init__(self, *tensors: Any) -> None:
        assert all(len(each) == len(tensors[0]) for each in tensors), "Size mismatch between tensors"
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Any, ...]:
        return tuple(each[index] for each in self.tensors)

    def __len__(self) -> int:
        return len(self.tensors[0])


class StackDataset(Dataset[Any]):
    """Datasets side by side: samples are tuples of theirs, or dicts where the datasets have names."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if bool(args) == bool(kwargs):
            raise ValueError("StackDataset takes datasets, at least one, all with names or all without")
        self.datasets: Any = args or kwargs
        lengths = {len(each) for each in self._each()}
        if len(lengths) > 1:
            raise ValueError(f"Size mismatch between datasets: {sorted(lengths)}")
        self._length = lengths.pop()

    def _each(self) -> Iterable[Any]:
        return self.datasets.values() if isinstance(self.datasets, dict) else self.datasets

    def __getitem__(self, index: Any) -> Any:
        return self._sample([each[index] for each in self._each()])

    def __getitems__(self, indices: list[Any]) -> list[Any]:
        columns = []
        for each in self._each():
            column = samples_of(each, indices)
            if len(column) != len(indices):
                raise ValueError(
                    f"{type(each).__name__}.__getitems__ gave {len(column)} samples for {len(indices)}"
                )
            columns.append(column)
        return [self._sample(row) for row in zip(*columns, strict=True)]

    def _sample(self, parts: Sequence[Any]) -> Any:
        if isinstance(self.datasets, dict):
            return dict(zip(self.datasets, parts, strict=True))
        return tuple(parts)

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset[Sample]):
    """Datasets one after another.

    >>> import webgrad.torch as torch
    >>> torch.utils.data.ConcatDataset([range(3), range(10, 12)])[3]
    10
    """

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        assert len(self.datasets) > 0, "datasets should not be an empty iterable"
        assert not any(isinstance(each, IterableDataset) for each in self.datasets), (
            "ConcatDataset does not support IterableDataset: ChainDataset does"
        )
        self.cumulative_sizes = list(accumulate(len(each) for each in self.datasets))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> Sample:
        if not -len(self) <= index < len(self):
            kind = ValueError if index < 0 else IndexError
            raise kind(f"ConcatDataset: there are {len(self)} samples, and no number {index}")
        place = index % len(self)
        at = bisect_right(self.cumulative_sizes, place)
        return self.datasets[at][place - (self.cumulative_sizes[at - 1] if at else 0)]  # type: ignore[no-any-return]


class ChainDataset(IterableDataset[Any]):
    """Iterable datasets one after another."""

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = datasets

    def __iter__(self) -> Iterator[Any]:
        for each in self.datasets:
            assert isinstance(each, IterableDataset), "ChainDataset only supports IterableDataset"
        return chain.from_iterable(self.datasets)

    def __len__(self) -> int:
        return sum(len(each) for each in self.datasets)


class Subset(Dataset[Sample]):
    """Samples of a dataset by their numbers.

    >>> import webgrad.torch as torch
    >>> torch.utils.data.Subset([10, 20, 30], [2, 0])[0]
    30
    """

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, list):
            return self.dataset[[self.indices[each] for each in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: list[int]) -> list[Any]:
        return samples_of(self.dataset, [self.indices[each] for each in indices])

    def __len__(self) -> int:
        return len(self.indices)


def samples_of(dataset: Any, indices: Sequence[Any]) -> list[Any]:
    """The samples of these numbers, asked for at once where the dataset can."""
    if getattr(dataset, "__getitems__", None):
        return dataset.__getitems__(indices)  # type: ignore[no-any-return]
    return [dataset[each] for each in indices]


def random_split(dataset: Any, lengths: Sequence[float], generator: Any = None) -> list[Subset[Any]]:
    """Parts of a dataset at random, without overlap: by lengths, or by fractions that add up to 1.

    >>> import webgrad.torch as torch
    >>> [len(part) for part in torch.utils.data.random_split(range(10), [0.85, 0.15])]
    [9, 1]
    """
    counts: list[Any] = list(lengths)
    total = len(dataset)
    if math.isclose(sum(counts), 1) and sum(counts) <= 1:
        if not all(0 <= each <= 1 for each in counts):
            raise ValueError(f"random_split: fractions must be between 0 and 1, not {counts}")
        counts = [math.floor(total * each) for each in counts]
        for at in range(total - sum(counts)):
            counts[at % len(counts)] += 1
    if sum(counts) != total:
        raise ValueError(
            f"Sum of input lengths does not equal the length of the input dataset: {counts} and {total}"
        )
    order = random.functions["randperm"](total, generator=generator, device="cpu").tolist()
    ends = list(accumulate(counts))
    return [
        Subset(dataset, order[int(end - count) : int(end)]) for end, count in zip(ends, counts, strict=True)
    ]
