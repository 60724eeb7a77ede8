"""Groups as native code: which lowering, and which form.

In: a group of a schedule for the cpu. Out: its `Program`, and the `Kernel` whose buffers and scalars it has.
"""

from __future__ import annotations

from ..graph.snapshot import Snapshot
from ..lower.ir import Kernel
from ..lower.lane_products import Lowering
from ..lower.lanes import LOWER
from ..native.emit import Program, kernel_program
from ..native.processor import Processor
from ..native.templates.formats import FORMATS
from ..schedule.host_ops import is_by_host
from ..schedule.plan import Group
from .attention_programs import attention_program
from .block_programs import block_program, weights_program
from .product_programs import product_program

__all__ = ["has_program", "lowered"]


def has_program(graph: Snapshot, group: Group) -> bool:
    """Whether a group is native code: no sort or transform, and of no blocks that no template unpacks."""
    sig = graph.sigs[group.center]
    of_blocks = group.kind == "decode" or (group.kind == "contract" and sig.op.name == "matmul_blocks")
    if of_blocks and sig.attributes[0] not in FORMATS:
        return False
    return not is_by_host(graph, group.outputs[0])


def lowered(graph: Snapshot, group: Group, processor: Processor) -> tuple[Program, Kernel]:
    """A group as native code, and as the kernel whose buffers and scalars that has."""
    if group.kind == "contract":
        if graph.sigs[group.center].op.name == "matmul_blocks":
            return block_program(graph, group, processor)
        return product_program(Lowering(graph, group), processor)
    if group.kind == "decode":
        return weights_program(graph, group, processor)
    if group.kind == "attend":
        return attention_program(graph, group, processor)
    work = LOWER[group.kind](graph, group)
    return kernel_program(work, processor), work.kernel
