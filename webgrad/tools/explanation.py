"""What would run: the kernels of a value that is not computed yet, with their bytes, IR and text.

In: tensors. Out: an `Explanation`, which prints well. Nothing is computed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..device_profile import CPU_PROFILE
from ..errors import ArgumentError, DTypeError
from ..evaluate.evaluate import snapshot_of
from ..graph.node import line_of
from ..graph.snapshot import Snapshot
from ..lower.choices import Choice
from ..lower.compile import Choose, compile_schedule
from ..lower.structures import alias_of
from ..lower.threads import name_of
from ..ops.primitives import check_device
from ..runtime.stats import readable_bytes
from ..schedule.schedule import schedule
from ..schedule.work import work_of
from ..tensor import Tensor
from ..tuning.choice import known

__all__ = ["Explanation", "KernelExplanation", "explain"]


@dataclass(frozen=True, slots=True)
class KernelExplanation:
    """One kernel: its ops in order, the bytes it moves, its IR, its WGSL, and its workgroups.

    `operations` are about the additions and products it takes, `line` the user's line it is about.
    """

    name: str
    ops: tuple[str, ...]
    bytes_read: int
    bytes_written: int
    ir: str
    wgsl: str
    grid: tuple[int, int, int]
    operations: int
    line: str
    choice: Choice | None = None  # by which it was made, where tuning chose

    def __repr__(self) -> str:
        moved = f"reads {readable_bytes(self.bytes_read)}, writes {readable_bytes(self.bytes_written)}"
        return f"<kernel {self.name}: {len(self.ops)} ops, {moved}, grid {self.grid}>"


@dataclass(frozen=True, slots=True)
class Explanation:
    """The kernels in order, the graph they compute, and the most bytes that are held at one time.

    >>> explained = wg.explain(wg.relu(wg.ones((2, 3)) @ wg.ones((3, 4))))
    >>> len(explained.kernels), explained.device
    (1, 'cpu')
    """

    device: str
    kernels: list[KernelExplanation]
    graph: str
    bytes_peak: int

    def __str__(self) -> str:
        count = len(self.kernels)
        peak = readable_bytes(self.bytes_peak)
        lines = [f"{count} kernel{'' if count == 1 else 's'} on {self.device}, peak {peak}"]
        for number, each in enumerate(self.kernels, 1):
            lines += [
                f"  {number}. {each.name}: {', '.join(each.ops)}",
                f"     reads {readable_bytes(each.bytes_read)}, writes {readable_bytes(each.bytes_written)}, "
                f"{each.operations:,} operations, grid {' × '.join(map(str, each.grid))}",
            ]
            if each.line:
                lines.append(f"     at {each.line}")
            if each.choice is not None:
                lines.append(f"     tuned: {', '.join(f'{name} {value}' for name, value in each.choice)}")
        return "\n".join(lines)

    __repr__ = __str__


def explain(*tensors: Any) -> Explanation:
    """The kernels that would compute these tensors; nothing is computed, and nothing is measured.

    On the cpu each kernel is a group that NumPy computes, shown as a GPU would have it; what GPUs do not
    offer has no text there.

    >>> x = wg.ones((4, 8))
    >>> print(wg.explain(wg.exp(x * 2)).kernels[0].ops)
    ('expand', 'multiply', 'exp')
    """
    if not tensors:
        raise ArgumentError("explain takes one tensor or more")
    for each in tensors:
        if not isinstance(each, Tensor):
            raise DTypeError(f"explain takes tensors, not a {type(each).__name__}")
    roots = list(dict.fromkeys(each.node for each in tensors))
    check_device("explain", *roots)
    graph = snapshot_of(roots)
    count = len(graph)
    device = roots[0].sig.device
    text = repr(graph)
    profile = device.profile if device.is_gpu else CPU_PROFILE
    plan = schedule(graph, profile)
    compiled = compile_schedule(plan, profile, offered=device.is_gpu, choose=_measured(device))
    kernels: list[KernelExplanation] = []
    steps = []
    for groups, launches in compiled:
        work = work_of(graph, groups, count).share(max(1, len(launches)))
        reads = {each for group in groups for each in group.reads}
        writes = {each for group in groups for each in group.outputs}
        steps.append((reads, writes))
        texts = [
            (each.kernel.name, str(each.kernel), each.program.text, each.grid, each.choice)
            for each in launches
        ]
        if not texts and graph.sigs[groups[0].outputs[0]].size and alias_of(graph, groups) is None:
            texts = [(name_of(graph, groups[0]), "", "", (0, 0, 0), None)]  # the cpu's alone
        kernels += [
            KernelExplanation(
                name,
                work.ops,
                work.bytes_read,
                work.bytes_written,
                ir,
                wgsl,
                grid,
                work.operations,
                line_of(graph.lines[work.origin]) if work.origin >= 0 else "",
                choice,
            )
            for name, ir, wgsl, grid, choice in texts
        ]
    return Explanation(device.name, kernels, text, _peak(graph, steps))


def _measured(device: Any) -> Choose | None:
    """Inside `wg.tune()`: the choices that were measured before; explaining measures nothing."""
    if not device.is_gpu:
        return None
    return known(device)


def _peak(graph: Snapshot, steps: list[tuple[set[int], set[int]]]) -> int:
    """The most bytes held at one time: leaves, roots, and what is between a value's first and last use."""
    leaves = {at for at in graph.order() if graph.sigs[at].kind == "leaf"}
    keep = leaves | set(graph.roots)
    last = {each: at for at, (reads, writes) in enumerate(steps) for each in reads | writes}
    live = set(leaves)
    peak: int = sum(graph.sigs[each].nbytes for each in live)
    for at, (reads, writes) in enumerate(steps):
        live |= writes
        peak = max(peak, sum(graph.sigs[each].nbytes for each in live))
        live -= {each for each in reads | writes if last[each] == at and each not in keep}
    return peak
