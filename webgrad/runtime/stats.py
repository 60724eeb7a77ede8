"""Counters of what a device did: plain numbers while it runs, a mapping that prints as a table when asked.

The invariant: a counter only grows until `reset`; the `bytes_*` rows are readings of the pool, not counters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["Counters", "Stats"]

COUNTERS = (
    "commands",  # recorded
    "dispatches",  # encoded
    "submissions",
    "queues_replayed",  # flushes that found their queue resolved
    "queues_resolved",
    "pipelines_compiled",
    "bind_groups_created",
    "bind_groups_reused",
    "buffers_created",
    "buffers_reused",
    "buffers_evicted",
    "in_place",
    "host_round_trips",
    "bytes_uploaded",
    "bytes_downloaded",
)
FLUSH_CAUSES = ("read", "synchronize", "eval", "execute", "full", "bytes", "write")


class Counters:
    """The numbers of one device, bumped in place by the runtime."""

    __slots__ = (*COUNTERS, "flushes")

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        for name in COUNTERS:
            setattr(self, name, 0)
        self.flushes: dict[str, int] = dict.fromkeys(FLUSH_CAUSES, 0)

    def __getattr__(self, name: str) -> int:  # for the type checker: every counter is an int
        raise AttributeError(name)

    def as_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in COUNTERS} | {"flushes": dict(self.flushes)}


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
