"""Quantised blocks in LLVM's text: how the weights of a block come out of its regions.

In: addresses of a block's regions, as `ops/blocks.py` lays them out. Out: one row for each format. `scales`
gives the scale of each run of weights in a block, and what is added; `quants` gives the whole numbers that
are multiplied, LANES at a time. A weight is quant * scale + offset, to the bit what the NumPy functions of
`ops/blocks.py` make: the product is exact, so that it may be fused with the sum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ...ops.blocks import FORMATS as BLOCKS
from ..text import BYTES, INTEGERS, LANES, Function
from ..value import constants

__all__ = [
    "FORMATS",
    "WIDEN",
    "NativeFormat",
    "Scales",
    "bfloat_to_float",
    "half_to_float",
    "scales_together",
]

RUN = 32
RUN_BYTES = f"<{RUN} x i8>"
Regions = Sequence[str]  # the address of the block's part in each region
Quants = Iterator[tuple[int, str]]
Scales = tuple[str, str | None]  # float if a block has one run, else a vector of one float for each run


@dataclass(frozen=True, slots=True)
class NativeFormat:
    """How many runs a block has, whether something is added to them, and the text for both steps.

    `quants` gives pairs, in any order: which LANES weights of a block, and INTEGERS. Those of four bits are
    codes: their lowest four bits, less `zero`, are the quant, and the others are of any value.
    """

    name: str
    runs: int
    has_offset: bool
    scales: Callable[[Function, Regions, bool], Scales]  # True: the processor makes float32 of float16
    quants: Callable[[Function, Regions], Quants]
    are_codes: bool = False
    zero: int = 0

    @property
    def weights(self) -> int:
        """Weights of a block."""
        return BLOCKS[self.name].weights

    @property
    def has_bytes(self) -> bool:
        """Whether a weight has a byte or more."""
        return BLOCKS[self.name].nbytes >= self.weights

    @property
    def is_simple(self) -> bool:
        """Whether little is computed for a weight."""
        return self.are_codes or self.has_bytes

    @property
    def run(self) -> int:
        """Weights that share a scale."""
        return self.weights // self.runs


# Numbers


def half_to_float(f: Function, bits: str, lanes: int = 0, *, converts: bool = False) -> str:
    """float32 of float16 whose bits are i16: by the processor if it `converts`, else by integer operations.

    Fields are then moved to where float32 has them, and a product with 2**112 mends the exponent; what had
    the largest exponent gets the largest one again.
    """

    def of(kind: str, number: str) -> str:
        return f"splat ({kind} {number})" if lanes else number

    small, wide, real = (f"<{lanes} x {kind}>" if lanes else kind for kind in ("i16", "i32", "float"))
    if converts:
        half = f"<{lanes} x half>" if lanes else "half"
        return f(f"fpext {half} {f(f'bitcast {small} {bits} to {half}')} to {real}")
    whole = f(f"zext {small} {bits} to {wide}")
    size = f(f"and {wide} {whole}, {of('i32', '32767')}")
    moved = f(f"shl {wide} {size}, {of('i32', '13')}")
    number = f(f"fmul {real} {f(f'bitcast {wide} {moved} to {real}')}, {of('float', '0x46F0000000000000')}")
    as_bits = f(f"bitcast {real} {number} to {wide}")
    special = f(f"or {wide} {as_bits}, {of('i32', str(0x7F800000))}")
    test = f(f"icmp uge {wide} {size}, {of('i32', str(0x7C00))}")
    chosen = f(f"select {f'<{lanes} x i1>' if lanes else 'i1'} {test}, {wide} {special}, {wide} {as_bits}")
    top = f(f"and {wide} {whole}, {of('i32', '32768')}")
    sign = f(f"shl {wide} {top}, {of('i32', '16')}")
    return f(f"bitcast {wide} {f(f'or {wide} {chosen}, {sign}')} to {real}")


def bfloat_to_float(f: Function, bits: str, lanes: int = 0) -> str:
    """float32 of bfloat16 whose bits are i16: its upper half."""
    small, wide, real = (f"<{lanes} x {kind}>" if lanes else kind for kind in ("i16", "i32", "float"))
    shift = "splat (i32 16)" if lanes else "16"
    moved = f(f"shl {wide} {f(f'zext {small} {bits} to {wide}')}, {shift}")
    return f(f"bitcast {wide} {moved} to {real}")


WIDEN: dict[str, Callable[[Function, str, int], str]] = {
    "float16": half_to_float,
    "bfloat16": bfloat_to_float,
}


def _half(f: Function, converts: bool, region: str, offset: int = 0) -> str:
    return half_to_float(f, f.load("i16", region, offset, align=2), converts=converts)


# Whole numbers: RUN of them in bytes take half of the operations that they take in i32


def _widened(f: Function, numbers: str, first: int) -> Quants:
    """RUN signed bytes, which are the weights `first` times LANES and on."""
    for at in range(RUN // LANES):
        part = f.shuffle(RUN_BYTES, numbers, range(at * LANES, (at + 1) * LANES))
        yield first + at, f(f"sext {BYTES} {part} to {INTEGERS}")


def _field(f: Function, numbers: str, bit: int, to: int, mask: int) -> str:
    """Bits of RUN bytes from `bit` on, moved to another place, under a mask there."""
    if bit != to:
        word = "lshr" if bit > to else "shl"
        numbers = f(f"{word} {RUN_BYTES} {numbers}, splat (i8 {abs(bit - to)})")
    return f(f"and {RUN_BYTES} {numbers}, splat (i8 {mask})")


def _bytes(f: Function, region: str, offset: int) -> str:
    """LANES bytes as i32."""
    return f(f"zext {BYTES} {f.load(BYTES, region, offset)} to {INTEGERS}")


def _and(f: Function, value: str, mask: int) -> str:
    return f(f"and {INTEGERS} {value}, splat (i32 {mask})")


def _right(f: Function, value: str, bits: int) -> str:
    return value if bits == 0 else f(f"lshr {INTEGERS} {value}, splat (i32 {bits})")


def _left(f: Function, value: str, bits: int) -> str:
    return f(f"shl {INTEGERS} {value}, splat (i32 {bits})")


def _or(f: Function, a: str, b: str) -> str:
    return f(f"or {INTEGERS} {a}, {b}")


def _less(f: Function, value: str, zero: int) -> str:
    return f(f"sub {INTEGERS} {value}, splat (i32 {zero})")


# Blocks of 32


def _scale_last(f: Function, regions: Regions, converts: bool) -> Scales:
    return _half(f, converts, regions[-1]), None


def _scale_and_offset_last(f: Function, regions: Regions, converts: bool) -> Scales:
    return _half(f, converts, regions[-1]), _half(f, converts, regions[-1], 2)


def scales_together(f: Function, format: NativeFormat, regions: Regions, converts: bool) -> Scales:
    """Scales and offsets of LANES blocks of one run each: numbers that lie side by side."""
    if not format.has_offset:
        bits = f.load(f"<{LANES} x i16>", regions[-1], align=2)
        return half_to_float(f, bits, LANES, converts=converts), None
    kind = f"<{2 * LANES} x i16>"
    both = f.load(kind, regions[-1], align=2)
    scale, offset = (f.shuffle(kind, both, range(at, 2 * LANES, 2)) for at in (0, 1))
    widened = (half_to_float(f, each, LANES, converts=converts) for each in (scale, offset))
    return next(widened), next(widened)


def _q4(f: Function, regions: Regions) -> Quants:
    whole = _bytes(f, regions[0], 0)
    yield 0, whole
    yield 1, _right(f, whole, 4)


def _q5_1(f: Function, regions: Regions) -> Quants:
    bits = f(f"bitcast i32 {f.load('i32', regions[1], align=2)} to <{RUN} x i1>")
    fifths = f(f"select <{RUN} x i1> {bits}, {RUN_BYTES} splat (i8 16), {RUN_BYTES} zeroinitializer")
    yield from _widened(f, f(f"or {RUN_BYTES} {_both_nibbles(f, regions[0])}, {fifths}"), 0)


def _q5_0(f: Function, regions: Regions) -> Quants:
    for at, each in _q5_1(f, regions):
        yield at, f(f"sub {INTEGERS} {each}, splat (i32 16)")


def _q8_0(f: Function, regions: Regions) -> Quants:
    yield from _widened(f, f.load(RUN_BYTES, regions[0]), 0)


def _both_nibbles(f: Function, region: str) -> str:
    """The lower nibbles of LANES bytes, then the upper ones."""
    whole = f.load(BYTES, region)
    low, high = f(f"and {BYTES} {whole}, splat (i8 15)"), f(f"lshr {BYTES} {whole}, splat (i8 4)")
    return f.shuffle(BYTES, low, range(RUN), high)


# Blocks of 256: in the order half, plane, sixteen


def _scaled(f: Function, factor: str, numbers: str, runs: int, source: str = "i32") -> str:
    """A vector of factor * whole number."""
    real = f(f"sitofp <{runs} x {source}> {numbers} to <{runs} x float>")
    return f(f"fmul <{runs} x float> {f.spread('float', factor, runs)}, {real}")


def _negative(f: Function, value: str, runs: int) -> str:
    return f(f"fneg <{runs} x float> {value}")


def _q2_k_scales(f: Function, regions: Regions, converts: bool) -> Scales:
    both = _bytes(f, regions[1], 0)
    scale = _scaled(f, _half(f, converts, regions[2]), _and(f, both, 15), 16)
    least = _scaled(f, _half(f, converts, regions[2], 2), _right(f, both, 4), 16)
    return scale, _negative(f, least, 16)


def _planes(f: Function, regions: Regions) -> Iterator[tuple[int, str]]:
    """Pairs of bits: which LANES weights come first, and RUN bytes."""
    for half in range(2):
        whole = f.load(RUN_BYTES, regions[0], RUN * half)
        for plane in range(4):
            yield 8 * half + 2 * plane, _field(f, whole, 2 * plane, 0, 3)


def _q2_k(f: Function, regions: Regions) -> Quants:
    for first, low in _planes(f, regions):
        yield from _widened(f, low, first)


def _q3_k_scales(f: Function, regions: Regions, converts: bool) -> Scales:
    low, high = f.load("<8 x i8>", regions[2]), f.load("<4 x i8>", regions[2], 8)
    twice = f(f"zext {BYTES} {f.shuffle('<8 x i8>', low, [*range(8)] * 2)} to {INTEGERS}")
    fours = f(f"zext {BYTES} {f.shuffle('<4 x i8>', high, [*range(4)] * 4)} to {INTEGERS}")
    shifts = constants("i32", [0] * 8 + [4] * 8), constants("i32", [at // 4 * 2 for at in range(16)])
    lower = _and(f, f(f"lshr {INTEGERS} {twice}, {shifts[0]}"), 15)
    upper = _left(f, _and(f, f(f"lshr {INTEGERS} {fours}, {shifts[1]}"), 3), 4)
    return _scaled(f, _half(f, converts, regions[3]), _less(f, _or(f, lower, upper), 32), 16), None


def _q3_k(f: Function, regions: Regions) -> Quants:
    mask = f.load(RUN_BYTES, regions[1])
    for first, low in _planes(f, regions):
        number = f(f"or {RUN_BYTES} {low}, {_field(f, mask, first // 2, 2, 4)}")
        yield from _widened(f, f(f"sub {RUN_BYTES} {number}, splat (i8 4)"), first)


def _q4_k_scales(f: Function, regions: Regions, converts: bool) -> Scales:
    kind = "<4 x i8>"
    first, second, third = (f.load(kind, regions[0], at) for at in (4, 8, 12))

    def sixes(head: str, low: str) -> str:
        """Eight numbers of six bits: four in a head, four of which the head has the upper two bits."""
        upper = f(f"shl {kind} {f(f'lshr {kind} {head}, splat (i8 6)')}, splat (i8 4)")
        pair = f(f"and {kind} {head}, splat (i8 63)"), f(f"or {kind} {low}, {upper}")
        return f.shuffle(kind, pair[0], range(8), pair[1])

    scale = sixes(first, f(f"and {kind} {third}, splat (i8 15)"))
    least = sixes(second, f(f"lshr {kind} {third}, splat (i8 4)"))
    return (
        _scaled(f, _half(f, converts, regions[0]), scale, 8, "i8"),
        _negative(f, _scaled(f, _half(f, converts, regions[0], 2), least, 8, "i8"), 8),
    )


def _q4_k(f: Function, regions: Regions) -> Quants:
    for run in range(4):
        for at in range(2):
            whole = _bytes(f, regions[0], 16 + RUN * run + LANES * at)
            yield 4 * run + at, whole
            yield 4 * run + 2 + at, _right(f, whole, 4)


def _q5_k(f: Function, regions: Regions) -> Quants:
    bits = f.load(RUN_BYTES, regions[0], 16)
    for run in range(4):
        whole = f.load(RUN_BYTES, regions[0], 48 + RUN * run)
        for half in range(2):
            low, fifth = _field(f, whole, 4 * half, 0, 15), _field(f, bits, 2 * run + half, 4, 16)
            yield from _widened(f, f(f"or {RUN_BYTES} {low}, {fifth}"), 4 * run + 2 * half)


def _q6_k_scales(f: Function, regions: Regions, converts: bool) -> Scales:
    return _scaled(f, _half(f, converts, regions[3]), f.load(BYTES, regions[2]), 16, "i8"), None


def _q6_k(f: Function, regions: Regions) -> Quants:
    for half in range(2):
        lows = [f.load(RUN_BYTES, regions[0], 64 * half + at) for at in (0, RUN)]
        high = f.load(RUN_BYTES, regions[1], RUN * half)
        for plane in range(4):
            low, bits = _field(f, lows[plane % 2], plane // 2 * 4, 0, 15), _field(f, high, 2 * plane, 4, 48)
            number = f(f"sub {RUN_BYTES} {f(f'or {RUN_BYTES} {low}, {bits}')}, splat (i8 32)")
            yield from _widened(f, number, 8 * half + 2 * plane)


FORMATS: dict[str, NativeFormat] = {
    each.name: each
    for each in (
        NativeFormat("Q4_0", 1, False, _scale_last, _q4, True, 8),
        NativeFormat("Q4_1", 1, True, _scale_and_offset_last, _q4, True),
        NativeFormat("Q5_0", 1, False, _scale_last, _q5_0),
        NativeFormat("Q5_1", 1, True, _scale_and_offset_last, _q5_1),
        NativeFormat("Q8_0", 1, False, _scale_last, _q8_0),
        NativeFormat("Q2_K", 16, True, _q2_k_scales, _q2_k),
        NativeFormat("Q3_K", 16, False, _q3_k_scales, _q3_k),
        NativeFormat("Q4_K", 8, True, _q4_k_scales, _q4_k, True),
        NativeFormat("Q5_K", 8, True, _q4_k_scales, _q5_k),
        NativeFormat("Q6_K", 16, False, _q6_k_scales, _q6_k),
    )
}
