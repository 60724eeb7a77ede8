"""The rest of com.microsoft: older names of the standard's operators, and what some published models use."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import webgrad as wg

from ...arrays import np
from .convolution import conv_transpose
from .creation import range_of_numbers
from .fusions import embed_layer_normalization
from .gathering import gather_slices
from .images import grid_sample
from .quantised_maps import MICROSOFT, real
from .shapes import pad, triangle
from .sorting import unique
from .table import Call, operator
from .values import bounded

__all__: list[str] = []

operator("Trilu", domain=MICROSOFT, host="k")(triangle)


@operator("Range", domain=MICROSOFT, host="start limit delta")
def range_from(start: Any, limit: Any, delta: Any = None) -> Any:
    return range_of_numbers(start, limit, np.ones_like(start) if delta is None else delta)


@operator("Pad", domain=MICROSOFT, host="pads value")
def pad_of_microsoft(x: Any, pads: Any, value: Any = None, *, mode: str = "constant") -> Any:
    return pad(x, pads.reshape(-1), value, mode=mode)


@operator("Unique", domain=MICROSOFT, known="x")
def unique_in_order(x: Any, *, call: Call) -> Any:
    found, _, places, counts = unique(x, sorted=0, call=call)
    return found, places, counts


@operator("GatherND", domain=MICROSOFT)
def gather_nd(x: Any, indices: Any) -> Any:
    return gather_slices(x, indices)


@operator("GridSample", domain=MICROSOFT)
def grid_sample_of_microsoft(
    x: Any, grid: Any, *, align_corners: int = 0, mode: str = "bilinear", padding_mode: str = "zeros"
) -> Any:
    return grid_sample(x, grid, align_corners=align_corners, mode=mode, padding_mode=padding_mode)


@operator("ExpandDims", domain=MICROSOFT, host="axis")
def expand_dims(x: Any, axis: Any) -> Any:
    return wg.expand_dims(x, axis=axis.item())


@operator("Inverse", domain=MICROSOFT)
def inverse(x: Any) -> Any:
    return wg.linalg.inv(x)


@operator("CDist", domain=MICROSOFT)
def cdist(a: Any, b: Any, *, metric: str = "sqeuclidean") -> Any:
    distances = wg.cdist(a, b)
    return distances * distances if metric == "sqeuclidean" else distances


@operator("TorchEmbedding", domain=MICROSOFT)
def torch_embedding(weight: Any, indices: Any, padding: Any = None, scale_by_frequency: Any = None) -> Any:
    return wg.take(weight, indices, axis=0)


@operator("IsAllFinite", domain=MICROSOFT)
def is_all_finite(*inputs: Any, isinf_only: int = 0, isnan_only: int = 0) -> Any:
    is_bad = wg.isinf if isinf_only else wg.isnan if isnan_only else _is_not_finite
    found = [wg.any(is_bad(each)) for each in inputs]
    return ~wg.any(wg.stack(found))


def _is_not_finite(x: Any) -> Any:
    return ~wg.isfinite(x)


@operator("BiasDropout", domain=MICROSOFT, host="training_mode")
def bias_dropout(
    x: Any,
    bias: Any,
    residual: Any = None,
    ratio: Any = None,
    training_mode: Any = None,
    *,
    seed: int = 0,
    call: Call,
) -> Any:
    if training_mode is not None and training_mode.item():
        raise wg.ModelFileError("BiasDropout in training is not there: export the model for inference")
    y = x + bias if residual is None else x + bias + residual
    return y if call.outputs < 2 else (y, wg.ones(y.shape, wg.bool, device=y.device))


@operator("ConvTransposeWithDynamicPads", domain=MICROSOFT, host="pads")
def conv_transpose_with_dynamic_pads(
    x: Any,
    weight: Any,
    pads: Any = None,
    bias: Any = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] = (),
    group: int = 1,
    kernel_shape: Sequence[int] = (),
    output_padding: Sequence[int] = (),
    strides: Sequence[int] = (),
) -> Any:
    windows = {"dilations": dilations, "kernel_shape": kernel_shape, "output_padding": output_padding}
    given = () if pads is None else pads.tolist()
    return conv_transpose(
        x, weight, bias, auto_pad=auto_pad, group=group, pads=given, strides=strides, **windows
    )


# Spectra: complex numbers as pairs along the last axis


@operator("Rfft", domain=MICROSOFT)
def rfft(x: Any, *, normalized: int = 0, onesided: int = 1, signal_ndim: int) -> Any:
    axes = tuple(range(-signal_ndim, 0))
    return wg.view_as_real(wg.fft.rfftn(x, axes=axes, norm="ortho" if normalized else "backward"))


@operator("Irfft", domain=MICROSOFT)
def irfft(x: Any, *, normalized: int = 0, onesided: int = 1, signal_ndim: int) -> Any:
    axes = tuple(range(-signal_ndim, 0))
    return wg.fft.irfftn(wg.view_as_complex(x), axes=axes, norm="ortho" if normalized else "backward")


@operator("ComplexMul", domain=MICROSOFT)
def complex_mul(a: Any, b: Any) -> Any:
    return _pairs(a[..., 0], a[..., 1], b[..., 0], b[..., 1])


@operator("ComplexMulConj", domain=MICROSOFT)
def complex_mul_conj(a: Any, b: Any) -> Any:
    return _pairs(a[..., 0], a[..., 1], b[..., 0], -b[..., 1])


def _pairs(a: Any, b: Any, c: Any, d: Any) -> Any:
    return wg.stack([a * c - b * d, a * d + b * c], axis=-1)


# Text


@operator("NGramRepeatBlock", domain=MICROSOFT)
def ngram_repeat_block(tokens: Any, scores: Any, *, ngram_size: int) -> Any:
    """Scores of tokens that would repeat a row of so many are -inf."""
    before, length = ngram_size - 1, tokens.shape[1]
    starts = length - before
    if starts <= 0:
        return scores
    nexts = tokens[:, before:]
    repeats = wg.ones(nexts.shape, wg.bool, device=tokens.device)
    for at in range(before):
        repeats = repeats & (tokens[:, at : at + starts] == tokens[:, starts + at : starts + at + 1])
    kinds = wg.arange(scores.shape[-1], dtype=wg.int32, device=scores.device)
    is_next = nexts.astype(wg.int32)[..., None] == kinds
    return wg.where(wg.any(is_next & repeats[..., None], axis=1), -wg.inf, scores)


@operator("RelativePositionBias", domain=MICROSOFT, host="queries keys")
def relative_position_bias(
    table: Any, queries: Any, keys: Any, *, is_bidirectional: int = 0, max_distance: int, call: Call
) -> Any:
    """T5's: near positions have a row of the table each, farther ones share rows by their logarithm."""
    bounded(keys.item(), queries.item())
    offsets = np.arange(keys.item()) - np.arange(queries.item())[:, None]
    rows = table.shape[0]
    side = np.zeros_like(offsets)
    if is_bidirectional:
        rows //= 2
        side, offsets = rows * (offsets > 0), np.abs(offsets)
    else:
        offsets = np.maximum(-offsets, 0)
    exact = rows // 2
    far = np.log(np.maximum(offsets, 1) / exact) / math.log(max_distance / exact) * (rows - exact)
    bucket = np.where(offsets < exact, offsets, np.minimum(exact + far.astype(np.int64), rows - 1))
    found = wg.take(table, call.tensor(bucket + side), axis=0)
    return found.permute(2, 0, 1)[None]


@operator("WordConvEmbedding", domain=MICROSOFT)
def word_conv_embedding(
    words: Any,
    weight: Any,
    bias: Any,
    characters: Any,
    *,
    char_embedding_size: int = 0,
    conv_window_size: int = 0,
    embedding_size: int = 0,
) -> Any:
    """Words of characters, 0 behind the last: a convolution over each, and the largest of what it gives."""
    window = weight.shape[2]
    given = wg.take(characters, words, axis=0)
    flat = given.reshape((-1, *given.shape[-2:]))
    found = wg.tanh(wg.conv1d(flat.mT, weight.reshape((weight.shape[0], window, -1)).mT, bias))
    lengths = wg.sum((words != 0).astype(wg.int32), axis=-1).reshape((-1, 1, 1))
    places = wg.arange(found.shape[-1], dtype=wg.int32, device=found.device)
    inside = places < wg.clip(lengths - window + 1, 1, None)
    largest = wg.max(wg.where(inside, found, -wg.inf), axis=-1)
    largest = wg.where(lengths.reshape((-1, 1)) == 0, 0.0, largest)
    return largest.reshape((*words.shape[:-1], -1))


# Pictures


@operator("CropAndResize", domain=MICROSOFT, host="size")
def crop_and_resize(
    x: Any, boxes: Any, samples: Any, size: Any, *, extrapolation_value: float = 0.0, mode: str = "bilinear"
) -> Any:
    """Boxes (top, left, bottom, right) from 0 to 1, each in the same size; what lies outside is filled."""
    height, width = size.tolist()
    rows = _between(boxes[:, 0], boxes[:, 2], height, x.shape[2])
    columns = _between(boxes[:, 1], boxes[:, 3], width, x.shape[3])
    pictures = wg.take(x, samples, axis=0)
    is_inside = _is_inside(rows, x.shape[2])[:, :, None] & _is_inside(columns, x.shape[3])[:, None]
    found = _resampled(_resampled(pictures, rows, 2, mode), columns, 3, mode)
    return wg.where(is_inside[:, None], found, extrapolation_value)


def _between(start: Any, end: Any, count: int, size: int) -> Any:
    """Places (boxes, count) from the first to the last pixel of each box; of one alone the middle."""
    if count == 1:
        return ((start + end) * 0.5 * (size - 1))[:, None]
    steps = wg.arange(count, dtype=start.dtype, device=start.device)
    return start[:, None] * (size - 1) + steps * ((end - start) * ((size - 1) / (count - 1)))[:, None]


def _is_inside(places: Any, size: int) -> Any:
    return (places >= 0) & (places <= size - 1)


def _resampled(x: Any, places: Any, axis: int, mode: str) -> Any:
    """Elements at places between those of an axis, others for each picture."""
    last = x.shape[axis] - 1
    places = wg.clip(places, 0, last)
    if mode == "nearest":
        return _at(x, wg.round(places), axis)
    first = wg.floor(places)
    share = (places - first).reshape((places.shape[0], 1, *((-1, 1) if axis == 2 else (1, -1))))
    return _at(x, first, axis) * (1 - share) + _at(x, wg.clip(first + 1, 0, last), axis) * share


def _at(x: Any, places: Any, axis: int) -> Any:
    index = places.astype(wg.int32).reshape((places.shape[0], 1, *((-1, 1) if axis == 2 else (1, -1))))
    sizes = tuple(index.shape[at] if at == axis else each for at, each in enumerate(x.shape))
    return wg.take_along_axis(x, wg.broadcast_to(index, sizes), axis=axis)


@operator("UnfoldTensor", domain=MICROSOFT)
def unfold_tensor(x: Any, *, dim: int = -1, size: int, step: int = 1) -> Any:
    """Windows of an axis, their elements along a new last one."""
    axis = dim % x.ndim
    starts = range(0, x.shape[axis] - size + 1, step)
    before = (slice(None),) * axis
    return wg.stack([wg.moveaxis(x[(*before, slice(at, at + size))], axis, -1) for at in starts], axis=axis)


@operator("QEmbedLayerNormalization", domain=MICROSOFT)
def qembed_layer_normalization(
    words: Any,
    segments: Any,
    word_embedding: Any,
    position_embedding: Any,
    segment_embedding: Any,
    gamma: Any,
    beta: Any,
    mask: Any,
    word_scale: Any,
    position_scale: Any,
    segment_scale: Any,
    gamma_scale: Any,
    beta_scale: Any,
    word_zero: Any,
    position_zero: Any,
    segment_zero: Any,
    gamma_zero: Any,
    beta_zero: Any,
    *,
    epsilon: float = 1e-12,
) -> Any:
    segment = None if segment_embedding is None else real(segment_embedding, segment_scale, segment_zero)
    tables = (
        real(word_embedding, word_scale, word_zero),
        real(position_embedding, position_scale, position_zero),
    )
    scales = real(gamma, gamma_scale, gamma_zero), real(beta, beta_scale, beta_zero)
    return embed_layer_normalization(words, segments, *tables, segment, *scales, mask, epsilon=epsilon)
