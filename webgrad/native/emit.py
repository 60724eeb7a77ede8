"""From kernel IR to LLVM's text: loops marked as lanes are widened here.

In: a `Kernel` of `lower/lanes.py` and a processor. Out: the text of `kernel(fields, begin, end)`, and the
sizes that it finds in its fields. A value is one for all lanes, or a vector, or an index that goes up by a
fixed stride from lane to lane: loads and stores of such an index with stride 1 are whole vectors. The fields
are the slot for helpers, an address for each buffer, the scalars, the sizes: i64 each. The methods of the
emitter that are not private are those of instructions, under their names in the grammar of `lower/ir.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from ..dtypes import DType
from ..lower.casts import cast_text
from ..lower.ir import BLOCK, COUNT, PANEL, Hole, Instruction, Kernel, Size, Work
from .code import SCALARS, Code, Value, llvm_type, number
from .jobs import FIRST_FIELD
from .processor import Processor
from .text import module
from .wgsl import Translator

LANES = 16  # elements of a vector: on narrower processors several registers, which hide latency
WIDE = 64  # the same where lanes are rows of short folds, so that long runs of memory are read
COPIES = 4  # of an accumulator, where a fold is little work
LITTLE = 10
_MEMORY = {"bool": "i8", "int8": "i8", "uint8": "i8", "int16": "i16", "uint16": "i16", "float16": "half"}
_SUFFIX = {"half": "f16", "float": "f32", "double": "f64"}
_BLOCKS = ("loop", "if")
KERNEL = [("ptr", "fields"), ("i64", "begin"), ("i64", "end")]
_OWN = {PANEL: "%out", BLOCK: "%tile", COUNT: "%count"}  # buffers that are parameters of a hole


@dataclass(frozen=True, slots=True)
class Linear:
    """An index: `base` in the first lane, `stride` more in each next one."""

    base: str
    stride: int = 0


@dataclass(frozen=True, slots=True)
class Register:
    """A variable: of all lanes, or a vector of them."""

    place: str
    scalar: str
    width: int


class Program(NamedTuple):
    """A module whose function is `kernel(fields, begin, end)`, and what it is run with: units of work, what
    one costs, its fields after the first, and bytes of memory that only a run needs.
    """

    text: str
    units: int
    cost: int
    fields: tuple[Field, ...]
    scratch: int = 0


class Field(NamedTuple):
    """A field of a kernel: a number; or of a buffer or a scalar, by its place in the IR, the address or value
    (of an address `number` bytes behind); or the address of the scratch memory.
    """

    kind: Literal["number", "buffer", "scalar", "scratch"]
    number: int = 0
    place: int = 0


def kernel_program(work: Work, processor: Processor) -> Program:
    """A kernel of marked loops."""
    kernel, sizes = work.kernel, list[Size]()
    emitter = _Emitter(kernel, kernel.body, processor, WIDE if work.wide else LANES, FIRST_FIELD, sizes)
    text = module_text(emitter.text("kernel", KERNEL))
    return Program(text, work.units, work.cost, fields_of(kernel, sizes))


def fields_of(kernel: Kernel, sizes: Sequence[int]) -> tuple[Field, ...]:
    """The fields that a kernel's functions look into: its buffers, its scalars, its sizes."""
    buffers = [Field("buffer", 0, at) for at in range(len(kernel.buffers))]
    scalars = [Field("scalar", 0, at) for at in range(len(kernel.scalars))]
    return (*buffers, *scalars, *[Field("number", int(each)) for each in sizes])


def hole_text(
    kernel: Kernel,
    hole: Hole,
    name: str,
    parameters: Sequence[tuple[str, str]],
    processor: Processor,
    lanes: int,
    first: int,
    sizes: list[Size],
) -> str:
    """The function of a hole; its fields begin at `first`, and sizes are added to those of other holes."""
    return _Emitter(kernel, hole.body, processor, lanes, first, sizes).text(name, parameters, private=True)


def module_text(*texts: str) -> str:
    """A module of functions, and of the tables that they read, each once."""
    lines = "\n".join(texts).split("\n")
    tables = dict.fromkeys(line for line in lines if line.startswith("@"))
    functions = "\n".join(line for line in lines if not line.startswith("@"))
    return "\n".join([module(functions), *tables, "!0 = !{}"])


class _Emitter:
    """A kernel while it is written."""

    def __init__(
        self,
        kernel: Kernel,
        body: Sequence[Instruction],
        processor: Processor,
        lanes: int,
        first: int,
        sizes: list[Size],
    ) -> None:
        self.kernel = kernel
        self._instructions = list(body)
        self._first = first  # field, of those of the kernel
        self.lanes = lanes
        self.code = Code()
        self.translator = Translator(self.code)
        self.sizes = sizes
        self._processor = processor
        self._values: dict[int, Value | Linear | Register] = {}
        self._width = 0  # of the loop that is open now: 0 outside of lanes
        self._mask: Value | None = None  # of the lanes that exist
        self._copy = 0
        self._accumulators: dict[int, list[str]] = {}
        self._buffers: list[str] = []
        self._fixed = _sizes_in_text(body)
        self._masked = processor.has_masks or (
            processor.register_bytes > 16 and all(each.dtype.itemsize >= 4 for each in kernel.buffers)
        )

    def text(self, name: str, parameters: Sequence[tuple[str, str]], *, private: bool = False) -> str:
        code = self.code
        for at, buffer in enumerate(self.kernel.buffers):
            own = _OWN.get(buffer.value)
            self._buffers.append(own or self._field("ptr", self._first + at))
        self._run(self._instructions)
        given = ", ".join(f"{kind} %{each}" for kind, each in parameters)
        head = f"define {'internal ' if private else ''}void @{name}({given}) #0 {{"
        tables = sorted(line for line in code.declared if line.startswith("@"))
        return "\n".join([*tables, head, "entry:", *code.variables, *code.lines, "  ret void", "}"])

    def _field(self, kind: str, number: int) -> str:
        place = self.code(f"getelementptr i64, ptr %fields, i64 {number}")
        return self.code(f"load {kind}, ptr {place}, align 8, !invariant.load !0")

    def _run(self, body: list[Instruction]) -> None:
        at = 0
        while at < len(body):
            each = body[at]
            if each.op in _BLOCKS:
                stop = next(
                    i
                    for i in range(at, len(body))
                    if body[i].args[:1] == (each,) and body[i].op == "end_" + each.op
                )
                self._loop(each, body[at + 1 : stop])
                at = stop
            else:
                made = getattr(self, each.op)(each)
                if made is not None:
                    self._values[id(each)] = made
            at += 1

    # Values

    def _is_uniform(self, value: Any) -> bool:
        return value.stride == 0 if isinstance(value, Linear) else not value.width

    def _i64(self, each: Instruction) -> str:
        """An index that is one for all lanes."""
        value = self._values[id(each)]
        if isinstance(value, Linear):
            return value.base
        assert isinstance(value, Value)
        return self._widened_index(value).name

    def _widened_index(self, value: Value) -> Value:
        if value.scalar == "i64":
            return value
        to = llvm_type("i64", value.width)
        return Value(self.code(f"zext {value.type} {value.name} to {to}"), "i64", value.width)

    def _spread(self, each: Instruction) -> Value:
        """An index as a vector of i64."""
        value, width, code = self._values[id(each)], self._width, self.code
        if isinstance(value, Linear):
            base = code.splat(Value(value.base, "i64"), width)
            if not value.stride:
                return base
            steps = _constants("i64", [value.stride * lane for lane in range(width)])
            return Value(code(f"add <{width} x i64> {base.name}, {steps}"), "i64", width)
        assert isinstance(value, Value)
        return code.splat(self._widened_index(value), width)

    def _plain(self, each: Instruction) -> Value:
        """A value of its own type: an index becomes u32."""
        value = self._values[id(each)]
        if isinstance(value, Linear) and not value.stride:
            if not value.base.startswith("%"):
                return Value(number("u32", int(value.base)), "u32")
            return Value(self.code(f"trunc i64 {value.base} to i32"), "u32")
        assert not isinstance(value, Register)
        if isinstance(value, Linear) or (value.scalar == "i64" and each.type and each.type.scalar == "u32"):
            wide = self._spread(each)
            return Value(
                self.code(f"trunc {wide.type} {wide.name} to <{wide.width} x i32>"), "u32", wide.width
            )
        return value

    # Numbers and indices

    def const(self, each: Instruction) -> Value | Linear:
        assert each.type is not None
        if each.type.scalar != "u32":
            return Value(number(each.type.scalar, each.data), each.type.scalar)
        if isinstance(each.data, Size) and id(each) not in self._fixed:
            if each.data not in self.sizes:
                self.sizes.append(each.data)
            first = self._first + len(self.kernel.buffers) + len(self.kernel.scalars)
            return Linear(self._field("i64", first + self.sizes.index(each.data)))
        return Linear(str(int(each.data)))

    def scalar(self, each: Instruction) -> Value:
        compute = self.kernel.scalars[each.data][1].compute
        kind = "i8" if compute == "bool" else SCALARS[compute]
        value = self._field(kind, self._first + len(self.kernel.buffers) + each.data)
        return Value(self.code(f"icmp ne i8 {value}, 0") if compute == "bool" else value, compute)

    def thread(self, each: Instruction) -> Linear:
        return Linear(f"%{each.data}")

    def argument(self, each: Instruction) -> Linear:
        return Linear(f"%{each.data}")

    def arithmetic(self, each: Instruction) -> Value | Linear:
        a, b = (self._values[id(x)] for x in each.args)
        if self._is_uniform(a) and self._is_uniform(b):
            return Linear(self._folded(each.data, *(self._i64(x) for x in each.args)))
        if isinstance(a, Linear) and isinstance(b, Linear):
            if each.data in "+-":
                stride = a.stride + (b.stride if each.data == "+" else -b.stride)
                return Linear(self._folded(each.data, a.base, b.base), stride)
            if each.data == "*":
                a, b = (b, a) if a.stride == 0 else (a, b)
                if b.stride == 0 and not b.base.startswith("%"):
                    return Linear(self._folded("*", a.base, b.base), a.stride * int(b.base))
        x, y = (self._spread(arg) for arg in each.args)
        if each.data == "min":
            return Value(self.code.intrinsic("umin", x.type, x.name, y.name), "i64", x.width)
        if each.data in "/%":  # of 32 bits: quicker, and a multiplication where the divisor is known
            narrow = f"<{x.width} x i32>"
            parts = [self._narrowed(value) for value in (x, y)]
            made = self.code(f"{_INDEX[each.data]} {narrow} {parts[0]}, {parts[1]}")
            return Value(self.code(f"zext {narrow} {made} to {x.type}"), "i64", x.width)
        return Value(self.code(f"{_INDEX[each.data]} {x.type} {x.name}, {y.name}"), "i64", x.width)

    def _narrowed(self, value: Value) -> str:
        if value.name.startswith("splat (i64 "):
            return value.name.replace("i64", "i32")
        return self.code(f"trunc {value.type} {value.name} to <{value.width} x i32>")

    def _folded(self, sign: str, a: str, b: str) -> str:
        """Arithmetic of i64 that is one for all lanes, computed here where both are known."""
        if not a.startswith("%") and not b.startswith("%"):
            return str(_KNOWN[sign](int(a), int(b)))
        if (b, sign) in (("0", "+"), ("0", "-"), ("1", "*"), ("1", "/")):
            return a
        if (a, sign) in (("0", "+"), ("1", "*")):
            return b
        if sign == "*" and "0" in (a, b):
            return "0"
        if sign == "min":
            return self.code.intrinsic("umin", "i64", a, b)
        return self.code(f"{_INDEX[sign]} i64 {a}, {b}")

    def compare(self, each: Instruction) -> Value:
        test = {"<": "ult", "==": "eq", ">=": "uge"}[each.data]
        first = self._values[id(each.args[0])]
        if isinstance(first, Value) and first.scalar == "u32":  # a computed number
            a, b = self.code.level(*(self._plain(x) for x in each.args))
        elif all(self._is_uniform(self._values[id(x)]) for x in each.args):
            a, b = (Value(self._i64(x), "i64") for x in each.args)
        else:
            a, b = (self._spread(x) for x in each.args)
        return Value(self.code(f"icmp {test} {a.type} {a.name}, {b.name}"), "bool", a.width)

    # Maps

    def apply(self, each: Instruction) -> Value:
        scalar = each.args[-1].type.scalar if each.args[-1].type else ""
        return self._applied(each.data, [self._plain(x) for x in each.args], scalar)

    def _applied(self, op: Any, args: list[Value], scalar: str) -> Value:
        spelling = op.wgsl if isinstance(op.wgsl, str) else op.wgsl[scalar]
        # Each op is rounded, as NumPy does it: results do not change when a graph is compiled. Inside of the
        # library's functions products and sums may be fused.
        return self.translator.spelled(spelling, args, False)

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

    def select(self, each: Instruction) -> Value:
        no, yes, condition = (self._plain(x) for x in each.args)
        return self.translator.choose(condition, yes, no)

    # Memory

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
        guard = self._plain(each.args[1]) if len(each.args) > 1 else None
        if self._is_uniform(index) and (guard is None or not guard.width):
            at = self._i64(each.args[0])
            if guard is not None:  # else the first element, which is there
                at = code(f"select i1 {guard.name}, i64 {at}, i64 0")
            return self._loaded(
                code(f"load {kind}, ptr {self._place(each.data, at)}, align {size}"), 0, dtype
            )
        type, mask = f"<{width} x {kind}>", self._active(guard)
        if isinstance(index, Linear) and mask is None and index.stride in (1, 2, -1):
            return self._loaded(self._whole(each.data, index, type, size), width, dtype)
        chosen = code.splat(mask or Value("true", "bool"), width).name
        if isinstance(index, Linear) and index.stride == 1:
            place = self._place(each.data, index.base)
            name = self._masked_call(
                "load",
                type,
                f"ptr align {size} {place}, <{width} x i1> {chosen}, {type} zeroinitializer",
                "p0",
            )
        else:
            places = self._places(each.data, each.args[0])
            name = self._masked_call(
                "gather",
                type,
                f"<{width} x ptr> align {size} {places}, <{width} x i1> {chosen}, {type} zeroinitializer",
                f"v{width}p0",
            )
        return self._loaded(name, width, dtype)

    def _whole(self, buffer: int, index: Linear, type: str, size: int) -> str:
        """Lanes side by side, backwards, or two apart: whole vectors are loaded, then put in order."""
        code, width = self.code, self._width

        def vector(offset: int) -> str:
            place = self._place(buffer, self._folded("+", index.base, str(offset)))
            return code(f"load {type}, ptr {place}, align {size}")

        if index.stride == 1:
            return vector(0)
        if index.stride == -1:
            back = _constants("i32", [width - 1 - lane for lane in range(width)])
            return code(f"shufflevector {type} {vector(1 - width)}, {type} poison, <{width} x i32> {back}")
        picks = [2 * lane if 2 * lane < width else 2 * lane + 1 for lane in range(width)]
        return code(
            f"shufflevector {type} {vector(0)}, {type} {vector(width - 1)}, "
            f"<{width} x i32> {_constants('i32', picks)}"
        )

    def _place(self, buffer: int, index: str) -> str:
        kind = self._kind(self.kernel.buffers[buffer].dtype)
        return self.code(f"getelementptr {kind}, ptr {self._buffers[buffer]}, i64 {index}")

    def _places(self, buffer: int, index: Instruction) -> str:
        kind, at = self._kind(self.kernel.buffers[buffer].dtype), self._spread(index)
        return self.code(f"getelementptr {kind}, ptr {self._buffers[buffer]}, <{at.width} x i64> {at.name}")

    def _masked_call(self, what: str, type: str, args: str, suffix: str) -> str:
        """A masked load or gather."""
        name = f"@llvm.masked.{what}.{_short(type)}.{suffix}"
        self.code.declared.add(f"declare {type} {name}({_types(args)})")
        return self.code(f"call {type} {name}({args})")

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
        if len(values) == 2 and whole:  # side by side in memory, as in pairs
            order = _constants("i32", [lane // 2 + lane % 2 * width for lane in range(2 * width)])
            value = code(f"shufflevector {type} {value}, {type} {values[1]}, <{2 * width} x i32> {order}")
            if mask is not None:
                both = _constants("i32", [lane // 2 for lane in range(2 * width)])
                twice = (
                    f"shufflevector {mask.type} {mask.name}, {mask.type} poison, <{2 * width} x i32> {both}"
                )
                mask = Value(code(twice), "bool", 2 * width)
            width, type = 2 * width, f"<{2 * width} x {kind}>"
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

    def _masked_store(self, what: str, type: str, value: str, to: str, mask: Value, suffix: str) -> None:
        name, args = (
            f"@llvm.masked.{what}.{_short(type)}.{suffix}",
            f"{type} {value}, {to}, {mask.type} {mask.name}",
        )
        self.code.declared.add(f"declare void {name}({_types(args)})")
        self.code.do(f"call void {name}({args})")

    # Registers and folds

    def register(self, each: Instruction) -> Register:
        start = self.code.splat(self._plain(each.args[0]), self._width)
        return Register(self._variable(start), start.scalar, self._width)

    def _variable(self, start: Value) -> str:
        place = self.code.variable(start.type)
        self.code.do(f"store {start.type} {start.name}, ptr {place}")
        return place

    def _register(self, each: Instruction) -> Register:
        found = self._values[id(each)]
        assert isinstance(found, Register)
        return found

    def read(self, each: Instruction) -> Value:
        return self._read(self._register(each.args[0]))

    def _read(self, register: Register) -> Value:
        type = llvm_type(register.scalar, register.width)
        return Value(self.code.fresh(f"load {type}, ptr {register.place}"), register.scalar, register.width)

    def write(self, each: Instruction) -> None:
        register = self._register(each.args[0])
        value = self.code.splat(self._plain(each.args[1]), register.width)
        self.code.do(f"store {value.type} {value.name}, ptr {register.place}")

    def fold(self, each: Instruction) -> None:
        """Where lanes go along what is folded, each has a total of its own until the loop ends."""
        register = self._register(each.args[0])
        across = bool(self._width and not register.width)
        if across:
            place = self._accumulators[id(each.args[0])][self._copy]
            register = Register(place, register.scalar, self._width)
        value = self.code.splat(self._plain(each.args[1]), register.width)
        before = self._read(register)
        made = self._applied(each.data, [before, value], register.scalar)
        if across and self._mask is not None:
            made = self.translator.choose(self._mask, made, before)
        self.code.do(f"store {made.type} {made.name}, ptr {register.place}")

    # Loops

    def _loop(self, each: Instruction, body: list[Instruction]) -> None:
        assert each.op == "loop", "no condition is left where lanes are marked"
        start, stop, step = (self._i64(arg) for arg in each.args)
        if each.data == "lanes" and not self._width:
            self._lanes(each, start, stop, body)
        else:
            self._for(start, stop, step, lambda index: self._body(each, Linear(index), body))

    def _body(self, each: Instruction, index: Linear, body: list[Instruction]) -> None:
        before = dict(self._values)
        self._values[id(each)] = index
        self.code.memo.append({})
        self._run(body)
        self.code.memo.pop()
        self._values = before

    def _for(
        self, start: str, stop: str, step: str, body: Callable[[str], None], *, whole: bool = False
    ) -> str:
        """for index in range(start, stop, step), without a last incomplete step if `whole`; gives the index
        at which it ended.
        """
        code = self.code
        counter = code.variable("i64", 8)
        head, inside, end = (code.new(each)[1:] for each in ("head", "body", "end"))
        code.do(f"store i64 {start}, ptr {counter}")
        code.do(f"br label %{head}")
        code.label(head)
        index = code.fresh(f"load i64, ptr {counter}")
        after = code.fresh(f"add i64 {index}, {step}")
        test = f"icmp sle i64 {after}, {stop}" if whole else f"icmp slt i64 {index}, {stop}"
        code.do(f"br i1 {code.fresh(test)}, label %{inside}, label %{end}")
        code.label(inside)
        code.memo.append({})
        body(index)
        code.memo.pop()
        code.do(f"store i64 {after}, ptr {counter}")
        code.do(f"br label %{head}")
        code.label(end)
        return code.fresh(f"load i64, ptr {counter}")

    def _lanes(self, each: Instruction, start: str, stop: str, body: list[Instruction]) -> None:
        """A widened loop: whole vectors, then what is left by a mask, or one by one."""
        code, lanes = self.code, self.lanes
        folds = {id(x.args[0]): x for x in body if x.op == "fold" and id(x.args[0]) in self._values}
        little = sum(x.op in ("apply", "load", "cast") for x in body) <= LITTLE
        copies = COPIES if folds and little and all(x.op != "loop" for x in body) else 1
        outer, self._accumulators = self._accumulators, dict(self._accumulators)
        for key, fold in folds.items():
            scalar = self._register(fold.args[0]).scalar
            identity = code.splat(Value(number(scalar, _identity(fold.data.name, scalar)), scalar), lanes)
            self._accumulators[key] = [self._variable(identity) for _ in range(copies)]

        def vector(index: str, copy: int = 0) -> None:
            self._width, self._copy = lanes, copy
            self._body(each, Linear(index, 1), body)
            self._width = 0

        def vectors(index: str) -> None:
            for copy in range(copies):
                vector(self._folded("+", index, str(copy * lanes)), copy)

        at = start
        if copies > 1:
            at = self._for(at, stop, str(copies * lanes), vectors, whole=True)
        at = self._for(at, stop, str(lanes), vector, whole=True)
        if self._masked:
            self._rest(at, stop, vector)
        for fold in folds.values():
            self._gathered(fold)
        self._accumulators = outer
        if not self._masked:
            self._for(at, stop, "1", lambda index: self._body(each, Linear(index), body))

    def _rest(self, at: str, stop: str, vector: Callable[[str], None]) -> None:
        code, lanes = self.code, self.lanes
        tail, end = code.new("tail")[1:], code.new("done")[1:]
        code.do(f"br i1 {code.fresh(f'icmp slt i64 {at}, {stop}')}, label %{tail}, label %{end}")
        code.label(tail)
        code.memo.append({})
        left = code.splat(Value(code.fresh(f"sub i64 {stop}, {at}"), "i64"), lanes)
        steps = _constants("i64", range(lanes))
        self._mask = Value(code.fresh(f"icmp ult <{lanes} x i64> {steps}, {left.name}"), "bool", lanes)
        vector(at)
        self._mask = None
        code.memo.pop()
        code.do(f"br label %{end}")
        code.label(end)

    def _gathered(self, fold: Instruction) -> None:
        """The lanes' totals into the register: copies by pairs, then one half of the lanes to the other."""
        code, register = self.code, self._register(fold.args[0])
        scalar = register.scalar
        totals = [
            self._read(Register(place, scalar, self.lanes)) for place in self._accumulators[id(fold.args[0])]
        ]
        while len(totals) > 1:
            totals = [
                self._applied(fold.data, list(pair), scalar)
                for pair in zip(totals[::2], totals[1::2], strict=True)
            ]
        (total,) = totals
        while total.width > 1:
            half, type = total.width // 2, total.type
            parts = [
                Value(
                    code(
                        f"shufflevector {type} {total.name}, {type} poison, "
                        f"<{half} x i32> {_constants('i32', range(first, first + half))}"
                    ),
                    scalar,
                    half,
                )
                for first in (0, half)
            ]
            total = self._applied(fold.data, parts, scalar)
        one = Value(code(f"extractelement {total.type} {total.name}, i64 0"), scalar)
        made = self._applied(fold.data, [self._read(register), one], scalar)
        code.do(f"store {made.type} {made.name}, ptr {register.place}")


_INDEX = {"+": "add", "-": "sub", "*": "mul", "/": "udiv", "%": "urem"}
_KNOWN: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a // max(b, 1),
    "%": lambda a, b: a % max(b, 1),
    "min": min,
}
_FROM_BITS = {"bfloat16": "bitcast<F>({0} << U(16u))", "float16": "wg_unpack1_f16({0}, 0u)"}


def _sizes_in_text(body: Sequence[Instruction]) -> set[int]:
    """The sizes that a lane is multiplied with or divided by: known numbers there, since a stride that LLVM
    does not know makes a gather of a load, and a division by it is slow.
    """
    varying: set[int] = set()
    found: set[int] = set()
    lanes: list[Instruction] = []
    for each in body:
        if each.op == "loop" and each.data == "lanes":
            lanes.append(each)
            varying.add(id(each))
        elif each.op == "end_loop" and each.args[0] in lanes:
            lanes.pop()
        elif any(id(arg) in varying for arg in each.args) or (each.op == "register" and lanes):
            varying.add(id(each))
            if each.op == "arithmetic" and each.data in "*/%":
                found |= {id(arg) for arg in each.args}
    return found


def _identity(name: str, scalar: str) -> float:
    """What changes nothing in a fold."""
    if scalar == "bool":
        return {"maximum": 0, "minimum": 1, "logical_or": 0, "logical_and": 1}[name]
    bits = 64 if scalar.endswith("64") else 32
    low: float = float("-inf") if scalar[0] == "f" else -(1 << (bits - 1)) if scalar[0] == "i" else 0
    high = float("inf") if scalar[0] == "f" else (1 << (bits - (scalar[0] == "i"))) - 1
    known = {"add": 0, "multiply": 1, "maximum": low, "minimum": high}
    return (known | {"logical_or": 0, "logical_and": 1, "bitwise_or": 0, "bitwise_and": -1})[name]


def _bools(x: Value) -> str:
    return _vector("i1", x.width)


def _vector(kind: str, width: int) -> str:
    return f"<{width} x {kind}>" if width else kind


def _constants(kind: str, numbers: Sequence[int]) -> str:
    return "<" + ", ".join(f"{kind} {each}" for each in numbers) + ">"


def _short(type: str) -> str:
    """A vector's type as the names of intrinsics have it."""
    width, _, kind = type[1:-1].partition(" x ")
    return f"v{width}{_SUFFIX.get(kind, kind)}"


def _types(args: str) -> str:
    """The types among an intrinsic's arguments."""
    return ", ".join(re.findall(r"(<\d+ x \w+>|ptr)(?= )", args))
