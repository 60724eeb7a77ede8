"""Physical buffers: made once, lent and taken back, evicted over the budget.

Free lists are sorted and lend the lowest id first, so that the choice depends only on which buffers are free:
the same queue over the same free set gets the same buffers, and its bind groups hit. `free` is the set of ids
that may be lent; a buffer is in it or lent, never both.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass

from ..errors import OutOfMemoryError
from .arena import Arena
from .layer import DeviceLayer, Handle
from .stats import Counters, readable_bytes

_LEAST_STEP, _LARGEST_STEP = 256, 1 << 20  # bytes between two sizes
_UNBOUND = 1 << 62  # bytes: more than any device binds


def size_class(nbytes: int, max_binding: int = _UNBOUND) -> int:
    """The size a buffer of `nbytes` gets: at most an eighth more, a multiple of 256, so that sizes repeat.

    One that can be bound as a whole stays so: it gets no more than `max_binding`.

    >>> size_class(0), size_class(1000), size_class(70_000)
    (256, 1024, 73728)
    """
    if nbytes <= _LEAST_STEP:
        return _LEAST_STEP
    step = min(max(1 << ((nbytes - 1).bit_length() - 4), _LEAST_STEP), _LARGEST_STEP)
    size = (nbytes + step - 1) // step * step
    return max_binding if nbytes <= max_binding < size else size


@dataclass(slots=True)
class Physical:
    """One GPU buffer: its native handle, its size, and when it was last given back."""

    handle: Handle
    size: int
    given_back: int = 0


class Pool:
    """The physical buffers of one open device.

    `on_evict(id)` is called before a buffer goes, `largest()` names the largest tensors for an error,
    `settle()` waits until the driver has let go of what was dropped.
    """

    def __init__(
        self,
        native: DeviceLayer,
        counters: Counters,
        budget: int,
        on_evict: Callable[[int], None],
        largest: Callable[[], str],
        settle: Callable[[], None],
    ) -> None:
        self.native = native
        self.counters = counters
        self.budget = budget
        self.buffers: Arena[Physical] = Arena("physical buffer")
        self.free: set[int] = set()
        # touched by the queue that is being resolved: not to be evicted
        self.protected: Set[int] = frozenset()
        self.bytes_total = 0
        self.bytes_free = 0
        self.bytes_peak = 0
        self._lists: dict[int, list[int]] = {}
        self._clock = 0
        self._on_evict = on_evict
        self._largest = largest
        self._settle = settle

    @property
    def bytes_live(self) -> int:
        return self.bytes_total - self.bytes_free

    def take(self, size: int) -> int:
        """Lend a buffer of exactly this size class: the lowest free one, else a new one."""
        ids = self._lists.get(size)
        if ids:
            buffer = ids.pop(0)
            self.free.remove(buffer)
            self.bytes_free -= size
            self.counters.buffers_reused += 1
        else:
            buffer = self._create(size)
        live = self.bytes_total - self.bytes_free
        if live > self.bytes_peak:
            self.bytes_peak = live
        return buffer

    def has_room(self, size: int) -> bool:
        """Whether a buffer of this size class can be lent, as far as the budget goes."""
        return self.bytes_live + size <= self.budget or bool(self._lists.get(size))

    def take_these(self, wanted: Iterable[int]) -> None:
        """Lend these free buffers, by id."""
        for buffer in wanted:
            self._unlist(buffer)
        self.bytes_peak = max(self.bytes_peak, self.bytes_live)

    def _unlist(self, buffer: int) -> None:
        size = self.buffers.get(buffer).size
        self.free.remove(buffer)
        ids = self._lists[size]
        del ids[bisect_left(ids, buffer)]
        self.bytes_free -= size

    def give(self, buffer: int) -> None:
        """Take a lent buffer back."""
        physical = self.buffers.get(buffer)
        self._clock += 1
        physical.given_back = self._clock
        self.free.add(buffer)
        insort(self._lists.setdefault(physical.size, []), buffer)
        self.bytes_free += physical.size

    def evict(self, room: int) -> int:
        """Let free buffers go, unused longest first, until `room` bytes are gained or none is left."""
        gained = 0
        candidates = sorted(self.free - self.protected, key=lambda each: self.buffers.get(each).given_back)
        for buffer in candidates:
            if gained >= room:
                break
            gained += self._drop(buffer)
        return gained

    def clear(self) -> None:
        """Let every free buffer go."""
        self.evict(self.bytes_total + 1)

    def close(self) -> None:
        """Let every buffer go, lent ones too: their device is gone."""
        for physical in self.buffers:
            self.native.release_buffer(physical.handle)
        self.buffers = Arena("physical buffer")
        self.free, self._lists = set(), {}
        self.bytes_total = self.bytes_free = 0

    def _drop(self, buffer: int) -> int:
        self._unlist(buffer)
        self._on_evict(buffer)
        physical = self.buffers.remove(buffer)
        self.native.release_buffer(physical.handle)
        self.bytes_total -= physical.size
        self.counters.buffers_evicted += 1
        return physical.size

    def _create(self, size: int) -> int:
        over = self.bytes_total + size - self.budget
        if over > 0 and self.evict(over) < over:
            raise self._out_of_memory(size, "the budget is used up")
        handle = self.make(size)
        self.counters.buffers_created += 1
        self.bytes_total += size
        return self.buffers.insert(Physical(handle, size))

    def make(self, size: int, *usage: int) -> Handle:
        """A native buffer, which is not counted; where the driver has no room: evict, wait, ask once more."""
        try:
            return self.native.create_buffer(size, *usage)
        except OutOfMemoryError:
            self.clear()
            self._settle()  # the driver frees dropped buffers only after a submit and a poll
        try:
            return self.native.create_buffer(size, *usage)
        except OutOfMemoryError as error:
            raise self._out_of_memory(size, str(error).partition("\n")[0]) from None

    def _out_of_memory(self, size: int, reason: str) -> OutOfMemoryError:
        return OutOfMemoryError(
            f"no room for a buffer of {readable_bytes(size)}: {self.account()}\n({reason})"
        )

    def account(self) -> str:
        """What is in use, what is allowed, and what to do."""
        return (
            f"{readable_bytes(self.bytes_live)} in use, limit {readable_bytes(self.budget)}. "
            f"The largest tensors: {self._largest()}. "
            "Free some of them, work in smaller batches, or raise the limit (WEBGRAD_MEMORY)."
        )
