"""Attention of many rows: blocks of rows over blocks of keys, with scores transposed, in LLVM's text.

In: a `Tile` and what is read where it lies. Out: the text of `kernel`, with the holes of `attention.py`.
Lanes are rows: a panel of queries, column by column, is multiplied with keys into scores, key by key; their
maxima and exponentials are those of whole vectors; values times these give the result, column by column.
Keys that no row of a panel sees are not looked at. The invariant: a row's keys go by the same blocks wherever
it lies.
"""

from __future__ import annotations

from collections.abc import Callable

from ..text import Function
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
    square_text,
    transpose,
)
from .exponentials import INTEGER, exponentials, lowest
from .operands import MOST_SLOTS, Tile

__all__ = ["blocks_of_rows", "blocks_text"]

KEYS = 96  # of a block: a multiple of the rows of all tiles
_MOST_ROWS = 64  # of a block, about
_MOST_PANELS = 16
_UNITS = 4  # for each thread, if blocks do not get too small


def blocks_of_rows(
    tile: Tile,
    reads: Reads,
    shape: Shape,
    threads: int,
) -> Division:
    """How to divide attention of (batches, heads, key heads, queries, keys, columns, values)."""
    batches, heads, key_heads, queries, keys, columns, values = shape
    group = heads // key_heads
    fold = group if queries < _MOST_ROWS else 1
    rows, lines = fold * queries, batches * heads // fold
    block = max(_MOST_ROWS, tile.width)
    while block > tile.width and lines * -(-rows // block) < _UNITS * threads:
        block -= tile.width
    parts = -(-rows // block)
    block = -(-rows // (parts * tile.width)) * tile.width
    room = _regions(tile, reads).size(_sizes(tile, block, columns, values))
    room = (room * tile.size + 63) & -64
    slots = min(threads, MOST_SLOTS)
    fields = fields_of_shape(shape, fold, parts, block, room, slots)
    cost = min(block, rows) * keys * (columns + values)
    return Division(lines * parts, cost, fields, slots * room)


def _sizes(tile: Tile, rows: int, columns: int, values: int) -> dict[str, int]:
    wide_columns, wide_values = (-(-each // tile.lanes) * tile.lanes for each in (columns, values))
    return {
        "rows": rows,
        "columns": columns,
        "values": values,
        "wide_columns": wide_columns,
        "wide_values": wide_values,
        "widest": max(wide_columns, wide_values),
    }


def _regions(tile: Tile, reads: Reads) -> Regions:
    """`lines`: rows of queries, then of the result. `panels`: queries, column by column. `sums`: of values,
    column by column. `state`: of each panel the maxima, the totals, the factors of sums so far.
    """
    regions: dict[str, tuple[str | int, ...]] = {
        "lines": ("rows", "widest"),
        "panels": ("rows", "wide_columns"),
        "sums": ("rows", "wide_values"),
        "state": ("rows", 2),
        "rules": ("rows", 2),  # of each panel where the keys begin and end that a row sees
        "scores": (KEYS, tile.width),
    }
    if not reads.keys:
        regions["keys"] = (KEYS, "columns")
    if not reads.values:
        regions["values"] = (KEYS, "values")
    if reads.masked:
        regions |= {"mask": (KEYS, tile.width), "turned": (KEYS, tile.width)}
    return Regions(regions)


def blocks_text(tile: Tile, reads: Reads) -> str:
    """`kernel`."""
    tiles = [_tile_text(tile, name, height) for name in ("score", "mix") for height in _heights(tile)]
    unit = _Unit(tile, reads).text()
    return "\n".join([*tiles, _weights_text(tile, reads.masked), square_text(tile), unit, kernel_text(tile)])


def _heights(tile: Tile) -> tuple[int, ...]:
    """The rows of tiles: others would take longer to compile than they save."""
    return tile.height, 4, 1


def _tile_text(tile: Tile, name: str, height: int) -> str:
    """`score`: some rows of keys, `step` apart, times a panel of queries. `mix`: some columns of values, of
    which rows are `step` apart, times a panel of weights, added to the sums.
    """
    places = [("ptr", "a"), ("i64", "step"), ("ptr", "b"), ("i64", "count"), ("ptr", "c")]
    f = Function(f"{name}{height}", places)
    vector, kind, columns = tile.vector, tile.kind, range(0, tile.width, tile.lanes)
    sums = {(row, at): f.variable(vector, "zeroinitializer") for row in range(height) for at in columns}
    starts = ["%a"] * height
    if name == "score":
        starts = [f.at("%a", f.multiply("%step", row), kind) for row in range(height)]
    with f.loop(0, "%count") as k:  # unrolled, LLVM would load too much ahead for the registers there are
        b = f.at("%b", f.multiply(k, tile.width), kind)
        right = {at: f.load(vector, b, at, kind, align=tile.size) for at in columns}
        line = f.multiply(k, "%step") if name == "mix" else k
        for row in range(height):
            here = f.at(starts[row], line, kind)
            one = f.load(kind, here, row if name == "mix" else 0, kind, align=tile.size)
            left = f.spread(kind, one, tile.lanes)
            for at in columns:
                total = sums[row, at]
                f.store(vector, tile.add_product(f, left, right[at], f.load(vector, total)), total)
    for (row, at), total in sums.items():
        out, value = row * tile.width + at, f.load(vector, total)
        if name == "mix":
            value = tile.add(f, f.load(vector, "%c", out, kind, align=tile.size), value)
        f.store(vector, value, "%c", out, kind)
    return f.text()


def _weights_text(tile: Tile, masked: bool) -> str:
    """`weights`: scores of a panel become exponentials, relative to the largest score so far; totals, and the
    sums of values so far, become relative to that too.
    """
    places = [("ptr", "scores"), ("i64", "count"), ("ptr", "state"), ("ptr", "rules"), ("i64", "key")]
    f = Function("weights", [*places, ("i1", "hides"), ("ptr", "sums"), ("i64", "values"), ("ptr", "mask")])
    vector, kind, columns = tile.vector, tile.kind, range(0, tile.width, tile.lanes)
    integer = INTEGER[kind]
    before = {at: f.load(vector, "%state", at, kind, align=tile.size) for at in columns}
    largest = {at: f.variable(vector, before[at]) for at in columns}

    def look(hides: bool) -> None:
        rules = {}
        for at in columns if hides else ():
            type = f"<{tile.lanes} x {integer}>"
            rules[at] = [f.load(type, "%rules", at + side, kind, align=tile.size) for side in (0, tile.width)]
        with f.loop(0, "%count") as number:
            line = f.at("%scores", f.multiply(number, tile.width), kind)
            place = f.add("%key", number)
            key = place if integer == "i64" else f(f"trunc i64 {place} to i32")
            keys = f.spread(integer, key, tile.lanes) if hides else ""
            for at in columns:
                score = f.load(vector, line, at, kind, align=tile.size)
                if masked:
                    mask = f.load(
                        vector, "%mask", f.add(f.multiply(number, tile.width), at), kind, align=tile.size
                    )
                    score = f(f"fadd {vector} {score}, {mask}")
                if hides:
                    score = seen(f, tile, score, keys, *rules[at])
                if masked or hides:
                    f.store(vector, score, line, at, kind)
                f.store(vector, larger(f, vector, score, f.load(vector, largest[at])), largest[at])

    with f.when("%hides"):
        look(True)
    with f.when(f("xor i1 %hides, true")):
        look(False)
    top = {at: f.load(vector, largest[at]) for at in columns}
    totals = {at: f.variable(vector, "zeroinitializer") for at in columns}
    with f.loop(0, "%count") as number:
        line = f.at("%scores", f.multiply(number, tile.width), kind)
        for at in columns:
            score = f.load(vector, line, at, kind, align=tile.size)
            weight = exponentials(f, f(f"fsub {vector} {score}, {top[at]}"), kind, tile.lanes)
            f.store(vector, weight, line, at, kind)
            f.store(vector, f(f"fadd {vector} {f.load(vector, totals[at])}, {weight}"), totals[at])
    factors = {}
    for at in columns:
        factors[at] = exponentials(f, f(f"fsub {vector} {before[at]}, {top[at]}"), kind, tile.lanes)
        total = f.load(vector, "%state", at + tile.width, kind, align=tile.size)
        total = f.fma(total, factors[at], f.load(vector, totals[at]), vector)
        f.store(vector, total, "%state", at + tile.width, kind)
        f.store(vector, top[at], "%state", at, kind)
    with f.loop(0, "%values") as column:
        for at in columns:
            place = f.at("%sums", f.add(f.multiply(column, tile.width), at), kind)
            value = f(f"fmul {vector} {f.load(vector, place, align=tile.size)}, {factors[at]}")
            f.store(vector, value, place)
    return f.text()


class _Unit(Unit):
    """The function `unit`: some rows of a line."""

    def __init__(self, tile: Tile, reads: Reads) -> None:
        super().__init__(tile, reads)
        f = self.f
        sizes = {
            "rows": self.size[At.ROWS],
            "columns": self.columns,
            "values": self.values,
            "wide_columns": self.wide_columns,
            "wide_values": self.wide_values,
            "widest": f.most(self.wide_columns, self.wide_values),
        }
        self.at = _regions(tile, reads).places(f, tile, "%scratch", sizes)
        last = f.add(self.size[At.PARTS], -1)  # first, since it is the longest where keys are hidden
        self.first = f.multiply(f(f"sub i64 {last}, %part"), self.size[At.ROWS])
        total = f.multiply(self.size[At.FOLD], self.size[At.QUERIES])
        self.rows = f.least(self.size[At.ROWS], f(f"sub i64 {total}, {self.first}"))
        # Of each panel: where the keys end that any row sees, those begin that all do, and where they end
        self.ends = f.variable("i64", count=3 * _MOST_PANELS)
        self.low, self.high = f.variable("i64", str(1 << 62)), f.variable("i64", "0")

    def text(self) -> str:
        """The function."""
        f = self.f
        self._pack_queries()
        with f.loop(0, self.rows, self.tile.width) as row:
            self._start_panel(row)
        begin = f.multiply(f(f"sdiv i64 {f.load('i64', self.low, align=8)}, {KEYS}"), KEYS)
        with f.loop(begin, f.load("i64", self.high, align=8), KEYS) as key:
            self._add_keys(key)
        with f.loop(0, self.rows, self.tile.width) as row:
            self._end_panel(row)
        self.finish(self.first, self.rows, self.at["lines"])
        return f.text()

    def _pack_queries(self) -> None:
        """Rows of queries, as panels of columns, times the scale."""
        f, tile, wide = self.f, self.tile, self.wide_columns
        self.load_queries(self.first, self.rows, self.at["lines"])
        factor = f.spread(tile.kind, "%scale", tile.lanes)
        with f.loop(0, self.rows, tile.width) as row:
            here = f.at(self.at["lines"], f.multiply(row, wide), tile.kind)
            panel = f.at(self.at["panels"], f.multiply(row, wide), tile.kind)
            transpose(f, tile, (here, wide), (panel, tile.width), tile.width, wide)
            with f.loop(0, f.multiply(self.columns, tile.width), tile.lanes) as at:
                value = f.load(tile.vector, panel, at, tile.kind, align=tile.size)
                f.store(tile.vector, f(f"fmul {tile.vector} {value}, {factor}"), panel, at, tile.kind)

    def _start_panel(self, row: str) -> None:
        """No sums so far; which keys each row sees."""
        f, tile, width = self.f, self.tile, self.tile.width
        state, rules, sums = self._panel(row)
        for column in range(0, width, tile.lanes):
            f.store(tile.vector, f"splat ({tile.kind} {lowest(tile.kind)})", state, column, tile.kind)
            f.store(tile.vector, "zeroinitializer", state, column + width, tile.kind)
        with f.loop(0, f.multiply(self.values, width), tile.lanes) as at:
            f.store(tile.vector, "zeroinitializer", sums, at, tile.kind)
        queries = self.size[At.QUERIES]
        query = f.variable("i64", f(f"srem i64 {f.add(self.first, row)}, {queries}"))
        ends = [f.variable("i64", start) for start in ("0", "0", str(1 << 62))]
        left = f(f"sub i64 {self.rows}, {row}")
        with f.loop(0, width) as lane:
            own = f.load("i64", query, align=8)
            low, high = self.limits(own)
            with f.when(f(f"icmp slt i64 {lane}, {left}")):
                self._note(self.low, low, f.least)
                self._note(self.high, high, f.most)
                for place, value, how in zip(ends, (high, low, high), (f.most, f.most, f.least), strict=True):
                    self._note(place, value, how)
            integer = INTEGER[tile.kind]
            for side, value in ((0, low), (width, high)):
                key = value if integer == "i64" else f(f"trunc i64 {value} to i32")
                f.store(integer, key, rules, f.add(lane, side), tile.kind)
            after = f.add(own, 1)
            wraps = f(f"icmp eq i64 {after}, {queries}")
            f.store("i64", f(f"select i1 {wraps}, i64 0, i64 {after}"), query)
        for number, place in enumerate(ends):
            f.store("i64", f.load("i64", place, align=8), self._end(row, number))

    def _note(self, place: str, value: str, how: Callable[[str, str], str]) -> None:
        self.f.store("i64", how(self.f.load("i64", place, align=8), value), place)

    def _end(self, row: str, number: int) -> str:
        f = self.f
        panel = f(f"sdiv i64 {row}, {self.tile.width}")
        return f.at(self.ends, f.add(f.multiply(panel, 3), number), "i64")

    def _panel(self, row: str) -> tuple[str, str, str]:
        """Where a panel's state, rules and sums are."""
        f, kind = self.f, self.tile.kind
        state, rules = (f.at(self.at[each], f.multiply(row, 2), kind) for each in ("state", "rules"))
        return state, rules, f.at(self.at["sums"], f.multiply(row, self.wide_values), kind)

    def _add_keys(self, key: str) -> None:
        """A block of keys, for each panel."""
        f = self.f
        count = f.least(f(f"sub i64 {f.load('i64', self.high, align=8)}, {key}"), KEYS)
        keys = self.operand("k", key, count, self.at.get("keys", ""), self.columns, self.columns)
        values = self.operand("v", key, count, self.at.get("values", ""), self.values, self.values)
        with f.loop(0, self.rows, self.tile.width) as row:
            high, first, last = (f.load("i64", self._end(row, number), align=8) for number in range(3))
            own = f.least(count, f(f"sub i64 {high}, {key}"))
            with f.when(f(f"icmp sgt i64 {own}, 0")):
                early = f(f"icmp slt i64 {key}, {first}")
                late = f(f"icmp slt i64 {last}, {f.add(key, own)}")
                self._add_to_panel(row, (key, own), f(f"or i1 {early}, {late}"), keys, values)

    def _add_to_panel(
        self, row: str, span: tuple[str, str], hides: str, keys: tuple[str, str], values: tuple[str, str]
    ) -> None:
        f, tile, scores, (key, count) = self.f, self.tile, self.at["scores"], span
        panel = f.at(self.at["panels"], f.multiply(row, self.wide_columns), tile.kind)
        state, rules, sums = self._panel(row)

        def score(height: int, at: str) -> None:
            a = f.at(keys[0], f.multiply(at, keys[1]), tile.kind)
            out = f.at(scores, f.multiply(at, tile.width), tile.kind)
            what = f"ptr {a}, i64 {keys[1]}, ptr {panel}, i64 {self.columns}, ptr {out}"
            f.do(f"call void @score{height}({what})")

        def mix(height: int, at: str) -> None:
            a, out = f.at(values[0], at, tile.kind), f.at(sums, f.multiply(at, tile.width), tile.kind)
            f.do(f"call void @mix{height}(ptr {a}, i64 {values[1]}, ptr {scores}, i64 {count}, ptr {out})")

        self._by_tiles(count, score)
        mask = self._mask(row, span) if self.reads.masked else "null"
        what = f"ptr {scores}, i64 {count}, ptr {state}, ptr {rules}, i64 {key}, i1 {hides}, ptr {sums}"
        f.do(f"call void @weights({what}, i64 {self.values}, ptr {mask})")
        self._by_tiles(self.values, mix)

    def _by_tiles(self, size: str, call: Callable[[int, str], None]) -> None:
        """Calls for whole tiles, then for lower ones: nothing beyond `size` is looked at."""
        f = self.f
        start = "0"
        for height in _heights(self.tile):
            left = f(f"srem i64 {f(f'sub i64 {size}, {start}')}, {height}")
            stop = f(f"sub i64 {size}, {left}")
            with f.loop(start, stop, height) as at:
                call(height, at)
            start = stop

    def _mask(self, row: str, keys: tuple[str, str]) -> str:
        """What the mask adds to the scores of a panel, key by key."""
        f, tile = self.f, self.tile
        rows = f.least(f(f"sub i64 {self.rows}, {row}"), tile.width)
        self.load_mask(f.add(self.first, row), rows, keys, self.at["mask"], KEYS)
        transpose(f, tile, (self.at["mask"], KEYS), (self.at["turned"], tile.width), tile.width, keys[1])
        return self.at["turned"]

    def _end_panel(self, row: str) -> None:
        """Sums by their totals, as rows; 0 where no key was seen."""
        f, tile, vector = self.f, self.tile, self.tile.vector
        state, _, sums = self._panel(row)
        half = f"splat ({tile.kind} 0.5)"
        for at in range(0, tile.width, tile.lanes):
            total = f.load(vector, state, at + tile.width, tile.kind, align=tile.size)
            divisor = larger(f, vector, half, total)
            factor = f(f"fdiv {vector} splat ({tile.kind} 1.0), {divisor}")
            with f.loop(0, self.values) as column:
                place = f.at(sums, f.add(f.multiply(column, tile.width), at), tile.kind)
                value = f.load(vector, place, align=tile.size)
                f.store(vector, f(f"fmul {vector} {value}, {factor}"), place)
        wide = self.wide_values
        out = f.at(self.at["lines"], f.multiply(row, wide), tile.kind)
        transpose(f, tile, (sums, tile.width), (out, wide), wide, str(tile.width))
