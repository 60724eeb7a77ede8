"""Kernels one by one on a GPU: their launches over buffers of their own, read back after each.

In: a graph's signatures, what `compile_schedule` made of a bundle, and the run-time numbers. Out: arrays. The
invariant: no value is written to that another kernel may still read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...arrays import Array, np
from ...errors import DeviceLostError, OutOfMemoryError, WebgradError
from ...graph.node import Signature, signature
from ...graph.op import LEAF
from ...graph.snapshot import Snapshot
from ...kernels.launch import Launch
from ...lower.compile import compile_schedule
from ...lower.structures import alias_of
from ...runtime.buffers import Buffer
from ...runtime.webgpu import Device
from ...schedule.plan import Group
from ...schedule.schedule import schedule
from ...tuning.measure import dispatch_of
from .bounds import bounded
from .comparison import Comparison, compare
from .rounding import exact

__all__ = ["Values", "array_of", "compared_alone"]

_POISON = 0x5A


def array_of(device: Device, buffer: Buffer, sig: Signature) -> Array:
    """A buffer's value on the host."""
    found: Array = device.read(buffer).view(sig.dtype.numpy)
    return found[: sig.size].reshape(sig.shape)


class Values:
    """Buffers by the numbers of a graph's values."""

    def __init__(self, device: Device, graph: Snapshot, numbers: Mapping[int, Any]) -> None:
        self._device = device
        self._graph = graph
        self._numbers = numbers  # the scalars' values
        self.buffers: dict[int, Buffer] = {}

    def place(self, number: int, array: Array) -> None:
        """Give a value the contents of an array."""
        sig = self._graph.sigs[number]
        data = np.ascontiguousarray(array, sig.dtype.numpy)
        self.buffers[number] = self._device.upload(data) if data.size else self._device.allocate(0)

    def run(self, groups: Sequence[Group], launches: Sequence[Launch]) -> None:
        """Run a bundle: its outputs have their buffers then."""
        sigs = self._graph.sigs
        alias = None if launches else alias_of(self._graph, groups)
        if alias is not None and sigs[alias[0]].size:
            self.buffers[alias[0]] = self.buffers[alias[1]]
            return
        for group in groups:
            for each in group.outputs:
                if not sigs[each].size:
                    self.buffers[each] = self._device.allocate(0)
        fresh: set[int] = set()
        try:
            for emitted in launches:
                self._launch(emitted, fresh)
        except WebgradError:
            for each in fresh:  # nothing has written to it, or not all that should
                del self.buffers[each]
            raise

    def _launch(self, emitted: Launch, fresh: set[int]) -> None:
        device, values = self._device, self.buffers
        for bound in emitted.bound[len(emitted.bound) - emitted.writes :]:
            if bound.value not in fresh:
                # Poisoned: a kernel that leaves elements out must not find the right ones there by luck.
                nbytes = -(-self._graph.sigs[bound.value].nbytes // 4) * 4
                values[bound.value] = device.upload(np.full(nbytes, _POISON, np.uint8))
                fresh.add(bound.value)
        dispatch = dispatch_of(device, emitted, values, self._numbers)
        device.queue.compile(dispatch.pipeline)  # so that what cannot be compiled is told of here
        device.dispatch(*dispatch)


def compared_alone(
    device: Device, graph: Snapshot, number: int, inputs: Sequence[Array]
) -> Comparison | None:
    """An op in a kernel of its own, over these inputs, against the cpu; None where it has none."""
    sig = graph.sigs[number]
    sigs = [
        each if each.kind == "scalar" else signature(LEAF, each.shape, each.dtype, device)
        for each in (graph.sigs[source] for source in graph.inputs[number])
    ]
    count = len(sigs)
    small = Snapshot([*sigs, sig], [*[()] * count, tuple(range(count))], (count,))
    numbers = {at: array.item() for at, array in enumerate(inputs) if sigs[at].kind == "scalar"}
    values = Values(device, small, numbers)
    try:
        for at, array in enumerate(inputs):
            if at not in numbers:
                values.place(at, array)
        plan = schedule(small, device.profile, fuse=False)
        for groups, launches in compile_schedule(plan, device.profile, offered=False):
            values.run(groups, launches)
    except (DeviceLostError, OutOfMemoryError):
        raise
    except WebgradError:
        return None
    if count not in values.buffers:
        return None
    expected = bounded(sig, [exact(each) for each in inputs])
    return compare(expected, array_of(device, values.buffers[count], sig))
