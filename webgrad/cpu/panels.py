"""Products with a matrix that is stored in few bytes: threads widen it panel by panel, in their caches.

In: floats, and a function that writes rows of the matrix as float32. Out: the product, by BLAS. The
invariant: a thread never holds more of the matrix than `PANEL` elements, or one row, and how its rows are cut
into panels follows from its shape alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..arrays import Array, np
from ..runtime.threads import Scratch, share
from .blas import is_controlled, single_threaded

__all__ = ["multiply_panels", "panel_rows"]

PANEL = 1 << 18  # elements that a thread widens before BLAS has them
_FLOAT = np.dtype(np.float32)
_scratch = Scratch()


def panel_rows(columns: int) -> int:
    """Rows of a panel."""
    return max(1, PANEL // max(columns, 1))


def multiply_panels(left: Array, unpack: Callable[[int, Array], None], out: Array) -> None:
    """out = left @ matrix.T, for (m, k) and (m, n); `unpack(first, panel)` writes rows from `first` on."""
    n, k = out.shape[1], left.shape[1]
    step = panel_rows(k)

    def work(starts: Iterator[int]) -> None:
        for first in starts:
            rows = min(step, n - first)
            panel = _scratch.array(0, (rows, k), _FLOAT, 4 * step * k)
            unpack(first, panel)
            np.matmul(left, panel.T, out=out[:, first : first + rows])

    if is_controlled():
        with single_threaded():
            share(work, range(0, n, step))
    else:  # BLAS has threads of its own
        work(iter(range(0, n, step)))
