"""The passes over a graph for the cpu, in the order in which they run; `passes.py` has those for GPUs.

NumPy computes ops of every size and dtype, so nothing is split or legalised for it; native code is split so
that every thread has work.
"""

from __future__ import annotations

from ..cpu.operations import is_by_host
from ..cpu.pairs import keep_pairs
from ..cpu.sorted_values import sort_values
from ..cpu.thin import keep_narrow
from ..cpu.turned import write_turned
from .padded_windows import windowed_pads
from .passes import PAIRS, SHARED, SPLIT_REDUCTIONS, SPLIT_SCANS, Pass, Passes, on_any_profile

_TURNED = Pass(on_any_profile(write_turned), "a scatter between two transposes writes through the view")
_NARROW = Pass(on_any_profile(keep_narrow), "products and attention read half-width operands as stored")
_PAIRS = Pass(on_any_profile(keep_pairs), "formulas over parts of complex numbers become NumPy's own ops")
_SORTED = Pass(on_any_profile(sort_values), "a sort whose order nobody else wants is one of the elements")
CPU_PASSES = Passes((PAIRS, _TURNED, _NARROW, _PAIRS, _SORTED, *SHARED), shares_kernels=False)
NATIVE_PASSES = Passes(
    (PAIRS, _TURNED, _NARROW, _SORTED, *SHARED, SPLIT_SCANS, SPLIT_REDUCTIONS),
    shares_kernels=True,
    alone=is_by_host,
    kept=windowed_pads,
)
