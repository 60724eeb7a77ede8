"""The loop over time: its written-out gradients are those of the same steps taken op by op, of any order."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from webgrad import nn

Array = np.ndarray[Any, Any]
PAIRS = [
    pytest.param(nn.RNN, nn.RNNCell, {}, id="RNN"),
    pytest.param(nn.RNN, nn.RNNCell, {"nonlinearity": "relu"}, id="RNN-relu"),
    pytest.param(nn.LSTM, nn.LSTMCell, {}, id="LSTM"),
    pytest.param(nn.LSTM, nn.LSTMCell, {"bias": False}, id="LSTM-no-bias"),
    pytest.param(nn.GRU, nn.GRUCell, {}, id="GRU"),
]


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed + sum(shape)).standard_normal(shape).astype(np.float32)


def together(layer_kind: Any, cell_kind: Any, options: dict[str, Any]) -> tuple[Any, Any]:
    """A layer and a cell of the same weights."""
    layer, cell = layer_kind(3, 4, **options), cell_kind(3, 4, **options)
    cell.load_state_dict({name.removesuffix("_l0"): each for name, each in layer.state_dict().items()})
    return layer, cell


def by_cell(cell: Any, x: wg.Tensor, state: Any) -> tuple[wg.Tensor, Any]:
    """A sequence, one call of the cell after another."""
    outputs = []
    for each in wg.unstack(x):
        state = cell(each, state)
        outputs.append(state[0] if isinstance(state, tuple) else state)
    return wg.stack(outputs), state


def loss_of(result: tuple[Any, Any]) -> wg.Tensor:
    """A number that depends on all that a layer gives, on each part otherwise."""
    output, state = result
    total = wg.sum(output * wg.asarray(numbers(*output.shape)))
    for number, each in enumerate(state if isinstance(state, tuple) else (state,)):
        total = total + wg.sum(wg.sin(each.reshape((-1,))) * (number + 2.0))
    return total


def inputs(kind: Any) -> list[wg.Tensor]:
    """A sequence and a first state."""
    shapes = [(5, 2, 3), (1, 2, 4), (1, 2, 4)][: 3 if kind is nn.LSTM else 2]
    return [wg.asarray(numbers(*each, seed=seed)) for seed, each in enumerate(shapes)]


def losses(layer: Any, cell: Any) -> tuple[Callable[..., wg.Tensor], Callable[..., wg.Tensor]]:
    """The same number of a sequence and a first state, by the layer and by the cell."""

    def whole(x: wg.Tensor, *state: wg.Tensor) -> wg.Tensor:
        return loss_of(layer(x, state if len(state) > 1 else state[0]))

    def stepwise(x: wg.Tensor, *state: wg.Tensor) -> wg.Tensor:
        first = tuple(each[0] for each in state)
        return loss_of(by_cell(cell, x, first if len(first) > 1 else first[0]))

    return whole, stepwise


@pytest.mark.parametrize(("kind", "cell_kind", "options"), PAIRS)
def test_gradients_of_inputs_states_and_weights(kind: Any, cell_kind: Any, options: dict[str, Any]) -> None:
    layer, cell = together(kind, cell_kind, options)
    whole, stepwise = losses(layer, cell)
    given = inputs(kind)
    mine, other = (
        [each.clone().requires_grad_() for each in given],
        [each.clone().requires_grad_() for each in given],
    )
    whole(*mine).backward()
    stepwise(*other).backward()
    for found, wanted in zip([*mine, *layer.parameters()], [*other, *cell.parameters()], strict=True):
        assert found.grad is not None
        assert wanted.grad is not None
        np.testing.assert_allclose(found.grad.numpy(), wanted.grad.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("kind", "cell_kind", "options"), PAIRS)
def test_second_derivatives(kind: Any, cell_kind: Any, options: dict[str, Any]) -> None:
    whole, stepwise = losses(*together(kind, cell_kind, options))
    given = inputs(kind)
    way = wg.asarray(numbers(5, 2, 3, seed=7))

    def second(function: Callable[..., wg.Tensor]) -> Array:
        def along(*args: wg.Tensor) -> wg.Tensor:
            return wg.sum(wg.grad(function)(*args) * way)

        found: Array = wg.grad(along)(*given).numpy()
        return found

    np.testing.assert_allclose(second(whole), second(stepwise), rtol=1e-3, atol=1e-4)


def test_backwards_and_projected() -> None:
    """Numbers of a two-layer, both-way, projected LSTM against differences."""
    layer, x = nn.LSTM(3, 4, num_layers=2, bidirectional=True, proj_size=2), wg.asarray(numbers(4, 2, 3))
    loss_of(layer(x)).backward()
    for name, parameter in layer.named_parameters():
        way = wg.asarray(numbers(*parameter.shape))
        assert parameter.grad is not None
        slope = float(wg.sum(parameter.grad * way))
        values = []
        for step in (1e-2, -1e-2):
            with wg.no_grad():
                parameter += step * way
                wg.eval(parameter)  # so that the plan is the same for each
                values.append(float(loss_of(layer(x))))
                parameter -= step * way
                wg.eval(parameter)
        assert slope == pytest.approx((values[0] - values[1]) / 2e-2, rel=2e-2, abs=2e-2), name


def test_only_the_last_state_is_used() -> None:
    layer, cell = together(nn.LSTM, nn.LSTMCell, {})
    x = wg.asarray(numbers(5, 2, 3))
    wg.sum(layer(x)[1][1] ** 2).backward()
    wg.sum(by_cell(cell, x, None)[1][1] ** 2).backward()
    for mine, other in zip(layer.parameters(), cell.parameters(), strict=True):
        np.testing.assert_allclose(mine.grad.numpy(), other.grad.numpy(), rtol=1e-4, atol=1e-6)


def test_training_captured_is_training() -> None:
    x, target = numbers(6, 4, 3), numbers(4, 5)
    eager, captured = nn.GRU(3, 5), nn.GRU(3, 5)
    captured.load_state_dict(eager.state_dict())

    def step_of(layer: Any) -> Callable[[wg.Tensor, wg.Tensor], wg.Tensor]:
        def step(x: wg.Tensor, target: wg.Tensor) -> wg.Tensor:
            layer.zero_grad()
            loss = wg.mean((layer(x)[1][0] - target) ** 2)
            loss.backward()
            with wg.no_grad():
                for parameter in layer.parameters():
                    parameter -= 0.5 * parameter.grad
            return loss

        return step

    runs = step_of(eager), wg.jit(step_of(captured))
    history = [[float(run(wg.asarray(x), wg.asarray(target))) for run in runs] for _ in range(6)]
    np.testing.assert_allclose([each[0] for each in history], [each[1] for each in history], rtol=1e-4)
    assert history[-1][0] < history[0][0]


def gradients(layer: Any) -> list[Array]:
    return [each.grad.numpy() for each in layer.parameters()]


def test_checkpointed() -> None:
    layer, x = nn.LSTM(3, 4), wg.asarray(numbers(5, 2, 3))
    wg.sum(layer(x)[0] ** 2).backward()
    wanted = gradients(layer)
    layer.zero_grad()
    wg.sum(wg.checkpoint(lambda x: layer(x)[0], x) ** 2).backward()
    for found, each in zip(gradients(layer), wanted, strict=True):
        np.testing.assert_allclose(found, each, rtol=1e-4, atol=1e-6)


def test_what_the_way_back_needs_is_let_go() -> None:
    """Functions with own gradients hold tensors: not after the gradients, without the collector too."""
    held: list[Any] = []

    @wg.custom_gradient
    def doubled(x: wg.Tensor) -> Any:
        inner = wg.exp(x)
        held.append(weakref.ref(inner))
        return inner * 2.0, lambda gradient: gradient * inner * 2.0

    x = wg.asarray([1.0, 2.0]).requires_grad_()
    gc.disable()
    try:
        loss = wg.sum(doubled(x) + 1.0)
        assert held[0]() is not None
        loss.backward()
        assert held[0]() is None
    finally:
        gc.enable()


def test_own_gradients_in_captured_functions_without_backward() -> None:
    weight = wg.asarray([2.0, 3.0]).requires_grad_()

    @wg.custom_gradient
    def doubled(x: wg.Tensor) -> Any:
        inner = wg.exp(x)
        return inner * 2.0, lambda gradient: gradient * inner * 2.0

    run = wg.jit(lambda x: doubled(x * weight) + 1.0)
    for value in (0.5, 1.0):
        np.testing.assert_allclose(
            run(wg.asarray([value, value])).numpy(), 2 * np.exp(value * np.asarray([2.0, 3.0])) + 1, rtol=1e-5
        )


@pytest.mark.gpu
def test_kernels_of_a_plain_layer() -> None:
    """One for each time forwards, one back; inputs, outputs and weights are a handful for all times."""
    from tests.properties.helpers import gpu

    counts = []
    for times in (4, 6):
        layer = nn.RNN(8, 16).to(gpu())
        x = wg.asarray(numbers(times, 4, 8), device=gpu())
        wg.eval(x, *layer.parameters())
        loss = wg.sum(layer(x)[0] ** 2)
        loss.backward()
        counts.append(len(wg.explain(loss, *(each.grad for each in layer.parameters())).kernels))
    assert counts[1] - counts[0] <= 4
