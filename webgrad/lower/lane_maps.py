"""Maps for a target that widens loops itself.

In: a map group. Out: a `Work`. Leading axes may be an outer loop, a lane may compute a few elements together,
and a concat is written piece by piece: so that no index is divided in the loop that is widened.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from ..graph.snapshot import Snapshot
from ..schedule.plan import Group, joins_pairs
from .index import ZERO, constant, unflatten
from .ir import Kernel, Work
from .lane_puller import ELEMENT, SHORT, LanePuller, made_work

TILE = 32  # rows of a tile, where lanes are far apart in what is read
MOST_PIECES = 64  # of a concat, each with a loop of its own
TOGETHER = (2, 4)  # elements that a lane may compute one after another
FAR = 4  # elements from lane to lane from which they are far apart


def lower_map(graph: Snapshot, group: Group) -> Work:
    """Flat, or with leading axes as an outer loop so that no index is divided in the loop that is widened."""
    shape = graph.sigs[group.outputs[0]].shape
    if len(shape) > 1 and shape[-1] == 2 and any(joins_pairs(graph, each) for each in group.inside):
        return _by_pairs(graph, group)
    pieces = _pieces(graph, group)
    if pieces is not None:
        return _piece_by_piece(graph, group, pieces)
    best = None
    for split in range(max(1, len(shape))):
        outer, inner = math.prod(shape[:split]), math.prod(shape[split:])
        if split and (outer == 1 or inner < SHORT):
            continue
        made, strides = _map_form(graph, group, outer, inner, 1)
        together = _period(made.kernel, inner)
        if together > 1:
            made, strides = _map_form(graph, group, outer, inner, 1, together)
        elif outer >= SHORT and max(strides, default=0) > FAR:
            made = _tiled(graph, group, split)
        count = divisions(made.kernel)
        if best is None or count < best[0]:
            best = (count, made)
        if not count:
            break
    assert best is not None
    return best[1]


def _tiled(graph: Snapshot, group: Group, split: int) -> Work:
    """By tiles of rows; of an axis of them, where a tile over several would divide indices."""
    shape = graph.sigs[group.outputs[0]].shape
    outer, inner = math.prod(shape[:split]), math.prod(shape[split:])
    made, _ = _map_form(graph, group, outer, inner, min(TILE, outer))
    for cut in range(1, split):
        rows = math.prod(shape[cut:split])
        if rows < SHORT or not divisions(made.kernel):
            break
        form, _ = _map_form(graph, group, outer, inner, min(TILE, rows), rows=rows)
        made = min(made, form, key=lambda each: divisions(each.kernel))
    return made


def _map_form(
    graph: Snapshot, group: Group, outer: int, inner: int, tile: int, together: int = 1, rows: int = 0
) -> tuple[Work, list[int]]:
    """`outer` rows of `inner` elements: flat if there is one, else row by row, or by tiles of rows, which do
    not go over a multiple of `rows`. A lane computes so many elements `together`, one after another.
    """
    puller = LanePuller(graph, group)
    build, (begin, end) = puller.builder, puller.units()
    if outer == 1:
        place = puller.open(begin, end, inner // together, lanes=True) * together
        loops, units, cost = 1, inner // together, ELEMENT * together
    elif tile == 1:
        row = puller.open(begin, end, outer)
        place = row * inner + puller.open_all(inner // together, lanes=True) * together
        loops, units, cost = 2, outer, ELEMENT * inner
    else:
        rows = rows or outer
        tiles = -(-rows // tile)
        units, cost, loops = outer // rows * tiles, ELEMENT * inner * tile, 3
        unit = puller.open(begin, end, units)
        first = build.arithmetic("*", build.index(unit % tiles), build.constant(tile))
        last = build.arithmetic("min", build.arithmetic("+", first, build.constant(tile)), build.size(rows))
        column = puller.open_all(inner, lanes=True)
        row = puller.open(first, last, rows, tiles=True)
        place = unit // tiles * (rows * inner) + row * inner + column
    places = [place.shifted(at) for at in range(together)]
    shapes = [graph.sigs[each].shape for each in group.outputs]
    values = [
        [puller.pull(each, unflatten(at, shape)) for at in places]
        for each, shape in zip(group.outputs, shapes, strict=True)
    ]
    for each, parts in zip(group.outputs, values, strict=True):
        puller.store(each, place, *parts)
    puller.close(loops)
    return made_work(graph, group, puller, units, cost), puller.strides


def _period(kernel: Kernel, size: int) -> int:
    """After how many elements of the widened loop what it is divided by begins anew, if these are few: then
    a lane computes them all, and nothing is divided.
    """
    constants = [
        int(each.args[1].data)
        for each in kernel.body
        if each.op == "arithmetic" and each.data in "/%" and each.args[0].op == "loop"
        if each.args[0].data == "lanes" and each.args[1].op == "const"
    ]
    first = min(constants, default=1)
    fits = first in TOGETHER and size % first == 0 and size // first >= SHORT
    return first if fits and all(each % first == 0 for each in constants) else 1


def _by_pairs(graph: Snapshot, group: Group) -> Work:
    """Complex numbers: a lane computes both parts of one."""
    *sizes, _ = graph.sigs[group.outputs[0]].shape
    count = math.prod(sizes)
    puller = LanePuller(graph, group)
    place = puller.open(*puller.units(), count, lanes=True)
    at = unflatten(place, sizes)
    values = [[puller.pull(each, (*at, constant(part))) for part in (0, 1)] for each in group.outputs]
    for each, parts in zip(group.outputs, values, strict=True):
        puller.store(each, place * 2, *parts)
    puller.close(1)
    return made_work(graph, group, puller, count, 2 * ELEMENT)


class _Pieces(NamedTuple):
    """A concat: its node and axis, and its pieces, with where along the axis they begin."""

    root: int
    axis: int
    parts: list[tuple[int, int]]


def _pieces(graph: Snapshot, group: Group) -> _Pieces | None:
    """If a map ends with a concat, maybe one of concats: its pieces, whose rows must not be short."""
    root = group.outputs[0]
    while graph.sigs[root].op.name == "reshape" and root not in group.reads:
        (root,) = graph.inputs[root]
    if len(group.outputs) > 1 or graph.sigs[root].op.name != "concat" or root in group.reads:
        return None
    axis, inside = graph.sigs[root].attributes[0], set(group.inside)
    found: list[tuple[int, int]] = []

    def collect(number: int, start: int) -> int:
        sig = graph.sigs[number]
        if number in inside and sig.op.name == "concat" and sig.attributes[0] == axis:
            for each in graph.inputs[number]:
                start = collect(each, start)
            return start
        found.append((number, start))
        size: int = sig.shape[axis]
        return start + size

    collect(root, 0)
    least = min(math.prod(graph.sigs[each].shape[axis:]) for each, _ in found)
    return _Pieces(root, axis, found) if least >= SHORT and len(found) <= MOST_PIECES else None


def _piece_by_piece(graph: Snapshot, group: Group, pieces: _Pieces) -> Work:
    """Pieces side by side: in each row all of them; of a single row, a unit is an element."""
    axis = pieces.axis
    shape = graph.sigs[pieces.root].shape
    before, length, after = shape[:axis], math.prod(shape[axis:]), math.prod(shape[axis + 1 :])
    puller = LanePuller(graph, group)
    build, (begin, end) = puller.builder, puller.units()
    rows = math.prod(before)
    row, units, cost = ZERO, length, ELEMENT
    if rows > 1:
        row, units, cost = puller.open(begin, end, rows), rows, ELEMENT * length
    for number, start in pieces.parts:
        sizes = graph.sigs[number].shape[axis:]
        count, origin = math.prod(sizes), start * after
        if rows > 1:
            place = puller.open_all(count, lanes=True)
        else:  # the part of the units that lies in the piece
            low, high = build.size(origin), build.size(origin + count)
            less = build.arithmetic("min", begin, low)
            inner = build.arithmetic("-", begin, less)
            stop = build.arithmetic("min", end, high)
            stop = build.arithmetic("-", build.arithmetic("+", stop, low), build.arithmetic("min", stop, low))
            place = puller.open(inner, build.arithmetic("-", stop, low), count, lanes=True)
        at = (*unflatten(row, before), *unflatten(place, sizes))
        puller.store(group.outputs[0], row * length + place.shifted(origin), puller.pull(number, at))
        puller.close(1)
    puller.close(rows > 1)
    return made_work(graph, group, puller, units, cost)


def divisions(kernel: Kernel) -> int:
    """Divisions for every element of the widened loop."""
    depth = count = 0
    for each in kernel.body:
        if each.op == "loop":
            depth += each.data == "lanes" or depth > 0
        elif each.op == "end_loop":
            depth -= depth > 0
        elif depth and each.op == "arithmetic" and each.data in "/%":
            count += 1
    return count
