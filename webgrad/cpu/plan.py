"""Plans of native code: a schedule as one array of commands, which a native function walks.

In: a `Schedule`. Out: `run` gives the arrays of the graph's roots from those of its leaves. Everything that a
run needs is one array of i64: for each call its arguments, for each command what the driver wants to know,
for each kernel its fields. Most of it is known when the plan is made; a run adds addresses: of leaves, of
results, of the room for what lies between, of the array itself. Python does nothing between kernels, but
where a group is NumPy's: sorts, scatters, transforms. The invariants: inputs are never written to, but for
those given for it; every result is an array of its own; several threads may run one plan.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter_ns
from typing import Any, NamedTuple

from ..arrays import Array, np
from ..graph.node import Signature
from ..graph.snapshot import Snapshot
from ..lower.in_place import in_place_results
from ..lower.ir import Kernel
from ..lower.lane_products import Lowering
from ..lower.lanes import LOWER
from ..lower.structures import alias_of, structure
from ..native import driver
from ..native.background import Request, request
from ..native.emit import Program, kernel_program
from ..native.helpers import Helpers
from ..native.jobs import LEAST
from ..native.processor import Processor, chosen
from ..native.templates.formats import FORMATS
from ..reference.functions import host_function
from ..runtime.addresses import address_of, address_reader
from ..runtime.host_buffers import empty, rewrapped
from ..schedule.host_ops import is_by_host
from ..schedule.plan import Group, Schedule
from .attention_programs import attention_program
from .block_programs import block_program, weights_program
from .product_programs import product_program
from .room import placed
from .row_programs import rows_program

_PACKING = {"f32": "f4x", "f64": "d", "i32": "i4x", "u32": "I4x", "i64": "q", "u64": "Q", "bool": "?7x"}
_WORD = struct.Struct("<q")
ZERO, SELF, ROOM, FIRST = range(4)  # the bases of addresses: nothing, the words, the room; then arrays
Tell = Callable[[int, int, int], None]
KEPT = 1 << 14  # bytes of room that a plan keeps between runs
_BYTE = np.dtype(np.uint8)


class Steady(NamedTuple):
    """The steady leaves of a run: their arrays, and the addresses of these. The same addresses are the same
    object.
    """

    arrays: Sequence[Array]
    addresses: tuple[int, ...]


NOTHING = Steady((), ())


@dataclass(frozen=True, slots=True)
class _Kernel:
    """A program that was asked for, over values by their places in the structure of its group."""

    request: Request
    program: Program
    buffers: tuple[int, ...]  # -1: its own
    scalars: tuple[tuple[int, str], ...]  # with their types


@dataclass(frozen=True, slots=True)
class _Command:
    """A kernel over a graph's values, for one of its groups."""

    group: int
    kernel: _Kernel
    buffers: tuple[int, ...]
    scalars: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class _HostStep:
    """A node that NumPy computes: its inputs, then itself. `fill` takes their arrays."""

    group: int
    buffers: tuple[int, ...]
    fill: Callable[..., None]


class CompiledPlan:
    """A schedule for the processor. Make it with `schedule(graph, CPU_PROFILE, CPU_PASSES)`."""

    def __init__(self, schedule: Schedule) -> None:
        self._graph = graph = schedule.graph
        self._homes: dict[int, int] = {}  # value → the value whose memory it has
        self._steps: list[_Command | _HostStep] = []
        self._kernels: dict[object, _Kernel] = {}
        for number, group in enumerate(schedule.groups):
            if not graph.sigs[group.outputs[0]].size or self._is_alias(group):
                continue
            if is_by_host(graph, group.outputs[0]) or _lacks_template(graph, group):
                self._steps += self._by_host(group, number)
            else:
                self._steps.append(self._command(group, number))
        self._in_place = self._in_place_of(schedule.groups)  # result → the leaf whose memory it may take
        self._layouts: dict[bool, Layout] = {}  # by whether its commands are called apart

    def _command(self, group: Group, number: int) -> _Command:
        code, values = structure(self._graph, (group,))
        kernel = self._kernels.get(code)
        if kernel is None:
            places = {each: at for at, each in enumerate(values)}
            kernel = self._kernels[code] = _kernel(self._graph, group, places)
        buffers = tuple([-1 if at < 0 else self._home(values[at]) for at in kernel.buffers])
        scalars = tuple([(values[at], kind) for at, kind in kernel.scalars])
        return _Command(number, kernel, buffers, scalars)

    def _by_host(self, group: Group, number: int) -> list[_Command | _HostStep]:
        """Steps for nodes that have no kernel of the IR."""
        found = rows_program(self._graph, group)
        if found is None:
            return [self._host_step(group, each, number) for each in group.outputs]
        program, values = found
        kernel = _Kernel(request(program.text, ["kernel"], "set_rows"), program, (), ())
        return [_Command(number, kernel, tuple(map(self._home, values)), ())]

    def _host_step(self, group: Group, node: int, number: int) -> _HostStep:
        """A node by NumPy, with the movement before it."""
        sigs, inputs = self._graph.sigs, self._graph.inputs
        inside = [each for each in group.inside if each == node or each not in group.outputs]
        reads = (*group.reads, *group.scalars)
        steps = [_filling(sigs[each], [sigs[one] for one in inputs[each]]) for each in inside]

        def fill(*arrays: Array) -> None:
            known = dict(zip(reads, arrays, strict=False))
            for each, step in zip(inside, steps, strict=True):
                out = arrays[-1] if each == node else None
                known[each] = step(out, *[known[one] for one in inputs[each]])

        return _HostStep(number, tuple([self._home(each) for each in (*reads, node)]), fill)

    def _in_place_of(self, groups: Sequence[Group]) -> dict[int, int]:
        """The results that may take the memory of the leaves they replace: flat maps and scatters, each the
        last step that reads its leaf.
        """
        graph = self._graph
        found: dict[int, int] = {}
        for group in groups:
            found |= in_place_results(graph, (group,))
        for result, leaf in graph.donations.items():
            home = self._home(result)
            if graph.sigs[home].kind == "scatter":
                base = graph.inputs[home][0]
                while graph.sigs[base].op.name == "reshape":
                    (base,) = graph.inputs[base]
                if base == leaf:
                    found[home] = leaf
        last = {each: step for step in self._steps for each in step.buffers}
        return {
            result: leaf
            for result, leaf in found.items()
            if leaf in last and result in last[leaf].buffers and last[leaf].buffers.count(leaf) == 1
        }

    def _is_alias(self, group: Group) -> bool:
        """Whether a group only reshapes a value whose memory its result may have. A result of the plan takes
        that of one value at most, and no leaf's.
        """
        alias = alias_of(self._graph, (group,))
        if alias is None:
            return False
        result, source = alias[0], self._home(alias[1])
        if result in self._graph.roots:
            taken = {self._home(each) for each in self._graph.roots}
            if source in taken or self._graph.sigs[source].kind == "leaf":
                return False
        self._homes[result] = source
        return True

    def _home(self, value: int) -> int:
        return self._homes.get(value, value)

    def run(
        self,
        values: Mapping[int, Array],
        scalars: Mapping[int, Any],
        donated: frozenset[int] = frozenset(),
        tell: Tell | None = None,
    ) -> dict[int, Array]:
        """The roots' arrays from the leaves' arrays and the scalars' numbers.

        Leaves that are `donated` may be written to, and be results. `tell` hears when which group was
        computed, in nanoseconds. What is not compiled yet is waited for.
        """
        layout = self._layouts.get(tell is not None)
        if layout is None:
            layout = self._layouts[tell is not None] = self.layout(apart=tell is not None)
        leaves = [contiguous(values[each]) for each in layout.leaves]
        numbers = [scalars[each] for each in layout.scalars]
        found = dict(zip(layout.roots, layout.run(leaves, numbers, donated, tell=tell), strict=True))
        if len(found) < len(self._graph.roots):
            found |= {
                each: self._given(each, values, scalars) for each in self._graph.roots if each not in found
            }
        return found

    def layout(self, *, apart: bool = False, steady: Sequence[int] = ()) -> Layout:
        """How runs are made. Of `steady` leaves a run takes the addresses, else the arrays; with commands
        `apart` each has a call to itself.
        """
        homes = {each: self._home(each) for each in self._graph.roots}
        return Layout(self._graph, self._steps, homes, self._in_place, apart=apart, steady=steady)

    def _given(self, root: int, values: Mapping[int, Array], scalars: Mapping[int, Any]) -> Array:
        """The array of a root that nothing computes: a leaf, a number, or no elements."""
        if root in values:
            return values[root]
        sig = self._graph.sigs[root]
        if root in scalars:
            return np.array(scalars[root], sig.dtype.numpy)
        return np.empty(sig.shape, sig.dtype.numpy)


def _lacks_template(graph: Snapshot, group: Group) -> bool:
    """Whether a group is about quantised blocks of a format that no template unpacks."""
    sig = graph.sigs[group.center]
    return (sig.kind == "decode" or sig.op.name == "matmul_blocks") and sig.attributes[0] not in FORMATS


def lowered(graph: Snapshot, group: Group, processor: Processor) -> tuple[Program, Kernel]:
    """A group as native code, and as the kernel whose buffers and scalars that has."""
    if group.kind == "contract":
        if graph.sigs[group.center].op.name == "matmul_blocks":
            return block_program(graph, group, processor)
        return product_program(Lowering(graph, group), processor)
    if group.kind == "decode":
        return weights_program(graph, group, processor)
    if group.kind == "attend":
        return attention_program(graph, group, processor)
    work = LOWER[group.kind](graph, group)
    return kernel_program(work, processor), work.kernel


def _kernel(graph: Snapshot, group: Group, places: Mapping[int, int]) -> _Kernel:
    program, kernel = lowered(graph, group, chosen())
    return _Kernel(
        request(program.text, ["kernel"], kernel.name),
        program,
        tuple([places.get(each.value, -1) for each in kernel.buffers]),
        tuple([(places[number], dtype.compute) for number, dtype in kernel.scalars]),
    )


def _filling(sig: Signature, inputs: list[Signature]) -> Callable[..., Array]:
    """A function that computes a node by NumPy, into an array if it is given one."""
    function = host_function(sig)

    def fill(out: Array | None, *given: Array) -> Array:
        arrays = [x.reshape(each.shape) for x, each in zip(given, inputs, strict=True)]  # it may be an alias
        if function.rewrite is not None and out is not None and address_of(out) == address_of(given[0]):
            function.rewrite(*arrays)
            return out
        found = function.compute(*arrays)
        if out is None:
            return found
        np.copyto(out, found.reshape(out.shape))
        return out

    return fill


class Layout:
    """How a run's words are made: for each, the number of a base and what is added to it. The bases are
    nothing, the words themselves, the room, the leaves, the results, the scalars, the steady leaves. First
    come the arguments of the driver's calls, then the commands, then the fields of each.
    """

    def __init__(
        self,
        graph: Snapshot,
        steps: Sequence[_Command | _HostStep],
        homes: Mapping[int, int],
        in_place: Mapping[int, int],
        *,
        apart: bool,
        steady: Sequence[int],
    ) -> None:
        self.sigs = graph.sigs
        used = list(dict.fromkeys([each for step in steps for each in step.buffers if each >= 0]))
        kept = frozenset(steady)
        self.leaves = [each for each in used if graph.sigs[each].kind == "leaf" and each not in kept]
        self.steady = [each for each in used if each in kept]
        written = {each for each in used if graph.sigs[each].kind not in ("leaf", "scalar")}
        ends = [each for each in dict.fromkeys(homes.values()) if each in written]
        self._results = [(graph.sigs[each].shape, graph.sigs[each].dtype.numpy) for each in ends]
        self._in_place = [
            (ends.index(result), self.leaves.index(leaf), leaf)
            for result, leaf in in_place.items()
            if result in written and leaf in self.leaves
        ]
        self.roots = [each for each, home in homes.items() if home in written]  # those that a run computes
        self._origins = [(ends.index(homes[each]), graph.sigs[each].shape) for each in self.roots]
        self._is_plain = self._origins == [(at, shape) for at, (shape, _) in enumerate(self._results)]
        commands = [each for each in steps if isinstance(each, _Command)]
        named = list(dict.fromkeys([each for step in steps for each in self._numbers_of(step)]))
        self.scalars = [number for number, _ in named]
        sizes: dict[Any, int] = {each: graph.sigs[each].nbytes for each in written.difference(ends)}
        lives: list[list[Any]] = [list(step.buffers) for step in steps]
        for at, step in enumerate(steps):
            if isinstance(step, _Command) and step.kernel.program.scratch:
                sizes["scratch", at] = step.kernel.program.scratch
                lives[at].append(("scratch", at))
        self._room, self._inner = placed(sizes, lives)
        self._bound = [*self.leaves, *ends]
        bases = (*self._bound, *named, *self.steady)
        places: dict[Any, tuple[int, int]] = {each: (FIRST + at, 0) for at, each in enumerate(bases)}
        places |= {each: (ROOM, offset) for each, offset in self._inner.items()}
        whole = (*self._bound, *self.scalars, *self.steady)
        self._places = {each: at for at, each in reversed([*enumerate(whole)])}
        spans = self._spans(steps, apart)
        first = len(spans) * driver.CALL_WORDS
        table: list[tuple[int, int]] = []
        for span in spans:
            table += [(ZERO, 0), (SELF, 8 * first), *[(ZERO, each) for each in span[:4]]]
        start = first + len(commands) * driver.COMMAND_WORDS
        fields: list[tuple[int, int]] = []
        for at, command in enumerate(steps):
            if not isinstance(command, _Command):
                continue
            program = command.kernel.program
            address = command.kernel.request.addresses()["kernel"]
            table += [(ZERO, address), (SELF, 8 * (start + len(fields)))]
            table += [(ZERO, program.units), (ZERO, program.cost)]
            fields.append((ZERO, 0))
            for kind, number, place in program.fields:
                if kind == "buffer" and command.buffers[place] >= 0:
                    base, offset = places[command.buffers[place]]
                    fields.append((base, offset + number))
                elif kind == "scalar":
                    fields.append(places[command.scalars[place]])
                else:
                    fields.append(places["scratch", at] if kind == "scratch" else (ZERO, number))
        table += fields
        self._numbers = np.array([number for number, _ in table], np.int32)
        self._offsets = np.array([offset for _, offset in table], np.int64)
        self._known = self._numbers.size, address_of(self._numbers), address_of(self._offsets)
        kinds = "".join([_PACKING[kind] for _, kind in named])
        self._front = struct.Struct(f"<{driver.BASES + FIRST + len(self._bound)}q{kinds}")
        self._behind = struct.Struct(f"<{len(self.steady)}q")
        self._frames: list[_Frame] = []  # that no run uses

    def _numbers_of(self, step: _Command | _HostStep) -> Sequence[tuple[int, str]]:
        """The user's numbers that a step takes, with their types."""
        if isinstance(step, _Command):
            return step.scalars
        found = [(each, self.sigs[each]) for each in step.buffers if self.sigs[each].kind == "scalar"]
        return [(each, sig.dtype.compute) for each, sig in found if not sig.attributes]

    def _spans(self, steps: Sequence[_Command | _HostStep], apart: bool) -> list[driver.Span]:
        """The driver's calls: as few as may be between NumPy's steps, or `apart` for each command."""
        work: list[driver.Work] = []
        spans: list[driver.Span] = []
        self._calls: list[tuple[Callable[[int], int], int, int, int] | _HostStep] = []

        def call(begin: int, group: int) -> None:
            for span in driver.spans(work, begin, len(work)):
                function = (driver.call if spans else driver.begin)(long=span.cost >= driver.LONG)
                self._calls.append((function, 8 * driver.CALL_WORDS * len(spans), span.cost, group))
                spans.append(span)

        begin = 0
        for step in steps:
            if isinstance(step, _HostStep):
                call(begin, step.group)
                self._calls.append(step)
                begin = len(work)
            else:
                work.append(driver.Work(step.kernel.program.units, step.kernel.program.cost))
                if apart:
                    call(begin, step.group)
                    begin = len(work)
        call(begin, -1)
        return spans

    def run(
        self,
        leaves: Sequence[Array],
        numbers: Sequence[Any],
        donated: frozenset[int] = frozenset(),
        steady: Steady = NOTHING,
        tell: Tell | None = None,
    ) -> list[Array]:
        """The arrays of `roots`, from those of `leaves` and the numbers of `scalars`, in the same order."""
        taken = self._taken(leaves, donated) if donated else {}
        results = [
            taken[at] if at in taken else empty(shape, dtype)
            for at, (shape, dtype) in enumerate(self._results)
        ]
        address = address_reader()
        frame = self._frame(steady)
        room = frame.room
        if room is None and self._room:
            room = empty((self._room,), _BYTE)
        words = frame.words
        self._front.pack_into(
            *(frame.memory, 0, 0, *self._known, words, 0, words, 0 if room is None else address(room)),
            *map(address, leaves),
            *map(address, results),
            *numbers,
        )
        values: list[Any] = []
        for each in self._calls:
            began = 0 if tell is None else perf_counter_ns()
            if isinstance(each, _HostStep):
                group = each.group
                if not values:
                    values = [*leaves, *results, *numbers, *steady.arrays]
                with np.errstate(all="ignore"):
                    each.fill(*[self._array(one, values, room) for one in each.buffers])
            else:
                function, place, cost, group = each
                if cost < LEAST:
                    self._call(frame, function, place, 0)
                else:  # for this call only: NumPy's steps have helpers of their own
                    with Helpers(cost) as slot:
                        self._call(frame, function, place, slot)
            if tell is not None:
                tell(group, began, perf_counter_ns())
        self._frames.append(frame)
        if self._is_plain:
            return results
        found = [(results[at], shape) for at, shape in self._origins]
        return [each if each.shape == shape else rewrapped(each.reshape(shape)) for each, shape in found]

    def _taken(self, leaves: Sequence[Array], donated: frozenset[int]) -> dict[int, Array]:
        """The arrays of leaves that results have, since they replace them."""
        found = {}
        for at, place, leaf in self._in_place:
            array, shape = leaves[place], self._results[at][0]
            if leaf in donated and array.flags.writeable:
                found[at] = array if array.shape == shape else array.reshape(shape)
        return found

    def _frame(self, steady: Steady) -> _Frame:
        """A frame that no other run uses, with the addresses of the steady leaves."""
        try:
            frame = self._frames.pop()
        except IndexError:
            frame = _Frame(self._front.size + self._behind.size, 8 * self._numbers.size)
            if 0 < self._room <= KEPT:
                frame.room = empty((self._room,), _BYTE)
        if frame.steady is not steady.addresses:
            self._behind.pack_into(frame.memory, self._front.size, *steady.addresses)
            frame.steady = steady.addresses
        return frame

    @staticmethod
    def _call(frame: _Frame, function: Callable[[int], int], place: int, slot: int) -> None:
        start = frame.words + place if place else frame.address  # of the first, where all words are made
        if slot:
            _WORD.pack_into(frame.memory, start - frame.address, slot)
        function(start)

    def _array(self, value: int, values: Sequence[Any], room: Array | None) -> Array:
        """A value for NumPy."""
        sig, place = self.sigs[value], self._places.get(value)
        if sig.kind == "scalar":
            return np.array(sig.attributes[0] if place is None else values[place], sig.dtype.numpy)
        if place is not None:
            found: Array = values[place]
            return found
        if room is None or not sig.size:
            return np.empty(sig.shape, sig.dtype.numpy)
        start = self._inner[value]
        part: Array = room[start : start + sig.nbytes].view(sig.dtype.numpy)
        return part.reshape(sig.shape)


class _Frame:
    """Memory for the arguments of `begin`, and the words that it fills in: of one run at a time."""

    __slots__ = ("address", "memory", "room", "steady", "words")

    def __init__(self, front: int, words: int) -> None:
        self.memory = bytearray(front + words)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        self.words = self.address + front
        self.steady: Sequence[int] = ()
        self.room: Array | None = None  # where it is small


def contiguous(value: Any) -> Array:
    """An array that has an address for as long as it lives: of NumPy's scalars each look makes another."""
    array = np.asarray(value)
    return array if array.flags.c_contiguous else np.ascontiguousarray(array)
