"""Programs with too little memory on a GPU at times: what can be read is right, what cannot is refused.

Whatever was evicted, refused and dropped meanwhile, the books of the device's memory balance, and nothing
that is remembered has a buffer that is gone. Elements are small integers: every order of adding gives them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

import webgrad as wg
from tests.properties.helpers import Array, gpu
from tests.properties.points.drawer import Cases, Points
from tests.runtime.faults.harness import check_queue
from webgrad.config import MemoryBudget
from webgrad.errors import OutOfMemoryError
from webgrad.runtime.webgpu import Device
from webgrad.tensor import Tensor

__all__ = ["short"]

BUDGET = 1 << 20  # bytes
ROW = 1 << 14  # elements, a 16th of it
MOST = 2 * ROW

# A row of any length → one of another, or of the same. Each scan is a kernel by itself.
CHAINS: tuple[Callable[[Any, Any], Any], ...] = (
    lambda of, x: of.cumsum(x, axis=0) % 5,
    lambda of, x: of.cumsum(of.concat([x, x]), axis=0) % 5,
    lambda of, x: of.cumsum(x[: len(x) // 2 + 1], axis=0) % 5,
    lambda of, x: (x * 2 + of.cumsum(x, axis=0)) % 5,
    lambda of, x: of.cumsum(of.cumsum(x, axis=0) % 5, axis=0) % 5,
)
Kept = tuple[str, Tensor, Array]


@cache
def _device() -> Device:
    """One that has little memory, for itself."""
    shared = gpu()
    return Device(shared.info, replace(shared.settings, memory=MemoryBudget(bytes=BUDGET)))


def short(p: Points) -> Cases:
    """Rows are made, scanned in chains, read and dropped while there is too little room for all of them."""
    if not p.on_gpu:
        return
    device, kept = _device(), list[Kept]()
    for turn in range(int(p.random.integers(6, 16))):
        kept.append(_made(p, turn, device, kept))
        if p.chance(0.5):
            _read(*p.one(kept))
        while kept and p.chance(0.35):
            kept.pop(int(p.random.integers(len(kept))))
        check_queue(device.queue)
    while kept:  # for the last of them there is room
        left = [each for each in kept if not _read(*each)]
        assert len(left) < len(kept) or len(kept) > 1, f"no room for {kept[0][0]} alone"
        kept = left if len(left) < len(kept) else kept[1:]
        check_queue(device.queue)
    device.synchronize()
    live = device.stats()["bytes_live"]
    yield p.case("bytes in use by nobody", p.tensor(np.asarray(live, np.float32)) + 0, np.float32(0))


def _made(p: Points, turn: int, device: Device, kept: list[Kept]) -> Kept:
    """A row of new numbers, or what a chain makes of one that there is."""
    if not kept or p.chance(0.3):
        array = p.random.integers(0, 5, int(p.one((1, 2)) * ROW)).astype(np.float32)
        return f"a row of turn {turn}", wg.asarray(array, device=device), array
    label, tensor, array = p.one(kept)
    for _ in range(int(p.random.integers(1, 4))):
        chain = p.one(CHAINS if len(array) < MOST else CHAINS[2:3])
        tensor, array = chain(wg, tensor), chain(np, array)
    return f"a chain of turn {turn} of {label}", tensor, array


def _read(label: str, tensor: Tensor, array: Array) -> bool:
    """Whether there is room to read a row, which then must be right."""
    try:
        found = tensor.numpy()
    except OutOfMemoryError:
        return False
    assert np.array_equal(found, array), f"{label} is wrong"
    return True
