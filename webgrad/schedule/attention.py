"""Attention of few queries over many keys is split into chunks, whose results are then combined.

A chunk gives sums relative to its largest score, that score, and the sum of its weights. Combining is plain
arithmetic, which fuses with what follows. The number of chunks depends on the room for keys, never on the
number of keys at run time, which the kernel splits among the chunks. Node ids stay.
"""

from __future__ import annotations

from .. import dtypes
from ..device_profile import DeviceProfile
from ..graph.node import signature
from ..graph.snapshot import Snapshot
from ..ops.table import TABLE

MAX_SOFTWARE_BLOCKS = 64  # workgroups from which there is work for every core
MAX_GPU_BLOCKS = 512
MIN_SOFTWARE_KEYS = 1024  # keys of a chunk, at least: with fewer, combining costs more than it saves
MIN_GPU_KEYS = 128
ROWS_OF_BLOCK = 16  # queries that share a workgroup, about


def split_attention(graph: Snapshot, profile: DeviceProfile) -> None:
    """Rewrite the attention of a graph in place."""
    for number in graph.order():
        sig = graph.sigs[number]
        if sig.kind == "attend" and not sig.attributes[3]:
            chunks = chunks_of(graph, number, profile)
            if chunks > 1:
                _in_chunks(graph, number, chunks)


def chunks_of(graph: Snapshot, number: int, profile: DeviceProfile) -> int:
    """The number of chunks of keys."""
    batches, heads, queries, _ = graph.sigs[number].shape
    _, key_heads, keys, _ = graph.sigs[graph.inputs[number][1]].shape
    blocks = batches * key_heads * -(-queries * (heads // max(key_heads, 1)) // ROWS_OF_BLOCK)
    software = profile.kind == "software"
    most, least = (MAX_SOFTWARE_BLOCKS, MIN_SOFTWARE_KEYS) if software else (MAX_GPU_BLOCKS, MIN_GPU_KEYS)
    return max(1, min(most // max(blocks, 1), keys // least))


def _in_chunks(graph: Snapshot, number: int, chunks: int) -> None:
    """Combine the chunks' results: their weighted mean, relative to the largest score of all."""
    sig = graph.sigs[number]
    whole = (chunks, *sig.shape)
    attributes = (*sig.attributes[:3], chunks)
    sigs = tuple(graph.sigs[each] for each in graph.inputs[number])
    assert sig.op.infer is not None
    shape, dtype = sig.op.infer(sigs, attributes)
    parts = graph.add(signature(sig.op, shape, dtype, sig.device, attributes), graph.inputs[number])

    def add(op: str, made: tuple[int, ...], inputs: tuple[int, ...], *attributes: object) -> int:
        return graph.add(signature(TABLE[op], made, dtypes.float32, sig.device, attributes), inputs)

    def columns(start: int, stop: int) -> int:
        spans = (*((0, size, 1) for size in shape[:4]), (start, stop, 1))
        taken = add("slice", (*shape[:4], stop - start), (parts,), spans)
        return taken if stop - start == sig.shape[3] else add("expand", whole, (taken,), whole)

    # Largest scores and sums are expanded over the columns: then all folds have the same rows, in one kernel.
    after = shape[4] - 4
    largest = columns(after, after + 1)
    most = add("max", sig.shape, (largest,), (0,))
    spread = add("expand", whole, (add("reshape", (1, *sig.shape), (most,), (1, *sig.shape)),), whole)
    weight = add("exp", whole, (add("subtract", whole, (largest, spread)),))
    total = add("sum", sig.shape, (add("multiply", whole, (weight, columns(0, sig.shape[3]))),), (0,))
    share = add("sum", sig.shape, (add("multiply", whole, (weight, columns(after + 1, after + 2))),), (0,))
    graph.sigs[number] = signature(TABLE["divide"], sig.shape, dtypes.float32, sig.device)
    graph.inputs[number] = (total, share)
