"""Attention of many rows: blocks of rows over blocks of keys, with scores transposed, in LLVM's text.

In: a `Tile` and what is read where it lies. Out: the text of `kernel`, with the holes of `attention.py`. Lanes
are rows: a panel of queries, column by column, is multiplied with keys into scores, key by key; their maxima
and exponentials are those of whole vectors; values times these give the result, column by column. Keys that
no row of a panel sees are not looked at. The invariant: a row's keys go by the same blocks wherever it lies.
"""

from __future__ import annotations

from collections.abc import Callable

from .attention import (
    At,
    Division,
    Reads,
    Regions,
    exponentials,
    heads_of,
    kernel_text,
    larger,
    lowest,
    most,
    seen,
    square_text,
    transpose,
    unit_parameters,
)
from .operands import MOST_SLOTS, Field, Tile, least
from .text import Function

__all__ = ["blocks_of_rows", "blocks_text"]

KEYS = 96  # of a block: a multiple of the rows of all tiles
_MOST_ROWS = 64  # of a block, about
_MOST_PANELS = 16
_UNITS = 4  # for each thread, if blocks do not get too small
_UNROLL = 4
_INTEGER = {"float": "i32", "double": "i64"}


def blocks_of_rows(
    tile: Tile,
    reads: Reads,
    shape: tuple[int, int, int, int, int, int, int],
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
    fields: dict[int, int] = {
        Field.ROOM: room,
        Field.SLOTS: slots,
        At.QUERIES: queries,
        At.KEYS: keys,
        At.COLUMNS: columns,
        At.VALUES: values,
        At.HEADS: heads,
        At.GROUP: group,
        At.FOLD: fold,
        At.PARTS: parts,
        At.ROWS: block,
    }
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
    tiles = [
        _tile_text(tile, name, height) for name in ("score", "mix") for height in tile.heights
    ]
    unit = _Unit(tile, reads).text()
    return "\n".join([*tiles, _weights_text(tile, reads.masked), square_text(tile), unit, kernel_text(tile)])


def _tile_text(tile: Tile, name: str, height: int) -> str:
    """`score`: some rows of keys, `step` apart, times a panel of queries. `mix`: some columns of values, whose
    rows are `step` apart, times a panel of weights, added to the sums.
    """
    places = [("ptr", "a"), ("i64", "step"), ("ptr", "b"), ("i64", "count"), ("ptr", "c")]
    f = Function(f"{name}{height}", places)
    vector, kind, columns = tile.vector, tile.kind, range(0, tile.width, tile.lanes)
    sums = {(row, at): f.variable(vector, "zeroinitializer") for row in range(height) for at in columns}
    starts = ["%a"] * height
    if name == "score":
        starts = [f.at("%a", f.multiply("%step", row), kind) for row in range(height)]
    unroll = _UNROLL if height == tile.height else 1
    whole = f(f"and i64 %count, {-unroll}")
    for start, stop, steps in (("0", whole, unroll), (whole, "%count", 1))[:unroll]:
        with f.loop(start, stop, steps) as k:
            for step in range(steps):
                place = f.add(k, step)
                b = f.at("%b", f.multiply(place, tile.width), kind)
                right = {at: f.load(vector, b, at, kind, align=tile.size) for at in columns}
                line = f.multiply(place, "%step") if name == "mix" else place
                for row in range(height):
                    here = f.at(starts[row], line, kind)
                    one = f.load(kind, here, row if name == "mix" else 0, kind, align=tile.size)
                    left = f.splat(kind, one, tile.lanes)
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
    f = Function(
        "weights", [*places, ("i1", "hides"), ("ptr", "sums"), ("i64", "values"), ("ptr", "mask")]
    )
    vector, kind, columns = tile.vector, tile.kind, range(0, tile.width, tile.lanes)
    integer = _INTEGER[kind]
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
            keys = f.splat(integer, key, tile.lanes) if hides else ""
            for at in columns:
                score = f.load(vector, line, at, kind, align=tile.size)
                if masked:
                    mask = f.load(vector, "%mask", f.add(f.multiply(number, tile.width), at), kind, align=tile.size)
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


class _Unit:
    """The function `unit`: some rows of a line."""

    def __init__(self, tile: Tile, reads: Reads) -> None:
        self.tile, self.reads = tile, reads
        self.f = f = Function("unit", unit_parameters(tile))
        self.size = {each: f.field("i64", each) for each in At if each < At.Q}
        columns, values = self.size[At.COLUMNS], self.size[At.VALUES]
        wide = [f(f"and i64 {f.add(each, tile.lanes - 1)}, {-tile.lanes}") for each in (columns, values)]
        sizes = {
            "rows": self.size[At.ROWS],
            "columns": columns,
            "values": values,
            "wide_columns": wide[0],
            "wide_values": wide[1],
            "widest": most(f, *wide),
        }
        self.columns, self.values, self.wide_columns, self.wide_values = columns, values, *wide
        self.at = _regions(tile, reads).places(f, tile, "%scratch", sizes)
        last = f.add(self.size[At.PARTS], -1)  # first, since it is the longest where keys are hidden
        self.first = f.multiply(f(f"sub i64 {last}, %part"), self.size[At.ROWS])
        total = f.multiply(self.size[At.FOLD], self.size[At.QUERIES])
        self.rows = least(f, self.size[At.ROWS], f(f"sub i64 {total}, {self.first}"))
        self.head = f(f"sdiv i64 %head, {self.size[At.GROUP]}")  # of keys
        # Of each panel: where the keys end that any row sees, those begin that all do, and where they end
        self.limits = f.variable("i64", count=3 * _MOST_PANELS)
        self.low = f.variable("i64", str(1 << 62))
        self.high = f.variable("i64", "0")

    def text(self) -> str:
        """The function."""
        f = self.f
        self._load_queries()
        with f.loop(0, self.rows, self.tile.width) as row:
            self._start_panel(row)
        begin = self._multiple(f.load("i64", self.low, align=8))
        with f.loop(begin, f.load("i64", self.high, align=8), KEYS) as key:
            self._add_keys(key)
        with f.loop(0, self.rows, self.tile.width) as row:
            self._end_panel(row)
        with heads_of(f, self.first, self.rows, self.size[At.QUERIES]) as (head, query, count, row):
            tile = f.at(self.at["lines"], f.multiply(row, self.wide_values), self.tile.kind)
            where = f"i64 %batch, i64 {f.add('%head', head)}, i64 {query}, i64 {count}"
            f.do(f"call void @finish(ptr %fields, {where}, ptr {tile}, i64 {self.wide_values})")
        return f.text()

    def _multiple(self, key: str) -> str:
        """Where the block of a key begins."""
        return self.f.multiply(self.f(f"sdiv i64 {key}, {KEYS}"), KEYS)

    def _load_queries(self) -> None:
        """Rows of queries, as panels of columns, times the scale."""
        f, tile, wide = self.f, self.tile, self.wide_columns
        with heads_of(f, self.first, self.rows, self.size[At.QUERIES]) as (head, query, count, row):
            where = f"i64 %batch, i64 {f.add('%head', head)}, i64 {query}, i64 0, i64 {count}"
            out = f.at(self.at["lines"], f.multiply(row, wide), tile.kind)
            f.do(f"call void @load_q(ptr %fields, {where}, i64 {self.columns}, ptr {out}, i64 {wide})")
        factor = f.splat(tile.kind, "%scale", tile.lanes)
        with f.loop(0, self.rows, tile.width) as row:
            here = f.at(self.at["lines"], f.multiply(row, wide), tile.kind)
            panel = f.at(self.at["panels"], f.multiply(row, wide), tile.kind)
            transpose(f, tile, here, wide, panel, tile.width, tile.width, wide)
            with f.loop(0, f.multiply(self.columns, tile.width), tile.lanes) as at:
                value = f.load(tile.vector, panel, at, tile.kind, align=tile.size)
                f.store(tile.vector, f(f"fmul {tile.vector} {value}, {factor}"), panel, at, tile.kind)

    def _start_panel(self, row: str) -> None:
        """No sums so far; which keys each row sees."""
        f, tile, width = self.f, self.tile, self.tile.width
        state, rules, sums = self._panel(row)
        for at in range(0, width, tile.lanes):
            f.store(tile.vector, f"splat ({tile.kind} {lowest(tile.kind)})", state, at, tile.kind)
            f.store(tile.vector, "zeroinitializer", state, at + width, tile.kind)
        with f.loop(0, f.multiply(self.values, width), tile.lanes) as at:
            f.store(tile.vector, "zeroinitializer", sums, at, tile.kind)
        integer, queries = _INTEGER[tile.kind], self.size[At.QUERIES]
        query = f.variable("i64", f(f"srem i64 {f.add(self.first, row)}, {queries}"))
        ends = [f.variable("i64", start) for start in ("0", "0", str(1 << 62))]
        left = f(f"sub i64 {self.rows}, {row}")
        with f.loop(0, width) as lane:
            at = f.load("i64", query, align=8)
            end = f.add(at, "%shift")
            start = f(f"sub i64 {end}, {self.size[At.WINDOW]}")
            low, high = (least(f, most(f, each, 0), "%count") for each in (start, end))
            with f.when(f(f"icmp slt i64 {lane}, {left}")):
                self._note(self.low, low, "smin")
                self._note(self.high, high, "smax")
                for place, value, how in zip(ends, (high, low, high), ("smax", "smax", "smin"), strict=True):
                    self._note(place, value, how)
            for side, value in ((0, low), (width, high)):
                number = value if integer == "i64" else f(f"trunc i64 {value} to i32")
                f.store(integer, number, rules, f.add(lane, side), tile.kind)
            after = f.add(at, 1)
            wraps = f(f"icmp eq i64 {after}, {queries}")
            f.store("i64", f(f"select i1 {wraps}, i64 0, i64 {after}"), query)
        for number, place in enumerate(ends):
            f.store("i64", f.load("i64", place, align=8), self._limit(row, number))

    def _note(self, place: str, value: str, how: str) -> None:
        f = self.f
        f.store("i64", f(f"call i64 @llvm.{how}.i64(i64 {f.load('i64', place, align=8)}, i64 {value})"), place)

    def _limit(self, row: str, number: int) -> str:
        f = self.f
        panel = f(f"sdiv i64 {row}, {self.tile.width}")
        return f.at(self.limits, f.add(f.multiply(panel, 3), number), "i64")

    def _panel(self, row: str) -> tuple[str, str, str]:
        """Where a panel's state, rules and sums are."""
        f, kind = self.f, self.tile.kind
        state, rules = (f.at(self.at[each], f.multiply(row, 2), kind) for each in ("state", "rules"))
        return state, rules, f.at(self.at["sums"], f.multiply(row, self.wide_values), kind)

    def _add_keys(self, key: str) -> None:
        """A block of keys, for each panel."""
        f, tile = self.f, self.tile
        count = least(f, f(f"sub i64 {f.load('i64', self.high, align=8)}, {key}"), KEYS)
        keys, key_step = self._operand("k", At.K, key, count, self.columns, self.reads.keys)
        values, value_step = self._operand("v", At.V, key, count, self.values, self.reads.values)
        with f.loop(0, self.rows, tile.width) as row:
            high, first, last = (f.load("i64", self._limit(row, number), align=8) for number in range(3))
            own = least(f, count, f(f"sub i64 {high}, {key}"))
            with f.when(f(f"icmp sgt i64 {own}, 0")):
                early, late = (
                    f(f"icmp slt i64 {a}, {b}") for a, b in ((key, first), (last, f.add(key, own)))
                )
                hides = f(f"or i1 {early}, {late}")
                self._add_to_panel(row, key, own, hides, (keys, key_step), (values, value_step))

    def _operand(
        self, letter: str, base: int, key: str, count: str, columns: str, source: str
    ) -> tuple[str, str]:
        """The address of the rows of some keys, or of their values, and how far these are apart."""
        f, tile = self.f, self.tile
        if not source:
            name = {"k": "keys", "v": "values"}[letter]
            where = f"i64 %batch, i64 {self.head}, i64 {key}, i64 0, i64 {count}, i64 {columns}"
            f.do(f"call void @load_{letter}(ptr %fields, {where}, ptr {self.at[name]}, i64 {columns})")
            return self.at[name], columns
        start, step = f.field("ptr", base), f.field("i64", base + 3)
        for at, place in ((1, "%batch"), (2, self.head), (3, key)):
            start = f.at(start, f.multiply(place, f.field("i64", base + at)), tile.kind)
        return start, step

    def _add_to_panel(
        self, row: str, key: str, count: str, hides: str, keys: tuple[str, str], values: tuple[str, str]
    ) -> None:
        f, tile, scores = self.f, self.tile, self.at["scores"]
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
        mask = self._mask(row, key, count) if self.reads.masked else "null"
        what = f"ptr {scores}, i64 {count}, ptr {state}, ptr {rules}, i64 {key}, i1 {hides}, ptr {sums}"
        f.do(f"call void @weights({what}, i64 {self.values}, ptr {mask})")
        self._by_tiles(self.values, mix)

    def _by_tiles(self, size: str, call: Callable[[int, str], None]) -> None:
        """Calls for whole tiles, then for lower ones: nothing beyond `size` is looked at."""
        f, (tallest, *others) = self.f, self.tile.heights
        whole = f(f"sub i64 {size}, {f(f'srem i64 {size}, {tallest}')}")
        with f.loop(0, whole, tallest) as at:
            call(tallest, at)
        place = f.variable("i64", whole)
        for height in others:
            at = f.load("i64", place, align=8)
            with f.when(f(f"icmp sle i64 {f.add(at, height)}, {size}")):
                call(height, at)
                f.store("i64", f.add(at, height), place)

    def _mask(self, row: str, key: str, count: str) -> str:
        """What the mask adds to the scores of a panel, key by key."""
        f, tile, first = self.f, self.tile, self.f.add(self.first, row)
        rows = least(f, f(f"sub i64 {self.rows}, {row}"), tile.width)
        with heads_of(f, first, rows, self.size[At.QUERIES]) as (head, query, queries, at):
            out = f.at(self.at["mask"], f.multiply(at, KEYS), tile.kind)
            where = f"i64 %batch, i64 {f.add('%head', head)}, i64 {query}, i64 {key}, i64 {queries}"
            f.do(f"call void @load_m(ptr %fields, {where}, i64 {count}, ptr {out}, i64 {KEYS})")
        transpose(f, tile, self.at["mask"], KEYS, self.at["turned"], tile.width, tile.width, count)
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
        out = f.at(self.at["lines"], f.multiply(row, self.wide_values), tile.kind)
        transpose(f, tile, sums, tile.width, out, self.wide_values, self.wide_values, str(tile.width))
