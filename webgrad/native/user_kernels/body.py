"""Statements of a user's kernel as LLVM's text: what one invocation does.

In: trees. Out: instructions in a `Function`. Control flow is branches. A loop counts its turns, so that one
that never ends is left. What is not translated is refused by name, with its line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import cast

from ..translation import tree
from .expressions import Binding, Expressions, Frame
from .trees import names_in
from .types import Type
from .values import Data, Place, Pointer, Refusal, type_of

MAX_LINES = 400_000  # of text
ENDLESS, DISAGREED = 1, 2  # why a kernel stopped
_MISTAKES = (LookupError, TypeError, ValueError, AttributeError, AssertionError, StopIteration, OverflowError)


class Body(Expressions):
    """Writes what one invocation does. The subclass says where variables of invocations lie."""

    def allocated(self, each: tree.Declare, type: Type) -> Binding:
        """Where a new variable lies."""
        raise NotImplementedError

    def invocation_ends(self) -> None:
        """`return` of the entry point."""
        raise NotImplementedError

    @contextmanager
    def guarded(self, at: int) -> Iterator[None]:
        """Write something, and say where what is refused stands."""
        if len(self.code.lines) > MAX_LINES:
            raise self.source.error(at, "the kernel is too long for the cpu, with all functions put in")
        try:
            yield
        except Refusal as refusal:
            raise self.source.error(at, str(refusal)) from None
        except RecursionError:
            raise self.source.error(at, "this is nested too deep for the cpu: split it with `let`") from None
        except _MISTAKES:  # there is no type checker here, as compilers for GPUs are
            raise self.source.error(at, "this is not WGSL, or is not translated for the cpu") from None

    def statements(self, block: tree.Block, frame: Frame) -> None:
        """Statements in a scope of their own."""
        self.run(block.body, replace(frame, scope=dict(frame.scope)))

    def run(self, body: Sequence[tree.Statement], frame: Frame) -> None:
        """Statements; behind a jump there are none."""
        for each in body:
            with self.guarded(each.at):
                self.statement(each, frame)
            if isinstance(each, tree.Jump | tree.Return):
                break

    def statement(self, each: tree.Statement, frame: Frame) -> None:
        """One statement."""
        _STATEMENTS[type(each)](self, each, frame)

    def declare(self, each: tree.Declare, frame: Frame) -> None:
        type = self.types.of(each.type) if each.type is not None else None
        if each.keyword != "var":
            assert each.value is not None
            found = self.bound(each.value, frame)
            value: Binding = found if isinstance(found, Pointer) else self.loaded(found)
            if type is not None and not isinstance(found, Pointer) and type.kind != "pointer":
                value = self.as_type(cast(Data, value), type)
            elif each.keyword == "let" and not isinstance(found, Pointer):
                value = self.settled(cast(Data, value))
            frame.scope[each.name] = value
            return
        given = None if each.value is None else self.data(each.value, frame)
        if type is None:
            type = type_of(self.settled(given if given is not None else 0))
        made = self.allocated(each, type)
        self.fill(cast(Place, self.resolved(made, each.at)), given)
        frame.scope[each.name] = made

    def fill(self, place: Place, value: Data | None) -> None:
        """The first value of a variable: 0 unless one is given."""
        if value is not None:
            self.write(place, value)
            return
        self.clear(place.address, place.type.size)

    def clear(self, address: str, bytes: int) -> None:
        """Make memory 0."""
        self.code.do(f"call void @llvm.memset.p0.i64(ptr {address}, i8 0, i64 {bytes}, i1 false)")

    def assign(self, each: tree.Assign, frame: Frame) -> None:
        target = self.bound(each.target, frame)
        if not isinstance(target, Place):
            raise Refusal("only variables, and one element of a vector, are assigned to")
        if target.type.kind == "atomic":
            raise Refusal("an atomic is written with atomicStore")
        value = self.data(each.value, frame)
        if each.sign:
            value = self.operation(each.sign, self.read(target), value)
        self.write(target, value)

    def evaluate(self, each: tree.Evaluate, frame: Frame) -> None:
        self.bound(each.value, frame)

    def when(self, each: tree.If, frame: Frame) -> None:
        condition = self.truth(self.data(each.condition, frame))
        for holds in self.code.either(condition.name):
            self.statements(each.yes if holds else each.no, frame)

    def stop_if(self, condition: str, status: int) -> None:
        """Leave the kernel with a status."""
        bad, well = (self.code.new(letter) for letter in ("bad", "well"))
        self.code.branch(condition, bad, well)
        self.code.label(bad)
        self.code.do(f"store atomic i64 {status}, ptr {self.status} monotonic, align 8")
        self.code.go("stop")
        self.code.label(well)

    def turn(self) -> None:
        """Count a turn of a loop: one that never ends must not hang."""
        left = self.code(f"sub i64 {self.code(f'load i64, ptr {self.turns}')}, 1")
        self.code.do(f"store i64 {left}, ptr {self.turns}")
        self.stop_if(self.code(f"icmp slt i64 {left}, 0"), ENDLESS)

    def repeat(self, each: tree.Loop, frame: Frame) -> None:
        code = self.code
        head, body, again, end = (code.new(letter) for letter in ("head", "body", "again", "end"))
        self.code.go(head)
        code.label(head)
        self.turn()
        if each.condition is None:
            self.code.go(body)
        else:
            condition = self.truth(self.data(each.condition, frame))
            code.branch(condition.name, body, end)
        code.label(body)
        inner = replace(frame, leave=end, again=again, scope=dict(frame.scope))
        with self.code.scope():
            self.run(each.body.body, inner)
            self.code.go(again)
        code.label(again)
        with self.code.scope():
            self.continuing(each, inner)
            if each.leave is None:
                self.code.go(head)
            else:
                leave = self.truth(self.data(each.leave, inner))
                code.branch(leave.name, end, head)
        code.label(end)

    def continuing(self, each: tree.Loop, frame: Frame) -> None:
        """What runs after each turn; it sees the variables of the body, but not its values, which a
        `continue` may have passed by.
        """
        used = set(names_in((each.continuing, each.leave)))
        for name in used & {one.name for one in each.body.body if isinstance(one, tree.Declare)}:
            if not isinstance(frame.scope.get(name), Place | int | float):
                raise Refusal(f"`{name}`, a value of the loop's body, is used in `continuing`: make it a var")
        self.run(each.continuing.body, frame)

    def switch(self, each: tree.Switch, frame: Frame) -> None:
        code, value = self.code, self.scalar(self.data(each.value, frame))
        end = code.new("end")
        inner = replace(frame, leave=end)
        default = end
        labels = [code.new("case") for _ in each.cases]
        for label, (selectors, _) in zip(labels, each.cases, strict=True):
            for selector in selectors:
                if selector is None:
                    default = label
                    continue
                wanted = self.scalar(self.data(selector, frame), value.scalar)
                same, other = self.binary("==", value, wanted), code.new("other")
                code.branch(same.name, label, other)
                code.label(other)
        self.code.go(default)
        for label, (_, block) in zip(labels, each.cases, strict=True):
            code.label(label)
            with self.code.scope():
                self.statements(block, inner)
            self.code.go(end)
        code.label(end)

    def jump(self, each: tree.Jump, frame: Frame) -> None:
        target = frame.leave if each.keyword == "break" else frame.again
        if not target:
            raise Refusal(f"`{each.keyword}` is outside of a loop")
        self.code.go(target)
        self.code.label(self.code.new("dead"))

    def give(self, each: tree.Return, frame: Frame) -> None:
        if each.value is not None:
            value = self.data(each.value, frame)
            if frame.result is None:
                raise Refusal("this function has no result")
            value = self.as_type(value, frame.result)
            if frame.place is None:
                frame.value = value
                return
            self.write(frame.place, value)
        elif self.calls and not frame.end:
            return
        if not self.calls:
            self.invocation_ends()
        elif frame.end:
            self.code.go(frame.end)
        self.code.label(self.code.new("dead"))


_STATEMENTS: dict[type, Callable[..., None]] = {
    tree.Declare: Body.declare,
    tree.Assign: Body.assign,
    tree.Evaluate: Body.evaluate,
    tree.If: Body.when,
    tree.Loop: Body.repeat,
    tree.Switch: Body.switch,
    tree.Jump: Body.jump,
    tree.Return: Body.give,
    tree.Block: Body.statements,
}
