"""A kernel in a GPU's own instructions: how many of each kind, and the loop in which its work is done.

In: what a parser has read of a driver's listing: labels, and instructions with their kind. Out: counts, and
the hot `Loop`. The same for every GPU.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

__all__ = ["Instruction", "Kind", "Loop", "Statistics", "count_kinds", "hot_loop"]

Kind = Literal["vector", "scalar", "memory", "workgroup", "branch", "wait"]


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction. `target` is the label that a branch may go to."""

    kind: Kind
    multiply_adds: int = 0  # that it does for a thread
    target: str = ""


@dataclass(frozen=True, slots=True)
class Loop:
    """An innermost loop: its instructions from the label to the branch back."""

    instructions: int
    multiply_adds: int
    kinds: Mapping[Kind, int]

    @property
    def share(self) -> float:
        """Multiply-adds for each instruction; above 1 where one instruction does several."""
        return self.multiply_adds / self.instructions


@dataclass(frozen=True, slots=True)
class Statistics:
    """What a driver's compiler says of one kernel."""

    registers: int  # that a thread holds, of 32 bits
    spills: int  # registers that went to memory
    scratch: int  # bytes of memory that a thread needs beside its registers
    workgroup_memory: int  # bytes
    occupancy: int  # subgroups that a processor holds at once …
    most: int  # … and how many it could hold
    lanes: int  # of a subgroup
    instructions: int
    kinds: Mapping[Kind, int]
    loop: Loop | None


def count_kinds(instructions: Sequence[Instruction]) -> dict[Kind, int]:
    """How many instructions of each kind, most first."""
    return dict(Counter(each.kind for each in instructions).most_common())


def hot_loop(listing: Sequence[str | Instruction]) -> Loop | None:
    """The innermost loop with the most multiply-adds, or instructions where none has any; None without loops.

    A label is a plain text in front of its instruction.
    """
    instructions, ranges = _ranges(listing)
    innermost = [each for each in ranges if not any(_inside(other, each) for other in ranges)]
    loops = [_loop(instructions[begin:end]) for begin, end in innermost]
    return max(loops, key=lambda each: (each.multiply_adds, each.instructions), default=None)


def _ranges(
    listing: Sequence[str | Instruction],
) -> tuple[list[Instruction], list[tuple[int, int]]]:
    """The instructions without labels, and the range of each loop among them."""
    instructions: list[Instruction] = []
    labels: dict[str, int] = {}
    ends: dict[int, int] = {}  # a loop's beginning → the end of its last branch back
    for each in listing:
        if isinstance(each, str):
            labels[each] = len(instructions)
            continue
        instructions.append(each)
        if each.target in labels:
            ends[labels[each.target]] = len(instructions)
    return instructions, list(ends.items())


def _inside(inner: tuple[int, int], outer: tuple[int, int]) -> bool:
    return inner != outer and outer[0] <= inner[0] and inner[1] <= outer[1]


def _loop(instructions: Sequence[Instruction]) -> Loop:
    multiply_adds = sum(each.multiply_adds for each in instructions)
    return Loop(len(instructions), multiply_adds, count_kinds(instructions))
