"""The loop of a recurrent layer over time, and back: `unroll`, and the steps that it is made of.

In: what came of a layer's inputs at every time (one matrix product), the weights for the state, the first
state. Out: the outputs at every time, and the last state. Its gradient is written out: going back, a step
gives the gradients of its gates, and those of all times together are one matrix product for each weight;
taken op by op, there would be one for each time, and every slice's gradient would be as long as the sequence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import webgrad as wg
from webgrad import Tensor

__all__ = ["GRU", "LSTM", "PLAIN", "State", "Step", "Weights", "unroll"]

State = tuple[Tensor, ...]  # (h,), or (h, c)


class Weights(NamedTuple):
    """What a state is multiplied with, and the result of an LSTM with a projection."""

    hidden: Tensor
    bias: Tensor | None
    projection: Tensor | None = None


class Step(NamedTuple):
    """A kind of layer: its step forwards, and backwards.

    `forward` takes what came of the input, what came of h, and the state, and gives the next state.
    `backward` takes the same, the next state and its gradient, and gives the gradients of what came of the
    input, of what came of h, and of the state as far as it is used directly (None: not at all).
    """

    gates: int  # how many hidden sizes of rows the weights have
    states: int  # how many tensors a state is
    forward: Callable[[Tensor, Tensor, State], State]
    backward: Callable[
        [Tensor, Tensor, State, State, State], tuple[Tensor, Tensor, tuple[Tensor | None, ...]]
    ]


# Steps


def _slope(sigmoid: Tensor) -> Tensor:
    """The derivative of a sigmoid, from its value."""
    return sigmoid * (1.0 - sigmoid)


def _plain(activation: Callable[[Tensor], Tensor], back: Callable[[Tensor, Tensor], Tensor]) -> Step:
    """h' = activation(x + h); `back` gives the gradient of the sum from h' and its gradient."""

    def backward(x: Tensor, h: Tensor, state: State, after: State, gradient: State) -> Any:
        total = back(after[0], gradient[0])
        return total, total, (None,)

    return Step(1, 1, lambda x, h, state: (activation(x + h),), backward)


def _lstm_gates(x: Tensor, h: Tensor) -> list[Tensor]:
    let_in, keep, new, let_out = wg.split(x + h, 4, axis=-1)
    return [wg.sigmoid(let_in), wg.sigmoid(keep), wg.tanh(new), wg.sigmoid(let_out)]


def _lstm(x: Tensor, h: Tensor, state: State) -> State:
    let_in, keep, new, let_out = _lstm_gates(x, h)
    cell = keep * state[1] + let_in * new
    return let_out * wg.tanh(cell), cell


def _lstm_back(x: Tensor, h: Tensor, state: State, after: State, gradient: State) -> Any:
    let_in, keep, new, let_out = _lstm_gates(x, h)
    shown = wg.tanh(after[1])
    cell = gradient[1] + gradient[0] * let_out * (1.0 - shown * shown)
    total = wg.concat(
        [
            cell * new * _slope(let_in),
            cell * state[1] * _slope(keep),
            cell * let_in * (1.0 - new * new),
            gradient[0] * shown * _slope(let_out),
        ],
        axis=-1,
    )
    return total, total, (None, cell * keep)


def _gru_gates(x: Tensor, h: Tensor) -> list[Tensor]:
    (reset_x, keep_x, new_x), (reset_h, keep_h, new_h) = wg.split(x, 3, axis=-1), wg.split(h, 3, axis=-1)
    reset = wg.sigmoid(reset_x + reset_h)
    return [reset, wg.sigmoid(keep_x + keep_h), wg.tanh(new_x + reset * new_h), new_h]


def _gru(x: Tensor, h: Tensor, state: State) -> State:
    _, keep, new, _ = _gru_gates(x, h)
    return (new + keep * (state[0] - new),)


def _gru_back(x: Tensor, h: Tensor, state: State, after: State, gradient: State) -> Any:
    reset, keep, new, new_h = _gru_gates(x, h)
    of_keep = gradient[0] * (state[0] - new) * _slope(keep)
    of_new = gradient[0] * (1.0 - keep) * (1.0 - new * new)
    of_reset = of_new * new_h * _slope(reset)
    return (
        wg.concat([of_reset, of_keep, of_new], axis=-1),
        wg.concat([of_reset, of_keep, of_new * reset], axis=-1),
        (gradient[0] * keep,),
    )


PLAIN = {
    "tanh": _plain(wg.tanh, lambda h, gradient: gradient * (1.0 - h * h)),
    "relu": _plain(wg.relu, lambda h, gradient: wg.where(h > 0, gradient, 0.0)),
}
LSTM = Step(4, 2, _lstm, _lstm_back)
GRU = Step(3, 1, _gru, _gru_back)


# Sequences


class _Moment(NamedTuple):
    """What one time needs on the way back."""

    x: Tensor
    h: Tensor
    state: State
    after: State  # before the projection


@wg.custom_gradient
def unroll(step: Step, given: Tensor, weights: Weights, state: State, backwards: bool) -> Any:
    """The outputs (time, batch, size) and the last state; `backwards` from the last time to the first."""
    moments, outputs = [], []
    times, turned = wg.unstack(given), weights.hidden.T
    for x in reversed(times) if backwards else times:
        h = state[0] @ turned if weights.bias is None else state[0] @ turned + weights.bias
        after = step.forward(x, h, state)
        moments.append(_Moment(x, h, state, after))
        state = after
        if weights.projection is not None:
            state = (wg.linear(after[0], weights.projection), *after[1:])
        outputs.append(state[0])

    def pull(of_outputs: Tensor | None, *of_last: Tensor | None) -> Any:
        return _pulled(
            step, moments, weights, _by_time(of_outputs, len(times), backwards), of_last, backwards
        )

    return (_in_order(outputs, backwards), state), pull


def _in_order(tensors: Sequence[Tensor], backwards: bool) -> Tensor:
    return wg.stack(tensors[::-1] if backwards else tensors)


def _by_time(gradient: Tensor | None, count: int, backwards: bool) -> Sequence[Tensor | None]:
    """The gradients of the outputs, in the order of the steps."""
    if gradient is None:
        return [None] * count
    parts = wg.unstack(gradient)
    return parts[::-1] if backwards else parts


def _pulled(
    step: Step,
    moments: Sequence[_Moment],
    weights: Weights,
    of_outputs: Sequence[Tensor | None],
    of_last: Sequence[Tensor | None],
    backwards: bool,
) -> tuple[Tensor | None, ...]:
    """The gradients of given, of the weights that there are, and of the first state."""
    of_state = list(of_last)
    of_x, of_h, of_projected = [], [], []
    for moment, of_output in zip(reversed(moments), reversed(of_outputs), strict=True):
        of_state[0] = _sum(of_state[0], of_output)
        whole = [
            wg.zeros_like(part) if each is None else each
            for each, part in zip(of_state, moment.state, strict=True)
        ]
        if weights.projection is not None:
            of_projected.append(whole[0])
            whole[0] = whole[0] @ weights.projection
        x, h, of_state[:] = step.backward(*moment, tuple(whole))
        of_x.append(x)
        of_h.append(h)
        of_state[0] = _sum(h @ weights.hidden, of_state[0])
    states = [moment.state[0] for moment in reversed(moments)]
    found = [_in_order(of_x, not backwards), _product(of_h, states)]
    if weights.bias is not None:
        found.append(wg.sum(wg.stack(of_h), axis=tuple(range(of_h[0].ndim))))
    if weights.projection is not None:
        found.append(_product(of_projected, [moment.after[0] for moment in reversed(moments)]))
    return (*found, *of_state)


def _sum(a: Tensor | None, b: Tensor | None) -> Tensor | None:
    if a is None or b is None:
        return b if a is None else a
    return a + b


def _product(gradients: Sequence[Tensor], inputs: Sequence[Tensor]) -> Tensor:
    """The gradient of a weight: of all times and of the batch in one product."""
    g, x = (wg.stack(each).reshape((-1, each[0].shape[-1])) for each in (gradients, inputs))
    return g.T @ x
