"""What onnxruntime's optimiser fuses: operators of com.microsoft that are several of the standard in one.

Here they are these several again, which webgrad fuses by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import webgrad as wg

from .activations import axes_from
from .convolution import conv
from .normalisation import layer_normalised, root_normalised
from .pooling import max_pool
from .products import gemm, scaled
from .table import Call, find, operator

MICROSOFT = "com.microsoft"

# An activation by its name


def _activated(x: Any, name: str, numbers: Mapping[str, float]) -> Any:
    """x through an operator of the standard, with those of some numbers that it takes; "": as it is."""
    if not name:
        return x
    row = find("", name, 9)
    if row is None:
        raise wg.ModelFileError(f"there is no activation {name!r}")
    return row.function(x, **{key: each for key, each in numbers.items() if key in row.attributes})


def _by_place(name: str, numbers: Sequence[float]) -> dict[str, float]:
    keys = ("min", "max") if name == "Clip" else ("alpha", "beta")
    return dict(zip(keys, numbers, strict=False))


# Gelu


@operator("Gelu", domain=MICROSOFT)
def gelu(x: Any) -> Any:
    return wg.gelu(x)


@operator("BiasGelu", domain=MICROSOFT)
def bias_gelu(x: Any, bias: Any) -> Any:
    return wg.gelu(x + bias)


@operator("FastGelu", domain=MICROSOFT)
def fast_gelu(x: Any, bias: Any = None) -> Any:
    return wg.gelu(x if bias is None else x + bias, "tanh")


@operator("GemmFastGelu", domain=MICROSOFT)
def gemm_fast_gelu(x: Any, weight: Any, bias: Any = None) -> Any:
    return fast_gelu(x @ weight, bias)


@operator("QuickGelu", domain=MICROSOFT)
def quick_gelu(x: Any, *, alpha: float = 1.702) -> Any:
    return x * wg.sigmoid(x * alpha)


@operator("BiasSplitGelu", domain=MICROSOFT)
def bias_split_gelu(x: Any, bias: Any) -> Any:
    """The first half of the last axis times gelu of the second."""
    first, second = wg.split(x + bias, 2, axis=-1)
    return first * wg.gelu(second)


# Sums


@operator("BiasAdd", domain=MICROSOFT)
def bias_add(x: Any, bias: Any, skip: Any) -> Any:
    return x + bias + skip


@operator("BiasSoftmax", domain=MICROSOFT)
def bias_softmax(x: Any, bias: Any, *, axis: int = 1, is_inner_broadcast: int) -> Any:
    """softmax(x + bias) over the axes from `axis` on; a bias that is not inner repeats as a whole."""
    if is_inner_broadcast:
        bias = bias.reshape((bias.shape[0], *[1] * (x.ndim - bias.ndim), *bias.shape[1:]))
    return wg.softmax(x + bias, axis=axes_from(x, axis))


# Products


@operator("FusedMatMul TransposeMatMul", domain=MICROSOFT)
def fused_matmul(
    a: Any,
    b: Any,
    *,
    alpha: float = 1.0,
    transA: int = 0,
    transB: int = 0,
    transBatchA: int = 0,
    transBatchB: int = 0,
) -> Any:
    return scaled(_turned(a, transA, transBatchA) @ _turned(b, transB, transBatchB), alpha)


def _turned(x: Any, last: int, batch: int) -> Any:
    """x with its first axis moved to before the last (batch), and its last two axes exchanged."""
    if batch:
        x = wg.moveaxis(x, 0, -2)
    return x.mT if last and x.ndim > 1 else x


@operator("FusedMatMulActivation", domain=MICROSOFT)
def fused_matmul_activation(
    a: Any,
    b: Any,
    *,
    activation: str,
    activation_alpha: float = 0.01,
    activation_axis: int = -1,
    activation_beta: float = 0.5,
    activation_gamma: float = 1.0,
    alpha: float = 1.0,
    transA: int = 0,
    transB: int = 0,
    transBatchA: int = 0,
    transBatchB: int = 0,
) -> Any:
    y = scaled(_turned(a, transA, transBatchA) @ _turned(b, transB, transBatchB), alpha)
    numbers = {"alpha": activation_alpha, "beta": activation_beta, "gamma": activation_gamma}
    return _activated(y, activation, numbers | {"axis": activation_axis})


@operator("FusedGemm", domain=MICROSOFT)
def fused_gemm(
    a: Any,
    b: Any,
    c: Any = None,
    *,
    activation: str = "",
    activation_alpha: float | None = None,
    activation_beta: float | None = None,
    activation_gamma: float | None = None,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> Any:
    y = gemm(a, b, c, alpha=alpha, beta=beta, transA=transA, transB=transB)
    given = {"alpha": activation_alpha, "beta": activation_beta, "gamma": activation_gamma}
    return _activated(y, activation, {key: each for key, each in given.items() if each is not None})


# Convolution


@operator("FusedConv", domain=MICROSOFT)
def fused_conv(
    x: Any,
    weight: Any,
    bias: Any = None,
    residual: Any = None,
    *,
    activation: str = "",
    activation_params: Sequence[float] = (),
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] = (),
    group: int = 1,
    kernel_shape: Sequence[int] = (),
    pads: Sequence[int] = (),
    strides: Sequence[int] = (),
) -> Any:
    how = {"auto_pad": auto_pad, "dilations": dilations, "pads": pads, "strides": strides}
    y = conv(x, weight, bias, group=group, kernel_shape=kernel_shape, **how)
    y = y if residual is None else y + residual
    return _activated(y, activation, _by_place(activation, activation_params))


def _channels_first(x: Any) -> Any:
    return None if x is None else wg.moveaxis(x, -1, 1)


@operator("NhwcConv NhwcFusedConv", domain=MICROSOFT)
def channels_last_conv(
    x: Any,
    weight: Any,
    bias: Any = None,
    residual: Any = None,
    *,
    activation: str = "",
    activation_params: Sequence[float] = (),
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] = (),
    group: int = 1,
    kernel_shape: Sequence[int] = (),
    pads: Sequence[int] = (),
    strides: Sequence[int] = (),
) -> Any:
    """The same of x (N, H, W, C)."""
    how = {"auto_pad": auto_pad, "dilations": dilations, "pads": pads, "strides": strides}
    how |= {"activation": activation, "activation_params": activation_params}
    moved = _channels_first(x), weight, bias, _channels_first(residual)
    return wg.moveaxis(fused_conv(*moved, group=group, kernel_shape=kernel_shape, **how), 1, -1)


@operator("NhwcMaxPool", domain=MICROSOFT)
def channels_last_max_pool(
    x: Any,
    *,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Sequence[int] = (),
    kernel_shape: Sequence[int],
    pads: Sequence[int] = (),
    strides: Sequence[int] = (),
    call: Call,
) -> Any:
    how = {"auto_pad": auto_pad, "ceil_mode": ceil_mode, "dilations": dilations, "pads": pads}
    y = max_pool(_channels_first(x), kernel_shape=kernel_shape, strides=strides, call=call, **how)
    return wg.moveaxis(y, 1, -1)


# Normalisation


def _with_statistics(y: Any, total: Any, epsilon: float, is_centred: bool, call: Call) -> Any:
    """What was normalised; where they are wanted also the mean and slope of rows, and the sum they are of."""
    if call.outputs < 2:
        return y
    wide = total.astype(total.dtype.wide, copy=False)
    mean = wg.mean(wide, axis=-1, keepdims=True)
    spread = (
        wg.var(wide, axis=-1, keepdims=True) if is_centred else wg.mean(wide * wide, axis=-1, keepdims=True)
    )
    return y, mean, wg.rsqrt(spread + epsilon), total


def _summed(x: Any, skip: Any, bias: Any) -> Any:
    return x + skip if bias is None else x + skip + bias


@operator("SkipLayerNormalization", domain=MICROSOFT)
def skip_layer_normalization(
    x: Any,
    skip: Any,
    gamma: Any,
    beta: Any = None,
    bias: Any = None,
    *,
    epsilon: float = 1e-12,
    call: Call,
) -> Any:
    total = _summed(x, skip, bias)
    y = layer_normalised(total, gamma, beta, (total.ndim - 1,), epsilon)
    return _with_statistics(y, total, epsilon, True, call)


@operator("SkipSimplifiedLayerNormalization", domain=MICROSOFT)
def skip_root_normalization(
    x: Any, skip: Any, gamma: Any, bias: Any = None, *, epsilon: float = 1e-12, call: Call
) -> Any:
    total = _summed(x, skip, bias)
    y = root_normalised(total, gamma, (total.ndim - 1,), epsilon)
    return _with_statistics(y, total, epsilon, False, call)


@operator("EmbedLayerNormalization", domain=MICROSOFT)
def embed_layer_normalization(
    words: Any,
    segments: Any,
    word_embedding: Any,
    position_embedding: Any,
    segment_embedding: Any,
    gamma: Any,
    beta: Any,
    mask: Any = None,
    positions: Any = None,
    *,
    epsilon: float = 1e-12,
    mask_index_type: int = 1,
) -> Any:
    """Sums of embeddings, normalised; how many of each sample's words the mask keeps; and the sums."""
    if positions is None:
        places = position_embedding[: words.shape[1]]
    else:
        places = wg.take(position_embedding, positions, axis=0)
    total = wg.take(word_embedding, words, axis=0) + places
    if segments is not None and segment_embedding is not None:
        total = total + wg.take(segment_embedding, segments, axis=0)
    y = layer_normalised(total, gamma, beta, (2,), epsilon)
    if mask is None:
        return y, wg.zeros((words.shape[0],), wg.int32, device=y.device), total
    return y, wg.sum(mask.astype(wg.int32), axis=1).astype(wg.int32), total


@operator("GroupNorm", domain=MICROSOFT)
def group_norm(
    x: Any,
    gamma: Any,
    beta: Any,
    *,
    activation: int,
    channels_last: int = 1,
    epsilon: float = 1e-5,
    groups: int,
) -> Any:
    y = _channels_first(x) if channels_last else x
    y = wg.group_norm(y, groups, gamma, beta, epsilon)
    y = wg.silu(y) if activation else y
    return wg.moveaxis(y, 1, -1) if channels_last else y


@operator("SkipGroupNorm", domain=MICROSOFT)
def skip_group_norm(
    x: Any,
    gamma: Any,
    beta: Any,
    skip: Any,
    bias: Any = None,
    *,
    activation: int,
    channels_last: int = 1,
    epsilon: float = 1e-5,
    groups: int,
) -> Any:
    behind = (1, 1) if channels_last else ()
    if skip.ndim == 2:
        skip = skip.reshape((skip.shape[0], *behind, skip.shape[1], *(() if channels_last else (1, 1))))
    total = x + skip
    if bias is not None:
        total = total + (bias if channels_last else bias.reshape((-1, 1, 1)))
    how = {"activation": activation, "channels_last": channels_last, "groups": groups}
    return group_norm(total, gamma, beta, epsilon=epsilon, **how), total
