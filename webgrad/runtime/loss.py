"""A lost device: what was pending is dropped, and the next use opens a new one.

In: a queue whose device may be gone. Out: the same queue; a buffer without a host copy to come back from says
that it is lost when it is used.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ..observing import observers
from .buffers import Virtual
from .shield import shield

if TYPE_CHECKING:
    from .queue import Queue


def note_loss(queue: Queue) -> None:
    """Where the device is gone: drop what was pending, and open a new one at the next use."""
    if queue.context.closed or queue.context.native.alive():
        return
    for virtual in _written(queue):
        virtual.host = None  # it is older than what was to be computed
    discard(queue, "was to be computed on a device that was lost")
    for virtual in queue.virtuals:
        if virtual.physical:
            virtual.physical = 0
            if virtual.host is None:
                virtual.lost = "was on a device that was lost"
    queue.context.close()
    queue.last_event = None
    queue.trouble = partial(_reopen, queue)
    for each in observers():
        each.troubled(queue.name, "was lost: what was pending is dropped")


def _reopen(queue: Queue) -> None:
    with shield:
        queue.context = queue.open_context()
        queue.trouble = None
    for each in observers():
        each.troubled(queue.name, "was opened again")


def discard(queue: Queue, why: str) -> None:
    """Drop the pending commands; what they were to compute says so when it is used."""
    for virtual in _written(queue):
        if not virtual.physical:
            virtual.lost, virtual.host = why, None
    for virtual in queue.pending.dropped():
        queue.context.pool.give(virtual.physical)
    queue.begin()


def _written(queue: Queue) -> list[Virtual]:
    """The buffers, whole ones, that pending commands write to."""
    virtuals = queue.pending.virtuals
    found = []
    for pipeline, _, slots, _ in queue.pending.commands():
        for slot, access in zip(slots, pipeline.accesses, strict=True):
            if access == "read_write":
                size = virtuals[slot].size
                found.append(virtuals[slot if isinstance(size, int) else size[0]])
    return found
