"""Virtual buffers: what a tensor holds. A physical buffer stands behind one only while it must.

`Buffer` is the user's reference; dropping it frees the virtual buffer. `Virtual` is the queue's record of
it, kept in a generational arena; while commands on it are pending it has a slot in the pending queue.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .references import Tagged

if TYPE_CHECKING:
    from .pending import Pending, Size
    from .queue import Queue


class Virtual:
    """The queue's record of a virtual buffer."""

    # The rare attributes are class defaults, set on the instance only where they differ: a record is made
    # for every command.
    __slots__ = ("__dict__", "label", "nbytes", "pending", "physical", "reference", "size", "slot")
    reference: Tagged[Buffer]  # to its Buffer, by whose end the queue learns that it is dropped
    host: Any = None  # a host copy to restore it from after the device was lost
    lost: str = ""  # why its contents are gone; empty where they are not
    view: tuple[Buffer, int] | None = None  # (the whole it is a part of, offset)

    def __init__(self, nbytes: int, size: Size, label: str, pending: Pending | None, slot: int) -> None:
        self.nbytes = nbytes
        self.size = size  # its size class, or the part of another slot that it is
        self.label = label
        self.pending = pending  # the queue it has a slot in; None once its Buffer is dropped
        self.slot = slot
        self.physical = 0  # the pool's buffer it sits in, 0 for none yet

    def describe(self) -> str:
        name = f"'{self.label}'" if self.label else "an unnamed buffer"
        return f"{name} ({self.nbytes:,} bytes)"


class _Naming:
    """What to call buffers in messages: their labels, until somebody who knows more of them says so."""

    def __init__(self) -> None:
        self.of: Callable[[Sequence[Virtual]], list[str]] = lambda found: [each.label for each in found]


naming = _Naming()


class Buffer:
    """A reference to a virtual buffer; dropping the last one frees it.

    Made by `Device.allocate` and `Device.upload`.

    >>> device = wg.open_device("webgpu")
    >>> buffer = device.upload(np.arange(3, dtype=np.int32))
    >>> buffer.nbytes
    12
    """

    __slots__ = ("__weakref__", "handle", "queue", "virtual")

    def __init__(self, queue: Queue, handle: int, virtual: Virtual) -> None:
        self.queue = queue
        self.handle = handle
        self.virtual = virtual
        # Noted by C, for the collector may end it anywhere: while this very thread holds the queue's lock, or
        # where a signal's handler would raise.
        virtual.reference = reference = Tagged(self, queue.drop)
        reference.tag = handle

    @property
    def nbytes(self) -> int:
        """How many bytes it has."""
        return self.virtual.nbytes

    def free(self) -> None:
        """Free it now; any later use raises StaleBufferError."""
        self.queue.release(self.handle)

    def __repr__(self) -> str:
        label = f" '{self.virtual.label}'" if self.virtual.label else ""
        return f"<Buffer{label}: {self.nbytes:,} bytes on {self.queue.name}>"
