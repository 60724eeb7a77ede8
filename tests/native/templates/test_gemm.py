"""Matrix products by tiles and panels: sizes, layouts, special numbers, threads, holes, processors."""

from __future__ import annotations

import ctypes
import re
from typing import Any

import numpy as np
import pytest

from tests.native.products import (
    BFLOAT16,
    LAYOUTS,
    MORE,
    PROCESSORS,
    assert_close,
    call,
    fields_of,
    module,
    multiply,
    packed_module,
    random,
    random_as,
    thin_module,
    tile_of,
)
from webgrad.native.compiler import assembly, compiled, text_for
from webgrad.native.processor import architecture, named
from webgrad.native.templates.gemm import blocks, gemm_text
from webgrad.native.templates.operands import LOAD, STORE, Field, load_text, panels, store_text
from webgrad.native.templates.thin import strips
from webgrad.native.text import Function

SIZES = [
    (1, 1, 1),
    (6, 16, 4),
    (5, 17, 7),
    (13, 33, 257),
    (7, 1, 600),
    (97, 131, 300),
    (3, 600, 5),
    (270, 9, 33),
]
FORMS = ["direct", "finish"]


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
@pytest.mark.parametrize("form", FORMS)
def test_sizes(processor: str, dtype: Any, form: str) -> None:
    for m, n, k in SIZES:
        a, b = random((2, m, k), dtype), random((2, k, n), dtype)
        assert_close(multiply(a, b, form=form, processor=processor), a, b)


@pytest.mark.parametrize("form", FORMS)
def test_every_tail(form: str) -> None:
    for size in range(1, 35):
        for m, n, k in ((size, 5, 9), (5, size, 9), (5, 9, size), (size, size, size)):
            a, b = random((1, m, k)), random((1, k, n))
            assert_close(multiply(a, b, form=form), a, b)


@pytest.mark.parametrize(("batch", "m", "n", "k"), [(0, 2, 2, 2), (2, 0, 3, 4), (2, 3, 0, 4), (2, 3, 5, 0)])
@pytest.mark.parametrize("form", FORMS)
def test_nothing(batch: int, m: int, n: int, k: int, form: str) -> None:
    found = multiply(random((batch, m, k)), random((batch, k, n)), form=form)
    np.testing.assert_array_equal(found, np.zeros((batch, m, n), np.float32))


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("left", LAYOUTS)
@pytest.mark.parametrize("right", LAYOUTS)
def test_layouts(left: str, right: str, processor: str) -> None:
    for m, n, k in ((50, 70, 90), (61, 131, 45)):
        a, b = random_as((3, m, k), left), random_as((3, k, n), right)
        assert_close(multiply(a, b, processor=processor), a, b)


@pytest.mark.parametrize("left", [np.float32, np.float16, BFLOAT16])
@pytest.mark.parametrize("right", [np.float16, BFLOAT16])
@pytest.mark.parametrize("layout", ["rows", "transposed", "strided"])
def test_half_operands(left: Any, right: Any, layout: str) -> None:
    a, b = random_as((1, 67, 93), layout, left), random_as((1, 93, 101), layout, right)
    assert_close(multiply(a, b), a, b)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("layout", ["rows", "transposed"])
def test_special_numbers(form: str, layout: str) -> None:
    """As in a plain sum: NaN where an infinity meets zero, and in no other row or column."""
    m, n, k = 19, 37, 270
    a, b = abs(random_as((1, m, k), layout)) + 1, abs(random_as((1, k, n), layout)) + 1
    a[0, 2, 3], b[0, 3, 5] = np.inf, 0
    a[0, 18, 269], b[0, 269, 36] = np.nan, -np.inf
    with np.errstate(invalid="ignore"):
        want = a.astype(np.float64) @ b.astype(np.float64)
    found = multiply(a, b, form=form)
    assert np.isnan(want[0, 2, [5, 36]]).all()
    for test in (np.isnan, np.isposinf, np.isneginf):
        np.testing.assert_array_equal(test(found), test(want))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", FORMS)
def test_results_do_not_depend_on_threads(dtype: Any, form: str) -> None:
    a, b = random((2, 230, 700), dtype), random((2, 700, 610), dtype)
    want = multiply(a, b, form=form)
    np.testing.assert_array_equal(multiply(a, b, form="direct"), want)
    for parts in (3, 200):
        np.testing.assert_array_equal(multiply(a, b, form=form, parts=parts), want)
    for _ in range(20):
        np.testing.assert_array_equal(multiply(a, b, form=form, threads=2), want)


def test_more_threads_than_slots_wait() -> None:
    a, b = random((1, 230, 70)), random((1, 70, 610))
    tile, c = tile_of(), np.empty((1, 230, 610), np.float32)
    division = blocks(tile, 230, 610, 70, threads=2)
    division.fields[Field.SLOTS] = 1
    texts = [
        load_text(tile, "load_a", tile.height, "float32"),
        load_text(tile, "load_b", tile.width, "float32"),
    ]
    function = compiled(module, *texts, store_text(tile), gemm_text(tile))[1]
    for _ in range(20):
        c[:] = np.nan
        call(function, division, fields_of(division, a, b, c), 2)
        assert_close(c, a, b)


def scaled_relu_text(height: int) -> str:
    """`load_a` of relu(x) * scale, where x is row by row and the scale is a field."""
    tile = tile_of()
    f = Function("load_a", LOAD)
    x, k, bits = f.field("ptr", Field.A), f.field("i64", Field.K), f.field("i64", MORE)
    scale = f(f"bitcast i32 {f(f'trunc i64 {bits} to i32')} to float")
    with panels(f, tile, height) as (first, rows, out), f.loop(0, "%ks") as at, f.loop(0, rows) as each:
        row = f.add("%row", f.add(first, each))
        value = f.load("float", x, f.add(f.multiply(row, k), f.add("%k", at)), "float")
        positive = f(f"select i1 {f(f'fcmp ogt float {value}, 0.0')}, float {value}, float 0.0")
        f.store(
            "float", f(f"fmul float {positive}, {scale}"), out, f.add(f.multiply(at, height), each), "float"
        )
    return f.text()


def bias_text() -> str:
    """`finish` that adds a bias, whose address is a field, and stores float64."""
    f = Function("finish", STORE)
    c, n, bias = f.field("ptr", Field.C), f.field("i64", Field.N), f.field("ptr", MORE + 1)
    with f.loop(0, "%rows") as row, f.loop(0, "%columns") as column:
        value = f.load("float", "%tile", f.add(f.multiply(row, "%stride"), column), "float")
        place = f.add("%column", column)
        total = f(f"fadd float {value}, {f.load('float', bias, place, 'float')}")
        wide = f(f"fpext float {total} to double")
        f.store("double", wide, c, f.add(f.multiply(f.add("%row", row), n), place), "double")
    return f.text()


@pytest.mark.parametrize("k", [40, 600])
def test_holes(k: int) -> None:
    tile = tile_of()
    texts = scaled_relu_text(tile.height), load_text(tile, "load_b", tile.width, "float32"), bias_text()
    a, b, bias = random((1, 45, k)), random((1, k, 83)), random((83,))
    c = np.full((1, 45, 83), np.nan, np.float64)
    division = blocks(tile, 45, 83, k)
    more = int(np.float32(0.5).view(np.int32)), bias.ctypes.data
    function = compiled(module, *texts, gemm_text(tile))[1]
    call(function, division, fields_of(division, a, b, c, *more), 1)
    np.testing.assert_allclose(c, np.maximum(a, 0) * 0.5 @ b + bias, rtol=1e-4, atol=1e-4)


# Processors that are not at hand


@pytest.mark.parametrize("level", ["x86-64-v2", "x86-64-v3"])
@pytest.mark.parametrize("thin", [False, True])
def test_levels_of_x86(level: str, thin: bool) -> None:
    """What is written for a level runs as code of that level."""
    if architecture() != "x86_64":
        pytest.skip("code of another processor")
    import llvmlite.binding as llvm

    tile = tile_of("float32", "SSE2" if level == "x86-64-v2" else "AVX2")
    texts = (thin_module if thin else packed_module)(tile, "float32", "float16", False)
    found = llvm.parse_assembly(text_for(texts, named(level)))
    target = llvm.Target.from_triple(llvm.get_process_triple())
    engine = llvm.create_mcjit_compiler(found, target.create_target_machine(cpu=level, opt=2, jit=True))
    function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(engine.get_function_address("run"))
    m = 5 if thin else 131
    for layout in ("rows", "transposed"):
        a, b = random((1, m, 300)), random_as((1, 300, 77), layout, np.float16)
        c = np.empty((1, m, 77), np.float32)
        division = (strips if thin else blocks)(tile, m, 77, 300)
        call(function, division, fields_of(division, a, b, c), 1)
        assert_close(c, a, b)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("thin", [False, True])
@pytest.mark.parametrize(
    ("processor", "name"), [("NEON", "aarch64"), ("AVX-512", "x86-64-v4"), ("SSE2", "x86-64-v2")]
)
def test_other_processors_need_nothing_from_outside(
    processor: str, name: str, dtype: str, thin: bool
) -> None:
    text = (thin_module if thin else packed_module)(tile_of(dtype, processor), dtype, dtype, False)
    written = assembly(text, named(name))
    called = re.findall(r"^\s+(?:bl\s+|callq?\s+|movabsq\s+\$)_?([a-z]\w+)", written, re.MULTILINE)
    assert called
    assert set(called) <= set(re.findall(r"^define .*@(\w+)\(", text, re.MULTILINE))


@pytest.mark.parametrize("threads", [1, 2, 3, 4])
def test_threads_have_equal_work(threads: int) -> None:
    tile = tile_of(processor="AVX-512")
    for m, n, k in ((64, 3136, 576), (64, 576, 3136), (512, 512, 512), (128, 784, 256), (1000, 5000, 300)):
        division = blocks(tile, m, n, k, threads=threads)
        block = division.fields[Field.ROWS] * division.fields[Field.COLUMNS]
        assert -(-division.units // threads) * block <= 1.25 * m * n / threads


def test_narrow_tiles_are_left_out_where_none_is_needed() -> None:
    tile = tile_of(processor="AVX-512")
    texts = [gemm_text(tile, whole=whole) for whole in (True, False)]
    assert [f"@micro{tile.height}x{tile.lanes}(" in text for text in texts] == [False, True]
    assert [f"@micro{tile.height}x{tile.width}(" in text for text in texts] == [True, True]
