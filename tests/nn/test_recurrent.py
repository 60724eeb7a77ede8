"""Recurrent layers against NumPy: layers, directions, states, projections, mistakes, jit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from webgrad import nn

Array = np.ndarray[Any, Any]
Module = Any


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed + sum(shape)).standard_normal(shape).astype(np.float32)


def sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


# One step: what is known of the layer by name, x, and the state → the next state


def parameter(layer: Module, name: str) -> Array:
    return np.asarray(layer.state_dict()[name].numpy(), np.float64)


def both_products(layer: Module, place: str, x: Array, h: Array) -> tuple[Array, Array]:
    given, hidden = x @ parameter(layer, f"weight_ih{place}").T, h @ parameter(layer, f"weight_hh{place}").T
    if layer.bias:
        given, hidden = (
            given + parameter(layer, f"bias_ih{place}"),
            hidden + parameter(layer, f"bias_hh{place}"),
        )
    return given, hidden


def plain_step(layer: Module, place: str, x: Array, state: list[Array]) -> list[Array]:
    total = sum(both_products(layer, place, x, state[0]))
    return [np.tanh(total) if layer.nonlinearity == "tanh" else np.maximum(total, 0)]


def lstm_step(layer: Module, place: str, x: Array, state: list[Array]) -> list[Array]:
    i, f, g, o = np.split(sum(both_products(layer, place, x, state[0])), 4, axis=-1)
    cell = sigmoid(f) * state[1] + sigmoid(i) * np.tanh(g)
    hidden = sigmoid(o) * np.tanh(cell)
    if getattr(layer, "proj_size", 0):
        hidden = hidden @ parameter(layer, f"weight_hr{place}").T
    return [hidden, cell]


def gru_step(layer: Module, place: str, x: Array, state: list[Array]) -> list[Array]:
    given, hidden = both_products(layer, place, x, state[0])
    (x_r, x_z, x_n), (h_r, h_z, h_n) = np.split(given, 3, axis=-1), np.split(hidden, 3, axis=-1)
    z, n = sigmoid(x_z + h_z), np.tanh(x_n + sigmoid(x_r + h_r) * h_n)
    return [(1 - z) * n + z * state[0]]


STEPS: dict[type, Callable[..., list[Array]]] = {
    nn.RNN: plain_step,
    nn.LSTM: lstm_step,
    nn.GRU: gru_step,
    nn.RNNCell: plain_step,
    nn.LSTMCell: lstm_step,
    nn.GRUCell: gru_step,
}


def wanted(layer: Module, x: Array, first: list[Array] | None = None) -> tuple[Array, list[Array]]:
    """The outputs and last states of x (time, batch, inputs)."""
    ways = ("", "_reverse") if layer.bidirectional else ("",)
    size, count = layer.proj_size or layer.hidden_size, layer.num_layers * len(ways)
    sizes = (size, layer.hidden_size)[: 2 if isinstance(layer, nn.LSTM) else 1]
    states = first or [np.zeros((count, x.shape[1], each)) for each in sizes]
    ends: list[list[Array]] = []
    x = x.astype(np.float64)
    for number in range(layer.num_layers):
        outputs = []
        for way in ways:
            state = [each[len(ends)] for each in states]
            made = np.empty((*x.shape[:2], size))
            for time in reversed(range(len(x))) if way else range(len(x)):
                state = STEPS[type(layer)](layer, f"_l{number}{way}", x[time], state)
                made[time] = state[0]
            outputs.append(made)
            ends.append(state)
        x = np.concatenate(outputs, axis=-1)
    return x, [np.stack(each) for each in zip(*ends, strict=True)]


def check(layer: Module, x: Array, first: list[Array] | None = None) -> None:
    """A layer gives what is wanted."""
    ordered = x.transpose(1, 0, 2) if layer.batch_first else x
    hx: Any = None if first is None else [wg.asarray(each) for each in first]
    if hx is not None:
        hx = hx[0] if len(hx) == 1 else tuple(hx)
    output, last = layer(wg.asarray(ordered), hx)
    expected, ends = wanted(layer, x, first)
    made = output.numpy().transpose(1, 0, 2) if layer.batch_first else output.numpy()
    np.testing.assert_allclose(made, expected, rtol=1e-4, atol=1e-5)
    for found, end in zip(last if isinstance(last, tuple) else (last,), ends, strict=True):
        np.testing.assert_allclose(found.numpy(), end, rtol=1e-4, atol=1e-5)


LAYERS = [
    pytest.param(nn.RNN, {}, id="RNN"),
    pytest.param(nn.RNN, {"nonlinearity": "relu"}, id="RNN-relu"),
    pytest.param(nn.LSTM, {}, id="LSTM"),
    pytest.param(nn.LSTM, {"proj_size": 3}, id="LSTM-projected"),
    pytest.param(nn.GRU, {}, id="GRU"),
]


@pytest.mark.parametrize(("kind", "options"), LAYERS)
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"bias": False},
        {"num_layers": 2, "bidirectional": True},
        {"batch_first": True, "bidirectional": True},
    ],
    ids=["plain", "no bias", "two layers both ways", "batch first"],
)
def test_it_is_as_defined(kind: Any, options: dict[str, Any], more: dict[str, Any]) -> None:
    check(kind(4, 5, **options, **more), numbers(6, 3, 4))


@pytest.mark.parametrize(("kind", "options"), LAYERS)
def test_first_states(kind: Any, options: dict[str, Any]) -> None:
    layer = kind(4, 5, num_layers=2, bidirectional=True, **options)
    shapes = [(4, 3, options.get("proj_size", 5)), (4, 3, 5)][: 2 if kind is nn.LSTM else 1]
    check(layer, numbers(6, 3, 4), [numbers(*shape, seed=seed) for seed, shape in enumerate(shapes)])


@pytest.mark.gpu
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_on_a_gpu(kind: Any) -> None:
    from tests.properties.helpers import gpu

    layer = kind(4, 8)
    x = numbers(3, 2, 4)
    expected = wanted(layer, x)[0]
    made = layer.to(gpu())(wg.asarray(x, device=gpu()))[0]
    np.testing.assert_allclose(made.numpy(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", [nn.RNN, nn.LSTM, nn.GRU])
def test_one_sequence_is_a_batch_of_one(kind: Any) -> None:
    layer, x = kind(4, 5, bidirectional=True, batch_first=True), numbers(6, 4)
    output, last = layer(wg.asarray(x))
    whole, ends = layer(wg.asarray(x[None]))
    assert output.shape == (6, 10)
    np.testing.assert_array_equal(output.numpy(), whole.numpy()[0])
    first = last[1] if kind is nn.LSTM else last
    np.testing.assert_array_equal(first.numpy(), (ends[1] if kind is nn.LSTM else ends).numpy()[:, 0])
    layer(wg.asarray(x), last)  # what it gives is what it takes


def test_a_sequence_in_two_parts_is_the_sequence() -> None:
    layer, x = nn.LSTM(4, 5, num_layers=2), wg.asarray(numbers(6, 3, 4))
    whole = layer(x)[0].numpy()
    first, state = layer(x[:4])
    rest, _ = layer(x[4:], state)
    np.testing.assert_allclose(np.concatenate([first.numpy(), rest.numpy()]), whole, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", [nn.RNNCell, nn.LSTMCell, nn.GRUCell])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(3, 4), (4,)])
def test_cells_are_one_step(kind: Any, bias: bool, shape: tuple[int, ...]) -> None:
    cell, x = kind(4, 5, bias=bias), numbers(*shape)
    states = [numbers(*shape[:-1], 5, seed=seed) for seed in range(cell._step.states)]
    for given in (None, states):
        hx: Any = None if given is None else [wg.asarray(each) for each in given]
        made = cell(wg.asarray(x), hx if hx is None or cell._step.states == 2 else hx[0])
        expected = STEPS[kind](cell, "", x, given or [np.zeros((*shape[:-1], 5))] * cell._step.states)
        for found, each in zip(made if cell._step.states == 2 else (made,), expected, strict=True):
            np.testing.assert_allclose(found.numpy(), each, rtol=1e-4, atol=1e-5)


def test_names_and_shapes_are_pytorchs() -> None:
    layer = nn.LSTM(4, 6, num_layers=2, bidirectional=True, proj_size=3)
    shapes = {name: each.shape for name, each in layer.named_parameters()}
    assert list(shapes)[:10] == [
        f"{name}_l0{way}"
        for way in ("", "_reverse")
        for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr")
    ]
    assert shapes["weight_ih_l0"] == (24, 4)
    assert shapes["weight_hh_l0"] == (24, 3)
    assert shapes["weight_ih_l1_reverse"] == (24, 6)
    assert shapes["weight_hr_l1"] == (3, 6)
    assert [name for name, _ in nn.GRUCell(2, 3).named_parameters()] == [
        "weight_ih",
        "weight_hh",
        "bias_ih",
        "bias_hh",
    ]


def test_parameters_begin_within_their_bound() -> None:
    values = nn.GRU(3, 16).weight_ih_l0.numpy()
    assert 0.2 < np.abs(values).max() <= 0.25


def test_dropout_is_between_layers_in_training_only() -> None:
    layer, x = nn.GRU(4, 5, num_layers=2, dropout=1.0), wg.asarray(numbers(6, 3, 4))
    dropped = layer(x)[0].numpy()
    np.testing.assert_array_equal(dropped, layer(x * 3.0)[0].numpy())  # nothing comes through
    check(layer.eval(), numbers(6, 3, 4))
    check(nn.GRU(4, 5, num_layers=1, dropout=1.0), numbers(6, 3, 4))


def test_half_precision() -> None:
    layer = nn.LSTM(4, 5).half()
    x = numbers(6, 3, 4)
    output, (_, cell) = layer(wg.asarray(x).astype(wg.float16))
    assert output.dtype is wg.float16
    assert cell.dtype is wg.float16
    np.testing.assert_allclose(output.numpy(), wanted(layer, x)[0], rtol=2e-2, atol=5e-3)


def test_captured() -> None:
    layer = nn.LSTM(4, 5, num_layers=2)
    run = wg.jit(lambda x: layer(x)[0])
    for seed in range(3):
        x = numbers(6, 3, 4, seed=seed)
        np.testing.assert_allclose(run(wg.asarray(x)).numpy(), wanted(layer, x)[0], rtol=1e-4, atol=1e-5)


def test_long_sequences() -> None:
    with wg.no_grad():
        check(nn.GRU(2, 3), numbers(200, 2, 2))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: nn.LSTM(0, 3), "input_size"),
        (lambda: nn.GRU(3, 3, num_layers=0), "num_layers"),
        (lambda: nn.RNN(3, 3, nonlinearity="gelu"), "nonlinearity='gelu'.*tanh, relu"),
        (lambda: nn.LSTM(3, 3, proj_size=3), "proj_size=3.*smaller than hidden_size=3"),
        (lambda: nn.RNN(3, 3, dropout=1.5), "probability"),
        (lambda: nn.RNNCell(3, 3, nonlinearity="x"), "nonlinearity"),
    ],
)
def test_wrong_arguments(make: Callable[[], Any], words: str) -> None:
    with pytest.raises(wg.ArgumentError, match=words):
        make()


def zeros() -> wg.Tensor:
    return wg.zeros((6, 2, 4))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda: nn.LSTM(3, 5)(zeros()),
            wg.ShapeError,
            r"has 4 numbers at each time.*takes 3.*\(time, batch, inputs\)",
        ),
        (lambda: nn.GRU(4, 5)(zeros()[0, 0]), wg.ShapeError, "must be"),
        (lambda: nn.GRU(4, 5)(zeros()[:0]), wg.ShapeError, "no times"),
        (
            lambda: nn.GRU(4, 5)(zeros(), wg.zeros((1, 3, 5))),
            wg.ShapeError,
            r"h_0 is \(1, 3, 5\).*\(1, 2, 5\)",
        ),
        (lambda: nn.LSTM(4, 5)(zeros(), wg.zeros((1, 2, 5))), wg.ArgumentError, r"pair \(h_0, c_0\)"),
        (lambda: nn.LSTM(4, 5)(zeros(), (zeros(), 1)), wg.ShapeError, "h_0 is"),
        (lambda: nn.RNN(4, 5)(zeros().astype(wg.int32)), wg.DTypeError, "floats"),
        (lambda: nn.RNN(4, 5)([[1.0]]), wg.DTypeError, "tensor"),
        (lambda: nn.GRUCell(4, 5)(zeros()), wg.ShapeError, r"\(batch, 4\)"),
        (lambda: nn.GRUCell(4, 5)(zeros()[0], wg.zeros((2, 4))), wg.ShapeError, r"must be \(2, 5\)"),
        (lambda: nn.LSTMCell(4, 5)(zeros()[0], wg.zeros((2, 5))), wg.ArgumentError, "pair"),
    ],
)
def test_wrong_inputs(call: Callable[[], Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()
