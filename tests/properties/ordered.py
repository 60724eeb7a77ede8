"""Cases for ops of order: every dtype, rows with few different elements, both directions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.properties.helpers import Case, wide

if TYPE_CHECKING:
    from tests.properties.cases import Maker

__all__ = ["ORDERED"]

Cases = Iterator[Case]
Array = np.ndarray[Any, Any]


def _attributes(maker: Maker, descending: bool, side: int) -> tuple[Any, ...]:
    return (
        (descending,) if maker.op.name == "sort_values" else (descending, side // 2 if descending else side)
    )


def sorts(maker: Maker) -> Cases:
    """Values, or the first places."""
    for shape in ((5, 12), (9,), (2, 300), (1, 1), (3, 0)):
        drawn = maker.draw(shape)
        few = drawn[..., np.arange(shape[-1]) % 3] if shape[-1] > 2 else drawn
        for x in (drawn, few):
            for descending in (False, True):
                label = f"{shape}, {'falling' if descending else 'rising'}"
                yield maker.case(label, [maker.plain(x)], _attributes(maker, descending, shape[-1]))
    for label, operand in maker.every_layout(((4, 30), (3, 5, 70))):
        yield maker.case(label, [operand], _attributes(maker, True, operand.value.shape[-1]))


def _line(maker: Maker, length: int) -> Array:
    """Numbers that never fall, without NaN."""
    drawn = maker.draw((length,))
    known = drawn[~np.isnan(wide(drawn))] if maker.dtype.kind == "f" else drawn
    return known[np.argsort(wide(known) if maker.dtype.kind == "f" else known, kind="stable")]


def searches(maker: Maker) -> Cases:
    """Before and behind equal elements."""
    line = maker.plain(_line(maker, 40))
    for side in ("left", "right"):
        for label, operand in maker.every_layout(((3, 50), (7,))):
            yield maker.case(f"{label} {side}", [line, operand], (side,))


def counts(maker: Maker) -> Cases:
    """Many elements, and none; bins of any width, empty ones among them, and of one width."""
    even = np.linspace(-4, 4, 9).astype(maker.dtype.numpy)
    for length in (0, 1, 900):
        x = maker.plain(maker.draw((length,)))
        yield maker.case(f"{length} elements", [x, maker.plain(_line(maker, 12))], (False,))
        yield maker.case(f"{length} elements, evenly", [x, maker.plain(even)], (True,))


ORDERED: dict[str, Callable[[Maker], Cases]] = {
    "sort_values": sorts,
    "sort_places": sorts,
    "search_places": searches,
    "bin_places": counts,
    "counts_between": counts,
}
