"""Long reductions with few results are split, so that there is work for every thread.

A fold of L elements becomes P folds of L/P, whose results are folded again; the remainder is folded
separately. Folds over axes that are not adjacent are done one after another, the trailing one first. Sums of
half floats are float32 until the last. Node ids stay.
"""

from __future__ import annotations

import math

from ..device_profile import DeviceProfile
from ..graph.node import Signature, signature
from ..graph.snapshot import Snapshot
from ..ops.table import TABLE
from .axes import runs_of


def split_reductions(graph: Snapshot, profile: DeviceProfile) -> None:
    """Rewrite the reductions of a graph in place."""
    for number in graph.order():
        if graph.sigs[number].kind == "reduce":
            _split(graph, number, profile)


def _split(graph: Snapshot, number: int, profile: DeviceProfile) -> None:
    sig = graph.sigs[number]
    (source,) = graph.inputs[number]
    shape = graph.sigs[source].shape
    if not graph.sigs[source].size:
        return
    runs = runs_of([axis for axis in sig.attributes[0] if shape[axis] != 1])
    if sig.dtype.is_half and sig.op.wgsl in ("add", "multiply"):
        if len(runs) > 1 or (runs and _parts_of(graph, number, runs[0], profile) > 1):
            _split(graph, _widened(graph, number), profile)
        return
    if len(runs) > 1:
        first = _fold(graph, sig, source, runs[-1])
        gone = set(runs[-1])
        left = [axis for axis in sig.attributes[0] if axis not in gone]
        renamed = tuple(axis - sum(each < axis for each in gone) for axis in left)
        graph.sigs[number] = signature(sig.op, sig.shape, sig.dtype, sig.device, (renamed,))
        graph.inputs[number] = (first,)
        _split(graph, first, profile)
        _split(graph, number, profile)
        return
    if runs and (parts := _parts_of(graph, number, runs[0], profile)) > 1:
        _in_parts(graph, number, source, *_sizes(shape, runs[0]), parts)


def _widened(graph: Snapshot, number: int) -> int:
    """A fold of half floats as one of float32, whose result is rounded; gives the number of that."""
    sig, (source,) = graph.sigs[number], graph.inputs[number]
    wide = sig.dtype.wide
    cast = signature(TABLE["cast"], graph.sigs[source].shape, wide, sig.device, (wide,))
    fold = graph.add(
        signature(sig.op, sig.shape, wide, sig.device, sig.attributes), (graph.add(cast, (source,)),)
    )
    graph.sigs[number] = signature(TABLE["cast"], sig.shape, sig.dtype, sig.device, (sig.dtype,))
    graph.inputs[number] = (fold,)
    return fold


def _sizes(shape: tuple[int, ...], run: list[int]) -> tuple[int, int, int]:
    """The elements before a run of axes, along it, and after it."""
    first, last = run[0], run[-1]
    return math.prod(shape[:first]), math.prod(shape[first : last + 1]), math.prod(shape[last + 1 :])


def _parts_of(graph: Snapshot, number: int, run: list[int], profile: DeviceProfile) -> int:
    """Into how many parts a fold along a run is split."""
    (source,) = graph.inputs[number]
    _, length, after = _sizes(graph.sigs[source].shape, run)
    return _parts(profile, graph.sigs[number].size, length, after)


def _parts(profile: DeviceProfile, rows: int, length: int, after: int) -> int:
    """Into how many parts a fold is split; 1: not at all."""
    software = profile.kind == "software"
    if after > 1:  # a thread owns neighbouring columns
        if length < 256 if not software else rows * length < 65536:
            return 1  # another launch would take longer
        threads = max(1, rows // 4)
        wanted = 256 if software else 16384
        parts = min(64 if software else 256, wanted // threads, length // 64)
    elif software:
        parts = min(128 // rows, length // 16384) if rows < 16 else 1
    else:
        parts = min(1024 // rows, length // 4096) if rows < 256 else 1
    return max(1, parts)


def _fold(graph: Snapshot, sig: Signature, source: int, axes: list[int]) -> int:
    shape = graph.sigs[source].shape
    kept = tuple(size for axis, size in enumerate(shape) if axis not in axes)
    return graph.add(signature(sig.op, kept, sig.dtype, sig.device, (tuple(axes),)), (source,))


def _in_parts(
    graph: Snapshot, number: int, source: int, before: int, length: int, after: int, parts: int
) -> None:
    sig = graph.sigs[number]

    def move(op: str, of: int, shape: tuple[int, ...], attributes: object) -> int:
        made = signature(TABLE[op], shape, graph.sigs[of].dtype, sig.device, (attributes,))
        return graph.add(made, (of,))

    flat = source
    if graph.sigs[source].shape != (before, length, after):
        flat = move("reshape", source, (before, length, after), (before, length, after))
    chunk = length // parts // 4 * 4 or length // parts
    main = chunk * parts
    body = flat
    if main != length:
        body = move("slice", flat, (before, main, after), ((0, before, 1), (0, main, 1), (0, after, 1)))
    shape = (before, parts, chunk, after)
    folded = _fold(graph, sig, _fold(graph, sig, move("reshape", body, shape, shape), [2]), [1])
    if main != length:
        tail_shape = (before, length - main, after)
        tail = move("slice", flat, tail_shape, ((0, before, 1), (main, length, 1), (0, after, 1)))
        rest = _fold(graph, sig, tail, [1])
        join = signature(TABLE[str(sig.op.wgsl)], (before, after), sig.dtype, sig.device)
        folded = graph.add(join, (folded, rest))
    graph.sigs[number] = signature(TABLE["reshape"], sig.shape, sig.dtype, sig.device, (sig.shape,))
    graph.inputs[number] = (folded,)
