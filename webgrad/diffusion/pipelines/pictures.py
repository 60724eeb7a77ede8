"""Pictures between tensors of values from -1 to 1 and arrays of bytes, as files and screens have them."""

from __future__ import annotations

from typing import Any

import webgrad as wg

from ...arrays import Array, np

__all__ = ["as_bytes", "as_values", "resized"]


def as_bytes(values: wg.Tensor) -> Array:
    """(n, channels, height, width) from -1 to 1 as bytes (n, height, width, channels)."""
    unit = wg.clip(values.astype(wg.float32) * 0.5 + 0.5, 0.0, 1.0)
    whole = wg.round(unit * 255.0).astype(wg.uint8)
    return whole.permute(0, 2, 3, 1).numpy()


def as_values(picture: Any, device: Any = None) -> wg.Tensor:
    """A picture (height, width, channels) of bytes, or of floats from 0 to 1, as (1, channels, …) from -1."""
    array = np.asarray(picture)
    if array.ndim == 2:
        array = np.stack([array] * 3, axis=-1)
    if array.ndim != 3 or array.shape[2] not in (3, 4):
        raise wg.ShapeError(f"a picture is (height, width) or (height, width, 3), not {array.shape}")
    unit = array[:, :, :3].astype(np.float32) / (255.0 if array.dtype == np.uint8 else 1.0)
    return wg.asarray((unit * 2 - 1).transpose(2, 0, 1)[None].copy(), device=device)


def resized(values: wg.Tensor, height: int, width: int) -> wg.Tensor:
    """A picture in another size."""
    if tuple(values.shape[2:]) == (height, width):
        return values
    found: wg.Tensor = wg.nn.functional.interpolate(
        values, size=(height, width), mode="bilinear", antialias=True
    )
    return found
