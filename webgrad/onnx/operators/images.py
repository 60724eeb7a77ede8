"""Images: sampled at places, put together of columns, cropped, with channels as pixels, read from files."""

from __future__ import annotations

import importlib
import io
import math
from collections.abc import Sequence
from typing import Any

import webgrad as wg

from ...arrays import missing, np
from .table import operator
from .values import bounded
from .windows import Sizes, by_axis, spans_of

# Places


@operator("GridSample", 16)
def grid_sample(
    x: Any, grid: Any, *, align_corners: int = 0, mode: str = "bilinear", padding_mode: str = "zeros"
) -> Any:
    name = {"linear": "bilinear", "cubic": "bicubic"}.get(mode, mode)
    return wg.nn.functional.grid_sample(x, grid, name, padding_mode, bool(align_corners))


@operator("AffineGrid", 20, host="size")
def affine_grid(theta: Any, size: Any, *, align_corners: int = 0) -> Any:
    return wg.nn.functional.affine_grid(theta, [int(each) for each in size], bool(align_corners))


# Columns


@operator("Col2Im", 18, host="image_shape block_shape")
def columns_to_image(
    x: Any,
    image_shape: Any,
    block_shape: Any,
    *,
    dilations: Sequence[int] = (),
    pads: Sequence[int] = (),
    strides: Sequence[int] = (),
) -> Any:
    """Windows added up where they lie; padding is cut off."""
    kernel, count = tuple(int(each) for each in block_shape), len(block_shape)
    steps, apart = by_axis("strides", strides, count), by_axis("dilations", dilations, count)
    widths = by_axis("pads", pads, 2 * count, 0)
    sizes = [int(each) + widths[at] + widths[at + count] for at, each in enumerate(image_shape)]
    y = wg.fold(x, sizes, kernel, apart, 0, steps) if count == 2 else _folded(x, sizes, kernel, steps, apart)
    return y[(..., *(slice(widths[at], size - widths[at + count]) for at, size in enumerate(sizes)))]


def _folded(x: Any, sizes: Sequence[int], kernel: Sizes, steps: Sizes, apart: Sizes) -> Any:
    """By a transposed convolution, whose weight puts each element of a window in its place."""
    count, taps = len(kernel), math.prod(kernel)
    spans = spans_of(kernel, apart)
    windows = [(size - span) // step + 1 for size, span, step in zip(sizes, spans, steps, strict=True)]
    channels = x.shape[1] // taps
    bounded(taps, taps, channels)
    one = np.tile(np.eye(taps).reshape((taps, 1, *kernel)), (channels, *[1] * (count + 1)))
    weight = wg.asarray(one, x.dtype, device=x.device)
    function = {1: wg.conv_transpose1d, 3: wg.conv_transpose3d}[count]
    y = function(x.reshape((*x.shape[:2], *windows)), weight, None, steps, 0, 0, channels, apart)
    after = [(0, want - size) for want, size in zip(sizes, y.shape[2:], strict=True)]
    return wg.pad(y, [(0, 0), (0, 0), *after])


# Sizes


@operator("CenterCropPad", 18, host="shape")
def center_crop_pad(x: Any, shape: Any, *, axes: Sequence[int] = ()) -> Any:
    """The middle of x, or x in the middle of zeros; of an odd difference less is at the start."""
    places = [each % x.ndim for each in axes] or list(range(x.ndim))
    cut, around = [slice(None)] * x.ndim, [(0, 0)] * x.ndim
    for at, want in zip(places, map(int, shape), strict=True):
        apart = abs(x.shape[at] - want)
        if want < x.shape[at]:
            cut[at] = slice(apart // 2, apart // 2 + want)
        else:
            around[at] = (apart // 2, apart - apart // 2)
    return wg.pad(x[tuple(cut)], around)


@operator("DepthToSpace")
def depth_to_space(x: Any, *, blocksize: int, mode: str = "DCR") -> Any:
    """Channels become pixels: those of one pixel's block are apart (DCR), or beside each other (CRD)."""
    samples, channels, height, width = x.shape
    each = channels // (blocksize * blocksize)
    if mode == "CRD":
        return wg.nn.functional.pixel_shuffle(x, blocksize)
    blocks = x.reshape((samples, blocksize, blocksize, each, height, width))
    return blocks.permute(0, 3, 4, 1, 5, 2).reshape((samples, each, height * blocksize, width * blocksize))


@operator("SpaceToDepth")
def space_to_depth(x: Any, *, blocksize: int, mode: str = "DCR") -> Any:
    samples, channels, height, width = x.shape
    if mode == "CRD":
        return wg.nn.functional.pixel_unshuffle(x, blocksize)
    rows, columns = height // blocksize, width // blocksize
    blocks = x.reshape((samples, channels, rows, blocksize, columns, blocksize))
    return blocks.permute(0, 3, 5, 1, 2, 4).reshape((samples, channels * blocksize**2, rows, columns))


# Files


@operator("ImageDecoder", 20, host="encoded_stream")
def decode_image(encoded_stream: Any, *, pixel_format: str = "RGB") -> Any:
    """The pixels of an image file, (height, width, channels) of bytes."""
    try:
        pillow = importlib.import_module("PIL.Image")
    except ImportError:
        raise missing(
            "ImageDecoder", "give the rest of the model the pixels", package="pillow", called="Pillow"
        ) from None
    kinds = {"RGB": "RGB", "BGR": "RGB", "Grayscale": "L"}
    if pixel_format not in kinds:
        raise wg.ModelFileError(f"pixel_format is RGB, BGR or Grayscale, not {pixel_format!r}")
    try:
        image = pillow.open(io.BytesIO(encoded_stream.tobytes())).convert(kinds[pixel_format])
    except (OSError, ValueError, pillow.DecompressionBombError) as error:
        raise wg.ModelFileError(
            f"these {encoded_stream.size} bytes are no image that Pillow reads: {error}"
        ) from error
    pixels = np.asarray(image)
    return {"BGR": pixels[..., ::-1], "Grayscale": pixels[..., None]}.get(pixel_format, pixels)
