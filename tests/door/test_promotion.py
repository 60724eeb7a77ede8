"""What torch's operators make of bools, of numbers that a dtype does not hold, and of complex numbers."""

from __future__ import annotations

from typing import Any

import pytest

import webgrad.torch as torch

BYTES = torch.tensor([1, 200], dtype=torch.uint8)
BOOLS = torch.tensor([True, False])


@pytest.mark.parametrize(
    ("found", "wanted", "dtype"),
    [
        (BOOLS + BOOLS, [True, False], "bool"),
        (BOOLS * True, [True, False], "bool"),
        (BOOLS + 1, [2, 1], "int64"),
        (BOOLS * 0.5, [0.5, 0.0], "float32"),
        (BOOLS + 1j, [1 + 1j, 1j], "complex64"),
        (BOOLS.add(BOOLS, alpha=2), [True, False], "bool"),
        (BOOLS.clamp(0, 1), [1, 0], "int64"),
        (BYTES * -2, [254, 112], "uint8"),
        (-3 - BYTES, [252, 53], "uint8"),
        (BYTES == 300 - 256 + 156, [False, True], "bool"),
        (BYTES.clamp(min=-3), [253, 253], "uint8"),
        (BYTES.masked_fill(BYTES > 1, -2), [1, 254], "uint8"),
        (BYTES / -2, [-0.5, -100.0], "float32"),
        (torch.tensor([100], dtype=torch.int8) + 300, [-112], "int8"),
        (
            torch.atan2(BOOLS, torch.tensor([1.0, 1.0], dtype=torch.float64)),
            [0.7853981633974483, 0.0],
            "float64",
        ),
        (torch.tensor([1.5 + 2j]).sigmoid().real.round(decimals=3), [1.05], "float32"),
        (torch.logical_and(BYTES, torch.tensor([0.0, 2.0])), [False, True], "bool"),
        (torch.fmax(torch.tensor([float("nan"), 1.0]), torch.tensor([2, 3])), [2, 3], "float32"),
    ],
)
def test_values_and_dtypes_are_torchs(found: Any, wanted: list[Any], dtype: str) -> None:
    assert found.dtype.name == dtype
    assert found.tolist() == pytest.approx(wanted)


def test_dtypes_say_what_they_are() -> None:
    kinds = (torch.bool, torch.uint8, torch.int64, torch.float16, torch.complex64)
    assert [each.is_floating_point for each in kinds] == [False, False, False, True, False]
    assert [each.is_complex for each in kinds] == [False] * 4 + [True]
    assert [each.is_signed for each in kinds] == [False, False, True, True, True]


def test_in_place_operators_keep_the_dtype() -> None:
    x = torch.tensor([1, 2], dtype=torch.uint8)
    kept = x
    x += 255
    x -= torch.tensor(1.0).long()
    assert kept is x
    assert (x.tolist(), x.dtype) == ([255, 0], torch.uint8)
    y = BOOLS.clone()
    y += torch.tensor([False, True])
    assert (y.tolist(), y.dtype) == ([True, True], torch.bool)
    with pytest.raises(RuntimeError, match="float32"):
        x += 0.5


def test_complex_numbers_become_real_with_a_warning() -> None:
    x = torch.tensor([1 + 2j, 3j])
    with pytest.warns(UserWarning, match="discards the imaginary part"):
        assert x.float().tolist() == [1, 0]
    with pytest.warns(UserWarning, match="discards the imaginary part"):
        assert x.to(torch.int32).tolist() == [1, 0]
    assert x.bool().tolist() == [True, True]
    assert (x.real + x.imag).tolist() == [3, 3]
    assert isinstance(x.imag, torch.Tensor)
    with pytest.raises(RuntimeError, match="non-complex"):
        torch.imag(torch.ones(1))


def test_products_take_one_dtype_and_their_ranks() -> None:
    a, v = torch.ones(2, 3), torch.ones(3)
    calls: tuple[Any, ...] = (
        lambda: a @ v.double(),
        lambda: torch.mm(a, v),
        lambda: a.mv(a),
        lambda: torch.dot(a, a),
        lambda: torch.outer(a, v),
        lambda: a.addmm(a, v),
        lambda: torch.std(torch.tensor([1, 2])),
        lambda: torch.norm(torch.tensor([1, 2])),
    )
    for call in calls:
        with pytest.raises(RuntimeError):
            call()
    with pytest.raises(TypeError, match="must be Tensor, not int"):
        a @ 2
    with pytest.raises(TypeError, match="takes tensors, not a int"):
        torch.logical_or(BOOLS, 1)


def test_sums_of_products() -> None:
    a = torch.tensor([[1, 2], [3, 4]])
    assert torch.einsum("ij->j", a.int()).dtype == torch.int64
    assert torch.einsum("ij,jk", a.int(), a.int()).dtype == torch.int32
    assert torch.einsum("...i,...j->ij", a, a).tolist() == (a.t() @ a).tolist()
    assert torch.einsum("i,i->i", BOOLS, BOOLS).tolist() == [True, False]
    assert torch.kron(BOOLS, BOOLS).tolist() == [True, False, False, False]
    assert torch.addmm(torch.full((2, 2), float("nan")), a.float(), a.float(), beta=0)[0, 0].item() == 7
    assert torch.addmv(torch.tensor([1, 1]), a, a[0], alpha=2.5).tolist() == [11, 23]  # whole where all is
    assert torch.tensordot(torch.ones(1, 2), torch.ones(3, 2), dims=([0], [0])).shape == (2, 2)
    assert torch.cross(torch.tensor([[1, 0, 0]]), torch.tensor([[0, 1, 0]])).tolist() == [[0, 0, 1]]
    assert round(torch.dist(torch.zeros(2), torch.tensor([3.0, 4.0])).item(), 5) == 5


def test_statistics_and_slopes() -> None:
    x = torch.tensor([[1.0, 2.0, 4.0], [2.0, 4.0, 8.0]])
    assert torch.corrcoef(x)[0].tolist() == pytest.approx([1, 1], rel=1e-5)
    assert torch.cov(x[0]).item() == pytest.approx(7 / 3)
    assert torch.aminmax(x, dim=0).max.tolist() == [2, 4, 8]
    assert torch.gradient(x, dim=1)[0].tolist() == [[1, 1.5, 2], [2, 3, 4]]
    assert torch.trapezoid(x, dx=2).tolist() == [9, 18]
    assert torch.renorm(x, 1, 0, 7.0).sum(1).tolist() == pytest.approx([7, 7])
    assert torch.logcumsumexp(torch.tensor([0.0, 0.0]), 0)[1].item() == pytest.approx(0.6931472)
    assert x.cumsum_(1)[0].tolist() == [1, 3, 7]
    mantissa, exponent = torch.frexp(torch.tensor([6.0]))
    assert (mantissa.tolist(), exponent.tolist()) == ([0.75], [3])
    assert torch.igamma(torch.tensor(2.0), torch.tensor(1.0)).item() == pytest.approx(0.2642411)


def test_kernels_by_their_names() -> None:
    x = torch.tensor([[1.0, 3.0], [2.0, 6.0]])
    found, mean, share = torch.native_layer_norm(x, (2,), None, None, 0.0)
    assert (found.tolist(), mean.tolist(), share.tolist()) == ([[-1, 1]] * 2, [[2], [4]], [[1], [0.5]])
    means, spreads = torch.zeros(2), torch.ones(2)
    out, mean, _ = torch.native_batch_norm(x, None, None, means, spreads, True, 0.5, 0.0)
    assert (mean.tolist(), means.tolist(), spreads.tolist()) == ([1.5, 4.5], [0.75, 2.25], [0.75, 2.75])
    assert out.tolist() == [[-1, -1], [1, 1]]
    assert torch.native_batch_norm(x, None, None, means, spreads, False, 0.5, 0.0)[1].shape == (0,)
    image, grid = torch.tensor([[[[1.0, 3.0]]]]), torch.zeros(1, 1, 1, 2)
    assert torch.grid_sampler(image, grid, 0, 1, False).item() == 2
    rows = torch.native_group_norm(x[:, :, None], None, None, 2, 2, 1, 1, 0.0)
    assert (rows[0][..., 0].tolist(), rows[1].tolist()) == ([[-1, 1]] * 2, [[2], [4]])
