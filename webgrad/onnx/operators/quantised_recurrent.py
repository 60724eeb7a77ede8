"""com.microsoft's LSTM whose inputs and states become codes before they are multiplied with codes.

What is rounded shares a range with what onnxruntime rounds together: one step between two codes is far more
than floats are off by, and a recurrent layer keeps it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import webgrad as wg

from .quantised import ranged_codes
from .quantised_maps import MICROSOFT
from .recurrent import lstm
from .table import operator

__all__: list[str] = []


@operator("DynamicQuantizeLSTM", domain=MICROSOFT)
def dynamic_quantize_lstm(
    x: Any,
    weight: Any,
    hidden: Any,
    bias: Any = None,
    lengths: Any = None,
    first: Any = None,
    first_cell: Any = None,
    peepholes: Any = None,
    weight_scale: Any = None,
    weight_zero: Any = None,
    hidden_scale: Any = None,
    hidden_zero: Any = None,
    *,
    activation_alpha: Sequence[float] = (),
    activation_beta: Sequence[float] = (),
    activations: Sequence[str] = (),
    clip: float = 0.0,
    direction: str = "forward",
    hidden_size: int = 0,
    input_forget: int = 0,
) -> Any:
    """Inputs and states become codes before they are multiplied; weights lie the other way round.

    The range of inputs is that of all their times and samples; states have ranges of their own at each time.
    """
    weights = _codes(weight, weight_scale, weight_zero).mT
    states = _codes(hidden, hidden_scale, hidden_zero, _axes_of_a_state(x.shape[1], hidden.shape[1])).mT
    given = (bias, lengths, first, first_cell, peepholes)
    options = {"activation_alpha": activation_alpha, "activation_beta": activation_beta, "clip": clip}
    return lstm(
        *(_in_time(x, lengths), weights, states, *given),
        activations=activations,
        direction=direction,
        hidden_size=hidden_size,
        input_forget=input_forget,
        **options,
    )


def _axes_of_a_state(samples: int, size: int) -> tuple[int, ...]:
    """Which axes of states (directions, samples, size) share a range, as in onnxruntime with threads enough.

    It parts the samples among its threads, and those of a thread share one; few samples of a wide state are
    not parted. With fewer threads than samples, or where those few have different lengths, it gives other
    numbers, about a step between codes away.
    """
    return (1, 2) if samples <= 4 and size > 256 else (2,)


def _in_time(x: Any, lengths: Any) -> Any:
    """Inputs without those after the last time of every sample, which have no part in the range."""
    if lengths is None:
        return x
    time = wg.arange(x.shape[0], dtype=wg.int32, device=x.device).reshape((-1, 1, 1))
    return wg.where(time < wg.max(lengths).astype(wg.int32), x, 0.0)


def _codes(codes: Any, scale: Any, zero: Any, axes: tuple[int, ...] | None = None) -> _Codes:
    """Weights (directions, rows, columns), with a scale for each direction, or for each of its columns."""
    shape = (codes.shape[0], 1, -1)
    whole = codes.astype(wg.float32) - zero.reshape(shape).astype(wg.float32)
    return _Codes(whole, scale.reshape(shape), axes)


@dataclass(frozen=True, slots=True)
class _Codes:
    """A matrix of codes less their zero point, with scales; what is multiplied with it becomes codes too.

    The sums are of whole numbers, which float32 holds exactly below 2^24.
    """

    whole: Any
    scale: Any
    axes: tuple[int, ...] | None  # along which what is multiplied shares a range; None: all

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.whole.shape)

    @property
    def mT(self) -> _Codes:
        return _Codes(self.whole.mT, self.scale.mT, self.axes)

    def __getitem__(self, at: int) -> _Codes:
        return _Codes(self.whole[at], self.scale[at], self.axes)

    def __rmatmul__(self, x: Any) -> Any:
        codes, scale, zero = ranged_codes(x, self.axes)
        whole = codes.astype(wg.float32) - zero.astype(wg.float32)
        return (whole @ self.whole) * (scale * self.scale)
