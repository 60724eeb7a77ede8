"""What would run: the kernels of a value that is not computed yet, with their bytes, IR and text.

In: tensors. Out: an `Explanation`, which prints well. Nothing is computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..cpu.programs import has_program, lowered
from ..device_profile import CPU_PROFILE
from ..errors import ArgumentError, DTypeError
from ..evaluate.evaluate import snapshot_of
from ..graph.node import line_of
from ..graph.snapshot import Snapshot
from ..lower.choices import Choice
from ..lower.compile import compile_schedule
from ..lower.structures import alias_of
from ..lower.threads import name_of
from ..native.compiler import is_available
from ..native.processor import chosen
from ..ops.primitives import check_device
from ..runtime.stats import readable_bytes
from ..schedule.cpu_passes import CPU_PASSES
from ..schedule.plan import Group
from ..schedule.schedule import schedule
from ..schedule.work import work_of
from ..tensor import Tensor
from ..tuning.choice import known

__all__ = ["Explanation", "KernelExplanation", "explain"]


@dataclass(frozen=True, slots=True)
class KernelExplanation:
    """One kernel: its ops in order, the bytes it moves, its IR, its text (WGSL, on the cpu LLVM's), and its
    workgroups (on the cpu units of work).

    `operations` are about the additions and products it takes, `line` the user's line it is about.
    """

    name: str
    ops: tuple[str, ...]
    bytes_read: int
    bytes_written: int
    ir: str
    text: str
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

    On the cpu these are the kernels of native code; what NumPy computes between them has no text.

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
    count = graph.count
    device = roots[0].sig.device
    text = repr(graph)
    made = _kernels_of(graph, device)
    kernels: list[KernelExplanation] = []
    steps = []
    for groups, texts in made:
        work = work_of(graph, groups, count).share(max(1, len(texts)))
        reads = {each for group in groups for each in group.reads}
        writes = {each for group in groups for each in group.outputs}
        steps.append((reads, writes))
        kernels += [
            KernelExplanation(
                name,
                work.ops,
                work.bytes_read,
                work.bytes_written,
                ir,
                written,
                grid,
                work.operations,
                line_of(graph.lines[work.origin]) if work.origin >= 0 else "",
                choice,
            )
            for name, ir, written, grid, choice in texts
        ]
    return Explanation(device.name, kernels, text, _peak(graph, steps))


# A kernel's name, IR, text, grid, and the choice by which it was made
_Text = tuple[str, str, str, tuple[int, int, int], Choice | None]


def _kernels_of(graph: Snapshot, device: Any) -> list[tuple[Sequence[Group], list[_Text]]]:
    """The kernels of each bundle of groups."""
    if not device.is_gpu:
        plan = schedule(graph, CPU_PROFILE, CPU_PASSES)
        return [((group,), _native_texts(graph, group)) for group in plan.groups]
    plan = schedule(graph, device.profile)
    found: list[tuple[Sequence[Group], list[_Text]]] = []
    for groups, launches in compile_schedule(plan, device.profile, offered=True, choose=known(device)):
        texts: list[_Text] = [
            (each.kernel.name, str(each.kernel), each.program.text, each.grid, each.choice)
            for each in launches
        ]
        found.append((groups, texts))
    return found


def _native_texts(graph: Snapshot, group: Group) -> list[_Text]:
    """The kernel of a group on the cpu: none where it only reshapes, and no text where NumPy computes it."""
    output = group.outputs[0]
    if not graph.sigs[output].size or alias_of(graph, (group,)) is not None:
        return []
    if not has_program(graph, group) or not is_available():
        return [(name_of(graph, group), "", "", (0, 0, 0), None)]
    program, kernel = lowered(graph, group, chosen())
    return [(kernel.name, str(kernel), program.text, (program.units, 1, 1), None)]


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
