"""Long scans of few rows are split into chunks, so that there is work for every
thread.

A scan of x becomes that of (x, totals) with attributes (axis, chunk): each chunk starts with the total of the
chunks before it. Totals are a fold of every chunk but the last, then a scan of these. So x is read twice and
the result is written once. Node ids stay.
"""

from __future__ import annotations

import math

from ..device_profile import DeviceProfile
from ..graph.node import signature
from ..graph.snapshot import Snapshot
from ..ops.table import TABLE

SOFTWARE_THREADS, GPU_THREADS = 1024, 16384  # that a scan is split for
SOFTWARE_CHUNK, GPU_CHUNK = 2048, 128  # elements: shorter chunks cost more than they save,
MIN_SPLIT_LENGTH = 1024  # and so do shorter axes, with two more launches
LINE = 16  # elements: chunks are an odd number of cache lines, so that they do not all map to one cache set
_FOLDS = {str(row.wgsl): row for row in TABLE.values() if row.kind == "reduce"}


def split_scans(graph: Snapshot, profile: DeviceProfile) -> None:
    """Rewrite the scans of a graph in place."""
    for number in graph.order():
        if graph.sigs[number].kind == "scan":
            _split(graph, number, profile)


def _split(graph: Snapshot, number: int, profile: DeviceProfile) -> None:
    sig = graph.sigs[number]
    (axis,) = sig.attributes
    if sig.dtype.kind == "f" and sig.op.wgsl == "multiply":
        # A chunk's product may overflow where the running one is 0, and 0 times that is NaN.
        return
    chunk = _chunk(profile, sig.shape, axis)
    count = -(-sig.shape[axis] // chunk) if chunk else 1
    if count == 1:
        return
    (source,) = graph.inputs[number]
    before, after = sig.shape[:axis], sig.shape[axis + 1 :]
    whole = (*before, (count - 1) * chunk, *after)
    cut = tuple((0, size, 1) for size in whole)
    body = graph.add(signature(TABLE["slice"], whole, sig.dtype, sig.device, (cut,)), (source,))
    parts = (*before, count - 1, chunk, *after)
    body = graph.add(signature(TABLE["reshape"], parts, sig.dtype, sig.device, (parts,)), (body,))
    few = (*before, count - 1, *after)
    fold = _FOLDS[str(sig.op.wgsl)]
    sums = graph.add(signature(fold, few, sig.dtype, sig.device, ((axis + 1,),)), (body,))
    totals = graph.add(signature(sig.op, few, sig.dtype, sig.device, (axis,)), (sums,))
    graph.sigs[number] = signature(sig.op, sig.shape, sig.dtype, sig.device, (axis, chunk))
    graph.inputs[number] = (source, totals)
    _split(graph, totals, profile)


def _chunk(profile: DeviceProfile, shape: tuple[int, ...], axis: int) -> int:
    """How many elements a thread takes; 0: all."""
    software = profile.kind == "software"
    wanted, least = (SOFTWARE_THREADS, SOFTWARE_CHUNK) if software else (GPU_THREADS, GPU_CHUNK)
    length, last = shape[axis], axis == len(shape) - 1
    rows = math.prod(shape) // max(1, length)
    if not last and shape[-1] % 4 == 0:  # a thread takes four rows
        rows //= 4
    if not rows or 8 * rows > wanted or length < MIN_SPLIT_LENGTH:
        return 0
    chunk = max(least, -(-length * rows // wanted))
    return (chunk // LINE | 1) * LINE if chunk < length else 0
