"""Rows added to computed places, for a target that widens loops itself.

In: a scatter group: base (rows, columns), an index, updates. Out: a `Work` whose units are stretches of
columns: in each, the base is copied, then one update after the other is added to its row. The invariant:
updates to one row are added in their order.
"""

from __future__ import annotations

from ..graph.snapshot import Snapshot
from ..ops.table import TABLE
from ..schedule.plan import Group
from .index import Index
from .ir import Type, Work
from .lane_puller import ELEMENT, LanePuller, made_work

COLUMNS = 256  # of a unit


def lower_scatter(graph: Snapshot, group: Group) -> Work:
    """A sum of rows; each unit has all updates of its columns."""
    (output,) = group.outputs
    base, index, updates = graph.inputs[output]
    rows, columns = graph.sigs[output].shape
    (count,) = graph.sigs[index].shape
    type, add = Type(graph.sigs[output].dtype.compute), TABLE["add"]
    puller = LanePuller(graph, group)
    build, (begin, end) = puller.builder, puller.units()
    units = -(-columns // COLUMNS)
    unit = build.index(puller.open(begin, end, units))
    first = build.arithmetic("*", unit, build.constant(COLUMNS))
    last = build.arithmetic("min", build.arithmetic("+", first, build.constant(COLUMNS)), build.size(columns))

    def each_column(row: Index, updated: bool) -> None:
        column = puller.open(first, last, columns, lanes=True)
        place = row * columns + column
        value = puller.pull(updates, (at, column)) if updated else puller.pull(base, (row, column))
        if updated:
            before = build.here("load", type, (build.index(place),), puller.numbers[output])
            value = build.apply(add, type.scalar, before, value)
        puller.store(output, place, value)
        puller.close(1)

    at = puller.open_all(rows)
    each_column(at, updated=False)
    puller.close(1)
    at = puller.open_all(count)
    place = puller._place(puller.pull(index, (at,)), graph.sigs[index].dtype, rows)
    each_column(build.dynamic(place, rows), updated=True)
    puller.close(2)
    return made_work(graph, group, puller, units, ELEMENT * COLUMNS * (rows + count))
