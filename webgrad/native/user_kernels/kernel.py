"""A user's WGSL kernel as LLVM's text: `kernel(fields, begin, end)` runs the workgroups from begin to end.

In: a Program. Out: a module's text. The invocations of a workgroup run one after the other, each up to the
next barrier: between barriers a *region* is a loop over them, and what a region leaves to later ones lies in
memory, once for each invocation. Control flow around a barrier must be uniform; where invocations disagree,
the kernel stops and says so. It stops too where a workgroup's loops turn more than MAX_TURNS times. Indices
are clamped, so nothing outside of a buffer is read or written.

Fields (i64 each), from FIRST_FIELD on: the address of the status (0: well), buffers' addresses, their sizes
in bytes, the address of the parameters, the grid's three sides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import NamedTuple, cast

from ...wgsl.program import Program
from ...wgsl.syntax import PARAM_SPACES, Declaration, Member
from ..jobs import FIRST_FIELD
from ..text import module
from ..translation import tree
from ..translation.parser import Parser
from ..value import Value, constant
from .body import DISAGREED, Body
from .expressions import BARRIERS, Argument, Binding, Frame, Kept
from .trees import called_names, escapes, names_in, returns_early
from .types import Type, vector_type
from .values import Bound, Data, Group, Place, Pointer, Refusal, type_of

MAX_TURNS = 1 << 32  # of all loops of one workgroup: seconds, after which a GPU's driver has given up too
MAX_BYTES = 1 << 18  # of workgroup memory and of what invocations keep across barriers: it lies on the stack


class Written(NamedTuple):
    """A kernel's text, and about how much one workgroup has to do."""

    text: str
    cost: int


@lru_cache(maxsize=256)
def written(program: Program) -> Written:
    """The module of a user's kernel, with the function `kernel`; what is not translated is refused."""
    writer = KernelWriter(program)
    return Written(writer.text(), writer.invocations * len(writer.code.lines))


class KernelWriter(Body):
    """Writes one entry point."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self.sizes = program.workgroup_size
        self.invocations = self.sizes[0] * self.sizes[1] * self.sizes[2]
        self.invocation = ""  # its number, in the region that is being written
        self.latch = ""  # where the turn of the loop over invocations ends
        self.bytes = 0
        self.keeping: tree.Declare | None = None  # of the variables, the one that later regions need
        self.grid: list[Value] = []
        self.group: list[Value] = []
        self.done = ""  # for each invocation, whether it has returned
        self.live = self.code.variable("i32")  # how many have not

    def text(self) -> str:
        """The function."""
        with self.guarded(self.entry.index):
            self._whole()
        return module(self.code.text(private=False))

    def _whole(self) -> None:
        code = self.code
        self.status = self.field(0, "ptr")
        self.bind_buffers()
        grid = [self.field(2 * len(self.program.bindings) + 2 + at, "i64") for at in range(3)]
        self.grid = [self._word(each) for each in grid]
        with self.counted("%begin", "%end") as number:
            status = code(f"load atomic i64, ptr {self.status} monotonic, align 8")
            code.branch(code(f"icmp eq i64 {status}, 0"), "work", "stop")
            code.label("work")
            code.do(f"store i64 {MAX_TURNS}, ptr {self.turns}")
            row = code(f"udiv i64 {number}, {grid[0]}")
            ids = [code(f"urem i64 {number}, {grid[0]}"), code(f"urem i64 {row}, {grid[1]}")]
            self.group = [self._word(each) for each in [*ids, code(f"udiv i64 {row}, {grid[1]}")]]
            self.workgroup()
        self.code.go("stop")
        code.label("stop")

    def _word(self, number: str) -> Value:
        """An i64 as u32."""
        return Value(self.code(f"trunc i64 {number} to i32"), "u32")

    # Variables

    def field(self, number: int, kind: str) -> str:
        """One of the numbers that a launch has."""
        return self.code.field(kind, FIRST_FIELD + number)

    def variables_of(self, *spaces: str) -> list[Declaration]:
        """The module's variables in these address spaces."""
        found = [each for each in self.module.declarations if each.kind == "var" and each.spaces]
        return [each for each in found if each.spaces[0] in spaces]

    def bind_buffers(self) -> None:
        """Storage, parameters, and the memory of a workgroup."""
        count = len(self.program.bindings)
        places = {each.name: at for at, each in enumerate(self.program.bindings)}
        for each in self.variables_of("storage"):
            at, type = places[each.name], self.types.at(each.type)
            length = self.elements(type, self.field(1 + count + at, "i64"))
            writable = self.program.bindings[at].access == "read_write"
            self.globals[each.name] = Place(self.field(1 + at, "ptr"), type, length, writable)
        for each in self.variables_of(*PARAM_SPACES):
            address = self.field(1 + 2 * count, "ptr")
            self.globals[each.name] = Place(address, self.types.at(each.type), None, False)
        for each in self.variables_of("workgroup"):
            type = self.types.at(each.type)
            self.globals[each.name] = self.variable(type)

    def elements(self, type: Type, bytes: str) -> Value | None:
        """How many elements an array has that fills its buffer, or the last member of a struct."""
        offset, array = (type.members[-1][1], type.members[-1][2]) if type.members else (0, type)
        if array.kind != "array" or array.count:
            return None
        rest = self.code(f"sub i64 {bytes}, {offset}")
        return self._word(self.code(f"udiv i64 {rest}, {array.stride}"))

    def variable(self, type: Type) -> Place:
        """A place on the stack, of which there is not much."""
        self.take(type.size)
        return super().variable(type)

    def take(self, bytes: int) -> None:
        """Count what lies on the stack."""
        self.bytes += bytes
        if self.bytes > MAX_BYTES:
            raise Refusal(
                "variables, workgroup memory, and what invocations keep across barriers take more than "
                f"{MAX_BYTES:,} bytes, which the cpu does not have for them"
            )

    def private_variables(self) -> None:
        """var<private>: each invocation's own."""
        for each in self.variables_of("private"):
            value = None
            if each.value != (0, 0):
                value = self.data(Parser(self.source, each.value[0]).expression(), Frame({}))
            if each.type != (0, 0):
                type = self.types.at(each.type)
            else:
                type = type_of(self.settled(value if value is not None else 0))
            made = self.kept(type) if self.has_barriers else self.variable(type)
            self.globals[each.name] = made
            self.fill(cast(Place, self.resolved(made, each.index)), value)

    def kept(self, type: Type) -> Kept:
        """A variable of each invocation."""
        stride = -(-type.size // type.align) * type.align
        self.take(stride * self.invocations)
        return Kept(self.code.variable(f"[{stride * self.invocations} x i8]", align=16), type, stride)

    def allocated(self, each: tree.Declare, type: Type) -> Binding:
        """Where a new variable lies."""
        return self.kept(type) if each is self.keeping else self.variable(type)

    def resolved(self, binding: Binding, at: int) -> Bound:
        """What a name stands for in this region."""
        if isinstance(binding, Kept):
            offset = self.code(f"mul i64 {self.invocation}, {binding.stride}")
            return Place(self.code.at(binding.base, offset), binding.type, None, binding.writable)
        if isinstance(binding, Argument):
            values = tuple(self.builtin_value(each, at) for each in binding.names)
            return Group(binding.struct, values) if binding.struct is not None else values[0]
        return binding

    # The entry point

    @cached_property
    def has_barriers(self) -> bool:
        """Whether invocations wait for each other."""
        return self.waits(self.body(self.entry))

    def waits(self, part: object) -> bool:
        """Whether a tree has a barrier in it, or calls a function that has."""
        return any(self._waits(name) for name in called_names(part))

    def _waits(self, name: str, above: tuple[str, ...] = ()) -> bool:
        declaration = self.module.names.get(name)
        if declaration is None or declaration.kind != "fn" or name in above:
            return name in BARRIERS
        inside = called_names(self.body(declaration))
        return any(self._waits(each, (*above, name)) for each in inside)

    def workgroup(self) -> None:
        """One workgroup: its memory is 0, then its invocations run."""
        for each in self.variables_of("workgroup"):
            self.fill(cast(Place, self.globals[each.name]), None)
        frame = Frame(self.arguments())
        if not self.has_barriers:
            with self.region():
                self.private_variables()
                self.run(self.body(self.entry).body, frame)
            return
        self.take(self.invocations)
        self.done = self.code.variable(f"[{self.invocations} x i8]", align=4)
        self.clear(self.done, self.invocations)
        self.code.do(f"store i32 {self.invocations}, ptr {self.live}")
        with self.region():
            self.private_variables()
        self.uniform(self.body(self.entry).body, frame, frozenset())

    def arguments(self) -> dict[str, Binding]:
        """The arguments of the entry point."""
        scope: dict[str, Binding] = {}
        for member in self.entry.members:
            struct = self.module.names.get(self.source.tokens[member.type[0]].text)
            if struct is not None and struct.kind == "struct":
                names = tuple(self._builtin(each) for each in struct.members)
                scope[member.name] = Argument(names, self.types.at(member.type))
            else:
                scope[member.name] = Argument((self._builtin(member),))
        return scope

    def _builtin(self, member: Member) -> str:
        for each in member.attributes:
            if each.name == "builtin":
                return self.source.tokens[each.start].text
        raise self.source.error(member.index, "an argument of an entry point needs @builtin(…)")

    def builtin_value(self, name: str, at: int) -> Data:
        """What an invocation is told about itself."""
        index, (x, y, _) = self.invocation, self.sizes
        row = self.code(f"udiv i64 {index}, {x}")
        places = [self.code(f"urem i64 {index}, {x}"), self.code(f"urem i64 {row}, {y}")]
        local = [self._word(each) for each in [*places, self.code(f"udiv i64 {row}, {y}")]]
        if name == "local_invocation_index":
            return self._word(index)
        vectors = {"local_invocation_id": local, "workgroup_id": self.group, "num_workgroups": self.grid}
        if name == "global_invocation_id":
            begin = [
                self.binary("*", each, constant("u32", size))
                for each, size in zip(self.group, self.sizes, strict=True)
            ]
            vectors[name] = [self.binary("+", a, b) for a, b in zip(begin, local, strict=True)]
        if name not in vectors:
            raise self.source.error(at, f"@builtin({name}) is not translated for the cpu")
        return Group(vector_type(3, "u32"), tuple(vectors[name]))

    # Regions

    @contextmanager
    def counted(self, start: str, stop: str) -> Iterator[str]:
        """for index in range(start, stop)."""
        outer, self.latch = self.latch, self.code.new("latch")
        with self.code.count(self.code.variable("i64", start), stop, latch=self.latch) as index:
            yield index
        self.latch = outer

    @contextmanager
    def region(self) -> Iterator[None]:
        """Once for each invocation that has not returned."""
        with self.counted("0", str(self.invocations)) as index:
            outer, self.invocation = self.invocation, index
            if self.has_barriers:
                here = self.code.new("here")
                over = self.code(f"load i8, ptr {self._flag()}")
                over = self.code(f"icmp ne i8 {over}, 0")
                self.code.branch(over, self.latch, here)
                self.code.label(here)
            yield
            self.invocation = outer

    def _flag(self) -> str:
        return self.code.at(self.done, self.invocation)

    def invocation_ends(self) -> None:
        """`return` of the entry point."""
        if self.has_barriers:
            self.code.do(f"store i8 1, ptr {self._flag()}")
            left = self.code(f"sub i32 {self.code(f'load i32, ptr {self.live}')}, 1")
            self.code.do(f"store i32 {left}, ptr {self.live}")
        self.code.go(self.latch)

    def uniform(self, body: Sequence[tree.Statement], frame: Frame, later: frozenset[str]) -> None:
        """Statements that have barriers among them: what is between becomes regions. `later` are the names
        that are used behind the statements, and may be declared by them.
        """
        run: list[tree.Statement] = []
        for at, each in enumerate(body):
            if not (self.waits(each) or escapes(each)):
                run.append(each)
                continue
            rest = later.union(names_in(body[at:]))
            self.between(run, frame, rest)
            run = []
            with self.guarded(each.at):
                self.uniform_statement(each, frame, rest)
            if isinstance(each, tree.Jump):
                return
        self.between(run, frame, later)

    def between(self, run: Sequence[tree.Statement], frame: Frame, later: frozenset[str]) -> None:
        """Statements without a barrier."""
        if not run:
            return
        with self.region():
            for each in run:
                keeps = isinstance(each, tree.Declare) and each.name in later
                self.keeping = cast(tree.Declare, each) if keeps else None
                self.run([each], frame)
                if isinstance(each, tree.Return):
                    break
                if self.keeping:
                    with self.guarded(each.at):
                        self.keep(self.keeping, frame)
        for each in run:  # a value of a region is not there in the next
            if isinstance(each, tree.Declare) and each.name not in later:
                frame.scope.pop(each.name, None)

    def keep(self, each: tree.Declare, frame: Frame) -> None:
        """Put what was declared where later regions find it."""
        found = frame.scope[each.name]
        if isinstance(found, Kept | int | float) or (isinstance(found, Value) and found.is_constant):
            return
        if isinstance(found, Pointer):
            raise Refusal(f"the pointer `{each.name}` is kept across a barrier, which is not translated")
        data = self.settled(cast(Data, found))
        frame.scope[each.name] = self.stored(self.kept(type_of(data)), data)

    def stored(self, kept: Kept, data: Data) -> Kept:
        """A value of each invocation, which is that of this one here."""
        self.write(cast(Place, self.resolved(kept, 0)), data)
        return replace(kept, writable=False)

    def agreed(self, condition: tree.Expression, frame: Frame, *, otherwise: bool) -> str:
        """A condition on which all invocations agree; `otherwise` where none is left."""
        code = self.code
        yes, no = (code.variable("i1") for _ in range(2))
        for place in (yes, no):
            code.do(f"store i1 false, ptr {place}")
        with self.region(), self.guarded(condition.at):
            value = self.truth(self.data(condition, frame))
            for place, said in ((yes, value), (no, self.signed("!", value))):
                before = code(f"load i1, ptr {place}")
                code.do(f"store i1 {code(f'or i1 {before}, {said.name}')}, ptr {place}")
        true, false = (code(f"load i1, ptr {place}") for place in (yes, no))
        self.stop_if(code(f"and i1 {true}, {false}"), DISAGREED)
        return code(f"xor i1 {false}, true") if otherwise else true

    def uniform_statement(self, each: tree.Statement, frame: Frame, later: frozenset[str]) -> None:
        """A statement that has a barrier in it, or leaves a loop that has."""
        inner = replace(frame, scope=dict(frame.scope))
        if isinstance(each, tree.If):
            for holds in self.code.either(self.agreed(each.condition, frame, otherwise=False)):
                own = replace(inner, scope=dict(frame.scope))
                self.uniform((each.yes if holds else each.no).body, own, frozenset())
        elif isinstance(each, tree.Loop):
            self.uniform_loop(each, inner)
        elif isinstance(each, tree.Block):
            self.uniform(each.body, inner, frozenset())
        elif isinstance(each, tree.Jump):
            self.jump(each, frame)
        elif isinstance(each, tree.Evaluate | tree.Declare) and isinstance(each.value, tree.Call):
            self.uniform_call(each, each.value, frame, later)
        else:
            raise Refusal(
                "a barrier in a switch, an assignment or an expression is not translated for the cpu"
            )

    def uniform_loop(self, each: tree.Loop, frame: Frame) -> None:
        """A loop that has a barrier in it."""
        code = self.code
        head, body, again, end = (code.new(letter) for letter in ("head", "body", "again", "end"))
        self.code.go(head)
        code.label(head)
        self.turn()
        condition = code(f"icmp ne i32 {code(f'load i32, ptr {self.live}')}, 0")
        if each.condition is not None:
            condition = self.agreed(each.condition, frame, otherwise=False)
        code.branch(condition, body, end)
        code.label(body)
        inner = replace(frame, leave=end, again=again)
        with self.code.scope():
            self.uniform(each.body.body, inner, frozenset(names_in((each.continuing, each.leave))))
        self.code.go(again)
        code.label(again)
        with self.code.scope():
            self.uniform(each.continuing.body, inner, frozenset(names_in(each.leave)))
            if each.leave is None:
                self.code.go(head)
            else:
                leave = self.agreed(each.leave, inner, otherwise=True)
                code.branch(leave, end, head)
        code.label(end)

    def uniform_call(
        self, each: tree.Evaluate | tree.Declare, call: tree.Call, frame: Frame, later: frozenset[str]
    ) -> None:
        """A barrier, or a function that has one: called as a statement, or for a declaration."""
        name = call.callee.name
        if name in ("workgroupBarrier", "storageBarrier"):
            return
        if name == "workgroupUniformLoad":
            loaded = tree.Unary("*", call.arguments[0], call.at)
            self.between([each._replace(value=loaded)], frame, later)
            return
        declaration = self.module.names.get(name)
        if declaration is None or declaration.kind != "fn" or any(map(self.waits, call.arguments)):
            raise Refusal("a barrier in an expression is not translated for the cpu")
        body = self.body(declaration)
        if returns_early(body):
            raise Refusal(f"`{name}` has a barrier, and a return before its end, which is not translated")
        if name in self.calls:
            raise Refusal(f"`{name}` calls itself")
        inner = Frame(self.kept_arguments(declaration, call, frame))
        last = body.body[-1] if body.body and isinstance(body.body[-1], tree.Return) else None
        self.calls.append(name)
        self.uniform(body.body[:-1] if last else body.body, inner, frozenset(names_in(last)))
        result = self.result_of(declaration)
        if isinstance(each, tree.Declare):
            if last is None or last.value is None or result is None:
                raise Refusal(f"`{name}` has no result")
            with self.region():
                data = self.as_type(self.data(last.value, inner), result)
                kept = self.stored(self.kept(result), data)
                frame.scope[each.name] = replace(kept, writable=each.keyword == "var")
        self.calls.pop()

    def kept_arguments(self, declaration: Declaration, call: tree.Call, frame: Frame) -> dict[str, Binding]:
        """The arguments of a function that has a barrier in it."""
        scope: dict[str, Binding] = {}
        with self.region():
            for member, given in zip(declaration.members, call.arguments, strict=True):
                value = self.bound(given, frame)
                if isinstance(value, Pointer):
                    scope[member.name] = self.lasting(given)
                    continue
                type = self.types.at(member.type)
                data = self.as_type(self.loaded(value), type)
                scope[member.name] = self.stored(self.kept(type), data)
        return scope

    def lasting(self, given: tree.Expression) -> Binding:
        """A pointer that every region has: to a buffer, or to workgroup memory, as a whole."""
        if isinstance(given, tree.Unary) and isinstance(given.operand, tree.Name):
            found = self.globals.get(given.operand.name)
            if isinstance(found, Place):
                return Pointer(found)
        raise Refusal("a pointer to a local or to a part of a variable, across a barrier, is not translated")
