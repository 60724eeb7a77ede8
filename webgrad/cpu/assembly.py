"""A plan while it is made: the list of steps, and which value every node has.

In: nodes to compute whole, loops, products. Out: `finish` gives the steps as functions of the list of values,
with values let go as soon as no later step needs them, and their memory given to a result of the same kind.
The last of the values that a run gets are the numbers of those that it may write to, if no step reads them
any more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..arrays import Array, np
from ..graph.snapshot import Snapshot
from ..runtime.host_buffers import empty, rewrapped
from .code import Action, Code, Run, fresh, fresh_last
from .loop import Loop, Source, Store, Work
from .operations import is_half
from .products import matmul
from .taps import window_product
from .window_sums import WindowSum

__all__ = ["Assembly"]

LARGE = 1 << 11  # bytes from which a value is let go at once


@dataclass(frozen=True, slots=True)
class _Step:
    run: Run
    uses: tuple[int, ...]
    makes: tuple[int, ...]
    action: Action | None = None
    group: int = 0  # for which it was added


class Assembly:
    """Steps over numbered values; `main` says which number a node's value has."""

    def __init__(self, graph: Snapshot) -> None:
        self.graph = graph
        self._roots = frozenset(graph.roots)
        self.main = Code(graph, lambda node: graph.sigs[node].shape)
        self.group = 0  # for which steps are added
        self._steps: list[_Step] = []
        self._made: dict[int, Action] = {}
        self._owner: dict[int, int] = {}  # of a view: the value whose memory it is
        self._new: set[int] = set()  # values whose memory is certainly new
        self._claimed: set[int] = set()  # those whose memory a result is

    # Adding steps

    def _add(
        self, run: Run, uses: tuple[int, ...], makes: tuple[int, ...], action: Action | None = None
    ) -> None:
        self._steps.append(_Step(run, uses, makes, action, self.group))

    def compute(self, nodes: Sequence[int]) -> None:
        """Nodes one after another, each whole."""
        self.main.add_all(nodes)
        self._take_actions()

    def source(self, node: int) -> Source:
        """A node's value, as float32 if it is there in that form."""
        narrow = self.main.is_only_narrow(node)
        slot = self.main.value(node, narrow=narrow)
        self._take_actions()
        return Source(node, slot, narrow)

    def loop(self, work: Work, externals: Sequence[int], outer: dict[int, int]) -> None:
        """A loop over blocks. `outer`: the roots that are outputs, each with the node whose shape it gets."""
        sources = [self.source(each) for each in externals]
        stores = [self._store_of(root, outer.get(root), folded=bool(work.folded)) for root in work.roots]
        makes = [each.slot for each in stores] + [each.inner for each in stores if each.inner is not None]
        loop = Loop(self.graph, work, sources, stores)
        self._add(loop, tuple(each.slot for each in sources), tuple(makes))
        self._new |= {each.slot for each in stores if not work.folded}

    def _store_of(self, root: int, outer: int | None, *, folded: bool) -> Store:
        narrow = outer is not None and not folded and is_half(self.graph.sigs[root].dtype)
        own = self.main.declare(root, narrow=narrow)
        dtype = self.main.values[own].dtype
        if outer is None or outer == root or folded:
            return Store(root, own, narrow, self.graph.sigs[root].shape, dtype)
        slot = self.main.declare(outer, narrow=narrow)
        self._owner[own] = slot
        return Store(root, slot, narrow, self.graph.sigs[outer].shape, dtype, inner=own)

    def product(self, node: int, outer: int) -> None:
        """A matrix product in an array of the shape that it is reshaped to."""
        a, b = (self.main.value(each, narrow=False) for each in self.graph.inputs[node])
        self._take_actions()
        slot, own = self.main.declare(outer, narrow=True), self.main.declare(node, narrow=True)
        whole, inner = self.main.values[slot], self.main.values[own]
        self._owner[own] = slot

        def run(values: list[Any]) -> None:
            values[slot] = empty(whole.shape, whole.dtype)
            values[own] = matmul(values[a], values[b], values[slot].reshape(inner.shape))

        self._add(run, (a, b), (slot, own))
        self._new.add(slot)

    def patch_product(self, node: int, view: int, outer: int) -> None:
        """A product whose second operand is a reshape of `view`, in an array of the shape of `outer`."""
        sig = self.graph.sigs[node]
        weights = self.main.value(self.graph.inputs[node][0], narrow=False)
        source = self.source(view)
        slot = own = self.main.declare(node, narrow=False)
        if outer != node:
            slot = self.main.declare(outer, narrow=False)
            self._owner[own] = slot
        shape, dtype = self.graph.sigs[outer].shape, self.main.values[slot].dtype
        multiply = window_product(self.graph.sigs[view].shape, sig.shape)

        def run(values: list[Any]) -> None:
            values[slot] = empty(shape, dtype)
            values[own] = multiply(values[weights], values[source.slot], values[slot].reshape(sig.shape))

        self._add(run, (weights, source.slot), tuple({slot, own}))
        self._new.add(slot)

    def window_sum(self, node: int, a: int, view: int, axes: int, outer: int) -> None:
        """A product of what its operands are reshapes of, summed over `axes` of them."""
        sig = self.graph.sigs[node]
        sources = self.source(a), self.source(view)
        slot = own = self.main.declare(node, narrow=False)
        if outer != node:
            slot = self.main.declare(outer, narrow=False)
            self._owner[own] = slot
        shape, dtype = self.graph.sigs[outer].shape, self.main.values[slot].dtype
        multiply = WindowSum(self.graph.sigs[view].shape, sig.shape, axes)
        left, right = (each.slot for each in sources)

        def run(values: list[Any]) -> None:
            values[slot] = empty(shape, dtype)
            values[own] = multiply(values[left], values[right], values[slot].reshape(sig.shape))

        self._add(run, (left, right), tuple({slot, own}))
        self._new.add(slot)

    def store(self, node: int) -> None:
        """An output as later groups find it: half floats are rounded, and a root has an array of its own."""
        slot = self.main.value(node, narrow=True)
        self._take_actions()
        self.main.forget_wide(node)
        action = self._made.get(slot)
        if action is None or node not in self._roots:
            return
        function = _contiguous
        if action.operation.view and not self._can_claim(slot):
            function = _copied
        elif action.operation.view:
            function = _own
            self._claimed.add(self._owner_of(slot))
        self._add(fresh(function, (slot,), slot), (slot,), (slot,))

    def is_free_view(self, node: int) -> bool:
        """Whether a reshape of a value that is there needs no array of its own."""
        source = node
        while self.graph.sigs[source].op.name == "reshape" and source not in self.main:
            (source,) = self.graph.inputs[source]
        if node not in self._roots:
            return True
        return source in self.main and self._can_claim(self.main.value(source, narrow=True))

    def _can_claim(self, slot: int) -> bool:
        """Whether a value's memory was made by this plan, all of it, and is no other result's."""
        owner = self._owner_of(slot)
        whole, value = self.main.values[owner], self.main.values[slot]
        return (
            owner in self._new
            and whole.node not in self._roots
            and owner not in self._claimed
            and math.prod(whole.shape) == math.prod(value.shape)
            and whole.dtype == value.dtype
        )

    def _take_actions(self) -> None:
        for action in self.main.actions[len(self._made) :]:
            run = fresh(action.operation.function, action.inputs, action.output)
            self._add(run, action.inputs, (action.output,), action)
            self._made[action.output] = action
            if action.operation.into or action.operation.rewrite:
                self._new.add(action.output)
            if action.operation.view:
                self._owner[action.output] = self._owner_of(action.inputs[0])

    def _owner_of(self, slot: int) -> int:
        return self._owner.get(slot, slot)

    # The finished plan

    def finish(self, results: set[int]) -> tuple[list[Run], list[int]]:
        """The steps, as functions of the list of values, and their groups; `results` stay."""
        last: dict[int, int] = {}
        for at, step in enumerate(self._steps):
            for each in (*step.uses, *step.makes):
                last[each] = last[self._owner_of(each)] = at
        results = results | {self._owner_of(each) for each in results}
        self._reuse(last, results)
        ending: dict[int, list[int]] = {}
        for step in self._steps:
            for each in step.makes:
                value = self.main.values[each]
                if each not in results and self.graph.sigs[value.node].nbytes >= LARGE:
                    ending.setdefault(last[each], []).append(each)
        runs: list[Run] = []
        groups: list[int] = []
        for at, step in enumerate(self._steps):
            ends = tuple(dict.fromkeys(ending.get(at, ())))
            rewriting = self._rewriting(step, at, last, results)
            if rewriting is not None:
                runs.append(rewriting)
            elif len(ends) == 1 and step.action is not None:
                action = step.action
                runs.append(fresh_last(action.operation.function, action.inputs, action.output, ends[0]))
                ends = ()
            else:
                runs.append(step.run)
            if ends:
                runs.append(_let_go(ends))
            groups += [step.group] * (len(runs) - len(groups))
        return runs, groups

    def _rewriting(self, step: _Step, at: int, last: dict[int, int], results: set[int]) -> Run | None:
        """A step that may write to its first input, if that is not needed any more when it is done."""
        rewrite = None if step.action is None else step.action.operation.rewrite
        if step.action is None or rewrite is None:
            return None
        action, inputs = step.action, step.action.inputs
        owners = [self._owner_of(each) for each in inputs]
        if owners.count(owners[0]) > 1 or last[owners[0]] != at or owners[0] in results:
            return None
        given = self.graph.sigs[self.main.values[owners[0]].node].kind == "leaf"
        if not given and owners[0] not in self._new:
            return None
        plain = action.operation.function

        def run(values: list[Any]) -> None:
            arrays = [values[each] for each in inputs]
            flags = arrays[0].flags
            free = flags.c_contiguous and flags.writeable and (not given or owners[0] in values[-1])
            values[action.output] = (rewrite if free else plain)(*arrays)

        return run

    def _reuse(self, last: dict[int, int], results: set[int]) -> None:
        """Let results take the memory of values of their own kind that end with the same loop."""
        ours = {each for step in self._steps if step.action is None for each in step.makes}
        ours |= {slot for slot, action in self._made.items() if action.operation.function is matmul}
        for at, step in enumerate(self._steps):
            if not isinstance(step.run, Loop):
                continue
            owners = [self._owner_of(each) for each in step.uses]
            taken: set[int] = set()
            for store, source in step.run.reusable:
                owner = self._reshaped(source.slot)
                kept = results | taken | self._owner.keys()
                free = owner in ours - kept and source.slot not in results and last[owner] == at
                if free and owners.count(owner) == 1 and store.reuse is None and store.inner is None:
                    store.reuse = source.slot
                    taken.add(owner)

    def _reshaped(self, slot: int) -> int:
        """The value that this one is, or is a reshape of."""
        while slot in self._owner:
            action = self._made.get(slot)
            if action is None or self.graph.sigs[self.main.values[slot].node].op.name != "reshape":
                break
            (slot,) = action.inputs
        return slot


def _let_go(slots: tuple[int, ...]) -> Run:
    def run(values: list[Any]) -> None:
        for each in slots:
            values[each] = None

    return run


def _contiguous(x: Any) -> Array:
    return np.asarray(x, order="C")


def _own(x: Any) -> Array:
    """A view as an array of its own, if it is all of one."""
    return rewrapped(x) if x.flags.c_contiguous and x.flags.writeable else _copied(x)


def _copied(x: Any) -> Array:
    return np.array(x, order="C")
