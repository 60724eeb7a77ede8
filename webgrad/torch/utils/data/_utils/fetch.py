"""Fetching: the samples of a batch from a dataset, collated.

In: a dataset, and for each batch the numbers that a sampler gave. Out: the batch. A dataset that gives
samples one after another is read on, whatever the numbers are; its end is `Exhausted`.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

import numpy as np

import webgrad as wg

from ....indexing import functions
from ....tensor import adopt
from ..dataset import IterableDataset, Subset, TensorDataset, samples_of
from .collate import default_collate

__all__ = ["Exhausted", "Fetch", "fetch_of"]

Fetch = Callable[[Any], Any]


class Exhausted(Exception):
    """The dataset has no more samples."""


def fetch_of(dataset: Any, in_batches: bool, collate: Callable[[Any], Any], drop_last: bool) -> Fetch:
    """What makes a batch of numbers, or where there are no batches a sample of one number."""
    if isinstance(dataset, IterableDataset):
        return _following(dataset, in_batches, collate, drop_last)
    if not in_batches:
        return lambda index: collate(dataset[index])
    if collate is default_collate and _is_gathered(dataset):
        return lambda indices: gathered(dataset, list(indices))
    return lambda indices: collate(samples_of(dataset, indices))


def _following(dataset: Any, in_batches: bool, collate: Callable[[Any], Any], drop_last: bool) -> Fetch:
    samples = iter(dataset)

    def fetch(indices: Any) -> Any:
        if not in_batches:
            for sample in samples:
                return collate(sample)
            raise Exhausted
        batch = [*islice(samples, len(indices))]
        if not batch or (drop_last and len(batch) < len(indices)):
            raise Exhausted
        return collate(batch)

    return fetch


def _is_gathered(dataset: Any) -> bool:
    """Whether batches come from whole tensors: what `default_collate` would make, without single samples."""
    while type(dataset) is Subset:
        dataset = dataset.dataset
    return type(dataset) is TensorDataset and not any(each.requires_grad for each in dataset.tensors)


def gathered(dataset: Any, indices: list[Any]) -> list[Any]:
    """The rows of these numbers of a TensorDataset's tensors."""
    while type(dataset) is Subset:
        indices, dataset = [dataset.indices[each] for each in indices], dataset.dataset
    places = np.array([int(each) for each in indices], np.int64)
    length = len(dataset)
    if places.size and not (-length <= places.min() and places.max() < length):
        raise IndexError(f"TensorDataset: there are {length} samples, and the batch has one outside of them")
    return [_rows(each, places % max(length, 1)) for each in dataset.tensors]


def _rows(x: Any, places: np.ndarray[Any, Any]) -> Any:
    if x.device.name == "cpu":
        return adopt(wg.asarray(x.numpy()[places], device="cpu", copy=False))
    return functions["index_select"](x, 0, wg.asarray(places.astype(np.int32), device=x.device))
