"""LLVM's text, written line by line: values get their names here, loops and variables their blocks.

In: instructions without names. Out: the text of a function, and of a module, which declares what it calls.
Variables are places on the stack, which LLVM turns into registers, so nothing here knows of phi nodes.
Vectors of templates have LANES elements on every processor: LLVM splits them where registers are narrower.
The invariants: sums and products are rounded as they are written, what may be fused is written as `fma`; an
instruction that only computes is written once where its value can be used again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from zlib import crc32

from .value import SCALARS, Value, constants

__all__ = ["BYTES", "FLOATS", "INTEGERS", "LANES", "RELAX", "Function", "declarations", "module"]

LANES = 16
RELAX = "call void @relax()"  # stands for what tells a processor that a thread only waits
FLOATS, INTEGERS, BYTES = f"<{LANES} x float>", f"<{LANES} x i32>", f"<{LANES} x i8>"

_ATTRIBUTES = 'attributes #0 = { nounwind "prefer-vector-width"="512" }'
_TYPE = r"<\d+ x \w+>|\{[^}]*\}|\w+"
_CALL = re.compile(rf"call (?:\w+ )*?({_TYPE}) @(llvm\.[\w.]+)\((.*)\)")
_DECLARED = re.compile(r"declare .*@(llvm\.[\w.]+)\(")
_FIRST_WORD = re.compile(_TYPE)
_VECTOR = re.compile(r"<(\d+) x (\w+)>")
_TABLE = re.compile(r"^@.*", re.MULTILINE)
_SHORT = {"float": "f32", "double": "f64", "half": "f16", "ptr": "p0"}
# Defined for 0, and for the lowest
_FLAGS = {"ctlz": ", i1 false", "cttz": ", i1 false", "abs": ", i1 false"}
_LASTING = ", !invariant.load !0"  # of memory that nothing writes to while the function runs
# What may give another value each time, or does something: LLVM's own functions only compute
_CHANGING = re.compile(rf"(?!.*{_LASTING}$)load |atomicrmw|cmpxchg|call (?!.*@llvm\.)")


def declarations(text: str) -> str:
    """The declarations of LLVM's own functions that a text calls and does not declare, one by line."""
    found = {call[2]: call for call in _CALL.finditer(text)}
    names = sorted(found.keys() - set(_DECLARED.findall(text)))
    return "\n".join(f"declare {found[name][1]} @{name}({_types(found[name][3])})" for name in names)


def _types(arguments: str) -> str:
    """The types of a call's arguments: a constant vector has commas too, inside of brackets."""
    depth, types, expected = 0, [], True
    for match in re.finditer(rf"[(\[]|[)\]]|,|{_TYPE}|[<>]", arguments):
        word = match[0]
        if expected and _FIRST_WORD.fullmatch(word):
            types.append(word)
            expected = False
        elif word in "([<":
            depth += 1
        elif word in ")]>":
            depth -= 1
        elif word == "," and not depth:
            expected = True
    return ", ".join(types)


def module(*functions: str) -> str:
    """The text of a module: functions, the tables that they read, each once, and what they call declared."""
    text = "\n".join(functions)
    tables = dict.fromkeys(_TABLE.findall(text))
    if tables:
        text = "\n".join([line for line in text.split("\n") if not line.startswith("@")])
    return "\n".join([declarations(text), _ATTRIBUTES, text, *tables, "!0 = !{}"])


def name_of_type(type: str) -> str:
    """A type in the name of one of LLVM's functions.

    >>> name_of_type("<8 x float>"), name_of_type("i64")
    ('v8f32', 'i64')
    """
    found = _VECTOR.fullmatch(type)
    if found is None:
        return _SHORT.get(type, type)
    return f"v{found[1]}{_SHORT.get(found[2], found[2])}"


class Function:
    """A function while it is written. `parameters` are (type, name) pairs; the names come back as `%name`."""

    def __init__(self, name: str, parameters: Sequence[tuple[str, str]], result: str = "void") -> None:
        self._head = f"{result} @{name}({', '.join(f'{kind} %{each}' for kind, each in parameters)})"
        self._variables: list[str] = []
        self._tables: set[str] = set()
        self._known: list[dict[str, str]] = [{}]  # values of instructions, scope by scope
        self._count = 0
        self.lines: list[str] = []

    def new(self, what: str = "v") -> str:
        """A name that nothing has yet, of a label or behind a %."""
        self._count += 1
        return f"{what}{self._count}"

    # Instructions

    def do(self, line: str) -> None:
        """An instruction without a value."""
        self.lines.append(f"  {line}")

    def __call__(self, instruction: str) -> str:
        """The name of an instruction's value; one that only computes is not written again."""
        return self._written(instruction) if _CHANGING.match(instruction) else self.lasting(instruction)

    def lasting(self, instruction: str) -> str:
        """The same, of a load from where nothing is written between here and the end of the scope."""
        for scope in self._known:
            if instruction in scope:
                return scope[instruction]
        name = self._known[-1][instruction] = self._written(instruction)
        return name

    def _written(self, instruction: str) -> str:
        name = f"%{self.new()}"
        self.do(f"{name} = {instruction}")
        return name

    def intrinsic(self, name: str, type: str, *args: str, result: str | None = None) -> str:
        """A call of llvm.name over operands of one type; the result has it too, unless another is given."""
        made = result or type
        # The result's type is part of the name where it is not that of the operands, or follows from it.
        converts = result is not None and name.endswith(".sat")
        full = ".".join(["llvm", name, *map(name_of_type, [made, type] if converts else [type])])
        operands = ", ".join(f"{type} {each}" for each in args)
        return self(f"call {made} @{full}({operands}{_FLAGS.get(name, '')})")

    def add(self, a: str | int, b: str | int) -> str:
        """A sum of i64; numbers may be written as they are."""
        return str(a) if b == 0 else self(f"add i64 {a}, {b}")

    def multiply(self, a: str | int, b: str | int) -> str:
        """A product of i64."""
        return str(a) if b == 1 else self(f"mul i64 {a}, {b}")

    def least(self, a: str | int, b: str | int) -> str:
        """The smaller of two i64."""
        return self.intrinsic("smin", "i64", str(a), str(b))

    def most(self, a: str | int, b: str | int) -> str:
        """The larger of two i64."""
        return self.intrinsic("smax", "i64", str(a), str(b))

    def fma(self, a: str, b: str, c: str, kind: str = FLOATS) -> str:
        """a * b + c, rounded once."""
        return self.intrinsic("fma", kind, a, b, c)

    # Memory

    def at(self, pointer: str, offset: str | int, kind: str = "i8") -> str:
        """The address of element `offset`."""
        return self(f"getelementptr {kind}, ptr {pointer}, i64 {offset}")

    def load(self, kind: str, pointer: str, offset: str | int = 0, step: str = "i8", align: int = 1) -> str:
        """A value that lies `offset` steps behind a pointer."""
        place = pointer if offset == 0 else self.at(pointer, offset, step)
        return self(f"load {kind}, ptr {place}, align {align}")

    def store(self, kind: str, value: str, pointer: str, offset: str | int = 0, step: str = "i8") -> None:
        """The opposite of `load`."""
        place = pointer if offset == 0 else self.at(pointer, offset, step)
        self.do(f"store {kind} {value}, ptr {place}, align 1")

    def prefetch(self, place: str, *, written: bool = False, locality: int = 3) -> None:
        """Memory that is used soon."""
        self.do(f"call void @llvm.prefetch.p0(ptr {place}, i32 {int(written)}, i32 {locality}, i32 1)")

    def field(self, kind: str, number: int) -> str:
        """An argument, out of the i64 that the parameter `fields` points to."""
        return self(f"load {kind}, ptr {self.at('%fields', number, 'i64')}, align 8{_LASTING}")

    def table(self, kind: str, numbers: Sequence[str]) -> str:
        """The address of constants of the module."""
        values = ", ".join(f"{kind} {each}" for each in numbers)
        name = f"@table.{crc32(values.encode()):08x}"
        self._tables.add(f"{name} = private unnamed_addr constant [{len(numbers)} x {kind}] [{values}]")
        return name

    def variable(self, kind: str, value: str | None = None, count: int = 1, align: int = 64) -> str:
        """A place on the stack, with a value."""
        name = f"%{self.new('p')}"
        self._variables.append(f"  {name} = alloca {kind}, i64 {count}, align {align}")
        if value is not None:
            self.do(f"store {kind} {value}, ptr {name}")
        return name

    # Vectors

    def shuffle(self, kind: str, value: str, places: Sequence[int], other: str = "poison") -> str:
        """Elements of a vector, or of two, by their places."""
        chosen = constants("i32", places) if any(places) else "zeroinitializer"
        return self(f"shufflevector {kind} {value}, {kind} {other}, <{len(places)} x i32> {chosen}")

    def spread(self, element: str, value: str, lanes: int = LANES) -> str:
        """A vector of one value."""
        one = self(f"insertelement <{lanes} x {element}> poison, {element} {value}, i64 0")
        return self.shuffle(f"<{lanes} x {element}>", one, [0] * lanes)

    def splat(self, value: Value, width: int) -> Value:
        """One value in every lane; one that is in lanes already stays."""
        if value.width or not width:
            return value
        base = SCALARS[value.scalar]
        name = f"splat ({base} {value.name})" if value.is_constant else self.spread(base, value.name, width)
        return Value(name, value.scalar, width)

    def level(self, *values: Value) -> list[Value]:
        """The values with as many lanes as the widest has."""
        width = max(each.width for each in values)
        return [self.splat(each, width) for each in values]

    def folded(self, element: str, lanes: int, vector: str, join: Callable[[int, str, str], str]) -> str:
        """The elements of a vector as one: halves are joined, with so many lanes left, down to one."""
        while lanes > 1:
            kind, lanes = f"<{lanes} x {element}>", lanes // 2
            low, high = (self.shuffle(kind, vector, range(at, at + lanes)) for at in (0, lanes))
            vector = join(lanes, low, high)
        return self(f"extractelement <1 x {element}> {vector}, i64 0")

    # Blocks

    @contextmanager
    def scope(self) -> Iterator[None]:
        """What is computed inside is not there behind it."""
        self._known.append({})
        yield
        self._known.pop()

    def label(self, name: str) -> None:
        """A new block, behind one that ended with a branch: all ways to it come by here."""
        self.lines.append(f"{name}:")

    def block(self, name: str) -> None:
        """A new block, in which nothing of this scope is known."""
        self._known[-1] = {}
        self.label(name)

    def go(self, label: str) -> None:
        """Jump."""
        self.do(f"br label %{label}")

    def branch(self, condition: str, yes: str, no: str) -> None:
        """Jump to one of two labels."""
        self.do(f"br i1 {condition}, label %{yes}, label %{no}")

    def loop(self, start: str | int, stop: str | int, step: str | int = 1) -> AbstractContextManager[str]:
        """for index in range(start, stop, step), signed."""
        return self.count(self.variable("i64", str(start)), stop, step)

    @contextmanager
    def count(
        self, counter: str, stop: str | int, step: str | int = 1, *, whole: bool = False, latch: str = ""
    ) -> Iterator[str]:
        """A loop whose index lies in a variable, and begins with what does: without a last incomplete step
        if `whole`. `latch` is a label by which others end a turn.
        """
        head, body, end = (self.new(each) for each in ("head", "body", "end"))
        self.go(head)
        self.label(head)
        index = self(f"load i64, ptr {counter}")
        goes_on = f"icmp sle i64 {self.add(index, step)}" if whole else f"icmp slt i64 {index}"
        self.branch(self(f"{goes_on}, {stop}"), body, end)
        self.label(body)
        with self.scope():
            yield index
        if latch:
            self.go(latch)
            self.label(latch)
        self.do(f"store i64 {self.add(index, step)}, ptr {counter}")
        self.go(head)
        self.label(end)

    @contextmanager
    def when(self, condition: str) -> Iterator[None]:
        """if condition."""
        inside, end = self.new("inside"), self.new("end")
        self.branch(condition, inside, end)
        self.label(inside)
        with self.scope():
            yield
        self.go(end)
        self.label(end)

    def either(self, condition: str) -> Iterator[bool]:
        """if condition, and else: the body of a `for` over this is written for True, then for False."""
        labels, end = {each: self.new("yes" if each else "no") for each in (True, False)}, self.new("end")
        self.branch(condition, labels[True], labels[False])
        for holds, label in labels.items():
            self.label(label)
            with self.scope():
                yield holds
            self.go(end)
        self.label(end)

    # The whole

    def text(self, last: str = "ret void", *, private: bool = True) -> str:
        """The function, behind its tables."""
        head = f"define {'internal ' if private else ''}{self._head} #0 {{"
        return "\n".join(
            [*sorted(self._tables), head, "entry:", *self._variables, *self.lines, f"  {last}", "}"]
        )

    def module(self, *others: str, last: str = "ret i64 0") -> str:
        """The text of a module: this function, which is `run`, and others."""
        return module(*others, self.text(last, private=False))
