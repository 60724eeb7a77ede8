"""Attention of a graph as native code: which form, which functions for its holes, which fields.

In: a group around an attend node. Out: a `Program`, and the kernel whose buffers and scalars it has. Few rows
that share keys go at the speed of memory (`attention_rows.py`); more of them are multiplied with keys by
blocks (`attention_blocks.py`). Operands in memory are read where they lie, or by the standard function of
`attention.py`, others by holes.
"""

from __future__ import annotations

from ..graph.snapshot import Snapshot
from ..lower.ir import Kernel, Size
from ..lower.lane_attention import Attention, Rows, lower_attention
from ..native.emit import Field, Program, fields_of, hole_text
from ..native.processor import Processor
from ..native.templates.attention import ALL, FINISH, LOAD, NUMBERS, At, Division, Reads, rows_text
from ..native.templates.attention_blocks import blocks_of_rows, blocks_text
from ..native.templates.attention_rows import are_few, few_rows_text, rows_division
from ..native.templates.operands import Field as First
from ..native.templates.operands import Tile
from ..native.text import LANES, Function, module
from ..runtime.threads import cores
from ..schedule.plan import Group
from .product_programs import place_of, tile_for

__all__ = ["attention_program"]

_PARAMETERS = {"numbers": NUMBERS, "finish": FINISH}


def attention_program(graph: Snapshot, group: Group, processor: Processor) -> tuple[Program, Kernel]:
    """An attend node with all that is fused with it."""
    given = lower_attention(graph, group)
    tile = tile_for(given.sums, processor)
    shape = (
        *(given.batches, given.heads, given.key_heads, given.queries),
        *(given.keys, given.columns, given.values),
    )
    if are_few(tile, given.heads // given.key_heads * given.queries):
        reads = Reads(
            _beside(given.k, given.columns % tile.lanes == 0),
            _beside(given.v, given.values % tile.lanes == 0),
            given.masked,
        )
        text, division = few_rows_text(tile, reads), rows_division(tile, reads, shape, cores())
    else:
        own = given.sums.name
        reads = Reads(
            _beside(given.k, given.k is not None and given.k.dtype.name == own),
            _beside(given.v, given.v is not None and given.v.dtype.name == own),
            given.masked,
        )
        text, division = blocks_text(tile, reads), blocks_of_rows(tile, reads, shape, cores())
    return _program(given, tile, reads, text, division, processor), given.kernel


def _beside(rows: Rows | None, fits: bool) -> str:
    """How columns are stored that a form reads where they lie: side by side."""
    return rows.dtype.name if rows is not None and fits and rows.strides[3] == 1 else ""


def _program(
    given: Attention, tile: Tile, reads: Reads, text: str, division: Division, processor: Processor
) -> Program:
    first, sizes = At.END + division.counters, list[Size]()
    texts = [text]
    operands = (("load_q", At.Q, given.q, ""), ("load_k", At.K, given.k, reads.keys))
    for name, base, rows, read in (*operands, ("load_v", At.V, given.v, reads.values)):
        if rows is not None and not read:
            texts.append(rows_text(tile, name, base, rows.dtype.name))
    for hole in given.kernel.holes:
        code = Function(hole.name, _PARAMETERS.get(hole.name, LOAD))
        texts.append(hole_text(given.kernel, hole, code, processor, LANES, first, sizes))
    numbers = division.fields | _rules(given)
    fields = [Field("number", numbers.get(at, 0)) for at in range(First.M, At.Q)]
    fields[First.SCRATCH - First.M] = Field("scratch")
    for each in (given.q, given.k, given.v):
        fields += place_of(each, 4)
    fields += [Field("number")] * division.counters
    fields += fields_of(given.kernel, sizes)
    return Program(module(*texts), division.units, division.cost, tuple(fields), division.scratch)


def _rules(given: Attention) -> dict[int, int]:
    """Which keys a query sees, as fields."""
    if not given.causal:
        return {At.SHIFT: ALL, At.WINDOW: 2 * ALL}
    return {At.SHIFT: 1, At.LATE: int(given.from_end), At.WINDOW: given.window or 2 * ALL}
