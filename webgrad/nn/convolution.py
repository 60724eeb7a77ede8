"""Convolutions, and transposed ones: one base for each, by PyTorch's names and arguments.

In: x (N, C, …) or (C, …). Out: the same with other channels and sizes. Weights lie as PyTorch's:
(out, in / groups, …), of transposed ones (in, out / groups, …).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import webgrad as wg

from . import functional as F
from . import init
from .checks import check_channels, check_sizes
from .module import Module
from .parameter import Parameter

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]

PerAxis = int | Sequence[int]
_MODES = ("zeros", "reflect", "replicate", "circular")


def _per_axis(layer: str, name: str, value: Any, axes: int, least: int = 1) -> tuple[int, ...]:
    """One integer for each axis, from one or from a sequence."""
    given = tuple(value) if isinstance(value, Sequence) else (value,) * axes
    if len(given) != axes or any(not isinstance(each, int) or each < least for each in given):
        raise wg.ArgumentError(
            f"{layer}: {name} must be an integer from {least} on, or {axes} of them, not {value!r}"
        )
    return given


class _Convolution(Module):
    """What plain and transposed convolutions share: the weight, the bias, and how they begin."""

    axes: ClassVar[int]
    function: ClassVar[Callable[..., wg.Tensor]]
    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: PerAxis,
        stride: PerAxis,
        padding: PerAxis | str,
        dilation: PerAxis,
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Any,
        dtype: Any,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        check_sizes(name, in_channels=in_channels, out_channels=out_channels, groups=groups)
        if in_channels % groups or out_channels % groups:
            raise wg.ArgumentError(
                f"{name}: in_channels {in_channels} and out_channels {out_channels} must be multiples of "
                f"groups, which is {groups}"
            )
        if padding_mode not in _MODES:
            raise wg.ArgumentError(
                f"{name}: padding_mode must be one of {', '.join(map(repr, _MODES))}, not {padding_mode!r}"
            )
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size = _per_axis(name, "kernel_size", kernel_size, self.axes)
        self.stride = _per_axis(name, "stride", stride, self.axes)
        self.dilation = _per_axis(name, "dilation", dilation, self.axes)
        self.padding = (
            padding if isinstance(padding, str) else _per_axis(name, "padding", padding, self.axes, 0)
        )
        self.padding_mode = padding_mode
        self.weight = Parameter(wg.empty(self._weight_shape(), dtype=dtype, device=device))
        self.register_parameter(
            "bias", Parameter(wg.empty(out_channels, dtype=dtype, device=device)) if bias else None
        )
        self.reset_parameters()

    def _weight_shape(self) -> tuple[int, ...]:
        return (self.out_channels, self.in_channels // self.groups, *self.kernel_size)

    def reset_parameters(self) -> None:
        """All uniform within ± 1 / √fan_in, fan_in being the weights of one output."""
        fan_in = self.weight.shape[1] * math.prod(self.kernel_size)
        for parameter in self.parameters(recurse=False):
            init.uniform_(parameter, -1 / math.sqrt(fan_in), 1 / math.sqrt(fan_in))

    def extra_repr(self) -> str:
        plain: dict[str, Any] = {"padding": (0,) * self.axes, "dilation": (1,) * self.axes, "groups": 1}
        plain |= {"padding_mode": "zeros", "output_padding": (0,) * self.axes}
        parts = [
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        ]
        parts += [
            f"{name}={getattr(self, name)!r}"
            for name, usual in plain.items()
            if getattr(self, name, usual) != usual
        ]
        return ", ".join([*parts, *(["bias=False"] if self.bias is None else [])])


class _Plain(_Convolution):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: PerAxis,
        stride: PerAxis = 1,
        padding: PerAxis | str = 0,
        dilation: PerAxis = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )
        if isinstance(self.padding, str):
            if self.padding not in ("same", "valid"):
                raise wg.ArgumentError(
                    f"{type(self).__name__}: padding is widths, 'same' or 'valid', not {padding!r}"
                )
            if self.padding == "same" and any(each != 1 for each in self.stride):
                raise wg.ArgumentError(
                    f"{type(self).__name__}: padding='same' keeps the sizes, and so needs a stride of 1, not "
                    f"{self.stride}"
                )

    def _widths(self) -> list[int]:
        """The widths around x, the last axis first, as `F.pad` takes them."""
        if isinstance(self.padding, str):
            totals = [
                each * (size - 1) if self.padding == "same" else 0
                for each, size in zip(self.dilation, self.kernel_size, strict=True)
            ]
            pairs = [(total // 2, total - total // 2) for total in totals]
        else:
            pairs = [(each, each) for each in self.padding]
        return [width for pair in reversed(pairs) for width in pair]

    def forward(self, x: wg.Tensor) -> wg.Tensor:
        """x (N, in_channels, …) → (N, out_channels, …)."""
        check_channels(self, x, self.in_channels, self.axes)
        padding: Any = self.padding
        if self.padding_mode != "zeros":
            x, padding = F.pad(x, self._widths(), mode=self.padding_mode), 0
        return type(self).function(
            x, self.weight, self.bias, self.stride, padding, self.dilation, self.groups
        )


class Conv1d(_Plain):
    """yₒ = bₒ + Σ wₒ꜀ ⋆ x꜀ over x (N, C, L), ⋆ being the cross-correlation.

    >>> wg.nn.Conv1d(2, 4, 3, padding="same")(wg.zeros((1, 2, 8))).shape
    (1, 4, 8)
    """

    axes = 1
    function = staticmethod(F.conv1d)


class Conv2d(_Plain):
    """yₒ = bₒ + Σ wₒ꜀ ⋆ x꜀ over x (N, C, H, W), ⋆ being the cross-correlation.

    >>> layer = wg.nn.Conv2d(3, 8, kernel_size=3, stride=2, padding=1)
    >>> layer(wg.zeros((1, 3, 8, 8))).shape, layer.weight.shape
    ((1, 8, 4, 4), (8, 3, 3, 3))
    """

    axes = 2
    function = staticmethod(F.conv2d)


class Conv3d(_Plain):
    """yₒ = bₒ + Σ wₒ꜀ ⋆ x꜀ over x (N, C, D, H, W), ⋆ being the cross-correlation.

    >>> wg.nn.Conv3d(1, 2, 2, stride=2)(wg.zeros((1, 1, 4, 4, 4))).shape
    (1, 2, 2, 2, 2)
    """

    axes = 3
    function = staticmethod(F.conv3d)


class _Transposed(_Convolution):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: PerAxis,
        stride: PerAxis = 1,
        padding: Any = 0,
        output_padding: PerAxis = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: PerAxis = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        name = type(self).__name__
        if padding_mode != "zeros" or isinstance(padding, str):
            raise wg.ArgumentError(f"{name}: padding must be integers, and padding_mode 'zeros'")
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )
        self.output_padding = _per_axis(name, "output_padding", output_padding, self.axes, 0)

    def _weight_shape(self) -> tuple[int, ...]:
        return (self.in_channels, self.out_channels // self.groups, *self.kernel_size)

    def forward(self, x: wg.Tensor, output_size: Sequence[int] | None = None) -> wg.Tensor:
        """x (N, in_channels, …) → (N, out_channels, …); output_size names sizes that several would fit."""
        check_channels(self, x, self.in_channels, self.axes)
        more = self.output_padding if output_size is None else self._more(x, output_size)
        return type(self).function(
            x, self.weight, self.bias, self.stride, self.padding, more, self.groups, self.dilation
        )

    def _more(self, x: wg.Tensor, output_size: Sequence[int]) -> tuple[int, ...]:
        """The output_padding that gives the wanted sizes."""
        wanted = tuple(output_size)[-self.axes :]
        widths: Any = self.padding
        options = zip(
            x.shape[-self.axes :], self.stride, widths, self.dilation, self.kernel_size, strict=True
        )
        least = tuple(
            (size - 1) * step - 2 * width + apart * (kernel - 1) + 1
            for size, step, width, apart, kernel in options
        )
        more = tuple(want - low for want, low in zip(wanted, least, strict=len(wanted) == self.axes))
        if len(wanted) != self.axes or any(
            not 0 <= each < max(step, apart)
            for each, step, apart in zip(more, self.stride, self.dilation, strict=True)
        ):
            most = tuple(low + step - 1 for low, step in zip(least, self.stride, strict=True))
            raise wg.ShapeError(
                f"{self}: output_size {wanted} must be from {least} to {most} for x {x.shape}"
            )
        return more


class ConvTranspose1d(_Transposed):
    """The gradient of `Conv1d` with respect to its input, as a layer: x (N, C, L) grows by the stride.

    >>> wg.nn.ConvTranspose1d(2, 4, 2, stride=2)(wg.zeros((1, 2, 8))).shape
    (1, 4, 16)
    """

    axes = 1
    function = staticmethod(F.conv_transpose1d)


class ConvTranspose2d(_Transposed):
    """The gradient of `Conv2d` with respect to its input, as a layer: x (N, C, H, W) grows by the stride.

    >>> layer = wg.nn.ConvTranspose2d(3, 8, kernel_size=2, stride=2)
    >>> layer(wg.zeros((1, 3, 4, 4))).shape, layer.weight.shape
    ((1, 8, 8, 8), (3, 8, 2, 2))
    """

    axes = 2
    function = staticmethod(F.conv_transpose2d)


class ConvTranspose3d(_Transposed):
    """The gradient of `Conv3d` with respect to its input, as a layer: x (N, C, D, H, W) grows by the stride.

    >>> wg.nn.ConvTranspose3d(1, 2, 2, stride=2)(wg.zeros((1, 1, 2, 2, 2))).shape
    (1, 2, 4, 4, 4)
    """

    axes = 3
    function = staticmethod(F.conv_transpose3d)
