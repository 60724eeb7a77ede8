"""How windows go over the axes after the channels: the attributes that convolutions and pooling share.

In: attributes as files give them, empty where they are absent. Out: one number, or one pair of paddings, for
each axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import webgrad as wg

__all__ = ["Sizes", "Widths", "by_axis", "padded", "same_widths", "spans_of", "widths_of"]

Sizes = tuple[int, ...]
Widths = tuple[tuple[int, int], ...]


def by_axis(name: str, given: Sequence[int], count: int, default: int = 1) -> Sizes:
    """An attribute with a number for each axis."""
    if given and len(given) != count:
        raise wg.ModelFileError(f"{name} has a number for each of {count} axes, not {tuple(given)}")
    return tuple(given) or (default,) * count


def spans_of(kernel: Sequence[int], dilations: Sequence[int]) -> Sizes:
    """From the first to the last element of a window."""
    return tuple((size - 1) * apart + 1 for size, apart in zip(kernel, dilations, strict=True))


def widths_of(
    sizes: Sequence[int], spans: Sequence[int], strides: Sequence[int], pads: Sequence[int], auto_pad: str
) -> Widths:
    """The padding before and after each axis."""
    count = len(sizes)
    if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        totals = [
            max((-(-size // step) - 1) * step + span - size, 0)
            for size, span, step in zip(sizes, spans, strides, strict=True)
        ]
        return same_widths(totals, auto_pad)
    if auto_pad not in ("NOTSET", "VALID", ""):
        raise wg.ModelFileError(f"auto_pad is NOTSET, VALID, SAME_UPPER or SAME_LOWER, not {auto_pad!r}")
    found = by_axis("pads", pads if auto_pad != "VALID" else (), 2 * count, 0)
    return tuple(zip(found[:count], found[count:], strict=True))


def same_widths(totals: Sequence[int], auto_pad: str) -> Widths:
    """Padding shared by both ends, of odd numbers more at the end, or at the start unless it is SAME_UPPER.

    Where less than nothing is to be added, that is at the end.
    """
    more = [max(each, 0) for each in totals]
    lower = [each // 2 if auto_pad == "SAME_UPPER" else each - each // 2 for each in more]
    return tuple((before, total - before) for before, total in zip(lower, totals, strict=True))


def padded(x: Any, widths: Widths, value: float = 0) -> Any:
    """x with more elements around its axes after the channels."""
    if not any(map(any, widths)):
        return x
    return wg.pad(x, ((0, 0), (0, 0), *widths), constant_values=value)
