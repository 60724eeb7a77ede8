"""Kernel IR: one kernel as a list of typed instructions. The grammar:

    kernel      = buffers, scalars, workgroup size, instruction* | a template with holes
    hole        = name, arguments, instruction*, result: a function that a template calls; in stages: what
                  depends on the first arguments only is computed by a function of its own, whose values the
                  later ones are given together, as one argument
    instruction = %n : type = op(args) data
    type        = scalar × width          scalar: f32 i32 u32 bool i64 u64 f64    width: 1 or 4

    const       () value                  a number; a `Size`, or a float but 0 and 1, is a parameter
    scalar      () number                 a run-time number, a parameter too
    thread      () local | group          where this thread is, counted in one line
                () begin | end            the range of units of work that this call does
    argument    () name                   of a hole; "stage.k0": what an earlier stage has kept
    arithmetic  (u32, u32) + - * / % min  index arithmetic, unsigned, wrapping
    compare     (u32, u32) < == >=        → bool
    apply       (…) map op                a row of the op table
    cast        (x) (from, to, by_bits)   dtypes
    select      (no, yes, condition)
    splat       (x)                       width 1 → 4
    vectorize   (x, y, z, w)              width 1 → 4
    extract     (x) lane                  width 4 → 1
    load        (index) buffer            width 1: the element; width 4: the group of four at 4 · index
                (index, guard)            the element where the guard holds, else anything: nothing is read
    decode      (index, blocks) buffer, format   the same, of quantised blocks
    store       (index, x) buffer         the same; packed dtypes are stored by groups only
                (index, x, y)             two elements side by side
    register    (x)                       a variable of this thread that begins as x
    read        (register)
    write       (register, x)
    fold        (register, x) map op      register = op(register, x); inside lanes, x of every lane
    combine     (x) map op                folds x over the workgroup's threads; every thread gets the result
    loop        (start, stop, step)       → u32, up to the matching end_loop(loop); with data "lanes" its
                                          turns depend on no other but for folds, and may be done at once;
                                          with "tile" so may those of rows inside of lanes
    if          (condition)               up to the matching end_if(if)

Guards, pairs, folds and lanes are for targets that widen loops themselves (`lanes.py`): there all packed
dtypes have elements of their own, and every width is 1.

Values are used after they are made, in the same block or one inside it. `verify` checks all of this.
"""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from ..dtypes import DType
from ..errors import WebgradError


class KernelError(WebgradError):
    """A kernel that breaks the grammar: a mistake in webgrad itself."""


class Type(NamedTuple):
    """The type of a value."""

    scalar: str
    width: int = 1

    def __repr__(self) -> str:
        return self.scalar if self.width == 1 else f"{self.scalar}x{self.width}"


class Size(int):
    """An integer that comes from a shape: never in the text, so that another length is the same text.

    Sizes of different roles are different even where they are equal by chance.
    """

    role: str

    def __new__(cls, value: int, role: str = "") -> Size:
        """A size of a role."""
        made = super().__new__(cls, value)
        made.role = role
        return made

    def __eq__(self, other: object) -> bool:
        return int(self) == other and getattr(other, "role", self.role) == self.role

    def __hash__(self) -> int:
        return hash((int(self), self.role))


U32 = Type("u32")
BOOL = Type("bool")


class Instruction:
    """One instruction; the instruction itself is the name of its value. `type` is None where it has none."""

    __slots__ = ("args", "data", "op", "type")

    def __init__(
        self, op: str, type: Type | None, args: tuple[Instruction, ...] = (), data: Any = None
    ) -> None:
        self.op = op
        self.type = type
        self.args = args
        self.data = data


@dataclass(frozen=True, slots=True)
class Buffer:
    """A value in memory: its number in the schedule's graph, its dtype, its elements."""

    value: int
    dtype: DType
    size: int
    written: bool = False


@dataclass(frozen=True, slots=True)
class Hole:
    """A function that a template calls: `arguments` are (name, type); `result` is None where it stores.

    With `keeps` it is a stage: what it gives is those values, as a struct of the type `kept`.
    """

    name: str
    arguments: tuple[tuple[str, Type], ...]
    body: tuple[Instruction, ...]
    result: Instruction | None
    keeps: tuple[Instruction, ...] | None = None

    @property
    def kept(self) -> Type:
        """The type of what a stage gives."""
        return Type(f"kept_{self.name}")

    @property
    def results(self) -> tuple[Instruction, ...]:
        """The values that leave it."""
        return (() if self.result is None else (self.result,)) + (self.keeps or ())


@dataclass(frozen=True, slots=True)
class Template:
    """A hand-written kernel: its file, its defines, and the numbers it asks for as `p.name`."""

    file: str
    defines: tuple[tuple[str, str], ...]
    numbers: tuple[tuple[str, int], ...]
    requires: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel: what it binds, and its instructions or a template; `workgroup` is in threads."""

    name: str
    buffers: tuple[Buffer, ...]
    scalars: tuple[tuple[int, DType], ...]  # (number in the graph, dtype)
    body: tuple[Instruction, ...]
    workgroup: int
    groups: int  # workgroups
    template: Template | None = None
    holes: tuple[Hole, ...] = ()

    def __str__(self) -> str:
        return show(self)


@dataclass(frozen=True, slots=True)
class Work:
    """A kernel over units, for a target that widens loops. If its lanes are `rows` of short folds, more of
    them at once are better.
    """

    kernel: Kernel
    units: int
    cost: int  # of a unit, in multiplications
    rows: int = 0


# The buffers that are parameters of a hole: what it fills, the block of sums that it takes, a number to store
PANEL, BLOCK, COUNT = -1, -2, -3

_OPENERS = {"loop": "end_loop", "if": "end_if"}
# op → number of arguments (-1: any), whether it has a value
GRAMMAR: dict[str, tuple[int, bool]] = {
    "const": (0, True),
    "scalar": (0, True),
    "thread": (0, True),
    "argument": (0, True),
    "arithmetic": (2, True),
    "compare": (2, True),
    "apply": (-1, True),
    "cast": (1, True),
    "select": (3, True),
    "splat": (1, True),
    "vectorize": (4, True),
    "extract": (1, True),
    "load": (-1, True),
    "decode": (2, True),
    "store": (-1, False),
    "register": (1, True),
    "read": (1, True),
    "write": (2, False),
    "fold": (2, False),
    "combine": (1, True),
    "loop": (3, True),
    "end_loop": (1, False),
    "if": (1, False),
    "end_if": (1, False),
}


def verify(kernel: Kernel) -> None:
    """Raise a KernelError where a kernel breaks the grammar."""
    for hole in kernel.holes:
        verify(replace(kernel, name=f"{kernel.name}, {hole.name}", body=hole.body, holes=()))
        if any(each not in hole.body for each in hole.results):
            raise KernelError(f"{kernel.name}, {hole.name}: its result is not in it")
    scopes: list[set[int]] = [set()]
    openers: list[Instruction] = []
    for at, each in enumerate(kernel.body):
        problem = _problem(kernel, each, scopes, openers)
        if problem:
            raise KernelError(f"{kernel.name}, instruction {at} ({each.op}): {problem}\n{show(kernel)}")
        if each.op in ("end_loop", "end_if"):
            scopes.pop()
            openers.pop()
        if each.op in _OPENERS:  # a loop's variable is known inside of it only
            openers.append(each)
            scopes.append({id(each)})
        else:
            scopes[-1].add(id(each))
    if openers:
        raise KernelError(f"{kernel.name}: {openers[-1].op} without an end")


def _problem(kernel: Kernel, each: Instruction, scopes: list[set[int]], openers: list[Instruction]) -> str:
    if each.op not in GRAMMAR:
        return "no such instruction"
    count, valued = GRAMMAR[each.op]
    if count >= 0 and len(each.args) != count:
        return f"{len(each.args)} arguments, not {count}"
    if valued != (each.type is not None):
        return "a value without type, or a type without value"
    if each.op in ("end_loop", "end_if"):
        fits = openers and openers[-1] is each.args[0] and _OPENERS[openers[-1].op] == each.op
        return "" if fits else "ends what is not open"
    for arg in each.args:
        if not any(id(arg) in scope for scope in scopes):
            return f"uses {arg.op} {arg.data!r} before it is made, or outside of its block"
    if each.op == "combine" and openers:
        return "not every thread may come here"
    return _type_problem(kernel, each) or _shape_problem(kernel, each)


def _shape_problem(kernel: Kernel, each: Instruction) -> str:
    """What is wrong with widths, registers and casts."""
    types = [arg.type for arg in each.args]
    if each.type is not None and each.type.width not in (1, 4):
        return f"a width of {each.type.width}"
    rules: dict[str, Callable[[], bool]] = {
        "splat": lambda: types[0] != (each.type and Type(each.type.scalar)),
        "vectorize": lambda: any(t != (each.type and Type(each.type.scalar)) for t in types),
        "extract": lambda: not types[0] or types[0].width != 4 or each.data not in range(4),
        "fold": lambda: each.args[0].op != "register" or types[0] != types[1],
        "read": lambda: each.args[0].op != "register" or types[0] != each.type,
        "write": lambda: each.args[0].op != "register",
        "register": lambda: types[0] != each.type,
        "if": lambda: types[0] != BOOL,
        "scalar": lambda: not 0 <= each.data < len(kernel.scalars),
        "cast": lambda: not each.type or each.type.scalar != each.data[1].compute,
    }
    rule = rules.get(each.op)
    return f"{each.type} of {types}" if rule is not None and rule() else ""


def _type_problem(kernel: Kernel, each: Instruction) -> str:
    types = [arg.type for arg in each.args]
    if each.op in ("arithmetic", "compare") and types != [U32, U32]:
        return f"index arithmetic of {types}"
    if each.op == "loop" and types != [U32, U32, U32]:
        return f"a loop over {types}"
    if (
        each.op in ("apply", "select")
        and len({t.width for t in types if t} | {each.type.width if each.type else 0}) > 1
    ):
        return f"widths differ: {types}"
    if each.op in ("load", "store"):
        if not 0 <= each.data < len(kernel.buffers):
            return "no such buffer"
        if types[0] != U32:
            return "an index that is not a u32"
        buffer = kernel.buffers[each.data]
        value = each.type if each.op == "load" else types[1]
        if value is None or value.scalar != buffer.dtype.compute:
            return f"{value} in a buffer of {buffer.dtype.name}"
        if each.op == "store" and not buffer.written:
            return "writes to what is only read"
        widened = any(each.op == "thread" and each.data == "begin" for each in kernel.body)
        if each.op == "store" and value.width == 1 and buffer.dtype.is_packed and not widened:
            return "a single element of a packed dtype is stored"
    if each.op == "decode":
        if not 0 <= each.data[0] < len(kernel.buffers) or types != [U32, U32]:
            return f"blocks of {types} in buffer {each.data[0]}"
        if each.type is None or each.type.scalar != "f32":
            return "weights are f32"
    if each.op == "write" and types[0] != types[1]:
        return f"a register of {types[0]} takes {types[1]}"
    if each.op == "select" and (types[0] != types[1] or not types[2] or types[2].scalar != "bool"):
        return f"select of {types}"
    return ""


def show(kernel: Kernel) -> str:
    """A kernel as text: %1 is a value of the graph, v1 one of the kernel, under the name it has in WGSL."""
    lines = [f"kernel {kernel.name}: {kernel.groups} workgroups of {kernel.workgroup}"]
    for number, buffer in enumerate(kernel.buffers):
        way = "out" if buffer.written else "in"
        lines.append(f"  {way} %{buffer.value}: {buffer.dtype.name}[{buffer.size}]  (binding {number})")
    if kernel.template is not None:
        defines = " ".join(f"{name}={value}" for name, value in kernel.template.defines)
        numbers = " ".join(f"{name}={value}" for name, value in kernel.template.numbers)
        lines.append(f"  template {kernel.template.file} {defines}:")
        lines += textwrap.wrap(numbers, 100, initial_indent="    ", subsequent_indent="    ")
    names: dict[int, str] = {}
    counter = itertools.count()
    lines += _listing(kernel, kernel.body, names, counter, 1)
    for hole in kernel.holes:
        lines.append(f"  hole {hole.name}({', '.join(name for name, _ in hole.arguments)})")
        lines += _listing(kernel, hole.body, names, counter, 2)
        if hole.results:
            lines.append(f"    return {', '.join(names[id(each)] for each in hole.results)}")
    return "\n".join(lines)


def _listing(
    kernel: Kernel, body: tuple[Instruction, ...], names: dict[int, str], counter: Iterator[int], indent: int
) -> list[str]:
    """A line for each instruction; what is known from the start (numbers, arguments) is shown at its uses."""
    lines = []
    for each in body:
        if each.op in ("const", "scalar", "thread", "argument"):
            names[id(each)] = f"s{each.data}" if each.op == "scalar" else str(each.data)
            continue
        if each.op in ("end_loop", "end_if"):
            indent -= 1
            lines.append("  " * indent + each.op)
            continue
        args = ", ".join(names.get(id(arg), "?") for arg in each.args)
        text = f"{each.op}({args}){_shown(kernel, each)}"
        if each.type is not None:
            names[id(each)] = f"{_LETTERS.get(each.op, 'v')}{next(counter)}"
            text = f"{names[id(each)]}: {each.type!r} = {text}"
        lines.append("  " * indent + text)
        if each.op in _OPENERS:
            indent += 1
    return lines


_LETTERS = {"loop": "n", "register": "r"}


def _shown(kernel: Kernel, each: Instruction) -> str:
    data = each.data
    if data is None:
        return ""
    if each.op in ("apply", "combine"):
        return f" {data.name}"
    if each.op == "cast":
        return f" {data[0].name} → {data[1].name}{' by bits' if data[2] else ''}"
    if each.op in ("load", "store"):
        return f" {_buffer_name(kernel, data)}"
    if each.op == "decode":
        return f" {_buffer_name(kernel, data[0])} {data[1]}"
    return f" {data}"


def _buffer_name(kernel: Kernel, number: int) -> str:
    """The graph's value in a buffer; a kernel that breaks the grammar is shown as well."""
    return f"%{kernel.buffers[number].value}" if 0 <= number < len(kernel.buffers) else "?"
