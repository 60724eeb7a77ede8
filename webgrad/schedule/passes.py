"""The passes over a graph for GPUs, in the order in which they run, and the record of a pass.

In: a `Snapshot`, which a pass rewrites in place; node ids stay. Out: nothing. The cpu's list is in
`cpu_passes.py`, apart because its passes need NumPy. The tables in README.md are made of both lists.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps

from ..device_profile import DeviceProfile
from ..graph.node import Signature
from ..graph.snapshot import Snapshot
from .attention import split_attention
from .common_subexpressions import share_common_subexpressions
from .legalise import legalise
from .packed_products import keep_packed
from .pairs import split_pairs
from .scans import split_scans
from .sorting import sort_by_keys
from .split_products import split_products
from .split_reductions import split_reductions
from .transposed_products import transpose_products

Change = Callable[[Snapshot, DeviceProfile], None]


@dataclass(frozen=True, slots=True)
class Pass:
    """A pass over a graph, and what it does in a sentence."""

    change: Change
    sentence: str


@dataclass(frozen=True, slots=True)
class Passes:
    """A backend's passes, whether one of its kernels may have several results, which nodes share a kernel
    with nothing but movement of what they read, which are stored, and which ops over whole values compute
    what they read.
    """

    passes: tuple[Pass, ...]
    shares_kernels: bool
    alone: Callable[[Signature], bool] = lambda sig: False
    kept: Callable[[Snapshot], set[int]] = lambda graph: set()
    pulls: Callable[[Snapshot, int], bool] = lambda graph, number: False


def on_any_profile(change: Callable[[Snapshot], object]) -> Change:
    """A pass that is the same for all profiles."""

    @wraps(change)
    def changed(graph: Snapshot, profile: DeviceProfile) -> None:
        change(graph)

    return changed


PAIRS = Pass(on_any_profile(split_pairs), "complex numbers become pairs of floats")
SHARED = (  # by both backends
    Pass(on_any_profile(share_common_subexpressions), "equal small values are computed once"),
    Pass(keep_packed, "products with quantised blocks read these packed, on real GPUs thin ones"),
    Pass(on_any_profile(transpose_products), "a product read only as its transpose is computed transposed"),
)
SPLIT_SCANS = Pass(split_scans, "long scans of few rows are cut into chunks")
SPLIT_REDUCTIONS = Pass(split_reductions, "long reductions with few results are done in parts")
GPU_PASSES = Passes(
    (
        PAIRS,
        Pass(
            on_any_profile(sort_by_keys),
            "sorts, searches and counts of elements go by unsigned keys and scatters",
        ),
        *SHARED,
        Pass(on_any_profile(legalise), "ops and dtypes that no kernel has become ones that kernels have"),
        Pass(split_products, "products with few blocks and a long k become sums of products"),
        SPLIT_SCANS,
        Pass(split_attention, "attention of few queries over many keys is dealt out to chunks"),
        SPLIT_REDUCTIONS,
    ),
    shares_kernels=True,
)
