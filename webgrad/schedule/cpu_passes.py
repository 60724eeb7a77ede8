"""The passes over a graph for the cpu, in the order in which they run; `passes.py` has those for GPUs.

NumPy computes ops of every size and dtype, so nothing is split or legalised.
"""

from __future__ import annotations

from ..cpu.pairs import keep_pairs
from ..cpu.sorted_values import sort_values
from ..cpu.thin import keep_narrow
from ..cpu.turned import write_turned
from .passes import PAIRS, SHARED, Pass, Passes, on_any_profile

CPU_PASSES = Passes(
    (
        PAIRS,
        Pass(on_any_profile(write_turned), "a scatter between two transposes writes through the view"),
        Pass(on_any_profile(keep_narrow), "thin products and attention read half-width operands as stored"),
        Pass(on_any_profile(keep_pairs), "formulas over parts of complex numbers become NumPy's own ops"),
        Pass(on_any_profile(sort_values), "a sort whose order nobody else wants is one of the elements"),
        *SHARED,
    ),
    shares_kernels=False,
)
