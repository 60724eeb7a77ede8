"""Writing instructions as WGSL: one `let` per value, numbers that come from shapes as parameters.

In: the instructions of a `Kernel` or of its holes. Out: statements, and the parameters, library
functions, buffers and workgroup memory that `emit.py` then declares for them.
"""

from __future__ import annotations

import math
from typing import Any

from ..device_profile import DeviceProfile
from ..dtypes import DType
from ..wgsl.library import CALL, spell
from .casts import cast_text
from .ir import Buffer, Hole, Instruction, Kernel, Size, Type

_SUFFIX = {"u32": "u", "i32": "i", "f32": "f", "i64": "li", "u64": "lu", "f64": "lf"}


def wgsl_type(type: Type) -> str:
    """A value's type in WGSL."""
    return type.scalar if type.width == 1 else f"vec4<{type.scalar}>"


class Writer:
    """Writes instructions as WGSL, collecting the parameters, functions and bindings they need."""

    def __init__(self, kernel: Kernel, profile: DeviceProfile) -> None:
        self.kernel = kernel
        self.profile = profile
        self.names: dict[int, str] = {}
        self.lines: list[str] = []
        self.calls: set[str] = set()
        self.numbers: dict[tuple[str, Any], int] = {}  # (scalar type, what it is) → parameter
        self.scope = ""  # the function that is being written
        self.words: list[tuple[str, Any]] = []
        bodies = [kernel.body, *[hole.body for hole in kernel.holes]]
        self.vector = {each.data for body in bodies for each in body if _width(each) == 4}
        self.accessed: set[tuple[int, bool]] = set()
        self.shared: dict[Type, str] = {}
        self.decoders: dict[int, str] = {}  # buffer of quantised blocks → their format
        self.count = 0

    # Numbers

    def parameter(self, scalar: str, value: Any, name: str = "") -> str:
        """A number as a parameter; equal ones of one function, or of one name, are one."""
        key = (scalar, name or (self.scope, value if value == value else "nan"))
        at = self.numbers.get(key)
        if at is None:
            at = self.numbers[key] = len(self.words)
            self.words.append((scalar, value))
        return f"@{at}@"

    def constant(self, type: Type, value: Any) -> str:
        """A number in the text where it is small, else a parameter."""
        scalar = type.scalar
        if scalar == "bool":
            return "true" if value else "false"
        if scalar in ("i64", "u64", "f64"):
            return _wide_constant(scalar, value)
        if isinstance(value, Size):
            return self.parameter(scalar, value)
        if value in (0, 1) or (scalar == "u32" and 0 <= value < 1 << 32):
            return f"{int(value)}{_SUFFIX[scalar]}"
        return self.parameter(scalar, float(value) if scalar == "f32" else int(value))

    def scalar(self, number: int, dtype: DType) -> str:
        """A run-time number: its field's value in the compute type."""
        name = f"p.s{number}"
        if dtype.compute == "bool":
            return f"({name} != 0u)"
        if dtype.compute in ("i64", "u64"):
            bits = f"(u64({name}.x) | (u64({name}.y) << 32u))"
            return bits if dtype.compute == "u64" else f"bitcast<i64>{bits}"
        if dtype.compute == "f64":
            return f"bitcast<f64>(u64({name}.x) | (u64({name}.y) << 32u))"
        return name

    # Instructions

    def text(self, body: tuple[Instruction, ...], indent: str = "    ") -> str:
        """The statements of a body."""
        for each in body:
            if each.op in ("end_loop", "end_if"):
                indent = indent[:-4]
                self.lines.append(f"{indent}}}")
                continue
            line = self.statement(each)
            if line:
                self.lines.append(indent + line)
            if each.op in ("loop", "if"):
                indent += "    "
        return "\n".join(self.lines)

    def statement(self, each: Instruction) -> str:
        """One instruction; empty where it is written at its uses."""
        args = [self.names.get(id(arg), "") for arg in each.args]
        op = each.op
        if op in ("const", "scalar", "thread", "argument"):
            self.names[id(each)] = self.source(each)
            return ""
        if op == "read":
            return self.let(each, args[0])
        if op == "write":
            return f"{args[0]} = {args[1]};"
        if op == "store":
            return self.store(each.data, args[0], args[1], each.args[1].type)
        if op == "if":
            return f"if ({args[0]}) {{"
        if op == "loop":
            name = self.named(each, "n")
            return f"for (var {name} = {args[0]}; {name} < {args[1]}; {name} += {args[2]}) {{"
        if op == "register":
            return f"var {self.named(each, 'r')} = {args[0]};"
        if op == "combine":
            return self.combine(each, args[0])
        return self.let(each, self.expression(each, args))

    def source(self, each: Instruction) -> str:
        """The text of a constant, scalar, thread index or argument."""
        assert each.type is not None
        if each.op == "const":
            return self.constant(each.type, each.data)
        if each.op == "scalar":
            return self.scalar(each.data, self.kernel.scalars[each.data][1])
        return str(each.data)  # a thread's index, or an argument

    def expression(self, each: Instruction, args: list[str]) -> str:
        """The expression of a value: the right side of its `let`."""
        assert each.type is not None
        op, data = each.op, each.data
        if op == "arithmetic":
            return f"min({args[0]}, {args[1]})" if data == "min" else f"{args[0]} {data} {args[1]}"
        if op == "compare":
            return f"{args[0]} {data} {args[1]}"
        if op == "apply":
            return self.apply(data, args, each.args[-1].type, each.type.width)
        if op == "cast":
            return self.called(
                cast_text(data[0], data[1], data[2], args[0], each.type.width), each.type.width
            )
        if op == "select":
            return f"select({', '.join(args)})"
        if op == "splat":
            return f"{wgsl_type(each.type)}({args[0]})"
        if op == "vectorize":
            return f"{wgsl_type(each.type)}({', '.join(args)})"
        if op == "extract":
            return f"{args[0]}.{'xyzw'[data]}"
        if op == "decode":
            buffer, name = data
            self.decoders[buffer] = name
            return f"decode{each.type.width}_b{buffer}({args[0]}, {args[1]})"
        assert op == "load", op
        return self.load(data, args[0], each.type.width)

    def apply(self, op: Any, args: list[str], type: Type | None, width: int) -> str:
        """A map op in WGSL."""
        assert type is not None
        if op.name == "subtract" and type.scalar == "f32" and args[0] == args[1]:
            return self.called(f"wg_own_difference({args[0]})", width)
        row = op.wgsl if isinstance(op.wgsl, str) else op.wgsl[type.scalar]
        return self.called(row.format(*args), width)

    def called(self, text: str, width: int) -> str:
        """An expression with its functions spelled for a width, and recorded."""
        text = spell(text, width)
        self.calls.update(CALL.findall(text))
        return text

    def named(self, each: Instruction, letter: str) -> str:
        """A new name."""
        name = self.names[id(each)] = f"{letter}{self.count}"
        self.count += 1
        return name

    def let(self, each: Instruction, value: str) -> str:
        """A value under a name."""
        return f"let {self.named(each, 'v')} = {value};"

    def combine(self, each: Instruction, value: str) -> str:
        """A fold over the workgroup, through its memory."""
        assert each.type == (each.type and each.type.scalar, 1)
        memory = self.shared.setdefault(each.type, f"shared_{each.type.scalar}")
        joined = self.apply(each.data, [f"{memory}[local]", f"{memory}[local + s]"], each.type, 1)
        name = self.named(each, "v")
        half = self.kernel.workgroup // 2
        return (
            f"{memory}[local] = {value}; workgroupBarrier(); "
            f"for (var s = {half}u; s > 0u; s >>= 1u) {{ "
            f"if (local < s) {{ {memory}[local] = {joined}; }} workgroupBarrier(); }} "
            f"let {name} = {memory}[0]; workgroupBarrier();"
        )

    def function(self, hole: Hole) -> str:
        """A hole as a function."""
        arguments = ", ".join(f"{name}: {wgsl_type(type)}" for name, type in hole.arguments)
        self.lines, self.scope = [], hole.name
        text = self.text(hole.body)
        if hole.keeps is not None:
            return self.stage(hole, arguments, text)
        if hole.result is None:
            return f"fn {hole.name}({arguments}) {{\n{text}\n}}\n"
        assert hole.result.type is not None
        result = self.names[id(hole.result)]
        kind = wgsl_type(hole.result.type)
        return f"fn {hole.name}({arguments}) -> {kind} {{\n{text}\n    return {result};\n}}\n"

    def stage(self, hole: Hole, arguments: str, text: str) -> str:
        """A stage as a function, and the struct of what it keeps; a WGSL struct needs at least one member."""
        kind = wgsl_type(hole.kept)
        types = [wgsl_type(each.type) for each in hole.keeps or () if each.type] or ["u32"]
        members = ", ".join(f"k{at}: {type}" for at, type in enumerate(types))
        values = ", ".join(self.names[id(each)] for each in hole.keeps or ()) or "0u"
        return (
            f"struct {kind} {{ {members} }}\n"
            f"fn {hole.name}({arguments}) -> {kind} {{\n{text}\n    return {kind}({values});\n}}\n"
        )

    # Memory

    def element(self, buffer: int) -> str:
        """The element type of a buffer's array."""
        dtype = self.kernel.buffers[buffer].dtype
        if dtype.is_packed:
            return "vec2<u32>" if dtype.itemsize == 2 and buffer in self.vector else "u32"
        scalar = dtype.compute
        return f"vec4<{scalar}>" if buffer in self.vector else scalar

    def at(self, buffer: int, unit: str) -> str:
        """One array element of a buffer that is bound in one or several parts."""
        self.accessed.add((buffer, False))
        return f"b{buffer}[{unit}]" if self.parts(buffer) == 1 else f"get_b{buffer}({unit})"

    def parts(self, buffer: int) -> int:
        """The number of bindings of a buffer."""
        return len(parts_of(self.kernel.buffers[buffer], self.profile))

    def load(self, buffer: int, index: str, width: int) -> str:
        """The element, or the group of four, at an index."""
        dtype = self.kernel.buffers[buffer].dtype
        per_word = 4 // dtype.itemsize
        vector = buffer in self.vector
        if width == 4:
            value = self.at(buffer, index)
            return self.called(f"wg_unpack4_{dtype.short}({value})", 4) if dtype.is_packed else value
        if not dtype.is_packed:
            return f"{self.at(buffer, f'{index} >> 2u')}[{index} & 3u]" if vector else self.at(buffer, index)
        if per_word == 4 or not vector:
            shift = 2 if per_word == 4 else 1
            word = self.at(buffer, f"{index} >> {shift}u")
        else:
            word = f"{self.at(buffer, f'{index} >> 2u')}[({index} >> 1u) & 1u]"
        return self.called(f"wg_unpack1_{dtype.short}({word}, {index} & {per_word - 1}u)", 1)

    def store(self, buffer: int, index: str, value: str, type: Type | None) -> str:
        """Write an element, or a group of four."""
        assert type is not None
        dtype = self.kernel.buffers[buffer].dtype
        self.accessed.add((buffer, True))
        if dtype.is_packed:
            value = self.called(f"wg_pack4_{dtype.short}({value})", 4)
        if self.parts(buffer) > 1:
            lane = f", {index} & 3u" if type.width == 1 and buffer in self.vector else ""
            unit = f"{index} >> 2u" if lane else index
            return f"set{'_lane' if lane else ''}_b{buffer}({unit}{lane}, {value});"
        if type.width == 1 and buffer in self.vector:
            return f"b{buffer}[{index} >> 2u][{index} & 3u] = {value};"
        return f"b{buffer}[{index}] = {value};"


def _width(each: Instruction) -> int:
    """The width of a memory access; 0 for anything else."""
    if each.op == "load":
        return each.type.width if each.type else 0
    if each.op == "store":
        return each.args[1].type.width if each.args[1].type else 0
    return 0


def _wide_constant(scalar: str, value: Any) -> str:
    if scalar == "f64":
        if math.isfinite(value):
            return f"{float(value)!r}lf"
        return f"f64(bitcast<f32>(p.infinity)){'' if value > 0 else ' * -1.0lf'}"
    if value == -(1 << 63):
        return "(-9223372036854775807li - 1li)"
    return f"{int(value)}{_SUFFIX[scalar]}"


def parts_of(buffer: Buffer, profile: DeviceProfile) -> list[tuple[int, int]]:
    """(start, bytes) of the bindings a buffer needs: more than one only above the device's limit."""
    nbytes = -(-buffer.size * buffer.dtype.itemsize // 16) * 16
    most = profile.part_bytes
    if nbytes <= profile.max_binding_bytes:
        return [(0, 0)]
    return [(start, min(most, nbytes - start)) for start in range(0, nbytes, most)]
