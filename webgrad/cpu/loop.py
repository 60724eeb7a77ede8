"""A loop over blocks in several threads: what is between its nodes is small, and stays in the cache.

In: the nodes, the values they read, and the part of each that a block needs. Out: `Loop`, which reads a
plan's values and makes new arrays. The invariant: every element of a result is written by exactly one block,
and threads share nothing that is written but those results.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..arrays import Array, np
from ..graph.snapshot import Snapshot
from ..runtime.host_buffers import Buffers, empty
from ..runtime.threads import Scratch, share
from ..schedule.plan import is_part
from .code import Code, Run, fresh, into
from .folds import fold_of
from .follow import Cut, Part, Range, block_shape, index_of
from .operations import convert, iota

__all__ = ["Loop", "Source", "Store", "Work"]

Shape = tuple[int, ...]
_scratch = Scratch()


@dataclass(frozen=True, slots=True)
class Work:
    """What a loop computes: `members`, inputs first, over the blocks of `ranges`.

    `parts` says of members and of what they read which part a block needs. With `folded` axes the one root
    is a fold over axes of the domain, of which some are cut.
    """

    roots: tuple[int, ...]
    members: tuple[int, ...]
    parts: Mapping[int, Part]
    ranges: Cut
    folded: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Source:
    """A value read: its number in the plan."""

    node: int
    slot: int
    narrow: bool


@dataclass(slots=True)
class Store:
    """A result: its number in the plan, and the shape of its array.

    `inner`: the number of the same array in the root's own shape, where that is another. `reuse`: a value
    that ends here, whose memory it takes.
    """

    node: int
    slot: int
    narrow: bool
    shape: Shape
    dtype: np.dtype[Any]
    inner: int | None = None
    reuse: int | None = None


@dataclass(frozen=True, slots=True)
class _Body:
    """What is done for blocks of one shape, over a list of values by number."""

    size: int
    sources: tuple[int, ...]
    counts: tuple[int, ...]  # values that are indices along an axis
    stores: tuple[int, ...]
    registers: tuple[tuple[int, int, Shape, np.dtype[Any], int], ...]  # value, buffer, shape, dtype, bytes
    runs: tuple[Run, ...]
    reads: Mapping[int, int]  # source value → the first run that may overwrite it
    writes: Mapping[int, int]  # stored value → the run that writes it


class Loop:
    """Computes the blocks of some results."""

    def __init__(self, graph: Snapshot, work: Work, sources: list[Source], stores: list[Store]) -> None:
        self.sources = sources
        self.stores = stores
        self._graph = graph
        self._work = work
        self._iotas = [each for each in work.members if graph.sigs[each].kind == "iota"]
        self._folds = _fold_ranges(work)
        self._bodies: list[_Body] = []
        self._blocks = self._make_blocks()

    # Making

    def _make_blocks(self) -> list[tuple[Any, ...]]:
        work, blocks = self._work, []
        numbers: dict[tuple[int, ...], int] = {}
        axes = list(work.ranges)
        for ranges in itertools.product(*work.ranges.values()):
            block: dict[int, Range] = dict(zip(axes, ranges, strict=True))
            lengths = {axis: stop - start for axis, (start, stop) in block.items()}
            key = tuple(lengths.values())
            if key not in numbers:
                numbers[key] = len(self._bodies)
                self._bodies.append(self._body(lengths))
            blocks.append(
                (
                    self._bodies[numbers[key]],
                    [self._index(each.node, block) for each in self.sources],
                    [self._span(each, block) for each in self._iotas],
                    [self._store_index(each.node, block) for each in self.stores],
                )
            )
        return blocks

    def _index(self, node: int, block: Mapping[int, Range]) -> tuple[object, ...] | None:
        part = self._work.parts[node]
        return index_of(part, block) if any(each is not None for each in part) else None

    def _store_index(self, node: int, block: Mapping[int, Range]) -> tuple[object, ...]:
        index = index_of(self._work.parts[node], block)
        if not self._folds:
            return index
        number = 0
        for axis, ranges in self._folds.items():
            number = number * len(ranges) + ranges.index(block[axis])
        return (number, *index)

    def _span(self, node: int, block: Mapping[int, Range]) -> tuple[np.dtype[Any], int, int]:
        sig, (part,) = self._graph.sigs[node], self._work.parts[node]
        if part is None:
            return sig.dtype.numpy, 0, sig.size
        start, stop = block[part[0]]
        return sig.dtype.numpy, start * part[1], stop * part[1]

    def _body(self, lengths: Mapping[int, int]) -> _Body:
        graph, parts = self._graph, self._work.parts
        code = Code(graph, lambda node: block_shape(graph.sigs[node].shape, parts[node], lengths))
        sources = tuple(code.declare(each.node, narrow=each.narrow) for each in self.sources)
        counts = tuple(code.declare(each, narrow=True) for each in self._iotas)
        for each in self.sources:
            if is_part(graph, each.node):
                code.gather(each.node)
        code.add_all(self._work.members)
        finals = [code.value(each.node, narrow=each.narrow) for each in self.stores]
        return _assemble(code, sources, counts, finals)

    @property
    def reusable(self) -> Iterator[tuple[Store, Source]]:
        """Stores and the sources whose memory they could take: not read any more when that is written."""
        if self._folds:
            return
        for at, store in enumerate(self.stores):
            for number, source in enumerate(self.sources):
                places = [(body.sources[number], body.stores[at], body) for body in self._bodies]
                if self._kind_of(source) == self._kind_of(store) and all(
                    body.reads.get(read, 0) <= body.writes[written] for read, written, body in places
                ):
                    yield store, source

    def _kind_of(self, value: Source | Store) -> tuple[object, ...]:
        sig = self._graph.sigs[value.node]
        return sig.shape, sig.dtype, value.narrow, self._work.parts[value.node]

    # Running

    def __call__(self, slots: list[Any]) -> None:
        arrays = [slots[each.slot] for each in self.sources]
        if self._folds:
            self._run_partial(slots, arrays)
            return
        targets = []
        for store in self.stores:
            whole = empty(store.shape, store.dtype) if store.reuse is None else slots[store.reuse]
            slots[store.slot] = whole
            if store.inner is None:
                targets.append(whole)
            else:
                slots[store.inner] = whole.reshape(self._graph.sigs[store.node].shape)
                targets.append(slots[store.inner])
        share(partial(self._run_blocks, arrays, targets), self._blocks)

    def _run_partial(self, slots: list[Any], arrays: list[Array]) -> None:
        """A fold whose axes are cut: each block's result by itself, then all of them folded."""
        (store,) = self.stores
        sig = self._graph.sigs[store.node]
        count = math.prod(map(len, self._folds.values()))
        results = np.empty((count, *sig.shape), store.dtype)
        share(partial(self._run_blocks, arrays, [results]), self._blocks)
        fold = fold_of(sig, store.dtype)
        assert fold is not None, sig
        slots[store.slot] = np.asarray(fold(results, (0,)))

    def _run_blocks(
        self, arrays: list[Array], targets: list[Array], blocks: Iterator[tuple[Any, ...]]
    ) -> None:
        ready: dict[int, list[Any]] = {}
        with np.errstate(all="ignore"), Buffers():
            for body, indices, spans, places in blocks:
                values = ready.get(id(body))
                if values is None:
                    values = ready[id(body)] = _prepared(body)
                for position, array, index in zip(body.sources, arrays, indices, strict=True):
                    values[position] = array if index is None else array[index]
                for position, span in zip(body.counts, spans, strict=True):
                    values[position] = iota(*span)
                for position, target, place in zip(body.stores, targets, places, strict=True):
                    values[position] = target[place]
                for run in body.runs:
                    run(values)


def _fold_ranges(work: Work) -> Cut:
    return {axis: ranges for axis, ranges in work.ranges.items() if axis in work.folded}


def _prepared(body: _Body) -> list[Any]:
    values: list[Any] = [None] * body.size
    for position, buffer, shape, dtype, nbytes in body.registers:
        values[position] = _scratch.array(buffer, shape, dtype, nbytes)
    return values


def _assemble(code: Code, sources: tuple[int, ...], counts: tuple[int, ...], finals: list[int]) -> _Body:
    """Actions as functions; results that an action can write itself go straight to their place."""
    made = {action.output: action for action in code.actions}
    direct = {each for each in finals if made[each].operation.into}
    buffers = _Buffers(code, finals, direct)
    runs: list[Run] = []
    writes: dict[int, int] = {}
    reads: dict[int, int] = {}
    for at, action in enumerate(code.actions):
        buffers.visit(at)
        how = into if action.operation.into else fresh
        runs.append(how(action.operation.function, action.inputs, action.output))
        writes[action.output] = at
        for each in action.inputs:  # what is not element by element must be read before it is overwritten
            reads[buffers.owner[each]] = at if action.operation.elementwise else at + 1
    stores = []
    size = len(code.values)
    for each in finals:
        if each in direct:
            stores.append(each)
        else:  # a view, or what has no way to write into an array
            runs.append(into(convert(code.values[each].dtype), (each,), size))
            reads[buffers.owner[each]] = len(runs)
            writes[size] = len(runs) - 1
            stores.append(size)
            size += 1
    return _Body(size, sources, counts, tuple(stores), tuple(buffers.registers), tuple(runs), reads, writes)


class _Buffers:
    """Memory for the values of a body: a buffer is used again when its value is not needed any more."""

    def __init__(self, code: Code, finals: list[int], direct: set[int]) -> None:
        self.registers: list[tuple[int, int, Shape, np.dtype[Any], int]] = []
        self.owner = list(range(len(code.values)))  # of a view: the value whose memory it is
        self._code = code
        self._direct = direct
        self._free: list[int] = []
        self._count = 0
        self._of: dict[int, int] = {}  # value → buffer
        self._last: dict[int, int] = {}
        for at, action in enumerate(code.actions):
            for each in action.inputs:
                self._last[self.owner[each]] = at
            if action.operation.view:
                self.owner[action.output] = self.owner[action.inputs[0]]
        for each in finals:
            self._last[self.owner[each]] = len(code.actions)

    def visit(self, at: int) -> None:
        """Give an action's result a buffer, and take back those of the inputs that end with it."""
        action = self._code.actions[at]
        ending = {
            self.owner[each]
            for each in action.inputs
            if self.owner[each] in self._of and self._last[self.owner[each]] == at
        }
        if action.operation.into and action.output not in self._direct:
            value = self._code.values[action.output]
            heir = next(
                (each for each in ending if action.operation.elementwise and self._same(each, action.output)),
                None,
            )
            if heir is not None:
                ending.discard(heir)
                buffer = self._of[heir]
            elif self._free:
                buffer = self._free.pop()
            else:
                buffer = self._count
                self._count += 1
            self._of[action.output] = buffer
            nbytes = math.prod(value.shape) * value.dtype.itemsize
            self.registers.append((action.output, buffer, value.shape, value.dtype, nbytes))
        self._free += [self._of[each] for each in ending]

    def _same(self, one: int, other: int) -> bool:
        a, b = self._code.values[one], self._code.values[other]
        return a.shape == b.shape and a.dtype.itemsize == b.dtype.itemsize
