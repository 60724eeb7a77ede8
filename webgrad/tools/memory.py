"""Where memory is: for each open device what is live, pooled and the most there was, and the largest tensors.

In: the devices, and the nodes that are alive. Out: a `MemoryReport`, which prints as tables. The invariants:
nothing is computed, submitted or kept alive by looking, and memory that several tensors share counts once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..arrays import has_numpy, np
from ..evaluate.evaluate import evaluation_lock
from ..graph.holders import alive, holders
from ..graph.node import Node, where_made
from ..runtime.device import CpuDevice, DeviceLike, open_device, opened_devices
from ..runtime.host import memory_bytes
from ..runtime.host_buffers import owner
from ..runtime.stats import host_memory, readable_bytes
from ..tensor import Tensor
from .profiling.table import columns

__all__ = ["DeviceMemory", "LineMemory", "MemoryReport", "TensorMemory", "memory"]

SHOWN = 10  # rows of a printed table
_DEVICES = ("device", "live", "tensors", "other", "pooled", "peak", "budget")
_TENSORS = ("bytes", "tensors", "dtype", "shape", "device", "made at")


@dataclass(frozen=True, slots=True)
class DeviceMemory:
    """One device's memory, in bytes.

    On a GPU `live` is all that the pool has lent: `tensors`, and `other` that is not a tensor's (what waiting
    commands use, kernels' constants, buffers of batches). On the cpu it is what live tensors keep, and the
    pool and the peak know only arrays of a MiB and more that webgrad made; `mapped` are files that tensors
    lie in.
    """

    live: int
    tensors: int
    other: int
    pooled: int
    peak: int
    budget: int
    mapped: int = 0
    waiting: int = 0  # commands that are recorded and not submitted: their results have no memory yet


@dataclass(frozen=True, slots=True)
class TensorMemory:
    """Memory of a tensor, or of several that share it: `count` of them."""

    device: str
    shape: tuple[int, ...]
    dtype: str
    nbytes: int  # that are kept: a GPU's buffers come in steps, and a part of an array keeps all of it
    where: str  # the user's line: "train.py:12"
    count: int = 1
    held_by: str = "tensor"  # or "graph": only values that wait, or gradients to come, need it


@dataclass(frozen=True, slots=True)
class LineMemory:
    """All that one line of the user's made and that is still there."""

    device: str
    where: str
    count: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class MemoryReport:
    """Memory by device, by tensor and by line, the largest first; as text, tables of the first few.

    >>> wg.memory("cpu").devices["cpu"].live >= 0
    True
    """

    devices: Mapping[str, DeviceMemory]
    tensors: tuple[TensorMemory, ...]
    lines: tuple[LineMemory, ...]

    def __str__(self) -> str:
        parts = [columns([_DEVICES, *self._devices()])]
        if self.tensors:
            parts.append(columns([_TENSORS, *self._tensors()], left=(2, 3, 4, 5)))
        return "\n\n".join(parts)

    __repr__ = __str__

    def _devices(self) -> list[tuple[str, ...]]:
        return [
            (name, *map(readable_bytes, (m.live, m.tensors, m.other, m.pooled, m.peak, m.budget)))
            for name, m in self.devices.items()
        ]

    def _tensors(self) -> list[tuple[str, ...]]:
        """Those that are alike and of one line in one row: a list that grows is the first one."""
        alike: dict[tuple[str, ...], list[TensorMemory]] = {}
        for each in self.tensors:
            key = (each.dtype, _sizes(each.shape), each.device, _made(each))
            alike.setdefault(key, []).append(each)
        rows = [
            (sum(each.nbytes for each in found), sum(each.count for each in found), key)
            for key, found in alike.items()
        ]
        rows.sort(key=lambda row: -row[0])
        return [(readable_bytes(nbytes), str(count), *key) for nbytes, count, key in rows[:SHOWN]]


def memory(device: DeviceLike = None) -> MemoryReport:
    """What holds memory: of one device, or (None) of all that are open and the cpu.

    Nothing is computed by asking. `wg.reset_stats()` sets a device's peak to what is in use.

    >>> weights = wg.asarray(np.ones((1024, 1024), np.float32))
    >>> report = wg.memory("cpu")
    >>> report.devices["cpu"].live >= weights.nbytes
    True
    >>> ((1024, 1024), "float32") in [(each.shape, str(each.dtype)) for each in report.tensors]
    True
    """
    cpu = [open_device("cpu")] if has_numpy() else []
    found = [*cpu, *opened_devices()] if device is None else [open_device(device)]
    devices = list({id(each): each for each in found}.values())
    names = _names(devices)
    with evaluation_lock():
        nodes: dict[int, list[Node]] = {id(each): [] for each in devices}
        for node in holders():
            if id(node.sig.device) in nodes:
                nodes[id(node.sig.device)].append(node)
        held = {id(each.node) for each in alive(Tensor) if hasattr(each, "node")}
        counted = [
            (_cpu if isinstance(each, CpuDevice) else _gpu)(each, name, nodes[id(each)], held)
            for each, name in zip(devices, names, strict=True)
        ]
    rows = sorted((row for _, rows in counted for row in rows), key=lambda row: -row.nbytes)
    accounts = {name: account for name, (account, _) in zip(names, counted, strict=True)}
    return MemoryReport(accounts, tuple(rows), _by_line(rows))


def _names(devices: Sequence[Any]) -> list[str]:
    """The devices' names; the second one of an adapter is "webgpu:0 (2)"."""
    names: list[str] = []
    for each in devices:
        before = sum(other.name == each.name for other in devices[: len(names)])
        names.append(f"{each.name} ({before + 1})" if before else each.name)
    return names


Found = tuple[DeviceMemory, list[TensorMemory]]


def _gpu(device: Any, name: str, nodes: list[Node], held: set[int]) -> Found:
    """Buffers of tensors are those that a node has; everything else that is lent is "other"."""
    queue = device.queue
    with queue.lock:
        sizes = {id(virtual): nbytes for virtual, nbytes in queue.held()}
        pool = queue.context.pool
        live, pooled, peak, waiting = pool.bytes_live, pool.bytes_free, pool.bytes_peak, queue.waiting
    by_buffer: dict[int, list[Node]] = {}
    for node in nodes:
        key = id(getattr(node.storage, "virtual", None))
        if key in sizes:
            by_buffer.setdefault(key, []).append(node)
    rows = [_row(name, owners, sizes[key], held) for key, owners in by_buffer.items()]
    tensors = sum(row.nbytes for row in rows)
    return DeviceMemory(live, tensors, live - tensors, pooled, peak, device.budget, 0, waiting), rows


def _cpu(device: Any, name: str, nodes: list[Node], held: set[int]) -> Found:
    """Arrays by what owns their memory."""
    by_owner: dict[int, list[Node]] = {}
    sizes: dict[int, tuple[int, bool]] = {}
    kept = []  # so that no number is given twice
    for node in nodes:
        if not isinstance(node.storage, np.ndarray):
            continue  # what stands for a number while a function is captured
        whole, nbytes, is_mapped = owner(node.storage)
        kept.append(whole)
        key = node.storage.ctypes.data if is_mapped else id(whole)  # of a file, each tensor is its own part
        by_owner.setdefault(key, []).append(node)
        sizes[key] = (node.storage.nbytes if is_mapped else nbytes, is_mapped)
    rows = [_row(name, owners, sizes[key][0], held) for key, owners in by_owner.items() if not sizes[key][1]]
    mapped = sum(nbytes for nbytes, is_mapped in sizes.values() if is_mapped)
    live = sum(row.nbytes for row in rows)
    peak = max(host_memory.peak, live)  # small arrays are not counted while they come and go
    return DeviceMemory(live, live, 0, host_memory.pooled, peak, memory_bytes(), mapped), rows


def _row(device: str, owners: list[Node], nbytes: int, held: set[int]) -> TensorMemory:
    """What is kept for some nodes, described by the largest that a tensor has, of these the oldest."""
    tensors = [node for node in owners if id(node) in held]
    node = max(
        reversed(tensors or owners), key=lambda each: each.sig.nbytes
    )  # the collector's oldest is last
    return TensorMemory(
        device,
        node.sig.shape,
        node.sig.dtype.name,
        nbytes,
        next(filter(None, map(where_made, [node, *owners])), ""),
        max(1, len(tensors)),
        "tensor" if tensors else "graph",
    )


def _by_line(rows: Sequence[TensorMemory]) -> tuple[LineMemory, ...]:
    lines: dict[tuple[str, str], list[int]] = {}
    for row in rows:
        lines.setdefault((row.device, row.where), []).append(row.nbytes)
    found = [LineMemory(device, where, len(sizes), sum(sizes)) for (device, where), sizes in lines.items()]
    return tuple(sorted(found, key=lambda each: -each.nbytes))


def _sizes(shape: tuple[int, ...]) -> str:
    return " × ".join(map(str, shape)) or "one number"


def _made(row: TensorMemory) -> str:
    return (row.where or "unknown") + ("" if row.held_by == "tensor" else " (held by the graph)")
