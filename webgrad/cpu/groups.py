"""A group as steps: small ones node by node, large ones as loops over blocks.

In: a group of the schedule. Out: steps in an `Assembly`. A large group is cut at its *kept* nodes, whose
values are whole arrays: its outputs, what NumPy computes only whole (a product, a sort), and what the blocks
of their readers cannot follow. Each kept node is computed whole, or is the root of a loop over all up to the
next kept ones. Where that loop cannot be, one more node is kept and the group is looked at again; in the end
every node may be kept, so there is always a way. The invariant: no block computes what another one does.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate
from operator import mul

from ..graph.snapshot import Snapshot
from ..runtime.host import cache_bytes
from ..schedule.axes import nontrivial, through_map, through_move
from ..schedule.plan import Group
from .assembly import Assembly
from .depthwise import window_sum
from .folds import fold_of
from .follow import Cut, Part, cut, follow
from .loop import Work
from .operations import is_half, is_view, wide_type
from .pairs import has_pairs

__all__ = ["add_group"]

SMALL = 1 << 15  # elements up to which a group is computed node by node
# Elements of a block: the few values that are alive at a time stay in a core's cache
BLOCK = 1 << min(18, max(15, (cache_bytes() // 8).bit_length() - 1))
PARTS = 4  # so many times smaller are blocks of complex numbers
ROW_BLOCK = 1 << 19  # elements of a block of whole rows, at most
FOLD_BLOCK = 1 << 21  # elements of a block that is only read
SHORT = 1 << 10  # elements that lie side by side in a block, at least
SHORT_ROWS = 1 << 9  # the same in blocks of whole rows
SHORT_FOLDS = 1 << 13  # the same where they are folded with others
WINDOWS = 3  # windows that are only multiplied and summed: BLAS takes blocks so many times as large
TILE = 1 << 8  # sides of a block where something is read across its memory
SHORT_TILES = 1 << 6  # sides from which that pays
_PLAIN = ("reshape", "expand")
_WHOLE = ("contract", "attend", "scan", "sort", "scatter", "fft", "decode", "kernel")


def add_group(assembly: Assembly, group: Group) -> None:
    """Append the steps of a group."""
    graph, main = assembly.graph, assembly.main
    nodes = [each for each in group.inside if each not in main]
    read = [each for node in nodes if graph.sigs[node].kind == "reduce" for each in graph.inputs[node]]
    if max((graph.sigs[each].size for each in (*nodes, *read)), default=0) <= SMALL:
        assembly.compute(nodes)
    elif all(graph.sigs[each].op.name in _PLAIN for each in nodes) and all(
        assembly.is_free_view(each) for each in group.outputs
    ):
        assembly.compute(nodes)  # as views
    else:
        _Large(assembly, group, nodes).add()
    for each in group.outputs:
        assembly.store(each)


@dataclass(frozen=True, slots=True)
class _Unit:
    """Nodes to compute together: a loop, or one after another."""

    nodes: tuple[int, ...]
    work: Work | None = None


class _Retry(Exception):
    """More nodes must be kept."""


class _Large:
    """A group while it is cut: which nodes are kept, and why."""

    def __init__(self, assembly: Assembly, group: Group, nodes: list[int]) -> None:
        self.assembly = assembly
        self.graph = graph = assembly.graph
        self.group = group
        self.nodes = nodes
        self.place = {each: at for at, each in enumerate(nodes)}
        self.kept: set[int] = set()
        self.whole: set[int] = set()  # kept, and computed by themselves
        self.outer: dict[int, int] = {}  # root of a loop → the output it is, perhaps reshaped
        self.rows = group.kind == "rows"
        self.patches = self._find_patches()
        self.sums = self._find_sums()
        for each in group.outputs:
            self._keep_output(each)
        for each in nodes:
            sig = graph.sigs[each]
            if sig.kind in _WHOLE or (sig.kind == "reduce" and fold_of(sig, wide_type(sig.dtype)) is None):
                self._keep_whole(each)

    def add(self) -> None:
        while True:
            try:
                units = self._units()
                break
            except _Retry:
                continue
        for unit in units:
            if unit.work is not None:
                self.assembly.loop(unit.work, self._externals(unit.work), self.outer)
            elif unit.nodes[-1] in self.patches:
                node = unit.nodes[-1]
                (view,) = self.graph.inputs[self.patches[node]]
                self.assembly.patch_product(node, view, self.outer.get(node, node))
            elif unit.nodes[-1] in self.sums:
                node = unit.nodes[-1]
                axes = summed_axes(self.graph, node, self.sums[node][1])
                self.assembly.window_sum(node, *self.sums[node], axes, self.outer.get(node, node))
            elif self._is_reshaped_product(unit.nodes[-1]):
                self.assembly.product(unit.nodes[-1], self.outer[unit.nodes[-1]])
            else:
                self.assembly.compute(unit.nodes)

    # What is kept

    def _keep_output(self, node: int) -> None:
        """An output that is a reshape of something computed here is that, in an array of its own shape."""
        if node not in self.place:
            return
        inner = node
        while self.graph.sigs[inner].op.name == "reshape" and self.graph.inputs[inner][0] in self.place:
            (inner,) = self.graph.inputs[inner]
        if inner in self.outer or inner in self.group.outputs:
            inner = node
        self.outer[inner] = node
        self.kept |= {inner, node}
        if inner != node:
            self.whole.add(node)

    def _keep_whole(self, node: int) -> None:
        self.whole.add(node)
        inputs = list(self.graph.inputs[node])
        if node in self.patches:
            inputs[1] = self._base(self.patches[node])
        elif node in self.sums:
            inputs = [self._base(each) for each in self.sums[node]]
        self.kept |= {node, *(each for each in inputs if each in self.place)}

    def _find_patches(self) -> dict[int, int]:
        """Products and the windows they multiply with, which are reshaped for nobody else."""
        found: dict[int, int] = {}
        for node in self.nodes:
            sig, inputs = self.graph.sigs[node], self.graph.inputs[node]
            if sig.kind == "contract" and sig.dtype.kind == "f" and is_patches(self.graph, node):
                readers = [each for each in self.nodes if inputs[1] in self.graph.inputs[each]]
                if inputs[1] in self.place and readers == [node] and inputs[1] not in self.group.outputs:
                    found[node] = inputs[1]
        return found

    def _find_sums(self) -> dict[int, tuple[int, int]]:
        """Products that sum over samples and places, and what their operands are reshapes of."""
        found: dict[int, tuple[int, int]] = {}
        for node in self.nodes:
            sig = self.graph.sigs[node]
            if sig.kind == "contract" and sig.dtype.kind == "f" and node not in self.patches:
                a, b = (self._unshaped(each, node) for each in self.graph.inputs[node])
                if b != self.graph.inputs[node][1] and summed_axes(self.graph, node, b):
                    found[node] = (a, b)
        return found

    def _unshaped(self, operand: int, node: int) -> int:
        """What an operand is a reshape of, that is made for nobody else; else the operand."""
        if self.graph.sigs[operand].op.name != "reshape" or operand not in self.place:
            return operand
        readers = [each for each in self.nodes if operand in self.graph.inputs[each]]
        if readers != [node] or operand in self.group.outputs:
            return operand
        (source,) = self.graph.inputs[operand]
        return source

    def _base(self, node: int) -> int:
        """What a chain of views is a view of."""
        while node in self.place and is_view(self.graph.sigs[node]):
            (node,) = self.graph.inputs[node]
        return node

    def _reshapes(self, node: int) -> list[int]:
        """The operands of a sum over places that are never computed, only what they are reshapes of."""
        pairs = zip(self.graph.inputs[node], self.sums[node], strict=True)
        return [operand for operand, source in pairs if operand != source]

    def _is_reshaped_product(self, node: int) -> bool:
        sig = self.graph.sigs[node]
        return sig.op.name == "matmul" and not is_half(sig.dtype) and self.outer.get(node, node) != node

    def _give_up_rows(self) -> None:
        """Folds by themselves: each is a loop over all that is folded."""
        self.rows = False
        self.kept |= {each for each in self.nodes if self.graph.sigs[each].kind == "reduce"}

    def _is_there(self, node: int, views: set[int]) -> bool:
        return node not in self.place or node in self.kept or node in views

    # Units

    def _units(self) -> list[_Unit]:
        """What to compute in which order; raises _Retry when a loop needs more to be kept."""
        views: set[int] = set()  # of arrays that are there before the loops that read them
        patches = set(self.patches.values())
        patches |= {each for node in self.sums for each in self._reshapes(node)}
        for each in self.nodes:
            moves = is_view(self.graph.sigs[each]) and each not in self.outer and each not in patches
            if moves and self._is_there(self.graph.inputs[each][0], views):
                views.add(each)
        together = self._together(views)
        units: list[_Unit] = []
        for each in self.nodes:
            if (
                each in views
                or each in self.whole
                or (each in self.kept and self.graph.sigs[each].kind == "iota")
            ):
                units.append(_Unit((each,)))
            elif each in together:
                if each == together[-1]:
                    units.append(self._loop(together, views))
            elif each in self.kept:
                units.append(self._loop((each,), views))
        return units

    def _together(self, views: set[int]) -> tuple[int, ...]:
        """The outputs that one loop can compute: none is needed by what is kept besides them."""
        roots = tuple(sorted(self.outer.keys() - self.whole, key=self.place.__getitem__))
        shapes = {self.graph.sigs[each].shape for each in roots}
        if len(roots) < 2 or len(shapes) != 1:
            return ()
        below = set(roots)
        for each in self.nodes:
            if any(source in below for source in self.graph.inputs[each]):
                below.add(each)
        return () if below & ((self.kept | views) - set(roots)) else roots

    def _members(self, roots: Iterable[int], views: set[int]) -> tuple[int, ...]:
        found: set[int] = set()
        stack = list(roots)
        while stack:
            node = stack.pop()
            if node not in found:
                found.add(node)
                stack += [
                    each
                    for each in self.graph.inputs[node]
                    if not self._is_there(each, views) or each in roots
                ]
        return tuple(sorted(found, key=self.place.__getitem__))

    def _loop(self, roots: tuple[int, ...], views: set[int]) -> _Unit:
        members = self._members(roots, views)
        sigs = self.graph.sigs
        folds = [each for each in members if sigs[each].kind == "reduce"]
        sizes = {each: sigs[each].size for each in members}
        sizes |= {source: sigs[source].size for each in folds for source in self.graph.inputs[each]}
        for each in folds:
            sizes |= {node: sigs[node].size // WINDOWS for node in window_sum(self.graph, each)}
        total = max(sizes.values())
        if total <= SMALL or not sigs[roots[0]].size or (folds and total <= BLOCK):
            return _Unit(members)
        if folds and self.rows and roots[0] in self.outer:
            return self._rows_loop(roots, members, total)
        if folds and (len(folds) > 1 or roots != (folds[0],)):
            self.kept.update(folds)
            raise _Retry
        if folds:
            return self._fold_loop(folds[0], members, total)
        shape = sigs[roots[0]].shape
        # complex numbers have two parts, so that more is alive, if not just one thing is computed
        several = len([each for each in members if not is_view(sigs[each])]) > 1
        parts = several and any(has_pairs(self.graph, each) for each in members)
        block = BLOCK // PARTS if parts else BLOCK
        ranges = self._tiles(shape, members) or cut(
            shape, range(len(shape)), -(-total // block), _least(shape, SHORT)
        )
        return self._followed(roots, members, ranges, {each: _identity(shape, ranges) for each in roots})

    def _tiles(self, shape: tuple[int, ...], members: tuple[int, ...]) -> Cut:
        """Square blocks where something is read across its memory; nothing where all goes along it.

        Read in rows, every element of a turned matrix would bring its own line of memory into the cache.
        """
        last = max(nontrivial(shape), default=0)
        for node in self._permutations(members):
            sig, (source,) = self.graph.sigs[node], self.graph.inputs[node]
            inner = max(nontrivial(self.graph.sigs[source].shape), default=0)
            axis = sig.attributes[0].index(inner) + len(shape) - len(sig.shape)
            if 0 <= axis < last and min(shape[axis], shape[last]) >= SHORT_TILES:
                ranges = cut(shape, (axis,), -(-shape[axis] // TILE), {})
                ranges |= cut(shape, (last,), -(-shape[last] // TILE), {})
                others = [each for each in range(len(shape)) if each not in (axis, last)]
                size = math.prod(shape) // math.prod(map(len, ranges.values()))
                return ranges | cut(shape, others, -(-size // BLOCK), {})
        return {}

    def _permutations(self, members: tuple[int, ...]) -> list[int]:
        """Those among the members, and among the views that they read."""
        seen = set(members)
        stack = list(members)
        while stack:
            for each in self.graph.inputs[stack.pop()]:
                if each not in seen and each in self.place and is_view(self.graph.sigs[each]):
                    seen.add(each)
                    stack.append(each)
        return [each for each in sorted(seen) if self.graph.sigs[each].op.name == "permute"]

    def _rows_loop(self, roots: tuple[int, ...], members: tuple[int, ...], total: int) -> _Unit:
        """Whole rows in a block, with all of their folds."""
        shape = self.graph.sigs[roots[0]].shape
        pieces = -(-total // BLOCK)
        axes = self._row_axes(members)
        least: dict[int, int] = {}
        for _ in range(2):
            ranges = cut(shape, axes, pieces, least)
            blocks = math.prod(map(len, ranges.values()))
            if blocks == 1 or total // blocks > ROW_BLOCK:
                self._give_up_rows()
                raise _Retry
            unit = self._followed(roots, members, ranges, {each: _identity(shape, ranges) for each in roots})
            assert unit.work is not None
            narrow = self._narrow_axes(unit.work)
            if not narrow:
                break
            least = dict.fromkeys(narrow, SHORT_ROWS)
        return unit

    def _row_axes(self, members: tuple[int, ...]) -> list[int]:
        """The axes of the last member that its folds depend on; none where they cannot be told apart."""
        sigs = self.graph.sigs
        rows: dict[int, frozenset[int]] = {}
        for node in members:
            sig = sigs[node]
            if sig.kind == "reduce":
                rows[node] = nontrivial(sig.shape)
                continue
            carry = through_move if sig.kind == "move" else through_map
            found = {carry(sig, sigs[each], rows[each]) for each in self.graph.inputs[node] if each in rows}
            if len(found) == 1:
                rows[node] = found.pop() or frozenset()
            elif found:
                return []
        return sorted(rows[members[-1]])

    def _narrow_axes(self, work: Work) -> list[int]:
        """The cut axes along which a block has only few elements side by side in its largest value."""
        largest = max(work.parts, key=lambda each: self.graph.sigs[each].size)
        shape, found = self.graph.sigs[largest].shape, []
        for axis, part in enumerate(work.parts[largest]):
            if part is not None:
                start, stop = work.ranges[part[0]][0]
                if (stop - start) * part[1] * math.prod(shape[axis + 1 :]) < SHORT_ROWS:
                    found.append(part[0])
        return found

    def _fold_loop(self, root: int, members: tuple[int, ...], total: int) -> _Unit:
        """One fold, over blocks of what is folded. Axes that stay are cut first: less is left to fold."""
        (source,) = self.graph.inputs[root]
        shape = self.graph.sigs[source].shape
        folded = self.graph.sigs[root].attributes[0]
        order = sorted(range(len(shape)), key=lambda axis: (axis in folded, axis))
        pieces = -(-total // (BLOCK if len(members) > 1 else FOLD_BLOCK))
        ranges = cut(shape, order, pieces, _least(shape, SHORT_FOLDS))
        domain = _identity(shape, ranges)
        kept = tuple(each for axis, each in enumerate(domain) if axis not in folded)
        return self._followed((root,), members, ranges, {root: kept, source: domain}, folded)

    # Parts

    def _followed(
        self,
        roots: tuple[int, ...],
        members: tuple[int, ...],
        ranges: Cut,
        parts: dict[int, Part],
        folded: tuple[int, ...] = (),
    ) -> _Unit:
        """A loop over blocks, if every member's part follows from those of its readers."""
        readers: dict[int, int] = {}
        for node in reversed(members):
            if node in roots and folded:
                continue
            part = parts[node]
            if node not in roots and len([each for each in part if each is not None]) != len(ranges):
                self._keep([node])  # every block would compute it again
            sources = self.graph.inputs[node]
            follows = follow(self.graph.sigs[node], [self.graph.sigs[each] for each in sources], part)
            if follows is None:
                self._keep_whole(node)
                raise _Retry
            for each, wanted in zip(sources, follows, strict=True):
                if parts.setdefault(each, wanted) != wanted:
                    self._part_ways(each, members, (node, readers.get(each, node)))
                readers.setdefault(each, node)
        return _Unit(members, Work(roots, members, parts, ranges, folded))

    def _part_ways(self, node: int, members: tuple[int, ...], readers: tuple[int, int]) -> None:
        """Two readers want different parts of a node."""
        if node in members and node not in self.kept:
            self._keep([node])
        apart = next((each for each in readers if self.graph.sigs[each].kind != "map"), readers[0])
        self._keep_whole(apart)
        raise _Retry

    def _keep(self, nodes: list[int]) -> None:
        if self.rows and any(self._has_fold(each) for each in nodes):
            self._give_up_rows()
        else:
            self.kept.update(nodes)
        raise _Retry

    def _has_fold(self, node: int) -> bool:
        """Whether a fold of this group is in a value, that is not kept."""
        return any(self.graph.sigs[each].kind == "reduce" for each in self._members([node], set()))

    def _externals(self, work: Work) -> list[int]:
        members = set(work.members)
        found = (each for node in work.members for each in self.graph.inputs[node] if each not in members)
        return list(dict.fromkeys(found))


def is_patches(graph: Snapshot, node: int) -> bool:
    """Whether a product's second operand is windows, (samples, groups…, k, n) of (samples, groups…, …)."""
    first, second = graph.inputs[node]
    shape, batch = graph.sigs[node].shape, graph.sigs[first].shape[:-2]
    if graph.sigs[second].op.name != "reshape" or len(shape) < 3 or batch != shape[1:-2]:
        return False
    (view,) = graph.inputs[second]
    before, sides = graph.sigs[view].shape[: len(shape) - 2], graph.sigs[view].shape[len(shape) - 2 :]
    if before != shape[:-2] or shape[-1] not in accumulate(reversed(sides), mul, initial=1):
        return False  # the axes of the windows are not those of k, then those of n
    return _has_windows(graph, view)


def summed_axes(graph: Snapshot, node: int, view: int) -> int:
    """How many axes of windows a product sums over, the first after the batch; 0 for any other product."""
    (*batch, _, columns), sides = graph.sigs[node].shape, graph.sigs[view].shape
    length = graph.sigs[graph.inputs[node][0]].shape[-1]
    if list(sides[: len(batch)]) != batch or not _has_windows(graph, view):
        return 0
    rest = sides[len(batch) :]
    for axes in range(2, len(rest)):
        if math.prod(rest[:axes]) == length and math.prod(rest[axes:]) == columns:
            return axes
    return 0


def _has_windows(graph: Snapshot, view: int) -> bool:
    while is_view(graph.sigs[view]):
        if graph.sigs[view].op.name == "window":
            return True
        (view,) = graph.inputs[view]
    return False


def _identity(shape: tuple[int, ...], ranges: Cut) -> Part:
    return tuple((axis, 1) if axis in ranges else None for axis in range(len(shape)))


def _least(shape: tuple[int, ...], elements: int) -> dict[int, int]:
    """The least side of a block along each axis, so that enough elements lie side by side."""
    return {axis: -(-elements // max(1, math.prod(shape[axis + 1 :]))) for axis in range(len(shape))}
