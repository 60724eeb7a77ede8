"""What a check found: the first op that is wrong, or how much was compared and how near to its bounds.

In: counts and the worst element of each comparison. Out: a `CheckReport` that prints well and becomes JSON.
"""

from __future__ import annotations

import linecache
import math
from dataclasses import asdict, dataclass, field
from typing import Any

from ...runtime.stats import counted

__all__ = ["CheckReport", "Divergence", "plain"]

Shape = tuple[int, ...]
SHOWN_LINES = 12  # of a kernel's text


@dataclass(frozen=True, slots=True)
class Divergence:
    """An op whose result on a GPU, or on the cpu, is not NumPy's, within what rounding may do."""

    op: str
    attributes: tuple[Any, ...]
    shape: Shape
    dtype: str
    shapes: tuple[Shape, ...]  # of its inputs
    dtypes: tuple[str, ...]
    max_error: float  # at the worst element
    tolerance: float  # there
    index: Shape  # of the worst element
    found: Any
    wanted: Any
    wrong: int  # elements beyond their bounds
    elements: int
    line: str  # the user's, as file:number
    kernel: str
    ops: tuple[str, ...]  # all that the kernel computes
    wgsl: str
    device: str
    cause: str  # a key of _CAUSES

    def __str__(self) -> str:
        return "\n".join(self.lines(SHOWN_LINES))

    def lines(self, shown: int | None = None) -> list[str]:
        """As text; `shown` lines of the kernel, or all of it."""
        inputs = ", ".join(
            f"{dtype} {list(shape)}" for dtype, shape in zip(self.dtypes, self.shapes, strict=True)
        )
        extra = f" {self.attributes}" if self.attributes else ""
        at = f"[{', '.join(map(str, self.index))}]"
        lines = [
            f"{self.op}{extra} of {inputs or 'nothing'} gives {self.dtype} {list(self.shape)}: wrong on "
            f"{self.device}",
            f"  {self.wrong:,} of {self.elements:,} elements; the worst is {at}: {_shown(self.found)}, "
            f"{'by NumPy' if self.cause == 'cpu' else 'on the cpu'} {_shown(self.wanted)}",
            f"  off by {self.max_error:.6g}; rounding may do {self.tolerance:.3g}",
            f"  {_CAUSES[self.cause]}",
        ]
        if self.line:  # a command of ours has none
            lines.append(f"  made at {self.line}")
            file, _, number = self.line.rpartition(":")
            code = linecache.getline(file, int(number)).strip() if number.isdigit() else ""
            lines += [f"    {code}"] if code else []
        if self.kernel:
            lines.append(f"  kernel {self.kernel}: {', '.join(self.ops)}")
        text = self.wgsl.splitlines()
        cut = text if shown is None else text[:shown]
        lines += [f"    {each}" for each in cut]
        if shown and len(cut) < len(text):
            lines.append(f"    … {len(text) - len(cut)} more lines: report.first.wgsl, or --wgsl")
        return lines


def _shown(value: Any) -> str:
    return f"{value:.9g}" if isinstance(value, float) else repr(value)


_CAUSES = {
    "op": "this op is wrong by itself, in a kernel of its own",
    "fusion": "its ops are right one by one: the kernel that fuses them is wrong",
    "rewrite": "its kernels do what the scheduler made of it: how that rewrote it is wrong",
    "run": "its kernels are right one by one: running them together gave another value",
    "cpu": "the cpu's own code is wrong; the GPU's kernel is right",
}


@dataclass(slots=True)
class CheckReport:
    """What a check compared, and what diverged."""

    device: str
    evaluations: int = 0
    kernels: int = 0
    nodes: int = 0
    elements: int = 0
    unjudged: int = 0  # elements that rounding may make anything of
    repeated: int = 0  # evaluations not compared since their structure was, as often as was asked for
    largest: float = 0.0  # the largest error in units of its tolerance
    largest_op: str = ""
    drift: float = 0.0  # where each device goes on from its own results: the largest relative difference
    skipped: dict[str, int] = field(default_factory=dict)  # what was not compared, and how often
    divergences: list[Divergence] = field(default_factory=list)
    result: Any = None  # what the function gave; None where it was stopped

    @property
    def ok(self) -> bool:
        """Whether nothing diverges; `kernels` says how much was compared."""
        return not self.divergences

    @property
    def first(self) -> Divergence | None:
        """The first op that diverges."""
        return self.divergences[0] if self.divergences else None

    def __str__(self) -> str:
        return "\n".join(self.lines(SHOWN_LINES))

    __repr__ = __str__

    def lines(self, shown: int | None = None) -> list[str]:
        """As text."""
        lines = [line for each in self.divergences for line in each.lines(shown)]
        verdict = "agrees with the cpu" if self.ok else "DIVERGES from the cpu"
        if self.ok and not self.kernels:
            verdict = "was not compared with the cpu"
        lines.append(
            f"{self.device} {verdict}: {counted(self.kernels, 'kernel')} of {counted(self.nodes, 'op')}, "
            f"{counted(self.elements, 'element')} compared in {counted(self.evaluations, 'evaluation')}"
        )
        if self.largest_op:
            lines.append(f"  the largest error is {self.largest:.2g} of its tolerance, in {self.largest_op}")
        if self.ok and self.drift:
            lines.append(f"  each device from its own results: {self.drift:.1e} apart at most, relatively")
        if self.unjudged:
            lines.append(f"  {self.unjudged:,} elements were not judged: rounding may make anything of them")
        if self.repeated:
            lines.append(f"  {self.repeated:,} evaluations of structures seen before were not compared again")
        lines += [f"  not compared: {what}, {count:,} times" for what, count in self.skipped.items()]
        return lines

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        names = ("device", "evaluations", "kernels", "nodes", "elements", "unjudged", "repeated")
        found = {name: getattr(self, name) for name in (*names, "largest", "largest_op", "drift", "skipped")}
        return {"ok": self.ok, **found, "divergences": [plain(asdict(each)) for each in self.divergences]}


def plain(value: Any) -> Any:
    """A value as JSON has it: what it has not, NaN and dtypes, as text."""
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    return value if isinstance(value, str | int | float | None) else str(value)
