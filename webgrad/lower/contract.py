"""Matrix products: a template whose operands and results are holes, filled by pulling.

In: a group around a contraction. Out: a `Kernel` with a template. The operands' own layouts (transposed,
sliced, broadcast), and the maps before and after, cost no kernel of their own.
"""

from __future__ import annotations

import math

from ..graph.snapshot import Snapshot
from ..runtime.profile import DeviceProfile
from ..schedule.plan import Group
from .domains import name_of
from .holes import F32x4, argument, make_hole, store_lanes, zero_beyond
from .index import Index, unflatten
from .ir import U32, Hole, Instruction, Kernel, Template
from .pull import Puller

__all__ = ["lower_contraction"]

_THIN = (1, 2, 4, 8)


class _Product:
    """The sizes of one contraction, and its indices from a batch, a row, a column and k."""

    def __init__(self, graph: Snapshot, group: Group) -> None:
        self.graph = graph
        self.group = group
        self.a, self.b = graph.inputs[group.center]
        a, b, c = (graph.sigs[each].shape for each in (self.a, self.b, group.center))
        self.k = a[-1]
        self.n = c[-1]
        self.batches: tuple[int, ...] = c[:-2]
        self.rows: tuple[int, ...] = c[-2:-1]
        if math.prod(b[:-2]) == 1:  # one B for all: batches are more rows
            self.batches, self.rows = (), c[:-1]
        self.m = math.prod(self.rows)
        self.count = math.prod(self.batches)
        self.puller = Puller(graph, group.outputs, group.reads)

    def leading(self, number: int, batch: Index, row: Index | None) -> tuple[Index, ...]:
        """The indices before the last one or two, for an operand that may broadcast."""
        shape = self.graph.sigs[number].shape
        at = [*unflatten(batch, self.batches)]
        if row is not None:
            at += unflatten(row, self.rows)
        count = len(shape) - (1 if row is not None else 2)
        if row is None and not self.batches:
            at = [Index({}, 0)] * count
        at = at[len(at) - count :] if count else []
        return tuple(Index({}, 0) if side == 1 else each for side, each in zip(shape, at, strict=False))


def _load_a(product: _Product, steps: int, rows: int) -> Hole:
    puller = product.puller

    def fill(batch: Instruction, row: Instruction, step: Instruction) -> Instruction:
        at = argument(puller, row, "row", rows).limited(product.m)
        k = argument(puller, step, "step", steps) * 4 + puller.new_lane()
        place = (
            *product.leading(product.a, argument(puller, batch, "batch", product.count), at),
            k.limited(product.k),
        )
        return zero_beyond(puller, puller.pull(product.a, place), k, product.k)

    return make_hole(product.puller, "hole_a", {"batch": U32, "row": U32, "step": U32}, fill)


def _load_b(product: _Product, steps: int, columns: int, transposed: bool) -> Hole:
    puller = product.puller

    def along_columns(batch: Instruction, k_value: Instruction, column: Instruction) -> Instruction:
        k = argument(puller, k_value, "k", 4 * steps)
        group = argument(puller, column, "column", columns)
        if product.n % 4 == 0:
            group = group.limited(product.n // 4)
        n = (group * 4 + puller.new_lane()).limited(product.n)
        before = product.leading(product.b, argument(puller, batch, "batch", product.count), None)
        value = puller.pull(product.b, (*before, k.limited(product.k), n))
        return zero_beyond(puller, value, k, product.k)

    def along_k(batch: Instruction, column: Instruction, step: Instruction) -> Instruction:
        k = argument(puller, step, "step", steps) * 4 + puller.new_lane()
        n = argument(puller, column, "column", 4 * columns).limited(product.n)
        before = product.leading(product.b, argument(puller, batch, "batch", product.count), None)
        value = puller.pull(product.b, (*before, k.limited(product.k), n))
        return zero_beyond(puller, value, k, product.k)

    if transposed:
        return make_hole(product.puller, "hole_b", {"batch": U32, "column": U32, "step": U32}, along_k)
    return make_hole(product.puller, "hole_b", {"batch": U32, "k": U32, "column": U32}, along_columns)


def _store_c(product: _Product, rows: int, columns: int) -> Hole:
    puller, graph = product.puller, product.graph
    (output,) = product.group.outputs
    groups = -(-product.n // 4)

    def fill(batch: Instruction, row: Instruction, column: Instruction, value: Instruction) -> None:
        build = puller.builder
        inside = puller.both(
            build.compare("<", row, build.size(product.m)),
            build.compare("<", column, build.size(groups)),
        )
        build.open_if(inside)
        line = argument(puller, batch, "batch", product.count) * product.m + argument(
            puller, row, "row", product.m
        )
        n = argument(puller, column, "column", groups + (product.n % 4 > 0)) * 4 + puller.new_lane()
        puller.given = {product.group.center: lambda _: value}
        clamped = line * product.n + n.limited(product.n)
        result = puller.pull(output, unflatten(clamped, graph.sigs[output].shape))
        if product.n % 4 == 0:
            puller.store(output, clamped, result)
        else:
            store_lanes(puller, output, line * product.n, n, product.n, result)
        build.close()
        puller.given = {}

    return make_hole(product.puller, "hole_c", {"batch": U32, "row": U32, "column": U32, "v": F32x4}, fill)


def _is_transposed(product: _Product) -> bool:
    """Whether B lies along k in memory rather than along its columns: then that is how it is read."""
    if product.n == 1:
        return True
    for transposed in (False, True):
        hole = _load_b(product, max(1, product.k // 4), max(1, product.n // 4), transposed)
        loads = [each for each in hole.body if each.op == "load" and each.type]
        if loads and all(each.type.width == 4 for each in loads if each.type):
            return transposed
    return False


def lower_contraction(graph: Snapshot, group: Group, profile: DeviceProfile) -> Kernel:
    """A matrix product with everything fused around it."""
    product = _Product(graph, group)
    transposed = _is_transposed(product)
    steps, groups = -(-product.k // 4), -(-product.n // 4)
    span = steps + (product.k % 4 > 0)  # where k is clamped, every lane is, whatever is left over
    lanes = profile.subgroup_size if profile.subgroup_size in (4, 8) and profile.kind == "software" else 0
    if lanes:
        rows = next((each for each in _THIN if each >= product.m), 16)
        block_rows, block_columns, workgroup = rows, lanes, lanes
        defines = {"HOLES": "1", "LANES": str(lanes), "ROWS": str(rows)}
        requires = frozenset({"subgroups"})
    else:
        rows, block_rows, block_columns, workgroup = 4, 64, 16, 256
        defines, requires = {"HOLES": "2"}, frozenset()
    if transposed:
        defines["TRANSPOSED"] = "1"
    row_blocks, column_blocks = -(-product.m // block_rows), -(-groups // block_columns)
    # One more than there are: rows and columns are always clamped, whatever divides, and the text stays the
    # same.
    all_rows, all_columns = row_blocks * block_rows + 1, column_blocks * block_columns + 1
    holes = (
        _load_a(product, span, all_rows),
        _load_b(product, span, all_columns, transposed),
        _store_c(product, all_rows, all_columns),
    )
    numbers = {
        "k": product.k,
        "steps": steps,
        "rows": rows,
        "row_blocks": row_blocks,
        "column_blocks": column_blocks,
    }
    template = Template("matmul.pwgsl", tuple(sorted(defines.items())), tuple(numbers.items()), requires)
    puller = product.puller
    return Kernel(
        name_of(graph, group),
        tuple(puller.buffers),
        tuple((number, graph.sigs[number].dtype) for number in puller.scalars),
        (),
        workgroup,
        row_blocks * column_blocks * product.count,
        template,
        holes,
    )
