"""torch's orders and sets: medians, modes, ranks, quantiles, distinct elements, places and counts."""

from __future__ import annotations

import math

import numpy as np
import pytest

import webgrad.torch as torch

X = torch.tensor([[3.0, 1.0, 2.0, 1.0], [5.0, math.nan, 4.0, 4.0]])


def test_medians_are_the_lower_ones_and_have_places() -> None:
    values, indices = X.median(1)
    np.testing.assert_array_equal(values.numpy(), [1, math.nan])
    assert indices.tolist() == [3, 1]
    found = torch.nanmedian(X, dim=-1, keepdim=True)
    assert found.values.tolist() == [[1], [4]]
    assert X.nanmedian().item() == 3
    assert math.isnan(X.median().item())
    assert torch.tensor([4, 2, 3, 1]).median().item() == 2


def test_elements_that_equal_the_median_share_its_gradient() -> None:
    x = torch.tensor([2.0, 1.0, 2.0, 5.0], requires_grad=True)
    x.median().backward()
    assert x.grad.tolist() == [0.5, 0, 0.5, 0]


def test_modes_are_the_commonest_and_the_smallest_of_several() -> None:
    x = torch.tensor([[2, 1, 2, 1, 3], [7, 7, 7, 0, 0]])
    found = torch.mode(x, 1)
    assert (found.values.tolist(), found.indices.tolist()) == ([1, 7], [3, 2])
    assert torch.tensor([math.nan, math.nan, 1.0]).mode().indices.item() == 1
    assert x.mode(0, keepdim=True).values.tolist() == [[2, 1, 2, 0, 0]]


def test_ranks_count_from_one() -> None:
    values, indices = torch.kthvalue(X[0], 3)
    assert (values.item(), indices.item()) == (2, 2)
    assert torch.kthvalue(X, 2, dim=0, keepdim=True).values.shape == (1, 4)
    with pytest.raises(RuntimeError, match="out of range for dimension"):
        X.kthvalue(5)


@pytest.mark.parametrize("way", ["linear", "lower", "higher", "midpoint", "nearest"])
def test_quantiles_are_numpys(way: str) -> None:
    x = np.random.default_rng(0).standard_normal((3, 6)).astype(np.float32)
    q = [0.1, 0.5, 0.9]
    found = torch.quantile(torch.tensor(x), torch.tensor(q), dim=1, keepdim=True, interpolation=way)
    wanted = np.quantile(x, q, axis=1, keepdims=True, method=way)  # type: ignore[call-overload]
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-5)
    with pytest.raises(RuntimeError, match="must be either float or double"):
        torch.quantile(torch.tensor([1, 2]), 0.5)
    with pytest.raises(RuntimeError, match="same dtype as the input"):
        torch.quantile(torch.tensor(x), torch.tensor(q, dtype=torch.float64))


def test_distinct_elements_and_slices() -> None:
    x = torch.tensor([[3, 1, 3], [1, 1, 2]])
    values, inverse, counts = torch.unique(x, return_inverse=True, return_counts=True)
    assert values.tolist() == [1, 2, 3]
    assert inverse.tolist() == [[2, 0, 2], [0, 0, 1]]
    assert (counts.tolist(), counts.dtype) == ([3, 1, 2], torch.int64)
    assert torch.unique(x, dim=1).tolist() == [[1, 3, 3], [1, 1, 2]]
    assert torch.unique_consecutive(torch.tensor([1, 1, 2, 1])).tolist() == [1, 2, 1]


def test_places_in_sorted_lines() -> None:
    edges = torch.tensor([1.0, 3.0, 5.0])
    assert torch.bucketize(torch.tensor([[0.0, 3.0], [4.0, 9.0]]), edges).tolist() == [[0, 1], [2, 3]]
    assert torch.bucketize(3.0, edges, right=True, out_int32=True).dtype == torch.int32
    lines = torch.tensor([[1, 2, 3], [4, 5, 6]])
    assert torch.searchsorted(lines, torch.tensor([[2], [5]]), side="right").tolist() == [[2], [2]]
    with pytest.raises(RuntimeError, match="opposites"):
        torch.searchsorted(edges, edges, right=True, side="left")


def test_counts() -> None:
    x = torch.tensor([0.0, 1.0, 1.0, 2.0, 9.0])
    assert torch.histc(x, bins=3, min=0, max=3).tolist() == [1, 2, 1]
    assert torch.histc(torch.tensor([2.0, 2.0]), bins=2).tolist() == [0, 2]
    found = torch.histogram(x, torch.tensor([0.0, 1.0, 10.0]))
    assert (found.hist.tolist(), found.bin_edges.tolist()) == ([1, 4], [0, 1, 10])
    points = torch.tensor([[0.0, 0.0], [1.0, 1.0], [1.0, 0.5]])
    assert torch.histogramdd(points, (2, 2)).hist.tolist() == [[1, 0], [0, 2]]
    assert torch.bincount(torch.tensor([1, 1, 3])).tolist() == [0, 2, 0, 1]
    assert torch.bincount(torch.tensor([0]), torch.tensor([2])).dtype == torch.float64
