"""Which axes of a result a value depends on, followed through the ops that move axes.

In: a node, and a set of axes of one of its inputs. Out: the same set as axes of the node, or None where they
mix.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..graph.node import Signature

Axes = frozenset[int]


def nontrivial(shape: Sequence[int]) -> Axes:
    """The axes with more than one element, or none."""
    return frozenset(axis for axis, size in enumerate(shape) if size != 1)


def through_map(sig: Signature, source: Signature, axes: Axes) -> Axes:
    """Axes of a broadcast operand as axes of the result."""
    shift = len(sig.shape) - len(source.shape)
    return frozenset(axis + shift for axis in axes)


def through_move(sig: Signature, source: Signature, axes: Axes) -> Axes | None:
    """Axes of what is moved as axes of the result; None where a reshape mixes them with others."""
    name = sig.op.name
    if name == "permute":
        return frozenset(at for at, axis in enumerate(sig.attributes[0]) if axis in axes)
    if name == "expand":
        return through_map(sig, source, axes)
    if name == "reshape":
        return _through_reshape(source.shape, sig.shape, axes)
    if name == "window" and sig.attributes[0] in axes:
        return axes | {len(source.shape)}
    return axes


def _through_reshape(before: tuple[int, ...], after: tuple[int, ...], axes: Axes) -> Axes | None:
    found: set[int] = set()
    for old, new in factors(before, after):
        sizes = {axis for axis in old if before[axis] != 1}
        if sizes & axes:
            if not sizes <= axes:
                return None
            found |= {axis for axis in new if after[axis] != 1}
    return frozenset(found)


def factors(before: tuple[int, ...], after: tuple[int, ...]) -> list[tuple[range, range]]:
    """The smallest runs of axes of the two shapes that have equally many elements."""
    if 0 in before:
        return [(range(len(before)), range(len(after)))]
    stretches = []
    i = j = 0
    while i < len(before) or j < len(after):
        start, begin = i, j
        old = new = 1
        if i < len(before):
            old, i = before[i], i + 1
        if j < len(after):
            new, j = after[j], j + 1
        while old != new:
            if old < new and i < len(before):
                old, i = old * before[i], i + 1
            elif j < len(after):
                new, j = new * after[j], j + 1
            else:
                break
        stretches.append((range(start, i), range(begin, j)))
    assert math.prod(before) == math.prod(after)
    return stretches


def runs_of(axes: Sequence[int]) -> list[list[int]]:
    """Axes in runs of adjacent ones.

    >>> runs_of([0, 1, 3])
    [[0, 1], [3]]
    """
    runs: list[list[int]] = []
    for axis in axes:
        if runs and runs[-1][-1] == axis - 1:
            runs[-1].append(axis)
        else:
            runs.append([axis])
    return runs
