"""Functions that move elements between channels and places, pad places, or compare neighbouring channels.

In: a tensor (N, C, …). Out: one with other sizes; PyTorch's names, arguments and order of widths.
"""

from __future__ import annotations

from collections.abc import Sequence

import webgrad as wg

from .checks import check_floats, check_tensor

__all__ = ["channel_shuffle", "local_response_norm", "pad", "pixel_shuffle", "pixel_unshuffle"]

_MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge"}


def pad(x: wg.Tensor, pad: int | Sequence[int], mode: str = "constant", value: float = 0.0) -> wg.Tensor:
    """Padded by (left, right, top, bottom, …): pairs from the last axis on; negative widths cut off.

    Modes: constant, reflect, replicate, circular.

    >>> wg.nn.functional.pad(wg.ones((1, 2)), (1, 0), value=5.0).tolist()
    [[5.0, 1.0, 1.0]]
    """
    check_tensor("pad", x)
    widths = [pad] if isinstance(pad, int) else list(pad)
    if len(widths) % 2 or len(widths) > 2 * x.ndim:
        raise wg.ShapeError(
            f"pad: widths are pairs (before, after), the last axis first, at most {x.ndim} of them for x "
            f"{x.shape}; not {tuple(widths)}"
        )
    if mode not in (*_MODES, "circular"):
        names = ", ".join(map(repr, (*_MODES, "circular")))
        raise wg.ArgumentError(f"pad: mode must be one of {names}, not {mode!r}")
    pairs = [(0, 0)] * (x.ndim - len(widths) // 2) + list(zip(widths[-2::-2], widths[::-2], strict=True))
    cut = tuple(
        slice(max(-before, 0), size - max(-after, 0))
        for (before, after), size in zip(pairs, x.shape, strict=True)
    )
    longer = [(max(before, 0), max(after, 0)) for before, after in pairs]
    if mode == "replicate" and 0 not in x.shape:  # edges are those of the whole, which may be cut off after
        x = wg.pad(x, longer, mode=_MODES[mode])
        inside = [
            slice(max(-before, 0), size - max(-after, 0))
            for (before, after), size in zip(pairs, x.shape, strict=True)
        ]
        return x[tuple(inside)] if any(width < 0 for width in widths) else x
    if any(width < 0 for width in widths):
        x = x[cut]
    if mode == "constant":
        return wg.pad(x, longer, constant_values=value)
    _check_room(x, longer, mode)
    if mode == "circular":
        return _around(x, longer)
    return wg.pad(x, longer, mode=_MODES[mode])


def _check_room(x: wg.Tensor, pairs: Sequence[tuple[int, int]], mode: str) -> None:
    """An axis is reflected once at most, and goes round once at most."""
    most = {"reflect": 1, "circular": 0, "replicate": None}[mode]
    for axis, pair in enumerate(pairs):
        if most is not None and max(pair) > max(x.shape[axis] - most, 0):
            raise wg.ShapeError(
                f"pad with mode={mode!r}: axis {axis} of x {x.shape} is padded by {pair}, and at most by "
                f"{x.shape[axis] - most}"
            )


def _around(x: wg.Tensor, pairs: Sequence[tuple[int, int]]) -> wg.Tensor:
    for axis, (before, after) in enumerate(pairs):
        if before or after:
            whole = (slice(None),) * axis
            size = x.shape[axis]
            x = wg.concat(
                [x[(*whole, slice(size - before, size))], x, x[(*whole, slice(0, after))]], axis=axis
            )
    return x


def pixel_shuffle(x: wg.Tensor, upscale_factor: int) -> wg.Tensor:
    """(…, C r², H, W) → (…, C, H r, W r): channels become pixels.

    >>> wg.nn.functional.pixel_shuffle(wg.arange(4.0).reshape(1, 4, 1, 1), 2).tolist()
    [[[[0.0, 1.0], [2.0, 3.0]]]]
    """
    r = _factor("pixel_shuffle", x, upscale_factor)
    *batch, channels, height, width = x.shape
    if channels % (r * r):
        raise wg.ShapeError(
            f"pixel_shuffle: the {channels} channels of x {x.shape} are not a multiple of {r}² = {r * r}"
        )
    count = len(batch)
    split = x.reshape((*batch, channels // (r * r), r, r, height, width))
    order = (*range(count), count, count + 3, count + 1, count + 4, count + 2)
    return split.permute(order).reshape((*batch, channels // (r * r), height * r, width * r))


def pixel_unshuffle(x: wg.Tensor, downscale_factor: int) -> wg.Tensor:
    """(…, C, H r, W r) → (…, C r², H, W): pixels become channels.

    >>> wg.nn.functional.pixel_unshuffle(wg.zeros((1, 1, 4, 4)), 2).shape
    (1, 4, 2, 2)
    """
    r = _factor("pixel_unshuffle", x, downscale_factor)
    *batch, channels, height, width = x.shape
    if height % r or width % r:
        raise wg.ShapeError(f"pixel_unshuffle: the pixels of x {x.shape} do not make squares of {r} by {r}")
    count = len(batch)
    split = x.reshape((*batch, channels, height // r, r, width // r, r))
    order = (*range(count), count, count + 2, count + 4, count + 1, count + 3)
    return split.permute(order).reshape((*batch, channels * r * r, height // r, width // r))


def _factor(name: str, x: wg.Tensor, factor: int) -> int:
    check_tensor(name, x)
    if x.ndim < 3:
        raise wg.ShapeError(f"{name} takes x (…, C, H, W), not {x.shape}")
    if factor < 1:
        raise wg.ArgumentError(f"{name}: the factor is 1 or more, not {factor}")
    return factor


def channel_shuffle(x: wg.Tensor, groups: int) -> wg.Tensor:
    """The channels (axis 1) of groups taken in turn: a, b, c, d of two groups become a, c, b, d.

    >>> wg.nn.functional.channel_shuffle(wg.arange(4.0).reshape(1, 4, 1), 2).flatten().tolist()
    [0.0, 2.0, 1.0, 3.0]
    """
    check_tensor("channel_shuffle", x)
    if x.ndim < 3 or groups < 1 or x.shape[1] % groups:
        raise wg.ShapeError(
            f"channel_shuffle: the channels of x {x.shape}, axis 1, do not make {groups} groups"
        )
    samples, channels, *sizes = x.shape
    split = x.reshape((samples, groups, channels // groups, *sizes))
    return split.swapaxes(1, 2).reshape(x.shape)


def local_response_norm(
    x: wg.Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> wg.Tensor:
    """x / (k + alpha · m)^beta, m being the mean of x² over `size` neighbouring channels.

    >>> wg.nn.functional.local_response_norm(wg.ones((1, 3, 2)), 1, alpha=1.0, beta=1.0).tolist()
    [[[0.5, 0.5], [0.5, 0.5], [0.5, 0.5]]]
    """
    check_floats("local_response_norm", x)
    if x.ndim < 3 or size < 1:
        raise wg.ShapeError(
            f"local_response_norm takes x (N, C, …) and a size from 1 on, not {x.shape}, {size}"
        )
    wide = x.astype(x.dtype.wide, copy=False)
    widths = [(0, 0)] * x.ndim
    widths[1] = (size // 2, (size - 1) // 2)
    squares = wg.pad(wide * wide, widths)
    total = sum((squares[:, at : at + x.shape[1]] for at in range(1, size)), start=squares[:, : x.shape[1]])
    return (wide / (total * (alpha / size) + k) ** beta).astype(x.dtype, copy=False)
