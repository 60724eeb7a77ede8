"""Modules that change the sizes of images and signals: upsampling, pixels and channels, padding.

In: x (N, C, …). Out: the same with other sizes. Paddings take PyTorch's widths: one number, or
(left, right, top, bottom, …).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import webgrad as wg

from . import functional as F
from .checks import check_tensor
from .function_modules import Applied
from .module import Module

__all__ = [
    "ChannelShuffle",
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "Fold",
    "PixelShuffle",
    "PixelUnshuffle",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "Unfold",
    "Upsample",
    "UpsamplingBilinear2d",
    "UpsamplingNearest2d",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
]

PerAxis = int | Sequence[int]


class Upsample(Applied):
    """x (N, C, …) resized to a size, or by a factor: nearest, linear, bilinear, bicubic or trilinear.

    >>> wg.nn.Upsample(scale_factor=2, mode="bilinear")(wg.zeros((1, 2, 3, 3))).shape
    (1, 2, 6, 6)
    """

    function = staticmethod(F.interpolate)

    def __init__(
        self,
        size: Any = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__(
            size=size,
            scale_factor=scale_factor,
            mode=mode,
            align_corners=align_corners,
            recompute_scale_factor=recompute_scale_factor,
        )


class UpsamplingNearest2d(Upsample):
    """`Upsample` of images, each pixel that of the nearest.

    >>> wg.nn.UpsamplingNearest2d(scale_factor=2)(wg.zeros((1, 2, 3, 3))).shape
    (1, 2, 6, 6)
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, "nearest")


class UpsamplingBilinear2d(Upsample):
    """`Upsample` of images, bilinear, corners kept.

    >>> wg.nn.UpsamplingBilinear2d(size=5)(wg.zeros((1, 2, 3, 3))).shape
    (1, 2, 5, 5)
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, "bilinear", True)


class PixelShuffle(Applied):
    """(…, C r², H, W) → (…, C, H r, W r).

    >>> wg.nn.PixelShuffle(2)(wg.zeros((1, 8, 3, 3))).shape
    (1, 2, 6, 6)
    """

    function = staticmethod(F.pixel_shuffle)

    def __init__(self, upscale_factor: int) -> None:
        super().__init__(upscale_factor=upscale_factor)


class PixelUnshuffle(Applied):
    """(…, C, H r, W r) → (…, C r², H, W).

    >>> wg.nn.PixelUnshuffle(2)(wg.zeros((1, 2, 6, 6))).shape
    (1, 8, 3, 3)
    """

    function = staticmethod(F.pixel_unshuffle)

    def __init__(self, downscale_factor: int) -> None:
        super().__init__(downscale_factor=downscale_factor)


class ChannelShuffle(Applied):
    """The channels (axis 1) of groups taken in turn.

    >>> wg.nn.ChannelShuffle(2)(wg.zeros((1, 4, 3))).shape
    (1, 4, 3)
    """

    function = staticmethod(F.channel_shuffle)

    def __init__(self, groups: int) -> None:
        super().__init__(groups=groups)


class Unfold(Applied):
    """x (N, C, H, W) → (N, C · kh · kw, L): the elements of every window as a column.

    >>> wg.nn.Unfold(2)(wg.zeros((1, 3, 4, 4))).shape
    (1, 12, 9)
    """

    function = staticmethod(F.unfold)

    def __init__(
        self, kernel_size: PerAxis, dilation: PerAxis = 1, padding: PerAxis = 0, stride: PerAxis = 1
    ) -> None:
        super().__init__(kernel_size=kernel_size, dilation=dilation, padding=padding, stride=stride)


class Fold(Applied):
    """(N, C · kh · kw, L) → (N, C, H, W): columns back in their windows, added up where these overlap.

    >>> wg.nn.Fold((4, 4), 2)(wg.zeros((1, 12, 9))).shape
    (1, 3, 4, 4)
    """

    function = staticmethod(F.fold)

    def __init__(
        self,
        output_size: PerAxis,
        kernel_size: PerAxis,
        dilation: PerAxis = 1,
        padding: PerAxis = 0,
        stride: PerAxis = 1,
    ) -> None:
        super().__init__(
            output_size=output_size,
            kernel_size=kernel_size,
            dilation=dilation,
            padding=padding,
            stride=stride,
        )


class _Pad(Module):
    axes: ClassVar[int]
    mode: ClassVar[str]
    value: float = 0.0

    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__()
        self.padding = (padding,) * (2 * self.axes) if isinstance(padding, int) else tuple(padding)
        if len(self.padding) != 2 * self.axes:
            raise wg.ArgumentError(
                f"{type(self).__name__}: padding is one width, or (before, after) for each of {self.axes} "
                f"axes, the last first; not {padding!r}"
            )

    def forward(self, x: wg.Tensor) -> wg.Tensor:
        """x with more along its last axes."""
        check_tensor(self, x)
        if x.ndim not in (self.axes + 1, self.axes + 2):
            raise wg.ShapeError(f"{self} takes x (N, C, …) of {self.axes + 2} axes, or (C, …); not {x.shape}")
        return F.pad(x, self.padding, self.mode, self.value)

    def extra_repr(self) -> str:
        return str(self.padding)


class _Constant(_Pad):
    mode = "constant"

    def __init__(self, padding: int | Sequence[int], value: float) -> None:
        super().__init__(padding)
        self.value = value

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_Constant):
    """x (N, C, L) with a value around it.

    >>> wg.nn.ConstantPad1d(1, 5.0)(wg.zeros((1, 2, 2))).shape
    (1, 2, 4)
    """

    axes = 1


class ConstantPad2d(_Constant):
    """x (N, C, H, W) with a value around it.

    >>> wg.nn.ConstantPad2d(1, 5.0)(wg.zeros((1, 2, 2, 2))).shape
    (1, 2, 4, 4)
    """

    axes = 2


class ConstantPad3d(_Constant):
    """x (N, C, D, H, W) with a value around it.

    >>> wg.nn.ConstantPad3d(1, 5.0)(wg.zeros((1, 2, 2, 2, 2))).shape
    (1, 2, 4, 4, 4)
    """

    axes = 3


class ZeroPad1d(_Pad):
    """x (N, C, L) with zeros around it.

    >>> wg.nn.ZeroPad1d(1)(wg.zeros((1, 2, 2))).shape
    (1, 2, 4)
    """

    axes = 1
    mode = "constant"


class ZeroPad2d(_Pad):
    """x (N, C, H, W) with zeros around it.

    >>> wg.nn.ZeroPad2d(1)(wg.zeros((1, 2, 2, 2))).shape
    (1, 2, 4, 4)
    """

    axes = 2
    mode = "constant"


class ZeroPad3d(_Pad):
    """x (N, C, D, H, W) with zeros around it.

    >>> wg.nn.ZeroPad3d(1)(wg.zeros((1, 2, 2, 2, 2))).shape
    (1, 2, 4, 4, 4)
    """

    axes = 3
    mode = "constant"


class ReflectionPad1d(_Pad):
    """x (N, C, L) reflected at its ends.

    >>> wg.nn.ReflectionPad1d(1)(wg.zeros((1, 2, 2))).shape
    (1, 2, 4)
    """

    axes = 1
    mode = "reflect"


class ReflectionPad2d(_Pad):
    """x (N, C, H, W) reflected at its ends.

    >>> wg.nn.ReflectionPad2d(1)(wg.zeros((1, 2, 2, 2))).shape
    (1, 2, 4, 4)
    """

    axes = 2
    mode = "reflect"


class ReflectionPad3d(_Pad):
    """x (N, C, D, H, W) reflected at its ends.

    >>> wg.nn.ReflectionPad3d(1)(wg.zeros((1, 2, 2, 2, 2))).shape
    (1, 2, 4, 4, 4)
    """

    axes = 3
    mode = "reflect"


class ReplicationPad1d(_Pad):
    """x (N, C, L), its ends repeated.

    >>> wg.nn.ReplicationPad1d(1)(wg.zeros((1, 2, 2))).shape
    (1, 2, 4)
    """

    axes = 1
    mode = "replicate"


class ReplicationPad2d(_Pad):
    """x (N, C, H, W), its ends repeated.

    >>> wg.nn.ReplicationPad2d(1)(wg.zeros((1, 2, 2, 2))).shape
    (1, 2, 4, 4)
    """

    axes = 2
    mode = "replicate"


class ReplicationPad3d(_Pad):
    """x (N, C, D, H, W), its ends repeated.

    >>> wg.nn.ReplicationPad3d(1)(wg.zeros((1, 2, 2, 2, 2))).shape
    (1, 2, 4, 4, 4)
    """

    axes = 3
    mode = "replicate"


class CircularPad1d(_Pad):
    """x (N, C, L) going round at its ends.

    >>> wg.nn.CircularPad1d(1)(wg.zeros((1, 2, 2))).shape
    (1, 2, 4)
    """

    axes = 1
    mode = "circular"


class CircularPad2d(_Pad):
    """x (N, C, H, W) going round at its ends.

    >>> wg.nn.CircularPad2d(1)(wg.zeros((1, 2, 2, 2))).shape
    (1, 2, 4, 4)
    """

    axes = 2
    mode = "circular"


class CircularPad3d(_Pad):
    """x (N, C, D, H, W) going round at its ends.

    >>> wg.nn.CircularPad3d(1)(wg.zeros((1, 2, 2, 2, 2))).shape
    (1, 2, 4, 4, 4)
    """

    axes = 3
    mode = "circular"
