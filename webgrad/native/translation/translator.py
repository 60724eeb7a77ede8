"""WGSL's expressions and the functions of `wgsl/library*.wgsl` as LLVM's text, for any number of lanes.

In: the texts that kernels for GPUs are made of, and values. Out: instructions in a `Function`. So an op's
meaning stays in its row. Functions are written in place of their calls. A condition may differ from lane to
lane: what it guards is then computed for all lanes, and kept in those where it is true. Numbers are IEEE's;
sums of products in functions of the library may be fused, which the library neither relies on nor minds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple, cast

from ...errors import CompileError
from ...wgsl import library
from ...wgsl.source import Source
from ...wgsl.syntax import parse_module
from ..text import Function
from ..value import Value, constant, llvm_type
from . import tree
from .expressions import Bound, Expressions, Names, Operand, Pointer, Variable, Vector
from .parser import Parser

__all__ = ["Parsed", "Translator", "parsed_functions"]


class Parsed(NamedTuple):
    """A parsed function."""

    parameters: tuple[str, ...]
    body: tree.Block
    source: Source


def parsed_functions(text: str) -> dict[str, Parsed]:
    """The functions of a text by name."""
    source = Source(text)
    return {
        each.name: Parsed(
            tuple(member.name for member in each.members), Parser(source, each.value[0]).block(), source
        )
        for each in parse_module(source).declarations
        if each.kind == "fn"
    }


@cache
def library_function(name: str) -> Parsed:
    """A function of the library for one lane: `wg_exp`, or `wg_turn_far_f64` as wg_turn_far_f64_1."""
    text = library.written(name)
    return next(iter(parsed_functions(text).values()))


@dataclass(slots=True)
class _Frame(Names):
    """A function that is being written: its names, its lanes, and where lanes note that they have left."""

    width: int = 0
    result: Operand | Pointer | None = None
    place: Variable | None = None  # of the result, where some lanes return before others
    returned: Variable | None = None
    stops: tuple[Variable, ...] = ()  # lanes that returned, or left the loop or its turn
    jumps: dict[str, Variable] = field(default_factory=dict)  # break and continue of the loop around


class Translator(Expressions):
    """WGSL over values: operators and builtins (`arithmetic.py`), expressions, calls and statements."""

    def __init__(self, code: Function, function: Callable[[str], Parsed] = library_function) -> None:
        super().__init__(code)
        self.function = function

    def call(self, name: str, args: Sequence[Bound]) -> Value:
        """A function of the library applied to values."""
        made = self.called(name, args)
        if not isinstance(made, Value):
            raise CompileError(f"{name} gives no number")
        return made

    def called(self, name: str, args: Sequence[Bound]) -> Bound | None:
        """The result of a function, if it has one; vectors of four of a function for four are its parts."""
        instead = _NATIVE.get(name) or _NATIVE_BOTH.get(name.removesuffix("_f64"))
        if instead is not None:
            return instead(self, *[self.concrete(cast(Operand, each)) for each in args])
        if name.endswith("_4") and any(isinstance(each, Vector) for each in args):
            return self.lifted(lambda *parts: self.call(name[:-2], parts), *cast(Sequence[Operand], args))
        function = self.function(name)
        lanes = [each.to if isinstance(each, Pointer) else each for each in args]
        width = max(
            (each.width for each in [*lanes, self.mask] if isinstance(each, Value | Variable)), default=0
        )
        frame = _Frame(function.source, dict(zip(function.parameters, args, strict=True)), width)
        with self.fusing(True), self.masked(self.mask):
            if _returns_early(function.body):
                frame.returned = self.flags_of_lanes(width)
                frame.stops = (frame.returned,)
            self.statements(function.body, frame)
        return self.load(frame.place) if frame.place else frame.result

    # Statements

    def store(self, variable: Variable, value: Value) -> None:
        """A variable's value from now on, in the lanes that are active."""
        if self.mask is not None:
            value = self.choose(self.mask, value, self.load(variable))
        value = self.code.splat(value, variable.width)
        self.code.do(f"store {value.type} {value.name}, ptr {variable.place}")

    def declared(self, value: Value, width: int) -> Variable:
        """A new variable."""
        value = self.code.splat(value, width)
        return Variable(self.code.variable(value.type, value.name), value.scalar, value.width)

    def flags_of_lanes(self, width: int) -> Variable:
        """A variable that is false in every lane."""
        return self.declared(Value("false", "bool"), width)

    def statements(self, block: tree.Block, frame: _Frame) -> None:
        """Statements, in a scope of their own. Behind one that may jump, fewer lanes may be active."""
        outer, before = frame.scope, self.mask
        frame.scope = dict(outer)
        for each in block.body:
            self.statement(each, frame)
            if isinstance(each, tree.Return | tree.Jump):
                break
            if frame.stops and _has(each, tree.Return, tree.Jump):
                self.mask = self.without(before, frame.stops)
        frame.scope, self.mask = outer, before

    def statement(self, each: tree.Statement, frame: _Frame) -> None:
        """One statement."""
        write = _STATEMENTS.get(type(each))
        if write is None:
            raise frame.source.error(each.at, f"{type(each).__name__.lower()} is not translated")
        write(self, each, frame)

    def declare(self, each: tree.Declare, frame: _Frame) -> None:
        """A let, const or var."""
        if each.value is None:
            raise frame.source.error(each.at, f"`{each.name}` needs a value")
        value = self.argument(each.value, frame)
        if each.keyword == "var" and not isinstance(value, Vector | Pointer):
            value = self.declared(self.concrete(cast(Operand, value)), frame.width)
        frame.scope[each.name] = value

    def assign(self, each: tree.Assign, frame: _Frame) -> None:
        """A value for a variable."""
        target = self.bound(each.target, frame)
        if not isinstance(target, Variable):
            raise frame.source.error(each.at, "only variables are assigned to")
        value = self.value(each.value, frame)
        if each.sign:
            value = self.operation(each.sign, self.load(target), value)
        self.store(target, self.concrete(value, target.scalar))

    def evaluate(self, each: tree.Evaluate, frame: _Frame) -> None:
        """A call for its effect."""
        self.bound(each.value, frame)

    def when(self, each: tree.If, frame: _Frame) -> None:
        """if and else: a branch where the condition is one for all lanes."""
        condition = self.concrete(self.value(each.condition, frame))
        if condition.width:
            for wanted, block in ((condition, each.yes), (self.signed("!", condition), each.no)):
                if block.body:
                    with self.masked(self.both(self.mask, wanted)):
                        self.statements(block, frame)
            return
        if each.no.body:
            for holds in self.code.either(condition.name):
                self.statements(each.yes if holds else each.no, frame)
        else:
            with self.code.when(condition.name):
                self.statements(each.yes, frame)

    def repeat(self, each: tree.Loop, frame: _Frame) -> None:
        """A loop: goes on while a lane is active. Lanes for which it has ended wait."""
        code = self.code
        head, body, end = (code.new(each) for each in ("head", "body", "end"))
        live = self.declared(self.mask or Value("true", "bool"), frame.width)
        code.go(head)
        code.label(head)
        outer, stops, jumps = self.mask, frame.stops, frame.jumps
        waits = outer is not None or _has(each, tree.Return, tree.Jump) or each.leave is not None
        self.mask = self.load(live) if waits else None
        condition = Value("true", "bool")
        if each.condition is not None:
            condition = self.concrete(self.value(each.condition, frame))
        if waits or condition.width:
            self.mask = self.both(self.mask if waits else self.load(live), condition)
            condition = self.builtin("any", [self.mask])
        code.branch(condition.name, body, end)
        code.label(body)
        with code.scope():
            active = self.mask
            if _has(each.body, tree.Jump):
                frame.jumps = {word: self.flags_of_lanes(frame.width) for word in ("break", "continue")}
                frame.stops = (*((frame.returned,) if frame.returned else ()), *frame.jumps.values())
            self.statements(each.body, frame)
            lasting = tuple(one for one in frame.stops if one is not frame.jumps.get("continue"))
            if active is not None:
                self.mask = self.without(active, lasting)
            self.statements(each.continuing, frame)
            if each.leave is not None:
                leave = self.signed("!", self.concrete(self.value(each.leave, frame)))
                self.mask = self.both(self.mask, leave)
            if self.mask is not None:
                left, self.mask = self.mask, None
                self.store(live, left)
        self.mask, frame.stops, frame.jumps = outer, stops, jumps
        code.go(head)
        code.label(end)

    def jump(self, each: tree.Jump, frame: _Frame) -> None:
        """The active lanes leave the loop, or its turn."""
        self.store(frame.jumps[each.keyword], Value("true", "bool"))

    def give(self, each: tree.Return, frame: _Frame) -> None:
        """The active lanes have their result."""
        value = None if each.value is None else self.argument(each.value, frame)
        if frame.returned is None:
            frame.result = cast("Operand | Pointer | None", value)
            return
        if value is not None:
            made = self.concrete(cast(Operand, value))
            if frame.place is None:
                type = llvm_type(made.scalar, frame.width)
                frame.place = Variable(self.code.variable(type), made.scalar, frame.width)
            self.store(frame.place, made)
        self.store(frame.returned, Value("true", "bool"))

    # Lanes

    @contextmanager
    def masked(self, mask: Value | None) -> Iterator[None]:
        """With other lanes active."""
        outer, self.mask = self.mask, mask
        yield
        self.mask = outer

    def both(self, a: Value | None, b: Value) -> Value:
        """The lanes in which two conditions are true; None is all lanes."""
        return b if a is None else self.binary("&", a, b)

    def without(self, mask: Value | None, stops: Sequence[Variable]) -> Value | None:
        """The lanes of a mask that have not left."""
        for each in stops:
            mask = self.both(mask, self.signed("!", self.load(each)))
        return mask


_STATEMENTS: dict[type, Callable[..., None]] = {
    tree.Declare: Translator.declare,
    tree.Assign: Translator.assign,
    tree.Evaluate: Translator.evaluate,
    tree.If: Translator.when,
    tree.Loop: Translator.repeat,
    tree.Jump: Translator.jump,
    tree.Return: Translator.give,
    tree.Block: Translator.statements,
}


def _has(each: object, *kinds: type) -> bool:
    """Whether a statement has one of these kinds in it."""
    if isinstance(each, kinds):
        return True
    return isinstance(each, tuple) and any(_has(part, *kinds) for part in each)


def _returns_early(body: tree.Block) -> bool:
    return any(_has(each, tree.Return) for each in body.body if not isinstance(each, tree.Return))


# Functions that look at bits, as compilers for GPUs assume that there are no NaN. LLVM does not.
def _scale(t: Translator, x: Value, n: Value) -> Value:
    """x 2^n, which may be subnormal: in two steps, of which the first is exact."""
    half = t.binary(">>", n, constant("u32", 1))
    for part in (half, t.binary("-", n, half)):
        exponent = t.binary("+", part, constant("i32", 127))
        x = t.binary("*", x, t.bitcast("f32", t.binary("<<", exponent, constant("u32", 23))))
    return x


_NATIVE: Mapping[str, Callable[..., Value]] = {"wg_scale": _scale}  # of float64 it is as wanted
_NATIVE_BOTH: Mapping[str, Callable[..., Value]] = {
    "wg_equal": lambda t, a, b: t.binary("==", a, b),
    "wg_not_equal": lambda t, a, b: t.binary("!=", a, b),
    "wg_less": lambda t, a, b: t.binary("<", a, b),
    "wg_less_equal": lambda t, a, b: t.binary("<=", a, b),
    "wg_greater": lambda t, a, b: t.binary(">", a, b),
    "wg_greater_equal": lambda t, a, b: t.binary(">=", a, b),
    "wg_isnan": lambda t, x: t.binary("!=", x, x),
    "wg_maximum": lambda t, a, b: t.choose(t.binary("!=", a, a), a, t.builtin("max", [a, b])),
    "wg_minimum": lambda t, a, b: t.choose(t.binary("!=", a, a), a, t.builtin("min", [a, b])),
    "wg_abs": lambda t, x: t.builtin("abs", [x]),
    "wg_negative": lambda t, x: t.signed("-", x),
    # By bits, LLVM 22 makes wrong code of it for AVX-512: tanh(4.0) in bfloat16 was -1.
    "wg_with_sign": lambda t, size, sign: t.like("copysign", *t.code.level(size, sign)),
    "wg_round": lambda t, x: t.builtin("round", [x]),  # of float64: Mesa's is wrong
    "wg_trunc": lambda t, x: t.builtin("trunc", [x]),
}
