"""From kernel IR to a Program whose text is the pipeline's key: a new length is not a new text.

In: a `Kernel` and a device's profile. Out: a `Launch`: the Program, its parameters and its
bindings. `writer.py` writes the statements; here they get their declarations.
"""

from __future__ import annotations

import re
import struct
from array import array
from typing import Any

from ..device_profile import MAX_PARAMS, DeviceProfile
from ..errors import LaunchError
from ..kernels.launch import Bound, Launch, grid_for
from ..wgsl import Binding, Field, Program
from ..wgsl.library import functions
from ..wgsl.template import expand_template
from .decoders import decoder_text
from .ir import Kernel, Template
from .writer import Writer, parts_of, wgsl_type

MAX_WORDS = MAX_PARAMS // 4  # parameters that travel with a command; the rest goes through a buffer
_STRUCT_CODES = {"f32": "f", "i32": "i", "u32": "I", "bool": "I", "i64": "q", "u64": "Q", "f64": "d"}
_MORE = -1  # the value id of the buffer with parameters


def emit(kernel: Kernel, profile: DeviceProfile) -> Launch:
    """The Program of a kernel."""
    if kernel.template is not None:
        return _emit_template(kernel, kernel.template, profile)
    writer = Writer(kernel, profile)
    body = writer.text(kernel.body)
    if "p.infinity" in body:
        body = body.replace("p.infinity", writer.parameter("u32", 0x7F800000))
    grid = grid_for(profile, kernel.groups)
    group = f"let group = id.y * {writer.parameter('u32', grid[0], 'grid_x')} + id.x;"
    entry = (
        f"@compute @workgroup_size({kernel.workgroup})\n"
        "fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) local: u32) {\n"
        f"    {group}\n{body}\n}}\n"
    )
    return assemble(writer, entry, grid)


def _emit_template(kernel: Kernel, template: Template, profile: DeviceProfile) -> Launch:
    """A template's text with its holes as functions before it, and its numbers as parameters."""
    writer = Writer(kernel, profile)
    grid = grid_for(profile, kernel.groups)
    numbers = dict(template.numbers) | {"grid_x": grid[0]}
    source = expand_template(template.file, template.defines).text
    source = re.sub(r"\bp\.(\w+)", lambda found: writer.parameter("u32", numbers[found[1]], found[1]), source)
    source = re.sub(r"^fn \w+(?=\(@builtin)", "fn main", source, count=1, flags=re.MULTILINE)
    return assemble(writer, "".join(map(writer.function, kernel.holes)) + source, grid, template.requires)


def assemble(
    writer: Writer, entry: str, grid: tuple[int, int, int], requires: frozenset[str] = frozenset()
) -> Launch:
    """Declarations, functions and the entry point; parameters get their offsets."""
    kernel = writer.kernel
    fields, codes = _scalar_fields(kernel)
    offset = max((field.offset + field.size for field in fields), default=0)
    room = MAX_WORDS - offset // 4
    fields += [
        Field(f"p{at}", scalar, offset + 4 * at, 4) for at, (scalar, _) in enumerate(writer.words[:room])
    ]
    spilled = writer.words[room:]
    entry = re.sub(r"@(\d+)@", lambda found: _place(int(found[1]), room, writer.words), entry)
    entry = "".join(decoder_text(writer, *each) for each in writer.decoders.items()) + entry
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
    return Launch(
        program,
        tail,
        grid,
        bound=tuple(bound),
        front=struct.Struct("<" + codes),
        scalars=tuple(number for number, _ in kernel.scalars),
        more=more,
        kernel=kernel,
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
        return array("f", [value]).tobytes()  # out of range it becomes infinite, where struct raises
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
    """The bindings in order: read values, the parameters beyond the limit, written values."""
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
            parts = parts_of(buffer, writer.profile)
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
