"""The passes over a graph for the cpu, in the order in which they run; `passes.py` has those for GPUs.

Native code has ops of every size and dtype, so nothing is legalised for it; what is long is split so that
every thread has work. Sorts, scatters and transforms are NumPy's.
"""

from __future__ import annotations

from ..graph.node import Signature
from ..graph.snapshot import Snapshot
from .padded_windows import windowed_pads
from .passes import PAIRS, SHARED, SPLIT_REDUCTIONS, SPLIT_SCANS, Pass, Passes, on_any_profile
from .sorted_values import sort_values
from .transposed_scatters import write_turned

__all__ = ["CPU_PASSES", "is_by_host"]

LEAST_COLUMNS = 16
_HOST_KINDS = frozenset(("sort", "scatter", "fft", "kernel"))


def is_by_host(graph: Snapshot, number: int) -> bool:
    """Whether NumPy computes a node of a native plan: there is no kernel for it."""
    sig = graph.sigs[number]
    return sig.kind in _HOST_KINDS and not _adds_rows(graph, number)


def _adds_rows(graph: Snapshot, number: int) -> bool:
    """Whether rows are added to computed places that are long enough for lanes."""
    sig = graph.sigs[number]
    if sig.op.name != "scatter_add" or not sig.size:
        return False
    index = graph.sigs[graph.inputs[number][1]].dtype
    return sig.shape[1] >= LEAST_COLUMNS and sig.dtype.itemsize >= 4 and index.itemsize <= 4


def _is_alone(sig: Signature) -> bool:
    """Whether a plan computes a node by itself: by NumPy, or because it goes by blocks of weights."""
    return sig.kind in _HOST_KINDS or sig.kind == "decode"


CPU_PASSES = Passes(
    (
        PAIRS,
        Pass(on_any_profile(write_turned), "a scatter between two transposes writes through the view"),
        Pass(on_any_profile(sort_values), "a sort whose order nobody else wants is one of the elements"),
        *SHARED,
        SPLIT_SCANS,
        SPLIT_REDUCTIONS,
    ),
    shares_kernels=True,
    alone=_is_alone,
    kept=windowed_pads,
)
