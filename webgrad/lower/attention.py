"""Attention: templates whose operands and result are holes, filled by pulling.

In: a group around an attend node. Out: a `Kernel` with a template. Layouts (heads split or merged), casts and
a rotary embedding before it, and maps and permutations after it, cost no extra kernel. The number of keys is
a run-time number; the columns of a head, in parts of a few groups of four, and the number of rows that share
a load, are in the text.
"""

from __future__ import annotations

from collections.abc import Callable

from ..device_profile import DeviceProfile
from ..dtypes import float64, int32, uint32
from ..errors import DTypeError
from ..graph.snapshot import Snapshot
from ..ops.table import TABLE
from ..schedule.plan import Group
from .choices import Choice
from .holes import F32x4, argument, make_hole, zero_beyond
from .index import Index, broadcast, flatten, unflatten
from .ir import U32, Hole, Instruction, Kernel, Template
from .pull import Puller
from .threads import kernel_of

MAX_ROWS = 16  # rows in the registers of one subgroup
FOUR_LANES_ROWS = 8  # the same with four lanes: 1.5 times as fast as 16 on SwiftShader
MAX_VALUES = 32  # parts of rows there: more compile slowly
MAX_ROLLED = 64  # the same where parts of keys and values are loaded in a loop
ROLLED_PARTS = 4  # parts that are not: more compile slowly
SINGLE_THREADS = 8  # of a workgroup in which each thread has its own rows
TILE_ROWS = (16, 32)  # rows of a workgroup of the template for GPUs, for few and for many
TILE_COLUMNS = 32  # columns of a tile there
TILE_THREADS = 128
NO_WINDOW = 0x3FFFFFFF


class _Attention:
    """The sizes of one attention, and its holes' indices."""

    def __init__(self, graph: Snapshot, group: Group) -> None:
        self.graph = graph
        self.group = group
        self.inputs = graph.inputs[group.center]
        query, key, value = (graph.sigs[each].shape for each in self.inputs[:3])
        self.batches, self.heads, self.queries, self.columns = query
        self.key_heads, self.keys = key[1], key[2]
        self.values = value[3]
        self.share = self.heads // self.key_heads  # query heads per key head
        self.rows = self.queries * self.share
        self.masked = len(self.inputs) > 5
        self.causal, self.window, self.from_end, self.chunks = graph.sigs[group.center].attributes
        self.puller = Puller(graph, group.outputs, group.reads)

    def numbers(self) -> dict[str, int]:
        """The numbers that both templates need."""
        return {
            "rows": self.rows,
            "heads": self.key_heads,
            "pairs": self.batches * self.key_heads,
            "group": self.share,
            "chunks": max(1, self.chunks),
            "causal": int(self.causal),
            "window": (self.window or NO_WINDOW) if self.causal else NO_WINDOW,
            "shift": self.queries if self.from_end else self.keys,
            "groups": -(-self.values // 4),
        }


def _load(
    attention: _Attention, name: str, position: int, groups: int, change: Callable[..., Instruction] | None
) -> Hole:
    """Four columns of a row of q, k or v; 0 beyond the last."""
    puller = attention.puller
    number = attention.inputs[position]
    shape = attention.graph.sigs[number].shape

    def fill(batch: Instruction, head: Instruction, row: Instruction, group: Instruction) -> Instruction:
        column = argument(puller, group, "group", groups) * 4 + puller.new_lane()
        place = (
            argument(puller, batch, "batch", shape[0]),
            argument(puller, head, "head", shape[1]),
            argument(puller, row, "row", shape[2]),
            column.limited(shape[3]),
        )
        value = puller.pull(number, place)
        return zero_beyond(puller, value if change is None else change(value), column, shape[3])

    return make_hole(puller, name, {"batch": U32, "head": U32, "row": U32, "group": U32}, fill)


def _scaled(attention: _Attention) -> Callable[[Instruction], Instruction]:
    puller = attention.puller

    def scaled(value: Instruction) -> Instruction:
        return puller.builder.apply(TABLE["multiply"], "f32", value, puller.pull(attention.inputs[3], ()))

    return scaled


def _length(attention: _Attention) -> Hole:
    """The number of keys, clamped to the room for keys."""
    puller = attention.puller

    def fill() -> Instruction:
        build = puller.builder
        count = build.cast(puller.pull(attention.inputs[4], ()), int32, uint32, by_bits=True)
        negative = build.compare(">=", count, build.constant(1 << 31))
        return build.select(
            negative, build.constant(0), build.arithmetic("min", count, build.size(attention.keys))
        )

    return make_hole(puller, "hole_length", {}, fill)


def _mask(attention: _Attention) -> Hole:
    """The value of the mask that is added to one score."""
    puller = attention.puller
    number = attention.inputs[5]
    sizes = {
        "batch": attention.batches,
        "head": attention.heads,
        "query": attention.queries,
        "key": attention.keys,
    }

    def fill(*given: Instruction) -> Instruction:
        whole = [argument(puller, each, *size) for each, size in zip(given, sizes.items(), strict=True)]
        return puller.pull(number, broadcast(whole, attention.graph.sigs[number].shape))

    return make_hole(puller, "hole_mask", dict.fromkeys(sizes, U32), fill)


def _store(attention: _Attention) -> Hole:
    """Store four columns of a result, where they exist, at the index that the ops after it give them."""
    puller, graph = attention.puller, attention.graph
    center = attention.group.center
    shape = graph.sigs[center].shape
    (output,) = attention.group.outputs
    columns = shape[-1]
    groups = -(-columns // 4)
    names = ("chunk", "batch", "head", "query")[-len(shape[:-1]) :]

    def fill(*given: Instruction) -> None:
        build = puller.builder
        value, group = given[-1], given[-2]
        build.open_if(build.compare("<", group, build.size(groups)))
        before = tuple(
            argument(puller, each, name, size)
            for each, name, size in zip(given[-2 - len(names) : -2], names, shape, strict=False)
        )
        column = argument(puller, group, "group", groups) * 4 + puller.new_lane()
        puller.given = {center: lambda _: value}
        clamped = (*before, column.limited(columns))
        place = forward(graph, attention.group, clamped)
        result = puller.pull(output, unflatten(place, graph.sigs[output].shape))
        if columns % 4 == 0:
            puller.store(output, place, result)
        else:
            for lane in range(4):
                at = build.in_lane(column, lane)
                build.open_if(build.compare("<", build.index(at), build.size(columns)))
                puller.store(output, forward(graph, attention.group, (*before, at)), build.lane(result, lane))
                build.close()
        build.close()
        puller.given = {}

    arguments = dict.fromkeys(("chunk", "batch", "head", "query", "group"), U32) | {"v": F32x4}
    return make_hole(puller, "hole_y", arguments, fill)


def forward(graph: Snapshot, group: Group, indices: tuple[Index, ...]) -> Index:
    """The flat index in the output of the result's element at these indices."""
    at = {group.center: indices}
    for number in group.inside:
        source = next((each for each in graph.inputs[number] if each in at), None)
        if source is None or number in at:
            continue
        sig = graph.sigs[number]
        if sig.op.name == "permute":
            at[number] = tuple(at[source][axis] for axis in sig.attributes[0])
        elif sig.op.name == "reshape":
            at[number] = unflatten(flatten(at[source], graph.sigs[source].shape), sig.shape)
        else:
            at[number] = at[source]
    (output,) = group.outputs
    return flatten(at[output], graph.sigs[output].shape)


def _lanes(profile: DeviceProfile) -> int:
    """Lanes that share rows on software adapters; 1: no such subgroups there; 0: the template for GPUs."""
    if profile.kind != "software":
        return 0
    return profile.subgroup_size if profile.subgroup_size in (4, 8) else 1


def attention_choices(graph: Snapshot, group: Group, profile: DeviceProfile) -> tuple[Choice, ...]:
    """How many rows share a load, and how many keys one step takes."""
    attention = _Attention(graph, group)
    if not _lanes(profile):
        few, many = TILE_ROWS
        tiles = (few,) if attention.rows <= few else (many, few)
        return tuple((("rows", each),) for each in tiles)
    lanes = _lanes(profile)
    wide = -(-max(attention.columns, attention.values) // (4 * lanes))
    room = MAX_VALUES if wide <= ROLLED_PARTS else MAX_ROLLED
    tallest = FOUR_LANES_ROWS if lanes == 4 else MAX_ROWS
    most = next(each for each in (tallest, 8, 4, 2, 1) if each * wide <= room or each == 1)
    rows = min(most, next((each for each in (1, 2, 4, 8) if each >= attention.rows), MAX_ROWS))
    pairs = lanes != 4 and wide <= 2 and rows * wide <= MAX_VALUES // 2
    steps = (2, 1) if pairs else (1, 2)
    fewer = (rows, rows // 2) if rows > 1 else (rows,)
    return tuple((("rows", each), ("keys", step)) for each in fewer for step in steps)


def lower_attention(
    graph: Snapshot, group: Group, profile: DeviceProfile, choice: Choice | None = None
) -> Kernel:
    """Attention with everything fused around it."""
    if graph.sigs[group.center].dtype is float64:  # a cpu's graph that is shown as a GPU's
        raise DTypeError("attention of float64 is not offered on GPUs")
    attention = _Attention(graph, group)
    options = dict(choice or attention_choices(graph, group, profile)[0])
    lanes = _lanes(profile)
    rows = options["rows"]
    numbers = attention.numbers()
    numbers["row_blocks"] = -(-attention.rows // rows)
    defines = {"HOLES": "1", "ROWS": str(rows)}
    if attention.masked:
        defines["MASK"] = "1"
    if attention.chunks:
        defines["PARTIAL"] = "1"
    span = lanes or TILE_COLUMNS // 4  # groups of columns in a part
    parts, value_parts = (-(-each // (4 * span)) for each in (attention.columns, attention.values))
    defines["VALUE_PARTS"] = str(value_parts)
    if lanes:
        file, workgroup = "attention.pwgsl", lanes if lanes > 1 else SINGLE_THREADS
        requires = frozenset({"subgroups"} if lanes > 1 else ())
        defines |= {"LANES": str(lanes), "PARTS": str(parts), "KEYS": str(options["keys"])}
        if max(parts, value_parts) > ROLLED_PARTS:
            defines["ROLLED"] = str(max(parts, value_parts))
        numbers |= {"parts": parts, "value_parts": value_parts, "loads": rows * parts}
    else:
        file, workgroup, requires = "attention_tile.pwgsl", TILE_THREADS, frozenset()
        numbers |= {"slices": parts, "depth": span}
    numbers["stores"] = (rows if lanes else rows // 16) * (value_parts + (attention.chunks > 0))
    holes = [
        _load(attention, "hole_q", 0, parts * span, _scaled(attention)),
        _load(attention, "hole_k", 1, parts * span, None),
        _load(attention, "hole_v", 2, value_parts * span, None),
        _length(attention),
        _store(attention),
    ]
    if attention.masked:
        holes.append(_mask(attention))
    blocks = numbers["row_blocks"] * numbers["chunks"] * numbers["pairs"]
    groups = -(-blocks // workgroup) if lanes == 1 else blocks
    template = Template(file, tuple(sorted(defines.items())), tuple(numbers.items()), requires)
    return kernel_of(group, attention.puller, workgroup, groups, template, holes)
