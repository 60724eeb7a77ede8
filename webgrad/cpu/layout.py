"""How the memory of a plan's run is laid out: its words, the room for what lies between, and its calls.

In: steps in order: commands, which are kernels over values, and steps that NumPy does. Out: a `Layout`, whose
`run` gives the arrays of the results from those of the leaves. Everything that a run needs is one array of
i64; most of it is known when it is made; a run adds addresses. The invariants: several threads may run one
layout; Python does nothing between kernels but NumPy's steps.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter_ns
from typing import Any, NamedTuple

from ..arrays import Array, np
from ..graph.snapshot import Snapshot
from ..native import driver
from ..native.background import Request
from ..native.emit import Program
from ..native.helpers import Helpers
from ..native.jobs import LEAST
from ..runtime.addresses import UNKNOWN, address_of, address_place
from ..runtime.host_buffers import empty, rewrapped
from .room import placed

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
class ProgramRequest:
    """A program that was asked for, over values by their places in the structure of its group."""

    request: Request
    program: Program
    buffers: tuple[int, ...]  # -1: its own
    scalars: tuple[tuple[int, str], ...]  # with their types


@dataclass(frozen=True, slots=True)
class Command:
    """A kernel over a graph's values, for one of its groups."""

    group: int
    kernel: ProgramRequest
    buffers: tuple[int, ...]  # -1: its own; below that, values that only the plan has
    scalars: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class HostStep:
    """A node that NumPy computes: its inputs, then itself. `fill` takes their arrays."""

    group: int
    buffers: tuple[int, ...]
    fill: Callable[..., None]


class Layout:
    """How a run's words are made: for each, the number of a base and what is added to it. The bases are
    nothing, the words themselves, the room, the leaves, the results, the scalars, the steady leaves. First
    come the arguments of the driver's calls, then the commands, then the fields of each.
    """

    def __init__(
        self,
        graph: Snapshot,
        steps: Sequence[Command | HostStep],
        homes: Mapping[int, int],
        in_place: Mapping[int, int],
        inner: Mapping[int, int],
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
        commands = [each for each in steps if isinstance(each, Command)]
        named = list(dict.fromkeys([each for step in steps for each in self._numbers_of(step)]))
        self.scalars = [number for number, _ in named]
        sizes: dict[Any, int] = dict(inner)
        sizes |= {each: graph.sigs[each].nbytes for each in written.difference(ends)}
        lives: list[list[Any]] = [list(step.buffers) for step in steps]
        for at, step in enumerate(steps):
            if isinstance(step, Command) and step.kernel.program.scratch:
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
            if not isinstance(command, Command):
                continue
            program = command.kernel.program
            address = command.kernel.request.addresses()["kernel"]
            table += [(ZERO, address), (SELF, 8 * (start + len(fields)))]
            table += [(ZERO, program.units), (ZERO, program.cost)]
            fields.append((ZERO, 0))
            for kind, number, place in program.fields:
                if kind == "buffer" and command.buffers[place] != -1:
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
        begins = driver.BASES + FIRST
        self._objects: tuple[int, int, int] = (begins, begins + len(self._bound), address_place())
        self._address: Callable[[Array], int] = id  # native code looks there for the address
        if address_place() == UNKNOWN:
            self._objects, self._address = (0, 0, 0), address_of
        kinds = "".join([_PACKING[kind] for _, kind in named])
        self._front = struct.Struct(f"<{driver.BASES + FIRST + len(self._bound)}q{kinds}")
        self._behind = struct.Struct(f"<{len(self.steady)}q")
        self._frames: list[_Frame] = []  # that no run uses

    def _numbers_of(self, step: Command | HostStep) -> Sequence[tuple[int, str]]:
        """The user's numbers that a step takes, with their types."""
        if isinstance(step, Command):
            return step.scalars
        found = [(each, self.sigs[each]) for each in step.buffers if self.sigs[each].kind == "scalar"]
        return [(each, sig.dtype.compute) for each, sig in found if not sig.attributes]

    def _spans(self, steps: Sequence[Command | HostStep], apart: bool) -> list[driver.Span]:
        """The driver's calls: as few as may be between NumPy's steps, or `apart` for each command."""
        work: list[driver.Work] = []
        spans: list[driver.Span] = []
        self._calls: list[tuple[Callable[[int], int], int, int, int] | HostStep] = []

        def call(begin: int, group: int) -> None:
            for span in driver.spans(work, begin, len(work)):
                function = (driver.call if spans else driver.begin)(long=span.cost >= driver.LONG)
                self._calls.append((function, 8 * driver.CALL_WORDS * len(spans), span.cost, group))
                spans.append(span)

        begin = 0
        for step in steps:
            if isinstance(step, HostStep):
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
        frame = self._frame(steady)
        room = frame.room
        if room is None and self._room:
            room = empty((self._room,), _BYTE)
        words = frame.words
        self._front.pack_into(
            *(frame.memory, 0, 0, *self._known, words, *self._objects),
            *(0, words, 0 if room is None else address_of(room)),
            *map(self._address, leaves),
            *map(self._address, results),
            *numbers,
        )
        values: list[Any] = []
        for each in self._calls:
            began = 0 if tell is None else perf_counter_ns()
            if isinstance(each, HostStep):
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
