"""From kernel IR to LLVM's text: loops marked as lanes are widened here.

In: a `Kernel` of `lower/lanes.py` and a processor. Out: the text of `kernel(fields, begin, end)`, and the
sizes that it finds in its fields: the slot for helpers, an address for each buffer, the scalars, the sizes,
i64 each. Registers, folds and loops are here; `lane_values.py` has values, `lane_memory.py` loads and stores.
A loop in which guards hold in most lanes is written twice: with them and without.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

from ..lower.ir import Hole, Instruction, Kernel, Size, Work
from .jobs import FIRST_FIELD, kernel_function
from .lane_memory import LaneMemory
from .lane_values import OWN, TRUE, Linear, Register
from .processor import Processor
from .text import LANES, Function, module
from .value import SCALARS, Value, constants, llvm_type, number

WIDE = 64  # the same where lanes are rows of short folds, so that long runs of memory are read
COPIES = 4  # of an accumulator, where a fold is little work
LITTLE = 10
FAR = 4  # elements from lane to lane from which squares are transposed
MOST_TWICE = 400  # instructions of a loop that is written with and without guards
_BLOCKS = ("loop", "if")


class Program(NamedTuple):
    """A module whose function is `kernel(fields, begin, end)`, and what it is run with: units of work, what
    one costs, its fields after the first, and bytes of memory that only a run needs. `packs`: the
    buffer of the IR of whose matrix it packs panels, and what these depend on: it may be done before.
    """

    text: str
    units: int
    cost: int
    fields: tuple[Field, ...]
    scratch: int = 0
    packs: tuple[Any, ...] = ()


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
    lanes = max(LANES, min(WIDE, 1 << (max(work.rows, 1) - 1).bit_length()))
    text = _Emitter(kernel, kernel.body, kernel_function(), processor, lanes, FIRST_FIELD, sizes).text()
    return Program(module(text), work.units, work.cost, fields_of(kernel, sizes))


def fields_of(kernel: Kernel, sizes: Sequence[int]) -> tuple[Field, ...]:
    """The fields that a kernel's functions look into: its buffers, its scalars, its sizes."""
    buffers = [Field("buffer", 0, at) for at in range(len(kernel.buffers))]
    scalars = [Field("scalar", 0, at) for at in range(len(kernel.scalars))]
    return (*buffers, *scalars, *[Field("number", int(each)) for each in sizes])


def hole_text(
    kernel: Kernel,
    hole: Hole,
    code: Function,
    processor: Processor,
    lanes: int,
    first: int,
    sizes: list[Size],
) -> str:
    """The function of a hole; its fields begin at `first`, and sizes are added to those of other holes."""
    return _Emitter(kernel, hole.body, code, processor, lanes, first, sizes).text(private=True)


class _Emitter(LaneMemory):
    """A kernel while it is written."""

    def text(self, *, private: bool = False) -> str:
        for at, buffer in enumerate(self.kernel.buffers):
            own = OWN.get(buffer.value)
            self._buffers.append(own or self.code.field("ptr", self._first + at))
        self._run(self._instructions)
        return self.code.text(private=private)

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

    # Registers and folds

    def register(self, each: Instruction) -> Register:
        start = self.code.splat(self._plain(each.args[0]), self._width)
        return Register(self.code.variable(start.type, start.name), start.scalar, self._width)

    def _register(self, each: Instruction) -> Register:
        found = self._values[id(each)]
        assert isinstance(found, Register)
        return found

    def read(self, each: Instruction) -> Value:
        return self._read(self._register(each.args[0]))

    def _read(self, register: Register) -> Value:
        type = llvm_type(register.scalar, register.width)
        return Value(self.code(f"load {type}, ptr {register.place}"), register.scalar, register.width)

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
        elif each.data == "tile" and self._width and self._mask is None:
            self._tile(each, start, stop, body)
        else:
            outer, carried = self._accumulators, self._carried(body)
            self._accumulators = outer | {id(fold.args[0]): self._totals(fold, COPIES) for fold in carried}
            self._for(start, stop, step, lambda index: self._body(each, Linear(index), body))
            for fold in carried:
                self._gathered(fold)
            self._accumulators = outer

    def _carried(self, body: list[Instruction]) -> list[Instruction]:
        """Folds whose lanes keep their totals from turn to turn: nothing else in a loop uses them."""
        if self._width:
            return []
        found: dict[int, Instruction] = {}
        barred, widened = set(self._accumulators), list[Instruction]()
        for each in body:
            if each.op == "loop" and (widened or each.data == "lanes"):
                widened.append(each)
            elif widened and each.op == "end_loop" and each.args[0] is widened[-1]:
                widened.pop()
            elif each.op in ("fold", "read", "write"):
                key = id(each.args[0])
                same = each.op == "fold" and found.get(key, each).data is each.data
                if widened and same and key in self._values:
                    found[key] = each
                else:
                    barred.add(key)
        return [fold for key, fold in found.items() if key not in barred]

    def _totals(self, fold: Instruction, copies: int) -> list[str]:
        """Accumulators of a fold, in lanes."""
        scalar = self._register(fold.args[0]).scalar
        identity = Value(number(scalar, _identity(fold.data.name, scalar)), scalar)
        start = self.code.splat(identity, self.lanes)
        return [self.code.variable(start.type, start.name) for _ in range(copies)]

    def _body(self, each: Instruction, index: Linear, body: list[Instruction]) -> None:
        before = dict(self._values)
        self._values[id(each)] = index
        with self.code.scope():
            rest, guards = self._guards_first(each, body)
            if guards:
                self._in_two_versions(rest, guards)
            else:
                self._run(rest)
        self._values = before

    # Tiles

    def _tile(self, each: Instruction, start: str, stop: str, body: list[Instruction]) -> None:
        """A loop over rows in lanes: what lies side by side along rows, not lanes, is loaded by squares."""

        def row(index: str) -> None:
            self._body(each, Linear(index), body)

        def rows(first: str) -> None:
            outer = self._squares
            self._squares = outer | {
                id(load): (self._square(load.data, index), first, each)
                for load, index in self._far_loads(each, first, body)
            }
            self._for(first, self._folded("+", first, str(self._width)), "1", row)
            self._squares = outer

        if any(self._far_loads(each, start, body)):
            start = self._for(start, stop, str(self._width), rows, whole=True)
        self._for(start, stop, "1", row)

    def _far_loads(
        self, loop: Instruction, row: str, body: list[Instruction]
    ) -> list[tuple[Instruction, Linear]]:
        """Loads whose lanes are far apart, and whose next row is the next element; and where they are in a
        row.
        """
        before = dict(self._values)
        self._values[id(loop)] = Linear(row)
        found = []
        for each in _own_instructions(body):
            if each.op in ("const", "arithmetic") and all(id(arg) in self._values for arg in each.args):
                self._values[id(each)] = getattr(self, each.op)(each)
            elif each.op == "load" and len(each.args) == 1 and _slope(each.args[0], loop) == 1:
                index = self._values.get(id(each.args[0]))
                if isinstance(index, Linear) and index.stride > FAR:
                    found.append((each, index))
        self._values = before
        return found

    # Guards

    def _guards_first(
        self, loop: Instruction, body: list[Instruction]
    ) -> tuple[list[Instruction], dict[int, str]]:
        """Write the comparisons of a loop's own indices; gives what is left of its body, and under which
        condition each of them holds in all lanes.
        """
        own = _own_instructions(body)
        guards = [each for each in own if each.op == "compare" and each.data == "<"]
        scalar = loop.data == "lanes" and not self._width
        if not guards or self._mask is not None or scalar or len(body) > MOST_TWICE:
            return body, {}
        done: set[int] = set()
        for each in own:
            if each.op in ("const", "arithmetic", "compare") and (
                each.op == "const" or all(id(arg) in self._values for arg in each.args)
            ):
                self._values[id(each)] = getattr(self, each.op)(each)
                done.add(id(each))
        found: dict[int, str] = {}
        for each in guards:
            test = self._holds_in_all(each) if id(each) in done else None
            if test is not None:
                found[id(each)] = test
        return [each for each in body if id(each) not in done], found

    def _holds_in_all(self, guard: Instruction) -> str | None:
        """Whether a comparison holds in all lanes, if that is plain from the first and the last."""
        made, (index, size) = self._values[id(guard)], (self._values[id(arg)] for arg in guard.args)
        if isinstance(made, Value) and not made.width:
            return made.name
        if not (isinstance(index, Linear) and index.stride > 0 and self._is_uniform(size)):
            return None
        last = self._folded("+", index.base, str(index.stride * (self._width - 1)))
        stop = self._i64(guard.args[1])
        first, last = (self.code(f"icmp ult i64 {each}, {stop}") for each in (index.base, last))
        return self.code(f"and i1 {first}, {last}")

    def _in_two_versions(self, body: list[Instruction], guards: dict[int, str]) -> None:
        """A loop's body: without guards where all of them hold in all lanes, else with them."""
        all_hold, *others = guards.values()
        for each in others:
            all_hold = self.code(f"and i1 {all_hold}, {each}")
        for holds in self.code.either(all_hold):
            before = dict(self._values)
            self._values.update(dict.fromkeys(guards if holds else (), TRUE))
            self._run(body)
            self._values = before

    def _for(
        self, start: str, stop: str, step: str, body: Callable[[str], None], *, whole: bool = False
    ) -> str:
        """for index in range(start, stop, step), without a last incomplete step if `whole`; gives the index
        at which it ended.
        """
        counter = self.code.variable("i64", start)
        with self.code.count(counter, stop, step, whole=whole) as index:
            body(index)
        return self.code(f"load i64, ptr {counter}")

    def _lanes(self, each: Instruction, start: str, stop: str, body: list[Instruction]) -> None:
        """A widened loop: whole vectors, then what is left by a mask, or one by one."""
        lanes = self.lanes
        folds = {id(x.args[0]): x for x in body if x.op == "fold" and id(x.args[0]) in self._values}
        little = sum(x.op in ("apply", "load", "cast") for x in body) <= LITTLE
        copies = COPIES if folds and little and all(x.op != "loop" for x in body) else 1
        outer = self._accumulators
        own = {key: fold for key, fold in folds.items() if key not in outer}
        self._accumulators = outer | {key: self._totals(fold, copies) for key, fold in own.items()}
        carries = copies > 1 and len(own) < len(folds)  # then few elements are added to many accumulators

        straight = all(x.op != "loop" for x in body)

        def vector(index: str, copy: int = 0) -> None:
            self._width, self._copy, self._goes_straight = lanes, copy, straight
            self._body(each, Linear(index, 1), body)
            self._width, self._goes_straight = 0, False

        def vectors(index: str, count: int) -> None:
            for copy in range(count):
                vector(self._folded("+", index, str(copy * lanes)), copy)

        at = start
        for count in (copies, copies // 2) if carries else (copies,) if copies > 1 else ():
            at = self._for(at, stop, str(count * lanes), partial(vectors, count=count), whole=True)
        at = self._for(at, stop, str(lanes), partial(vector, copy=copies - 2 if carries else 0), whole=True)
        if self._masked:
            self._rest(at, stop, partial(vector, copy=copies - 1 if carries else 0))
        for fold in own.values():
            self._gathered(fold)
        self._accumulators = outer
        if not self._masked:
            self._for(at, stop, "1", lambda index: self._body(each, Linear(index), body))

    def _rest(self, at: str, stop: str, vector: Callable[[str], None]) -> None:
        code, lanes = self.code, self.lanes
        with code.when(code(f"icmp slt i64 {at}, {stop}")):
            count = code(f"trunc i64 {code(f'sub i64 {stop}, {at}')} to i32")
            left = code.spread("i32", count, lanes)
            steps = constants("i32", range(lanes))
            self._mask = Value(code(f"icmp ult <{lanes} x i32> {steps}, {left}"), "bool", lanes)
            vector(at)
            self._mask = None

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

        def joined(lanes: int, *halves: str) -> str:
            return self._applied(fold.data, [Value(each, scalar, lanes) for each in halves], scalar).name

        one = Value(code.folded(SCALARS[scalar], self.lanes, totals[0].name, joined), scalar)
        made = self._applied(fold.data, [self._read(register), one], scalar)
        code.do(f"store {made.type} {made.name}, ptr {register.place}")


def _slope(index: Instruction, loop: Instruction) -> int | None:
    """How much an index grows from turn to turn of a loop; None: not by one number."""
    if index is loop:
        return 1
    if index.op in ("const", "loop", "thread", "scalar", "argument"):
        return 0
    if index.op != "arithmetic":
        return None
    a, b = (_slope(each, loop) for each in index.args)
    if a is None or b is None:
        return None
    if index.data in "+-":
        return a + b if index.data == "+" else a - b
    if index.data == "*" and (a or b):
        factor = index.args[1 if a else 0]
        return (a or b) * int(factor.data) if factor.op == "const" else None
    return 0 if not a and not b else None


def _own_instructions(body: Sequence[Instruction]) -> list[Instruction]:
    """Those of a loop's body that are not in a loop inside."""
    depth, found = 0, []
    for each in body:
        depth -= each.op.startswith("end_")
        if not depth:
            found.append(each)
        depth += each.op in _BLOCKS
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
