"""Products with quantised blocks, and their weights, as native code: which form, which fields.

In: a group around a `matmul_blocks`, or of a `decode`. Out: a `Program`, and the kernel whose buffers and
scalars it has. Few rows are multiplied with blocks where they lie, at the speed of memory; for more, weights
are unpacked a few rows at a time, so that these are never all in memory.
"""

from __future__ import annotations

from ..graph.snapshot import Snapshot
from ..lower.ir import Kernel, Size
from ..lower.lane_blocks import BlockLowering, lower_weights
from ..native.emit import Field, Program, fields_of, hole_text
from ..native.processor import Processor
from ..native.templates.block_tiles import tile_of_rows, tiled_strips, tiled_text
from ..native.templates.blocks import INDEX, packed_text, weights_text
from ..native.templates.formats import FORMATS
from ..native.templates.gemm import Blocks, divided
from ..native.templates.operands import Field as At
from ..native.templates.operands import Tile
from ..native.templates.thin import MOST_FEW
from ..native.text import LANES, Function, module
from ..runtime.threads import cores
from ..schedule.plan import Group
from .product_programs import assembled, tile_for

__all__ = ["block_program", "weights_program"]

_UNITS = 8  # for each thread
_STRIPS = 16, 512  # rows of weights of a unit


def block_program(graph: Snapshot, group: Group, processor: Processor) -> tuple[Program, Kernel]:
    """A product with blocks and all that is fused with it."""
    lowering = BlockLowering(graph, group)
    name, m, n, k = lowering.format, lowering.m, lowering.n, lowering.k
    tile = tile_for(lowering.sums, processor)
    if m <= _most_few(processor):
        at_a = lowering.at_a
        direct = at_a is not None and at_a.dtype is lowering.sums and at_a.strides[1:] == (k, 1)
        texts = [packed_text(name, m, processor, direct=direct)]
        division = _strips(tile, m, n, k, cores())
        return assembled(lowering.product((1, 0)), tile, (int(not direct), 0), division, texts, processor)
    tile = tile_of_rows(tile, m)
    division = tiled_strips(tile, FORMATS[name].weights, m, n, k, cores())
    heights = tile.width, 0
    texts = [tiled_text(tile, name, processor)]
    return assembled(lowering.product(heights), tile, heights, division, texts, processor)


def _most_few(processor: Processor) -> int:
    """Rows up to which blocks are multiplied where they lie; no fewer than with other weights."""
    return 12 if processor.register_bytes == 64 else MOST_FEW


def _strips(tile: Tile, m: int, n: int, k: int, threads: int) -> Blocks:
    """How to divide x (m, k) @ blocks (n, k).T: strips of rows of blocks."""
    least, most = _STRIPS
    strip = min(max(n // (_UNITS * threads) // least, 1) * least, most)
    fields = {At.M: m, At.N: n, At.K: k, At.COLUMNS: strip}
    return divided(tile, fields, -(-n // strip), m * strip * k, m * (strip + k) + tile.lanes, threads)


def weights_program(graph: Snapshot, group: Group, processor: Processor) -> tuple[Program, Kernel]:
    """Weights of blocks, all or some rows."""
    made, sizes = lower_weights(graph, group), list[Size]()
    kernel, texts = made.kernel, list[str]()
    for hole in kernel.holes:
        code = Function(hole.name, INDEX)
        texts.append(hole_text(kernel, hole, code, processor, LANES, At.END, sizes))
    texts.append(weights_text(made.format, processor, indexed=bool(kernel.holes)))
    fields = [Field("number")] * (At.END - At.M)
    for place, field in (
        (At.M, Field("number", made.rows)),
        (At.N, Field("number", made.n)),
        (At.K, Field("number", made.k)),
        (At.B, Field("buffer", 0, made.words)),
        (At.C, Field("buffer", 0, made.result)),
    ):
        fields[place - At.M] = field
    every = (*fields, *fields_of(kernel, sizes))
    return Program(module(*texts), made.rows, 2 * made.k, every), kernel
