"""Products by native code: `multiply` writes, compiles and runs what a test asks for."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np

from webgrad.native.compiler import compiled
from webgrad.native.helpers import Helpers
from webgrad.native.jobs import share_text
from webgrad.native.templates.gemm import blocks, gemm_text
from webgrad.native.templates.operands import Field, Tile, load_text, store_text
from webgrad.native.templates.thin import strips, thin_text
from webgrad.native.text import Function
from webgrad.runtime.host_buffers import aligned

RNG = np.random.default_rng(12)
KINDS = {"float32": "float", "float64": "double", "int32": "i32", "int64": "i64"}
# Bytes of a register, how many there are, whether they multiply and add at once: all of these run anywhere
PROCESSORS = {
    "SSE2": (16, 16, False),
    "AVX2": (32, 16, True),
    "AVX-512": (64, 32, True),
    "NEON": (16, 32, True),
}
UNITS, COST = Field.END, Field.END + 1
MORE = Field.END + 2  # the first field of a test's own


@cache
def tile_of(dtype: str = "float32", processor: str = "AVX2") -> Tile:
    width, registers, has_fma = PROCESSORS[processor]
    return Tile.of(KINDS.get(dtype, "float"), width, registers, has_fma=has_fma)


def module(*texts: str) -> str:
    """`run` shares the units of `kernel`."""
    run = Function("run", [("ptr", "fields")], "i64")
    units, cost = run.field("i64", UNITS), run.field("i64", COST)
    run.do(f"call void @share(ptr %fields, ptr @kernel, i64 {units}, i64 {cost})")
    return run.module(share_text(), *texts)


def packed_module(tile: Tile, a: str, b: str, direct: bool) -> str:
    loads = load_text(tile, "load_a", tile.height, a), load_text(tile, "load_b", tile.width, b)
    return module(*loads, store_text(tile), gemm_text(tile, direct=direct))


def thin_module(tile: Tile, few: str, wide: str, swapped: bool) -> str:
    load = load_text(tile, "load_b" if swapped else "load_a", 1, few)
    return module(load, store_text(tile), thin_text(tile, wide, swapped=swapped))


def fields_of(division: Any, a: Any, b: Any, c: Any, *more: int) -> list[int]:
    """The arguments of a product of arrays of three axes, without scratch memory and slot."""
    words = [0] * MORE + list(more)
    for field, value in division.fields.items():
        words[field] = value
    a_steps, b_steps, c_steps = ([step // x.itemsize for step in x.strides] for x in (a, b, c))
    words[Field.A : Field.B] = [a.ctypes.data, *a_steps]
    words[Field.B : Field.C] = [b.ctypes.data, b_steps[0], b_steps[2], b_steps[1]]
    words[Field.C : Field.END] = [c.ctypes.data, *c_steps[:2]]
    words[UNITS], words[COST] = division.units, division.cost
    return words


def call(function: Any, division: Any, words: list[int], threads: int) -> None:
    scratch = aligned((division.scratch,), np.dtype(np.uint8))
    scratch[:] = 0xFF  # NaN: what is left over must not matter
    words[Field.SCRATCH] = scratch.ctypes.data
    with Helpers(division.cost * division.units if threads > 1 else 0) as slot:
        words[0] = slot if threads > 1 else 0
        arguments = (ctypes.c_int64 * len(words))(*words)
        function(ctypes.addressof(arguments))
    assert not arguments[Field.TAKEN]


def multiply(
    a: Any, b: Any, *, form: str = "direct", processor: str = "AVX2", threads: int = 1, parts: int = 0
) -> Any:
    """a @ b, for arrays of three axes. The result's rows are farther apart than they must be, and what is
    between them stays as it is.
    """
    dtype = next((x.dtype for x in (a, b) if x.dtype.name in KINDS), np.dtype(np.float32))
    tile = tile_of(dtype.name, processor)
    (batch, m, k), n = a.shape, b.shape[2]
    whole = np.full((batch, m + 1, n + 3), 77, dtype)
    c = whole[:, :m, :n]
    if form in ("thin", "swapped"):
        swapped = form == "swapped"
        division = strips(tile, m, n, k, batch, parts or threads, swapped=swapped)
        few, wide = (b, a) if swapped else (a, b)
        function = compiled(thin_module, tile, few.dtype.name, wide.dtype.name, swapped)[1]
    else:
        division = blocks(tile, m, n, k, batch, parts or threads)
        function = compiled(packed_module, tile, a.dtype.name, b.dtype.name, form == "direct")[1]
    call(function, division, fields_of(division, a, b, c), threads)
    assert (whole[:, m:] == 77).all()
    assert (whole[:, :, n:] == 77).all()
    return c


def random(shape: tuple[int, ...], dtype: Any = np.float32) -> Any:
    dtype = np.dtype(dtype)
    if dtype.kind == "i":
        limits = np.iinfo(dtype)
        return RNG.integers(limits.min, limits.max, shape, dtype)
    return RNG.standard_normal(shape).astype(dtype)


def random_as(shape: tuple[int, int, int], layout: str, dtype: Any = np.float32) -> Any:
    """An array in which elements lie as the layout says."""
    batch, rows, columns = shape
    if layout == "transposed":
        return random((batch, columns, rows), dtype).transpose(0, 2, 1)
    if layout == "strided":
        return random((batch, 2 * rows, 3 * columns), dtype)[:, ::2, ::3]
    if layout == "reversed":
        return random(shape, dtype)[:, ::-1, ::-1]
    if layout == "shared":  # one matrix for all batches
        return np.broadcast_to(random((rows, columns), dtype), shape)
    return random(shape, dtype)


LAYOUTS = ("rows", "transposed", "strided", "reversed", "shared")


def assert_close(found: Any, a: Any, b: Any) -> None:
    """To float64, within what rounding of sums of k products can make; integers exactly, modulo 2**bits."""
    if found.dtype.kind == "i":
        np.testing.assert_array_equal(found, np.matmul(a, b))
        return
    wide = np.longdouble if found.dtype == np.float64 else np.float64
    a, b = a.astype(np.float64).astype(wide), b.astype(np.float64).astype(wide)
    limit = (a.shape[2] + 1) * np.finfo(found.dtype).eps * (np.abs(a) @ np.abs(b))
    assert (np.abs(found - a @ b) <= limit).all()


BFLOAT16: Any = ml_dtypes.bfloat16
