"""Resolving a queue: recorded commands over slots → physical buffers, bind groups, pipelines.

Comes in: a `Pending` queue whose commands name slots (numbers of virtual buffers in order of appearance).
Goes out: a `Resolved` queue. Walking the commands in order, a slot gets a buffer when it is first used and
gives it back after its last use if nobody holds the tensor any more; so buffers are reused inside the
queue. The invariant: when resolving raises, the pool lends exactly what it lent before.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .collector import collector_paused
from .groups import BindGroup
from .layer import Prepared, Row
from .pending import Command, Grid, Pending
from .pipelines import Pipeline
from .pool import Pool
from .references import Tagged, tagged

if TYPE_CHECKING:
    from .context import Context

Uncompiled = tuple[Pipeline, BindGroup, int, Grid, list[int]]  # a Row whose pipeline is not waited for yet


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
    changed: tuple[int, ...]  # held slots that came with contents and are written to
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
        with collector_paused():
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
        self.inputs = set(filter(None, inputs))
        self.needed: set[int] = set()
        self.touched = set(self.inputs)
        self.pool.protected = self.touched
        self.in_place = 0

    def run(self, commands: list[Command]) -> list[Uncompiled | None]:
        """Give every command its bind group, and ask for its pipeline; None where there is nothing to do."""
        steps: list[Uncompiled | None] = []
        request = self.context.compiler.request
        unused, last_uses = self._last_uses(commands)
        for slot in unused:
            self._drop(slot)
        for (pipeline, grid, slots, exact), dying in zip(commands, last_uses, strict=True):
            params_size = pipeline.params_size
            wanted: Pipeline | None = pipeline
            if pipeline.in_place and dying:
                wanted, slots, exact = self._donate(pipeline, slots, exact, dying)
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
            changed=tuple(slot for slot in self._written(commands) if came_with[slot] and held[slot]),
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

    def _donate(
        self, pipeline: Pipeline, slots: list[int], exact: list[int], dying: list[int]
    ) -> tuple[Pipeline | None, list[int], list[int]]:
        """Give the buffers of inputs that die here to outputs, where the kernel has a variant for that."""
        sizes, physical = self.sizes, self.physical
        bases = [self._base(slot) for slot in slots]
        for pairs, variant in pipeline.in_place:
            if all(
                slots[old] in dying
                and physical[slots[old]]
                and not physical[slots[new]]
                and sizes[slots[old]] == sizes[slots[new]]
                and bases.count(slots[old]) == 1
                and (not exact or exact[old] == exact[new])
                for old, new in pairs
            ):
                gone = {old for old, _ in pairs}
                for old, new in pairs:
                    physical[slots[new]], physical[slots[old]] = physical[slots[old]], 0
                self.in_place += len(pairs)
                kept = [place for place in range(len(slots)) if place not in gone]
                return variant, [slots[place] for place in kept], [exact[place] for place in kept if exact]
        return pipeline, slots, exact

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
