"""Pictures between tensors of values from -1 to 1 and arrays of bytes, as files and screens have them."""

from __future__ import annotations

from typing import Any

import webgrad as wg

from ...arrays import Array, np

__all__ = ["as_bytes", "as_hole", "as_values", "resized"]


def as_bytes(values: wg.Tensor) -> Array:
    """(n, channels, height, width) from -1 to 1 as bytes (n, height, width, channels)."""
    unit = wg.clip(values.astype(wg.float32) * 0.5 + 0.5, 0.0, 1.0)
    whole = wg.round(unit * 255.0).astype(wg.uint8)
    return whole.permute(0, 2, 3, 1).numpy()


def as_values(picture: Any, device: Any = None) -> wg.Tensor:
    """A picture of integers from 0 to 255, or of others from 0 to 1, as (1, 3, height, width) from -1 to 1.

    Its shape is (height, width), or with 1, 3 or 4 channels; what is transparent is on white.
    """
    array = np.asarray(picture)
    array = array[:, :, None] if array.ndim == 2 else array
    if array.ndim != 3 or array.shape[2] not in (1, 3, 4) or not array.size:
        raise wg.ShapeError(f"a picture is (height, width) or (height, width, 3), not {array.shape}")
    most = 255 if array.dtype.kind in "iu" else 1
    _check_within(array, most, "a picture")
    unit = array.astype(np.float32) / most
    if unit.shape[2] == 4:
        colours, opacity = unit[:, :, :3], unit[:, :, 3:]
        unit = colours * opacity + (1 - opacity)
    unit = np.broadcast_to(unit, (*unit.shape[:2], 3))
    return wg.asarray((unit * 2 - 1).transpose(2, 0, 1)[None].copy(), device=device)


def as_hole(mask: Any, device: Any = None) -> wg.Tensor:
    """A mask as (1, 1, height, width): 1 where it is above half of 1, or of 255 if any of it is above 1.

    Its shape is (height, width), or with 1 or 3 channels, whose mean counts.
    """
    array = np.asarray(mask)
    array = array[:, :, None] if array.ndim == 2 else array
    if array.ndim != 3 or array.shape[2] not in (1, 3) or not array.size:
        raise wg.ShapeError(f"a mask is (height, width) or (height, width, 3), not {array.shape}")
    _check_within(array, 255, "a mask")
    hole = array.mean(axis=2) > (0.5 if array.max() <= 1 else 127.5)
    return wg.asarray(hole.astype(np.float32)[None, None], device=device)


def _check_within(array: Array, most: int, what: str) -> None:
    if array.dtype.kind not in "biuf":
        raise wg.ArgumentError(f"{what} is of numbers, not of {array.dtype}")
    if not ((array >= 0) & (array <= most)).all():
        low, high = array.min(), array.max()
        raise wg.ArgumentError(f"{what} of {array.dtype} has values from 0 to {most}, not {low} to {high}")


def resized(values: wg.Tensor, height: int, width: int) -> wg.Tensor:
    """A picture in another size."""
    if tuple(values.shape[2:]) == (height, width):
        return values
    found: wg.Tensor = wg.nn.functional.interpolate(
        values, size=(height, width), mode="bilinear", antialias=True
    )
    return found
