"""From kernel IR to a Program: one `let` per value, sizes as parameters, so that the text is the pipeline's
key.

In: a `Kernel` and a device's profile. Out: `Emitted`: the Program, how its parameters are filled, and what is
bound. Every whole number above 4 and every float but 0 and 1 becomes a parameter: a new length is not a new
text.
"""

from __future__ import annotations

import math
import re
import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..dtypes import DType
from ..errors import LaunchError
from ..runtime.profile import DeviceProfile
from ..wgsl import Binding, Field, Program
from ..wgsl.library import functions, spell
from ..wgsl.template import expand_template
from .casts import cast_text
from .ir import Buffer, Hole, Instruction, Kernel, Size, Template, Type

__all__ = ["Bound", "Emitted", "Writer", "emit"]

MAX_WORDS = 32  # parameters that travel with a command; the rest goes through a buffer
_CALL = re.compile(r"\bwg_\w+")
_STRUCT_CODES = {"f32": "f", "i32": "i", "u32": "I", "bool": "I", "i64": "q", "u64": "Q", "f64": "d"}
_SUFFIX = {"u32": "u", "i32": "i", "f32": "f", "i64": "li", "u64": "lu", "f64": "lf"}
_MORE = -1  # the value number of the buffer with parameters


@dataclass(frozen=True, slots=True)
class Bound:
    """One binding: the value, or the part of it that starts at a byte."""

    value: int
    start: int = 0
    nbytes: int = 0  # 0: all of it


@dataclass(frozen=True, slots=True)
class Emitted:
    """A kernel ready to be launched. `scalars` are packed by `front`; `tail` follows; `more` is uploaded
    once.
    """

    kernel: Kernel
    program: Program
    bound: tuple[Bound, ...]
    front: struct.Struct
    scalars: tuple[int, ...]
    tail: bytes
    more: bytes
    grid: tuple[int, int, int]
    writes: int  # how many of the last bindings are written
    updates: bool = False  # whether it may write to what is there already


def wgsl_type(type: Type) -> str:
    """A value's type as WGSL spells it."""
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
        """One instruction; the empty text where it is written at its uses."""
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
        """What is known from the start."""
        assert each.type is not None
        if each.op == "const":
            return self.constant(each.type, each.data)
        if each.op == "scalar":
            return self.scalar(each.data, self.kernel.scalars[each.data][1])
        return str(each.data)  # a thread's place, or an argument

    def expression(self, each: Instruction, args: list[str]) -> str:
        """A value's right side."""
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
        assert op == "load", op
        return self.load(data, args[0], each.type.width)

    def apply(self, op: Any, args: list[str], type: Type | None, width: int) -> str:
        """A map op's spelling."""
        assert type is not None
        if op.name == "subtract" and type.scalar == "f32" and args[0] == args[1]:
            return self.called(f"wg_own_difference({args[0]})", width)
        row = op.wgsl if isinstance(op.wgsl, str) else op.wgsl[type.scalar]
        return self.called(row.format(*args), width)

    def called(self, text: str, width: int) -> str:
        """An expression with its functions spelled for a width, and noted."""
        text = spell(text, width)
        self.calls.update(_CALL.findall(text))
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
        if hole.result is None:
            return f"fn {hole.name}({arguments}) {{\n{text}\n}}\n"
        assert hole.result.type is not None
        result = self.names[id(hole.result)]
        kind = wgsl_type(hole.result.type)
        return f"fn {hole.name}({arguments}) -> {kind} {{\n{text}\n    return {result};\n}}\n"

    # Memory

    def element(self, buffer: int) -> str:
        """What a buffer is an array of."""
        dtype = self.kernel.buffers[buffer].dtype
        if dtype.itemsize == 1:
            return "u32"
        if dtype.itemsize == 2:
            return "vec2<u32>" if buffer in self.vector else "u32"
        scalar = dtype.compute
        return f"vec4<{scalar}>" if buffer in self.vector else scalar

    def at(self, buffer: int, unit: str) -> str:
        """One array element of a buffer that is bound in one or several parts."""
        self.accessed.add((buffer, False))
        return f"b{buffer}[{unit}]" if self.parts(buffer) == 1 else f"get_b{buffer}({unit})"

    def parts(self, buffer: int) -> int:
        """In how many bindings a buffer comes."""
        return len(_parts(self.kernel.buffers[buffer], self.profile))

    def load(self, buffer: int, index: str, width: int) -> str:
        """The element, or the group of four, at an index."""
        dtype = self.kernel.buffers[buffer].dtype
        name, per_word = _packed_name(dtype), 4 // dtype.itemsize
        vector = buffer in self.vector
        if width == 4:
            value = self.at(buffer, index)
            return self.called(f"wg_unpack4_{name}({value})", 4) if name else value
        if not name:
            return f"{self.at(buffer, f'{index} >> 2u')}[{index} & 3u]" if vector else self.at(buffer, index)
        if per_word == 4 or not vector:
            shift = 2 if per_word == 4 else 1
            word = self.at(buffer, f"{index} >> {shift}u")
        else:
            word = f"{self.at(buffer, f'{index} >> 2u')}[({index} >> 1u) & 1u]"
        return self.called(f"wg_unpack1_{name}({word}, {index} & {per_word - 1}u)", 1)

    def store(self, buffer: int, index: str, value: str, type: Type | None) -> str:
        """Write an element, or a group of four."""
        assert type is not None
        name = _packed_name(self.kernel.buffers[buffer].dtype)
        self.accessed.add((buffer, True))
        if name:
            value = self.called(f"wg_pack4_{name}({value})", 4)
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


def _packed_name(dtype: DType) -> str:
    """The library's word for a dtype of less than 32 bits; empty for the others."""
    if dtype.itemsize >= 4:
        return ""
    return {"bool": "bool", "float16": "f16", "bfloat16": "bf16"}.get(dtype.name) or (
        f"{dtype.kind}{8 * dtype.itemsize}"
    )


def _wide_constant(scalar: str, value: Any) -> str:
    if scalar == "f64":
        if math.isfinite(value):
            return f"{float(value)!r}lf"
        return f"f64(bitcast<f32>(p.infinity)){'' if value > 0 else ' * -1.0lf'}"
    if value == -(1 << 63):
        return "(-9223372036854775807li - 1li)"
    return f"{int(value)}{_SUFFIX[scalar]}"


def _parts(buffer: Buffer, profile: DeviceProfile) -> list[tuple[int, int]]:
    """(start, bytes) of the bindings a buffer needs: more than one only above the device's limit."""
    nbytes = -(-buffer.size * buffer.dtype.itemsize // 16) * 16
    most = profile.part_bytes
    if nbytes <= profile.max_binding_bytes:
        return [(0, 0)]
    return [(start, min(most, nbytes - start)) for start in range(0, nbytes, most)]


def emit(kernel: Kernel, profile: DeviceProfile) -> Emitted:
    """The Program of a kernel."""
    if kernel.template is not None:
        return _emit_template(kernel, kernel.template, profile)
    writer = Writer(kernel, profile)
    body = writer.text(kernel.body)
    if "p.infinity" in body:
        body = body.replace("p.infinity", writer.parameter("u32", 0x7F800000))
    grid = grid_of(kernel.groups, profile)
    group = f"let group = id.y * {writer.parameter('u32', grid[0], 'grid_x')} + id.x;"
    entry = (
        f"@compute @workgroup_size({kernel.workgroup})\n"
        "fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) local: u32) {\n"
        f"    {group}\n{body}\n}}\n"
    )
    return assemble(writer, entry, grid)


def _emit_template(kernel: Kernel, template: Template, profile: DeviceProfile) -> Emitted:
    """A template's text with its holes as functions before it, and its numbers as parameters."""
    writer = Writer(kernel, profile)
    grid = grid_of(kernel.groups, profile)
    numbers = dict(template.numbers) | {"grid_x": grid[0]}
    source = expand_template(template.file, template.defines).text
    source = re.sub(r"\bp\.(\w+)", lambda found: writer.parameter("u32", numbers[found[1]], found[1]), source)
    source = re.sub(r"^fn \w+(?=\(@builtin)", "fn main", source, count=1, flags=re.MULTILINE)
    return assemble(writer, "".join(map(writer.function, kernel.holes)) + source, grid, template.requires)


def grid_of(groups: int, profile: DeviceProfile) -> tuple[int, int, int]:
    """A grid of at least so many workgroups, in a second dimension where one does not hold them."""
    lines = max(1, -(-groups // profile.max_workgroups))
    return -(-groups // lines), lines, 1


def assemble(
    writer: Writer, entry: str, grid: tuple[int, int, int], requires: frozenset[str] = frozenset()
) -> Emitted:
    """Declarations, functions and the entry point; parameters get their places."""
    kernel = writer.kernel
    fields, codes = _scalar_fields(kernel)
    offset = max((field.offset + field.size for field in fields), default=0)
    room = MAX_WORDS - offset // 4
    fields += [
        Field(f"p{at}", scalar, offset + 4 * at, 4) for at, (scalar, _) in enumerate(writer.words[:room])
    ]
    spilled = writer.words[room:]
    entry = re.sub(r"@(\d+)@", lambda found: _place(int(found[1]), room, writer.words), entry)
    bound, bindings, declarations = _bindings(writer, bool(spilled))
    if len(bindings) > writer.profile.max_storage_buffers:
        most = max(each.size * each.dtype.itemsize for each in kernel.buffers)
        raise LaunchError(
            f"{kernel.name} needs {len(bindings)} bindings, and this device has "
            f"{writer.profile.max_storage_buffers}: its values are large (up to {most:,} bytes; a binding "
            f"holds {writer.profile.max_binding_bytes:,}). Work in parts, or on the cpu with "
            "x.to_device('cpu')"
        )
    parts = [*declarations]
    if fields:
        members = ", ".join(f"{field.name}: {field.type}" for field in fields)
        parts = [f"struct Params {{ {members} }}", *parts, "@group(1) @binding(0) var<uniform> p: Params;"]
    parts += [
        f"var<workgroup> {name}: array<{wgsl_type(type)}, {kernel.workgroup}>;"
        for type, name in writer.shared.items()
    ]
    text = "\n".join(parts) + "\n" + functions(sorted(writer.calls)) + entry
    size = max((field.offset + field.size for field in fields), default=0)
    spare = -size % 8 if any(field.size == 8 for field in fields) else 0
    program = Program(
        kernel.name,
        text,
        "main",
        tuple(bindings),
        tuple(fields),
        size + spare,
        (kernel.workgroup, 1, 1),
        requires | _features(kernel),
        (),
        (),
        False,
    )
    tail = b"".join(_packed(each) for each in writer.words[:room]) + bytes(spare)
    more = b"".join(_packed(each) for each in spilled)
    return Emitted(
        kernel,
        program,
        tuple(bound),
        struct.Struct("<" + codes),
        tuple(number for number, _ in kernel.scalars),
        tail,
        more,
        grid,
        sum(binding.access == "read_write" for binding in bindings),
    )


def _place(at: int, room: int, words: list[tuple[str, Any]]) -> str:
    if at < room:
        return f"p.p{at}"
    scalar = words[at][0]
    word = f"more[{at - room}]"
    return word if scalar == "u32" else f"bitcast<{scalar}>({word})"


def _packed(word: tuple[str, Any]) -> bytes:
    scalar, value = word
    if scalar == "f32":
        return np.float32(value).tobytes()
    return struct.pack("<I", int(value) & 0xFFFFFFFF)


def _scalar_fields(kernel: Kernel) -> tuple[list[Field], str]:
    """The run-time numbers as fields, and the codes to pack them; 64-bit ones are aligned."""
    fields, codes, offset = [], "", 0
    for at, (_, dtype) in enumerate(kernel.scalars):
        wide = dtype.itemsize == 8
        type = "vec2<u32>" if wide else "u32" if dtype.compute == "bool" else dtype.compute
        if wide and offset % 8:
            codes += "4x"
            offset += 4
        fields.append(Field(f"s{at}", type, offset, 8 if wide else 4))
        codes += _STRUCT_CODES[dtype.compute]
        offset += 8 if wide else 4
    return fields, codes


def _features(kernel: Kernel) -> frozenset[str]:
    return frozenset(
        dtype.feature
        for dtype in [each.dtype for each in kernel.buffers] + [dtype for _, dtype in kernel.scalars]
        if dtype.feature
    )


def _bindings(writer: Writer, more: bool) -> tuple[list[Bound], list[Binding], list[str]]:
    """What is bound, in order: what is read, the parameters beyond the limit, what is written."""
    kernel = writer.kernel
    bound: list[Bound] = []
    bindings: list[Binding] = []
    lines: list[str] = []

    def bind(name: str, element: str, written: bool, what: Bound) -> None:
        access = "read_write" if written else "read"
        lines.append(f"@group(0) @binding({len(bindings)}) var<storage, {access}> {name}: array<{element}>;")
        bytes_each = _element_bytes(element)
        bindings.append(Binding(name, access, f"array<{element}>", bytes_each, bytes_each))  # type: ignore[arg-type]
        bound.append(what)

    def bind_all(written: bool) -> None:
        for number, buffer in enumerate(kernel.buffers):
            if buffer.written != written:
                continue
            if not written and (number, False) not in writer.accessed:
                continue
            element = writer.element(number)
            parts = _parts(buffer, writer.profile)
            for part, (start, nbytes) in enumerate(parts):
                name = f"b{number}" if len(parts) == 1 else f"b{number}_{part}"
                bind(name, element, written, Bound(buffer.value, start, nbytes))
            if len(parts) > 1:
                lines.extend(_accessors(number, element, parts, written))

    bind_all(written=False)
    if more:
        bind("more", "u32", False, Bound(_MORE))
    bind_all(written=True)
    return bound, bindings, lines


def _element_bytes(element: str) -> int:
    sizes = {"u32": 4, "i32": 4, "f32": 4, "i64": 8, "u64": 8, "f64": 8}
    found = re.fullmatch(r"vec(\d)<(\w+)>", element)
    return int(found[1]) * sizes[found[2]] if found else sizes[element]


def _accessors(number: int, element: str, parts: list[tuple[int, int]], written: bool) -> list[str]:
    """Functions that find the part an element is in."""
    unit = _element_bytes(element)
    reads, writes, lanes = [], [], []
    for part, (start, nbytes) in enumerate(parts):
        at = f"i - {start // unit}u" if start else "i"
        stop = (start + nbytes) // unit
        last = part == len(parts) - 1
        test = "" if last else f"if (i < {stop}u) "
        reads.append(f"{test}{{ return b{number}_{part}[{at}]; }}")
        writes.append(f"{test}{{ b{number}_{part}[{at}] = v; return; }}")
        lanes.append(f"{test}{{ b{number}_{part}[{at}][lane] = v; return; }}")
    if not written:
        return [f"fn get_b{number}(i: u32) -> {element} {{ {' '.join(reads)} }}"]
    made = [f"fn set_b{number}(i: u32, v: {element}) {{ {' '.join(writes)} }}"]
    if element.startswith("vec4"):
        scalar = element[5:-1]
        made.append(f"fn set_lane_b{number}(i: u32, lane: u32, v: {scalar}) {{ {' '.join(lanes)} }}")
    return made
