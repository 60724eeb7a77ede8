"""Datasets: what has a length and gives a sample for a number, and how samples become a batch.

In: arrays, tensors, or any object with `__len__` and `__getitem__`. Out: the samples of some numbers as one
batch: NumPy arrays, or tensors where the data is in tensors. Samples may be nested in tuples and dicts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any, Protocol, runtime_checkable

import webgrad as wg

from ..arrays import Array, np
from .order import permutation, seed_or_drawn

__all__ = [
    "ArrayDataset",
    "Dataset",
    "Subset",
    "TensorDataset",
    "as_dataset",
    "batch_of",
    "collate",
    "is_on_device",
    "random_split",
]


@runtime_checkable
class Dataset(Protocol):
    """What a loader takes: an object with a length that gives a sample for a number.

    >>> class Squares:
    ...     def __len__(self):
    ...         return 10
    ...     def __getitem__(self, number):
    ...         return number**2
    >>> [len(batch) for batch in wg.data.DataLoader(Squares(), batch_size=4)]
    [4, 4, 2]
    """

    def __len__(self) -> int: ...
    def __getitem__(self, number: Any, /) -> Any: ...


class ArrayDataset:
    """Arrays side by side: sample i is the tuple of each array's element i.

    >>> data = wg.data.ArrayDataset(np.zeros((5, 2)), np.arange(5))
    >>> len(data)
    5
    """

    def __init__(self, *arrays: Any) -> None:
        self.arrays = tuple(_as_array(each) for each in arrays)
        _check_lengths("ArrayDataset", self.arrays)

    def __len__(self) -> int:
        return len(self.arrays[0])

    def __getitem__(self, number: Any) -> tuple[Any, ...]:
        return tuple(each[number] for each in self.arrays)

    def batch(self, numbers: Array) -> tuple[Any, ...]:
        """The samples of these numbers."""
        return tuple(each[numbers] for each in self.arrays)


class TensorDataset:
    """Tensors side by side: they stay on their device, and batches are gathered there.

    >>> data = wg.data.TensorDataset(wg.zeros((5, 2)), wg.arange(5))
    >>> data[1][1].item()
    1
    """

    def __init__(self, *tensors: wg.Tensor) -> None:
        for each in tensors:
            if not isinstance(each, wg.Tensor):
                raise wg.DTypeError(
                    f"TensorDataset takes tensors, not a {type(each).__name__}: use ArrayDataset, which "
                    "takes NumPy arrays and sends each batch to the device"
                )
        self.tensors = tensors
        _check_lengths("TensorDataset", tensors)

    def __len__(self) -> int:
        return int(self.tensors[0].shape[0])

    def __getitem__(self, number: Any) -> tuple[wg.Tensor, ...]:
        return tuple(each[number] for each in self.tensors)

    def batch(self, numbers: Array) -> tuple[wg.Tensor, ...]:
        """The samples of these numbers."""
        places = numbers.astype(np.int32)
        return tuple(wg.take(each, wg.asarray(places, device=each.device), axis=0) for each in self.tensors)


class Subset:
    """Some samples of a dataset, by their numbers.

    >>> wg.data.Subset([10, 20, 30], [2, 0])[0]
    30
    """

    def __init__(self, dataset: Dataset, numbers: Any) -> None:
        found = np.asarray(numbers).reshape(-1)
        if found.dtype.kind == "b":
            raise wg.DTypeError(
                "Subset takes the numbers of samples, not a mask; numpy.flatnonzero(mask) has those of one"
            )
        self.dataset = dataset
        self.numbers = found.astype(np.int64)
        length = len(dataset)
        if self.numbers.size and not (self.numbers.min() >= 0 and self.numbers.max() < length):
            outside = self.numbers[(self.numbers < 0) | (self.numbers >= length)][0]
            raise wg.IndexingError(f"Subset: the dataset has {length} samples, and no number {outside}")

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, number: Any) -> Any:
        return self.dataset[int(self.numbers[number])]

    def batch(self, numbers: Array) -> Any:
        """The samples of these numbers."""
        return batch_of(self.dataset, self.numbers[numbers])


def random_split(dataset: Dataset, lengths: Sequence[float], seed: int | None = None) -> list[Subset]:
    """Parts of a dataset, drawn at random without overlap: by lengths, or by fractions that add up to 1.

    >>> train, test = wg.data.random_split(range(10), [0.8, 0.2], seed=0)
    >>> len(train), len(test)
    (8, 2)
    """
    total = len(dataset)
    counts = _counts(total, list(lengths))
    order = permutation(total, seed_or_drawn("random_split", seed))
    ends = np.cumsum([0, *counts])
    return [Subset(dataset, order[first:last]) for first, last in pairwise(ends)]


def _counts(total: int, lengths: list[float]) -> list[int]:
    if lengths and all(isinstance(each, int | np.integer) for each in lengths):
        counts = [int(each) for each in lengths]
        if min(counts) >= 0 and sum(counts) == total:
            return counts
        raise wg.ArgumentError(
            f"random_split: lengths {counts} add up to {sum(counts)}, and the dataset has {total} samples"
        )
    if not lengths or min(lengths) < 0 or abs(sum(lengths) - 1) > 1e-6:
        raise wg.ArgumentError(
            f"random_split: pass lengths that add up to {total}, or fractions that add up to 1, not {lengths}"
        )
    # As exact fractions: 0.7 of 10 is 7. What is left over goes to the first parts, one each.
    counts = [int(Fraction(str(float(each))) * total) for each in lengths]
    for at in range(total - sum(counts)):
        counts[at % len(counts)] += 1
    return counts


# Batches


def as_dataset(what: Any) -> Dataset:
    """What a loader was given, as a dataset: a tuple or list of arrays is one, side by side."""
    if isinstance(what, tuple) or (isinstance(what, list) and what and all(map(_is_array, what))):
        tensors = [isinstance(each, wg.Tensor) for each in what]
        return TensorDataset(*what) if what and all(tensors) else ArrayDataset(*what)
    if not isinstance(what, Dataset) or (isinstance(what, Mapping) and 0 not in what):
        raise wg.DTypeError(
            "DataLoader takes arrays, as a tuple, or a dataset with __len__ and __getitem__ of "
            f"integers, not a {type(what).__name__}"
        )
    return what


def is_on_device(dataset: Any) -> bool:
    """Whether batches are gathered on a device, in the loop itself: other threads leave tensors alone."""
    while isinstance(dataset, Subset):
        dataset = dataset.dataset
    return isinstance(dataset, TensorDataset | wg.Tensor)


def batch_of(dataset: Any, numbers: Array) -> Any:
    """The samples of some numbers as one batch."""
    if hasattr(dataset, "batch"):
        return dataset.batch(numbers)
    if isinstance(dataset, np.ndarray):
        return dataset[numbers]
    if isinstance(dataset, wg.Tensor):
        return TensorDataset(dataset).batch(numbers)[0]
    return collate([dataset[int(number)] for number in numbers])


def collate(samples: Sequence[Any]) -> Any:
    """Samples stacked along a new first axis; tuples and dicts of arrays become tuples and dicts of stacks.

    >>> wg.data.collate([([1.0, 2.0], 0), ([3.0, 4.0], 1)])[1]
    array([0, 1], dtype=int32)
    """
    first = samples[0]
    if isinstance(first, Mapping):
        return {key: collate([each[key] for each in samples]) for key in first}
    if isinstance(first, tuple):
        if any(len(each) != len(first) for each in samples):
            raise wg.ShapeError(
                f"collate: samples have different numbers of parts: {_few(map(len, samples))}"
            )
        parts = [collate(list(column)) for column in zip(*samples, strict=True)]
        return type(first)(*parts) if hasattr(first, "_fields") else tuple(parts)
    arrays = [_as_array(each) for each in samples]
    if any(each.shape != arrays[0].shape for each in arrays):
        shapes = _few(dict.fromkeys(each.shape for each in arrays))
        raise wg.ShapeError(
            f"collate: samples of different shapes do not make a batch: {shapes}; pad them in the dataset, "
            "or pass the loader a collate function of your own"
        )
    return np.stack(arrays)


def _as_array(value: Any) -> Array:
    """An array of a dtype that webgrad has; Python's own numbers are float32 and int32."""
    if isinstance(value, np.ndarray | np.generic):
        return np.asarray(value)
    if hasattr(value, "__array__"):
        return np.asarray(value)
    return wg.asarray(value, device="cpu").numpy()


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray | wg.Tensor) or hasattr(value, "__array__")


def _few(values: Any) -> str:
    found = [str(each) for each in values]
    return ", ".join(found[:4]) + (", …" if len(found) > 4 else "")


def _check_lengths(what: str, arrays: Sequence[Any]) -> None:
    if not arrays:
        raise wg.ArgumentError(f"{what}: pass at least one array")
    shapes = [tuple(each.shape) for each in arrays]
    if any(not shape for shape in shapes):
        raise wg.ShapeError(f"{what}: an array without axes has no samples; the shapes are {_few(shapes)}")
    if len({shape[0] for shape in shapes}) > 1:
        raise wg.ShapeError(
            f"{what}: arrays must have the same length along the first axis, and have {_few(shapes)}"
        )
