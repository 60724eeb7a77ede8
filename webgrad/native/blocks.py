"""Products with quantised blocks, and their weights, as functions in LLVM's text.

In: a format. Out: the text of a module. A product of few rows takes the scales of a stretch of a row out of
their regions first, then goes through the quants: per run scale * sum(quant * x), and offset * sum(x) with
sums of x that are made once for all rows. For more rows it unpacks a stretch of weights, for all of them. The
invariant: how a row is summed depends on its length, and on which of the two it is, not on the rows beside
it, so that neither threads nor batches change a bit.
"""

from __future__ import annotations

from ..ops.blocks import FORMATS as BLOCKS
from .dense import tiles
from .formats import FORMATS, NativeFormat, Scales, scales_together
from .jobs import FIRST_FIELD, share_text
from .text import FLOATS, LANES, Function

__all__ = ["FEW", "MOST_ROWS", "TOGETHER", "decode_module", "padded_runs", "product_module"]

STRETCH = 64  # runs whose scales are taken out at a time
PREFETCH = 4096  # bytes ahead, by measuring: with 512 products take a quarter longer
ZERO = "zeroinitializer"
# Where a product finds its arguments, after those of every job; a row of weights has so many blocks, and
# the rows of `out` are STEP floats apart. BAD is set to 1 where a result is not finite.
WORDS, TOTAL, BLOCKS_OF_ROW, X, X_ROWS, SUMS, OUT, STEP, ROWS, BAD = range(FIRST_FIELD, FIRST_FIELD + 10)
FEW = 8  # rows of x that are multiplied with quants; with more of them weights are unpacked first
TOGETHER = 4  # rows of x that are multiplied with quants at a time
MOST_ROWS = 32  # of x: from there on BLAS, which takes its time to begin, is quicker
TILE = 2, 3  # rows of weights and of x whose sums stay in registers
UNPACKED = (
    1024  # weights of a row that are unpacked at a time: with as much of three rows of x in a small cache
)
# Where the unpacking of COUNT blocks from START on does
START, COUNT, WEIGHTS = BLOCKS_OF_ROW, X, X_ROWS


def _rows_together(format: NativeFormat, x_rows: int) -> int:
    """Rows of weights at a time: so that enough sums go on beside each other, in registers."""
    return {0: TILE[0], 1: 4 if format.runs == 1 else 2, 2: 2, 3: 2, 4: 1}[x_rows]


def padded_runs(name: str, columns: int) -> int:
    """How many sums of x a row takes."""
    return -(-columns // FORMATS[name].run // LANES) * LANES


def _regions(f: Function, format: NativeFormat, words: str, total: str, block: str) -> list[str]:
    """The addresses of a block's parts."""
    found, place = [], 0
    for _, nbytes in BLOCKS[format.name].regions:
        start = f.at(words, f.multiply(total, place)) if place else words
        found.append(f.at(start, f.multiply(block, nbytes)))
        place += nbytes
    return found


def _real(f: Function, quants: str) -> str:
    return f(f"sitofp <{LANES} x i32> {quants} to {FLOATS}")


# Products


class _Product:
    """The body of a product, for so many rows of weights and of x at a time."""

    def __init__(self, f: Function, format: NativeFormat, x_rows: int) -> None:
        self.f, self.format, self.x_rows = f, format, x_rows
        self.words, self.x, self.sums, self.out = (f.field("ptr", each) for each in (WORDS, X, SUMS, OUT))
        self.given = f.field("i64", X_ROWS)
        self.total, self.blocks, self.step, self.rows = (
            f.field("i64", each) for each in (TOTAL, BLOCKS_OF_ROW, STEP, ROWS)
        )
        self.columns = f.multiply(self.blocks, format.weights)
        runs = f.multiply(self.blocks, format.runs)
        self.padded = f(f"and i64 {f.add(runs, LANES - 1)}, {-LANES}")
        self.bad = f.variable("float", "0.0")

    def rows_from(self, row: str, count: int) -> None:
        """The products of `count` rows of weights with all rows of x, while the weights are in the cache."""
        f, x, sums, out = self.f, self.x, self.sums, self.out
        last = f(f"sub i64 {self.given}, {self.x_rows}")
        with f.loop(0, self.given, self.x_rows) as at:
            # rows that are computed twice come out the same
            first = f(f"call i64 @llvm.smin.i64(i64 {at}, i64 {last})")
            self.x = f.at(x, f.multiply(self.columns, first), "float")
            self.sums = f.at(sums, f.multiply(self.padded, first), "float")
            self.out = f.at(out, f.multiply(self.step, first), "float")
            self._some_rows_from(row, count)
        self.x, self.sums, self.out = x, sums, out

    def _some_rows_from(self, row: str, count: int) -> None:
        f, format = self.f, self.format
        accumulators = [[f.variable(FLOATS, ZERO) for _ in range(self.x_rows)] for _ in range(count)]
        scales = [f.variable("float", count=STRETCH) for _ in range(count)]
        offsets = [f.variable("float", count=STRETCH) for _ in range(count if format.has_offset else 0)]
        for each in offsets:
            for at in range(0, STRETCH, LANES):  # what the sums' padding is multiplied with
                f.store(FLOATS, ZERO, each, at, "float")
        starts = [f.multiply(f.add(row, at), self.blocks) for at in range(count)]
        with f.loop(0, self.blocks, STRETCH // format.runs) as first:
            rest = f(f"sub i64 {self.blocks}, {first}")
            number = f(f"call i64 @llvm.smin.i64(i64 {rest}, i64 {STRETCH // format.runs})")
            for at in range(count):
                self._take_scales(f.add(starts[at], first), number, scales[at], offsets[at : at + 1])
            if offsets:
                self._add_offsets(first, number, offsets, accumulators)
            with f.loop(0, number) as block:
                for at in range(count):
                    self._add_block(f.add(starts[at], first), first, block, scales[at], accumulators[at])
        for at in range(count):
            for x_row in range(self.x_rows):
                self._store(f.add(row, at), x_row, accumulators[at][x_row])

    def _take_scales(self, start: str, number: str, scales: str, offsets: list[str]) -> None:
        """The scales of `number` blocks into their places."""
        f, format = self.f, self.format
        whole = "0"
        if format.runs == 1:  # LANES blocks at a time; the last of them may be some that were there before
            last = f(f"sub i64 {number}, {LANES}")
            some = f(f"icmp sge i64 {last}, 0")
            whole = f(f"select i1 {some}, i64 {number}, i64 0")
            with f.loop(0, whole, LANES) as at:
                block = f(f"call i64 @llvm.smin.i64(i64 {at}, i64 {last})")
                regions = _regions(f, format, self.words, self.total, f.add(start, block))
                self._keep(FLOATS, scales_together(f, format, regions), block, scales, offsets)
        kind = "float" if format.runs == 1 else f"<{format.runs} x float>"
        with f.loop(whole, number) as block:
            regions = _regions(f, format, self.words, self.total, f.add(start, block))
            self._keep(kind, format.scales(f, regions), block, scales, offsets)

    def _keep(self, kind: str, found: Scales, block: str, scales: str, offsets: list[str]) -> None:
        place = self.f.multiply(block, self.format.runs)
        self.f.store(kind, found[0], scales, place, "float")
        if found[1] is not None:
            self.f.store(kind, found[1], offsets[0], place, "float")

    def _add_offsets(
        self, first: str, number: str, offsets: list[str], accumulators: list[list[str]]
    ) -> None:
        f = self.f
        start = f.multiply(first, self.format.runs)
        with f.loop(0, f.multiply(number, self.format.runs), LANES) as at:
            place = f.add(start, at)
            for x_row in range(self.x_rows):
                row = f.add(place, f.multiply(self.padded, x_row)) if x_row else place
                sums = f.load(FLOATS, self.sums, row, "float", align=4)
                for offset, own in zip(offsets, accumulators, strict=True):
                    added = f.load(FLOATS, offset, at, "float", align=4)
                    self._accumulate(own[x_row], added, sums)

    def _add_block(self, start: str, first: str, block: str, scales: str, own: list[str]) -> None:
        f, format = self.f, self.format
        regions = _regions(f, format, self.words, self.total, f.add(start, block))
        quants = format.quants(f, regions)
        self._prefetch(regions)
        column = f.multiply(f.add(first, block), format.weights)
        x = [
            f.at(self.x, f.add(column, f.multiply(self.columns, each)) if each else column, "float")
            for each in range(self.x_rows)
        ]
        together = format.run // LANES
        for run in range(format.runs):
            place = f.add(f.multiply(block, format.runs), run)
            scale = f.splat("float", f.load("float", scales, place, "float", align=4))
            reals = [_real(f, each) for each in quants[run * together : (run + 1) * together]]
            for x_row in range(self.x_rows):
                total = ""
                for at, each in enumerate(reals):
                    there = f.load(FLOATS, x[x_row], run * format.run + at * LANES, "float", align=4)
                    total = f.fma(each, there, total) if at else f(f"fmul {FLOATS} {each}, {there}")
                self._accumulate(own[x_row], scale, total)

    def _prefetch(self, regions: list[str]) -> None:
        ahead = self.f.at(regions[0], PREFETCH)
        self.f.do(f"call void @llvm.prefetch.p0(ptr {ahead}, i32 0, i32 3, i32 1)")

    def _accumulate(self, place: str, a: str, b: str) -> None:
        f = self.f
        f.store(FLOATS, f.fma(a, b, f.load(FLOATS, place)), place)

    def _store(self, row: str, x_row: int, accumulator: str) -> None:
        f = self.f
        place = f.add(row, f.multiply(self.step, x_row)) if x_row else row
        self._store_total(place, f.load(FLOATS, accumulator))

    def _store_total(self, place: str, accumulator: str) -> None:
        f = self.f
        total = f.total(accumulator)
        f.store("float", total, self.out, place, "float")
        nothing = f(f"fmul float {total}, 0.0")  # NaN for what is not finite
        f.store("float", f(f"fadd float {nothing}, {f.load('float', self.bad)}"), self.bad)


class _UnpackedProduct(_Product):
    """The body of a product with so many rows of x that weights are unpacked before: two rows of them, a
    stretch at a time. Sums wait in memory while the next stretch is unpacked.
    """

    def rows_from(self, row: str, count: int) -> None:
        """The products of `count` rows of weights with all rows of x."""
        f, format = self.f, self.format
        x_rows = self.given
        sums = [f.variable(FLOATS, count=MOST_ROWS) for _ in range(count)]
        weights = [f.variable("float", count=UNPACKED) for _ in range(count)]
        with f.loop(0, x_rows) as x_row:
            for each in sums:
                f.store(FLOATS, ZERO, each, x_row, FLOATS)
        with f.loop(0, self.blocks, UNPACKED // format.weights) as first:
            rest = f(f"sub i64 {self.blocks}, {first}")
            number = f(f"call i64 @llvm.smin.i64(i64 {rest}, i64 {UNPACKED // format.weights})")
            with f.loop(0, number) as block:
                for at in range(count):
                    start = f.add(f.multiply(f.add(row, at), self.blocks), f.add(first, block))
                    regions = _regions(f, format, self.words, self.total, start)
                    self._prefetch(regions)
                    place = f.multiply(block, format.weights)
                    _decode_block(f, format, regions, f.at(weights[at], place, "float"))
            column, columns = (f.multiply(each, format.weights) for each in (first, number))
            for x_row, size in tiles(f, x_rows, TILE[1]):
                self._add_tile(weights, column, columns, x_row, size, sums)
        with f.loop(0, x_rows) as x_row:
            out = f.multiply(self.step, x_row)
            for at, each in enumerate(sums):
                self._store_total(f.add(f.add(row, at), out), f.load(FLOATS, each, x_row, FLOATS))

    def _add_tile(
        self, weights: list[str], column: str, columns: str, x_row: str, x_rows: int, sums: list[str]
    ) -> None:
        f = self.f
        own = [[f.variable(FLOATS) for _ in range(x_rows)] for _ in weights]
        places = [f.add(x_row, each) for each in range(x_rows)]
        for line, kept in zip(own, sums, strict=True):
            for place, each in zip(places, line, strict=True):
                f.store(FLOATS, f.load(FLOATS, kept, place, FLOATS), each)
        x = [f.at(self.x, f.add(f.multiply(self.columns, place), column), "float") for place in places]
        with f.loop(0, columns, LANES) as at:
            there = [f.load(FLOATS, each, at, "float", align=4) for each in x]
            for line, row in zip(own, weights, strict=True):
                real = f.load(FLOATS, row, at, "float", align=4)
                for each, value in zip(line, there, strict=True):
                    self._accumulate(each, real, value)
        for line, kept in zip(own, sums, strict=True):
            for place, each in zip(places, line, strict=True):
                f.store(FLOATS, f.load(FLOATS, each), kept, place, FLOATS)


def _product_work(format: NativeFormat, x_rows: int) -> str:
    """Groups of rows from `first` up to `last`."""
    f = Function("work", [("ptr noalias", "fields"), ("i64", "first"), ("i64", "last")])
    count = _rows_together(format, x_rows)
    product = (_Product if x_rows else _UnpackedProduct)(f, format, x_rows)
    start, end = f.multiply("%first", count), f.multiply("%last", count)
    stop = f(f"call i64 @llvm.smin.i64(i64 {end}, i64 {product.rows})")
    whole = f.add(start, f.multiply(f(f"sdiv i64 {f(f'sub i64 {stop}, {start}')}, {count}"), count))
    with f.loop(start, whole, count) as row:
        product.rows_from(row, count)
    if count > 1:
        with f.loop(whole, stop) as row:
            product.rows_from(row, 1)
    with f.when(f(f"fcmp uno float {f.load('float', product.bad)}, 0.0")):
        f.do(f"store atomic i64 1, ptr {f.at('%fields', BAD, 'i64')} monotonic, align 8")
    return f.text()


def _sums_of_x(format: NativeFormat) -> str:
    """Sums of runs of rows of x, each row padded with zeros to a multiple of LANES."""
    parameters = [("ptr noalias", "x"), ("ptr noalias", "sums"), ("i64", "blocks"), ("i64", "x_rows")]
    f = Function("sum_runs", parameters)
    runs = f.multiply("%blocks", format.runs)
    padded = f(f"and i64 {f.add(runs, LANES - 1)}, {-LANES}")
    with f.loop(0, "%x_rows") as x_row:
        source = f.at("%x", f.multiply(f.multiply(x_row, "%blocks"), format.weights), "float")
        target = f.at("%sums", f.multiply(x_row, padded), "float")
        with f.loop(0, runs) as run:
            place = f.at(source, f.multiply(run, format.run), "float")
            total = f.load(FLOATS, place, align=4)
            for at in range(LANES, format.run, LANES):
                total = f(f"fadd {FLOATS} {total}, {f.load(FLOATS, place, at, 'float', align=4)}")
            f.store("float", f.total(total), target, run, "float")
        with f.loop(runs, padded) as run:
            f.store("float", "0.0", target, run, "float")
    return f.text()


def product_module(name: str, x_rows: int) -> str:
    """The product of floats, x_rows rows at a time, with rows of blocks; 0: of more than FEW rows, with
    unpacked ones.
    """
    format = FORMATS[name]
    count = _rows_together(format, x_rows)
    f = Function("run", [("ptr", "fields")], "i64")
    blocks, rows, given = (f.field("i64", each) for each in (BLOCKS_OF_ROW, ROWS, X_ROWS))
    sums_text = ""
    if format.has_offset and x_rows:
        sums_text = _sums_of_x(format)
        x, sums = f.field("ptr", X), f.field("ptr", SUMS)
        f.do(f"call void @sum_runs(ptr {x}, ptr {sums}, i64 {blocks}, i64 {given})")
    units = f(f"sdiv i64 {f.add(rows, count - 1)}, {count}")
    cost = f.multiply(f.multiply(blocks, given), format.weights * count)
    f.do(f"call void @share(ptr %fields, ptr @work, i64 {units}, i64 {cost})")
    bad = f.field("i64", BAD)
    return f.module(share_text(), _product_work(format, x_rows), sums_text, last=f"ret i64 {bad}")


# Weights


def decode_module(name: str) -> str:
    """The weights of a run of blocks, as float32; threads have runs of their own."""
    format = FORMATS[name]
    f = Function("run", [("ptr", "fields")], "i64")
    words, out = f.field("ptr", WORDS), f.field("ptr", WEIGHTS)
    total, start, count = (f.field("i64", each) for each in (TOTAL, START, COUNT))
    with f.loop(0, count) as block:
        regions = _regions(f, format, words, total, f.add(start, block))
        _decode_block(f, format, regions, f.at(out, f.multiply(block, format.weights), "float"))
    return f.module()


def _decode_block(f: Function, format: NativeFormat, regions: list[str], out: str) -> None:
    """As NumPy does it: a product, then a sum, each rounded."""
    scale, offset = format.scales(f, regions)
    together = format.run // LANES
    for at, quants in enumerate(format.quants(f, regions)):
        run = at // together
        weights = f(f"fmul {FLOATS} {_real(f, quants)}, {_spread(f, scale, format.runs, run)}")
        if offset is not None:
            weights = f(f"fadd {FLOATS} {weights}, {_spread(f, offset, format.runs, run)}")
        f.store(FLOATS, weights, out, at * LANES, "float")


def _spread(f: Function, value: str, runs: int, run: int) -> str:
    if runs == 1:
        return f.splat("float", value)
    return f.shuffle(f"<{runs} x float>", value, [run] * LANES)
