"""The passes over a graph for the cpu, in the order in which they run; `passes.py` has those for GPUs.

Native code has ops of every size and dtype, so nothing is legalised for it; what is long is split so that
every thread has work. Sorts, scatters and transforms are NumPy's.
"""

from __future__ import annotations

from ..graph.node import Signature
from ..graph.snapshot import Snapshot
from .host_ops import HOST_KINDS, pulls_inputs
from .padded_windows import windowed_pads
from .passes import PAIRS, SHARED, SPLIT_REDUCTIONS, SPLIT_SCANS, Pass, Passes, on_any_profile
from .sorted_values import sort_values
from .transposed_scatters import write_turned
from .transposed_windows import windowed_transposes

__all__ = ["CPU_PASSES"]


def _kept(graph: Snapshot) -> set[int]:
    """What windows overlap on."""
    return windowed_pads(graph) | windowed_transposes(graph)


def _is_alone(sig: Signature) -> bool:
    """Whether a plan computes a node by itself: by NumPy, or because it goes by blocks of weights."""
    return sig.kind in HOST_KINDS or sig.kind == "decode"


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
    kept=_kept,
    pulls=pulls_inputs,
)
