"""Views: what shares elements with what, and what a write to one of them does to the others."""

from __future__ import annotations

import copy
import gc
from collections.abc import Callable
from typing import Any
from weakref import ref

import numpy as np
import pytest

import webgrad as wg

DEVICES = ["cpu", pytest.param("webgpu:0", marks=pytest.mark.gpu)]
both = pytest.mark.parametrize("device", DEVICES)


def square(device: str = "cpu", size: int = 3) -> wg.Tensor:
    return wg.zeros((size, size), device=device)


# What is a view: each makes one of a 3 × 3 tensor, and NumPy's way to it

VIEWS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "row": (lambda x: x[0], lambda x: x[0]),
    "one": (lambda x: x[1, 2], lambda x: x[1, 2, ...]),
    "part": (lambda x: x[1:, ::2], lambda x: x[1:, ::2]),
    "backward": (lambda x: x[::-1], lambda x: x[::-1]),
    "of a part": (lambda x: x[1:][0][1:], lambda x: x[1:][0][1:]),
    "new axis": (lambda x: x[:, None], lambda x: x[:, None]),
    "T": (lambda x: x.T, lambda x: x.T),
    "mT": (lambda x: x.mT, lambda x: x.T),
    "t()": (lambda x: x.t(), lambda x: x.T),
    "transpose": (lambda x: x.transpose(0, 1), lambda x: x.T),
    "permute": (lambda x: x.permute(1, 0), lambda x: x.T),
    "moveaxis": (lambda x: wg.moveaxis(x, 0, 1), lambda x: x.T),
    "view": (lambda x: x.view(-1), lambda x: x.reshape(-1)),
    "reshape": (lambda x: x.reshape(9), lambda x: x.reshape(-1)),
    "flatten": (lambda x: x.flatten(), lambda x: x.reshape(-1)),
    "unsqueeze": (lambda x: x.unsqueeze(0), lambda x: x[None]),
    "squeeze": (lambda x: x.unsqueeze(0).squeeze(0), lambda x: x),
    "diagonal": (lambda x: x.diagonal(), lambda x: np.einsum("ii->i", x)),
    "diagonal above": (lambda x: x.diagonal(1), lambda x: x.reshape(-1)[1:6:4]),
    "diagonal of T": (lambda x: x.T.diagonal(-1), lambda x: x.reshape(-1)[1:6:4]),
    "split": (lambda x: x.split(3)[1], lambda x: x[1:2]),
    "chunk": (lambda x: x.chunk(3, 1)[2], lambda x: x[:, 2:]),
    "unbind": (lambda x: x.unbind(1)[1], lambda x: x[:, 1]),
    "unstack": (lambda x: x.unstack(axis=0)[2], lambda x: x[2]),
    "iteration": (lambda x: list(x)[1], lambda x: x[1]),
    "detach": (lambda x: x.detach(), lambda x: x),
    "data": (lambda x: x.data[1], lambda x: x[1]),
    "copy.copy": (copy.copy, lambda x: x),
    "contiguous part": (lambda x: x[1:].contiguous(), lambda x: x[1:]),
}


@both
@pytest.mark.parametrize("name", VIEWS)
def test_a_write_to_a_view_is_seen_by_its_base_and_its_other_views(name: str, device: str) -> None:
    ours, theirs = VIEWS[name]
    x, array = square(device), np.zeros((3, 3), np.float32)
    view, column, copied = ours(x), x[:, 1], ours(x).clone()
    view += 2.0
    theirs(array)[...] += 2.0
    assert x.tolist() == array.tolist()
    assert column.tolist() == array[:, 1].tolist()
    assert not copied.numpy().any()
    x[1, 1] = 9.0
    array[1, 1] = 9.0
    assert view.tolist() == theirs(array).tolist()


COPIES: dict[str, Callable[[Any], Any]] = {
    "clone": lambda x: x.clone(),
    "by a list": lambda x: x[[0, 1]],
    "by a mask": lambda x: x[x == 0],
    "computed": lambda x: x + 0,
    "flatten of T": lambda x: x.T.flatten(),
    "reshape of T": lambda x: x.T.reshape(-1),
    "T.contiguous()": lambda x: x.T.contiguous(),
    "reshape with copy": lambda x: wg.reshape(x, (9,), copy=True),
    "astype": lambda x: x.astype(x.dtype),
    "deepcopy": copy.deepcopy,
    "flip": lambda x: x.flip(0),
}


@both
@pytest.mark.parametrize("name", COPIES)
def test_a_write_to_a_copy_is_seen_by_nobody(name: str, device: str) -> None:
    x = square(device)
    copied = COPIES[name](x)
    copied += 1.0
    assert not x.numpy().any()
    x -= 1.0
    assert (copied.numpy() == 1.0).all()


# The idioms of programs


@both
def test_usual_writes(device: str) -> None:
    x = square(device)
    x[0][1] = 5.0
    x[1:3][x[1:3] == 0] = 1.0
    x.T[0] = 7.0
    x.view(-1)[8] = 3.0
    assert x.tolist() == [[7, 5, 0], [7, 1, 1], [7, 1, 3]]
    for row in x:
        row.fill_(2.0)
    x.diagonal().fill_(4.0)
    assert x.tolist() == [[4, 2, 2], [2, 4, 2], [2, 2, 4]]


def test_a_state_dict_is_the_model() -> None:
    model = wg.nn.Linear(2, 2)
    for value in model.state_dict().values():
        value.copy_(wg.ones_like(value))
    assert model.weight.tolist() == [[1, 1], [1, 1]]
    assert model.weight.requires_grad
    kept = copy.deepcopy(model.state_dict())
    with wg.no_grad():
        model.weight.fill_(3.0)
    assert kept["weight"].tolist() == [[1, 1], [1, 1]]
    model.load_state_dict(kept)
    assert model.weight.tolist() == [[1, 1], [1, 1]]


def test_parts_of_parameters_and_of_gradients() -> None:
    cell = wg.nn.LSTMCell(2, 2)
    with wg.no_grad():
        cell.bias_ih[2:4].fill_(1.0)
    assert cell.bias_ih[2:4].tolist() == [1.0, 1.0]
    layer = wg.nn.Linear(4, 4)
    wg.nn.init.zeros_(layer.weight[:2])
    assert not layer.weight[:2].numpy().any()
    assert layer.weight[2:].numpy().all()
    table = wg.nn.Embedding(3, 2)
    table(wg.asarray([0, 1])).sum().backward()
    assert table.weight.grad is not None
    table.weight.grad[0].fill_(0.0)
    assert table.weight.grad.tolist() == [[0, 0], [1, 1], [0, 0]]


def test_views_that_outlive_their_base_share_with_each_other() -> None:
    x = square()
    row, column = x[1], x[:, 1]
    del x
    gc.collect()
    row.fill_(5.0)
    assert column.tolist() == [0, 5, 0]
    column.fill_(2.0)
    assert row.tolist() == [5, 2, 5]


def test_complex_numbers_and_their_parts() -> None:
    z = wg.asarray([1 + 2j, 3 - 1j])
    parts, real = wg.view_as_real(z), z.real
    z.real.fill_(0.0)
    z.imag[0] = 7.0
    assert z.tolist() == [7j, -1j]
    parts[1] = wg.asarray([5.0, 6.0])
    assert (z.tolist(), real.tolist()) == ([7j, 5 + 6j], [0.0, 5.0])
    z[0] = 1 + 1j
    assert parts.tolist() == [[1, 1], [5, 6]]
    floats = wg.zeros((2, 2))
    wg.view_as_complex(floats)[1] = 3 + 4j
    assert floats.tolist() == [[0, 0], [3, 4]]


# What cannot be shared is refused


def test_a_write_to_repeated_elements_is_refused() -> None:
    x = wg.ones((1, 2))
    message = (
        r"view of shape \(3, 2\) of an expanded tensor.*\(1, 2\) to \(3, 2\).*Write to the tensor before"
    )
    with pytest.raises(wg.ShapeError, match=message):
        x.expand(3, 2).fill_(1.0)
    with pytest.raises(wg.ShapeError, match="of an expanded tensor"):
        wg.broadcast_to(wg.ones(()), (4,)).add_(1.0)  # though nobody holds what is expanded
    wide = x.expand(3, 2)
    x[0, 1] = 5.0
    assert wide.tolist() == [[1, 5]] * 3


def test_a_view_that_there_is_not_is_refused_when_it_is_written_to() -> None:
    x = square(size=2)
    with pytest.raises(wg.ShapeError, match=r"has no view of shape \(4,\).*use reshape"):
        x.T.view(-1)[0] = 1.0
    assert not x.numpy().any()


# Gradients


def test_gradients_go_through_what_is_written() -> None:
    a = wg.ones((2, 2)).requires_grad_()
    b = wg.ones(2).requires_grad_()
    y = a * 2
    column = y[:, 1]
    y[0] = b * 5
    (column * wg.asarray([3.0, 7.0])).sum().backward()
    assert a.grad is not None
    assert b.grad is not None
    assert a.grad.tolist() == [[0, 0], [0, 14]]
    assert b.grad.tolist() == [0, 15]


def test_what_is_overwritten_still_requires_a_gradient() -> None:
    a = wg.ones(2).requires_grad_()
    y = a * 2
    y.fill_(3.0)
    assert y.requires_grad
    y.sum().backward()
    assert a.grad is not None
    assert a.grad.tolist() == [0, 0]


def test_a_view_of_a_leaf_is_written_to_without_gradients_only() -> None:
    w = wg.ones((2, 2)).requires_grad_()
    row = w[0]
    with pytest.raises(wg.GradientError, match=r"changed in place, itself or through a view"):
        row.fill_(0.0)
    assert w.tolist() == [[1, 1], [1, 1]]
    with wg.no_grad():
        row.fill_(5.0)
    assert w.tolist() == [[5, 5], [1, 1]]
    assert w.is_leaf
    (row * 3).sum().backward()
    assert w.grad is not None
    assert w.grad.tolist() == [[3, 3], [0, 0]]


def test_a_write_through_detach_leaves_gradients_alone() -> None:
    w = wg.ones(2).requires_grad_()
    y = w * 3
    y.detach().mul_(10.0)
    assert y.tolist() == [30, 30]
    (y * 2).sum().backward()
    assert w.grad is not None
    assert w.grad.tolist() == [6, 6]


# Under jit


@both
def test_captured_functions_write_to_views(device: str) -> None:
    x = square(device)
    row, outside = x[0], x[:, 2]

    @wg.jit
    def step(given: wg.Tensor, rate: float) -> wg.Tensor:
        given[1].fill_(2.0)
        given.T[2] += rate
        return given[2]

    for count in range(1, 4):
        last = step(x, 1.0)
        assert x.tolist() == [[0, 0, count], [2, 2, 3], [0, 0, count]]
        assert row.tolist() == [0, 0, count]
        assert outside.tolist() == [count, 3, count]
        last.fill_(float(count))  # what is returned is a view as well
        assert x[2].tolist() == [count] * 3
        x[2] = wg.asarray([0.0, 0.0, float(count)], device=device)


@both
def test_arguments_that_share_elements_do_so_inside(device: str) -> None:
    @wg.jit
    def fill(first: wg.Tensor, second: wg.Tensor) -> wg.Tensor:
        first.fill_(1.0)
        return second * 1

    for _ in range(2):
        x = square(device, 2)
        assert fill(x, x[0]).tolist() == [1, 1]
        assert fill(x.T, wg.zeros(2, device=device)).tolist() == [0, 0]
        y = square(device, 2)
        assert fill(y[0], y[:, 0]).tolist() == [1, 0]


def test_what_is_closed_over_and_passed_is_refused_where_it_is_changed() -> None:
    state = square(size=2)
    row = state[0]

    @wg.jit
    def step(x: wg.Tensor) -> wg.Tensor:
        x.fill_(1.0)
        return row * 1

    with pytest.raises(wg.CaptureError, match="closes over it, or over a view of it"):
        step(state)


# Costs


def test_views_keep_no_tensor_alive() -> None:
    base = wg.ones((64, 64)) * 2
    view, there = base[0], ref(base)
    del base
    assert there() is None
    assert view.tolist() == [2.0] * 64


def test_dead_views_are_forgotten() -> None:
    x = wg.ones(4)
    for _ in range(1000):
        x.reshape(2, 2)
    assert x.alias is not None
    assert len(x.alias.members) < 200
