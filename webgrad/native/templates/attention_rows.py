"""Attention of few rows over many keys, at the speed of memory, in LLVM's text.

In: a `Tile` and what is read where it lies. Out: the text of `kernel`, with the holes of `attention.py`. Keys
and values are read once for all rows of heads that share them: dot products of keys with rows, exponentials,
then values times these. The keys of a line are shared out to several units, each of which leaves its sums
in scratch memory; the last to come adds them up. The invariant: how keys are shared out depends on their
number alone, and parts are added up in order, whichever comes last.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..text import Function
from ..value import constants
from .attention import (
    At,
    Division,
    Reads,
    Regions,
    Shape,
    Unit,
    fields_of_shape,
    kernel_text,
    larger,
    seen,
)
from .exponentials import INTEGER, exponentials, lowest
from .operands import MOST_SLOTS, Field, Tile

__all__ = ["are_few", "few_rows_text", "rows_division"]

KEYS = 256  # whose scores are computed together
_MOST_PARTS = 16


def are_few(tile: Tile, rows: int) -> bool:
    """Whether this pays for so many rows that share keys: others fill vectors."""
    return 4 * rows <= 3 * tile.width


def rows_division(tile: Tile, reads: Reads, shape: Shape, threads: int) -> Division:
    """How to divide attention of (batches, heads, key heads, queries, keys, columns, values)."""
    batches, heads, key_heads, queries, keys, columns, values = shape
    group = heads // key_heads
    rows, lines = group * queries, batches * key_heads
    parts = max(1, min(_MOST_PARTS, keys // KEYS))
    sizes = _sizes(tile, rows, columns, values)
    room = (_regions(reads).size(sizes) * tile.size + 63) & -64
    slots = min(threads, MOST_SLOTS)
    fields = fields_of_shape(shape, group, parts, rows, room, slots)
    left = lines * parts * _STATE.size(sizes) * tile.size if parts > 1 else 0
    cost = max(rows * -(-keys // parts) * (columns + values), 1)
    return Division(lines * parts, cost, fields, slots * room + left, lines if parts > 1 else 0)


def _sizes(tile: Tile, rows: int, columns: int, values: int) -> dict[str, int]:
    wide = [-(-each // tile.lanes) * tile.lanes for each in (columns, values)]
    return {"rows": rows, "wide_columns": wide[0], "wide_values": wide[1], "widest": max(wide)}


# Of a unit: sums of values, the maximum of the scores of each row, the total of its weights
_STATE = Regions({"sums": ("rows", "wide_values"), "tops": ("rows",), "totals": ("rows",)})


def _regions(reads: Reads) -> Regions:
    """`lines`: rows of queries; `result`: of the result. `state`: as _STATE is."""
    regions: dict[str, tuple[str | int, ...]] = {
        "lines": ("rows", "wide_columns"),
        "result": ("rows", "wide_values"),
        "scores": ("rows", KEYS),
        "factors": ("rows",),
        "lows": ("rows", 2),  # i64
        "highs": ("rows", 2),
        "sums": ("rows", "wide_values"),
        "tops": ("rows",),
        "totals": ("rows",),
    }
    if not reads.keys:
        regions["keys"] = (KEYS, "wide_columns")
    if not reads.values:
        regions["values"] = (KEYS, "wide_values")
    if reads.masked:
        regions["mask"] = ("rows", KEYS)
    return Regions(regions)


def few_rows_text(tile: Tile, reads: Reads) -> str:
    """`kernel`."""
    own = {"float": "float32", "double": "float64"}[tile.kind]
    counts = _counts(tile)
    texts = [_dots_text(tile, reads.keys or own, rows) for rows in counts]
    texts += [_mix_text(tile, reads.values or own, rows) for rows in counts]
    texts += [_weights_text(tile, reads.masked), _sum_text(tile), _Unit(tile, reads).text()]
    return "\n".join([*texts, kernel_text(tile)])


def _counts(tile: Tile) -> list[int]:
    """How many rows are computed at once."""
    return [each for each in (4, 2, 1) if each <= tile.lanes]


def _accumulators(tile: Tile) -> int:
    return 16 if tile.height > 8 else 8


# Scores

_PANEL = [("ptr", "rows"), ("i64", "pitch"), ("ptr", "here"), ("i64", "step"), ("i64", "count")]


def _dots_text(tile: Tile, source: str, rows: int) -> str:
    """`dots`: keys, `step` apart, times rows, `pitch` apart; of the last keys some are computed twice."""
    f = Function(f"dots{rows}", [*_PANEL, ("i64", "columns"), ("ptr", "out")])
    kind, vector, stored = tile.kind, tile.vector, tile.stored(source)
    together = max(_accumulators(tile), tile.lanes) // rows
    last = f.add("%count", -1)
    lines = [f.at("%rows", f.multiply("%pitch", at), kind) for at in range(rows)]
    outs = [f.at("%out", at * KEYS, kind) for at in range(rows)]
    with f.loop(0, "%count", together) as key:
        keys = [
            f.at("%here", f.multiply(f.least(f.add(key, at), last), "%step"), stored)
            for at in range(together)
        ]
        sums = [[f.variable(vector, "zeroinitializer") for _ in keys] for _ in lines]
        ahead = f.multiply("%step", together)
        with f.loop(0, "%columns", tile.lanes) as column:
            later = f.add(column, ahead)
            for each in keys:  # processors by themselves follow fewer rows, and one after another
                f.prefetch(f.at(each, later, stored))
            right = [tile.read(f, source, each, column, tile.lanes) for each in keys]
            for line, totals in zip(lines, sums, strict=True):
                left = f.load(vector, line, column, kind, align=tile.size)
                for each, total in zip(right, totals, strict=True):
                    f.store(vector, tile.add_product(f, left, each, f.load(vector, total)), total)
        flat = [f.load(vector, total) for totals in sums for total in totals]
        for start in range(0, len(flat), tile.lanes):
            made = _totals(f, tile, flat[start : start + tile.lanes])
            width = min(tile.lanes, together)
            for first in range(0, tile.lanes, width):
                row, at = divmod(start + first, together)
                part = made if width == tile.lanes else f.shuffle(vector, made, range(first, first + width))
                f.store(f"<{width} x {kind}>", part, f.at(outs[row], f.add(key, at), kind))
    return f.text()


def _totals(f: Function, tile: Tile, vectors: list[str]) -> str:
    """The sums of as many vectors as one has lanes, in order: halves are added, first within 16 bytes."""
    lanes, inside = tile.lanes, 16 // tile.size

    def merged(low: list[int], high: list[int]) -> list[str]:
        pairs = zip(vectors[::2], vectors[1::2], strict=True)
        return [
            tile.add(f, *(f.shuffle(tile.vector, a, places, b) for places in (low, high))) for a, b in pairs
        ]

    starts = range(0, lanes, inside)
    if inside == 4:
        low = [start + at for start in starts for at in (0, lanes, 1, lanes + 1)]
        vectors = merged(low, [at + 2 for at in low])
        low = [start + at for start in starts for at in (0, 1, lanes, lanes + 1)]
        vectors = merged(low, [at + 2 for at in low])
    else:
        low = [start + at for start in starts for at in (0, lanes)]
        vectors = merged(low, [at + 1 for at in low])
    while len(vectors) > 1:
        low = [
            start + at
            for side in (0, lanes)
            for start in range(side, side + lanes, 2 * inside)
            for at in range(inside)
        ]
        vectors = merged(low, [at + inside for at in low])
    return vectors[0]


# Weights


def _weights_text(tile: Tile, masked: bool) -> str:
    """`weights`: scores of a row, of keys from `key` on, become exponentials; their total and their maximum
    are taken into those so far, and the factor is stored that makes sums so far relative to the latter.
    """
    places = [("ptr", "scores"), ("i64", "key"), ("i64", "count"), ("i64", "low"), ("i64", "high")]
    f = Function("weights", [*places, ("ptr", "top"), ("ptr", "total"), ("ptr", "factor"), ("ptr", "mask")])
    kind, vector, lanes = tile.kind, tile.vector, tile.lanes
    integer = INTEGER[kind]
    indices = f"<{lanes} x {integer}>"
    stop = f.least("%high", f.add("%key", "%count"))
    padded = f(f"and i64 {f.add('%count', lanes - 1)}, {-lanes}")
    bounds = []
    for each in ("%low", stop):
        relative = f(f"sub i64 {each}, %key")
        number = relative if integer == "i64" else f(f"trunc i64 {relative} to i32")
        bounds.append(f.spread(integer, number, lanes))
    before = f.load(kind, "%top", align=tile.size)
    largest = f.variable(vector, f.spread(kind, before, lanes))
    steps = constants(integer, range(lanes))
    with f.loop(0, padded, lanes) as at:
        score = f.load(vector, "%scores", at, kind, align=tile.size)
        if masked:
            score = f(f"fadd {vector} {score}, {f.load(vector, '%mask', at, kind, align=tile.size)}")
        number = at if integer == "i64" else f(f"trunc i64 {at} to i32")
        place = f(f"add {indices} {f.spread(integer, number, lanes)}, {steps}")
        score = seen(f, tile, score, place, *bounds)
        f.store(vector, score, "%scores", at, kind)
        f.store(vector, larger(f, vector, score, f.load(vector, largest)), largest)
    top = f.folded(kind, lanes, f.load(vector, largest), lambda n, a, b: larger(f, f"<{n} x {kind}>", a, b))
    spread = f.spread(kind, top, lanes)
    totals = f.variable(vector, "zeroinitializer")
    with f.loop(0, padded, lanes) as at:
        score = f.load(vector, "%scores", at, kind, align=tile.size)
        weight = exponentials(f, f(f"fsub {vector} {score}, {spread}"), kind, lanes)
        f.store(vector, weight, "%scores", at, kind)
        f.store(vector, f(f"fadd {vector} {f.load(vector, totals)}, {weight}"), totals)
    factor = _factor(f, tile, before, top)
    sum_before = f(f"fmul {kind} {f.load(kind, '%total', align=tile.size)}, {factor}")
    total = f(f"fadd {kind} {sum_before}, {tile.total(f, f.load(vector, totals))}")
    for value, where in ((total, "%total"), (top, "%top"), (factor, "%factor")):
        f.store(kind, value, where)
    return f.text()


def _factor(f: Function, tile: Tile, before: str, after: str) -> str:
    """exp(before - after), of numbers."""
    less = f.spread(tile.kind, f(f"fsub {tile.kind} {before}, {after}"), tile.lanes)
    return f(f"extractelement {tile.vector} {exponentials(f, less, tile.kind, tile.lanes)}, i64 0")


# Sums of values


def _mix_text(tile: Tile, source: str, rows: int) -> str:
    """`mix`: rows of weights times values, `step` apart, added to sums times their factors."""
    f = Function(f"mix{rows}", [*_PANEL, ("i64", "columns"), ("ptr", "sums"), ("ptr", "factors")])
    kind, vector, stored = tile.kind, tile.vector, tile.stored(source)
    factors = [
        f.spread(kind, f.load(kind, "%factors", row, kind, align=tile.size), tile.lanes)
        for row in range(rows)
    ]
    start = "0"
    for vectors in (min(4, _accumulators(tile) // rows), 1):
        places = range(0, vectors * tile.lanes, tile.lanes)
        stop = f(f"and i64 %columns, {-vectors * tile.lanes}")
        with f.loop(start, stop, vectors * tile.lanes) as column:
            sums = {(row, at): f.variable(vector, "zeroinitializer") for row in range(rows) for at in places}
            here = f.at("%here", column, stored)
            with f.loop(0, "%count") as key:
                line = f.at(here, f.multiply(key, "%step"), stored)
                for at in places if vectors > 1 else ():  # what this row has beside them, or the next row
                    f.prefetch(f.at(line, at + vectors * tile.lanes, stored))
                values = {at: tile.read(f, source, line, at, tile.lanes) for at in places}
                for row in range(rows):
                    one = f.load(kind, "%rows", f.add(key, row * KEYS), kind, align=tile.size)
                    weight = f.spread(kind, one, tile.lanes)
                    for at in places:
                        total = sums[row, at]
                        made = tile.add_product(f, weight, values[at], f.load(vector, total))
                        f.store(vector, made, total)
            for (row, at), total in sums.items():
                place = f.at("%sums", f.add(f.add(f.multiply("%pitch", row), column), at), kind)
                before = f.load(vector, place, align=tile.size)
                added = tile.add_product(f, before, factors[row], f.load(vector, total))
                f.store(vector, added, place)
        start = stop
    return f.text()


def _sum_text(tile: Tile) -> str:
    """`add_up`: the sums of the parts of a line, relative to the largest maximum, by their totals; 0 where no
    key was seen. Parts lie `size` apart.
    """
    places = [("ptr", "sums"), ("ptr", "tops"), ("ptr", "totals"), ("i64", "size"), ("i64", "parts")]
    f = Function("add_up", [*places, ("i64", "rows"), ("i64", "pitch"), ("ptr", "out")])
    kind, vector = tile.kind, tile.vector
    with f.loop(0, "%rows") as row:
        top = f.variable(kind, lowest(kind))
        with f.loop(0, "%parts") as part:
            own = f.load(kind, "%tops", f.add(f.multiply(part, "%size"), row), kind, align=tile.size)
            f.store(kind, larger(f, kind, own, f.load(kind, top, align=tile.size)), top)
        line = f.multiply(row, "%pitch")
        out = f.at("%out", line, kind)
        total = f.variable(kind, "0.0")
        with f.loop(0, "%pitch", tile.lanes) as column:
            f.store(vector, "zeroinitializer", out, column, kind)
        with f.loop(0, "%parts") as part:
            skipped = f.multiply(part, "%size")
            own, weights = (
                f.load(kind, each, f.add(skipped, row), kind, align=tile.size)
                for each in ("%tops", "%totals")
            )
            factor = _factor(f, tile, own, f.load(kind, top, align=tile.size))
            share = f(f"fmul {kind} {weights}, {factor}")
            f.store(kind, f(f"fadd {kind} {f.load(kind, total, align=tile.size)}, {share}"), total)
            spread = f.spread(kind, factor, tile.lanes)
            with f.loop(0, "%pitch", tile.lanes) as column:
                value = f.load(vector, "%sums", f.add(f.add(skipped, line), column), kind, align=tile.size)
                before = f.load(vector, out, column, kind, align=tile.size)
                f.store(vector, tile.add_product(f, value, spread, before), out, column, kind)
        whole = f.load(kind, total, align=tile.size)
        divisor = f.spread(kind, larger(f, kind, "0.5", whole), tile.lanes)
        with f.loop(0, "%pitch", tile.lanes) as column:
            value = f.load(vector, out, column, kind, align=tile.size)
            f.store(vector, f(f"fdiv {vector} {value}, {divisor}"), out, column, kind)
    return f.text()


# A unit


class _Unit(Unit):
    """The function `unit`: all rows of a line, over some of its keys."""

    def __init__(self, tile: Tile, reads: Reads) -> None:
        super().__init__(tile, reads)
        self.rows = self.size[At.ROWS]
        self.sizes = {"rows": self.rows, "wide_columns": self.wide_columns, "wide_values": self.wide_values}
        self.at = _regions(reads).places(self.f, tile, "%scratch", self.sizes)
        self.low, self.high = self.f.variable("i64", str(1 << 62)), self.f.variable("i64", "0")

    def text(self) -> str:
        """The function."""
        f, parts = self.f, self.size[At.PARTS]
        self._load_queries()
        self._set_limits()
        several = f(f"icmp sgt i64 {parts}, 1")
        states, size = self._left(several)
        skipped = f.multiply(f(f"select i1 {several}, i64 %part, i64 0"), size)
        own = {name: f.at(place, skipped, self.tile.kind) for name, place in states.items()}
        self._clear(own)
        low, high = (f.load("i64", each, align=8) for each in (self.low, self.high))
        with f.loop(self._first_block(low), high, f.multiply(parts, KEYS)) as key:
            start = f.most(key, low)
            stop = f.least(f.add(key, KEYS), high)
            self._add_keys(start, f(f"sub i64 {stop}, {start}"), own)
        arrived = f.variable("i64", "0")
        counter = f.at("%fields", f.add("%line", At.END), "i64")
        with f.when(several):
            f.store("i64", f(f"atomicrmw add ptr {counter}, i64 1 acq_rel, align 8"), arrived)
        with f.when(f(f"icmp eq i64 {f.load('i64', arrived, align=8)}, {f.add(parts, -1)}")):
            with f.when(several):  # for the next call
                f.do(f"store atomic i64 0, ptr {counter} monotonic, align 8")
            self._end(states, size)
        return f.text()

    def _first_block(self, low: str) -> str:
        """Where this part's first block of keys begins that has one from `low` on: each takes its turn."""
        f, parts = self.f, self.size[At.PARTS]
        block = f(f"sdiv i64 {low}, {KEYS}")
        turns = f(f"srem i64 {f(f'sub i64 %part, {block}')}, {parts}")
        past = f(f"icmp slt i64 {turns}, 0")
        wait = f(f"select i1 {past}, i64 {f.add(turns, parts)}, i64 {turns}")
        return f.multiply(f.add(block, wait), KEYS)

    def _left(self, several: str) -> tuple[dict[str, str], str]:
        """Where the sums of this line's parts are, and how far from part to part: behind the memory of all
        threads; in this thread's if there is one part.
        """
        f, tile = self.f, self.tile
        size = _STATE.length(f, self.sizes)
        room = f.multiply(f.field("i64", Field.SLOTS), f.field("i64", Field.ROOM))
        start = f.at(f.field("ptr", Field.SCRATCH), room)
        start = f.at(start, f.multiply(f.multiply("%line", self.size[At.PARTS]), size), tile.kind)
        places = _STATE.places(f, tile, start, self.sizes)
        return {
            name: f(f"select i1 {several}, ptr {place}, ptr {self.at[name]}")
            for name, place in places.items()
        }, size

    def _load_queries(self) -> None:
        """Rows of queries times the scale, with zeros up to whole vectors."""
        f, tile, lines = self.f, self.tile, self.at["lines"]
        self.load_queries(0, self.rows, lines)
        self._pad(lines, self.rows, self.columns, self.wide_columns)
        factor = f.spread(tile.kind, "%scale", tile.lanes)
        with f.loop(0, f.multiply(self.rows, self.wide_columns), tile.lanes) as at:
            value = f.load(tile.vector, lines, at, tile.kind, align=tile.size)
            f.store(tile.vector, f(f"fmul {tile.vector} {value}, {factor}"), lines, at, tile.kind)

    def _pad(self, place: str, rows: str, columns: str, pitch: str) -> None:
        f, kind = self.f, self.tile.kind
        with f.loop(0, rows) as row, f.loop(columns, pitch) as column:
            f.store(kind, "0.0", place, f.add(f.multiply(row, pitch), column), kind)

    def _set_limits(self) -> None:
        """Which keys each row sees, and which any does."""
        f = self.f
        with f.loop(0, self.rows) as row:
            low, high = self.limits(f(f"srem i64 {row}, {self.size[At.QUERIES]}"))
            for key, name, extreme, how in (
                (low, "lows", self.low, f.least),
                (high, "highs", self.high, f.most),
            ):
                f.store("i64", key, self.at[name], row, "i64")
                before = f.load("i64", extreme, align=8)
                f.store("i64", how(before, key), extreme)

    def _clear(self, own: dict[str, str]) -> None:
        f, tile = self.f, self.tile
        with f.loop(0, f.multiply(self.rows, self.wide_values), tile.lanes) as at:
            f.store(tile.vector, "zeroinitializer", own["sums"], at, tile.kind)
        with f.loop(0, self.rows) as row:
            f.store(tile.kind, lowest(tile.kind), own["tops"], row, tile.kind)
            f.store(tile.kind, "0.0", own["totals"], row, tile.kind)

    def _padded(self, letter: str, key: str, count: str) -> tuple[str, str]:
        """Keys or values, and how far they are apart: whole vectors."""
        name, columns, wide, source = {
            "k": ("keys", self.columns, self.wide_columns, self.reads.keys),
            "v": ("values", self.values, self.wide_values, self.reads.values),
        }[letter]
        place = self.at.get(name, "")
        found = self.operand(letter, key, count, place, columns, wide)
        if not source:
            self._pad(place, count, columns, wide)
        return found

    def _add_keys(self, key: str, count: str, own: dict[str, str]) -> None:
        """A block of keys."""
        f, kind, at, wide = self.f, self.tile.kind, self.at, self.wide_columns
        keys, step = self._padded("k", key, count)
        for rows, row in self._rows():
            line, out = f.at(at["lines"], f.multiply(row, wide), kind), self._scores(row)
            what = f"ptr {line}, i64 {wide}, ptr {keys}, i64 {step}, i64 {count}, i64 {wide}, ptr {out}"
            f.do(f"call void @dots{rows}({what})")
        if self.reads.masked:
            self.load_mask(0, self.rows, (key, count), at["mask"], KEYS)
        with f.loop(0, self.rows) as row:
            low, high = (f.load("i64", at[name], row, "i64", align=4) for name in ("lows", "highs"))
            where = f"ptr {self._scores(row)}, i64 {key}, i64 {count}, i64 {low}, i64 {high}"
            for each in (own["tops"], own["totals"], at["factors"]):
                where += f", ptr {f.at(each, row, kind)}"
            mask = f.at(at["mask"], f.multiply(row, KEYS), kind) if self.reads.masked else "null"
            f.do(f"call void @weights({where}, ptr {mask})")
        values, step = self._padded("v", key, count)
        wide = self.wide_values
        for rows, row in self._rows():
            out, factors = f.at(own["sums"], f.multiply(row, wide), kind), f.at(at["factors"], row, kind)
            what = f"ptr {self._scores(row)}, i64 {wide}, ptr {values}, i64 {step}, i64 {count}, i64 {wide}"
            f.do(f"call void @mix{rows}({what}, ptr {out}, ptr {factors})")

    def _scores(self, row: str) -> str:
        return self.f.at(self.at["scores"], self.f.multiply(row, KEYS), self.tile.kind)

    def _rows(self) -> Iterator[tuple[int, str]]:
        """Rows, as many at a time as there are functions for: the body is written for each number of them."""
        f, start = self.f, "0"
        for count in _counts(self.tile):
            stop = f(f"and i64 {self.rows}, {-count}")
            with f.loop(start, stop, count) as row:
                yield count, row
            start = stop

    def _end(self, states: dict[str, str], size: str) -> None:
        f, result = self.f, self.at["result"]
        where = ", ".join(f"ptr {states[each]}" for each in ("sums", "tops", "totals"))
        what = f"i64 {self.rows}, i64 {self.wide_values}, ptr {result}"
        f.do(f"call void @add_up({where}, i64 {size}, i64 {self.size[At.PARTS]}, {what})")
        self.finish(0, self.rows, result)
