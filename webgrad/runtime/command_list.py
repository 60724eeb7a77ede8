"""Lists of commands over numbered slots, to be run again over other buffers.

In: launches over slots. Out: a `CommandList`, whose replay by the queue makes no records for commands and
temporaries: only its inputs and outputs are buffers. Its number is its key among the resolved queues, which
do not keep it alive, and forget it when it is gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import TYPE_CHECKING
from weakref import ref

from ..errors import LaunchError
from ..observing import Note
from .buffers import Buffer, Virtual
from .pending import Grid, Head, Pending, Size
from .pipelines import Pipeline
from .pool import size_class
from .shield import shield
from .submission import flush_pending

if TYPE_CHECKING:
    from .queue import Queue

_numbers = count()


class CommandList:
    """Commands over slots: `inputs` are given at each replay, `outputs` are new, all others temporary."""

    def __init__(self, max_binding: int) -> None:
        self.max_binding = max_binding
        self.number = next(_numbers)
        self.heads: list[Head] = []
        self.code: list[int] = []
        self.sizes: list[Size] = []
        self.nbytes: list[int] = []
        self.inputs: list[int] = []
        self.outputs: list[int] = []
        self.views = 0
        self._numbers: dict[Head, int] = {}
        self._blank: list[Virtual] = []

    def slot(self, nbytes: int, *, given: bool = False) -> int:
        """A new slot for so many bytes; `given`: an input."""
        size = size_class(nbytes, self.max_binding)
        slot = self._add(nbytes, size)
        self.views += size > self.max_binding
        if given:
            self.inputs.append(slot)
        return slot

    def view(self, slot: int, start: int, nbytes: int) -> int:
        """A slot that is a part of another."""
        self.views += 1
        return self._add(nbytes, (slot, start, nbytes))

    def _add(self, nbytes: int, size: Size) -> int:
        self.sizes.append(size)
        self.nbytes.append(nbytes)
        self._blank.append(Virtual(nbytes, size, "", None, len(self._blank)))
        return len(self.sizes) - 1

    def launch(self, pipeline: Pipeline, grid: Grid, slots: Sequence[int]) -> None:
        """Record one command; its parameters are given at each replay."""
        if len(slots) != pipeline.arity:
            raise LaunchError(f"{pipeline!r} has {pipeline.arity} bindings, not {len(slots)}")
        head = (pipeline, grid)
        number = self._numbers.setdefault(head, len(self.heads))
        if number == len(self.heads):
            self.heads.append(head)
        words = [(self.nbytes[slot] + 3) // 4 for slot in slots] if pipeline.exact else ()
        self.code += (number, *slots, *words)

    def pending(self, donated: frozenset[int], params: list[bytes]) -> Pending:
        """A queue of these commands whose inputs and outputs are still to be filled in."""
        pending = _Replayed(self, donated)
        pending.code, pending.params, pending.views = self.code, params, self.views
        pending.virtuals = self._blank.copy()
        return pending


class _Replayed(Pending):
    """The commands of a list, pending; what makes two of them the same is known beforehand."""

    __slots__ = ("donated", "number", "source")

    def __init__(self, source: CommandList, donated: frozenset[int]) -> None:
        super().__init__(source.heads)
        self.number = source.number
        self.source = ref(source)
        self.donated = donated

    def dropped(self) -> list[Virtual]:
        """None: inputs that are donated are their tensors' until all has run."""
        return []

    def key(self) -> object:
        """The list's number, and which of its inputs are donated."""
        return self.number, self.donated

    def owner(self) -> object:
        """The list."""
        return self.source()


def replay(
    queue: Queue,
    commands: CommandList,
    inputs: Sequence[Buffer],
    params: list[bytes],
    donated: frozenset[int] = frozenset(),
    notes: Sequence[Note] = (),
) -> list[Buffer]:
    """Run a list of commands over other buffers, in a submission of its own; gives its outputs.

    `donated` are the numbers of inputs that nobody needs afterwards: results may take their buffers, and they
    are freed. `notes` are what its commands are about, where somebody watches.
    """
    with shield, queue.lock:
        queue.enter()
        pending = commands.pending(donated, params)
        if queue.pending.code:
            _flush_before(queue, pending, commands, inputs, donated)
        idle, crowded = queue.pending, queue.crowded
        waiting = [(each.virtual, each.virtual.slot) for each in inputs if idle.owns(each.virtual)]
        pending.notes = dict(enumerate(notes))
        for number, (slot, buffer) in enumerate(zip(commands.inputs, inputs, strict=True)):
            virtual = queue.get(buffer)
            if not virtual.physical:
                queue.restore(virtual)
            pending.virtuals[slot] = virtual
            virtual.pending, virtual.slot = None if number in donated else pending, slot
        given = dict(zip(commands.inputs, inputs, strict=True))
        outputs: dict[int, Buffer] = {}
        for slot in commands.outputs:
            if slot not in outputs and slot not in given:
                nbytes = commands.nbytes[slot]
                virtual = Virtual(nbytes, queue.size_class_of(nbytes), "", pending, slot)
                pending.virtuals[slot] = virtual
                outputs[slot] = Buffer(queue, queue.virtuals.insert(virtual), virtual)
        queue.pending, queue.crowded = pending, False
        try:
            flush_pending(queue, "replay")
        finally:
            pending.forget()
            if idle.code or queue.pending is pending:
                queue.pending, queue.crowded = idle, crowded
                for virtual, slot in waiting:
                    virtual.pending, virtual.slot = idle, slot
        for number in donated:
            queue.virtuals.discard(inputs[number].handle)
        return [outputs.get(slot) or given[slot] for slot in commands.outputs]


def _flush_before(
    queue: Queue,
    pending: Pending,
    commands: CommandList,
    inputs: Sequence[Buffer],
    donated: frozenset[int],
) -> None:
    """Run what a list's inputs wait for; where there is no room for all that is pending, no more."""
    written = {
        slot
        for pipeline, _, slots, _ in pending.commands()
        for slot, access in zip(slots, pipeline.accesses, strict=True)
        if access == "read_write"
    }
    changed = [
        each
        for number, (slot, each) in enumerate(zip(commands.inputs, inputs, strict=True))
        if slot in written or number in donated
    ]
    flush_pending(queue, "replay", read=inputs, written=changed)
