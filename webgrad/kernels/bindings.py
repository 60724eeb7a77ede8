"""Typed calls of the kernel templates, one for each entry point.

Written by `python -m webgrad.wgsl.bindings` from the templates; change those and run it again.
Each call takes the buffers and params by keyword and gives (buffers in binding order, packed params).
"""

from __future__ import annotations

from typing import TypeVar

from webgrad.wgsl.packing import Packer

__all__ = [
    "attention_lanes",
    "attention_tile",
    "binary_chunks",
    "binary_grid",
    "fill_chunks",
    "fill_grid",
    "fourier_group",
    "fourier_join",
    "fourier_pass",
    "fourier_split",
    "matmul_lanes",
    "matmul_thread",
    "matmul_tile",
    "matvec_columns",
    "matvec_dots",
    "matvec_slices",
    "quantised_rows",
    "quantised_threads",
    "quantised_vector",
    "reduce_group",
    "reduce_thread",
    "scatter",
    "scatters_scatter_atomic",
    "scatters_scatter_carries",
    "scatters_scatter_copy",
    "scatters_scatter_keys",
    "scatters_scatter_merge",
    "scatters_scatter_runs",
    "scatters_scatter_tables",
    "softmax_group",
    "softmax_thread",
    "sort_columns_thread",
    "sort_count_group",
    "sort_count_thread",
    "sort_merge",
    "sort_move_group",
    "sort_move_thread",
    "sort_scan_group",
    "sort_small",
    "sort_totals_thread",
    "unary_chunks",
    "unary_grid",
]

BufferT = TypeVar("BufferT")


_ATTENTION_LANES = Packer(
    "attention_lanes",
    (
        ("rows", "u32", 0),
        ("row_blocks", "u32", 4),
        ("heads", "u32", 8),
        ("pairs", "u32", 12),
        ("group", "u32", 16),
        ("chunks", "u32", 20),
        ("causal", "u32", 24),
        ("window", "u32", 28),
        ("shift", "u32", 32),
        ("groups", "u32", 36),
        ("loads", "u32", 40),
        ("stores", "u32", 44),
        ("parts", "u32", 48),
        ("value_parts", "u32", 52),
        ("slices", "u32", 56),
        ("depth", "u32", 60),
        ("grid_x", "u32", 64),
        ("length", "u32", 68),
        ("room", "u32", 72),
        ("columns", "u32", 76),
        ("scale", "f32", 80),
    ),
    84,
)


def attention_lanes(
    *,
    q: BufferT,
    k: BufferT,
    v: BufferT,
    y: BufferT,
    rows: int,
    row_blocks: int,
    heads: int,
    pairs: int,
    group: int,
    chunks: int,
    causal: int,
    window: int,
    shift: int,
    groups: int,
    loads: int,
    stores: int,
    parts: int,
    value_parts: int,
    slices: int,
    depth: int,
    grid_x: int,
    length: int,
    room: int,
    columns: int,
    scale: float,
) -> tuple[tuple[BufferT, ...], bytes]:
    """attention.pwgsl, entry point attention_lanes: writes y."""
    buffers = (q, k, v, y)
    return buffers, _ATTENTION_LANES.pack(
        rows,
        row_blocks,
        heads,
        pairs,
        group,
        chunks,
        causal,
        window,
        shift,
        groups,
        loads,
        stores,
        parts,
        value_parts,
        slices,
        depth,
        grid_x,
        length,
        room,
        columns,
        scale,
    )


_ATTENTION_TILE = Packer(
    "attention_tile",
    (
        ("rows", "u32", 0),
        ("row_blocks", "u32", 4),
        ("heads", "u32", 8),
        ("pairs", "u32", 12),
        ("group", "u32", 16),
        ("chunks", "u32", 20),
        ("causal", "u32", 24),
        ("window", "u32", 28),
        ("shift", "u32", 32),
        ("groups", "u32", 36),
        ("loads", "u32", 40),
        ("stores", "u32", 44),
        ("parts", "u32", 48),
        ("value_parts", "u32", 52),
        ("slices", "u32", 56),
        ("depth", "u32", 60),
        ("grid_x", "u32", 64),
        ("length", "u32", 68),
        ("room", "u32", 72),
        ("columns", "u32", 76),
        ("scale", "f32", 80),
    ),
    84,
)


def attention_tile(
    *,
    q: BufferT,
    k: BufferT,
    v: BufferT,
    y: BufferT,
    rows: int,
    row_blocks: int,
    heads: int,
    pairs: int,
    group: int,
    chunks: int,
    causal: int,
    window: int,
    shift: int,
    groups: int,
    loads: int,
    stores: int,
    parts: int,
    value_parts: int,
    slices: int,
    depth: int,
    grid_x: int,
    length: int,
    room: int,
    columns: int,
    scale: float,
) -> tuple[tuple[BufferT, ...], bytes]:
    """attention_tile.pwgsl, entry point attention_tile: writes y."""
    buffers = (q, k, v, y)
    return buffers, _ATTENTION_TILE.pack(
        rows,
        row_blocks,
        heads,
        pairs,
        group,
        chunks,
        causal,
        window,
        shift,
        groups,
        loads,
        stores,
        parts,
        value_parts,
        slices,
        depth,
        grid_x,
        length,
        room,
        columns,
        scale,
    )


_BINARY_CHUNKS = Packer(
    "binary_chunks",
    (
        ("groups", "u32", 0),
        ("chunk", "u32", 4),
        ("grid_x", "u32", 8),
        ("columns", "u32", 12),
        ("column_step", "u32", 16),
    ),
    20,
)


def binary_chunks(
    *,
    a: BufferT,
    b: BufferT,
    y: BufferT,
    groups: int,
    chunk: int,
    grid_x: int,
    columns: int,
    column_step: int,
) -> tuple[tuple[BufferT, ...], bytes]:
    """binary.pwgsl, entry point binary_chunks: writes y."""
    buffers = (a, b, y)
    return buffers, _BINARY_CHUNKS.pack(
        groups,
        chunk,
        grid_x,
        columns,
        column_step,
    )


_BINARY_GRID = Packer(
    "binary_grid",
    (
        ("groups", "u32", 0),
        ("chunk", "u32", 4),
        ("grid_x", "u32", 8),
        ("columns", "u32", 12),
        ("column_step", "u32", 16),
    ),
    20,
)


def binary_grid(
    *,
    a: BufferT,
    b: BufferT,
    y: BufferT,
    groups: int,
    chunk: int,
    grid_x: int,
    columns: int,
    column_step: int,
) -> tuple[tuple[BufferT, ...], bytes]:
    """binary.pwgsl, entry point binary_grid: writes y."""
    buffers = (a, b, y)
    return buffers, _BINARY_GRID.pack(
        groups,
        chunk,
        grid_x,
        columns,
        column_step,
    )


_FILL_CHUNKS = Packer(
    "fill_chunks",
    (
        ("groups", "u32", 0),
        ("chunk", "u32", 4),
        ("grid_x", "u32", 8),
        ("pattern", "u32", 12),
    ),
    16,
)


def fill_chunks(
    *,
    y: BufferT,
    groups: int,
    chunk: int,
    grid_x: int,
    pattern: int,
) -> tuple[tuple[BufferT, ...], bytes]:
    """fill.pwgsl, entry point fill_chunks: writes y."""
    buffers = (y,)
    return buffers, _FILL_CHUNKS.pack(
        groups,
        chunk,
        grid_x,
        pattern,
    )


_FILL_GRID = Packer(
    "fill_grid",
    (
        ("groups", "u32", 0),
        ("chunk", "u32", 4),
        ("grid_x", "u32", 8),
        ("pattern", "u32", 12),
    ),
    16,
)


def fill_grid(
    *,
    y: BufferT,
    groups: int,
    chunk: int,
    grid_x: int,
    pattern: int,
) -> tuple[tuple[BufferT, ...], bytes]:
    """fill.pwgsl, entry point fill_grid: writes y."""
    buffers = (y,)
    return buffers, _FILL_GRID.pack(
        groups,
        chunk,
        grid_x,
        pattern,
    )


_FOURIER_PASS = Packer(
    "fourier_pass",
    (
        ("count", "u32", 0),
        ("stride", "u32", 4),
        ("span", "u32", 8),
        ("inner", "u32", 12),
        ("part", "u32", 16),
        ("part_rest", "f32", 20),
        ("share", "u32", 24),
        ("step_rows", "u32", 28),
        ("step_column", "u32", 32),
        ("step_k", "u32", 36),
        ("log_radix", "u32", 40),
        ("log_columns", "u32", 44),
        ("sign", "f32", 48),
        ("scale", "f32", 52),
        ("scale_more", "f32", 56),
        ("scale_rest", "f32", 60),
        ("grid_x", "u32", 64),
    ),
    68,
)


def fourier_pass(
    *,
    x: BufferT,
    y: BufferT,
    count: int,
    stride: int,
    span: int,
    inner: int,
    part: int,
    part_rest: float,
    share: int,
    step_rows: int,
    step_column: int,
    step_k: int,
    log_radix: int,
    log_columns: int,
    sign: float,
    scale: float,
    scale_more: float,
    scale_rest: float,
    grid_x: int,
) -> tuple[tuple[BufferT, ...], bytes]:
    """fourier.pwgsl, entry point fourier_pass: writes y."""
    buffers = (x, y)
    return buffers, _FOURIER_PASS.pack(
        count,
        stride,
        span,
        inner,
        part,
        part_rest,
        share,
        step_rows,
        step_column,
        step_k,
        log_radix,
        log_columns,
        sign,
        scale,
        scale_more,
        scale_rest,
        grid_x,
    )


_FOURIER_SPLIT = Packer(
    "fourier_split",
    (
        ("count", "u32", 0),
        ("stride", "u32", 4),
        ("span", "u32", 8),
        ("inner", "u32", 12),
        ("part", "u32", 16),
        ("part_rest", "f32", 20),
        ("share", "u32", 24),
        ("step_rows", "u32", 28),
        ("step_column", "u32", 32),
        ("step_k", "u32", 36),
        ("log_radix", "u32", 40),
        ("log_columns", "u32", 44),
        ("sign", "f32", 48),
        ("scale", "f32", 52),
        ("scale_more", "f32", 56),
        ("scale_rest", "f32", 60),
        ("grid_x", "u32", 64),
    ),
    68,
)


def fourier_split(
    *,
    x: BufferT,
    y: BufferT,
    count: int,
    stride: int,
    span: int,
    inner: int,
    part: int,
    part_rest: float,
    share: int,
    step_rows: int,
    step_column: int,
    step_k: int,
    log_radix: int,
    log_columns: int,
    sign: float,
    scale: float,
    scale_more: float,
    scale_rest: float,
    grid_x: int,
) -> tuple[tuple[BufferT, ...], bytes]:
    """fourier.pwgsl, entry point fourier_split: writes y."""
    buffers = (x, y)
    return buffers, _FOURIER_SPLIT.pack(
        count,
        stride,
        span,
        inner,
        part,
        part_rest,
        share,
        step_rows,
        step_column,
        step_k,
        log_radix,
        log_columns,
        sign,
        scale,
        scale_more,
        scale_rest,
        grid_x,
    )


_FOURIER_JOIN = Packer(
    "fourier_join",
    (
        ("count", "u32", 0),
        ("stride", "u32", 4),
        ("span", "u32", 8),
        ("inner", "u32", 12),
        ("part", "u32", 16),
        ("part_rest", "f32", 20),
        ("share", "u32", 24),
        ("step_rows", "u32", 28),
        ("step_column", "u32", 32),
        ("step_k", "u32", 36),
        ("log_radix", "u32", 40),
        ("log_columns", "u32", 44),
        ("sign", "f32", 48),
        ("scale", "f32", 52),
        ("scale_more", "f32", 56),
        ("scale_rest", "f32", 60),
        ("grid_x", "u32", 64),
    ),
    68,
)


def fourier_join(
    *,
    x: BufferT,
    y: BufferT,
    count: int,
    stride: int,
    span: int,
    inner: int,
    part: int,
    part_rest: float,
    share: int,
    step_rows: int,
    step_column: int,
    step_k: int,
    log_radix: int,
    log_columns: int,
    sign: float,
    scale: float,
    scale_more: float,
    scale_rest: float,
    grid_x: int,
) -> tuple[tuple[BufferT, ...], bytes]:
    """fourier.pwgsl, entry point fourier_join: writes y."""
    buffers = (x, y)
    return buffers, _FOURIER_JOIN.pack(
        count,
        stride,
        span,
        inner,
        part,
        part_rest,
        share,
        step_rows,
        step_column,
        step_k,
        log_radix,
        log_columns,
        sign,
        scale,
        scale_more,
        scale_rest,
        grid_x,
    )


_FOURIER_GROUP = Packer(
    "fourier_group",
    (
        ("count", "u32", 0),
        ("stride", "u32", 4),
        ("span", "u32", 8),
        ("inner", "u32", 12),
        ("part", "u32", 16),
        ("part_rest", "f32", 20),
        ("share", "u32", 24),
        ("step_rows", "u32", 28),
        ("step_column", "u32", 32),
        ("step_k", "u32", 36),
        ("log_radix", "u32", 40),
        ("log_columns", "u32", 44),
        ("sign", "f32", 48),
        ("scale", "f32", 52),
        ("scale_more", "f32", 56),
        ("scale_rest", "f32", 60),
        ("grid_x", "u32", 64),
    ),
    68,
)


def fourier_group(
    *,
    x: BufferT,
    y: BufferT,
    count: int,
    stride: int,
    span: int,
    inner: int,
    part: int,
    part_rest: float,
    share: int,
    step_rows: int,
    step_column: int,
    step_k: int,
    log_radix: int,
    log_columns: int,
    sign: float,
    scale: float,
    scale_more: float,
    scale_rest: float,
    grid_x: int,
) -> tuple[tuple[BufferT, ...], bytes]:
    """fourier.pwgsl, entry point fourier_group: writes y."""
    buffers = (x, y)
    return buffers, _FOURIER_GROUP.pack(
        count,
        stride,
        span,
        inner,
        part,
        part_rest,
        share,
        step_rows,
        step_column,
        step_k,
        log_radix,
        log_columns,
        sign,
        scale,
        scale_more,
        scale_rest,
        grid_x,
    )


_MATMUL_LANES = Packer(
    "matmul_lanes",
    (
        ("m", "u32", 0),
        ("n", "u32", 4),
        ("k", "u32", 8),
        ("column_groups", "u32", 12),
        ("steps", "u32", 16),
        ("a_stride", "u32", 20),
        ("b_stride", "u32", 24),
        ("c_stride", "u32", 28),
        ("column_blocks", "u32", 32),
        ("grid_x", "u32", 36),
    ),
    40,
)


def matmul_lanes(
    *,
    a: BufferT,
    b: BufferT,
    c: BufferT,
    m: int,
    n: int,
    k: int,
    column_groups: int,
    steps: int,
    a_stride: int,
    b_stride: int,
    c_stride: int,
    column_blocks: int,
    grid_x: int,
) -> tuple[tuple[BufferT, ...], bytes]:
    """matmul.pwgsl, entry point matmul_lanes: writes c."""
    buffers = (a, b, c)
    return buffers, _MATMUL_LANES.pack(
        m,
        n,
        k,
        column_groups,
        steps,
        a_stride,
        b_stride,
        c_stride,
        column_blocks,
        grid_x,
    )


_MATMUL_THREAD = Packer(
    "matmul_thread",
    (
        ("m", "u32", 0),
        ("n", "u32", 4),
        ("k", "u32", 8),
        ("column_groups", "u32", 12),
        ("steps", "u32", 16),
        ("a_stride", "u32", 20),
        ("b_stride", "u32", 24),
        ("c_stride", "u32", 28),
        ("column_blocks", "u32", 32),
        ("grid_x", "u32", 36),
    ),
    40,
)


def matmul_thread(
    *,
    a: BufferT,
    b: BufferT,
    c: BufferT,
    m: int,
    n: int,
    k: int,
    column_groups: int,
    steps: int,
    a_stride: int,
    b_stride: int,
    c_stride: int,
    column_blocks: int,
    grid_x: int,
) -> tuple[tuple[BufferT, ...], bytes]:
    """matmul.pwgsl, entry point matmul_thread: writes c."""
    buffers = (a, b, c)
    return buffers, _MATMUL_THREAD.pack(
        m,
        n,
        k,
        column_groups,
        steps,
        a_stride,
        b_stride,
        c_stride,
        column_blocks,
        grid_x,
    )


_MATMUL_TILE = Packer(
    "matmul_tile",
    (
        ("m", "u32", 0),
        ("n", "u32", 4),
        ("k", "u32", 8),
        ("column_groups", "u32", 12),
        ("steps", "u32", 16),
        ("a_stride", "u32", 20),
        ("b_stride", "u32", 24),
        ("c_stride", "u32", 28),
        ("column_blocks", "u32", 32),
        ("grid_x", "u32", 36),
    ),
    40,
)


def matmul_tile(
    *,
    a: BufferT,
    b: BufferT,
    c: BufferT,
    m: int,
    n: int,
    k: int,
    column_groups: int,
    steps: int,
    a_stride: int,
    b_stride: int,
    c_stride: int,
    column_blocks: int,
    grid_x: int,
) -> tuple[tuple[BufferT, ...], bytes]:
    """matmul.pwgsl, entry point matmul_tile: writes c."""
    buffers = (a, b, c)
    return buffers, _MATMUL_TILE.pack(
        m,
        n,
        k,
        column_groups,
        steps,
        a_stride,
        b_stride,
        c_stride,
        column_blocks,
        grid_x,
    )


_MATVEC_COLUMNS = Packer(
    "matvec_columns",
    (
        ("m", "u32", 0),
        ("n", "u32", 4),
        ("k", "u32", 8),
        ("column_groups", "u32", 12),
        ("steps", "u32", 16),
        ("a_stride", "u32", 20),
        ("b_stride", "u32", 24),
        ("c_stride", "u32", 28),
        ("column_blocks", "u32", 32),
        ("grid_x", "u32", 36),
    ),
    40,
)


def matvec_columns(
    *,
    a: BufferT,
    b: BufferT,
    c: BufferT,
    m: int,
    n: int,
    k: int,
    column_groups: int,
    steps: int,
    a_stride: int,
    b_stride: int,
    c_stride: int,
    column_blocks: int,
    grid_x: int,
) -> tuple[tuple[BufferT, ...], bytes]:
    """matvec.pwgsl, entry point matvec_columns: writes c."""
    buffers = (a, b, c)
    return buffers, _MATVEC_COLUMNS.pack(
        m,
        n,
        k,
        column_groups,
        steps,
        a_stride,
        b_stride,
        c_stride,
        column_blocks,
        grid_x,
    )


_MATVEC_SLICES = Packer(
    "matvec_slices",
    (
        ("m", "u32", 0),
        ("n", "u32", 4),
        ("k", "u32", 8),
        ("column_groups", "u32", 12),
        ("steps", "u32", 16),
        ("a_stride", "u32", 20),
        ("b_stride", "u32", 24),
        ("c_stride", "u32", 28),
        ("column_blocks", "u32", 32),
        ("grid_x", "u32", 36),
    ),
    40,
)


def matvec_slices(
    *,
    a: BufferT,
    b: BufferT,
    c: BufferT,
    m: int,
    n: int,
    k: int,
    column_groups: int,
    steps: int,
    a_stride: int,
    b_stride: int,
    c_stride: int,
    column_blocks: int,
    grid_x: int,
) -> tuple[tuple[BufferT, ...], bytes]:
    """matvec.pwgsl, entry point matvec_slices: writes c."""
    buffers = (a, b, c)
    return buffers, _MATVEC_SLICES.pack(
        m,
        n,
        k,
        column_groups,
        steps,
        a_stride,
        b_stride,
        c_stride,
        column_blocks,
        grid_x,
    )


_MATVEC_DOTS = Packer(
    "matvec_dots",
    (
        ("m", "u32", 0),
        ("n", "u32", 4),
        ("k", "u32", 8),
        ("column_groups", "u32", 12),
        ("steps", "u32", 16),
        ("a_stride", "u32", 20),
        ("b_stride", "u32", 24),
        ("c_stride", "u32", 28),
        ("column_blocks", "u32", 32),
        ("grid_x", "u32", 36),
    ),
    40,
)


def matvec_dots(
    *,
    a: BufferT,
    b: BufferT,
    c: BufferT,
    m: int,
    n: int,
    k: int,
    column_groups: int,
    steps: int,
    a_stride: int,
    b_stride: int,
    c_stride: int,
    column_blocks: int,
    grid_x: int,
) -> tuple[tuple[BufferT, ...], bytes]:
    """matvec.pwgsl, entry point matvec_dots: writes c."""
    buffers = (a, b, c)
    return buffers, _MATVEC_DOTS.pack(
        m,
        n,
        k,
        column_groups,
        steps,
        a_stride,
        b_stride,
        c_stride,
        column_blocks,
        grid_x,
    )


_QUANTISED_VECTOR = Packer(
    "quantised_vector",
    (
        ("m", "u32", 0),
        ("n", "u32", 4),
        ("depth", "u32", 8),
        ("blocks", "u32", 12),
        ("units", "u32", 16),
        ("pairs", "u32", 20),
        ("four", "u32", 24),
        ("rows", "u32", 28),
        ("half", "u32", 32),
        ("column_blocks", "u32", 36),
        ("grid_x", "u32", 40),
    ),
    44,
)


def quantised_vector(
    *,
    a: BufferT,
    words: BufferT,
    c: BufferT,
    m: int,
    n: int,
    depth: int,
    blocks: int,
    units: int,
    pairs: int,
    four: int,
    rows: int,
    half: int,
    column_blocks: int,
    grid_x: int,
) -> tuple[tuple[BufferT, ...], bytes]:
    """quantised.pwgsl, entry point quantised_vector: writes c."""
    buffers = (a, words, c)
    return buffers, _QUANTISED_VECTOR.pack(
        m,
        n,
        depth,
        blocks,
        units,
        pairs,
        four,
        rows,
        half,
        column_blocks,
        grid_x,
    )


_QUANTISED_ROWS = Packer(
    "quantised_rows",
    (
        ("m", "u32", 0),
        ("n", "u32", 4),
        ("depth", "u32", 8),
        ("blocks", "u32", 12),
        ("units", "u32", 16),
        ("pairs", "u32", 20),
        ("four", "u32", 24),
        ("rows", "u32", 28),
        ("half", "u32", 32),
        ("column_blocks", "u32", 36),
        ("grid_x", "u32", 40),
    ),
    44,
)


def quantised_rows(
    *,
    a: BufferT,
    words: BufferT,
    c: BufferT,
    m: int,
    n: int,
    depth: int,
    blocks: int,
    units: int,
    pairs: int,
    four: int,
    rows: int,
    half: int,
    column_blocks: int,
    grid_x: int,
) -> tuple[tuple[BufferT, ...], bytes]:
    """quantised.pwgsl, entry point quantised_rows: writes c."""
    buffers = (a, words, c)
    return buffers, _QUANTISED_ROWS.pack(
        m,
        n,
        depth,
        blocks,
        units,
        pairs,
        four,
        rows,
        half,
        column_blocks,
        grid_x,
    )


_QUANTISED_THREADS = Packer(
    "quantised_threads",
    (
        ("m", "u32", 0),
        ("n", "u32", 4),
        ("depth", "u32", 8),
        ("blocks", "u32", 12),
        ("units", "u32", 16),
        ("pairs", "u32", 20),
        ("four", "u32", 24),
        ("rows", "u32", 28),
        ("half", "u32", 32),
        ("column_blocks", "u32", 36),
        ("grid_x", "u32", 40),
    ),
    44,
)


def quantised_threads(
    *,
    a: BufferT,
    words: BufferT,
    c: BufferT,
    m: int,
    n: int,
    depth: int,
    blocks: int,
    units: int,
    pairs: int,
    four: int,
    rows: int,
    half: int,
    column_blocks: int,
    grid_x: int,
) -> tuple[tuple[BufferT, ...], bytes]:
    """quantised.pwgsl, entry point quantised_threads: writes c."""
    buffers = (a, words, c)
    return buffers, _QUANTISED_THREADS.pack(
        m,
        n,
        depth,
        blocks,
        units,
        pairs,
        four,
        rows,
        half,
        column_blocks,
        grid_x,
    )


_REDUCE_THREAD = Packer(
    "reduce_thread",
    (
        ("parts", "u32", 0),
        ("columns", "u32", 4),
        ("segment", "u32", 8),
        ("segments", "u32", 12),
        ("grid_x", "u32", 16),
    ),
    20,
)


def reduce_thread(
    *,
    x: BufferT,
    y: BufferT,
    parts: int,
    columns: int,
    segment: int,
    segments: int,
    grid_x: int,
) -> tuple[tuple[BufferT, ...], bytes]:
    """reduce.pwgsl, entry point reduce_thread: writes y."""
    buffers = (x, y)
    return buffers, _REDUCE_THREAD.pack(
        parts,
        columns,
        segment,
        segments,
        grid_x,
    )


_REDUCE_GROUP = Packer(
    "reduce_group",
    (
        ("parts", "u32", 0),
        ("columns", "u32", 4),
        ("segment", "u32", 8),
        ("segments", "u32", 12),
        ("grid_x", "u32", 16),
    ),
    20,
)


def reduce_group(
    *,
    x: BufferT,
    y: BufferT,
    parts: int,
    columns: int,
    segment: int,
    segments: int,
    grid_x: int,
) -> tuple[tuple[BufferT, ...], bytes]:
    """reduce.pwgsl, entry point reduce_group: writes y."""
    buffers = (x, y)
    return buffers, _REDUCE_GROUP.pack(
        parts,
        columns,
        segment,
        segments,
        grid_x,
    )


_SCATTER = Packer(
    "scatter",
    (
        ("parts", "u32", 0),
        ("rows", "u32", 4),
        ("columns", "u32", 8),
        ("count", "u32", 12),
        ("share", "u32", 16),
        ("grid_x", "u32", 20),
    ),
    24,
)


def scatter(
    *,
    base: BufferT,
    index: BufferT,
    updates: BufferT,
    y: BufferT,
    parts: int,
    rows: int,
    columns: int,
    count: int,
    share: int,
    grid_x: int,
) -> tuple[tuple[BufferT, ...], bytes]:
    """scatter.pwgsl, entry point scatter: writes y."""
    buffers = (base, index, updates, y)
    return buffers, _SCATTER.pack(
        parts,
        rows,
        columns,
        count,
        share,
        grid_x,
    )


_SCATTERS_SCATTER_COPY = Packer(
    "scatters_scatter_copy",
    (
        ("parts", "u32", 0),
        ("rows", "u32", 4),
        ("columns", "u32", 8),
        ("count", "u32", 12),
        ("chunk", "u32", 16),
        ("chunks", "u32", 20),
        ("grid_x", "u32", 24),
    ),
    28,
)


def scatters_scatter_copy(
    *,
    source: BufferT,
    copied: BufferT,
    parts: int,
    rows: int,
    columns: int,
    count: int,
    chunk: int,
    chunks: int,
    grid_x: int,
) -> tuple[tuple[BufferT, ...], bytes]:
    """scatters.pwgsl, entry point scatter_copy: writes copied."""
    buffers = (source, copied)
    return buffers, _SCATTERS_SCATTER_COPY.pack(
        parts,
        rows,
        columns,
        count,
        chunk,
        chunks,
        grid_x,
    )


_SCATTERS_SCATTER_KEYS = Packer(
    "scatters_scatter_keys",
    (
        ("parts", "u32", 0),
        ("rows", "u32", 4),
        ("columns", "u32", 8),
        ("count", "u32", 12),
        ("chunk", "u32", 16),
        ("chunks", "u32", 20),
        ("grid_x", "u32", 24),
    ),
    28,
)


def scatters_scatter_keys(
    *,
    index: BufferT,
    named: BufferT,
    parts: int,
    rows: int,
    columns: int,
    count: int,
    chunk: int,
    chunks: int,
    grid_x: int,
) -> tuple[tuple[BufferT, ...], bytes]:
    """scatters.pwgsl, entry point scatter_keys: writes named."""
    buffers = (index, named)
    return buffers, _SCATTERS_SCATTER_KEYS.pack(
        parts,
        rows,
        columns,
        count,
        chunk,
        chunks,
        grid_x,
    )


_SCATTERS_SCATTER_RUNS = Packer(
    "scatters_scatter_runs",
    (
        ("parts", "u32", 0),
        ("rows", "u32", 4),
        ("columns", "u32", 8),
        ("count", "u32", 12),
        ("chunk", "u32", 16),
        ("chunks", "u32", 20),
        ("grid_x", "u32", 24),
    ),
    28,
)


def scatters_scatter_runs(
    *,
    keys: BufferT,
    order: BufferT,
    updates: BufferT,
    carried_rows: BufferT,
    carried: BufferT,
    y: BufferT,
    parts: int,
    rows: int,
    columns: int,
    count: int,
    chunk: int,
    chunks: int,
    grid_x: int,
) -> tuple[tuple[BufferT, ...], bytes]:
    """scatters.pwgsl, entry point scatter_runs: writes carried_rows, carried, y."""
    buffers = (keys, order, updates, carried_rows, carried, y)
    return buffers, _SCATTERS_SCATTER_RUNS.pack(
        parts,
        rows,
        columns,
        count,
        chunk,
        chunks,
        grid_x,
    )


_SCATTERS_SCATTER_CARRIES = Packer(
    "scatters_scatter_carries",
    (
        ("parts", "u32", 0),
        ("rows", "u32", 4),
        ("columns", "u32", 8),
        ("count", "u32", 12),
        ("chunk", "u32", 16),
        ("chunks", "u32", 20),
        ("grid_x", "u32", 24),
    ),
    28,
)


def scatters_scatter_carries(
    *,
    given_rows: BufferT,
    given: BufferT,
    y: BufferT,
    parts: int,
    rows: int,
    columns: int,
    count: int,
    chunk: int,
    chunks: int,
    grid_x: int,
) -> tuple[tuple[BufferT, ...], bytes]:
    """scatters.pwgsl, entry point scatter_carries: writes y."""
    buffers = (given_rows, given, y)
    return buffers, _SCATTERS_SCATTER_CARRIES.pack(
        parts,
        rows,
        columns,
        count,
        chunk,
        chunks,
        grid_x,
    )


_SCATTERS_SCATTER_TABLES = Packer(
    "scatters_scatter_tables",
    (
        ("parts", "u32", 0),
        ("rows", "u32", 4),
        ("columns", "u32", 8),
        ("count", "u32", 12),
        ("chunk", "u32", 16),
        ("chunks", "u32", 20),
        ("grid_x", "u32", 24),
    ),
    28,
)


def scatters_scatter_tables(
    *,
    rows_named: BufferT,
    updates: BufferT,
    tables: BufferT,
    parts: int,
    rows: int,
    columns: int,
    count: int,
    chunk: int,
    chunks: int,
    grid_x: int,
) -> tuple[tuple[BufferT, ...], bytes]:
    """scatters.pwgsl, entry point scatter_tables: writes tables."""
    buffers = (rows_named, updates, tables)
    return buffers, _SCATTERS_SCATTER_TABLES.pack(
        parts,
        rows,
        columns,
        count,
        chunk,
        chunks,
        grid_x,
    )


_SCATTERS_SCATTER_MERGE = Packer(
    "scatters_scatter_merge",
    (
        ("parts", "u32", 0),
        ("rows", "u32", 4),
        ("columns", "u32", 8),
        ("count", "u32", 12),
        ("chunk", "u32", 16),
        ("chunks", "u32", 20),
        ("grid_x", "u32", 24),
    ),
    28,
)


def scatters_scatter_merge(
    *,
    filled: BufferT,
    y: BufferT,
    parts: int,
    rows: int,
    columns: int,
    count: int,
    chunk: int,
    chunks: int,
    grid_x: int,
) -> tuple[tuple[BufferT, ...], bytes]:
    """scatters.pwgsl, entry point scatter_merge: writes y."""
    buffers = (filled, y)
    return buffers, _SCATTERS_SCATTER_MERGE.pack(
        parts,
        rows,
        columns,
        count,
        chunk,
        chunks,
        grid_x,
    )


_SCATTERS_SCATTER_ATOMIC = Packer(
    "scatters_scatter_atomic",
    (
        ("parts", "u32", 0),
        ("rows", "u32", 4),
        ("columns", "u32", 8),
        ("count", "u32", 12),
        ("chunk", "u32", 16),
        ("chunks", "u32", 20),
        ("grid_x", "u32", 24),
    ),
    28,
)


def scatters_scatter_atomic(
    *,
    rows_named: BufferT,
    elements: BufferT,
    shared_y: BufferT,
    parts: int,
    rows: int,
    columns: int,
    count: int,
    chunk: int,
    chunks: int,
    grid_x: int,
) -> tuple[tuple[BufferT, ...], bytes]:
    """scatters.pwgsl, entry point scatter_atomic: writes shared_y."""
    buffers = (rows_named, elements, shared_y)
    return buffers, _SCATTERS_SCATTER_ATOMIC.pack(
        parts,
        rows,
        columns,
        count,
        chunk,
        chunks,
        grid_x,
    )


_SOFTMAX_THREAD = Packer(
    "softmax_thread",
    (
        ("rows", "u32", 0),
        ("columns", "u32", 4),
        ("grid_x", "u32", 8),
    ),
    12,
)


def softmax_thread(
    *,
    x: BufferT,
    y: BufferT,
    rows: int,
    columns: int,
    grid_x: int,
) -> tuple[tuple[BufferT, ...], bytes]:
    """softmax.pwgsl, entry point softmax_thread: writes y."""
    buffers = (x, y)
    return buffers, _SOFTMAX_THREAD.pack(
        rows,
        columns,
        grid_x,
    )


_SOFTMAX_GROUP = Packer(
    "softmax_group",
    (
        ("rows", "u32", 0),
        ("columns", "u32", 4),
        ("grid_x", "u32", 8),
    ),
    12,
)


def softmax_group(
    *,
    x: BufferT,
    y: BufferT,
    rows: int,
    columns: int,
    grid_x: int,
) -> tuple[tuple[BufferT, ...], bytes]:
    """softmax.pwgsl, entry point softmax_group: writes y."""
    buffers = (x, y)
    return buffers, _SOFTMAX_GROUP.pack(
        rows,
        columns,
        grid_x,
    )


_SORT_MERGE = Packer(
    "sort_merge",
    (
        ("rows", "u32", 0),
        ("n", "u32", 4),
        ("chunk", "u32", 8),
        ("chunks", "u32", 12),
        ("shift", "u32", 16),
        ("digits", "u32", 20),
        ("grid_x", "u32", 24),
    ),
    28,
)


def sort_merge(
    *,
    keys: BufferT,
    scratch: BufferT,
    order: BufferT,
    rows: int,
    n: int,
    chunk: int,
    chunks: int,
    shift: int,
    digits: int,
    grid_x: int,
) -> tuple[tuple[BufferT, ...], bytes]:
    """sort.pwgsl, entry point sort_merge: writes scratch, order."""
    buffers = (keys, scratch, order)
    return buffers, _SORT_MERGE.pack(
        rows,
        n,
        chunk,
        chunks,
        shift,
        digits,
        grid_x,
    )


_SORT_COUNT_THREAD = Packer(
    "sort_count_thread",
    (
        ("rows", "u32", 0),
        ("n", "u32", 4),
        ("chunk", "u32", 8),
        ("chunks", "u32", 12),
        ("shift", "u32", 16),
        ("digits", "u32", 20),
        ("grid_x", "u32", 24),
    ),
    28,
)


def sort_count_thread(
    *,
    keys: BufferT,
    counts: BufferT,
    rows: int,
    n: int,
    chunk: int,
    chunks: int,
    shift: int,
    digits: int,
    grid_x: int,
) -> tuple[tuple[BufferT, ...], bytes]:
    """sort.pwgsl, entry point sort_count_thread: writes counts."""
    buffers = (keys, counts)
    return buffers, _SORT_COUNT_THREAD.pack(
        rows,
        n,
        chunk,
        chunks,
        shift,
        digits,
        grid_x,
    )


_SORT_MOVE_THREAD = Packer(
    "sort_move_thread",
    (
        ("rows", "u32", 0),
        ("n", "u32", 4),
        ("chunk", "u32", 8),
        ("chunks", "u32", 12),
        ("shift", "u32", 16),
        ("digits", "u32", 20),
        ("grid_x", "u32", 24),
    ),
    28,
)


def sort_move_thread(
    *,
    keys: BufferT,
    before: BufferT,
    counts: BufferT,
    moved_keys: BufferT,
    order: BufferT,
    rows: int,
    n: int,
    chunk: int,
    chunks: int,
    shift: int,
    digits: int,
    grid_x: int,
) -> tuple[tuple[BufferT, ...], bytes]:
    """sort.pwgsl, entry point sort_move_thread: writes counts, moved_keys, order."""
    buffers = (keys, before, counts, moved_keys, order)
    return buffers, _SORT_MOVE_THREAD.pack(
        rows,
        n,
        chunk,
        chunks,
        shift,
        digits,
        grid_x,
    )


_SORT_COLUMNS_THREAD = Packer(
    "sort_columns_thread",
    (
        ("rows", "u32", 0),
        ("n", "u32", 4),
        ("chunk", "u32", 8),
        ("chunks", "u32", 12),
        ("shift", "u32", 16),
        ("digits", "u32", 20),
        ("grid_x", "u32", 24),
    ),
    28,
)


def sort_columns_thread(
    *,
    counts: BufferT,
    rows: int,
    n: int,
    chunk: int,
    chunks: int,
    shift: int,
    digits: int,
    grid_x: int,
) -> tuple[tuple[BufferT, ...], bytes]:
    """sort.pwgsl, entry point sort_columns_thread: writes counts."""
    buffers = (counts,)
    return buffers, _SORT_COLUMNS_THREAD.pack(
        rows,
        n,
        chunk,
        chunks,
        shift,
        digits,
        grid_x,
    )


_SORT_TOTALS_THREAD = Packer(
    "sort_totals_thread",
    (
        ("rows", "u32", 0),
        ("n", "u32", 4),
        ("chunk", "u32", 8),
        ("chunks", "u32", 12),
        ("shift", "u32", 16),
        ("digits", "u32", 20),
        ("grid_x", "u32", 24),
    ),
    28,
)


def sort_totals_thread(
    *,
    counts: BufferT,
    rows: int,
    n: int,
    chunk: int,
    chunks: int,
    shift: int,
    digits: int,
    grid_x: int,
) -> tuple[tuple[BufferT, ...], bytes]:
    """sort.pwgsl, entry point sort_totals_thread: writes counts."""
    buffers = (counts,)
    return buffers, _SORT_TOTALS_THREAD.pack(
        rows,
        n,
        chunk,
        chunks,
        shift,
        digits,
        grid_x,
    )


_SORT_SMALL = Packer(
    "sort_small",
    (
        ("rows", "u32", 0),
        ("n", "u32", 4),
        ("chunk", "u32", 8),
        ("chunks", "u32", 12),
        ("shift", "u32", 16),
        ("digits", "u32", 20),
        ("grid_x", "u32", 24),
    ),
    28,
)


def sort_small(
    *,
    keys: BufferT,
    order: BufferT,
    rows: int,
    n: int,
    chunk: int,
    chunks: int,
    shift: int,
    digits: int,
    grid_x: int,
) -> tuple[tuple[BufferT, ...], bytes]:
    """sort.pwgsl, entry point sort_small: writes order."""
    buffers = (keys, order)
    return buffers, _SORT_SMALL.pack(
        rows,
        n,
        chunk,
        chunks,
        shift,
        digits,
        grid_x,
    )


_SORT_COUNT_GROUP = Packer(
    "sort_count_group",
    (
        ("rows", "u32", 0),
        ("n", "u32", 4),
        ("chunk", "u32", 8),
        ("chunks", "u32", 12),
        ("shift", "u32", 16),
        ("digits", "u32", 20),
        ("grid_x", "u32", 24),
    ),
    28,
)


def sort_count_group(
    *,
    keys: BufferT,
    before: BufferT,
    counts: BufferT,
    rows: int,
    n: int,
    chunk: int,
    chunks: int,
    shift: int,
    digits: int,
    grid_x: int,
) -> tuple[tuple[BufferT, ...], bytes]:
    """sort.pwgsl, entry point sort_count_group: writes counts."""
    buffers = (keys, before, counts)
    return buffers, _SORT_COUNT_GROUP.pack(
        rows,
        n,
        chunk,
        chunks,
        shift,
        digits,
        grid_x,
    )


_SORT_MOVE_GROUP = Packer(
    "sort_move_group",
    (
        ("rows", "u32", 0),
        ("n", "u32", 4),
        ("chunk", "u32", 8),
        ("chunks", "u32", 12),
        ("shift", "u32", 16),
        ("digits", "u32", 20),
        ("grid_x", "u32", 24),
    ),
    28,
)


def sort_move_group(
    *,
    keys: BufferT,
    before: BufferT,
    starts: BufferT,
    order: BufferT,
    rows: int,
    n: int,
    chunk: int,
    chunks: int,
    shift: int,
    digits: int,
    grid_x: int,
) -> tuple[tuple[BufferT, ...], bytes]:
    """sort.pwgsl, entry point sort_move_group: writes order."""
    buffers = (keys, before, starts, order)
    return buffers, _SORT_MOVE_GROUP.pack(
        rows,
        n,
        chunk,
        chunks,
        shift,
        digits,
        grid_x,
    )


_SORT_SCAN_GROUP = Packer(
    "sort_scan_group",
    (
        ("rows", "u32", 0),
        ("n", "u32", 4),
        ("chunk", "u32", 8),
        ("chunks", "u32", 12),
        ("shift", "u32", 16),
        ("digits", "u32", 20),
        ("grid_x", "u32", 24),
    ),
    28,
)


def sort_scan_group(
    *,
    counts: BufferT,
    rows: int,
    n: int,
    chunk: int,
    chunks: int,
    shift: int,
    digits: int,
    grid_x: int,
) -> tuple[tuple[BufferT, ...], bytes]:
    """sort.pwgsl, entry point sort_scan_group: writes counts."""
    buffers = (counts,)
    return buffers, _SORT_SCAN_GROUP.pack(
        rows,
        n,
        chunk,
        chunks,
        shift,
        digits,
        grid_x,
    )


_UNARY_CHUNKS = Packer(
    "unary_chunks",
    (
        ("groups", "u32", 0),
        ("chunk", "u32", 4),
        ("grid_x", "u32", 8),
        ("scalar", "f32", 12),
    ),
    16,
)


def unary_chunks(
    *,
    x: BufferT,
    y: BufferT,
    groups: int,
    chunk: int,
    grid_x: int,
    scalar: float,
) -> tuple[tuple[BufferT, ...], bytes]:
    """unary.pwgsl, entry point unary_chunks: writes y."""
    buffers = (x, y)
    return buffers, _UNARY_CHUNKS.pack(
        groups,
        chunk,
        grid_x,
        scalar,
    )


_UNARY_GRID = Packer(
    "unary_grid",
    (
        ("groups", "u32", 0),
        ("chunk", "u32", 4),
        ("grid_x", "u32", 8),
        ("scalar", "f32", 12),
    ),
    16,
)


def unary_grid(
    *,
    x: BufferT,
    y: BufferT,
    groups: int,
    chunk: int,
    grid_x: int,
    scalar: float,
) -> tuple[tuple[BufferT, ...], bytes]:
    """unary.pwgsl, entry point unary_grid: writes y."""
    buffers = (x, y)
    return buffers, _UNARY_GRID.pack(
        groups,
        chunk,
        grid_x,
        scalar,
    )
