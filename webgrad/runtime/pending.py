"""Pending commands, flat: recorded over slots, which are numbers of virtual buffers in order of appearance.

In: what the queue records. Out: commands, and a key that is equal for two queues of the same structure. What
must run before some buffers are read or written to is a `Part` of them.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence, Set
from typing import TYPE_CHECKING

from ..observing import Note
from .pipelines import Pipeline

if TYPE_CHECKING:
    from .buffers import Buffer, Virtual

View = tuple[int, int, int]  # the slot it is a part of, offset, bytes
Size = int | View
Grid = tuple[int, int, int]
Head = tuple[Pipeline, Grid]
Command = tuple[Pipeline, Grid, list[int], list[int]]  # pipeline, grid, slots, exact sizes in words


class Pending:
    """The commands recorded since the last flush, flat: they are a key as they stand.

    `code` holds for each command the number of its head (pipeline and grid) in `heads`, the slots of its
    buffers and, where the kernel asks how long its arrays are, their sizes in words. `virtuals` are the
    buffers by slot.
    """

    __slots__ = ("code", "heads", "notes", "params", "placed", "views", "virtuals")

    def __init__(self, heads: Sequence[Head]) -> None:
        self.heads = heads
        self.code: list[int] = []
        self.params: list[bytes] = []
        self.notes: dict[int, Note] = {}  # what commands are about, where somebody watches
        self.virtuals: list[Virtual] = []
        self.placed: list[int] = []  # while it is resolved: the buffer of each slot, 0 for none
        self.views = 0

    def annotate(self, note: Note) -> None:
        """Say what the newest command is about."""
        self.notes[len(self.params) - 1] = note

    def forget(self) -> None:
        """Let the records go. Every tensor names the last queue it was in, and must not keep all of it."""
        self.code, self.params, self.virtuals, self.notes = [], [], [], {}

    def key(self) -> object:
        """What makes two queues the same: commands, sizes, and what is dropped. Never the parameters."""
        virtuals = self.virtuals
        sizes = tuple([each.size for each in virtuals])
        return array("I", self.code).tobytes(), sizes, bytes(self.held())

    def owns(self, virtual: Virtual) -> bool:
        """Whether somebody holds a buffer that has a slot here."""
        return virtual.pending is self

    def held(self) -> list[bool]:
        """Of each slot, whether its contents are needed when the commands have run."""
        return [each.pending is self for each in self.virtuals]

    def owner(self) -> object:
        """Who alone can ask for the key, as long as it lives; None where anybody can."""
        return None

    def commands(self) -> list[Command]:
        """The recorded numbers as commands."""
        code, heads = self.code, self.heads
        found: list[Command] = []
        at, end = 0, len(code)
        while at < end:
            pipeline, grid = heads[code[at]]
            first = at + 1
            after = first + pipeline.arity
            at = after + pipeline.arity if pipeline.exact else after
            found.append((pipeline, grid, code[first:after], code[after:at]))
        return found

    def dropped(self) -> list[Virtual]:
        """The buffers that only these commands keep."""
        return [each for each in self.virtuals if each.pending is None and each.physical]

    def prune(self) -> list[Virtual]:
        """Leave out commands whose results nobody holds or reads; gives the dropped buffers now unused."""
        wholes = self._wholes()
        kept = self._needed({wholes[at] for at, is_held in enumerate(self.held()) if is_held}, None)
        used = {
            wholes[slot]
            for at, (_, _, slots, _) in enumerate(self.commands())
            if at in kept
            for slot in slots
        }
        self._keep(self, kept)
        return [
            each for at, each in enumerate(self.virtuals) if each.pending is None and wholes[at] not in used
        ]

    def part(self, read: Iterable[Buffer], written: Iterable[Buffer] = ()) -> Part | None:
        """The commands that must run before some buffers are read or written to; None where it is all."""
        wholes = self._wholes()
        needed = self._needed(
            *(
                {wholes[each.virtual.slot] for each in buffers if self.owns(each.virtual)}
                for buffers in (read, written)
            )
        )
        return None if len(needed) == len(self.params) else Part(self, needed)

    def _wholes(self) -> list[int]:
        """Of each slot, the one that it is a part of, or itself."""
        return [at if isinstance(each.size, int) else each.size[0] for at, each in enumerate(self.virtuals)]

    def _needed(self, read: set[int], written: set[int] | None) -> set[int]:
        """The numbers of the commands that what is read waits for.

        And what is written to, with all that needs its old contents; None where those will not run later.
        """
        wholes, needed = self._wholes(), set()
        commands = self.commands()
        for number in range(len(commands) - 1, -1, -1):
            pipeline, _, slots, _ = commands[number]
            touches = {wholes[slot] for slot in slots}
            writes = {
                wholes[slot]
                for slot, access in zip(slots, pipeline.accesses, strict=True)
                if access == "read_write"
            }
            if not (writes.isdisjoint(read) and touches.isdisjoint(written or ())):
                needed.add(number)
                read |= touches
                if written is not None:
                    written |= writes
        return needed

    def _keep(self, source: Pending, numbers: Set[int]) -> None:
        """Have those of the commands of a queue over the same slots."""
        code: list[int] = []
        at = 0
        for number, (_, _, slots, words) in enumerate(source.commands()):
            end = at + 1 + len(slots) + len(words)
            if number in numbers:
                code += source.code[at:end]
            at = end
        kept = sorted(numbers)
        self.params, self.notes, self.code = (
            [source.params[old] for old in kept],
            {new: source.notes[old] for new, old in enumerate(kept) if old in source.notes},
            code,
        )


class Part(Pending):
    """Some commands of a queue, over its slots, to run ahead of the rest."""

    __slots__ = ("_held", "_numbers", "_whole")

    def __init__(self, whole: Pending, numbers: set[int]) -> None:
        super().__init__(whole.heads)
        self._whole, self._numbers = whole, numbers
        self._keep(whole, numbers)
        self.virtuals, self.views = whole.virtuals, whole.views
        wholes = self._wholes()
        later = {
            wholes[slot]
            for number, (_, _, slots, _) in enumerate(whole.commands())
            if number not in numbers
            for slot in slots
        }
        self._held = [is_held or wholes[at] in later for at, is_held in enumerate(whole.held())]

    def owns(self, virtual: Virtual) -> bool:
        return self._whole.owns(virtual)

    def held(self) -> list[bool]:
        """Also what the rest of the commands uses."""
        return self._held

    def leave(self) -> None:
        """It has run: the rest is what is pending."""
        whole = self._whole
        for virtual, is_held in zip(self.virtuals, self._held, strict=True):
            if not is_held:
                virtual.physical = 0
        whole._keep(whole, set(range(len(whole.params))) - self._numbers)
