"""torch's views and shapes: windows, strides, copies of views, pieces, padding, combinations."""

from __future__ import annotations

import numpy as np
import pytest

import webgrad.torch as torch

X = torch.arange(12.0).reshape(3, 4)


def test_windows_are_views() -> None:
    x = torch.arange(6)
    assert x.unfold(0, 2, 2).tolist() == [[0, 1], [2, 3], [4, 5]]
    x.unfold(0, 2, 2)[1] = 9
    assert x.tolist() == [0, 1, 9, 9, 4, 5]
    assert torch.unfold_copy(X, 0, 2, 1).shape == (2, 4, 2)
    assert torch.tensor(3.0).unfold(0, 1, 1).tolist() == [3.0]
    with pytest.raises(RuntimeError, match="maximum size for tensor at dimension 0 is 6 but size is 7"):
        x.unfold(0, 7, 1)


def test_strides_offsets_and_order_are_those_of_memory() -> None:
    assert (X.stride(), X.t().stride(), X.t().stride(1), X[1:, 2].stride()) == ((4, 1), (1, 4), 4, (4,))
    assert (X[1, 2:].storage_offset(), X.t().is_contiguous(), X.t().contiguous().is_contiguous()) == (
        6,
        False,
        True,
    )
    assert torch.as_strided(X, (2, 2), (1, 5), 1).tolist() == [[1, 6], [2, 7]]
    assert X[1].as_strided((2,), (2,), 5).tolist() == [5, 7]
    with pytest.raises(RuntimeError, match="call it with the tensor that it is a view of"):
        X[1].as_strided((2,), (2,), 0)
    x = X.clone()
    assert x.as_strided_((2,), (4,)) is x
    assert x.tolist() == [0, 4]


def test_parts_are_replaced_in_copies() -> None:
    row, column = torch.full((4,), -1.0), torch.full((3,), -1.0)
    wanted = X.numpy().copy()
    wanted[1] = -1
    assert X.select_scatter(row, 0, 1).tolist() == wanted.tolist()
    wanted = X.numpy().copy()
    wanted[:, 1:4:2] = -1
    assert X.slice_scatter(torch.full((3, 2), -1.0), 1, 1, 4, 2).tolist() == wanted.tolist()
    wanted = X.numpy().copy()
    np.fill_diagonal(wanted, -1)
    assert X.diagonal_scatter(column).tolist() == wanted.tolist()
    assert X[0, 0].item() == 0
    with pytest.raises(RuntimeError, match="expected src to have a size equal to the slice"):
        X.select_scatter(column, 0, 1)


def test_copies_of_views_share_nothing() -> None:
    x = X.clone()
    for made in (
        torch.transpose_copy(x, 0, 1),
        torch.diagonal_copy(x),
        torch.view_copy(x, (4, 3)),
        x.narrow_copy(0, 0, 2),
    ):
        made.zero_()
    for piece in torch.split_copy(x, 2):
        piece.zero_()
    assert x.tolist() == X.tolist()
    kept = torch.zeros(3)
    assert torch.select_copy(x, 1, 2, out=kept) is kept
    assert kept.tolist() == [2, 6, 10]


def test_pieces() -> None:
    assert [each.shape for each in torch.hsplit(X, 2)] == [(3, 2), (3, 2)]
    assert [each.shape[0] for each in X.vsplit([1])] == [1, 2]
    assert [each.shape for each in torch.arange(4).hsplit((1, 3))] == [(1,), (2,), (1,)]
    with pytest.raises(RuntimeError, match="at least 3 dimension"):
        torch.dsplit(X, 2)
    with pytest.raises(RuntimeError, match="not divisible by the split_size 2"):
        X.vsplit(2)


def test_matrices_of_diagonals_and_blocks() -> None:
    assert torch.diag_embed(torch.tensor([1, 2]), 1).tolist() == [[0, 1, 0], [0, 0, 2], [0, 0, 0]]
    x = np.arange(6.0).reshape(2, 3)
    found = torch.diag_embed(torch.tensor(x), -1, 0, 2)
    assert found.shape == (4, 2, 4)
    np.testing.assert_array_equal(found.diagonal(-1, 0, 2).numpy(), x)
    assert torch.block_diag(torch.ones(1, 2), torch.tensor(3)).tolist() == [[1, 1, 0], [0, 0, 3]]
    assert X[:, :3].trace().item() == 0 + 5 + 10
    with pytest.raises(RuntimeError, match="expected a matrix"):
        torch.trace(torch.ones(3))


def test_choices_as_rows() -> None:
    x = torch.tensor([1, 2, 3])
    assert torch.combinations(x).tolist() == [[1, 2], [1, 3], [2, 3]]
    assert torch.combinations(x, 2, with_replacement=True).shape == (6, 2)
    assert torch.combinations(x, 4).shape == (0, 4)
    assert torch.cartesian_prod(x, torch.tensor([7, 8])).tolist()[:3] == [[1, 7], [1, 8], [2, 7]]


def test_stacks() -> None:
    a, b = torch.tensor([1, 2]), torch.tensor([3, 4])
    assert torch.dstack((a, b)).tolist() == [[[1, 3], [2, 4]]]
    assert torch.column_stack((a, b)).tolist() == [[1, 3], [2, 4]]
    assert torch.atleast_3d(a).shape == (1, 2, 1)


def test_padding_may_cut() -> None:
    found = torch.constant_pad_nd(torch.ones(2, 3), (1, -2, 0, 1), 5.0)
    assert found.tolist() == [[5, 1], [5, 1], [5, 5]]


def test_ranges_and_powers_of_integers() -> None:
    assert torch.arange(2.1, -2.9, -1.0, dtype=torch.int32).tolist() == [2, 1, 0, -1, -2]
    assert torch.linspace(4.9, 0, 5, dtype=torch.int64).tolist() == [4, 3, 2, 1, 0]
    assert torch.logspace(0, 2.5, 3, dtype=torch.int32).tolist() == [1, 10, 100]
    np.testing.assert_allclose(torch.logspace(0, 1, 3, base=4).numpy(), [1, 2, 4], rtol=1e-6)
    with pytest.raises(RuntimeError, match="inconsistent with step sign"):
        torch.arange(0, 3, -1.5, dtype=torch.int32)
