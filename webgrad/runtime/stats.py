"""Counters of what a device did: plain numbers while it runs, a mapping that prints as a table when asked.

The invariant: a counter only grows until `reset`; the `bytes_*` rows are readings of the pool, not counters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

FLUSH_CAUSES = ("read", "synchronize", "eval", "execute", "full", "bytes", "write", "replay")


@dataclass(slots=True)
class Counters:
    """The numbers of one device, bumped in place by the runtime."""

    commands: int = 0  # recorded
    dispatches: int = 0  # encoded
    submissions: int = 0
    queues_replayed: int = 0  # flushes that found their queue resolved
    queues_resolved: int = 0
    pipelines_compiled: int = 0
    bind_groups_created: int = 0
    bind_groups_reused: int = 0
    buffers_created: int = 0
    buffers_reused: int = 0
    buffers_evicted: int = 0
    in_place: int = 0
    host_round_trips: int = 0
    bytes_uploaded: int = 0
    bytes_downloaded: int = 0
    flushes: dict[str, int] = field(default_factory=lambda: dict.fromkeys(FLUSH_CAUSES, 0))

    def reset(self) -> None:
        """Set all of them to zero."""
        zero = Counters()
        for each in fields(self):
            setattr(self, each.name, getattr(zero, each.name))

    def as_dict(self) -> dict[str, Any]:
        """A copy, by name."""
        return asdict(self)


@dataclass(slots=True)
class HostMemory:
    """Bytes of the large arrays that webgrad makes on the host: lent, waiting to be lent, the most lent.

    Told in any thread, so there is no lock, and no sum is kept that two threads could change at once: each
    change is one step of a dictionary. `settle` tells of arrays that were deleted since.
    """

    peak: int = 0
    settle: Callable[[], None] = lambda: None
    _waiting: int = 0
    _lent: dict[int, int] = field(default_factory=dict)  # bytes by block

    @property
    def live(self) -> int:
        """Bytes that are lent."""
        self.settle()
        return sum(list(self._lent.values()))

    @property
    def pooled(self) -> int:
        """Bytes that wait to be lent."""
        self.settle()
        return self._waiting

    def wait(self, nbytes: int) -> None:
        """So many bytes wait to be lent now."""
        self._waiting = nbytes

    def lend(self, block: object, nbytes: int) -> None:
        """A block is in use from now on."""
        self._lent[id(block)] = nbytes
        self.peak = max(self.peak, self.live)

    def give_back(self, block: object) -> None:
        """It is in use no more."""
        self._lent.pop(id(block), None)

    def as_dict(self) -> dict[str, int]:
        """By the names of `Stats`."""
        return {"bytes_live": self.live, "bytes_pooled": self.pooled, "bytes_peak": self.peak}


host_memory = HostMemory()


class Stats(Mapping[str, Any]):
    """A reading of the counters: a mapping that prints as a table.

    >>> stats = Stats({"commands": 3, "flushes": {"read": 1, "eval": 0}})
    >>> stats["commands"]
    3
    >>> print(stats)
    commands      3
    flushes.read  1
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = dict(values)

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def _rows(self) -> Iterator[tuple[str, str]]:
        for name, value in self._values.items():
            if isinstance(value, Mapping):
                yield from ((f"{name}.{key}", f"{count:,}") for key, count in value.items() if count)
            elif name.startswith("bytes_"):
                yield name, readable_bytes(value)
            else:
                yield name, f"{value:,}"

    def __repr__(self) -> str:
        rows = list(self._rows())
        width = max((len(name) for name, _ in rows), default=0)
        figures = max((len(text) for _, text in rows), default=0)
        return "\n".join(f"{name:<{width}}  {text:>{figures}}" for name, text in rows)

    __str__ = __repr__


def counted(count: int, one: str, many: str = "") -> str:
    """A number of things for people.

    >>> counted(1, "kernel"), counted(2000, "flush", "flushes")
    ('1 kernel', '2,000 flushes')
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def readable_bytes(count: int) -> str:
    """A size for people.

    >>> readable_bytes(3 * 2**20)
    '3.0 MiB'
    """
    size = float(count)
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"
