"""Datasets and how samples become batches."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import webgrad as wg
from webgrad.data import ArrayDataset, Dataset, Subset, TensorDataset, collate, random_split
from webgrad.data.sets import batch_of


class Pair(NamedTuple):
    x: Any
    y: Any


def test_arrays_side_by_side() -> None:
    data = ArrayDataset(np.arange(6).reshape(3, 2), [0.5, 1.5, 2.5])
    assert len(data) == 3
    assert isinstance(data, Dataset)
    x, y = data[1]
    np.testing.assert_array_equal(x, [2, 3])
    assert y == np.float32(1.5)
    x, y = data.batch(np.array([2, 0]))
    np.testing.assert_array_equal(x, [[4, 5], [0, 1]])
    assert y.dtype == np.float32


def test_lengths_that_differ_are_refused() -> None:
    with pytest.raises(wg.ShapeError, match=r"same length.*\(3, 2\), \(4,\)"):
        ArrayDataset(np.zeros((3, 2)), np.zeros(4))
    with pytest.raises(wg.ShapeError, match="without axes"):
        ArrayDataset(np.zeros(3), np.float32(1))
    with pytest.raises(wg.ArgumentError, match="at least one"):
        ArrayDataset()
    with pytest.raises(wg.DTypeError, match=r"TensorDataset takes tensors.*ArrayDataset"):
        TensorDataset(np.zeros(3))  # type: ignore[arg-type]


def test_tensors_are_gathered_where_they_are() -> None:
    data = TensorDataset(wg.arange(5, device="cpu") * 10, wg.ones((5, 2), device="cpu"))
    x, y = data.batch(np.array([4, 1]))
    assert x.tolist() == [40, 10]
    assert y.shape == (2, 2)
    assert data[3][0].item() == 30


def test_subsets() -> None:
    data = ArrayDataset(np.arange(10))
    part = Subset(Subset(data, [1, 3, 5, 7]), [3, 0])
    assert [int(part[at][0]) for at in range(len(part))] == [7, 1]
    np.testing.assert_array_equal(batch_of(part, np.array([1, 0]))[0], [1, 7])
    with pytest.raises(wg.IndexingError, match="10 samples, and no number 10"):
        Subset(data, [0, 10])
    with pytest.raises(wg.IndexingError, match="no number -1"):
        Subset(data, [-1])
    with pytest.raises(wg.DTypeError, match=r"not a mask.*flatnonzero"):
        Subset(data, np.arange(10) > 5)


@pytest.mark.parametrize(
    ("lengths", "counts"),
    [
        ([7, 3], [7, 3]),
        ([0.7, 0.3], [7, 3]),
        ([0.5, 0.25, 0.25], [6, 2, 2]),
        ([0.1, 0.9], [1, 9]),
        ([10, 0], [10, 0]),
    ],
)
def test_splits(lengths: list[float], counts: list[int]) -> None:
    parts = random_split(range(10), lengths, seed=3)
    assert [len(part) for part in parts] == counts
    assert sorted(part[at] for part in parts for at in range(len(part))) == list(range(10))
    again = random_split(range(10), lengths, seed=3)
    assert [each.numbers.tolist() for each in parts] == [each.numbers.tolist() for each in again]


@pytest.mark.parametrize("lengths", [[5, 6], [0.5, 0.6], [], [-1, 11], [1.5, -0.5]])
def test_splits_that_do_not_add_up(lengths: list[float]) -> None:
    with pytest.raises(wg.ArgumentError, match="random_split"):
        random_split(range(10), lengths)


def test_collating() -> None:
    found = collate([{"x": np.ones(2), "y": (1, True)}, {"x": np.zeros(2), "y": (2, False)}])
    assert found["x"].shape == (2, 2)
    assert found["y"][0].dtype == np.int32
    assert found["y"][1].tolist() == [True, False]
    pair = collate([Pair(1.0, [1, 2]), Pair(2.0, [3, 4])])
    assert isinstance(pair, Pair)
    assert pair.y.shape == (2, 2)
    assert collate([wg.ones(3, device="cpu")] * 2).shape == (2, 3)
    with pytest.raises(wg.ShapeError, match=r"different shapes.*\(2,\), \(3,\)"):
        collate([np.ones(2), np.ones(3)])
    with pytest.raises(wg.ShapeError, match="numbers of parts"):
        collate([(1, 2), (1,)])
