"""Values for nodes: the one place where the stages meet. Plans are found by structure, or made; then they
run.

In: nodes. Out: the same nodes, settled: each holds its storage. `evaluate` submits and returns; `read` waits.
The invariant: a structure seen before is neither scheduled, lowered nor written again.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from operator import itemgetter
from sys import getrefcount
from typing import Any, Protocol

from ..arrays import has_numpy, np
from ..errors import ArgumentError, OutOfMemoryError, WebgradError
from ..graph.holders import largest_arrays, name_buffers
from ..graph.node import Node, Signature, backlog, where_made
from ..graph.refcounts import NAMED
from ..graph.snapshot import Snapshot, Walk, snapshot, walk
from ..graph.trace import refuse_in_trace
from ..observing import observers, stage
from ..runtime.buffers import naming
from ..runtime.collector import collector_paused
from ..runtime.device import CpuDevice
from ..schedule.pairs import split_pairs
from ..tuning import is_on
from ..values import Values, packed

PLANS_KEPT = 1024
MOST_COUNTS = 64  # of references by which a structure is known
HOST_COPIES = 1 << 16  # bytes: of what is no larger a copy stays on the host once it was read


class Plan(Protocol):
    """What runs a graph of one structure. `stored` are the numbers of the nodes it gives values for."""

    stored: tuple[int, ...]

    def run(self, nodes: list[Node]) -> list[Any]:
        """Storage for `stored`, from the storage of the leaves among `nodes`."""
        ...

    def vary(self, forms: frozenset[int]) -> bool:
        """Have movement of these forms begin elsewhere in each run; False where that needs another plan."""
        ...

    def record(self, steady: Sequence[int] = ()) -> Recorded:
        """The same, to be run over other leaves with less ado; `steady` are leaves that seldom change."""
        ...


class Recorded(Protocol):
    """A plan that is run again and again, and submits by itself. Some leaves are given `apart`."""

    apart: Sequence[int]

    def run(self, nodes: list[Node], donated: frozenset[int], apart: Sequence[Node] = ()) -> list[Any]:
        """Storage for the plan's `stored`; `donated` are leaves, by number, whose storage is given up."""
        ...


class _Structure:
    """The plan of a structure, for movement that begins where it began when the plan was made, but for that
    of the `varying` forms, which begins elsewhere in each run. `held` are the nodes that somebody holds, by
    number; `used` is the run that had it last.
    """

    __slots__ = ("begins", "held", "plan", "used", "varying")

    def __init__(self, begins: list[Signature], held: list[int], plan: Plan, used: int) -> None:
        self.begins = begins
        self.held = held
        self.plan = plan
        self.varying: frozenset[int] = frozenset()
        self.used = used

    def serves(self, begins: list[Signature]) -> bool:
        """Whether the plan can run where movement begins at these places; if not, it varies from now on."""
        forms = {
            here.form
            for here, there in zip(begins, self.begins, strict=True)
            if here is not there and here.form not in self.varying
        }
        self.varying |= forms
        return not forms or self.plan.vary(self.varying)


class _State:
    """The plans, and the lock under which nodes change."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        # by the code of a structure, then by references of its inner nodes, of which several say the same
        self.plans: dict[tuple[int, ...], dict[tuple[int, ...], _Structure]] = {}
        self.made = 0
        self.runs = 0
        self.checker: Checker | None = None

    def find(self, code: tuple[int, ...], walked: Walk) -> _Structure | None:
        """What is known of a structure and of what is held of it."""
        alike = self.plans.get(code)
        if alike is None:
            return None
        found = alike.get(walked.counts)
        if found is None:
            held = walked.held
            found = next((each for each in alike.values() if each.held == held), None)
            if found is not None and len(alike) < MOST_COUNTS:
                alike[walked.counts] = found
        return found

    def keep(self, code: tuple[int, ...], walked: Walk, made: _Structure) -> None:
        """Remember a plan; where there are too many, the quarter that was used longest ago goes."""
        self.plans.setdefault(code, {})[walked.counts] = made
        every = {each for alike in self.plans.values() for each in alike.values()}
        if len(every) > PLANS_KEPT:
            last = sorted(each.used for each in every)[PLANS_KEPT // 4]
            for key, alike in list(self.plans.items()):
                left = {counts: each for counts, each in alike.items() if each.used > last}
                if left:
                    self.plans[key] = left
                else:
                    del self.plans[key]


# Is shown every graph before it is computed, its roots and the walk over it; what it gives, if anything, is
# called with the numbers and the storage of what was computed.
Seen = Callable[[Sequence[int], Sequence[Any]], None]
Checker = Callable[[list[Node], Walk], Seen | None]
_state = _State()
_importing = threading.RLock()  # a child that is forked while a module is imported would wait for it for ever
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: setattr(_state, "lock", threading.RLock()))
    os.register_at_fork(
        before=_importing.acquire,
        after_in_parent=_importing.release,
        after_in_child=_importing.release,
    )


def plans() -> int:
    """How many plans were made in this process."""
    return _state.made


def clear_plans() -> None:
    """Forget every plan."""
    _state.plans.clear()


@contextmanager
def checking(checker: Checker) -> Iterator[None]:
    """Show a checker every graph before it is computed; captured functions run as plain ones meanwhile."""
    with _state.lock:
        if _state.checker is not None:
            raise ArgumentError("a check is under way already: one at a time, each within no other")
        _state.checker = checker
    try:
        yield
    finally:
        _state.checker = None


def is_checked() -> bool:
    """Whether every graph is shown to a checker."""
    return _state.checker is not None


def evaluate(nodes: Sequence[Node]) -> None:
    """Give every node its storage, and submit: a NumPy array on the cpu, a buffer of the device on a GPU."""
    refuse_in_trace("a tensor is computed", of=nodes)
    sig = nodes[0].sig if nodes else None  # what is computed has a leaf's
    _record(nodes)
    for device in {each.sig.device for each in nodes if each.sig.device.is_gpu}:
        try:
            device.queue.flush("eval", [each.storage for each in nodes if each.sig.device is device])
        except WebgradError as error:
            raise _placed(error, sig, nodes[0]) from None


def _record(nodes: Sequence[Node]) -> None:
    """Compute, or record for a GPU, what is not computed."""
    by_device: dict[Any, list[Node]] = {}
    with _state.lock:
        for each in nodes:
            if each.sig.kind == "scalar":
                each.settle(_stored_number(each))
            elif each.storage is None:
                by_device.setdefault(each.sig.device, []).append(each)
        for roots in by_device.values():
            try:
                _run(roots if len(roots) == 1 else list(dict.fromkeys(roots)))
            except WebgradError as error:
                backlog.note_failure(roots)
                raise _placed(error, roots[0].sig, roots[0]) from None
            except MemoryError as error:  # NumPy's
                backlog.note_failure(roots)
                largest = largest_arrays(roots[0].sig.device)
                full = OutOfMemoryError(f"the cpu has no room: {error}. The largest tensors: {largest}")
                raise _placed(full, roots[0].sig, roots[0]) from None


def picker(places: Sequence[int]) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """A function that gives a tuple of those of a sequence's items."""
    if len(places) < 2:
        return lambda nodes: tuple([nodes[each] for each in places])
    return itemgetter(*places)


def _stored_number(node: Node) -> Any:
    array = _number(node)
    return node.sig.device.upload(array) if node.sig.device.is_gpu else array


def _run(roots: list[Node]) -> None:
    """Compute nodes of one device, with what else comes of the same bundles, or where that fails alone."""
    with stage("walk"):
        walked = walk(roots)
        more = _siblings(walked) if walked.bundles else ()
    if more:
        del walked  # it would count as a holder of every node
        with suppress(WebgradError, MemoryError):
            return _run_walked([*roots, *more])
        return _run_walked(roots)
    return _run_walked(roots, walked)


def _run_walked(roots: list[Node], walked: Walk | None = None) -> None:
    if walked is None:
        with stage("walk"):
            walked = walk(roots)
    seen = None if _state.checker is None else _state.checker(roots, walked)
    code, nodes = walked.code, walked.nodes
    if is_on():
        code = (*code, -1)  # another plan than without tuning
    _state.runs += 1
    known = _state.find(code, walked)
    if known is None:
        known = _Structure(walked.begins, walked.held, _made(roots, walked), _state.runs)
        _state.keep(code, walked, known)
    elif known.begins != walked.begins and not known.serves(walked.begins):
        known.plan = _made(roots, walked, varying=known.varying)
    known.used = _state.runs
    plan = known.plan
    with stage("record"):
        found = plan.run(nodes)
    if seen is not None:
        seen(plan.stored, found)
    for number, storage in zip(plan.stored, found, strict=True):
        nodes[number].settle(storage)


def _siblings(walked: Walk) -> list[Node]:
    """Other results of a graph's bundles that somebody holds: one by one, all would be computed each time."""
    found = [each for bundle in walked.bundles for each in bundle.waiting()]
    return [each for each in found if each not in walked.numbers]


def _made(
    roots: list[Node],
    walked: Walk,
    changed: Sequence[tuple[Node, Node]] = (),
    *,
    varying: frozenset[int] = frozenset(),
    captured: bool = False,
) -> Plan:
    """A new plan, of a captured graph for its roots alone; an error on the way knows the node that is to
    blame, where its number is known.
    """
    try:
        with stage("plan"), collector_paused():
            return _planned(roots, walked, changed, varying, captured=captured)
    except WebgradError as error:
        blamed = getattr(error, "value", len(walked.nodes))
        if blamed < len(walked.nodes):
            error.node = walked.nodes[blamed]  # type: ignore[attr-defined]
        raise


def _planned(
    roots: list[Node],
    walked: Walk,
    changed: Sequence[tuple[Node, Node]],
    varying: frozenset[int],
    *,
    captured: bool,
) -> Plan:
    _state.made += 1
    graph = snapshot(walked, roots, changed, held=() if captured else None)
    if observers():
        graph.lines = [each.where for each in walked.nodes]
    device = roots[0].sig.device
    if isinstance(device, CpuDevice):
        with _importing:
            from .cpu_plan import HostPlan  # here: it needs NumPy, which GPUs do without
        return HostPlan(graph, device, captured=captured, varying=varying)
    with _importing:
        from .gpu_plan import GpuPlan  # here: whoever uses the cpu alone loads no compiler of kernels
    return GpuPlan(graph, device, fuse=device.settings.fuse, nodes=walked.nodes, varying=varying)


def compute(nodes: Sequence[Node]) -> None:
    """Give nodes their storage, or record that for a GPU, without submitting."""
    if nodes:
        _record(nodes)


def plan_for(roots: list[Node], changed: Sequence[tuple[Node, Node]] = ()) -> tuple[Plan, list[Node]]:
    """A plan that stores nothing but the roots, of one device, and the graph's nodes by number.

    `changed` are leaves with the roots that may take their storage, where a run donates it.
    """
    with _state.lock:
        walked = walk(roots)
        try:
            plan = _made(roots, walked, changed, captured=True)
        except WebgradError as error:
            raise _placed(error, roots[0].sig, roots[0]) from None
    return plan, walked.nodes


def submit(plan: Plan, nodes: list[Node]) -> list[Any]:
    """Run a plan over leaves, and submit."""
    with _state.lock, stage("record"):
        found = plan.run(nodes)
    device = nodes[plan.stored[0]].sig.device
    if device.is_gpu:
        device.queue.flush("eval", found)
    return found


def evaluation_lock() -> AbstractContextManager[Any]:
    """While it is entered, no other thread computes, or takes a node's storage to read it."""
    return _state.lock


def snapshot_of(roots: Sequence[Node]) -> Snapshot:
    """The graph under some nodes, with the users' lines, while no thread changes it."""
    with _state.lock:
        walked = walk(roots)
        graph = split_pairs(snapshot(walked, roots))
    graph.lines = [each.where for each in walked.nodes]
    return graph


def _placed(error: WebgradError, sig: Signature | None, node: Node) -> WebgradError:
    """An error that came while a node was computed, with the user's line that made it."""
    if error.args and "\n  while computing" not in str(error.args[0]):
        found = getattr(error, "node", None)  # the very one that failed, where that is known
        node, sig = (node, sig) if found is None else (found, found.sig)
        place = where_made(node)
        line = f"\n  while computing {sig!r}" + (f", made at {place}" if place else "")
        error.args = (f"{error.args[0]}{line}", *error.args[1:])
    return error


def read(node: Node) -> Any:
    """A node's value on the host, not to be written to where it says so: it may be the storage itself.

    That is a NumPy array, or `Values` where there is no NumPy.
    """
    refuse_in_trace("a tensor's value is read", of=(node,))
    if not node.sig.device.is_gpu:
        return _storage(node)
    base, moves = _source(node)
    sig = base.sig  # what is computed has a leaf's
    if sig.kind == "scalar":
        return _moved(_number(base), moves)
    storage = _storage(base)
    try:
        data = sig.device.read(storage, keep=sig.nbytes <= HOST_COPIES)
    except WebgradError as error:
        raise _placed(error, sig, base) from None
    return _moved(_array(base, data), moves)


async def read_async(node: Node) -> Any:
    """The same, letting other tasks run while a GPU works."""
    refuse_in_trace("a tensor's value is read", of=(node,))
    sig = node.sig  # what is computed has a leaf's
    storage = _storage(node)
    if not sig.device.is_gpu:
        return storage
    try:
        return _array(node, await sig.device.read_async(storage))
    except WebgradError as error:
        raise _placed(error, sig, node) from None


def _source(node: Node) -> tuple[Node, list[Signature]]:
    """What to bring to the host for a node's value, and the moves from there, the last one first.

    That is the node itself, or, of one element, a small value that somebody keeps and that it was taken from:
    who reads element by element then computes and fetches once, and needs no kernel for each index.
    """
    moves: list[Signature] = []
    base = node
    if node.sig.size != 1 or not has_numpy():
        return node, moves
    with _state.lock:
        while base.storage is None and base.sig.kind in ("move", "view") and len(base.inputs) == 1:
            moves.append(base.sig)
            base = base.inputs[0]
        # Held by this name and its reader's inputs; more is somebody's who may ask again.
        is_kept = base.storage is not None or getrefcount(base) > NAMED + 1
        return (base, moves) if is_kept and base.sig.nbytes <= HOST_COPIES else (node, [])


def _moved(array: np.ndarray[Any, Any], moves: list[Signature]) -> np.ndarray[Any, Any]:
    for sig in reversed(moves):
        array = sig.op.numpy(sig, array)
    return array


def _number(node: Node) -> Any:
    if not has_numpy():
        return packed([node.storage], node.sig.dtype, node.sig.shape, wrap=True)
    array = np.array(node.storage, node.sig.dtype.numpy)
    array.flags.writeable = False
    return array


def _storage(node: Node) -> Any:
    """A node's storage, computed if need be; whoever holds it keeps it from being donated."""
    with _state.lock:
        _record([node])
        return node.storage


def _array(node: Node, data: Any) -> Any:
    if isinstance(data, memoryview):
        return Values(data, node.sig.dtype, node.sig.shape)
    return data.view(node.sig.dtype.numpy).reshape(node.sig.shape)


naming.of = name_buffers
