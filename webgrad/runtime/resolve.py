"""Resolving a queue: recorded commands over slots → physical buffers, bind groups, pipelines.

Comes in: a `Pending` queue whose commands name slots (numbers of virtual buffers in order of appearance).
Goes out: a `Resolved` queue. Walking the commands in order, a slot gets a buffer when it is first used and
gives it back after its last use if nobody holds the tensor any more; so buffers are reused inside the
queue. The invariant: when resolving raises, the pool lends exactly what it lent before.
"""

from __future__ import annotations

import gc
from array import array
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..observing import Note
from .groups import BindGroup
from .layer import Prepared, Row
from .pipelines import Pipeline
from .pool import Pool
from .references import Tagged, tagged

if TYPE_CHECKING:
    from .buffers import Buffer, Virtual
    from .context import Context

__all__ = ["Command", "Grid", "Head", "Part", "Pending", "Resolved", "ResolvedQueues", "Size", "resolve"]

View = tuple[int, int, int]  # the slot it is a part of, offset, bytes
Size = int | View
Grid = tuple[int, int, int]
Head = tuple[Pipeline, Grid]
Command = tuple[Pipeline, Grid, list[int], list[int]]  # pipeline, grid, slots, exact sizes in words
Step = tuple[Pipeline, BindGroup, int, Grid, list[int]]  # …, bytes of parameters, grid, slots


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

    def given_away(self) -> frozenset[int]:
        """The slots of state that nobody needs after the command that replaces it: a recording's only."""
        return frozenset()

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


@dataclass(slots=True)
class Resolved:
    """A queue ready to replay, valid while its inputs sit in the same buffers and `needed` are free."""

    prepared: Prepared
    inputs: list[int]  # by slot: the buffer it had before, 0 for none
    needed: frozenset[int]  # buffers that must be free before
    touched: frozenset[int]
    outcome: tuple[tuple[int, int], ...]  # (slot, buffer) of held tensors that got their buffer here
    to_lend: tuple[int, ...]
    to_give: tuple[int, ...]
    overwritten: tuple[int, ...]  # slots that came with contents and are written to
    in_place: int
    launched: tuple[bool, ...] | None = None  # of each command, where not all are: there is nothing to do
    peak: int = 0  # bytes it has lent at most, beyond what was lent before

    @property
    def weight(self) -> int:
        """How much it takes to remember it: its commands and its slots."""
        return len(self.prepared.rows) + len(self.inputs)


class ResolvedQueues:
    """Resolved queues by structure, a few variants each (inputs may ping-pong), the least used go first."""

    def __init__(self, max_weight: int = 600_000, variants: int = 4) -> None:
        self.max_weight = max_weight
        self.variants = variants
        self._queues: OrderedDict[object, list[Resolved]] = OrderedDict()
        self._weight = 0
        self._owners: dict[object, Tagged[object]] = {}
        self._ended: deque[Tagged[object]] = deque()  # those that are gone; added to at any time

    def __len__(self) -> int:
        return sum(map(len, self._queues.values()))

    def find(self, key: object, inputs: list[int], free: set[int]) -> Resolved | None:
        """The variant whose inputs sit where they did and whose other buffers are free."""
        for resolved in self._queues.get(key, ()):
            if resolved.inputs == inputs and resolved.needed <= free:
                self._queues.move_to_end(key)
                return resolved
        return None

    def remember(self, key: object, resolved: Resolved, owner: object = None) -> None:
        """Keep a queue under its key; when the owner is gone, nobody will ask for that key again."""
        while self._ended:
            gone = self._ended.popleft().tag
            self._owners.pop(gone, None)
            self._weight -= sum(each.weight for each in self._queues.pop(gone, ()))
        if owner is not None and key not in self._owners:
            self._owners[key] = tagged(owner, key, self._ended.append)
        variants = self._queues.setdefault(key, [])
        variants.append(resolved)
        self._queues.move_to_end(key)
        self._weight += resolved.weight
        if len(variants) > self.variants:
            self._weight -= variants.pop(0).weight
        while self._weight > self.max_weight and len(self._queues) > 1:
            _, dropped = self._queues.popitem(last=False)
            self._weight -= sum(each.weight for each in dropped)

    def drop_buffer(self, buffer: int) -> None:
        """Forget every queue that uses this buffer."""
        for key, variants in list(self._queues.items()):
            kept = [each for each in variants if buffer not in each.touched]
            if len(kept) < len(variants):
                self._weight -= sum(each.weight for each in variants if buffer in each.touched)
                if kept:
                    self._queues[key] = kept
                else:
                    del self._queues[key]

    def clear(self) -> None:
        self._queues.clear()
        self._weight = 0


def resolve(pending: Pending, inputs: list[int], context: Context) -> Resolved:
    """Give every slot its buffer, every command its bind group and pipeline."""
    pool = context.pool
    free_before = set(pool.free)
    live_before, peak_before = pool.bytes_live, pool.bytes_peak
    pool.bytes_peak = live_before
    walk = _Walk(pending, inputs, context)
    try:
        with _collector_paused():
            commands = pending.commands()
            with context.groups.creating():
                steps = walk.run(commands)
            # Only now: the compiling threads need error scopes, and have to wait for those of `creating`.
            compiled = context.compiler.get
            rows = [
                Row(compiled(pipeline), group, size, grid, slots)
                for pipeline, group, size, grid, slots in filter(None, steps)
            ]
            resolved = walk.resolved(context.encoder.prepare(rows), commands)
            if len(rows) < len(steps):
                resolved.launched = tuple([step is not None for step in steps])
        resolved.peak = pool.bytes_peak - live_before
        return resolved
    except BaseException:
        _restore(pool, walk, free_before)
        raise
    finally:
        pending.placed = []
        pool.protected = set()
        pool.bytes_peak = max(pool.bytes_peak, peak_before)


@contextmanager
def _collector_paused() -> Iterator[None]:
    """No garbage collection: thousands of records are made that all live, and it would walk them again."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _restore(pool: Pool, walk: _Walk, free_before: set[int]) -> None:
    """Lend and take back until the pool lends what it lent before; what is new is free."""
    made = walk.touched - walk.inputs - free_before
    for buffer in (free_before | made) - pool.free:
        if buffer in pool.buffers:  # else it was evicted
            pool.give(buffer)
    pool.take_these(pool.free - free_before - made)


class _Walk:
    """One walk over the commands: who holds which buffer at each point."""

    def __init__(self, pending: Pending, inputs: list[int], context: Context) -> None:
        self.context = context
        self.pool = context.pool
        self.came_with = inputs
        self.views = pending.views
        self.sizes = [each.size for each in pending.virtuals]
        self.held = pending.held()
        self.physical = pending.placed = list(inputs)
        self.donated = pending.given_away()
        self.inputs = set(filter(None, inputs))
        self.needed: set[int] = set()
        self.touched = set(self.inputs)
        self.pool.protected = self.touched
        self.in_place = 0

    def run(self, commands: list[Command]) -> list[Step | None]:
        """Give every command its bind group, and ask for its pipeline; None where there is nothing to do."""
        steps: list[Step | None] = []
        request = self.context.compiler.request
        unused, last_uses = self._last_uses(commands)
        for slot in unused:
            self._drop(slot)
        for (pipeline, grid, slots, exact), dying in zip(commands, last_uses, strict=True):
            params_size = pipeline.params_size
            wanted: Pipeline | None = pipeline
            if pipeline.in_place and dying:
                wanted, slots = self._overwrite(pipeline, slots, exact, dying)
            elif pipeline.replacing is not None and self.donated:
                wanted, slots = self._replace(pipeline, slots, dying)
            if wanted is None:
                steps.append(None)
            else:
                request(wanted)
                steps.append((wanted, self._group(wanted, slots, exact), params_size, grid, slots))
            for slot in dying:
                self._drop(slot)
        return steps

    def resolved(self, prepared: Prepared, commands: list[Command]) -> Resolved:
        """What is left of the walk, to be replayed."""
        physical, held, came_with = self.physical, self.held, self.came_with
        kept = {buffer for buffer in physical if buffer}
        return Resolved(
            prepared=prepared,
            inputs=came_with,
            needed=frozenset(self.needed),
            touched=frozenset(self.touched),
            outcome=tuple(
                (slot, buffer) for slot, buffer in enumerate(physical) if buffer and not came_with[slot]
            ),
            to_lend=tuple(kept - self.inputs),
            to_give=tuple(self.inputs - kept),
            overwritten=tuple(slot for slot in self._written(commands) if came_with[slot] and held[slot]),
            in_place=self.in_place,
        )

    def _last_uses(self, commands: list[Command]) -> tuple[list[int], list[list[int]]]:
        """The dropped slots that no command uses, and for each command those it is the last to use."""
        sizes, held = self.sizes, self.held
        dying: list[list[int]] = [[] for _ in commands]
        seen = bytearray(len(sizes))
        for position in range(len(commands) - 1, -1, -1):
            for slot in commands[position][2]:
                if not seen[slot]:
                    seen[slot] = 1
                    size = sizes[slot]
                    if not isinstance(size, int):
                        slot = size[0]
                        if seen[slot]:
                            continue
                        seen[slot] = 1
                    if not held[slot]:
                        dying[position].append(slot)
        unused = [slot for slot, used in enumerate(seen) if not used and not held[slot]]
        return unused, dying

    def _drop(self, slot: int) -> None:
        buffer = self.physical[slot]
        if buffer:
            self.physical[slot] = 0
            self.pool.give(buffer)

    def _overwrite(
        self, pipeline: Pipeline, slots: list[int], exact: list[int], dying: list[int]
    ) -> tuple[Pipeline | None, list[int]]:
        """Let the output take over the buffer of an input that dies here, where the kernel has a variant."""
        output = slots[-1]
        sizes, physical = self.sizes, self.physical
        if physical[output] or not isinstance(sizes[output], int):
            return pipeline, slots
        bases = [self._base(slot) for slot in slots]
        for index, variant in pipeline.in_place:
            slot = slots[index]
            if exact and exact[index] != exact[-1]:
                continue
            if slot in dying and physical[slot] and sizes[slot] == sizes[output] and bases.count(slot) == 1:
                physical[output], physical[slot] = physical[slot], 0
                self.in_place += 1
                kept = slots[:-1]
                kept[index] = output
                return variant, kept
        return pipeline, slots

    def _replace(self, pipeline: Pipeline, slots: list[int], dying: list[int]) -> tuple[Pipeline, list[int]]:
        """Let state that was donated be overwritten by what replaces it: all of a launch's, or nothing."""
        assert pipeline.replacing is not None
        pairs, variant = pipeline.replacing
        sizes, physical = self.sizes, self.physical
        for old, new in pairs:
            before, after = slots[old], slots[new]
            fits = before in dying and before in self.donated and physical[before] and not physical[after]
            if not fits or sizes[before] != sizes[after] or slots.count(before) > 1:
                return pipeline, slots
        for old, new in pairs:
            before, after = slots[old], slots[new]
            physical[after], physical[before] = physical[before], 0
            self.in_place += 1
        gone = {old for old, _ in pairs}
        return variant, [slot for place, slot in enumerate(slots) if place not in gone]

    def _base(self, slot: int) -> int:
        """The slot itself, or the one it is a view of."""
        size = self.sizes[slot]
        return slot if isinstance(size, int) else size[0]

    def _buffer(self, slot: int) -> int:
        """The physical buffer of a slot, taken from the pool at its first use."""
        buffer = self.physical[slot]
        if not buffer:
            size = self.sizes[slot]
            if not isinstance(size, int):
                return self._buffer(size[0])
            buffer = self.physical[slot] = self.pool.take(size)
            if buffer not in self.inputs:
                self.needed.add(buffer)
            self.touched.add(buffer)
        return buffer

    def _group(self, pipeline: Pipeline, slots: list[int], exact: list[int]) -> BindGroup:
        physical = self.physical
        buffers = tuple([physical[slot] or self._buffer(slot) for slot in slots])
        groups = self.context.groups
        layout = groups.layout(pipeline.accesses)
        if not exact and not self.views:
            return groups.whole(layout, buffers)
        ranges = []
        for place, (slot, buffer) in enumerate(zip(slots, buffers, strict=True)):
            size = self.sizes[slot]
            offset, nbytes = (0, size) if isinstance(size, int) else size[1:]
            ranges.append((buffer, offset, 4 * exact[place] if exact else nbytes))
        return groups.ranges(layout, tuple(ranges))

    def _written(self, commands: list[Command]) -> list[int]:
        pairs = (
            (slot, access)
            for each in commands
            for slot, access in zip(each[2], each[0].accesses, strict=True)
        )
        return sorted({self._base(slot) for slot, access in pairs if access == "read_write"})
