"""One graph under check: each of its kernels on a GPU, and the same by NumPy from the same inputs.

In: a graph before it is computed. Out: counts and divergences in a `CheckReport`. Every kernel goes on from
the GPU's own values, so that its error is not blamed on the next; a kernel that is wrong has its ops run one
by one. The reference is of the graph as its user made it: what the scheduler rewrites is held against it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from ...arrays import Array, np
from ...errors import DeviceLostError, OutOfMemoryError, WebgradError
from ...evaluate.cpu_plan import HostPlan
from ...graph.node import Node, Signature, check_offered, signature, where_made
from ...graph.op import LEAF
from ...graph.snapshot import Snapshot, Walk, snapshot
from ...kernels.launch import Launch
from ...lower.compile import compile_schedule
from ...runtime.webgpu import Device
from ...schedule.common_subexpressions import share_common_subexpressions
from ...schedule.pairs import split_pairs
from ...schedule.plan import Group
from ...schedule.schedule import schedule
from ...tuning.choice import choosing
from .bounds import bounded
from .comparison import Comparison, compare
from .host_parts import on_cpu
from .kernel_runs import Values, array_of, compared_alone
from .reference import TooLarge, between, referred
from .rounding import Bounded, exact
from .verdict import CheckReport, Divergence

__all__ = ["CheckedGraph"]

NEAR = 1e-3  # relative: what kernels in one submission may differ by from the same ones one by one


class CheckedGraph:
    """One graph: as its user made it, and as it is scheduled for a GPU. Numbers mean the same in both."""

    def __init__(self, report: CheckReport, device: Device, roots: list[Node], walked: Walk) -> None:
        self.report = report
        self.device = device
        self.nodes = walked.nodes
        self.roots = roots
        self.walked = walked
        self.count = len(walked.nodes)
        self.graph = self._placed(split_pairs(snapshot(walked, roots)))
        share_common_subexpressions(self.graph)
        self.lacking = {} if roots[0].sig.device.is_gpu else _lacking(self.graph, device)
        self.work = _without(self.graph, self.lacking)
        self.numbers = {at: each.storage for at, each in enumerate(self.nodes) if each.sig.kind == "scalar"}
        self.values = Values(device, self.work, self.numbers)
        self.known: dict[int, Bounded] = {}
        self.unjudged: set[int] = set()  # parts of values that mean nothing by themselves
        self.arrays: dict[int, Array] = {}  # the leaves' own, for the cpu's plan

    def _placed(self, graph: Snapshot) -> Snapshot:
        """The same graph on the GPU."""
        for number, sig in enumerate(graph.sigs):
            if sig.device is not self.device:
                graph.sigs[number] = signature(sig.op, sig.shape, sig.dtype, self.device, sig.attributes)
        return graph

    def run(self, everything: bool) -> None:
        """Go through the kernels."""
        report, device = self.report, self.device
        try:
            plan = schedule(self.work, device.profile, fuse=device.settings.fuse)
            with choosing(device, self.numbers) as choose:
                compiled = compile_schedule(
                    plan, device.profile, check=device.settings.checks, choose=choose, offered=False
                )
        except WebgradError as error:
            self._skip(f"a graph that {device.name} refuses ({_first_line(error)})")
            return  # on a GPU the user is told when it is computed
        report.evaluations += 1
        for what, reason in self.lacking.items():
            if self.graph.sigs[what].kind not in ("leaf", "scalar"):
                self._skip(f"{self.graph.sigs[what].op.name} ({reason})")
        self._leaves()
        last = self._last_uses([group for groups, _ in compiled for group in groups])
        for at, (groups, launches) in enumerate(compiled):
            self._kernel(groups, launches)
            if report.divergences and not everything:
                return
            for each in last.get(at, ()):
                self.values.buffers.pop(each, None)
                if not self.lacking:
                    self.known.pop(each, None)
        for each in self.lacking:  # those that no kernel reads
            self._ready(each)
        if not report.divergences and all(map(self._has_reference, self.work.order())):
            self._drift()

    def _skip(self, what: str) -> None:
        self.report.skipped[what] = self.report.skipped.get(what, 0) + 1

    def _leaves(self) -> None:
        """Both devices' leaves: what the host holds is uploaded, what the GPU holds is read."""
        for number, node in enumerate(self.nodes):
            sig = self.graph.sigs[number]
            if sig.kind == "scalar":
                self.known[number] = exact(np.array(node.storage, sig.dtype.numpy))
            elif sig.kind == "leaf":
                self._leaf(number, node, sig)

    def _leaf(self, number: int, node: Node, sig: Signature) -> None:
        if node.sig.device.is_gpu:
            self.values.buffers[number] = node.storage
            self.arrays[number] = array_of(self.device, node.storage, sig)
            self.known[number] = exact(self.arrays[number])
            return
        array = np.ascontiguousarray(node.storage)
        if array.dtype.kind == "c":
            array = array[..., None].view(array.real.dtype)
        self.arrays[number] = array.reshape(sig.shape)
        self.known[number] = exact(self.arrays[number])
        if number not in self.lacking:
            self.values.place(number, array)

    def _last_uses(self, groups: Sequence[Group]) -> dict[int, list[int]]:
        """By group: values that neither a later kernel nor a later reference needs."""
        stored = {each for group in groups for each in group.outputs if each < self.count}
        stored |= set(self.known) | set(self.lacking)
        last: dict[int, int] = {}
        for at, group in enumerate(groups):
            for each in (*group.reads, *group.outputs):
                last[each] = at
            for output in group.outputs:
                if output < self.count:
                    others = stored - {output}
                    for number in between(self.graph, [output], others):
                        last.update(dict.fromkeys(self.graph.inputs[number], at))
        found: dict[int, list[int]] = {}
        kept = set(self.graph.roots) | {each for each in self.known if self.nodes[each].sig.kind == "scalar"}
        for each, at in last.items():
            if each not in kept:
                found.setdefault(at, []).append(each)
        return found

    # One kernel

    def _kernel(self, groups: tuple[Group, ...], launches: list[Launch]) -> None:
        outputs = [each for group in groups for each in group.outputs]
        reads = dict.fromkeys(each for group in groups for each in group.reads)
        if all(self._ready(each) for each in reads):
            try:
                self.values.run(groups, launches)
            except (DeviceLostError, OutOfMemoryError):
                raise
            except WebgradError as error:
                self._skip(f"{self._name(outputs[0])} ({_first_line(error)})")
        missing = [each for each in outputs if each not in self.values.buffers]
        if missing:
            self._instead(missing)
            return
        found = {
            each: array_of(self.device, self.values.buffers[each], self.work.sigs[each]) for each in outputs
        }
        try:
            if self._has_reference(groups[0].center):
                self._compare(groups, launches, found)
            else:
                self._skip(f"{self._name(outputs[0])} (a kernel of your own without a reference)")
        except TooLarge:
            self._skip(f"{self._name(outputs[0])} (its reference does not fit the host's memory)")
        for each, array in found.items():
            self.known[each] = exact(array)

    def _has_reference(self, number: int) -> bool:
        """Whether the cpu can compute a node: not what a user's kernel does, unless the user says how."""
        sig = self.work.sigs[number] if number >= 0 else None
        return sig is None or sig.kind != "kernel" or sig.attributes[0].reference is not None

    def _ready(self, number: int) -> bool:
        """Whether the GPU has a value; one that it cannot compute itself comes from the cpu."""
        if number not in self.values.buffers and number in self.lacking and number not in self.known:
            self._instead([number])
        return number in self.values.buffers

    def _instead(self, numbers: Sequence[int]) -> None:
        """Go on with NumPy's values where the GPU has none, and hold the cpu against them."""
        graph = self.graph if all(each < self.count for each in numbers) else self.work
        for number, value in referred(graph, numbers, dict(self.known)):
            if number in numbers:
                if graph is self.graph:
                    self._compare_cpu({number: value})
                sig = graph.sigs[number]
                array = value.value.astype(sig.dtype.numpy)
                self.known[number] = exact(array)
                try:
                    self.values.place(number, array)
                except WebgradError:  # a dtype that the device does not have
                    continue

    def _compare(self, groups: tuple[Group, ...], launches: list[Launch], found: dict[int, Array]) -> None:
        report = self.report
        own = [each for each in found if each < self.count]
        parts = [each for each in found if each >= self.count]
        compared = False
        expected: dict[int, Bounded] = {}
        for graph, wanted in ((self.graph, own), (self.work, parts)):
            if not wanted:
                continue
            for number, value in referred(graph, wanted, self.known):
                if number not in found:
                    continue
                if number < self.count:
                    expected[number] = value
                result = compare(value, found[number])
                if result.unjudged < result.elements or not result.elements:
                    compared = True
                else:
                    self.unjudged.add(number)
                report.elements += result.elements - result.unjudged
                if number < self.count:  # parts are judged again in the value that they are parts of
                    report.unjudged += result.unjudged
                if result.ratio > report.largest and result.ok:
                    report.largest, report.largest_op = result.ratio, self._name(number)
                if not result.ok:
                    report.divergences.append(self._blamed(graph, number, groups, launches, result))
                    return
        if compared and launches:
            report.kernels += 1
            report.nodes += sum(len(group.inside) for group in groups)
        self._compare_cpu(expected)

    def _compare_cpu(self, expected: dict[int, Bounded]) -> None:
        """Hold what the cpu device makes of the same values against the same bounds."""
        found = on_cpu(self.graph, list(expected), self.known, self.numbers) if expected else {}
        for number, array in found.items():
            result = compare(expected[number], array)
            if not result.ok:
                self.report.divergences.append(self._blamed_on_cpu(number, result))
                return

    def _name(self, number: int) -> str:
        sig = (self.graph if number < self.count else self.work).sigs[number]
        place = where_made(self.nodes[number]) if number < self.count else ""
        return f"{sig.op.name} {sig.dtype.name} {list(sig.shape)}" + (f" at {place}" if place else "")

    # Who is to blame

    def _blamed(
        self,
        graph: Snapshot,
        number: int,
        groups: tuple[Group, ...],
        launches: list[Launch],
        result: Comparison,
    ) -> Divergence:
        """The first op on the way to a wrong value that is wrong by itself; else the value's own."""
        group = next(group for group in groups if number in group.outputs)
        rewritten = graph is self.graph and self._is_right(group, number)
        cause = "fusion"
        for each, inputs in self._steps(graph, number):
            found = compared_alone(self.device, graph, each, inputs)
            if found is not None and not found.ok:
                number, result, cause = each, found, "op"
                break
        if rewritten:
            cause = "rewrite"
        ops = tuple(self.work.sigs[each].op.name for each in group.inside)
        return self._divergence(graph, number, cause, result, launches, ops)

    def _blamed_on_cpu(self, number: int, result: Comparison) -> Divergence:
        """The first op on the way to a value that the cpu has wrong; else the value's own."""
        ops = []
        for each, inputs in self._steps(self.graph, number):
            ops.append(self.graph.sigs[each].op.name)
            sources = [exact(array) for array in inputs]
            known = dict(zip(self.graph.inputs[each], sources, strict=True))
            array = on_cpu(self.graph, [each], known, self.numbers)[each]
            found = compare(bounded(self.graph.sigs[each], sources), array)
            if not found.ok:
                number, result = each, found
                break
        return self._divergence(self.graph, number, "cpu", result, (), tuple(ops))

    def _divergence(
        self,
        graph: Snapshot,
        number: int,
        cause: str,
        result: Comparison,
        launches: Sequence[Launch],
        ops: tuple[str, ...],
    ) -> Divergence:
        sig = graph.sigs[number]
        sources = [graph.sigs[each] for each in graph.inputs[number]]
        return Divergence(
            sig.op.name,
            sig.attributes,
            sig.shape,
            sig.dtype.name,
            tuple(each.shape for each in sources),
            tuple(each.dtype.name for each in sources),
            result.error,
            result.allowed,
            result.index,
            result.found,
            result.wanted,
            result.wrong,
            result.elements,
            self._line(number),
            ", ".join(dict.fromkeys(each.kernel.name for each in launches)),
            ops,
            "\n".join(dict.fromkeys(each.program.text for each in launches)),
            "cpu" if cause == "cpu" else self.device.name,
            cause,
        )

    def _steps(self, graph: Snapshot, number: int) -> Iterator[tuple[int, list[Array]]]:
        """The nodes between known values and a wrong one, inputs first, with their inputs' arrays."""
        values: dict[int, Bounded] = {}
        for each, value in referred(graph, [number], self.known):
            inputs = [values.get(at) or self.known[at] for at in graph.inputs[each]]
            yield each, [_stored(x, graph.sigs[at]) for x, at in zip(inputs, graph.inputs[each], strict=True)]
            values[each] = value

    def _is_right(self, group: Group, number: int) -> bool:
        """Whether a kernel's result is what the rewritten graph says of it."""
        if any(each not in self.known or each in self.unjudged for each in group.reads):
            return False
        found = array_of(self.device, self.values.buffers[number], self.work.sigs[number])
        for each, value in referred(self.work, [number], self.known):
            if each == number:
                return compare(value, found).ok
        return False

    def _line(self, number: int) -> str:
        """The user's line that made a node; of one the scheduler made, the line of what it is a part of."""
        readers: dict[int, list[int]] = {}
        for at, inputs in enumerate(self.work.inputs):
            for each in inputs:
                readers.setdefault(each, []).append(at)
        waiting, seen = [number], {number}
        for each in waiting:
            if each < self.count:
                return where_made(self.nodes[each])
            new = [at for at in readers.get(each, ()) if at not in seen]
            waiting += new
            seen.update(new)
        return ""

    # From one end to the other

    def compare_run(self, numbers: Sequence[int], storage: Sequence[Any]) -> None:
        """Hold what the plan gave, with all its kernels in one submission, against them one by one.

        Variants that write in place may round otherwise; memory that is used again too early is far off.
        """
        for number, buffer in zip(numbers, storage, strict=True):
            if number not in self.values.buffers or number not in self.graph.roots:
                continue
            sig = self.graph.sigs[number]
            alone = array_of(self.device, self.values.buffers[number], sig)
            ran = array_of(self.device, buffer, sig)
            if alone.tobytes() == ran.tobytes():
                continue
            is_near = sig.dtype.kind == "f" and _relative([ran], [alone]) < NEAR
            same = np.array_equal(np.isfinite(ran), np.isfinite(alone)) if sig.dtype.kind == "f" else False
            if not (is_near and same):
                result = compare(exact(alone), ran)
                self.report.divergences.append(self._divergence(self.graph, number, "run", result, (), ()))
                return

    def _drift(self) -> None:
        """How far the GPU's results are from the cpu's own, each having gone on from its own values."""
        graph = split_pairs(snapshot(self.walked, self.roots, held=()))
        plan = HostPlan(graph, self.device)
        found = plan.plan.run(self.arrays, {at: self.numbers[at] for at in plan.scalars})
        ours, theirs = [], []
        for each in dict.fromkeys(self.graph.roots):
            if each in self.values.buffers and self.graph.sigs[each].dtype.kind == "f":
                ours.append(array_of(self.device, self.values.buffers[each], self.graph.sigs[each]))
                theirs.append(found[each])
        self.report.drift = max(self.report.drift, _relative(ours, theirs))


def _relative(found: Sequence[Array], wanted: Sequence[Array]) -> float:
    """How far results are apart, of the second ones' size, all together: one may be nothing but rounding."""
    far = size = 0.0
    with np.errstate(all="ignore"):
        for a, b in zip(found, wanted, strict=True):
            far += float(np.sum(np.square(a.astype(np.float64) - b.astype(np.float64))))
            size += float(np.sum(np.square(b.astype(np.float64))))
    return math.sqrt(far / size) if math.isfinite(far) and 0 < size < math.inf else 0.0


def _stored(x: Bounded, sig: Signature) -> Array:
    return np.array(np.broadcast_to(x.value, sig.shape), sig.dtype.numpy, order="C")


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]


def _lacking(graph: Snapshot, device: Device) -> dict[int, str]:
    """What of a cpu's graph a GPU does not do, with the reason that it would give at the call."""
    found: dict[int, str] = {}
    for number in graph.order():
        sig = graph.sigs[number]
        sources = tuple(graph.sigs[each] for each in graph.inputs[number])
        needed = [each.dtype for each in (sig, *sources) if each.dtype.feature]
        missing = [each for each in needed if each.feature not in device.features]
        if missing:
            found[number] = f"{missing[0].name} needs {missing[0].feature}, which {device.name} lacks"
            continue
        try:
            if sig.kind == "map":
                check_offered(sig.op, sources[-1].dtype)
            elif sig.op.infer is not None:
                sig.op.infer(sources, sig.attributes)
        except WebgradError as error:
            found[number] = _first_line(error)
    return found


def _without(graph: Snapshot, lacking: dict[int, str]) -> Snapshot:
    """A copy in which some nodes are leaves, and what they were made of is computed all the same."""
    sigs, inputs = list(graph.sigs), list(graph.inputs)
    for each in lacking:
        if sigs[each].kind != "scalar":
            sigs[each] = signature(LEAF, sigs[each].shape, sigs[each].dtype, sigs[each].device)
            inputs[each] = ()
    before = [each for number in lacking for each in graph.inputs[number] if sigs[each].op is not LEAF]
    roots = dict.fromkeys([*graph.roots, *(each for each in before if sigs[each].kind != "scalar")])
    return Snapshot(sigs, inputs, tuple(roots), graph.held)
