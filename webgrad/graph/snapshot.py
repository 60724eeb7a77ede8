"""A graph as lists of ids: what the later stages see. Nodes get ids, inputs first; tensors are not held.

In: the nodes to compute. Out: a `Snapshot` and its `key`: two graphs of one structure have equal keys,
whatever their values and wherever their slices begin. The key is a flat tuple of numbers: a hash made while
building could not tell a+a from a+b.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from math import copysign
from sys import getrefcount
from typing import Any

from .composite import BUNDLE, COMPOSITE, expand
from .node import Bundle, Node, Signature, signature
from .op import SCALAR, Op
from .refcounts import LISTED

Key = tuple[int, ...]
_NONE: Mapping[int, int] = {}
_COMPOSED = (COMPOSITE, BUNDLE)
_WALKED = LISTED + 2  # references of a node that only a walk's lists and the keys of its numbers hold


class Snapshot:
    """Signatures and inputs by node id; `held` are the nodes that something outside the graph refers to.

    `donations` says which result may take the storage of which leaf, in runs to which that leaf is donated.
    `lines` are the user's lines, as nodes keep them, if there is an observer; `origins` say for which node of
    the user's another was made.
    """

    __slots__ = ("_numbers", "count", "donations", "held", "inputs", "lines", "origins", "roots", "sigs")

    def __init__(
        self,
        sigs: list[Signature],
        inputs: list[tuple[int, ...]],
        roots: tuple[int, ...],
        held: frozenset[int] = frozenset(),
        donations: Mapping[int, int] = _NONE,
    ) -> None:
        self.sigs = sigs
        self.inputs = inputs
        self.count = len(sigs)  # of the nodes that were walked; those behind them were made for one of them
        self.roots = roots
        self.held = held
        self.donations = donations
        self.lines: list[Any] = []
        self.origins: dict[int, int] = {}
        self._numbers: dict[Signature, int] = {}

    def __len__(self) -> int:
        return len(self.sigs)

    def copy(self) -> Snapshot:
        """A copy to schedule again, since scheduling adds nodes."""
        made = Snapshot(self.sigs.copy(), self.inputs.copy(), self.roots, self.held, self.donations)
        made.count, made.origins = self.count, self.origins.copy()
        return made

    def add(self, sig: Signature, inputs: tuple[int, ...]) -> int:
        """Append a node; gives its id."""
        self.sigs.append(sig)
        self.inputs.append(inputs)
        return len(self.sigs) - 1

    def make(self, op: Op, inputs: tuple[int, ...], attributes: tuple[Any, ...] = ()) -> int:
        """A new node of an op, with the shape and dtype that its row says; gives its number."""
        assert op.infer is not None, op
        sigs = tuple([self.sigs[each] for each in inputs])
        return self.add(signature(op, *op.infer(sigs, attributes), sigs[0].device, attributes), inputs)

    def number(self, value: Any, dtype: Any, device: Any) -> int:
        """A number that no user feeds: its value is part of the structure. Equal ones are one node."""
        sig = signature(SCALAR, (), dtype, device, (value,))
        found = self._numbers.get(sig)
        if found is None:
            found = self._numbers[sig] = self.add(sig, ())
        return found

    def replace(self, number: int, other: int) -> None:
        """Let a node be what another one is, made of the same inputs."""
        self.sigs[number], self.inputs[number] = self.sigs[other], self.inputs[other]

    def order(self) -> list[int]:
        """The nodes that the roots need, inputs first."""
        order: list[int] = []
        seen = bytearray(len(self.sigs))
        stack = list(reversed(self.roots))
        while stack:
            number = stack[-1]
            if seen[number] == 2:
                stack.pop()
                continue
            waiting = [each for each in self.inputs[number] if seen[each] != 2]
            if waiting and seen[number] == 0:
                seen[number] = 1
                stack += reversed(waiting)
            else:
                seen[number] = 2
                order.append(number)
                stack.pop()
        return order

    def __repr__(self) -> str:
        lines = []
        for number in self.order():
            inputs = ", ".join(f"%{each}" for each in self.inputs[number])
            mark = "  → result" if number in self.roots else ""
            lines.append(f"%{number} = {self.sigs[number]!r}({inputs}){mark}")
        return "\n".join(lines)


class Walk:
    """A graph as it was walked: the `code` of its structure, its nodes, their numbers, the movement that
    begins somewhere, and the bundles. `inner` are the nodes with inputs, and `counts` their references.
    """

    __slots__ = ("begins", "bundles", "code", "counts", "inner", "nodes", "numbers")

    def __init__(
        self,
        code: tuple[int, ...],
        nodes: list[Node],
        numbers: dict[Node, int],
        inner: list[Node],
        counts: tuple[int, ...],
        begins: list[Signature],
        bundles: list[Bundle],
    ) -> None:
        self.code = code
        self.nodes = nodes
        self.numbers = numbers
        self.inner = inner
        self.counts = counts
        self.begins = begins
        self.bundles = bundles

    @property
    def held(self) -> list[int]:
        """The inner nodes that somebody outside refers to: that have more references than the graph's own."""
        uses = Counter(chain.from_iterable([each.inputs for each in self.nodes]))
        pairs = zip(self.inner, self.counts, strict=True)
        return [self.numbers[each] for each, count in pairs if count - uses[each] > _WALKED]

    @property
    def key(self) -> Key:
        """The structure, and what is held of it."""
        return (*self.code, -1, *self.held)


def walk(roots: Sequence[Node]) -> Walk:
    """The structure of a graph, and what is needed to make a snapshot or to run a plan.

    Scalars of one type and value at the same operand of the same op are one: an optimiser's learning rate is
    the same number for all parameters.
    """
    nodes: list[Node] = []
    numbers: dict[Node, int] = {}
    inner: list[Node] = []
    code: list[int] = []
    scalars: dict[tuple[Any, ...], int] = {}
    begins: list[Signature] = []
    bundles: list[Bundle] = []
    number_of, write, keep = numbers.__getitem__, code.append, nodes.append
    stack = list(roots)
    push, pop = stack.append, stack.pop
    while stack:
        node = pop()
        if node in numbers:
            continue
        below: Any = node
        while below is not None:  # go down to a node whose inputs have numbers; what is passed waits
            node, below = below, None
            inputs = node.inputs
            for each in inputs:
                if each in numbers:
                    continue
                if each.inputs:
                    push(node if below is None else below)
                    below = each
                    continue
                sig = each.sig  # what has no inputs gets its number at once
                number = len(nodes)
                if sig.op is SCALAR and node.sig.op not in _COMPOSED:
                    value = each.storage
                    key: tuple[Any, ...] = (node.sig.op, inputs.index(each), sig, value)
                    if not value:  # -0.0 equals 0.0
                        key = (*key, copysign(1.0, value))
                    number = scalars.setdefault(key, number)
                numbers[each] = number
                if number == len(nodes):
                    keep(each)
                    write(sig.number)
        sig = node.sig
        write(sig.form)
        if sig.op.form is not None:
            begins.append(sig)
        if inputs:
            inner.append(node)
            if len(inputs) == 2:  # the most frequent, and quicker by name
                first, second = inputs
                code += (numbers[first], numbers[second])
            else:
                code.extend(map(number_of, inputs))
            if node.__class__ is Bundle:
                bundles.append(node)
        numbers[node] = len(nodes)
        keep(node)
    write(-1)
    code.extend(map(number_of, roots))
    # So that they are not counted as holders
    node = each = inputs = stack = below = first = second = None  # type: ignore[assignment]
    counts = tuple(map(getrefcount, inner))
    return Walk(tuple(code), nodes, numbers, inner, counts, begins, bundles)


def snapshot(
    walked: Walk,
    roots: Sequence[Node],
    changed: Iterable[tuple[Node, Node]] = (),
    *,
    held: Iterable[int] | None = None,
) -> Snapshot:
    """The snapshot of a walked graph, with what is in its composites; `held` are other nodes than the walk's.

    `changed` are leaves with the nodes that their tensors get instead, which may take their storage.
    """
    numbers = walked.numbers
    graph = Snapshot(
        [node.sig for node in walked.nodes],
        [tuple([numbers[each] for each in node.inputs]) for node in walked.nodes],
        tuple([numbers[each] for each in roots]),
        frozenset(walked.held if held is None else held),
        {
            numbers[after]: numbers[before]
            for before, after in changed
            if before in numbers and after in numbers
        },
    )
    expand(graph)
    return graph
