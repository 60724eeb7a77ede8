"""PyTorch's methods of tensors: dtypes, sizes, and changes in place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webgrad as wg

DTYPES = {
    "half": wg.float16,
    "bfloat16": wg.bfloat16,
    "double": wg.float64,
    "float": wg.float32,
    "cfloat": wg.complex64,
    "cdouble": wg.complex128,
    "int": wg.int32,
    "long": wg.int64,
    "bool": wg.bool,
}


@pytest.fixture(autouse=True)
def cpu() -> Any:
    wg.set_default_device("cpu")
    yield
    wg.set_default_device(None)


@pytest.mark.parametrize("name", DTYPES)
def test_dtypes(name: str) -> None:
    x = wg.asarray([0.0, 1.5, -2.0])
    assert getattr(x, name)().dtype is DTYPES[name]
    assert x.float() is x
    assert getattr(wg.Tensor, name).__doc__ == f"As {DTYPES[name].name}."


def test_sizes_and_shapes() -> None:
    x = wg.arange(6.0).reshape(2, 3)
    assert (x.dim(), x.numel(), wg.numel(x)) == (2, 6, 6)
    assert x.t().shape == x.view_as(wg.ones((3, 2))).shape == x.reshape_as(wg.ones((3, 2))).shape == (3, 2)
    assert wg.ones((1, 3)).expand_as(x).shape == (2, 3)
    assert x[0].t().shape == (3,)
    assert x.cpu() is x
    with pytest.raises(wg.ShapeError, match=r"use x\.mT"):
        x[None].t()


def test_adjoints() -> None:
    values = np.arange(12).reshape(2, 2, 3) * (1 + 2j)
    stack = wg.asarray(values)
    np.testing.assert_array_equal(stack.mH.numpy(), np.swapaxes(values.conj(), 1, 2))
    np.testing.assert_array_equal(stack.adjoint().numpy(), stack.mH.numpy())
    np.testing.assert_array_equal(stack[0].H.numpy(), values[0].conj().T)
    np.testing.assert_array_equal(wg.arange(6.0).reshape(2, 3).H.numpy(), np.arange(6.0).reshape(2, 3).T)
    with pytest.raises(wg.ShapeError, match=r"use x\.mH for stacks"):
        _ = stack.H


def test_changes_in_place() -> None:
    x = wg.asarray([1.0, 2.0, 3.0])
    other = x
    x.add_(1).sub_(wg.ones(3), alpha=2).mul_(3).div_(2)
    assert other.tolist() == [0.0, 1.5, 3.0]
    assert x.clamp_(min=1, max=2).tolist() == [1.0, 1.5, 2.0]
    assert x.masked_fill_(x > 1.2, -1.0).tolist() == [1.0, -1.0, -1.0]
    assert x.copy_(wg.asarray([7, 8, 9])).tolist() == [7.0, 8.0, 9.0]
    assert x.copy_(np.float32(4)).tolist() == [4.0, 4.0, 4.0]
    assert x.add_(wg.asarray([1.0, 2.0, 3.0]), alpha=-1).tolist() == [3.0, 2.0, 1.0]
    assert x.fill_(5).tolist() == [5.0, 5.0, 5.0]
    assert x.zero_().tolist() == [0.0, 0.0, 0.0]
    assert other is x


def test_a_target_network_as_one_writes_it() -> None:
    online, target = wg.nn.Linear(2, 1), wg.nn.Linear(2, 1)
    before = target.weight.numpy()
    with pytest.raises(wg.GradientError, match="no_grad"):
        target.weight.mul_(0.5)
    with wg.no_grad():
        for theirs, ours in zip(target.parameters(), online.parameters(), strict=True):
            theirs.mul_(0.9).add_(ours, alpha=0.1)
    np.testing.assert_allclose(target.weight.numpy(), 0.9 * before + 0.1 * online.weight.numpy(), rtol=1e-5)
    assert target.weight.requires_grad
    with wg.no_grad():
        target.weight.copy_(online.weight)
    assert (target.weight == online.weight).all()


def test_histories_by_a_flag() -> None:
    w = wg.tensor([1.0], requires_grad=True)
    for flag in (True, False):
        with wg.set_grad_enabled(flag):
            assert (w * 2).requires_grad is flag
    assert wg.is_grad_enabled()

    @wg.set_grad_enabled(False)
    def doubled() -> wg.Tensor:
        return w * 2

    assert wg.is_grad_enabled()
    assert not doubled().requires_grad
    wg.set_grad_enabled(False)
    try:
        assert not wg.is_grad_enabled()
    finally:
        wg.set_grad_enabled(True)
    assert (w * 2).requires_grad


def test_data_is_the_values_without_gradients() -> None:
    w = wg.nn.Parameter(wg.ones(2))
    (w * w).sum().backward()
    w.data.mul_(3.0)
    assert w.grad is not None
    assert (w.tolist(), w.requires_grad, w.is_leaf, w.grad.tolist()) == ([3.0, 3.0], True, True, [2.0, 2.0])
    row = w[0]
    other = wg.zeros(3)
    w.data = other
    assert (w.shape, w.requires_grad, w.is_leaf) == ((3,), True, True)
    assert row.tolist() == 3.0  # what it shared before stays
    other.fill_(7.0)
    assert w.tolist() == [7.0, 7.0, 7.0]
    for _ in range(3):  # what programs write
        w.data = w.data.sub_(1.0)
        w.data = w.data * 2
    assert w.tolist() == [42.0, 42.0, 42.0]
    with pytest.raises(wg.DTypeError, match=r"a list is not a tensor: make one with webgrad\.asarray"):
        w.data = [1.0]
    with pytest.raises(wg.GradientError, match="int32 values have none"):
        w.data = wg.asarray([1])


def test_random_in_place() -> None:
    one, same = wg.random.Generator(3), wg.random.Generator(3)
    x = wg.zeros((2, 3), dtype=wg.float16)
    other = x
    assert x.normal_(2.0, 0.5, generator=one) is other
    np.testing.assert_array_equal(x.numpy(), same.normal((2, 3), mean=2.0, std=0.5, dtype=wg.float16).numpy())
    x.uniform_(3, 4, generator=one)
    assert 3 <= x.min().item() <= x.max().item() <= 4
    layer = wg.nn.Linear(2, 2)
    with wg.no_grad():
        layer.weight.normal_(std=0.0)
    assert layer.weight.tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_written_places() -> None:
    index = wg.asarray([[2, 0], [1, 1]])
    source = wg.asarray([[1.0, 2.0], [3.0, 4.0]])
    assert wg.zeros((2, 3)).scatter_(1, index, source)[0].tolist() == [2.0, 0.0, 1.0]
    torchs: dict[str, Any] = {"dim": 1, "index": index, "source": 9.0}
    assert wg.zeros((2, 3)).scatter_(**torchs)[1].tolist() == [0.0, 9.0, 0.0]
    assert wg.zeros((2, 3)).scatter_add_(1, index, source)[1].tolist() == [0.0, 7.0, 0.0]
    x = wg.ones((3, 2))
    row = x[1]
    x.index_add_(0, wg.asarray([1, 1]), source, alpha=2)
    assert x.tolist() == [[1.0, 1.0], [9.0, 13.0], [1.0, 1.0]]
    assert row.tolist() == [9.0, 13.0]


def test_new_ones_like_it() -> None:
    x = wg.ones((2, 2), dtype=wg.float16)
    made = [x.new_zeros(2, 3), x.new_ones((2, 3)), x.new_empty(2, 3), x.new_full((2, 3), 7)]
    assert {each.shape for each in made} == {(2, 3)}
    assert {each.dtype for each in [*made, x.new_tensor([1])]} == {wg.float16}
    assert x.new_zeros(2, dtype=wg.int32).dtype is wg.int32
    assert made[3].tolist() == [[7.0] * 3] * 2


def test_names_of_pytorchs() -> None:
    x = wg.arange(12.0).reshape(2, 6)
    assert x.unflatten(1, (3, -1)).shape == x.unflatten(dim=1, sizes=(3, 2)).shape == (2, 3, 2)
    view = x.narrow(1, -2, 2)
    view.zero_()
    assert x[0].tolist() == [0.0, 1.0, 2.0, 3.0, 0.0, 0.0]
    assert x.masked_select(x > 8).tolist() == [9.0]
    assert wg.masked_select(x, wg.asarray([[True], [False]])).shape == (6,)
    assert (x.clamp_min(5).min().item(), x.clamp_max(2).max().item()) == (5.0, 2.0)
    assert x.movedim(0, 1).shape == x.swapdims(0, 1).shape == (6, 2)
    assert wg.as_tensor([1, 2]).dtype is wg.int32
    assert (wg.is_tensor(x), wg.is_tensor(1), x.is_floating_point()) == (True, False, True)
    with pytest.raises(wg.ShapeError, match=r"narrow: axis 1 .* has no 3 elements from 4"):
        x.narrow(1, 4, 3)
    with pytest.raises(
        wg.ShapeError, match=r"unflatten: an axis of 6 elements is not of the sizes \(4, -1\)"
    ):
        x.unflatten(1, (4, -1))
