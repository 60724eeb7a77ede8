"""torch's writes by indices: what scatters fold, slices, places in order, and what is refused."""

from __future__ import annotations

import math

import pytest

import webgrad.torch as torch

INDEX = torch.tensor([0, 2, 2])


@pytest.mark.parametrize(
    ("reduce", "wanted", "alone"),
    [
        ("sum", [2, 1, 8], [1, 1, 7]),
        ("prod", [1, 1, 12], [1, 1, 12]),
        ("mean", [1, 1, 8 / 3], [1, 1, 3.5]),
        ("amax", [1, 1, 4], [1, 1, 4]),
        ("amin", [1, 1, 1], [1, 1, 3]),
    ],
)
def test_folds_with_and_without_what_was_there(reduce: str, wanted: list[float], alone: list[float]) -> None:
    x, src = torch.ones(3), torch.tensor([1.0, 3.0, 4.0])
    found = x.scatter_reduce(0, INDEX, src, reduce)
    assert found.tolist() == pytest.approx(wanted)
    assert x.index_reduce(0, INDEX, src, reduce).tolist() == pytest.approx(wanted)
    assert torch.scatter_reduce(x, 0, INDEX, src, reduce, include_self=False).tolist() == pytest.approx(alone)
    x.scatter_reduce_(0, INDEX, src, reduce)
    assert x.tolist() == found.tolist()


def test_folds_have_gradients() -> None:
    x = torch.tensor([2.0, 5.0, 3.0], requires_grad=True)
    src = torch.tensor([1.0, 3.0, 3.0], requires_grad=True)
    x.scatter_reduce(0, INDEX, src, "amax").sum().backward()
    assert (x.grad.tolist(), src.grad.tolist()) == (
        [1, 1, pytest.approx(1 / 3)],
        [0, *[pytest.approx(1 / 3)] * 2],
    )
    x.grad = src.grad = None
    x.scatter_reduce(0, INDEX, src, "prod", include_self=False).sum().backward()
    assert (x.grad.tolist(), src.grad.tolist()) == ([0, 1, 0], [1, 3, 3])


def test_fewer_indices_than_elements_mean_the_first_ones() -> None:
    x = torch.zeros(3, 4)
    index = torch.tensor([[3, 0]])
    assert x.scatter(1, index, 7.0).tolist() == [[7, 0, 0, 7], [0] * 4, [0] * 4]
    assert x.scatter_add(1, index, torch.ones(2, 3)).sum().item() == 2
    assert torch.scatter(torch.ones(2, dtype=torch.uint8), 0, torch.tensor([0]), -2).tolist() == [254, 1]
    assert x.scatter(0, torch.zeros(0, 4, dtype=torch.int64), 1.0).tolist() == x.tolist()
    assert torch.full((2,), 3.0).scatter(0, torch.tensor([1]), 2.0, reduce="multiply").tolist() == [3, 6]
    with pytest.raises(RuntimeError, match="no larger than self"):
        x.scatter(1, torch.zeros(4, 1, dtype=torch.int64), 1.0)
    with pytest.raises(RuntimeError, match="add or multiply"):
        x.scatter(1, index, 1.0, reduce="max")


def test_tensors_without_dimensions_have_one_for_indices() -> None:
    x, at = torch.tensor(2.0), torch.tensor(0)
    assert x.scatter(0, at, torch.tensor(5.0)).item() == 5
    assert x.index_add(0, at, torch.tensor(5.0)).item() == 7
    assert x.index_fill(-1, at, 4.0).item() == 4
    assert x.gather(0, torch.tensor([0, 0])).tolist() == [2, 2]
    with pytest.raises(IndexError, match="Dimension out of range"):
        x.gather(1, at)


def test_bools_are_added_and_multiplied_as_truths() -> None:
    x = torch.tensor([False, True, True])
    src = torch.tensor([True, False, True])
    assert x.scatter_add(0, INDEX, src).tolist() == [True, True, True]
    assert x.scatter_reduce(0, INDEX, src, "prod").tolist() == [False, True, False]


def test_slices_are_copied_and_filled() -> None:
    x = torch.zeros(2, 3)
    assert x.index_copy(1, torch.tensor([2]), torch.ones(2, 1)).tolist() == [[0, 0, 1]] * 2
    assert x.index_fill_(0, torch.tensor([1]), 5).tolist() == [[0] * 3, [5] * 3]
    with pytest.raises(RuntimeError, match="must be equal"):
        x.index_add(0, torch.tensor([0]), torch.ones(1, 2))
    with pytest.raises(RuntimeError, match="0-dimensional value"):
        x.index_fill(0, torch.tensor([0]), torch.ones(1))


def test_places_in_order() -> None:
    x = torch.zeros(2, 2)
    assert x.put(torch.tensor([3, 0, 3]), torch.tensor([1.0, 2.0, 4.0]), accumulate=True).tolist() == [
        [2, 0],
        [0, 5],
    ]
    assert x.put_(torch.tensor([1]), torch.tensor([9.0])).tolist() == [[0, 9], [0, 0]]
    rows, columns = torch.unravel_index(torch.tensor([1, 5]), (2, 3))
    assert (rows.tolist(), columns.tolist()) == ([0, 1], [1, 2])
    assert torch.nonzero_static(torch.tensor([0, 4, 5]), size=3).tolist() == [[1], [2], [-1]]
    assert torch.tensor([1, 2]).nonzero_static(size=1).tolist() == [[0]]


@pytest.mark.parametrize(
    ("reduce", "wanted", "begun"),
    [
        ("sum", [3, 0, 7], [5, 2, 9]),
        ("mean", [1.5, math.nan, 3.5], [2.5, 2, 4.5]),
        ("max", [2, -math.inf, 4], [2, 2, 4]),
        ("min", [1, math.inf, 3], [1, 2, 2]),
        ("prod", [2, 1, 12], [4, 2, 24]),
    ],
)
def test_runs_are_folded(reduce: str, wanted: list[float], begun: list[float]) -> None:
    data, lengths = torch.tensor([1.0, 2.0, 3.0, 4.0, 9.0]), torch.tensor([2, 0, 2])
    found = torch.segment_reduce(data, reduce, lengths=lengths, unsafe=True)
    assert found.tolist() == pytest.approx(wanted, nan_ok=True)
    offsets = torch.tensor([0, 2, 2, 4])
    assert torch.segment_reduce(data, reduce, offsets=offsets, initial=2).tolist() == pytest.approx(begun)
    with pytest.raises(RuntimeError, match="Either lengths or offsets"):
        torch.segment_reduce(data, reduce)
