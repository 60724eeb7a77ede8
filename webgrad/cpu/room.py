"""Room for what lies between the steps of a plan: where each value of a run begins in one piece of memory.

In: how large each value is, and which values each step has. Out: the bytes of all, and the place of each. The
invariant: values that are needed at the same time lie apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["placed"]

ALIGNMENT = 64  # bytes


def placed(sizes: Mapping[Any, int], steps: Sequence[Sequence[Any]]) -> tuple[int, dict[Any, int]]:
    """The bytes of a room for values that only a run needs, and where each begins: those that are needed at
    the same time, from the first to the last step that has them, lie apart.
    """
    life: dict[Any, tuple[int, int]] = {}
    for at, step in enumerate(steps):
        for each in step:
            if each in sizes:
                life[each] = (life.get(each, (at, at))[0], at)
    placed: dict[Any, int] = {}
    total = 0
    for each in sorted(life, key=lambda one: -sizes[one]):
        first, last = life[each]
        beside = [one for one in placed if life[one][0] <= last and first <= life[one][1]]
        start = 0
        for one in sorted(beside, key=placed.__getitem__):
            if placed[one] - start >= sizes[each]:
                break
            start = max(start, -(-(placed[one] + sizes[one]) // ALIGNMENT) * ALIGNMENT)
        placed[each] = start
        total = max(total, start + sizes[each])
    return total, placed
