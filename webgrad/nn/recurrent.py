"""Recurrent layers: RNN, LSTM and GRU, and the cells that are one step of them.

In: sequences (time, batch, inputs), or (batch, time, inputs) with `batch_first`, or one (time, inputs). Out:
the last layer's outputs at every time, and each layer's last state. The products of all inputs are one matrix
product for a layer and direction; what is left for the loop over time is the product with the state.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import webgrad as wg
from webgrad import Tensor
from webgrad.errors import ArgumentError, ShapeError

from . import functional as F
from .checks import check_floats, check_sizes
from .dropout_functions import check_probability
from .module import Module
from .parameter import Parameter
from .unroll import GRU as GRU_STEP
from .unroll import LSTM as LSTM_STEP
from .unroll import PLAIN, State, Step, Weights, one_step, unroll, unroll_packed
from .utils.rnn import PackedSequence

Unroll = Callable[[Step, Tensor, Weights, State, bool], tuple[Tensor, State]]
__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNCell"]


def _checked(layer: str, nonlinearity: str) -> str:
    if nonlinearity not in PLAIN:
        raise ArgumentError(f"{layer}: nonlinearity={nonlinearity!r} is not one of {', '.join(PLAIN)}")
    return nonlinearity


def _drawn(shape: tuple[int, ...], bound: float, dtype: Any, device: Any) -> Parameter:
    return Parameter(wg.random.uniform(shape, low=-bound, high=bound, dtype=dtype, device=device))


class _Recurrent(Module):
    """What RNN, LSTM and GRU share: layers and directions."""

    _step: Step

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        check_sizes(name, input_size=input_size, hidden_size=hidden_size, num_layers=num_layers)
        check_probability(name, dropout)
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        if proj_size and not 0 < proj_size < hidden_size:
            raise ArgumentError(
                f"{name}: proj_size={proj_size!r} must be 0, or smaller than hidden_size={hidden_size}"
            )
        self.bias, self.batch_first, self.bidirectional = bool(bias), bool(batch_first), bool(bidirectional)
        self.dropout = float(dropout)
        self.proj_size = proj_size
        self._make_parameters(wg.float32 if dtype is None else dtype, device)

    def _make_parameters(self, dtype: Any, device: Any) -> None:
        rows, size, bound = self._step.gates * self.hidden_size, self._size, 1 / math.sqrt(self.hidden_size)
        for layer in range(self.num_layers):
            inputs = self.input_size if layer == 0 else size * len(self._directions)
            for direction in self._directions:
                shapes: dict[str, tuple[int, ...]] = {"weight_ih": (rows, inputs), "weight_hh": (rows, size)}
                if self.bias:
                    shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
                if self.proj_size:
                    shapes["weight_hr"] = (size, self.hidden_size)
                for name, shape in shapes.items():
                    setattr(self, f"{name}_l{layer}{direction}", _drawn(shape, bound, dtype, device))

    @property
    def _size(self) -> int:
        """Of a state's h, and of an output in one direction."""
        return self.proj_size or self.hidden_size

    @property
    def _directions(self) -> tuple[str, ...]:
        return ("", "_reverse") if self.bidirectional else ("",)

    def _parameter(self, name: str, place: str) -> Tensor | None:
        return getattr(self, f"{name}_l{place}", None)

    def _run(self, x: Any, hx: Any) -> tuple[Any, State]:
        """Every output, and the last states, stacked over layers and directions."""
        if isinstance(x, PackedSequence):
            return self._run_packed(x, hx)
        self._check_input(x)
        batched = x.ndim == 3
        first = self._first_states(x, hx)
        if not batched:
            x = x.reshape((x.shape[0], 1, x.shape[1]))
            first = [tuple(each.reshape((1, -1)) for each in state) for state in first]
        elif self.batch_first:
            x = x.permute(1, 0, 2)
        x, ends = self._layers(x, first, unroll)
        if not batched:
            return x[:, 0], tuple(each[:, 0] for each in ends)
        return (x.permute(1, 0, 2) if self.batch_first else x), ends

    def _run_packed(self, x: PackedSequence, hx: Any) -> tuple[PackedSequence, State]:
        """The same of sequences of different lengths."""
        sizes = [int(each) for each in x.batch_sizes.tolist()]
        if x.data.ndim != 2 or x.data.shape[-1] != self.input_size:
            raise ShapeError(f"{self}: the packed data {x.data.shape} must be (…, {self.input_size})")
        if x.sorted_indices is not None and hx is not None:
            parts = (hx,) if self._step.states == 1 else hx
            hx = tuple(wg.take(each, x.sorted_indices, axis=1) for each in parts)
            hx = hx[0] if self._step.states == 1 else hx
        shape = (len(sizes), sizes[0], self.input_size)
        first = self._first_states(
            x.data, hx, shape if not self.batch_first else (shape[1], shape[0], shape[2])
        )
        data, ends = self._layers(x.data, first, functools.partial(unroll_packed, sizes))
        if x.unsorted_indices is not None:
            ends = tuple(wg.take(each, x.unsorted_indices, axis=1) for each in ends)
        return x._replace(data=data), ends

    def _layers(self, x: Tensor, first: list[State], unroll: Unroll) -> tuple[Tensor, State]:
        """All layers, one after the other: the outputs of the last, and the last states of all."""
        last: list[State] = []
        for layer in range(self.num_layers):
            if layer:
                x = F.dropout(x, self.dropout, self.training)
            outputs = []
            for direction in self._directions:
                place = f"{layer}{direction}"
                output, state = self._sweep(x, first[len(last)], place, bool(direction), unroll)
                outputs.append(output)
                last.append(state)
            x = outputs[0] if len(outputs) == 1 else wg.concat(outputs, axis=-1)
        return x, tuple(wg.stack([state[number] for state in last]) for number in range(self._step.states))

    def _sweep(
        self, x: Tensor, state: State, place: str, backwards: bool, unroll: Unroll
    ) -> tuple[Tensor, State]:
        """One layer in one direction: its outputs in order of time, and its last state."""
        inputs, hidden = self._parameter("weight_ih", place), self._parameter("weight_hh", place)
        assert inputs is not None
        assert hidden is not None
        weights = Weights(hidden, self._parameter("bias_hh", place), self._parameter("weight_hr", place))
        given = wg.linear(x, inputs, self._parameter("bias_ih", place))
        output, last = unroll(self._step, given, weights, state, backwards)
        return output, last

    # Checks

    def _check_input(self, x: Tensor) -> None:
        check_floats(self, x)
        order = "(batch, time, inputs)" if self.batch_first else "(time, batch, inputs)"
        if x.ndim not in (2, 3):
            raise ShapeError(
                f"{self}: the input {x.shape} must be {order}, or (time, inputs) for one sequence"
            )
        if x.shape[-1] != self.input_size:
            raise ShapeError(
                f"{self}: the input {x.shape} has {x.shape[-1]} numbers at each time, and this layer takes "
                f"{self.input_size}; its axes are {order}"
            )
        if not x.shape[1 if self.batch_first and x.ndim == 3 else 0]:
            raise ShapeError(f"{self}: the input {x.shape} has no times; a sequence has one at least")

    def _first_states(self, x: Tensor, hx: Any, shape: tuple[int, ...] | None = None) -> list[State]:
        """For every layer and direction its first state; zeros where there are none."""
        count = self.num_layers * len(self._directions)
        shape = x.shape if shape is None else shape
        batch = shape[0 if self.batch_first else 1 : 1 if self.batch_first else 2] if len(shape) == 3 else ()
        wanted = [(count, *batch, self._size), (count, *batch, self.hidden_size)][: self._step.states]
        if hx is None:
            zeros = tuple(wg.zeros(each[1:], x.dtype, device=x.device) for each in wanted)
            return [zeros] * count
        given = (hx,) if self._step.states == 1 else hx
        names = ("h_0", "c_0")[: self._step.states]
        if not isinstance(given, Sequence) or len(given) != self._step.states:
            raise ArgumentError(f"{self}: the first state is the pair (h_0, c_0), not a {type(hx).__name__}")
        for name, each, shape in zip(names, given, wanted, strict=True):
            if not isinstance(each, Tensor):
                raise ArgumentError(f"{self}: {name} is a tensor, not a {type(each).__name__}")
            if each.shape != shape:
                raise ShapeError(
                    f"{self}: {name} is {each.shape}, and must be {shape} for the input {x.shape}: "
                    "layers × directions, batch, size"
                )
        return list(zip(*(wg.unstack(each) for each in given), strict=True))

    def extra_repr(self) -> str:
        """The arguments that are not the default's."""
        shown = f"{self.input_size}, {self.hidden_size}"
        defaults = {
            "num_layers": 1,
            "bias": True,
            "batch_first": False,
            "dropout": 0.0,
            "bidirectional": False,
            "proj_size": 0,
        }
        for name, default in defaults.items():
            value = getattr(self, name)
            if value != default:
                shown += f", {name}={value}"
        return shown


class RNN(_Recurrent):
    """h' = tanh(W_ih x + b_ih + W_hh h + b_hh) at every time; or with relu.

    Gives the outputs and h_n, the last state of each layer and direction.

    >>> output, state = wg.nn.RNN(3, 5, batch_first=True)(wg.ones((2, 7, 3)))
    >>> output.shape, state.shape
    ((2, 7, 5), (1, 2, 5))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        self.nonlinearity = _checked("RNN", nonlinearity)
        super().__init__(
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            device=device,
            dtype=dtype,
        )

    @property
    def _step(self) -> Step:  # type: ignore[override]
        return PLAIN[self.nonlinearity]

    def forward(self, x: Tensor, hx: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The outputs and the last states."""
        output, (last,) = self._run(x, hx)
        return output, last


class LSTM(_Recurrent):
    """c' = σ(f) c + σ(i) tanh(g), h' = σ(o) tanh(c'), with (i, f, g, o) = W_ih x + b_ih + W_hh h + b_hh.

    With `proj_size` h' is also multiplied with weight_hr. Gives the outputs and (h_n, c_n).

    >>> output, (h, c) = wg.nn.LSTM(3, 5, num_layers=2, bidirectional=True)(wg.ones((7, 2, 3)))
    >>> output.shape, h.shape, c.shape
    ((7, 2, 10), (4, 2, 5), (4, 2, 5))
    """

    _step = LSTM_STEP

    def forward(
        self, x: Tensor, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """The outputs, and the last states and cells."""
        output, (hidden, cell) = self._run(x, hx)
        return output, (hidden, cell)


class GRU(_Recurrent):
    """h' = (1 - z) n + z h: z = σ(x_z + h_z), n = tanh(x_n + σ(x_r + h_r) h_n).

    x_r, x_z, x_n are thirds of W_ih x + b_ih, and h_r, h_z, h_n of W_hh h + b_hh. Gives the outputs and h_n.

    >>> output, state = wg.nn.GRU(3, 5)(wg.ones((7, 2, 3)))
    >>> output.shape, state.shape
    ((7, 2, 5), (1, 2, 5))
    """

    _step = GRU_STEP

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            device=device,
            dtype=dtype,
        )

    def forward(self, x: Tensor, hx: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The outputs and the last states."""
        output, (last,) = self._run(x, hx)
        return output, last


# One step


class _Cell(Module):
    """One step of a recurrent layer, with weights of its own."""

    _step: Step

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        check_sizes(type(self).__name__, input_size=input_size, hidden_size=hidden_size)
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bool(bias)
        rows, bound = self._step.gates * hidden_size, 1 / math.sqrt(hidden_size)
        kind = wg.float32 if dtype is None else dtype
        self.weight_ih = _drawn((rows, input_size), bound, kind, device)
        self.weight_hh = _drawn((rows, hidden_size), bound, kind, device)
        for each in ("bias_ih", "bias_hh"):
            self.register_parameter(each, _drawn((rows,), bound, kind, device) if bias else None)

    def _run(self, x: Tensor, hx: Any) -> State:
        check_floats(self, x)
        if x.ndim not in (1, 2) or x.shape[-1] != self.input_size:
            raise ShapeError(
                f"{self}: the input {x.shape} must be (batch, {self.input_size}), or ({self.input_size},)"
            )
        shape = (*x.shape[:-1], self.hidden_size)
        state: Any
        if hx is None:
            state = (wg.zeros(shape, x.dtype, device=x.device),) * self._step.states
        else:
            state = (hx,) if self._step.states == 1 else hx
        if not isinstance(state, Sequence) or len(state) != self._step.states:
            raise ArgumentError(f"{self}: the state is the pair (h, c), not a {type(hx).__name__}")
        for each in state:
            if not isinstance(each, Tensor) or each.shape != shape:
                found = each.shape if isinstance(each, Tensor) else f"a {type(each).__name__}"
                raise ShapeError(f"{self}: the state is {found}, and must be {shape} for the input {x.shape}")
        inputs, hidden = (self.weight_ih, self.bias_ih), (self.weight_hh, self.bias_hh)
        return one_step(self._step, x, tuple(state), inputs, hidden)

    def extra_repr(self) -> str:
        """The sizes, and whether there is no bias."""
        return f"{self.input_size}, {self.hidden_size}{'' if self.bias else ', bias=False'}"


class RNNCell(_Cell):
    """h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or with relu: one step of RNN.

    >>> wg.nn.RNNCell(3, 5)(wg.ones((2, 3))).shape
    (2, 5)
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        self.nonlinearity = _checked("RNNCell", nonlinearity)
        super().__init__(input_size, hidden_size, bias, device, dtype)

    @property
    def _step(self) -> Step:  # type: ignore[override]
        return PLAIN[self.nonlinearity]

    def forward(self, x: Tensor, hx: Tensor | None = None) -> Tensor:
        """The next state."""
        return self._run(x, hx)[0]


class LSTMCell(_Cell):
    """One step of LSTM: of x and (h, c) it gives the next (h, c).

    >>> h, c = wg.nn.LSTMCell(3, 5)(wg.ones((2, 3)))
    >>> h.shape, c.shape
    ((2, 5), (2, 5))
    """

    _step = LSTM_STEP

    def forward(self, x: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """The next state and cell."""
        hidden, cell = self._run(x, hx)
        return hidden, cell


class GRUCell(_Cell):
    """One step of GRU: of x and h it gives the next h.

    >>> wg.nn.GRUCell(3, 5)(wg.ones((2, 3))).shape
    (2, 5)
    """

    _step = GRU_STEP

    def forward(self, x: Tensor, hx: Tensor | None = None) -> Tensor:
        """The next state."""
        return self._run(x, hx)[0]
