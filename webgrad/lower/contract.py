"""Matrix products: templates whose operands and results are holes, filled by pulling.

In: a group around a contraction. Out: a `Kernel` with a template. The operands' own layouts (transposed,
sliced, broadcast, windows of an image), and the maps before and after, cost no extra kernel.
`forms.py` chooses the template, and the block of a workgroup.
"""

from __future__ import annotations

import math

from ..device_profile import DeviceProfile
from ..graph.snapshot import Snapshot
from ..schedule.plan import Group
from .builder import LANE
from .choices import Choice
from .forms import WIDE, form_of, offered
from .holes import F32x4, argument, make_hole, make_stages, store_lanes, zero_beyond
from .index import ZERO, Index, broadcast, unflatten
from .ir import U32, Hole, Instruction, Kernel, Template
from .pull import Puller
from .threads import kernel_of

Place = tuple[int, tuple[Index, ...]]  # a node and indices


class _Watched(Puller):
    """A puller that records the stride between the lanes of a load."""

    def __init__(self, graph: Snapshot, group: Group) -> None:
        super().__init__(graph, group.outputs, group.reads)
        self.strides: list[int] = []

    def load(self, buffer: int, place: Index) -> Instruction:
        """The element at a flat index, or four."""
        self.strides.append(abs(_lane_stride(place)))
        return super().load(buffer, place)


def _lane_stride(index: Index) -> int:
    """The stride from lane to lane; approximate where an index is clamped or a remainder."""
    total = 0
    for atom, factor in index.terms.items():
        if atom.kind == LANE:
            total += factor
        elif atom.expression is not None and atom.kind != "quotient":
            total += factor * _lane_stride(atom.expression)
    return total


class _Product:
    """The sizes of one contraction, and its indices from a batch, a row, a column and k.

    Where C has few columns and more rows its transpose is computed: `swapped`. The template's rows are then
    C's columns, and its A is B.
    """

    def __init__(self, graph: Snapshot, group: Group, profile: DeviceProfile) -> None:
        self.graph = graph
        self.group = group
        self.a, self.b = graph.inputs[group.center]
        a, b, c = (graph.sigs[each].shape for each in (self.a, self.b, group.center))
        self.k = a[-1]
        self.batches: tuple[int, ...] = c[:-2]
        self.lines: tuple[int, ...] = c[-2:-1]
        if math.prod(b[:-2]) == 1:  # one B for all batches: they are more rows
            self.batches, self.lines = (), c[:-1]
        self.width = c[-1]
        self.count = math.prod(self.batches)
        height = math.prod(self.lines)
        (output,) = group.outputs
        few = self.width < WIDE[profile.kind] and self.width < height
        self.swapped = few and not graph.sigs[output].dtype.is_packed
        self.m, self.n = (self.width, height) if self.swapped else (height, self.width)
        self.puller = _Watched(graph, group)
        self.stretch = self.k
        self.stretch = self._stretch()
        self.along_k = self._along_k()

    def left(self, batch: Index, row: Index, k: Index) -> Place:
        """The node and indices of an element of the template's A."""
        return self._b_at(batch, k, row) if self.swapped else self._a_at(batch, row, k)

    def right(self, batch: Index, k: Index, column: Index) -> Place:
        """The node and indices of an element of the template's B."""
        return self._a_at(batch, column, k) if self.swapped else self._b_at(batch, k, column)

    def _a_at(self, batch: Index, line: Index, k: Index) -> Place:
        at = [*unflatten(batch, self.batches), *unflatten(line, self.lines)]
        return self.a, (*self._broadcast(self.a, at, 1), k)

    def _b_at(self, batch: Index, k: Index, column: Index) -> Place:
        rank = len(self.graph.sigs[self.b].shape)
        at = [*unflatten(batch, self.batches)] if self.batches else [ZERO] * rank
        return self.b, (*self._broadcast(self.b, at, 2), k, column)

    def _broadcast(self, number: int, at: list[Index], less: int) -> tuple[Index, ...]:
        """The leading indices of an operand, all but the last `less`."""
        return broadcast(at, self.graph.sigs[number].shape[:-less])

    def result(self, batch: Index, row: Index, column: Index) -> Index:
        """The flat index of an element of the template's C."""
        if self.swapped:
            return (batch * self.n + column) * self.width + row
        return (batch * self.m + row) * self.n + column

    def k_at(self, outer: Instruction | None, inner: Index) -> Index:
        """k from the index of a stretch and the index in it."""
        if outer is None or self.stretch == self.k:
            return inner
        return argument(self.puller, outer, "outer", self.k // self.stretch) * self.stretch + inner

    def _stretch(self) -> int:
        """The length of k within which no operand divides its index: the last of the axes merged into k."""
        found = 0
        for left in (True, False):
            made: list[Instruction] = []
            hole = self._probe(left, made)
            for each in hole.body:
                if each.op == "arithmetic" and each.data in "/%" and each.args[0] is made[0]:
                    size = each.args[1].data
                    found = math.gcd(found, size) if self.k % size == 0 else found
        return found if found > 1 else self.k

    def _probe(self, left: bool, made: list[Instruction]) -> Hole:
        """An operand pulled at one k."""
        puller = self.puller

        def fill(batch: Instruction, at: Instruction, k: Instruction) -> Instruction:
            made.append(k)
            batch_at = argument(puller, batch, "batch", self.count)
            k_at = argument(puller, k, "k", self.k)
            if left:
                return puller.pull(*self.left(batch_at, argument(puller, at, "at", self.m), k_at))
            column = argument(puller, at, "at", max(1, self.n // 4)) * 4 + puller.new_lane()
            return puller.pull(*self.right(batch_at, k_at, column.limited(self.n)))

        return make_hole(puller, "probe", {"batch": U32, "at": U32, "k": U32}, fill)

    def _along_k(self) -> bool:
        """Whether B is contiguous along k rather than along its columns: it is then read along k."""
        if self.n == 1:
            return True
        steps, groups = max(1, self.stretch // 4), max(1, self.n // 4)
        ways = {}
        for along_k in (False, True):
            self.puller.strides = []
            holes = _load_b(self, steps, groups, along_k)
            loads = [each.type for hole in holes for each in hole.body if each.op == "load" and each.type]
            whole = bool(loads) and all(type.width == 4 for type in loads)
            ways[along_k] = (not whole, max(self.puller.strides, default=0))
        return ways[True] < ways[False]


def _load_a(product: _Product, steps: int, rows: int, single: bool) -> tuple[Hole, ...]:
    puller = product.puller

    def fill(batch: Instruction, row: Instruction, outer: Instruction, step: Instruction) -> Instruction:
        at = argument(puller, row, "row", rows).limited(product.m)
        batch_at = argument(puller, batch, "batch", product.count)
        if single:
            inner = argument(puller, step, "step", product.stretch)
            return puller.pull(*product.left(batch_at, at, product.k_at(outer, inner)))
        inner = argument(puller, step, "step", steps) * 4 + puller.new_lane()
        k = product.k_at(outer, inner.limited(product.stretch))
        value = puller.pull(*product.left(batch_at, at, k))
        return zero_beyond(puller, value, inner, product.stretch)

    stages = [
        ("hole_a_row", {"batch": U32, "row": U32}),
        ("hole_a_outer", {"outer": U32}),
        ("hole_a", {"step": U32}),
    ]
    return make_stages(puller, stages, fill)


def _load_b(
    product: _Product, steps: int, columns: int, along_k: bool, single: bool = False
) -> tuple[Hole, ...]:
    puller = product.puller

    def fill(batch: Instruction, column: Instruction, outer: Instruction, step: Instruction) -> Instruction:
        if along_k:
            inner = argument(puller, step, "step", steps) * 4 + puller.new_lane()
            n = argument(puller, column, "column", 4 * columns)
        else:
            inner = argument(puller, step, "step", product.stretch if single else 4 * steps)
            group = argument(puller, column, "column", columns)
            if product.n % 4 == 0:
                group = group.limited(product.n // 4)
            n = group * 4 + puller.new_lane()
        n = n.limited(product.n)
        batch_at = argument(puller, batch, "batch", product.count)
        k = product.k_at(outer, inner.limited(product.stretch))
        value = puller.pull(*product.right(batch_at, k, n))
        return zero_beyond(puller, value, inner, product.stretch)

    stages = [
        ("hole_b_column", {"batch": U32, "column": U32}),
        ("hole_b_outer", {"outer": U32}),
        ("hole_b", {"step": U32}),
    ]
    return make_stages(puller, stages, fill)


def _store_c(product: _Product) -> Hole:
    puller, graph = product.puller, product.graph
    (output,) = product.group.outputs
    groups = -(-product.n // 4)
    stride = product.width if product.swapped else 1

    def fill(batch: Instruction, row: Instruction, column: Instruction, value: Instruction) -> None:
        build = puller.builder
        inside = puller.both(
            build.compare("<", row, build.size(product.m)),
            build.compare("<", column, build.size(groups)),
        )
        build.open_if(inside)
        batch_at = argument(puller, batch, "batch", product.count)
        row_at = argument(puller, row, "row", product.m)
        n = argument(puller, column, "column", groups + (product.n % 4 > 0)) * 4 + puller.new_lane()
        puller.given = {product.group.center: lambda _: value}
        place = product.result(batch_at, row_at, n.limited(product.n))
        result = puller.pull(output, unflatten(place, graph.sigs[output].shape))
        if product.n % 4 == 0:
            puller.store(output, place, result)
        else:
            line = product.result(batch_at, row_at, ZERO)
            store_lanes(puller, output, line, n, product.n, result, stride)
        build.close()
        puller.given = {}

    return make_hole(product.puller, "hole_c", {"batch": U32, "row": U32, "column": U32, "v": F32x4}, fill)


def contraction_choices(graph: Snapshot, group: Group, profile: DeviceProfile) -> tuple[Choice, ...]:
    """The ways to compute a product, the default first."""
    if graph.sigs[group.center].op.name != "matmul":
        return ()
    product = _Product(graph, group, profile)
    return offered(profile, product.m, product.n, product.along_k)


def lower_contraction(
    graph: Snapshot, group: Group, profile: DeviceProfile, choice: Choice | None = None
) -> Kernel:
    """A matrix product with everything fused around it."""
    product = _Product(graph, group, profile)
    form = form_of(choice or offered(profile, product.m, product.n, product.along_k)[0], product.along_k)
    steps = -(-product.stretch // 4)
    span = steps + (product.stretch % 4 > 0)  # where k is clamped, every lane is, whatever the remainder
    row_blocks, column_blocks = -(-product.m // form.rows), -(-product.n // (4 * form.groups))
    # One more than there are: rows and columns are then always clamped, whether sizes divide or not, and the
    # text stays the same.
    all_rows, all_columns = row_blocks * form.rows + 1, column_blocks * form.groups + 1
    holes = (
        *_load_a(product, span, all_rows, form.single),
        *_load_b(product, span, all_columns, form.along_k, form.single),
        _store_c(product),
    )
    outers = product.k // product.stretch if product.stretch else 1
    numbers = {
        "k": product.stretch,
        "outers": outers,
        "steps": steps,
        "rows": form.stored,
        "batches": product.count,
        "row_blocks": row_blocks,
        "column_blocks": column_blocks,
        "row_every": 1 if product.n > product.m else column_blocks,
        "column_every": row_blocks if product.n > product.m else 1,
        "block_rows": form.rows,
        "block_groups": form.groups,
    }
    defines = (*form.defines, ("NESTED", "1")) if outers > 1 else form.defines
    template = Template(form.file, tuple(sorted(defines)), tuple(numbers.items()), form.requires)
    groups = row_blocks * column_blocks * product.count
    return kernel_of(group, product.puller, form.workgroup, groups, template, holes)
