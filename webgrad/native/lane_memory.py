"""Loads and stores of a kernel in lanes: whole vectors, parts of them, or single elements far apart.

In: an instruction whose index is a `Linear` or a vector. Out: what lay there, as what is computed with.
Lanes that lie side by side, backwards or two apart are whole vectors; others are gathered. Nothing is loaded
where a guard or the mask of a loop's last lanes forbids it.
"""

from __future__ import annotations

import re

from ..dtypes import DType
from ..lower.casts import cast_text
from ..lower.ir import Instruction
from .lane_values import TRUE, LaneValues, Linear
from .templates.operands import columns_of
from .text import name_of_type
from .value import SCALARS, Value, llvm_type, number

_MEMORY = {"bool": "i8", "int8": "i8", "uint8": "i8", "int16": "i16", "uint16": "i16", "float16": "half"}
FAR_MEMORY = 1 << 20  # bytes of a buffer from which it does not stay in a core's own caches:
FETCHED_AHEAD = 1 << 12  # bytes; a processor by itself stops where a page ends
_LINE = 64
_FROM_BITS = {"bfloat16": "bitcast<F>({0} << U(16u))", "float16": "wg_unpack1_f16({0}, 0u)"}


class LaneMemory(LaneValues):
    """Values that come from memory, go there, or are rounded as if they did."""

    def cast(self, each: Instruction) -> Value:
        source, target, by_bits = each.data
        x = self._plain(each.args[0])
        if target.is_half and not by_bits and source is not target:
            if x.scalar == "bool":
                zero, one = (Value(number("f32", value), "f32") for value in (0, 1))
                x = self.translator.choose(x, one, zero)
            return self._loaded(*self._stored(self._to_float(x), target), target)
        text = cast_text(source, target, by_bits, "{0}", 1)
        if text == "{0}":
            return Value(x.name, target.compute, x.width)
        return self.translator.spelled(re.sub(r"\b(\w\d\d)\(\)", r"\1(0)", text), [x], False)

    def _to_float(self, x: Value) -> Value:
        """A number as float32 that is rounded once more: what float32 cannot hold of float64 becomes its last
        bit, so that halfway cases of the second rounding are told apart.
        """
        near = self.translator.convert("f32", x)
        if x.scalar != "f64":
            return near
        code, kind = self.code, llvm_type("i32", x.width)
        back = self.translator.convert("f64", near)
        sizes = [code.intrinsic("fabs", each.type, each.name) for each in (back, x)]
        above = code(f"zext {_bools(x)} {code(f'fcmp ogt {x.type} {sizes[0]}, {sizes[1]}')} to {kind}")
        bits = code(f"sub {kind} {code(f'bitcast {near.type} {near.name} to {kind}')}, {above}")
        one = code.splat(Value("1", "i32"), x.width).name
        odd = Value(code(f"bitcast {kind} {code(f'or {kind} {bits}, {one}')} to {near.type}"), "f32", x.width)
        inexact = Value(code(f"fcmp one {x.type} {back.name}, {x.name}"), "bool", x.width)
        return self.translator.choose(inexact, odd, near)

    def _kind(self, dtype: DType) -> str:
        """The type in memory."""
        if dtype.is_half and not (dtype.name == "float16" and self._processor.has_halves):
            return "i16"
        return _MEMORY.get(dtype.name) or SCALARS[dtype.compute]

    def _loaded(self, name: str, width: int, dtype: DType) -> Value:
        """What lay in memory, as what is computed with."""
        code, kind = self.code, self._kind(dtype)
        source, to = _vector(kind, width), llvm_type(dtype.compute, width)
        if dtype.name == "bool":
            return Value(
                code(f"icmp ne {source} {name}, {'zeroinitializer' if width else '0'}"), "bool", width
            )
        if kind == "half":
            return Value(code(f"fpext {source} {name} to {to}"), "f32", width)
        if dtype.is_half:
            bits = Value(code(f"zext {source} {name} to {_vector('i32', width)}"), "u32", width)
            return self.translator.spelled(_FROM_BITS[dtype.name], [bits], False)
        if dtype.itemsize < 4:
            word = "sext" if dtype.kind == "i" else "zext"
            return Value(code(f"{word} {source} {name} to {to}"), dtype.compute, width)
        return Value(name, dtype.compute, width)

    def _stored(self, value: Value, dtype: DType) -> tuple[str, int]:
        """The opposite: a name, and its lanes."""
        code, width, kind = self.code, value.width, self._kind(dtype)
        to = _vector(kind, width)
        if dtype.name == "bool":
            return code(f"zext {value.type} {value.name} to {to}"), width
        if kind == "half":
            return code(f"fptrunc {value.type} {value.name} to {to}"), width
        if dtype.is_half:
            value = self.translator.call(f"wg_{dtype.short}_bits", [value])
        if dtype.itemsize < 4:
            return code(f"trunc {value.type} {value.name} to {to}"), width
        return value.name, width

    def _active(self, guard: Value | None) -> Value | None:
        """The lanes that may be loaded, or None for all."""
        found = [each for each in (guard, self._mask) if each is not None]
        if len(found) < 2:
            return found[0] if found else None
        a, b = self.code.level(*found)
        return Value(self.code(f"and {a.type} {a.name}, {b.name}"), "bool", a.width)

    def load(self, each: Instruction) -> Value:
        code, dtype = self.code, self.kernel.buffers[each.data].dtype
        kind, size, width = self._kind(dtype), dtype.itemsize, self._width
        index = self._values[id(each.args[0])]
        given = self._plain(each.args[1]) if len(each.args) > 1 else TRUE
        guard = None if given == TRUE else given
        if id(each) in self._squares:
            return self._loaded(self._row_of_square(each, f"<{width} x {kind}>"), width, dtype)
        if self._is_uniform(index) and (guard is None or not guard.width):
            at = self._i64(each.args[0])
            if guard is not None:  # else the first element, which is there
                at = code(f"select i1 {guard.name}, i64 {at}, i64 0")
            return self._loaded(
                code.lasting(f"load {kind}, ptr {self._place(each.data, at)}, align {size}"), 0, dtype
            )
        type, mask = f"<{width} x {kind}>", self._active(guard)
        if isinstance(index, Linear) and mask is None and index.stride in (1, 2, -1):
            return self._loaded(self._whole(each.data, index, type, size), width, dtype)
        if isinstance(index, Linear) and mask is not None and index.stride in (1, 2):
            return self._loaded(self._part(each.data, index, mask, type, size), width, dtype)
        chosen = code.splat(mask or TRUE, width)
        places = self._places(each.data, each.args[0])
        name = self._masked_call(
            "gather", type, f"<{width} x ptr> align {size} {places}", chosen, f"v{width}p0"
        )
        return self._loaded(name, width, dtype)

    def _part(self, buffer: int, index: Linear, mask: Value, type: str, size: int) -> str:
        """Some of the lanes that lie side by side, or two apart: then vectors are loaded of which every other
        element is meant.
        """
        code, width = self.code, self._width

        def vector(offset: int, chosen: Value) -> str:
            place = self._place(buffer, self._folded("+", index.base, str(offset)))
            return self._masked_call("load", type, f"ptr align {size} {place}", chosen, "p0")

        if index.stride == 1:
            return vector(0, mask)
        chosen = code.splat(mask, width)
        half = width // 2
        parts = []
        for first in (0, half):
            lanes = [first + lane // 2 if lane % 2 == 0 else width for lane in range(width)]
            spread = code.shuffle(chosen.type, chosen.name, lanes, "zeroinitializer")
            parts.append(vector(2 * first, Value(spread, "bool", width)))
        return code.shuffle(type, parts[0], range(0, 2 * width, 2), parts[1])

    def _whole(self, buffer: int, index: Linear, type: str, size: int) -> str:
        """Lanes side by side, backwards, or two apart: whole vectors are loaded, then put in order."""
        code, width = self.code, self._width

        def vector(offset: int) -> str:
            place = self._place(buffer, self._folded("+", index.base, str(offset)))
            return code.lasting(f"load {type}, ptr {place}, align {size}")

        if index.stride == 1:
            self._fetch_ahead(buffer, index.base)
            return vector(0)
        if index.stride == -1:
            return code.shuffle(type, vector(1 - width), range(width)[::-1])
        picks = [2 * lane if 2 * lane < width else 2 * lane + 1 for lane in range(width)]
        return code.shuffle(type, vector(0), picks, vector(width - 1))

    def _fetch_ahead(self, buffer: int, index: str) -> None:
        """What a loop that goes straight through much memory loads some turns later."""
        itemsize, size = self.kernel.buffers[buffer].dtype.itemsize, self.kernel.buffers[buffer].size
        if self._goes_straight and size * itemsize >= FAR_MEMORY:
            place = self._place(buffer, index)
            for line in range(0, self._width * itemsize, _LINE):
                self.code.prefetch(self.code.at(place, FETCHED_AHEAD + line))

    def _square(self, buffer: int, index: Linear) -> str:
        """As many elements from each lane's place on as there are lanes, transposed: the address of rows of
        lanes.
        """
        code, width, dtype = self.code, self._width, self.kernel.buffers[buffer].dtype
        type = f"<{width} x {self._kind(dtype)}>"
        places = [self._folded("+", index.base, str(index.stride * lane)) for lane in range(width)]
        rows = [
            code.lasting(f"load {type}, ptr {self._place(buffer, each)}, align {dtype.itemsize}")
            for each in places
        ]
        square = code.variable(f"[{width} x {type}]")
        for at, column in enumerate(columns_of(code, type, width, dtype.itemsize, rows)):
            code.do(f"store {type} {column}, ptr {code.at(square, at, type)}")
        return square

    def _row_of_square(self, each: Instruction, type: str) -> str:
        square, first, loop = self._squares[id(each)]
        row = self._folded("-", self._i64(loop), first)
        return self.code(f"load {type}, ptr {self.code.at(square, row, type)}")

    def _place(self, buffer: int, index: str) -> str:
        kind = self._kind(self.kernel.buffers[buffer].dtype)
        return self.code.at(self._buffers[buffer], index, kind)

    def _places(self, buffer: int, index: Instruction) -> str:
        kind, at = self._kind(self.kernel.buffers[buffer].dtype), self._spread(index)
        return self.code(f"getelementptr {kind}, ptr {self._buffers[buffer]}, {at.type} {at.name}")

    def _masked_call(self, what: str, type: str, place: str, mask: Value, suffix: str) -> str:
        """A masked load or gather."""
        mask = self.code.splat(mask, self._width)
        args = f"{place}, {mask.type} {mask.name}, {type} zeroinitializer"
        return self.code(f"call {type} @llvm.masked.{what}.{name_of_type(type)}.{suffix}({args})")

    def store(self, each: Instruction) -> None:
        code, dtype = self.code, self.kernel.buffers[each.data].dtype
        kind, size, width = self._kind(dtype), dtype.itemsize, self._width
        index = self._values[id(each.args[0])]
        values = [self._stored(code.splat(self._plain(x), width), dtype)[0] for x in each.args[1:]]
        if not width:
            for offset, value in enumerate(values):
                place = self._place(each.data, self._folded("+", self._i64(each.args[0]), str(offset)))
                code.do(f"store {kind} {value}, ptr {place}, align {size}")
            return
        type, value, mask = f"<{width} x {kind}>", values[0], self._mask
        whole = isinstance(index, Linear) and index.stride == len(values)
        count = len(values)
        if count > 1 and whole:
            value, width = self._interleaved(values, type), count * width
            if mask is not None:
                lanes = [lane // count for lane in range(width)]
                mask = Value(code.shuffle(mask.type, mask.name, lanes), "bool", width)
            type = f"<{width} x {kind}>"
        if whole and isinstance(index, Linear):
            place = self._place(each.data, index.base)
            if mask is None:
                code.do(f"store {type} {value}, ptr {place}, align {size}")
            else:
                self._masked_store("store", type, value, f"ptr align {size} {place}", mask, "p0")
            return
        chosen = mask or code.splat(Value("true", "bool"), width)
        for offset, value in enumerate(values):
            places = self._places(each.data, each.args[0])
            if offset:
                places = code(f"getelementptr {kind}, <{width} x ptr> {places}, i64 {offset}")
            to = f"<{width} x ptr> align {size} {places}"
            self._masked_store("scatter", type, value, to, chosen, f"v{width}p0")

    def _interleaved(self, values: list[str], type: str) -> str:
        """Vectors as one: the first lanes of all, the second ones, …"""
        lanes = self._width
        while len(values) > 1:  # the first half with the second half, lane by lane
            half = len(values) // 2
            order = [lane // 2 + lane % 2 * lanes for lane in range(2 * lanes)]
            pairs = zip(values[:half], values[half:], strict=True)
            values = [self.code.shuffle(type, a, order, b) for a, b in pairs]
            type, lanes = type.replace(f"<{lanes} ", f"<{2 * lanes} "), 2 * lanes
        return values[0]

    def _masked_store(self, what: str, type: str, value: str, to: str, mask: Value, suffix: str) -> None:
        name = f"@llvm.masked.{what}.{name_of_type(type)}.{suffix}"
        self.code.do(f"call void {name}({type} {value}, {to}, {mask.type} {mask.name})")


def _vector(kind: str, width: int) -> str:
    return f"<{width} x {kind}>" if width else kind


def _bools(x: Value) -> str:
    return _vector("i1", x.width)
