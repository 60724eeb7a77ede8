"""Normalisation layers: to mean 0 and variance 1 over a batch, a layer, a group or an instance.

In: a tensor of floats. Out: one of the same shape and dtype. Running statistics are buffers: in training they
are changed in place, so that captured functions keep them up to date at each call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import webgrad as wg

from . import functional as F
from . import init
from .checks import check_channels, check_sizes, check_tensor
from .function_modules import Applied
from .module import Module
from .parameter import Parameter

__all__ = [
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "GroupNorm",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LayerNorm",
    "LocalResponseNorm",
    "RMSNorm",
]


class _Scaled(Module):
    """A weight of ones and a bias of zeros, if wanted."""

    weight: Parameter | None
    bias: Parameter | None

    def _scale(self, shape: Any, weight: bool, bias: bool, device: Any, dtype: Any) -> None:
        for name, wanted in (("weight", weight), ("bias", bias)):
            value = Parameter(wg.empty(shape, dtype=dtype, device=device)) if wanted else None
            self.register_parameter(name, value)

    def reset_parameters(self) -> None:
        """The weight one, the bias zero."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)


# By channel, with running statistics


class _Running(_Scaled):
    """What batch and instance norms share: statistics of what was seen in training, used in `eval()`."""

    axes: ClassVar[tuple[int, ...]]  # how many axes may follow the channels
    running_mean: wg.Tensor | None
    running_var: wg.Tensor | None
    num_batches_tracked: wg.Tensor | None

    def __init__(
        self,
        num_features: int,
        eps: float,
        momentum: float | None,
        affine: bool,
        track_running_stats: bool,
        device: Any,
        dtype: Any,
        bias: bool,
    ) -> None:
        super().__init__()
        check_sizes(type(self).__name__, num_features=num_features)
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        self._scale(num_features, affine, affine and bias, device, dtype)
        tracked = track_running_stats
        self.register_buffer(
            "running_mean", wg.zeros(num_features, dtype=dtype, device=device) if tracked else None
        )
        self.register_buffer(
            "running_var", wg.ones(num_features, dtype=dtype, device=device) if tracked else None
        )
        self.register_buffer(
            "num_batches_tracked",
            wg.zeros((), dtype=self._count_dtype(device), device=device) if tracked else None,
        )
        self.reset_parameters()

    def _count_dtype(self, device: Any) -> wg.DType:
        """The integers that batches are counted in."""
        return wg.int32

    def reset_running_stats(self) -> None:
        """As if nothing had been seen: mean 0, variance 1."""
        if self.running_mean is not None and self.running_var is not None:
            init.zeros_(self.running_mean)
            init.ones_(self.running_var)
        if self.num_batches_tracked is not None:
            with wg.no_grad():
                self.num_batches_tracked[...] = 0

    def _keep(self, mean: wg.Tensor | None, var: wg.Tensor | None) -> None:
        """New running statistics, in place."""
        with wg.no_grad():
            if self.running_mean is not None and mean is not None:
                self.running_mean[...] = mean.detach()
            if self.running_var is not None and var is not None:
                self.running_var[...] = var.detach()

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )


class _BatchNorm(_Running):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias)

    def forward(self, x: wg.Tensor) -> wg.Tensor:
        """x (N, num_features, …) → the same shape."""
        check_tensor(self, x)
        axes = next((each for each in self.axes if x.ndim == each + 2), self.axes[-1])
        check_channels(self, x, self.num_features, axes, batch=True)
        if not self.training and self.running_mean is not None:
            return F.batch_norm(
                x, self.running_mean, self.running_var, self.weight, self.bias, False, 0.0, self.eps
            )
        if not self.training:
            return F.batch_norm(x, None, None, self.weight, self.bias, True, 0.0, self.eps)
        result, mean, var = wg.batch_norm_training(
            x, self.running_mean, self.running_var, self.weight, self.bias, self._momentum(), self.eps
        )
        self._keep(mean, var)
        return result

    def _momentum(self) -> Any:
        """How far the statistics move towards the batch's; without a momentum they are the mean of all."""
        if self.num_batches_tracked is None:
            return 0.0
        with wg.no_grad():
            self.num_batches_tracked += 1
        momentum = self._watched("momentum")
        return momentum if momentum is not None else 1.0 / self.num_batches_tracked.astype(wg.float32)


class BatchNorm1d(_BatchNorm):
    """y = (x - E[x]) / √(Var[x] + eps) · γ + β for each channel of x (N, C) or (N, C, L).

    >>> layer = wg.nn.BatchNorm1d(2)
    >>> layer(wg.random.normal((16, 2))).shape, layer.num_batches_tracked.item()
    ((16, 2), 1)
    """

    axes = (0, 1)


class BatchNorm2d(_BatchNorm):
    """y = (x - E[x]) / √(Var[x] + eps) · γ + β for each channel of x (N, C, H, W).

    >>> wg.nn.BatchNorm2d(3)(wg.ones((2, 3, 4, 4))).shape
    (2, 3, 4, 4)
    """

    axes = (2,)


class BatchNorm3d(_BatchNorm):
    """y = (x - E[x]) / √(Var[x] + eps) · γ + β for each channel of x (N, C, D, H, W).

    >>> wg.nn.BatchNorm3d(3)(wg.ones((2, 3, 2, 2, 2))).shape
    (2, 3, 2, 2, 2)
    """

    axes = (3,)


class _InstanceNorm(_Running):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias)

    def forward(self, x: wg.Tensor) -> wg.Tensor:
        """x (N, num_features, …) or (num_features, …) → the same shape."""
        (axes,) = self.axes
        check_channels(self, x, self.num_features, axes)
        if x.ndim == axes + 1:
            return self.forward(x.reshape((1, *x.shape))).reshape(x.shape)
        if self.running_mean is not None and not self.training:
            return F.instance_norm(
                x, self.running_mean, self.running_var, self.weight, self.bias, False, 0.0, self.eps
            )
        if self.running_mean is not None and self.running_var is not None:
            momentum = self._watched("momentum") or 0.0
            later = tuple(range(2, x.ndim))
            wide = x.detach().astype(x.dtype.wide, copy=False)
            mean, var = wide.mean(axis=later).mean(axis=0), wide.var(axis=later, correction=1.0).mean(axis=0)
            self._keep(
                self.running_mean + (mean - self.running_mean) * momentum,
                self.running_var + (var - self.running_var) * momentum,
            )
        return F.instance_norm(x, None, None, self.weight, self.bias, True, 0.0, self.eps)


class InstanceNorm1d(_InstanceNorm):
    """y = (x - E[x]) / √(Var[x] + eps) · γ + β for each channel of each sample of x (N, C, L).

    >>> wg.nn.InstanceNorm1d(2)(wg.ones((3, 2, 4))).shape
    (3, 2, 4)
    """

    axes = (1,)


class InstanceNorm2d(_InstanceNorm):
    """y = (x - E[x]) / √(Var[x] + eps) · γ + β for each channel of each sample of x (N, C, H, W).

    >>> wg.nn.InstanceNorm2d(2, affine=True)(wg.ones((3, 2, 4, 4))).shape
    (3, 2, 4, 4)
    """

    axes = (2,)


class InstanceNorm3d(_InstanceNorm):
    """y = (x - E[x]) / √(Var[x] + eps) · γ + β for each channel of each sample of x (N, C, D, H, W).

    >>> wg.nn.InstanceNorm3d(2)(wg.ones((3, 2, 2, 2, 2))).shape
    (3, 2, 2, 2, 2)
    """

    axes = (3,)


# By layer, by group


def _sizes(layer: str, normalized_shape: int | Sequence[int]) -> tuple[int, ...]:
    sizes = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if not sizes:
        raise wg.ArgumentError(f"{layer}: normalized_shape has at least one size")
    for size in sizes:
        check_sizes(layer, **{"a size in normalized_shape": size})
    return sizes


def _check_last(layer: Module, x: wg.Tensor, sizes: tuple[int, ...]) -> None:
    check_tensor(layer, x)
    if x.shape[-len(sizes) :] != sizes:
        wanted = ", ".join(map(str, sizes))
        raise wg.ShapeError(f"{layer} takes x (…, {wanted}); this x is {x.shape}")


class LayerNorm(_Scaled):
    """y = (x - E[x]) / √(Var[x] + eps) · γ + β over the last axes, whose sizes are normalized_shape.

    >>> wg.nn.LayerNorm(2, eps=0.0)(wg.asarray([[1.0, 3.0]])).tolist()
    [[-1.0, 1.0]]
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _sizes("LayerNorm", normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self._scale(self.normalized_shape, elementwise_affine, elementwise_affine and bias, device, dtype)
        self.reset_parameters()

    def forward(self, x: wg.Tensor) -> wg.Tensor:
        """x (…, *normalized_shape) → the same shape."""
        _check_last(self, x, self.normalized_shape)
        return F.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(_Scaled):
    """y = x / √(E[x²] + eps) · γ over the last axes, whose sizes are normalized_shape.

    >>> wg.nn.RMSNorm(2, eps=0.0)(wg.asarray([[3.0, 3.0]])).tolist()
    [[1.0, 1.0]]
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _sizes("RMSNorm", normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self._scale(self.normalized_shape, elementwise_affine, False, device, dtype)
        self.reset_parameters()

    def forward(self, x: wg.Tensor) -> wg.Tensor:
        """x (…, *normalized_shape) → the same shape."""
        _check_last(self, x, self.normalized_shape)
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(_Scaled):
    """y = (x - E[x]) / √(Var[x] + eps) · γ + β over each sample's groups of channels of x (N, C, …).

    >>> wg.nn.GroupNorm(2, 4)(wg.ones((3, 4, 5))).shape
    (3, 4, 5)
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        check_sizes("GroupNorm", num_groups=num_groups, num_channels=num_channels)
        if num_channels % num_groups:
            raise wg.ArgumentError(
                f"GroupNorm: {num_channels} channels do not make {num_groups} equal groups"
            )
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        self._scale(num_channels, affine, affine and bias, device, dtype)
        self.reset_parameters()

    def forward(self, x: wg.Tensor) -> wg.Tensor:
        """x (N, num_channels, …) → the same shape."""
        check_tensor(self, x)
        if x.ndim < 2 or x.shape[1] != self.num_channels:
            raise wg.ShapeError(f"{self} takes x (N, {self.num_channels}, …); this x is {x.shape}")
        return F.group_norm(x, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        bias = self.bias is not None
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, bias={bias}"


class LocalResponseNorm(Applied):
    """y = x / (k + alpha · m)^beta, m being the mean of x² over `size` neighbouring channels.

    >>> wg.nn.LocalResponseNorm(2)(wg.ones((1, 4, 3))).shape
    (1, 4, 3)
    """

    function = staticmethod(F.local_response_norm)

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__(size=size, alpha=alpha, beta=beta, k=k)
