"""Quantised blocks in LLVM's text: products of few rows with them, and their weights.

In: a format, as `formats.py` has it. Out: the text of functions, for programs whose fields are those of
`operands.py`: operand B is the words of (N, K) blocks. `packed_text` is `kernel` for few rows, `weights_text`
is `kernel` for rows of weights. The invariants: weights are NumPy's to the bit; how an element of a product
is summed depends on K alone, not on threads or on the rows beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...ops.blocks import FORMATS as BLOCKS
from ..jobs import kernel_function
from ..processor import Processor
from ..text import FLOATS, INTEGERS, LANES, Function
from .formats import FORMATS, NativeFormat, scales_together
from .operands import Field, scratch

__all__ = ["INDEX", "BlockWeights", "packed_text", "weights_text"]

STRETCH = 64  # runs whose scales are taken out at a time
PREFETCH = 4096  # bytes ahead, by measuring: with 512 products take a quarter longer, with none a third
INDEX = [("ptr", "fields"), ("i64", "row"), ("i64", "rows"), ("ptr", "out")]  # parameters of `fill_index`
_LINE = 64  # bytes of a line of the cache
_TOGETHER = 64  # rows of weights whose index is computed at a time
_MOST_SUMS = {16: 2, 32: 4, 64: 16}  # bytes of a register → sums that stay in registers, LANES wide
_MOST_TOGETHER = 8  # rows of x
Weights = Iterator[tuple[int, str]]
_PERMUTE = "llvm.x86.avx512.permvar.sf.512"


class BlockWeights:
    """Writes down the weights of blocks: those of a run times LANES at once."""

    def __init__(self, f: Function, name: str, processor: Processor) -> None:
        self.f = f
        self.format: NativeFormat = FORMATS[name]
        self.converts = processor.has_halves
        self.looks_up = processor.has_masks and self.format.are_codes

    def regions(self, words: str, total: str, block: str) -> list[str]:
        """The addresses of a block's parts."""
        f, found, place = self.f, [], 0
        for _, nbytes in BLOCKS[self.format.name].regions:
            start = f.at(words, f.multiply(total, place)) if place else words
            found.append(f.at(start, f.multiply(block, nbytes)))
            place += nbytes
        return found

    def of(self, regions: Sequence[str], scales: Sequence[str], offsets: Sequence[str]) -> Weights:
        """The weights, for the scale of each run and what is added to it: which LANES of them, and FLOATS."""
        f, format = self.f, self.format
        together = format.run // LANES
        pairs = list(zip(scales, offsets or [""] * len(scales), strict=True))
        if self.looks_up:
            numbers = ", ".join(f"float {each - format.zero}.0" for each in range(LANES))
            tables = [""] * format.runs
            for at, each in format.quants(f, regions):
                run = at // together
                tables[run] = tables[run] or self._scaled(f"<{numbers}>", *pairs[run])
                yield at, f(f"call {FLOATS} @{_PERMUTE}({FLOATS} {tables[run]}, {INTEGERS} {each})")
            return
        for at, each in format.quants(f, regions):
            if format.are_codes:
                each = f(f"and {INTEGERS} {each}, splat (i32 15)")
            if format.zero:
                each = f(f"sub {INTEGERS} {each}, splat (i32 {format.zero})")
            yield at, self._scaled(f(f"sitofp {INTEGERS} {each} to {FLOATS}"), *pairs[at // together])

    def _scaled(self, quants: str, scale: str, offset: str) -> str:
        f = self.f
        return f.fma(quants, scale, offset) if offset else f(f"fmul {FLOATS} {quants}, {scale}")

    def of_block(self, words: str, total: str, block: str) -> Weights:
        """The weights of a block."""
        regions = self.regions(words, total, block)
        found = self.format.scales(self.f, regions, self.converts)
        scales, offsets = ([] if each is None else self._spread(each) for each in found)
        return self.of(regions, scales, offsets)

    def _spread(self, value: str) -> list[str]:
        f, runs = self.f, self.format.runs
        if runs == 1:
            return [f.spread("float", value)]
        return [f.shuffle(f"<{runs} x float>", value, [run] * LANES) for run in range(runs)]

    def store(self, weights: Weights, out: str) -> None:
        """Write a block's weights down."""
        for at, each in weights:
            self.f.store(FLOATS, each, out, at * LANES, "float")


# Products of few rows


def packed_text(name: str, few: int, processor: Processor, *, direct: bool) -> str:
    """`kernel` for so many rows; `direct`: they lie in memory one after another, and are no hole."""
    f = kernel_function()
    n, k, strip = (f.field("i64", each) for each in (Field.N, Field.K, Field.COLUMNS))
    loaded = f.variable("i64", "0")
    with scratch(f) as sums, f.loop("%begin", "%end") as unit:
        x = f.field("ptr", Field.A)
        if not direct:
            x = f.at(sums, f.multiply(strip, few), "float")
            with f.when(f(f"icmp eq i64 {f.load('i64', loaded)}, 0")):
                f.store("i64", "1", loaded)
                f.do(f"call void @load_a(ptr %fields, i64 0, i64 0, i64 0, i64 {few}, i64 {k}, ptr {x})")
        column = f.multiply(unit, strip)
        columns = f.least(strip, f(f"sub i64 {n}, {column}"))
        f.do(f"call void @rows(ptr %fields, ptr {x}, ptr {sums}, i64 {column}, i64 {columns}, i64 {strip})")
        f.do(
            f"call void @finish(ptr %fields, i64 0, i64 0, i64 {column}, i64 {few}, i64 {columns}, "
            f"ptr {sums}, i64 {strip})"
        )
    return "\n".join([_Product(name, few, processor).text(), f.text(private=False)])


class _Product:
    """`rows`: sums of some rows of weights from `first` on with all rows of x."""

    def __init__(self, name: str, few: int, processor: Processor) -> None:
        places = [(kind, each) for kind, each in zip(["ptr"] * 3, ("fields", "x", "sums"), strict=True)]
        self.f = f = Function("rows", [*places, ("i64", "first"), ("i64", "count"), ("i64", "strip")])
        self.weights = BlockWeights(f, name, processor)
        self.format = self.weights.format
        self.most_sums = (
            _MOST_SUMS[processor.register_bytes]
            * processor.registers
            // (32 if processor.register_bytes == 64 else 16)
        )
        most = min(self.most_sums, _MOST_TOGETHER)
        self.few, self.x_rows = few, -(-few // -(-few // most))
        self.words, self.k = f.field("ptr", Field.B), f.field("i64", Field.K)
        self.blocks = f(f"sdiv i64 {self.k}, {self.format.weights}")
        self.total = f.multiply(self.blocks, f.field("i64", Field.N))

    def text(self) -> str:
        """The function: several rows of weights at a time, then the rest one by one."""
        f, count = self.f, self._rows_together()
        whole = f(f"sub i64 %count, {f(f'srem i64 %count, {count}')}")
        with f.loop(0, whole, count) as row:
            self._rows_from(row, count)
        if count > 1:
            with f.loop(whole, "%count") as row:
                self._rows_from(row, 1)
        return f.text()

    def _rows_together(self) -> int:
        """Rows of weights at a time: so that enough sums go on beside each other, in registers."""
        if self.x_rows == 1:  # where little is computed, one stream is read the quickest, by measuring
            return 1 if self.format.has_bytes else 2 if self.format.runs == 1 else 4
        most = 4 if self.format.runs == 1 else 2  # the text of large blocks is long
        return min(most, max(1, self.most_sums // self.x_rows))

    def _rows_from(self, row: str, count: int) -> None:
        """The sums of `count` rows of weights with all rows of x, while the weights are in the cache."""
        for first in range(0, self.few, self.x_rows):
            # rows that are computed twice come out the same
            self._some_rows_from(row, count, min(first, self.few - self.x_rows))

    def _some_rows_from(self, row: str, count: int, x_row: int) -> None:
        f, format = self.f, self.format
        x = [f.at("%x", f.multiply(self.k, x_row + at), "float") for at in range(self.x_rows)]
        sums = [[f.variable(FLOATS, "zeroinitializer") for _ in x] for _ in range(count)]
        scales = [f.variable("float", count=STRETCH) for _ in range(count)]
        offsets = [f.variable("float", count=STRETCH) for _ in range(count if format.has_offset else 0)]
        starts = [f.multiply(f.add(f.add("%first", row), at), self.blocks) for at in range(count)]
        with f.loop(0, self.blocks, STRETCH // format.runs) as first:
            number = f.least(f(f"sub i64 {self.blocks}, {first}"), STRETCH // format.runs)
            for at in range(count):
                self._take_scales(f.add(starts[at], first), number, scales[at], offsets[at : at + 1])
            with f.loop(0, number) as block:
                self._fetch_ahead([f.add(each, first) for each in starts], block)
                for at in range(count):
                    place = f.add(first, block)
                    own = scales[at], offsets[at] if offsets else ""
                    self._add_block(f.add(starts[at], place), place, block, own, x, sums[at])
        for at in range(count):
            for x_at, each in enumerate(sums[at]):
                place = f.add(f.multiply("%strip", x_row + x_at), f.add(row, at))
                total = f.folded(
                    "float", LANES, f.load(FLOATS, each), lambda n, a, b: f(f"fadd <{n} x float> {a}, {b}")
                )
                f.store("float", total, "%sums", place, "float")

    def _take_scales(self, start: str, number: str, scales: str, offsets: list[str]) -> None:
        """The scales of `number` blocks into their places."""
        f, format, weights = self.f, self.format, self.weights
        whole = "0"
        if format.runs == 1:  # LANES blocks at a time; the last of them may be some that were there before
            last = f(f"sub i64 {number}, {LANES}")
            some = f(f"icmp sge i64 {last}, 0")
            whole = f(f"select i1 {some}, i64 {number}, i64 0")
            with f.loop(0, whole, LANES) as at:
                block = f.least(at, last)
                regions = weights.regions(self.words, self.total, f.add(start, block))
                found = scales_together(f, format, regions, weights.converts)
                self._keep(FLOATS, found, block, scales, offsets)
        kind = "float" if format.runs == 1 else f"<{format.runs} x float>"
        with f.loop(whole, number) as block:
            regions = weights.regions(self.words, self.total, f.add(start, block))
            self._keep(kind, format.scales(f, regions, weights.converts), block, scales, offsets)

    def _keep(
        self, kind: str, found: tuple[str, str | None], block: str, scales: str, offsets: list[str]
    ) -> None:
        place = self.f.multiply(block, self.format.runs)
        self.f.store(kind, found[0], scales, place, "float")
        if found[1] is not None:
            self.f.store(kind, found[1], offsets[0], place, "float")

    def _fetch_ahead(self, starts: list[str], block: str) -> None:
        """What each row has in its first region: a line of the cache, once for all small blocks in it."""
        f, (_, nbytes) = self.f, BLOCKS[self.format.name].regions[0]
        each = max(1, _LINE // nbytes)  # blocks
        with f.when(f(f"icmp eq i64 {f(f'srem i64 {block}, {each}')}, 0")):
            for start in starts:
                place = f.at(self.words, f.multiply(f.add(start, block), nbytes))
                f.prefetch(f.at(place, PREFETCH))

    def _add_block(
        self, at: str, place: str, block: str, own: tuple[str, str], x: list[str], sums: list[str]
    ) -> None:
        """Add the products of a block that is the one `place` in its row, and `block` in its stretch."""
        f, format = self.f, self.format
        regions = self.weights.regions(self.words, self.total, at)
        first = f.multiply(block, format.runs)
        scales, offsets = (
            [
                f.spread("float", f.load("float", each, f.add(first, run), "float", align=4))
                for run in range(format.runs if each else 0)
            ]
            for each in own
        )
        column = f.multiply(place, format.weights)
        lines = [f.at(each, column, "float") for each in x]
        products = [""] * len(x)  # of every other weight: added to the next one's, before sums are waited for
        for at_weight, (number, weight) in enumerate(self.weights.of(regions, scales, offsets)):
            for at_x, (line, total) in enumerate(zip(lines, sums, strict=True)):
                value = f.load(FLOATS, line, number * LANES, "float", align=4)
                if not format.is_simple:
                    f.store(FLOATS, f.fma(weight, value, f.load(FLOATS, total)), total)
                elif at_weight % 2 == 0:
                    products[at_x] = f(f"fmul {FLOATS} {weight}, {value}")
                else:
                    both = f.fma(weight, value, products[at_x])
                    f.store(FLOATS, f(f"fadd {FLOATS} {f.load(FLOATS, total)}, {both}"), total)


# Weights


def weights_text(name: str, processor: Processor, *, indexed: bool) -> str:
    """`kernel` whose units are rows of weights, K each; `indexed`: of the N rows there are, those that
    `fill_index` names.
    """
    f = kernel_function()
    weights = BlockWeights(f, name, processor)
    size = weights.format.weights
    words, out = f.field("ptr", Field.B), f.field("ptr", Field.C)
    n, k = f.field("i64", Field.N), f.field("i64", Field.K)
    blocks = f(f"sdiv i64 {k}, {size}")
    total = f.multiply(blocks, n)
    index = f.variable("i32", count=_TOGETHER if indexed else 1)
    with f.loop("%begin", "%end", _TOGETHER) as first:
        count = f.least(f(f"sub i64 %end, {first}"), _TOGETHER)
        if indexed:
            f.do(f"call void @fill_index(ptr %fields, i64 {first}, i64 {count}, ptr {index})")
        with f.loop(0, count) as at:
            row = f.add(first, at)
            line = f.at(out, f.multiply(row, k), "float")
            source = f(f"zext i32 {f.load('i32', index, at, 'i32', align=4)} to i64") if indexed else row
            start = f.multiply(source, blocks)
            with f.loop(0, blocks) as block:
                found = weights.of_block(words, total, f.add(start, block))
                weights.store(found, f.at(line, f.multiply(block, size), "float"))
    return f.text(private=False)
