"""LLVM's text, written line by line: values get their names here, loops and variables their blocks.

In: instructions without names. Out: the text of a function, and of a module, which declares what it calls.
Variables are places on the stack, which LLVM turns into registers, so nothing here knows of phi nodes.
Vectors have LANES elements on every processor: LLVM splits them where registers are narrower. The invariant:
sums and products are rounded as they are written; what may be fused is written as `fma`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

__all__ = ["BYTES", "FLOATS", "INTEGERS", "LANES", "RELAX", "Function", "declarations", "integers", "module"]

LANES = 16
RELAX = "call void @relax()"  # stands for what tells a processor that a thread only waits
FLOATS, INTEGERS, BYTES = f"<{LANES} x float>", f"<{LANES} x i32>", f"<{LANES} x i8>"

_ATTRIBUTES = 'attributes #0 = { nounwind "prefer-vector-width"="512" }'
_TYPE = r"<\d+ x \w+>|\{[^}]*\}|\w+"
_CALL = re.compile(rf"call (?:\w+ )*?({_TYPE}) @(llvm\.[\w.]+)\((.*)\)")
_DECLARED = re.compile(r"declare .*@(llvm\.[\w.]+)\(")
_FIRST_WORD = re.compile(_TYPE)


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
    """The text of a module: functions, after declarations of what they call."""
    text = "\n".join(functions)
    return "\n".join([declarations(text), _ATTRIBUTES, text])


def integers(numbers: Sequence[int]) -> str:
    """A constant vector of i32."""
    return "<" + ", ".join(f"i32 {each}" for each in numbers) + ">"


class Function:
    """A function while it is written. `parameters` are (type, name) pairs; the names come back as `%name`."""

    def __init__(self, name: str, parameters: Sequence[tuple[str, str]], result: str = "void") -> None:
        self.name = name
        self._head = ", ".join(f"{kind} %{each}" for kind, each in parameters)
        self._result = result
        self._variables: list[str] = []
        self._lines: list[str] = []
        self._count = 0

    def _new(self, what: str) -> str:
        self._count += 1
        return f"{what}{self._count}"

    # Instructions

    def do(self, line: str) -> None:
        """An instruction without a value."""
        self._lines.append(f"  {line}")

    def __call__(self, instruction: str) -> str:
        """The name of an instruction's value."""
        name = self._new("%v")
        self.do(f"{name} = {instruction}")
        return name

    def add(self, a: str | int, b: str | int) -> str:
        """A sum of i64; numbers may be written as they are."""
        return str(a) if b == 0 else self(f"add i64 {a}, {b}")

    def multiply(self, a: str | int, b: str | int) -> str:
        """A product of i64."""
        return str(a) if b == 1 else self(f"mul i64 {a}, {b}")

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

    def field(self, kind: str, number: int) -> str:
        """An argument, out of the i64 that the parameter `fields` points to."""
        return self.load(kind, "%fields", number, "i64", align=8)

    def splat(self, element: str, value: str, lanes: int = LANES) -> str:
        """A vector of one value."""
        one = self(f"insertelement <{lanes} x {element}> poison, {element} {value}, i64 0")
        return self.shuffle(f"<{lanes} x {element}>", one, [0] * lanes)

    def shuffle(self, kind: str, value: str, places: Sequence[int], other: str = "poison") -> str:
        """Elements of a vector, or of two, by their places."""
        return self(f"shufflevector {kind} {value}, {kind} {other}, <{len(places)} x i32> {integers(places)}")

    def fma(self, a: str, b: str, c: str, kind: str = FLOATS) -> str:
        """a * b + c, rounded once."""
        lanes = f"v{kind[1 : kind.index(' ')]}" if kind[0] == "<" else ""
        suffix = f"{lanes}f{64 if 'double' in kind else 32}"
        return self(f"call {kind} @llvm.fma.{suffix}({kind} {a}, {kind} {b}, {kind} {c})")

    def total(self, vector: str) -> str:
        """The sum of a vector's elements: one half to the other, down to one."""
        lanes = LANES
        while lanes > 1:
            kind, lanes = f"<{lanes} x float>", lanes // 2
            low, high = (self.shuffle(kind, vector, range(at, at + lanes)) for at in (0, lanes))
            vector = self(f"fadd <{lanes} x float> {low}, {high}")
        return self(f"extractelement <1 x float> {vector}, i64 0")

    # Variables and blocks

    def variable(self, kind: str, value: str | None = None, count: int = 1) -> str:
        """A place on the stack, with a value."""
        name = self._new("%p")
        self._variables.append(f"  {name} = alloca {kind}, i64 {count}, align 64")
        if value is not None:
            self.do(f"store {kind} {value}, ptr {name}")
        return name

    def block(self, label: str) -> None:
        """A new block; the one before it must have ended with a branch."""
        self._lines.append(f"{label}:")

    @contextmanager
    def loop(self, start: str | int, stop: str | int, step: str | int = 1) -> Iterator[str]:
        """for index in range(start, stop, step), signed."""
        counter = self.variable("i64", str(start))
        head, body, end = (self._new(each) for each in ("head", "body", "end"))
        self.do(f"br label %{head}")
        self.block(head)
        index = self(f"load i64, ptr {counter}")
        more = self(f"icmp slt i64 {index}, {stop}")
        self.do(f"br i1 {more}, label %{body}, label %{end}")
        self.block(body)
        yield index
        self.do(f"store i64 {self.add(index, step)}, ptr {counter}")
        self.do(f"br label %{head}")
        self.block(end)

    @contextmanager
    def when(self, condition: str) -> Iterator[None]:
        """if condition."""
        inside, end = self._new("inside"), self._new("end")
        self.do(f"br i1 {condition}, label %{inside}, label %{end}")
        self.block(inside)
        yield
        self.do(f"br label %{end}")
        self.block(end)

    def text(self, last: str = "ret void", *, private: bool = True) -> str:
        """The whole function."""
        linkage = "internal " if private else ""
        lines = [f"define {linkage}{self._result} @{self.name}({self._head}) noinline #0 {{", "entry:"]
        return "\n".join([*lines, *self._variables, *self._lines, f"  {last}", "}"])

    def module(self, *others: str, last: str = "ret i64 0") -> str:
        """The text of a module: this function, which is `run`, and others."""
        return module(*others, self.text(last, private=False))
