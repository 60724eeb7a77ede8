"""Plans of native code: a schedule as one array of commands, which a native function walks.

In: a `Schedule`. Out: `run` gives the arrays of the graph's roots from those of its leaves. Everything that a
run needs is one array of i64: for each call its arguments, for each command what the driver wants to know,
for each kernel its fields. Most of it is known when the plan is made; a run adds addresses: of leaves, of
results, of the room for what lies between, of the array itself. Python does nothing between kernels, but
where a group is NumPy's: sorts, scatters, transforms. The invariants: inputs are never written to, but for
those given for it; every result is an array of its own; several threads may run one plan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from ..arrays import Array, np
from ..graph.node import Signature
from ..graph.snapshot import Snapshot
from ..lower.in_place import in_place_results
from ..lower.lane_products import Lowering
from ..lower.structures import alias_of, structure
from ..native.background import Request
from ..native.emit import Program
from ..native.processor import chosen
from ..reference.functions import host_function
from ..runtime.addresses import address_of
from ..runtime.threads import cores
from ..schedule.plan import Group, Schedule
from .layout import Command, HostStep, Layout, ProgramRequest, Tell
from .product_programs import packing_program, product_program
from .programs import has_program, lowered
from .row_programs import rows_program
from .shared_panels import share_panels

PROGRAMS_KEPT = 2048  # a large net's step has 600
_programs: dict[object, ProgramRequest] = {}  # by the structure of their groups, which many plans share


class CompiledPlan:
    """A schedule for the processor. Make it with `schedule(graph, CPU_PROFILE, CPU_PASSES)`."""

    def __init__(self, schedule: Schedule) -> None:
        self._graph = graph = schedule.graph
        self._homes: dict[int, int] = {}  # value → the value whose memory it has
        self._steps: list[Command | HostStep] = []
        for number, group in enumerate(schedule.groups):
            if not graph.sigs[group.outputs[0]].size or self._is_alias(group):
                continue
            if has_program(graph, group):
                self._steps.append(self._command(group, number))
            else:
                self._steps += self._by_host(group, number)
        self._steps, self._panels = share_panels(
            self._steps, partial(_product, schedule), partial(_packing, schedule)
        )
        for step in self._steps:
            if isinstance(step, Command):
                step.kernel.request.ready()  # from now on it is compiled in the background
        self._in_place = self._in_place_of(schedule.groups)  # result → the leaf whose memory it may take
        self._layouts: dict[bool, Layout] = {}  # by whether its commands are called apart

    def _command(self, group: Group, number: int) -> Command:
        code, values = structure(self._graph, (group,))
        key = (chosen(), cores(), code)
        kernel = _programs.get(key)
        if kernel is None:
            if len(_programs) >= PROGRAMS_KEPT:
                _programs.clear()
            places = {each: at for at, each in enumerate(values)}
            kernel = _programs[key] = _kernel(self._graph, group, places)
        buffers = tuple([-1 if at < 0 else self._home(values[at]) for at in kernel.buffers])
        scalars = tuple([(values[at], kind) for at, kind in kernel.scalars])
        return Command(number, kernel, buffers, scalars)

    def _by_host(self, group: Group, number: int) -> list[Command | HostStep]:
        """Steps for nodes that have no kernel of the IR."""
        found = rows_program(self._graph, group)
        if found is None:
            return [self._host_step(group, each, number) for each in group.outputs]
        program, values = found
        kernel = ProgramRequest(Request(program.text, ["kernel"], "set_rows"), program, (), ())
        return [Command(number, kernel, tuple(map(self._home, values)), ())]

    def _host_step(self, group: Group, node: int, number: int) -> HostStep:
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

        return HostStep(number, tuple([self._home(each) for each in (*reads, node)]), fill)

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
        places = self._in_place, self._panels
        return Layout(self._graph, self._steps, homes, *places, apart=apart, steady=steady)

    def _given(self, root: int, values: Mapping[int, Array], scalars: Mapping[int, Any]) -> Array:
        """The array of a root that nothing computes: a leaf, a number, or no elements."""
        if root in values:
            return values[root]
        sig = self._graph.sigs[root]
        if root in scalars:
            return np.array(scalars[root], sig.dtype.numpy)
        return np.empty(sig.shape, sig.dtype.numpy)


def _kernel(graph: Snapshot, group: Group, places: Mapping[int, int]) -> ProgramRequest:
    program, kernel = lowered(graph, group, chosen())
    return ProgramRequest(
        Request(program.text, ["kernel"], kernel.name),
        program,
        tuple([places.get(each.value, -1) for each in kernel.buffers]),
        tuple([(places[number], dtype.compute) for number, dtype in kernel.scalars]),
    )


def _product(schedule: Schedule, number: int) -> Program:
    """The product of a group, whose second operand is packed before."""
    return product_program(Lowering(schedule.graph, schedule.groups[number]), chosen(), packed=True)[0]


def _packing(schedule: Schedule, number: int) -> tuple[Program, int]:
    """The packing of a product's second operand, and its bytes."""
    return packing_program(Lowering(schedule.graph, schedule.groups[number]), chosen())


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


def contiguous(value: Any) -> Array:
    """An array that has an address for as long as it lives: of NumPy's scalars each look makes another."""
    array = np.asarray(value)
    return array if array.flags.c_contiguous else np.ascontiguousarray(array)
