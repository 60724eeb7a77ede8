"""The polynomial that is nearest to points, `wg.polyfit`.

In: points. Out: coefficients, by the least squares of `lstsq`.
"""

from __future__ import annotations

import webgrad as wg
from webgrad import Tensor


def polyfit(x: Tensor, y: Tensor, deg: int, *, w: Tensor | None = None) -> Tensor:
    """The coefficients, the highest power first, of the polynomial of a degree that is nearest to points.

    y may have several columns; distances count as often as `w` says. Computed on the host.

    >>> print(wg.polyfit(wg.asarray([0.0, 1.0, 2.0]), wg.asarray([1.0, 3.0, 5.0]), 1).numpy().round(4))
    [2. 1.]
    """
    if x.ndim != 1 or y.ndim not in (1, 2) or x.shape[0] != y.shape[0] or not x.shape[0]:
        raise wg.ShapeError(
            f"polyfit: points of shapes {x.shape} and {y.shape}: as many of both, one at least"
        )
    if deg < 0:
        raise wg.ArgumentError(f"polyfit: a degree is 0 or more, not {deg}")
    kind = wg.promote(x.dtype, y.dtype)
    kind = kind if kind.kind == "f" else wg.float32
    powers, values = wg.vander(x.astype(kind), deg + 1), y.astype(kind)
    if w is not None:
        weights = w.astype(kind).reshape(-1, 1)
        powers, values = powers * weights, values * (weights if y.ndim == 2 else weights[:, 0])
    widths = wg.sqrt((powers * powers).sum(axis=0))
    found = wg.linalg.lstsq(powers / widths, values).solution
    return found / (widths.reshape(-1, 1) if y.ndim == 2 else widths)
