"""Attention of few queries in LLVM's text: one pass over the keys for scores, one over the values.

In: addresses and strides of queries in float32 and of keys and values in float32 or float16, whose columns
lie side by side in multiples of LANES. Out: the text of a module. A unit of work is one query of one head:
its scores, their exponentials and the mean of the values. The invariant: a unit is computed in one order,
whoever computes it; what is not finite is only told of.
"""

from __future__ import annotations

from .formats import half_to_float
from .jobs import FIRST_FIELD, share_text
from .text import FLOATS, INTEGERS, LANES, Function

__all__ = ["FIELDS", "attention_module", "exponentials"]

# Arguments, after those of every job. Strides are in elements; a query sees keys from 0 up to `count`, and
# where it is causal up to `shift` after its own number, at most `window` of them if that is not 0.
_POINTERS = ("q", "k", "v", "out", "room")
_NUMBERS = (
    *("q_batch", "q_head", "q_row", "k_batch", "k_head", "k_row", "v_batch", "v_head", "v_row"),
    *("heads", "group", "queries", "columns", "v_columns"),
    *("causal", "shift", "window", "count", "room_row", "units", "scale", "bad"),
)
FIELDS = {name: FIRST_FIELD + at for at, name in enumerate((*_POINTERS, *_NUMBERS))}

BESIDE = 4  # vectors of columns that are summed beside each other: one waits for itself
_LOWEST = "0xC7EFFFFFE0000000"  # the least finite float32
_ROUND = "0x4168000000000000"  # 1.5 * 2**23: added, it leaves a whole number in the lower bits
_TO_TWO = "0x3FF7154760000000"  # 1 / ln 2
_LN2_HIGH, _LN2_LOW = "0xBFE6300000000000", "0x3F2BD01060000000"  # -ln 2 in two parts
_LEAST = "0xC055D589E0000000"  # -87.34: below it exp is less than any normal float32
# exp(r) = 1 + r + r² · polynomial(r) for |r| ≤ ln 2 / 2, highest power first
_POWERS = (
    *("0x3F2A0D2CE0000000", "0x3F56E879C0000000", "0x3F81112100000000"),
    *("0x3FA5553820000000", "0x3FC5555540000000", "0x3FE0000000000000"),
)


def _all(number: str) -> str:
    return f"splat (float {number})"


def exponentials(f: Function, x: str) -> str:
    """exp of LANES numbers that are at most 88; 0 where it is less than normal numbers are."""
    shifted = f.fma(x, _all(_TO_TWO), _all(_ROUND))
    whole = f(f"fsub {FLOATS} {shifted}, {_all(_ROUND)}")
    rest = f.fma(whole, _all(_LN2_LOW), f.fma(whole, _all(_LN2_HIGH), x))
    polynomial = _all(_POWERS[0])
    for each in _POWERS[1:]:
        polynomial = f.fma(polynomial, rest, _all(each))
    square = f(f"fmul {FLOATS} {rest}, {rest}")
    fraction = f(f"fadd {FLOATS} {f.fma(square, polynomial, rest)}, {_all('1.0')}")
    power = f(f"shl {INTEGERS} {f(f'bitcast {FLOATS} {shifted} to {INTEGERS}')}, splat (i32 23)")
    scaled = f(f"add {INTEGERS} {f(f'bitcast {FLOATS} {fraction} to {INTEGERS}')}, {power}")
    small = f(f"fcmp olt {FLOATS} {x}, {_all(_LEAST)}")
    result = f(f"bitcast {INTEGERS} {scaled} to {FLOATS}")
    missing = f(f"fcmp uno {FLOATS} {x}, {x}")
    kept = f(f"select <{LANES} x i1> {missing}, {FLOATS} {x}, {FLOATS} {result}")
    return f(f"select <{LANES} x i1> {small}, {FLOATS} zeroinitializer, {FLOATS} {kept}")


class _Unit:
    """One query of one head."""

    def __init__(self, f: Function, unit: str, stored: str, *, converts: bool) -> None:
        self.f = f
        self.element = {"float32": "float", "float16": "i16"}[stored]  # of keys and values
        self.converts = converts  # whether the processor itself makes float32 of float16
        self.value = {name: f.field("ptr", FIELDS[name]) for name in _POINTERS}
        self.value |= {name: f.field("i64", FIELDS[name]) for name in _NUMBERS}
        get = self.value
        self.query = f(f"srem i64 {unit}, {get['queries']}")
        line = f(f"sdiv i64 {unit}, {get['queries']}")
        head, batch = f(f"srem i64 {line}, {get['heads']}"), f(f"sdiv i64 {line}, {get['heads']}")
        own = f(f"sdiv i64 {head}, {get['group']}")
        start = self._start("q", batch, head, "float")
        self.q = f.at(start, f.multiply(self.query, get["q_row"]), "float")
        self.k, self.v = (self._start(name, batch, own, self.element) for name in "kv")
        self.out = f.at(get["out"], f.multiply(unit, get["v_columns"]), "float")
        self.scores = f.at(get["room"], f.multiply(unit, get["room_row"]), "float")
        self.low, self.high = self._seen()

    def _start(self, name: str, batch: str, head: str, element: str) -> str:
        f, get = self.f, self.value
        place = f.add(f.multiply(batch, get[f"{name}_batch"]), f.multiply(head, get[f"{name}_head"]))
        return f.at(get[name], place, element)

    def _stored(self, line: str, place: str) -> str:
        """LANES numbers of a key or a value."""
        f = self.f
        if self.element == "float":
            return f.load(FLOATS, line, place, "float", align=4)
        bits = f.load(f"<{LANES} x i16>", line, place, "i16", align=2)
        return half_to_float(f, bits, LANES, converts=self.converts)

    def _seen(self) -> tuple[str, str]:
        """The keys that the query sees."""
        f, get = self.f, self.value
        causal, windowed = (f(f"icmp ne i64 {get[name]}, 0") for name in ("causal", "window"))
        end = f(f"select i1 {causal}, i64 {f.add(self.query, get['shift'])}, i64 {get['count']}")
        first = f(f"sub i64 {end}, {get['window']}")
        bounded = f(f"select i1 {f(f'and i1 {causal}, {windowed}')}, i64 {first}, i64 0")
        low = f(f"call i64 @llvm.smax.i64(i64 {bounded}, i64 0)")
        return low, f(f"call i64 @llvm.smin.i64(i64 {end}, i64 {get['count']})")

    def write_scores(self) -> str:
        """Scores from the first key seen on, then -inf up to a multiple of LANES; their maximum."""
        f, get = self.f, self.value
        bits = f(f"trunc i64 {get['scale']} to i32")
        scale = f(f"bitcast i32 {bits} to float")
        largest = f.variable("float", _LOWEST)
        with f.loop(self.low, self.high) as key:
            row = f.at(self.k, f.multiply(key, get["k_row"]), self.element)
            sums = self._zeros(BESIDE)
            for start, stop, count in self._stretches(get["columns"]):
                with f.loop(start, stop, count * LANES) as at:
                    for number, each in enumerate(sums[:count]):
                        place = f.add(at, number * LANES)
                        a, b = f.load(FLOATS, self.q, place, "float", align=4), self._stored(row, place)
                        f.store(FLOATS, f.fma(a, b, f.load(FLOATS, each)), each)
            total = f.load(FLOATS, sums[0])
            for each in sums[1:]:
                total = f(f"fadd {FLOATS} {total}, {f.load(FLOATS, each)}")
            score = f(f"fmul float {f.total(total)}, {scale}")
            f.store("float", score, self.scores, f(f"sub i64 {key}, {self.low}"), "float")
            before = f.load("float", largest)
            more = f(f"fcmp ogt float {score}, {before}")
            f.store("float", f(f"select i1 {more}, float {score}, float {before}"), largest)
        with f.loop(self.keys(), self.padded()) as at:
            f.store("float", "0xFFF0000000000000", self.scores, at, "float")
        return f.load("float", largest)

    def _zeros(self, count: int) -> list[str]:
        """Variables that are 0 from here on."""
        found = [self.f.variable(FLOATS) for _ in range(count)]
        for each in found:
            self.f.store(FLOATS, "zeroinitializer", each)
        return found

    def _stretches(self, columns: str) -> list[tuple[str | int, str, int]]:
        """(start, stop, vectors at a time): BESIDE of them while there are so many, then one."""
        whole = self.f(f"and i64 {columns}, {-BESIDE * LANES}")
        return [(0, whole, BESIDE), (whole, columns, 1)]

    def keys(self) -> str:
        """How many keys are seen."""
        f = self.f
        return f(f"call i64 @llvm.smax.i64(i64 {f(f'sub i64 {self.high}, {self.low}')}, i64 0)")

    def padded(self) -> str:
        """The same, up to a multiple of LANES."""
        return self.f(f"and i64 {self.f.add(self.keys(), LANES - 1)}, {-LANES}")

    def write_weights(self, largest: str) -> str:
        """Exponentials in the place of scores; their sum."""
        f = self.f
        total = f.variable(FLOATS)
        f.store(FLOATS, "zeroinitializer", total)
        most = f.splat("float", largest)
        with f.loop(0, self.padded(), LANES) as at:
            centred = f(f"fsub {FLOATS} {f.load(FLOATS, self.scores, at, 'float', align=4)}, {most}")
            weights = exponentials(f, centred)
            f.store(FLOATS, weights, self.scores, at, "float")
            f.store(FLOATS, f(f"fadd {FLOATS} {f.load(FLOATS, total)}, {weights}"), total)
        return f.total(f.load(FLOATS, total))

    def write_mean(self, total: str, bad: str) -> None:
        """The mean of the values by their weights; 0 where no key is seen."""
        f, get = self.f, self.value
        none = f(f"fcmp oeq float {total}, 0.0")
        divisor = f.splat("float", f(f"select i1 {none}, float 1.0, float {total}"))
        for start, stop, count in self._stretches(get["v_columns"]):
            with f.loop(start, stop, count * LANES) as column:
                means = self._zeros(count)
                with f.loop(0, self.keys()) as at:
                    weight = f.splat("float", f.load("float", self.scores, at, "float", align=4))
                    place = f.add(f.multiply(f.add(at, self.low), get["v_row"]), column)
                    for number, each in enumerate(means):
                        value = self._stored(self.v, f.add(place, number * LANES))
                        f.store(FLOATS, f.fma(weight, value, f.load(FLOATS, each)), each)
                for number, each in enumerate(means):
                    result = f(f"fdiv {FLOATS} {f.load(FLOATS, each)}, {divisor}")
                    f.store(FLOATS, result, self.out, f.add(column, number * LANES), "float")
                    nothing = f(f"fmul {FLOATS} {result}, zeroinitializer")  # NaN for what is not finite
                    f.store(FLOATS, f(f"fadd {FLOATS} {f.load(FLOATS, bad)}, {nothing}"), bad)


def attention_module(stored: str, converts: bool) -> str:
    """Attention of units: queries of heads of batches. `stored` is the type of keys and values."""
    work = Function("work", [("ptr noalias", "fields"), ("i64", "first"), ("i64", "last")])
    bad = work.variable(FLOATS, "zeroinitializer")
    with work.loop("%first", "%last") as number:
        unit = _Unit(work, number, stored, converts=converts)
        unit.write_mean(unit.write_weights(unit.write_scores()), bad)
    total = work.total(work.load(FLOATS, bad))
    with work.when(work(f"fcmp uno float {total}, 0.0")):
        place = work.at("%fields", FIELDS["bad"], "i64")
        work.do(f"store atomic i64 1, ptr {place} monotonic, align 8")
    f = Function("run", [("ptr", "fields")], "i64")
    columns = f.add(f.field("i64", FIELDS["columns"]), f.field("i64", FIELDS["v_columns"]))
    cost = f.multiply(columns, f.field("i64", FIELDS["count"]))
    f.do(f"call void @share(ptr %fields, ptr @work, i64 {f.field('i64', FIELDS['units'])}, i64 {cost})")
    return f.module(share_text(), work.text(), last=f"ret i64 {f.field('i64', FIELDS['bad'])}")
