"""Recurrent layers: RNN, GRU, LSTM.

What comes of the inputs is one matrix product for all times; then a step for each time takes the state on.
Sequences of different lengths: a sample's state stays as it is, and its outputs are 0, after its last time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import webgrad as wg

from .table import operator

Activation = Callable[[Any], Any]
State = tuple[Any, ...]  # (h,), or (h, c)

# name → what alpha and beta are unless they are given (None: it takes none), and the function of both and x
_ACTIVATIONS: Mapping[str, tuple[float | None, float | None, Callable[[Any, Any, Any], Any]]] = {
    "relu": (None, None, lambda a, b, x: wg.relu(x)),
    "tanh": (None, None, lambda a, b, x: wg.tanh(x)),
    "sigmoid": (None, None, lambda a, b, x: wg.sigmoid(x)),
    "softsign": (None, None, lambda a, b, x: wg.softsign(x)),
    "softplus": (None, None, lambda a, b, x: wg.softplus(x)),
    "affine": (1.0, 0.0, lambda a, b, x: x * a + b),
    "leakyrelu": (0.01, None, lambda a, b, x: wg.leaky_relu(x, a)),
    "thresholdedrelu": (1.0, None, lambda a, b, x: wg.where(x > a, x, 0.0)),
    "scaledtanh": (1.0, 1.0, lambda a, b, x: wg.tanh(x * b) * a),
    "hardsigmoid": (0.2, 0.5, lambda a, b, x: wg.clip(x * a + b, 0.0, 1.0)),
    "elu": (1.0, None, lambda a, b, x: wg.elu(x, a)),
}


def _activations(names: Sequence[str], alphas: Sequence[float], betas: Sequence[float]) -> list[Activation]:
    """Functions by their names; those that have numbers take them in order."""
    more, again = iter(alphas), iter(betas)
    return [_activation(name, more, again) for name in names]


def _activation(name: str, alphas: Iterator[float], betas: Iterator[float]) -> Activation:
    if name.lower() not in _ACTIVATIONS:
        raise wg.ModelFileError(f"there is no activation {name!r} of recurrent layers")
    alpha, beta, function = _ACTIVATIONS[name.lower()]
    a = None if alpha is None else next(alphas, alpha)
    b = None if beta is None else next(betas, beta)
    return lambda x: function(a, b, x)


class _Layer(NamedTuple):
    """What a step takes besides the state and what came of the input; the first axis is the direction."""

    hidden: Any  # (directions, size, gates · size): what the state is multiplied with
    bias: Any  # of the state, or None
    peepholes: Any
    activations: Sequence[Activation]
    clip: float

    def clipped(self, x: Any) -> Any:
        return wg.clip(x, -self.clip, self.clip) if self.clip else x


Step = Callable[[_Layer, Any, State], State]


def _plain_step(layer: _Layer, x: Any, state: State) -> State:
    return (layer.activations[0](layer.clipped(x + state[0] @ layer.hidden)),)


def _gru_step(layer: _Layer, x: Any, state: State) -> State:
    """Gates in the order update, reset, new; the reset state is multiplied."""
    gate, new = layer.activations
    size = state[0].shape[-1]
    both = layer.clipped(x[..., : 2 * size] + state[0] @ layer.hidden[..., : 2 * size])
    keep, reset = gate(both[..., :size]), gate(both[..., size:])
    fresh = x[..., 2 * size :] + (reset * state[0]) @ layer.hidden[..., 2 * size :]
    fresh = new(layer.clipped(fresh))
    return (fresh + keep * (state[0] - fresh),)


def _gru_step_before_reset(layer: _Layer, x: Any, state: State) -> State:
    """The same, where what came of the state is reset."""
    gate, new = layer.activations
    size = state[0].shape[-1]
    h = state[0] @ layer.hidden
    both = layer.clipped(x[..., : 2 * size] + h[..., : 2 * size])
    keep, reset = gate(both[..., :size]), gate(both[..., size:])
    last = h[..., 2 * size :] if layer.bias is None else h[..., 2 * size :] + layer.bias[..., 2 * size :]
    fresh = new(layer.clipped(x[..., 2 * size :] + reset * last))
    return (fresh + keep * (state[0] - fresh),)


def _lstm_step(is_coupled: bool) -> Step:
    """Gates in the order input, output, forget, cell; coupled: what is let in is forgotten."""

    def step(layer: _Layer, x: Any, state: State) -> State:
        gate, new, show = layer.activations
        let_in, let_out, keep, cell = wg.split(x + state[0] @ layer.hidden, 4, axis=-1)
        holes = [None] * 3 if layer.peepholes is None else wg.split(layer.peepholes, 3, axis=-1)
        let_in = gate(layer.clipped(_peeped(let_in, holes[0], state[1])))
        keep = 1.0 - let_in if is_coupled else gate(layer.clipped(_peeped(keep, holes[2], state[1])))
        after = keep * state[1] + let_in * new(layer.clipped(cell))
        let_out = gate(layer.clipped(_peeped(let_out, holes[1], after)))
        return let_out * show(after), after

    return step


def _peeped(x: Any, hole: Any, cell: Any) -> Any:
    return x if hole is None else x + hole * cell


# Over time: both directions at once, the one backwards on inputs in the opposite order


class _Kind(NamedTuple):
    """A kind of layer: its step, how many states it has, and its activations unless they are given."""

    step: Step
    states: int
    activations: tuple[str, ...]
    is_split: bool = False  # a step adds the last gate's bias of the state itself


class _Options(NamedTuple):
    """The attributes of a layer."""

    activations: Sequence[str]
    alphas: Sequence[float]
    betas: Sequence[float]
    clip: float
    direction: str
    layout: int


class _Weights(NamedTuple):
    """What a layer learnt; the first axis of each is the direction."""

    given: Any
    hidden: Any
    bias: Any
    peepholes: Any = None


def _run(
    kind: _Kind, x: Any, weights: _Weights, lengths: Any, first: Sequence[Any], options: _Options
) -> tuple[Any, ...]:
    """The outputs (time, directions, batch, size), and the last states (directions, batch, size)."""
    if options.layout:
        x = wg.swapaxes(x, 0, 1)
        first = [None if each is None else wg.swapaxes(each, 0, 1) for each in first]
    backwards = _directions(options.direction, weights.given.shape[0])
    layer, bias = _layer(kind, weights, options)
    products = [x @ weights.given[at].mT for at in range(len(backwards))]
    if bias is not None:
        products = [each + bias[at] for at, each in enumerate(products)]
    given = wg.unstack(wg.stack(_turned(products, backwards), axis=1))
    zeros = wg.zeros((len(backwards), x.shape[1], weights.hidden.shape[-1]), x.dtype, device=x.device)
    state = tuple(zeros if each is None else each for each in first)
    y, last = _swept(kind.step, layer, given, state, _present(lengths, len(given), backwards))
    y = wg.stack(_turned(wg.unstack(y, axis=1), backwards), axis=1)
    if options.layout:
        return y.permute(2, 0, 1, 3), *(wg.swapaxes(each, 0, 1) for each in last)
    return y, *last


def _turned(sequences: Sequence[Any], backwards: Sequence[bool]) -> list[Any]:
    """What goes backwards in the opposite order of time, its first axis."""
    pairs = zip(sequences, backwards, strict=True)
    return [wg.flip(each, 0) if is_turned else each for each, is_turned in pairs]


def _present(lengths: Any, times: int, backwards: Sequence[bool]) -> Sequence[Any]:
    """For each step, direction and sample whether the sample has that time; None: all have all."""
    if lengths is None:
        return [None] * times
    time = wg.arange(times, dtype=wg.int32, device=lengths.device).reshape((-1, 1, 1))
    there = time < lengths.astype(wg.int32).reshape((-1, 1))
    return wg.unstack(wg.stack(_turned([there] * len(backwards), backwards), axis=1))


def _swept(
    step: Step, layer: _Layer, given: Sequence[Any], state: State, present: Sequence[Any]
) -> tuple[Any, State]:
    """The outputs (steps, directions, batch, size) and the last state."""
    outputs: list[Any] = []
    for x, there in zip(given, present, strict=True):
        after = step(layer, x, state)
        shown = after[0]
        if there is not None:
            after = tuple(wg.where(there, new, old) for new, old in zip(after, state, strict=True))
            shown = wg.where(there, shown, 0.0)
        state = after
        outputs.append(shown)
    return wg.stack(outputs), state


def _layer(kind: _Kind, weights: _Weights, options: _Options) -> tuple[_Layer, Any]:
    """The layer, and the bias of what comes of the input, with the state's if it is only added."""
    of_x = of_h = None
    if weights.bias is not None:
        of_x, of_h = wg.split(weights.bias, 2, axis=1)
        if kind.is_split:
            shared = 2 * weights.hidden.shape[-1]
            of_x = wg.concat([of_x[:, :shared] + of_h[:, :shared], of_x[:, shared:]], axis=1)
            of_h = wg.expand_dims(of_h, 1)
        else:
            of_x, of_h = of_x + of_h, None
    holes = None if weights.peepholes is None else wg.expand_dims(weights.peepholes, 1)
    functions = _shared(kind, options, weights.given.shape[0])
    return _Layer(weights.hidden.mT, of_h, holes, functions, options.clip), of_x


def _shared(kind: _Kind, options: _Options, directions: int) -> list[Activation]:
    """The activations of all directions: each goes over its own part of the first axis."""
    count, names = len(kind.activations), tuple(options.activations or kind.activations * directions)
    if len(names) != count * directions:
        raise wg.ModelFileError(f"activations are {count} for each of {directions} directions, not {names}")
    if names == names[:count] * directions and not (options.alphas or options.betas):
        names = names[:count]
    every = _activations(names, options.alphas, options.betas)
    return [_each_direction(every[at::count]) for at in range(count)]


def _each_direction(functions: Sequence[Activation]) -> Activation:
    if len(functions) == 1:
        return functions[0]
    return lambda x: wg.concat([each(x[at : at + 1]) for at, each in enumerate(functions)])


def _directions(name: str, count: int) -> tuple[bool, ...]:
    """For each direction whether it goes backwards."""
    known = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
    if name not in known or len(known[name]) != count:
        raise wg.ModelFileError(f"direction {name!r} does not go with weights of {count} directions")
    return known[name]


# The operators


@operator("RNN")
def rnn(
    x: Any,
    weight: Any,
    hidden: Any,
    bias: Any = None,
    lengths: Any = None,
    first: Any = None,
    *,
    activation_alpha: Sequence[float] = (),
    activation_beta: Sequence[float] = (),
    activations: Sequence[str] = (),
    clip: float = 0.0,
    direction: str = "forward",
    hidden_size: int = 0,
    layout: int = 0,
) -> Any:
    kind = _Kind(_plain_step, 1, ("Tanh",))
    options = _Options(activations, activation_alpha, activation_beta, clip, direction, layout)
    return _run(kind, x, _Weights(weight, hidden, bias), lengths, [first], options)


@operator("GRU")
def gru(
    x: Any,
    weight: Any,
    hidden: Any,
    bias: Any = None,
    lengths: Any = None,
    first: Any = None,
    *,
    activation_alpha: Sequence[float] = (),
    activation_beta: Sequence[float] = (),
    activations: Sequence[str] = (),
    clip: float = 0.0,
    direction: str = "forward",
    hidden_size: int = 0,
    layout: int = 0,
    linear_before_reset: int = 0,
) -> Any:
    step = _gru_step_before_reset if linear_before_reset else _gru_step
    kind = _Kind(step, 1, ("Sigmoid", "Tanh"), bool(linear_before_reset))
    options = _Options(activations, activation_alpha, activation_beta, clip, direction, layout)
    return _run(kind, x, _Weights(weight, hidden, bias), lengths, [first], options)


@operator("LSTM")
def lstm(
    x: Any,
    weight: Any,
    hidden: Any,
    bias: Any = None,
    lengths: Any = None,
    first: Any = None,
    first_cell: Any = None,
    peepholes: Any = None,
    *,
    activation_alpha: Sequence[float] = (),
    activation_beta: Sequence[float] = (),
    activations: Sequence[str] = (),
    clip: float = 0.0,
    direction: str = "forward",
    hidden_size: int = 0,
    input_forget: int = 0,
    layout: int = 0,
) -> Any:
    kind = _Kind(_lstm_step(bool(input_forget)), 2, ("Sigmoid", "Tanh", "Tanh"))
    options = _Options(activations, activation_alpha, activation_beta, clip, direction, layout)
    return _run(kind, x, _Weights(weight, hidden, bias, peepholes), lengths, [first, first_cell], options)
