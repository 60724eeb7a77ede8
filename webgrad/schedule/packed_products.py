"""Products with quantised blocks keep them packed.

(…, k) @ decode(words).T becomes one contraction of floats and words. Other uses of the decoded weights do
not change: they are unpacked where they are read.
"""

from __future__ import annotations

import math

from ..device_profile import DeviceProfile
from ..graph.node import signature
from ..graph.snapshot import Snapshot
from ..ops.table import TABLE
from .plan import MAX_THIN_ROWS


def keep_packed(graph: Snapshot, profile: DeviceProfile) -> None:
    """Rewrite a graph in place; node ids stay."""
    for number in graph.order():
        sig = graph.sigs[number]
        if sig.op.name != "matmul" or not sig.size:
            continue
        if profile.kind != "software" and math.prod(sig.shape[:-1]) > MAX_THIN_ROWS:
            continue  # tiles unpack weights as they are loaded, thin products in registers
        a, b = graph.inputs[number]
        if graph.sigs[b].op.name != "permute" or graph.sigs[b].attributes[0] != (1, 0):
            continue
        (weights,) = graph.inputs[b]
        if graph.sigs[weights].op.name == "decode" and graph.sigs[weights].size:
            op, attributes = TABLE["matmul_blocks"], graph.sigs[weights].attributes
            graph.sigs[number] = signature(op, sig.shape, sig.dtype, sig.device, attributes)
            graph.inputs[number] = (a, *graph.inputs[weights])


def whole_inputs(graph: Snapshot, number: int) -> tuple[int, ...]:
    """The inputs of a node that kernels read from memory at any index: they must be stored."""
    sig, inputs = graph.sigs[number], graph.inputs[number]
    if sig.kind in ("sort", "scatter", "fft", "kernel"):
        return inputs
    if sig.kind == "decode":
        return inputs[:1]
    return inputs[1:] if sig.op.name == "matmul_blocks" else ()
