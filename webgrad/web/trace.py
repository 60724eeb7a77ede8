"""A function as a graph on paper: whatever device its model is on, it is traced as a browser's GPU.

In: a function and examples of its inputs. Out: a `Graph`: what goes in, what comes out, which tensors it
changes, and how to find the values of all others. The invariant: afterwards every tensor has what it had,
and nothing was computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from typing import Any, NamedTuple

from .. import dtypes
from ..errors import ArgumentError, DTypeError
from ..evaluate.evaluate import evaluation_lock
from ..evaluate.waiting import compute_waiting
from ..graph.node import Node, scalar, signature
from ..graph.op import LEAF
from ..graph.snapshot import Snapshot, snapshot, walk
from ..graph.trace import RuntimeFloat, RuntimeInt, is_runtime, one_at_a_time, plain, refuse_in_trace
from ..jit.closures import store_numbers, tensors_that_refer_to
from ..jit.examples import examples_of, labels_of_result, refuse_twice
from ..jit.replay import runtime_number
from ..jit.trace import Traced, traced
from ..runtime.device import instead_while
from ..runtime.shield import shield
from ..schedule.pairs import split_pairs
from ..tensor import Tensor
from .paper import PaperDevice

__all__ = ["Given", "Graph", "Held", "Input", "trace_on_paper"]


class Input(NamedTuple):
    """What a function is given: a tensor, a number, or random bits; a number may have a default.

    Numbers that the user passes have their example's value, for forms to begin with.
    """

    name: str
    kind: str  # tensor, number, random
    dtype: dtypes.DType
    shape: tuple[int, ...] = ()
    default: float | int | None = None
    example: float | int | None = None


class Given(NamedTuple):
    """What the leaves of an input have as their storage: its name."""

    name: str


class Held(NamedTuple):
    """What the leaves of a tensor that was there before have: the node whose value it is, and whose it is.

    Tensors may share a node until one of them changes, so state is its owner's: a tensor's own, or that of
    all tensors that share a gradient.
    """

    node: Node
    owner: Any


class Graph(NamedTuple):
    """A traced function. Its nodes are apart from the graph that they were traced in, and so never computed.

    Leaves have what they stand for as their storage: an input as `Given`, a tensor as `Held`, or the buffer
    of a constant.
    """

    inputs: list[Input]
    numbers: dict[int, str]  # run-time numbers, by identity: their names
    outputs: list[tuple[str, Node]]
    changed: list[tuple[Node, Node]]  # state: the leaf before, and the node after
    snapshot: Snapshot
    nodes: list[Node]  # by the snapshot's numbers
    places: dict[int, int]  # nodes' identities → their numbers
    roots: list[Node]  # what is to be computed, each once

    def leaves(self) -> list[Node]:
        """The tensors and the state that it reads, changes or gives."""
        every = [*self.nodes, *(node for _, node in self.outputs)]
        every += [node for each in self.changed for node in each]
        return [node for node in every if node.sig.op is LEAF and not isinstance(node.storage, Given)]


def trace_on_paper(
    function: Callable[..., Any], example_inputs: Any, device: PaperDevice, name: str = "run"
) -> Graph:
    """The graph of one call."""
    refuse_in_trace("export", "Export it outside")
    given = examples_of("export", function, example_inputs, name)
    labels, leaves = given.labels, given.leaves
    with one_at_a_time, evaluation_lock():
        compute_waiting()
        store_numbers()
        placeholders = _placeholders(zip(labels, leaves, strict=True), device)
        was = [each.node for each in placeholders]
        args, named = given.arguments(placeholders)
        with _moved_to_paper(device, was), instead_while(device):
            found = traced(lambda: function(*args, **named), was)
            changed = [(before, after) for _, before, after in found.changed if before.sig.op is LEAF]
    _refuse_changed_inputs(changed, was, labels)
    _refuse_kept_gradients(found, name)
    return _graph(found, changed, dict(zip(labels, was, strict=True)), name)


def _placeholders(leaves: Iterable[tuple[str, Any]], device: PaperDevice) -> list[Tensor]:
    """A tensor of its own for every end, so that two inputs are never taken for one."""
    made = []
    for label, each in leaves:
        if isinstance(each, Tensor):
            sig = each.node.sig
            paper = signature(LEAF, sig.shape, sig.dtype, device)
            made.append(Tensor(Node(paper, (), Given(label), each.node.where)))
        elif isinstance(value := runtime_number(each), float):
            made.append(Tensor(scalar(RuntimeFloat(value), dtypes.float32, device)))
        else:
            made.append(Tensor(scalar(RuntimeInt(value), dtypes.int32, device)))
    return made


@contextmanager
def _moved_to_paper(device: PaperDevice, but: Sequence[Node]) -> Iterator[None]:
    """Have every tensor there is on paper: which of them a function uses is only known once it has run."""
    classes: list[type] = [Tensor]
    for each in classes:
        classes += each.__subclasses__()
    ours = {id(node) for node in but}
    tensors = [
        each
        for each in tensors_that_refer_to(classes)
        if each.node.sig.op is LEAF and id(each.node) not in ours
    ]
    before = [(each, each.node) for each in tensors]
    moved: dict[int, Node] = {}
    try:
        with shield:
            for tensor, node in before:
                sig = node.sig
                owner = tensor if node.history is None else node
                new = moved.get(id(owner))
                if new is None:
                    paper = signature(LEAF, sig.shape, sig.dtype, device)
                    new = moved[id(owner)] = Node(paper, (), Held(node, owner), node.where)
                    new.history = node.history
                tensor.node = new
        yield
    finally:
        with shield:
            for tensor, node in before:
                tensor.node = node


def _refuse_changed_inputs(
    changed: Sequence[tuple[Node, Node]], was: Sequence[Node], labels: Sequence[str]
) -> None:
    for before, _ in changed:
        for node, label in zip(was, labels, strict=True):
            if node is before:
                raise ArgumentError(
                    f"export: the function changes its input {label!r} in place, and an input is another at "
                    "each call: return the new value, or close over the tensor to have it as state"
                )


def _refuse_kept_gradients(found: Traced, name: str) -> None:
    """Refuse gradients that a call takes from the call before, or would: a page keeps none."""
    empty = {id(slot()) for slot in found.empty}
    if found.gradients or any(id(slot()) in empty for slot, _ in found.slots):
        raise ArgumentError(
            f"export: {name} takes gradients that an earlier call left, and a page keeps none: call "
            "zero_grad() and backward() inside, in this order, or use webgrad.grad"
        )


def _graph(found: Traced, changed: list[tuple[Node, Node]], given: Mapping[str, Node], name: str) -> Graph:
    inputs: list[Input] = []
    numbers: dict[int, str] = {}
    for label, node in given.items():
        sig = node.sig
        if sig.op is LEAF:
            inputs.append(Input(label, "tensor", sig.dtype, sig.shape))
        else:
            inputs.append(Input(label, "number", sig.dtype, example=plain(node.storage)))
            numbers[id(node.storage)] = label
    drawn = _dtypes_of_numbers([*found.results, *(after for _, after in changed)])
    for number in (each for _, several in found.draws for each in several):
        dtype = drawn.get(id(number))
        if dtype is None:
            continue  # nothing is computed of it
        # A generator's keys are uint32; `wg.fresh` gives float32 and int32.
        kind, default = ("random", None) if dtype is dtypes.uint32 else ("number", plain(number))
        if default is not None and not math.isfinite(default):
            default = None  # JSON has no such number: it must be given
        label = _unused(kind, given, len(inputs))
        inputs.append(Input(label, kind, dtype, (), default))
        numbers[id(number)] = label
    outputs = list(zip(labels_of_result(found.spec), found.results, strict=True))
    refuse_twice("export", [label for label, _ in outputs], f"outputs of {name}")
    if not outputs and not changed:
        raise ArgumentError(f"export: {name} gives no tensor and changes none: there is nothing to compute")
    for label, node in outputs:
        if is_runtime(node.storage) or node.sig.kind == "scalar":
            raise ArgumentError(f"export: {name} returns a number as {label!r}: return a tensor of it")
    for label, node in [*given.items(), *outputs]:
        if node.sig.dtype.kind == "c":
            raise DTypeError(
                f"export: {label!r} of {name} is {node.sig.dtype.name}, which JavaScript has no arrays of: "
                "pass its parts (webgrad.view_as_real(x), webgrad.view_as_complex(pairs) inside)"
            )
    _refuse_wide(given.values(), given)
    return _apart(inputs, numbers, outputs, changed)


def _apart(
    inputs: list[Input],
    numbers: dict[int, str],
    outputs: Sequence[tuple[str, Node]],
    changed: Sequence[tuple[Node, Node]],
) -> Graph:
    """The same with nodes that nothing else refers to."""
    every = [*(node for _, node in outputs), *(after for _, after in changed)]
    roots = list({id(node): node for node in every if node.storage is None}.values())
    walked = walk(roots)
    _refuse_wide([*walked.nodes, *(node for _, node in outputs), *(before for before, _ in changed)])
    made: dict[int, Node] = {}

    def apart(node: Node) -> Node:
        found = made.get(id(node))
        if found is None:
            found = made[id(node)] = Node(node.sig, (), node.storage, node.where)
        return found

    nodes = [apart(node) for node in walked.nodes]
    return Graph(
        inputs,
        numbers,
        [(label, apart(node)) for label, node in outputs],
        [(apart(before), apart(after)) for before, after in changed],
        split_pairs(snapshot(walked, roots, changed, held=())),
        nodes,
        {id(node): number for number, node in enumerate(nodes)},
        [apart(node) for node in roots],
    )


def _refuse_wide(nodes: Iterable[Node], names: Iterable[str] = ()) -> None:
    """Refuse what no browser has: 64-bit types."""
    for node, name in zip_longest(nodes, names):
        if node.sig.dtype.feature:
            what = f"{name!r}" if name else f"{node.sig!r}"
            narrow = "float32" if node.sig.dtype.kind == "f" else "int32"
            raise DTypeError(
                f"export: {what} is {node.sig.dtype.name}, which GPUs in browsers have not: convert it to 32 "
                f"bits (x.astype(webgrad.{narrow}){', model.float()' if narrow == 'float32' else ''})"
            )


def _unused(kind: str, taken: Container[str], number: int) -> str:
    """A name for an input that the function's code does not name."""
    name = f"{kind}_{number}"
    return _unused(f"{kind}_", taken, number) if name in taken else name


def _dtypes_of_numbers(roots: Sequence[Node]) -> dict[int, dtypes.DType]:
    """The dtypes of the run-time numbers in a graph, by identity."""
    found: dict[int, dtypes.DType] = {}
    stack, seen = list(roots), set()
    while stack:
        node = stack.pop()
        if id(node) not in seen:
            seen.add(id(node))
            stack += node.inputs
            if is_runtime(node.storage):
                found[id(node.storage)] = node.sig.dtype
    return found
