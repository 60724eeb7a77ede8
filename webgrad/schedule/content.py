"""What a kernel computes for a node that is not stored: what the rules of fusion know of it, and no more.

In: nothing of a graph but numbers of nodes. Out: a record, which `fuse.py` makes and others read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .axes import Axes
from .size import NO_LOADS, Loads

__all__ = ["Content", "ContentKind"]

ContentKind = Literal["map", "rows", "contract", "attend"]


@dataclass(frozen=True, slots=True)
class Content:
    """What a kernel computes for a node that is not stored.

    `rows` are the axes of the node that the folds inside depend on; None: there are no folds.
    """

    kind: ContentKind
    cost: int
    reads: frozenset[int]
    rows: Axes | None = None
    center: int = -1
    scalars: frozenset[int] = frozenset()
    inside: frozenset[int] = frozenset()  # the nodes it computes, each once
    nesting: int = 0  # how often an index is computed from an index
    loads: Loads = NO_LOADS  # where it loads what it reads
    size: int = 0  # of the kernel's text
