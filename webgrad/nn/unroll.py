"""The loop of a recurrent layer over time, and back: `unroll`, and the steps that it is made of.

In: what came of a layer's inputs at every time (one matrix product), the weights for the state, the first
state. Out: the outputs at every time, and the last state. Its gradient is written out: going back, a step
gives the gradients of its gates, and those of all times together are one matrix product for each weight;
taken op by op, there would be one for each time, and every slice's gradient would be as long as the sequence.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import webgrad as wg
from webgrad import Tensor

__all__ = ["GRU", "LSTM", "PLAIN", "State", "Step", "Weights", "one_step", "unroll", "unroll_packed"]

State = tuple[Tensor, ...]  # (h,), or (h, c)
Gates = tuple[Tensor, ...]  # (x + h,), or (x, h)


class Weights(NamedTuple):
    """What a state is multiplied with, and the result of an LSTM with a projection."""

    hidden: Tensor
    bias: Tensor | None
    projection: Tensor | None = None


class Step(NamedTuple):
    """A kind of layer: its step forwards, and backwards.

    Gates are what came of the input and of h: their sum, or both where they are not `joined`. `forward` takes
    them and the state, and gives the next state. `backward` takes the same, the next state and its gradient,
    and gives the gradients of the gates, and of the state as far as it is used directly (None: not at all).
    """

    gates: int  # how many hidden sizes of rows the weights have
    states: int  # how many tensors a state is
    joined: bool
    keeps: bool  # whether `backward` reads the gates; else it gets none, and they are never in memory
    forward: Callable[[Gates, State], State]
    backward: Callable[[Gates, State, State, State], tuple[Gates, tuple[Tensor | None, ...]]]

    def gated(self, x: Tensor, h: Tensor) -> Gates:
        """The gates."""
        return (x + h,) if self.joined else (x, h)


# Steps


def _slope(sigmoid: Tensor) -> Tensor:
    """The derivative of a sigmoid, from its value."""
    return sigmoid * (1.0 - sigmoid)


def _plain(activation: Callable[[Tensor], Tensor], back: Callable[[Tensor, Tensor], Tensor]) -> Step:
    """h' = activation(x + h); `back` gives the gradient of the sum from h' and its gradient."""

    def backward(gates: Gates, state: State, after: State, gradient: State) -> Any:
        return (back(after[0], gradient[0]),), (None,)

    return Step(1, 1, True, False, lambda gates, state: (activation(gates[0]),), backward)


def _lstm_gates(gates: Gates) -> list[Tensor]:
    let_in, keep, new, let_out = wg.split(gates[0], 4, axis=-1)
    return [wg.sigmoid(let_in), wg.sigmoid(keep), wg.tanh(new), wg.sigmoid(let_out)]


def _lstm(gates: Gates, state: State) -> State:
    let_in, keep, new, let_out = _lstm_gates(gates)
    cell = keep * state[1] + let_in * new
    return let_out * wg.tanh(cell), cell


def _lstm_back(gates: Gates, state: State, after: State, gradient: State) -> Any:
    let_in, keep, new, let_out = _lstm_gates(gates)
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
    return (total,), (None, cell * keep)


def _gru_gates(gates: Gates) -> list[Tensor]:
    (reset_x, keep_x, new_x), (reset_h, keep_h, new_h) = (wg.split(each, 3, axis=-1) for each in gates)
    reset = wg.sigmoid(reset_x + reset_h)
    return [reset, wg.sigmoid(keep_x + keep_h), wg.tanh(new_x + reset * new_h), new_h]


def _gru(gates: Gates, state: State) -> State:
    _, keep, new, _ = _gru_gates(gates)
    return (new + keep * (state[0] - new),)


def _gru_back(gates: Gates, state: State, after: State, gradient: State) -> Any:
    reset, keep, new, new_h = _gru_gates(gates)
    of_keep = gradient[0] * (state[0] - new) * _slope(keep)
    of_new = gradient[0] * (1.0 - keep) * (1.0 - new * new)
    of_reset = of_new * new_h * _slope(reset)
    of_x = wg.concat([of_reset, of_keep, of_new], axis=-1)
    of_h = wg.concat([of_reset, of_keep, of_new * reset], axis=-1)
    return (of_x, of_h), (gradient[0] * keep,)


PLAIN = {
    "tanh": _plain(wg.tanh, lambda h, gradient: gradient * (1.0 - h * h)),
    "relu": _plain(wg.relu, lambda h, gradient: wg.where(h > 0, gradient, 0.0)),
}
LSTM = Step(4, 2, True, True, _lstm, _lstm_back)
GRU = Step(3, 1, False, True, _gru, _gru_back)


Layer = tuple[Tensor, Tensor | None]  # a weight and a bias


@wg.pure
def one_step(step: Step, x: Tensor, state: State, inputs: Layer, hidden: Layer) -> State:
    """The next state."""
    gates = step.gated(wg.linear(x, *inputs), wg.linear(state[0], *hidden))
    return step.forward(gates, state)


# Sequences


class _Moment(NamedTuple):
    """What one time needs on the way back."""

    gates: Gates
    state: State
    after: State  # before the projection


@wg.pure
@wg.custom_gradient
def unroll(step: Step, given: Tensor, weights: Weights, state: State, backwards: bool) -> Any:
    """The outputs (time, batch, size) and the last state; `backwards` from the last time to the first."""
    moments, outputs = [], []
    times, turned = wg.unstack(given), weights.hidden.T
    for x in reversed(times) if backwards else times:
        h = state[0] @ turned if weights.bias is None else state[0] @ turned + weights.bias
        gates = step.gated(x, h)
        after = step.forward(gates, state)
        moments.append(_Moment(gates if step.keeps else (), state, after))
        state = after
        if weights.projection is not None:
            state = (wg.linear(after[0], weights.projection), *after[1:])
        outputs.append(state[0])

    def pull(of_outputs: Tensor | None, *of_last: Tensor | None) -> Any:
        return _pulled(
            step, moments, weights, _by_time(of_outputs, len(times), backwards), of_last, backwards
        )

    return (_in_order(outputs, backwards), state), pull


def unroll_packed(
    sizes: Sequence[int], step: Step, given: Tensor, weights: Weights, state: State, backwards: bool
) -> tuple[Tensor, State]:
    """The same of packed sequences, `sizes` of which there are at each time, the longest first.

    Times with equally many sequences are a run, which `unroll` takes; between runs the states of sequences
    that end are put aside, or those of sequences that begin are added.
    """
    runs = [(size, len(list(times))) for size, times in itertools.groupby(sizes)]
    starts = list(itertools.accumulate((size * count for size, count in runs), initial=0))
    now = tuple(part[:0] for part in state) if backwards else state
    ended: list[State] = []
    outputs = []
    for at in reversed(range(len(runs))) if backwards else range(len(runs)):
        size, count = runs[at]
        there = now[0].shape[0]
        if backwards:
            now = tuple(wg.concat([old, new[there:size]]) for old, new in zip(now, state, strict=True))
        elif size < there:
            ended.append(tuple(part[size:] for part in now))
            now = tuple(part[:size] for part in now)
        part = given[starts[at] : starts[at + 1]].reshape((count, size, given.shape[-1]))
        output, now = unroll(step, part, weights, now, backwards)
        outputs.append(output.reshape((count * size, output.shape[-1])))
    for each in reversed(ended):
        now = tuple(wg.concat([old, new]) for old, new in zip(now, each, strict=True))
    return wg.concat(outputs[::-1] if backwards else outputs), now


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
    gradients: list[Gates] = []
    of_projected = []
    for moment, of_output in zip(reversed(moments), reversed(of_outputs), strict=True):
        of_state[0] = _sum(of_state[0], of_output)
        whole = [
            wg.zeros_like(part) if each is None else each
            for each, part in zip(of_state, moment.state, strict=True)
        ]
        if weights.projection is not None:
            of_projected.append(whole[0])
            whole[0] = whole[0] @ weights.projection
        of_gates, of_state[:] = step.backward(*moment, tuple(whole))
        gradients.append(of_gates)
        of_state[0] = _sum(of_gates[-1] @ weights.hidden, of_state[0])

    def together(tensors: Sequence[Tensor]) -> Tensor:
        return _in_order(tensors, not backwards)

    of_given, *of_hidden = (together(each) for each in zip(*gradients, strict=True))
    of_h = of_hidden[0] if of_hidden else of_given
    found = [of_given, _product(of_h, together([moment.state[0] for moment in reversed(moments)]))]
    if weights.bias is not None:
        found.append(wg.sum(of_h, axis=(0, 1)))
    if weights.projection is not None:
        shown = together([moment.after[0] for moment in reversed(moments)])
        found.append(_product(together(of_projected), shown))
    return (*found, *of_state)


def _sum(a: Tensor | None, b: Tensor | None) -> Tensor | None:
    if a is None or b is None:
        return b if a is None else a
    return a + b


def _product(gradients: Tensor, inputs: Tensor) -> Tensor:
    """The gradient of a weight: of all times and of the batch in one product."""
    return gradients.reshape((-1, gradients.shape[-1])).T @ inputs.reshape((-1, inputs.shape[-1]))
