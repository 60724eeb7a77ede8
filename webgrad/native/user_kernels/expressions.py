"""Expressions of a user's kernel as LLVM's text: values, places, calls.

In: trees. Out: instructions in a `Function`, and what an expression stands for. Functions of the text are
written in place of their calls. What is not translated is refused by name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ...wgsl.program import Program
from ...wgsl.source import Source
from ...wgsl.syntax import Declaration, parse_module
from ..jobs import kernel_function
from ..translation import tree
from ..translation.expressions import literal
from ..translation.parser import Parser
from ..value import Value
from .functions import Functions
from .trees import called_names, returns_early
from .types import Type, Types, scalar_type
from .values import Bound, Data, Group, Place, Pointer, Refusal, type_of

BARRIERS = ("workgroupBarrier", "storageBarrier", "workgroupUniformLoad")
_BARE = re.compile(r"vec[234]|mat[234]x[234]|array")  # constructors that say no type of elements
_SIGNED = {"-": ("i32", "i64", "f16", "f32", "f64"), "!": ("bool",), "~": ("i32", "u32", "i64", "u64")}
_ATOMICS = {
    "atomicAdd": "add",
    "atomicSub": "sub",
    "atomicAnd": "and",
    "atomicOr": "or",
    "atomicXor": "xor",
    "atomicMax": "max",
    "atomicMin": "min",
    "atomicExchange": "xchg",
}


@dataclass(frozen=True, slots=True)
class Kept:
    """A variable of which every invocation has one, in an array."""

    base: str
    type: Type
    stride: int
    writable: bool = True


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of the entry point: `@builtin(name)`, or a struct of such."""

    names: tuple[str, ...]
    struct: Type | None = None


Binding: TypeAlias = Bound | Kept | Argument


@dataclass(slots=True)
class Frame:
    """A function that is being written: its names, and where its jumps go."""

    scope: dict[str, Binding]
    result: Type | None = None
    place: Place | None = None  # of the result
    end: str = ""  # where `return` goes; empty: its value is the function's
    leave: str = ""  # where `break` goes
    again: str = ""  # where `continue` goes
    value: Data | None = None


class Expressions(Functions):
    """Writes what expressions compute. The subclass says where variables lie, and writes statements."""

    def __init__(self, program: Program) -> None:
        super().__init__(kernel_function())
        self.program = program
        self.source = Source(program.text, program.origins)
        self.module = parse_module(self.source)
        self.types = Types(self.module)
        self.entry = self.module.names[program.entry]
        self.globals: dict[str, Binding] = {}
        self.bodies: dict[str, tree.Block] = {}
        self.calls: list[str] = []  # the functions that are being written; none: the entry point
        self.turns = self.code.variable("i64")  # that the loops of a workgroup have left
        self.status = ""  # the address at which a kernel says why it stopped

    def resolved(self, binding: Binding, at: int) -> Bound:
        """What a name stands for here."""
        raise NotImplementedError

    def body(self, declaration: Declaration) -> tree.Block:
        """The tree of a function's body."""
        if declaration.name not in self.bodies:
            self.bodies[declaration.name] = Parser(self.source, declaration.value[0]).block()
        return self.bodies[declaration.name]

    def run(self, body: Sequence[tree.Statement], frame: Frame) -> None:
        """A function's statements."""
        raise NotImplementedError

    def truth(self, data: Data) -> Value:
        """A condition."""
        value = self.scalar(data)
        if value.scalar != "bool":
            raise Refusal(f"a condition is a bool, not {value.scalar}")
        return value

    def data(self, each: tree.Expression, frame: Frame) -> Data:
        """An expression's value."""
        return self.loaded(self.bound(each, frame))

    def loaded(self, found: Bound | None) -> Data:
        """The value of what an expression stands for."""
        if isinstance(found, Place):
            if found.type.kind == "atomic":
                raise Refusal("an atomic is read with atomicLoad")
            return self.read(found)
        if found is None or isinstance(found, Pointer):
            raise Refusal("a value is expected here")
        return found

    def bound(self, each: tree.Expression, frame: Frame) -> Bound | None:
        """What an expression stands for: a value, a place, a pointer, or nothing."""
        if isinstance(each, tree.Number):
            return literal(each.text)
        if isinstance(each, tree.Name):
            return self.named(each, frame)
        if isinstance(each, tree.Member):
            of = self.bound(each.of, frame)
            if of is None:
                raise Refusal("a value is expected here")
            return self.member(of, each.name)
        if isinstance(each, tree.Index):
            base = self.bound(each.of, frame)
            if base is None:
                raise Refusal("a value is expected here")
            return self.at(base, self.data(each.place, frame))
        if isinstance(each, tree.Unary):
            return self.unary(each, frame)
        if isinstance(each, tree.Binary):
            return self.chain(each, frame)
        return self.applied(each, frame)

    def chain(self, each: tree.Binary, frame: Frame) -> Data:
        """a + b + c + …, which may be long: from the left, without a call for each."""
        links = [each]
        while isinstance(links[-1].left, tree.Binary):
            links.append(links[-1].left)
        value = self.data(links[-1].left, frame)
        for link in reversed(links):
            if link.sign in ("&&", "||"):
                value = self.either(link, value, frame)
            else:
                value = self.operation(link.sign, value, self.data(link.right, frame))
        return value

    def named(self, each: tree.Name, frame: Frame) -> Bound:
        """A variable, a value or a constant."""
        if each.name in ("true", "false"):
            return Value(each.name, "bool")
        binding = frame.scope.get(each.name, self.globals.get(each.name))
        if binding is not None:
            return self.resolved(binding, each.at)
        declaration = self.module.names.get(each.name)
        if declaration is None or declaration.kind not in ("const", "override"):
            raise Refusal(f"`{each.name}` is not known here")
        if declaration.value == (0, 0):
            raise Refusal(f"override `{each.name}` has no value")
        if self.calls.count(each.name):
            raise Refusal(f"`{each.name}` is defined by itself")
        self.calls.append(each.name)
        value = self.data(Parser(self.source, declaration.value[0]).expression(), Frame({}))
        self.calls.pop()
        if declaration.type != (0, 0):
            value = self.as_type(value, self.types.at(declaration.type))
        return value

    def unary(self, each: tree.Unary, frame: Frame) -> Bound:
        """A sign before an expression."""
        operand = self.bound(each.operand, frame)
        if each.sign == "&":
            if not isinstance(operand, Place):
                raise Refusal("`&` needs a variable")
            return Pointer(operand)
        if each.sign == "*":
            if not isinstance(operand, Pointer):
                raise Refusal("`*` needs a pointer")
            return operand.to
        x = self.loaded(operand)
        if isinstance(x, int | float):
            return -x if each.sign == "-" else ~int(x)
        value = self.settled(x)
        if type_of(value).scalar not in _SIGNED[each.sign]:
            raise Refusal(f"`{each.sign}` of {type_of(value).name}")
        return self.lifted(lambda part: self.signed(each.sign, part), value)

    def either(self, each: tree.Binary, given: Data, frame: Frame) -> Value:
        """&& and ||: the right side is computed only where it matters, if it does anything."""
        left = self.truth(given)
        if not any(
            name in self.module.names or name.startswith("atomic") for name in called_names(each.right)
        ):
            return self.binary(each.sign, left, self.truth(self.data(each.right, frame)))
        place = self.variable(scalar_type("bool"))
        self.write(place, left)
        condition = left if each.sign == "&&" else self.signed("!", left)
        with self.code.when(condition.name):
            self.write(place, self.truth(self.data(each.right, frame)))
        return self.truth(self.read(place))

    def applied(self, each: tree.Call, frame: Frame) -> Bound | None:
        """A call."""
        name = each.callee.name
        declaration = self.module.names.get(name)
        if declaration is not None and declaration.kind == "fn":
            return self.user_function(declaration, each, frame)
        if declaration is None and not each.callee.template and _BARE.fullmatch(name):
            return self.untyped(name, [self.data(one, frame) for one in each.arguments])
        if self.types.is_type(name):
            return self.constructed(
                self.types.of(each.callee), [self.data(one, frame) for one in each.arguments]
            )
        if name == "bitcast":
            return self.bits_as(self.types.of(each.callee.template[0]), self.data(each.arguments[0], frame))
        if name == "arrayLength":
            return self.length(self.pointed(each.arguments[0], frame))
        if name.startswith("atomic"):
            return self.atomic(name, each, frame)
        if name in BARRIERS:
            raise Refusal(f"`{name}` is only translated as a statement of its own, or for a `let`")
        return self.function(name, [self.data(one, frame) for one in each.arguments])

    def pointed(self, each: tree.Expression, frame: Frame) -> Place:
        """What a pointer points to."""
        found = self.bound(each, frame)
        if isinstance(found, Pointer):
            return found.to
        raise Refusal("a pointer is expected: `&x`")

    def atomic(self, name: str, each: tree.Call, frame: Frame) -> Bound | None:
        """A function of atomics."""
        place = self.pointed(each.arguments[0], frame)
        if place.type.kind != "atomic":
            raise Refusal(f"`{name}` needs a pointer to an atomic")
        if not place.writable and name != "atomicLoad":
            raise Refusal("a variable that is only read is written to")
        scalar = place.type.scalar
        values = [self.scalar(self.data(one, frame), scalar) for one in each.arguments[1:]]
        if name == "atomicLoad":
            return self.read(place)
        if name == "atomicStore":
            self.write(place, values[0])
            return None
        if name == "atomicCompareExchangeWeak":
            pair = self.code(
                f"cmpxchg ptr {place.address}, i32 {values[0].name}, i32 {values[1].name} monotonic monotonic"
            )
            old = Value(self.code(f"extractvalue {{ i32, i1 }} {pair}, 0"), scalar)
            done = Value(self.code(f"extractvalue {{ i32, i1 }} {pair}, 1"), "bool")
            members = (("old_value", 0, scalar_type(scalar)), ("exchanged", 4, scalar_type("bool")))
            return Group(
                Type("struct", "__atomic_compare_exchange_result", 4, 8, members=members), (old, done)
            )
        if name not in _ATOMICS:
            raise Refusal(f"the function `{name}` is not translated for the cpu")
        word = _ATOMICS[name]
        if word in ("max", "min") and scalar == "u32":
            word = f"u{word}"
        old_name = self.code(f"atomicrmw {word} ptr {place.address}, i32 {values[0].name} monotonic")
        return Value(old_name, scalar)

    def result_of(self, declaration: Declaration) -> Type | None:
        """The type of a function's result."""
        return self.types.at(declaration.type) if declaration.type != (0, 0) else None

    def user_function(self, declaration: Declaration, call: tree.Call, frame: Frame) -> Bound | None:
        """A call of one of the text's own functions, which is written in its place."""
        name, body = declaration.name, self.body(declaration)
        if name in self.calls:
            raise Refusal(f"`{name}` calls itself")
        if len(call.arguments) != len(declaration.members):
            raise Refusal(f"`{name}` takes {len(declaration.members)} arguments, not {len(call.arguments)}")
        inner = Frame({}, self.result_of(declaration))
        for member, given in zip(declaration.members, call.arguments, strict=True):
            value = self.bound(given, frame)
            if not isinstance(value, Pointer):
                value = self.as_type(self.loaded(value), self.types.at(member.type))
            inner.scope[member.name] = value
        self.calls.append(name)
        if not returns_early(body):
            self.run(body.body, inner)
            self.calls.pop()
            return inner.value
        inner.end = self.code.new("returned")
        inner.place = self.variable(inner.result) if inner.result is not None else None
        with self.code.scope():
            self.run(body.body, inner)
        self.code.go(inner.end)
        self.code.label(inner.end)
        self.calls.pop()
        return self.read(inner.place) if inner.place is not None else None
