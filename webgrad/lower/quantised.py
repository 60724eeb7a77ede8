"""Products with quantised weights: a template that unpacks them in registers; A and the results are holes.

In: a group around a `matmul_blocks`. Out: a `Kernel`. What comes before A (casts, norms' last step) and after
the sums (a bias, an activation, a residual) costs no extra kernel.
"""

from __future__ import annotations

import math

from ..device_profile import DeviceProfile
from ..graph.snapshot import Snapshot
from ..ops.blocks import FORMATS
from ..schedule.plan import MAX_THIN_ROWS, Group
from .choices import Choice
from .holes import F32x4, argument, make_hole, store_lanes
from .index import Index, unflatten
from .ir import U32, Hole, Instruction, Kernel, Template, Type
from .pull import Puller
from .threads import kernel_of

DEPTH = 64  # threads of a GPU's workgroup along k
FEW_ROWS = 2  # rows of A up to which lanes hold different parts of a row, not different rows
SOME_ROWS = 4  # rows of A that a thread takes alone


class _Product:
    """The sizes of one product, and its holes."""

    def __init__(self, graph: Snapshot, group: Group) -> None:
        self.graph = graph
        self.group = group
        self.a, self.words = graph.inputs[group.center]
        self.format, (self.n, self.k) = graph.sigs[group.center].attributes
        self.rows = graph.sigs[self.a].shape[:-1]
        self.m = math.prod(self.rows)
        self.puller = Puller(graph, group.outputs, group.reads)

    def load_a(self) -> Hole:
        """Four elements of a row of A; rows are clamped."""
        puller = self.puller

        def fill(row: Instruction, at: Instruction) -> Instruction:
            # One row more than there is: rows are then always clamped, and the text stays the same.
            line = argument(puller, row, "row", self.m + 1).limited(self.m)
            k = argument(puller, at, "at", self.k // 4) * 4 + puller.new_lane()
            value = puller.pull(self.a, (*unflatten(line, self.rows), k))
            return puller.builder.widened(value, 4)

        return make_hole(puller, "hole_a", {"row": U32, "at": U32}, fill)

    def load_words(self, name: str, width: int) -> Hole:
        """A word, or four."""
        puller = self.puller
        buffer = puller.numbers[self.words]

        def fill(at: Instruction) -> Instruction:
            return puller.builder.emit("load", Type("u32", width), (at,), buffer)

        return make_hole(puller, name, {"i": U32}, fill)

    def store_c(self) -> Hole:
        """Takes the sums of four columns, where they exist."""
        puller, (output,) = self.puller, self.group.outputs
        shape, groups = self.graph.sigs[output].shape, -(-self.n // 4)

        def fill(row: Instruction, column: Instruction, value: Instruction) -> None:
            build = puller.builder
            inside = puller.both(
                build.compare("<", row, build.size(self.m)), build.compare("<", column, build.size(groups))
            )
            build.open_if(inside)
            start: Index = argument(puller, row, "row", self.m) * self.n
            n = argument(puller, column, "column", groups + (self.n % 4 > 0)) * 4 + puller.new_lane()
            puller.given = {self.group.center: lambda _: value}
            place = start + n.limited(self.n)
            result = puller.pull(output, unflatten(place, shape))
            if self.n % 4 == 0:
                puller.store(output, place, result)
            else:
                store_lanes(puller, output, start, n, self.n, result)
            build.close()
            puller.given = {}

        return make_hole(puller, "hole_c", {"row": U32, "column": U32, "v": F32x4}, fill)


def _lanes(profile: DeviceProfile) -> int:
    """The size of the subgroups that exchange A; 0 where there are none, or where that does not pay."""
    return profile.subgroup_size if profile.kind == "software" and profile.subgroup_size in (4, 8) else 0


def _least(rows: int, most: int) -> int:
    """The smallest power of two of at least `rows`, up to a limit."""
    return min(1 << (rows - 1).bit_length(), most)


def quantised_choices(graph: Snapshot, group: Group, profile: DeviceProfile) -> tuple[Choice, ...]:
    """The choices of a product; the first is the default for the profile.

    `rows` of A share the weights that are unpacked. `columns` of B go together where the rows are few.
    """
    m = math.prod(graph.sigs[graph.inputs[group.center][0]].shape[:-1])
    name = graph.sigs[group.center].attributes[0]
    if not _lanes(profile):
        most = SOME_ROWS if profile.kind == "software" else MAX_THIN_ROWS
        sizes = dict.fromkeys((_least(m, most), _least(m, most // 2)))
        return tuple((("rows", each),) for each in sizes)
    if m <= FEW_ROWS:
        return tuple((("rows", _least(m, FEW_ROWS)), ("columns", each)) for each in (2, 1, 4))
    # More rows are faster, and compile longer.
    most = FORMATS[name].most_rows
    sizes = dict.fromkeys(_least(m, each) for each in sorted((8, 16), key=lambda each: each != most))
    return tuple((("rows", each),) for each in sizes)


def lower_quantised(
    graph: Snapshot, group: Group, profile: DeviceProfile, choice: Choice | None = None
) -> Kernel:
    """A product of floats and quantised blocks with everything fused around it."""
    product = _Product(graph, group)
    chosen = dict(choice or quantised_choices(graph, group, profile)[0])
    rows, lanes = chosen["rows"], _lanes(profile)
    defines = {"HOLES": "1", "FORMAT": product.format, "ROWS": str(rows)}
    if "columns" in chosen:
        defines |= {"FORM": "vector", "LANES": str(lanes), "COLUMNS": str(chosen["columns"])}
        workgroup = columns = lanes
    elif lanes:
        defines |= {"FORM": "rows", "LANES": str(lanes)}
        workgroup = columns = lanes
    elif profile.kind == "software":
        defines |= {"FORM": "threads", "DEPTH": "1"}
        workgroup = columns = 8
    else:
        defines |= {"FORM": "threads", "DEPTH": str(DEPTH)}
        workgroup, columns = DEPTH, 1
    format = FORMATS[product.format]
    depth = product.k // format.weights
    row_blocks, column_blocks = -(-product.m // rows), -(-product.n // (4 * columns))
    numbers = {
        "n": product.n,
        "depth": depth,
        "blocks": depth * product.n,
        "units": format.units,
        "pairs": format.pairs,
        "four": 4,
        "rows": rows,
        "half": DEPTH // 2,
        "column_blocks": column_blocks,
    }
    requires = frozenset({"subgroups"}) if lanes else frozenset()
    template = Template("quantised.pwgsl", tuple(sorted(defines.items())), tuple(numbers.items()), requires)
    holes = (
        product.load_a(),
        product.load_words("hole_word", 1),
        product.load_words("hole_words", 4),
        product.store_c(),
    )
    return kernel_of(group, product.puller, workgroup, row_blocks * column_blocks, template, holes)
