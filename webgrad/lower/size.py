"""How large a finished kernel is for a driver's compiler, in the units of `schedule/size.py`, which
estimates a kernel before it is written.

In: a `Kernel`. Out: its size in additions.
"""

from __future__ import annotations

from ..schedule.size import COMPONENT, SHARED, TEMPLATE, wide_factor
from .ir import Instruction, Kernel

_SINGLE = frozenset({"arithmetic", "compare", "cast", "select"})


def emitted_size(kernel: Kernel) -> int:
    """Additions that take as long to compile as the kernel."""
    bodies = (kernel.body, *(hole.body for hole in kernel.holes))
    total = sum(_size(kernel, each) for body in bodies for each in body)
    return total + (TEMPLATE if kernel.template is not None else 0)


def _size(kernel: Kernel, each: Instruction) -> int:
    if each.op in ("load", "store"):
        return _access(kernel, each)
    if each.op == "decode":
        return 4 * COMPONENT
    if each.op in ("apply", "combine"):
        type = each.args[-1].type
        wide = type is not None and type.scalar == "f64"
        cost: int = each.data.cost
        return cost * wide_factor(cost, "f", 8 if wide else 4)
    return int(each.op in _SINGLE)


def _access(kernel: Kernel, each: Instruction) -> int:
    """A load or a store: of one component, or of four."""
    if each.args[0].op == "const":
        return SHARED
    type = each.type if each.op == "load" else each.args[1].type
    nbytes: int = (1 if type is None else type.width) * kernel.buffers[each.data].dtype.itemsize
    return COMPONENT * max(1, nbytes // 4)
