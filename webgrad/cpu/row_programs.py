"""Rows set at computed places as native code: a decoding step does that for each of its caches.

In: a group of one scatter. Out: a `Program` and the values behind its buffers; None for scatters that NumPy
computes.
"""

from __future__ import annotations

from ..graph.snapshot import Snapshot
from ..native.emit import Field, Program
from ..native.templates.rows import set_rows_module
from ..ops.table import TABLE
from ..schedule.plan import Group

__all__ = ["rows_program"]

_SET = TABLE["scatter_set"]


def rows_program(graph: Snapshot, group: Group) -> tuple[Program, tuple[int, ...]] | None:
    """For rows that replace others."""
    (node,) = group.outputs if len(group.outputs) == 1 else (-1,)
    if group.inside != (node,) or graph.sigs[node].op is not _SET or graph.sigs[node].attributes:
        return None
    base, index, updates = graph.inputs[node]
    kind, rows, count = graph.sigs[index].dtype, graph.sigs[node].shape[0], graph.sigs[index].size
    if kind.kind not in "iu" or kind.itemsize < 4 or not count:
        return None
    size = graph.sigs[node].nbytes // rows
    places = [Field("buffer", 0, at) for at in range(4)]
    numbers = [Field("number", each) for each in (rows, count, size)]
    text = set_rows_module(8 * kind.itemsize, signed=kind.kind == "i")
    return Program(text, 1, count * size // 4 + 1, (*places, *numbers)), (node, base, index, updates)
