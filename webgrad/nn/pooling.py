"""Pooling as modules: the largest element or the mean of windows, and back again; by PyTorch's names.

In: x (N, C, …) or (C, …). Out: the same with other sizes after the channels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import webgrad as wg

from . import functional as F
from .function_modules import Applied

__all__ = [
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "FractionalMaxPool2d",
    "FractionalMaxPool3d",
    "LPPool1d",
    "LPPool2d",
    "LPPool3d",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
]

PerAxis = int | Sequence[int]


class _MaxPool(Applied):
    def __init__(
        self,
        kernel_size: PerAxis,
        stride: PerAxis | None = None,
        padding: PerAxis = 0,
        dilation: PerAxis = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__(
            kernel_size=kernel_size,
            stride=kernel_size if stride is None else stride,
            padding=padding,
            dilation=dilation,
            return_indices=return_indices,
            ceil_mode=ceil_mode,
        )


class _AvgPool(Applied):
    divisible: ClassVar[bool] = True  # whether the function takes another divisor

    def __init__(
        self,
        kernel_size: PerAxis,
        stride: PerAxis | None = None,
        padding: PerAxis = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        if divisor_override is not None and not self.divisible:
            raise wg.ArgumentError(f"{type(self).__name__} takes no divisor_override")
        more = {"divisor_override": divisor_override} if self.divisible else {}
        super().__init__(
            kernel_size=kernel_size,
            stride=kernel_size if stride is None else stride,
            padding=padding,
            ceil_mode=ceil_mode,
            count_include_pad=count_include_pad,
            **more,
        )


class _Unpool(Applied):
    def __init__(self, kernel_size: PerAxis, stride: PerAxis | None = None, padding: PerAxis = 0) -> None:
        super().__init__(
            kernel_size=kernel_size, stride=kernel_size if stride is None else stride, padding=padding
        )

    def forward(self, x: wg.Tensor, indices: wg.Tensor, output_size: Any = None) -> wg.Tensor:
        """The values of a max pool back in their places; output_size names sizes that several would fit."""
        return type(self).function(  # type: ignore[no-any-return]
            x, indices, self.kernel_size, self.stride, self.padding, output_size
        )


class _AdaptiveMax(Applied):
    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__(output_size=output_size, return_indices=return_indices)


class _AdaptiveAvg(Applied):
    def __init__(self, output_size: Any) -> None:
        super().__init__(output_size=output_size)


class MaxPool1d(_MaxPool):
    """The largest element of every window over x (N, C, L).

    >>> wg.nn.MaxPool1d(2)(wg.zeros((1, 2, 4))).shape
    (1, 2, 2)
    """

    function = staticmethod(F.max_pool1d)


class MaxPool2d(_MaxPool):
    """The largest element of every window over x (N, C, H, W).

    >>> wg.nn.MaxPool2d(2)(wg.zeros((1, 2, 4, 4))).shape
    (1, 2, 2, 2)
    """

    function = staticmethod(F.max_pool2d)


class MaxPool3d(_MaxPool):
    """The largest element of every window over x (N, C, D, H, W).

    >>> wg.nn.MaxPool3d(2)(wg.zeros((1, 2, 4, 4, 4))).shape
    (1, 2, 2, 2, 2)
    """

    function = staticmethod(F.max_pool3d)


class AvgPool1d(_AvgPool):
    """The mean of every window over x (N, C, L).

    >>> wg.nn.AvgPool1d(2)(wg.zeros((1, 2, 4))).shape
    (1, 2, 2)
    """

    function = staticmethod(F.avg_pool1d)
    divisible = False


class AvgPool2d(_AvgPool):
    """The mean of every window over x (N, C, H, W).

    >>> wg.nn.AvgPool2d(2)(wg.zeros((1, 2, 4, 4))).shape
    (1, 2, 2, 2)
    """

    function = staticmethod(F.avg_pool2d)


class AvgPool3d(_AvgPool):
    """The mean of every window over x (N, C, D, H, W).

    >>> wg.nn.AvgPool3d(2)(wg.zeros((1, 2, 4, 4, 4))).shape
    (1, 2, 2, 2, 2)
    """

    function = staticmethod(F.avg_pool3d)


class AdaptiveMaxPool1d(_AdaptiveMax):
    """The largest elements of x (N, C, L) in as many stretches as output_size says.

    >>> wg.nn.AdaptiveMaxPool1d(3)(wg.zeros((1, 2, 7))).shape
    (1, 2, 3)
    """

    function = staticmethod(F.adaptive_max_pool1d)


class AdaptiveMaxPool2d(_AdaptiveMax):
    """The largest elements of x (N, C, H, W) in as many stretches as output_size says.

    >>> wg.nn.AdaptiveMaxPool2d(3)(wg.zeros((1, 2, 7, 7))).shape
    (1, 2, 3, 3)
    """

    function = staticmethod(F.adaptive_max_pool2d)


class AdaptiveMaxPool3d(_AdaptiveMax):
    """The largest elements of x (N, C, D, H, W) in as many stretches as output_size says.

    >>> wg.nn.AdaptiveMaxPool3d(3)(wg.zeros((1, 2, 7, 7, 7))).shape
    (1, 2, 3, 3, 3)
    """

    function = staticmethod(F.adaptive_max_pool3d)


class AdaptiveAvgPool1d(_AdaptiveAvg):
    """The means of x (N, C, L) in as many stretches as output_size says.

    >>> wg.nn.AdaptiveAvgPool1d(1)(wg.zeros((1, 2, 7))).shape
    (1, 2, 1)
    """

    function = staticmethod(F.adaptive_avg_pool1d)


class AdaptiveAvgPool2d(_AdaptiveAvg):
    """The means of x (N, C, H, W) in as many stretches as output_size says.

    >>> wg.nn.AdaptiveAvgPool2d(1)(wg.zeros((1, 2, 7, 7))).shape
    (1, 2, 1, 1)
    """

    function = staticmethod(F.adaptive_avg_pool2d)


class AdaptiveAvgPool3d(_AdaptiveAvg):
    """The means of x (N, C, D, H, W) in as many stretches as output_size says.

    >>> wg.nn.AdaptiveAvgPool3d(1)(wg.zeros((1, 2, 7, 7, 7))).shape
    (1, 2, 1, 1, 1)
    """

    function = staticmethod(F.adaptive_avg_pool3d)


class MaxUnpool1d(_Unpool):
    """What MaxPool1d gave, values and indices, back in their places; zeros elsewhere.

    >>> values, places = wg.nn.MaxPool1d(2, return_indices=True)(wg.ones((1, 2, 4)))
    >>> wg.nn.MaxUnpool1d(2)(values, places).shape
    (1, 2, 4)
    """

    function = staticmethod(F.max_unpool1d)


class MaxUnpool2d(_Unpool):
    """What MaxPool2d gave, values and indices, back in their places; zeros elsewhere.

    >>> values, places = wg.nn.MaxPool2d(2, return_indices=True)(wg.ones((1, 2, 4, 4)))
    >>> wg.nn.MaxUnpool2d(2)(values, places).shape
    (1, 2, 4, 4)
    """

    function = staticmethod(F.max_unpool2d)


class MaxUnpool3d(_Unpool):
    """What MaxPool3d gave, values and indices, back in their places; zeros elsewhere.

    >>> values, places = wg.nn.MaxPool3d(2, return_indices=True)(wg.ones((1, 2, 4, 4, 4)))
    >>> wg.nn.MaxUnpool3d(2)(values, places).shape
    (1, 2, 4, 4, 4)
    """

    function = staticmethod(F.max_unpool3d)


class _LPPool(Applied):
    def __init__(
        self, norm_type: float, kernel_size: PerAxis, stride: PerAxis | None = None, ceil_mode: bool = False
    ) -> None:
        super().__init__(norm_type=norm_type, kernel_size=kernel_size, stride=stride, ceil_mode=ceil_mode)


class LPPool1d(_LPPool):
    """(Σ x^p)^(1/p) over every window of x (N, C, L).

    >>> wg.nn.LPPool1d(2, 2)(wg.asarray([[3.0, 4.0, 0.0, 2.0]])).tolist()
    [[5.0, 2.0]]
    """

    function = staticmethod(F.lp_pool1d)


class LPPool2d(_LPPool):
    """(Σ x^p)^(1/p) over every window of x (N, C, H, W).

    >>> wg.nn.LPPool2d(2, 2)(wg.zeros((1, 2, 4, 4))).shape
    (1, 2, 2, 2)
    """

    function = staticmethod(F.lp_pool2d)


class LPPool3d(_LPPool):
    """(Σ x^p)^(1/p) over every window of x (N, C, D, H, W).

    >>> wg.nn.LPPool3d(2, 2)(wg.zeros((1, 2, 4, 4, 4))).shape
    (1, 2, 2, 2, 2)
    """

    function = staticmethod(F.lp_pool3d)


class _FractionalMaxPool(Applied):
    def __init__(
        self,
        kernel_size: PerAxis,
        output_size: PerAxis | None = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        random_samples: wg.Tensor | None = None,
    ) -> None:
        if (output_size is None) == (output_ratio is None):
            raise wg.ArgumentError(f"{type(self).__name__} takes output_size or output_ratio, one of them")
        super().__init__(
            kernel_size=kernel_size,
            output_size=output_size,
            output_ratio=output_ratio,
            return_indices=return_indices,
            random_samples=random_samples,
        )


class FractionalMaxPool2d(_FractionalMaxPool):
    """The largest element of windows of x (N, C, H, W) that overlap by chance.

    >>> wg.nn.FractionalMaxPool2d(2, output_ratio=0.5)(wg.zeros((1, 2, 7, 7))).shape
    (1, 2, 3, 3)
    """

    function = staticmethod(F.fractional_max_pool2d)


class FractionalMaxPool3d(_FractionalMaxPool):
    """The largest element of windows of x (N, C, D, H, W) that overlap by chance.

    >>> wg.nn.FractionalMaxPool3d(2, output_size=2)(wg.zeros((1, 2, 5, 5, 5))).shape
    (1, 2, 2, 2, 2)
    """

    function = staticmethod(F.fractional_max_pool3d)
