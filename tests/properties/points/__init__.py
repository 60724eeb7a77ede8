"""Functions at the points where they go wrong: infinities, NaN, zeros of both signs, limits, ties, kinks.

In: a seed and a device. Out: what is wrong, against NumPy, or the empty text. Programs of several calls stay
where numbers are small and slopes are plain; here one function at a time meets what is not.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.properties.helpers import AnyDevice, differences
from tests.properties.points import buffers, folds, layers, maps, moves, order, shared, shortage, slopes
from tests.properties.points.drawer import Cases, Points

__all__ = ["ROWS", "Points", "difference", "wrong"]

# name → how often, the cases
ROWS: dict[str, tuple[float, Callable[[Points], Cases]]] = {
    "maps": (8, maps.maps),
    "moves": (3, moves.moves),
    "bools": (1, maps.bools),
    "folds": (2, folds.folds),
    "long": (1, folds.long),
    "empty": (0.5, folds.empty),
    "order": (2, order.order),
    "best": (0.5, order.best),
    "scatters": (1, order.scatters),
    "norms": (1, layers.norms),
    "windows": (1, layers.windows),
    "attention": (1, layers.attention),
    "kinks": (3, slopes.kinks),
    "slopes": (1, slopes.slopes),
    "pool": (0.5, slopes.pool),
    "products": (1, layers.products),
    "kernel": (1.5, buffers.kernel),
    "shared": (2, shared.shared),
    "state": (1, buffers.state),
    "again": (2, buffers.again),
    "keeping": (0.5, buffers.keeping),
    "short": (1, shortage.short),
    "twice": (0.5, order.twice),
}


def difference(seed: int, device: AnyDevice) -> str:
    """What is wrong with some functions at special points; the empty text: nothing."""
    shares = np.array([share for share, _ in ROWS.values()])
    at = int(np.random.default_rng((seed, 1)).choice(len(ROWS), p=shares / shares.sum()))
    return wrong(list(ROWS)[at], seed, device)


def wrong(name: str, seed: int, device: AnyDevice) -> str:
    """The same of one row."""
    try:
        lines = differences(lambda: ROWS[name][1](Points(seed, device)), may_flush=device.name != "cpu")
    except Exception as error:
        return f"{name}: {type(error).__name__}: {' '.join(str(error).split())}"
    return f"{name}: " + "; ".join(lines[:4]) if lines else ""
