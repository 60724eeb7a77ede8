"""Matrix products of a graph as native code: which form, which functions for its holes, which fields.

In: a group around a contraction, lowered by `lower/lane_products.py`. Out: a `Program`. Few rows, or few
columns, with a matrix that lies in memory are thin (`thin.py`); all others are tiled (`gemm.py`). Operands in
memory are read by the standard functions of `operands.py`, others by holes.
"""

from __future__ import annotations

from dataclasses import replace

from ..dtypes import DType
from ..lower.ir import Kernel, Size
from ..lower.lane_attention import Rows
from ..lower.lane_products import Lowering, Product, Strided
from ..native.emit import Field, Program, fields_of, hole_text
from ..native.processor import Processor
from ..native.templates.gemm import Blocks, blocks, gemm_text, pack_text, packing
from ..native.templates.operands import LOAD, STORE, Tile, filled_text, load_text, store_text
from ..native.templates.operands import Field as At
from ..native.templates.thin import is_thin, strips, thin_text
from ..native.text import LANES, Function, module
from ..runtime.threads import cores

__all__ = ["assembled", "packing_program", "place_of", "product_program", "tile_for"]

_KINDS = {"f32": "float", "f64": "double", "i32": "i32", "u32": "i32", "i64": "i64", "u64": "i64"}


def tile_for(sums: DType, processor: Processor) -> Tile:
    """The tile for sums of a dtype."""
    return Tile.of(
        _KINDS[sums.compute],
        processor.register_bytes,
        processor.registers,
        has_fma=processor.has_fma,
        has_halves=processor.has_halves,
    )


def product_program(
    lowering: Lowering, processor: Processor, *, packed: bool = False
) -> tuple[Program, Kernel]:
    """A contraction with all that is fused with it, and the kernel whose buffers and scalars it has. The
    matrix that its program names as `packs` may be packed before (`packing_program`): the panels are then one
    more buffer.
    """
    tile = tile_for(lowering.sums, processor)
    sizes = lowering.m, lowering.n, lowering.k, lowering.batch, cores()
    if lowering.at_b is not None and is_thin(lowering.m, lowering.at_b.strides[1:]):
        product = lowering.product((1, 1))
        texts = [thin_text(tile, lowering.at_b.dtype.name)]
        return assembled(product, tile, (1, 0), strips(tile, *sizes), texts, processor)
    if lowering.at_a is not None and is_thin(lowering.n, lowering.at_a.strides[1:]):
        product = lowering.product((1, 1))
        texts = [thin_text(tile, lowering.at_a.dtype.name, swapped=True)]
        return assembled(product, tile, (0, 1), strips(tile, *sizes, swapped=True), texts, processor)
    if lowering.n < min(tile.width, lowering.m):  # a vector of columns would be empty for the most part
        lowering.swap()
        sizes = lowering.m, lowering.n, lowering.k, lowering.batch, cores()
    heights = (tile.height, tile.width)
    product = lowering.product(heights)
    second = product.b
    if packed and second is not None:
        panels = replace(_panels(tile, product, second), buffer=len(product.kernel.buffers))
        product, heights = replace(product, b=panels), (tile.height, 0)
    whole = lowering.n % tile.width == 0
    texts = [gemm_text(tile, direct=product.c is not None, packed=packed, whole=whole)]
    made, kernel = assembled(product, tile, heights, blocks(tile, *sizes, packed=packed), texts, processor)
    if second is None or not product.k or lowering.swapped:
        return made, kernel
    sizes_of_panels = (product.n, product.k, product.batch if second.strides[0] else 1)
    return made._replace(
        packs=(second.buffer, replace(second, buffer=0), product.sums, sizes_of_panels)
    ), kernel


def packing_program(lowering: Lowering, processor: Processor) -> tuple[Program, int]:
    """The packing of a product's second operand, and the bytes of its panels: the program's buffers are where
    the operand lies, and where the panels go.
    """
    tile = tile_for(lowering.sums, processor)
    product = lowering.product((tile.height, tile.width))
    assert product.b is not None
    panels = _panels(tile, product, product.b)
    alone = replace(product, a=None, b=replace(product.b, buffer=0), c=replace(panels, buffer=1))
    division = packing(tile, product.n, product.k, product.batch if panels.strides[0] else 1)
    fields = _fields(alone, division)
    texts = [load_text(tile, "load_b", tile.width, product.b.dtype.name), pack_text(tile)]
    return Program(module(*texts), division.units, division.cost, tuple(fields)), division.scratch


def _panels(tile: Tile, product: Product, second: Strided) -> Strided:
    """Where the panels of a packed operand are: how many elements apart for a next batch, and a next k."""
    wide = -(-product.n // tile.width) * tile.width
    return Strided(second.buffer, product.sums, 0, (product.k * wide if second.strides[0] else 0, wide, 0))


def assembled(
    product: Product,
    tile: Tile,
    heights: tuple[int, int],
    division: Blocks,
    texts: list[str],
    processor: Processor,
) -> tuple[Program, Kernel]:
    """The text of a form with its holes; an operand whose panels have the height 0 is read by the form."""
    kernel, sizes = product.kernel, list[Size]()
    holes = {each.name: each for each in kernel.holes}
    operands = zip(("load_a", "load_b"), (product.a, product.b), heights, product.along_k, strict=True)
    for name, place, height, along_k in operands:
        if height and place is not None:
            texts.append(load_text(tile, name, height, place.dtype.name))
        elif height:
            fill = name.replace("load", "fill")
            lanes = LANES if along_k else min(2 * LANES, 1 << (height - 1).bit_length())
            texts.append(
                hole_text(kernel, holes[name], Function(fill, LOAD), processor, lanes, At.END, sizes)
            )
            texts.append(filled_text(tile, name, height, along_k=along_k))
    if product.c is not None:
        texts.append(store_text(tile))
    else:
        finish = Function("finish", STORE)
        texts.append(hole_text(kernel, holes["finish"], finish, processor, LANES, At.END, sizes))
    fields = [*_fields(product, division), *fields_of(kernel, sizes)]
    fields[At.SCRATCH - At.M] = Field("scratch")
    made = Program(module(*texts), division.units, division.cost, tuple(fields), division.scratch)
    return made, kernel


def _fields(product: Product, division: Blocks) -> list[Field]:
    """The fields that all forms have."""
    known = {**division.fields, At.SHARES_A: int(product.shares_a)}
    fields = [Field("number", known.get(at, 0)) for at in list(At)[: At.A - At.M]]
    return [*fields, *place_of(product.a, 3), *place_of(product.b, 3), *place_of(product.c, 3)[:3]]


def place_of(operand: Strided | Rows | None, axes: int) -> list[Field]:
    """Where an operand lies: its address and strides."""
    if operand is None:
        return [Field("number")] * (1 + axes)
    first = Field("buffer", operand.start * operand.dtype.itemsize, operand.buffer)
    return [first, *[Field("number", each) for each in operand.strides]]
