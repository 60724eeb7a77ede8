"""What a replay found: a row for each dispatch, as a table, as JSON, and as a verdict.

In: `Replayed` rows, the costliest first. Out: text. A dispatch that the device cannot run is counted and
named, and makes nothing wrong.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from ..profiling.table import NAME, columns, readable_seconds
from .comparison import Outcome
from .file_format import Dispatch, Origin

__all__ = ["ReplayReport", "Replayed"]

_HEADER = ("kernel", "count", "one", "total", "share", "GB/s", "GFLOP/s", "verdict", "line")
_LEFT = (0, 7, 8)  # columns of words; the others are of numbers


@dataclass(frozen=True, slots=True)
class Replayed:
    """One dispatch, run again: `why` not, or the seconds it takes and what its results compare to."""

    dispatch: Dispatch
    seconds: float = 0.0
    outcome: Outcome | None = None  # None: not verified
    why: str = ""

    @property
    def total(self) -> float:
        """The seconds of all the times it ran in the recording."""
        return self.seconds * self.dispatch.count

    @property
    def right(self) -> bool:
        """Whether nothing speaks against it."""
        return self.outcome is None or self.outcome.right

    @property
    def verdict(self) -> str:
        """In words."""
        if self.why:
            return f"not run: {self.why}"
        return "not verified" if self.outcome is None else str(self.outcome)

    @property
    def gigabytes_per_second(self) -> float:
        """Bytes that it reads and writes, as far as they are known."""
        return self.dispatch.moved / self.seconds / 1e9 if self.seconds else 0.0

    @property
    def gigaflops(self) -> float:
        """Floating-point operations, as far as they are known."""
        return self.dispatch.operations / self.seconds / 1e9 if self.seconds else 0.0


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """The rows of a replay, the costliest first; printing it shows them as a table."""

    path: str
    origins: tuple[Origin, ...]
    device: str
    adapter: str
    exact: bool  # timed by the GPU itself
    left_out: int
    rows: tuple[Replayed, ...]

    @property
    def right(self) -> bool:
        """Whether all that was run and verified is what was recorded."""
        return all(each.right for each in self.rows)

    @property
    def seconds(self) -> float:
        """What all recorded dispatches take together on this device."""
        return sum(each.total for each in self.rows)

    def counts(self) -> dict[str, int]:
        """How many distinct dispatches had which outcome."""
        found = Counter(map(_outcome, self.rows))
        return {
            name: found[name] for name in ("equal", "within tolerance", "differs", "not verified", "not run")
        }

    def as_dict(self) -> dict[str, Any]:
        """The report as plain values, for JSON."""
        return {
            "recording": self.path,
            "recorded_on": [f"{each.adapter}, {each.backend}" for each in self.origins],
            "device": self.device,
            "adapter": self.adapter,
            "timed_by": "gpu" if self.exact else "clock",
            "right": self.right,
            "seconds": self.seconds,
            "left_out": self.left_out,
            "counts": self.counts(),
            "rows": [self._row(each) for each in self.rows],
        }

    def _row(self, each: Replayed) -> dict[str, Any]:
        outcome, dispatch = each.outcome, each.dispatch
        return {
            "kernel": dispatch.name,
            "ops": dispatch.ops,
            "line": dispatch.line,
            "count": dispatch.count,
            "seconds": each.seconds,
            "total_seconds": each.total,
            "gigabytes_per_second": each.gigabytes_per_second,
            "gigaflops": each.gigaflops,
            "outcome": _outcome(each),
            "verdict": each.verdict,
            "error": None if outcome is None or outcome.error == float("inf") else outcome.error,
        }

    def __str__(self) -> str:
        places = dict.fromkeys(_shown(f"{each.adapter}, {each.backend}", 80) for each in self.origins)
        made = "; ".join(places) or "no GPU"
        clock = "the GPU's clock" if self.exact else "the clock, submission included"
        counts = ", ".join(f"{count} {name}" for name, count in self.counts().items() if count)
        ran = sum(each.dispatch.count for each in self.rows)
        lines = [
            f"{self.path}, recorded on {made}",
            f"replayed on {self.device} ({self.adapter}), timed by {clock}",
            *self._table(),
            f"{ran:,} dispatches, {len(self.rows):,} distinct: {counts or 'none'}; "
            f"{readable_seconds(self.seconds)} in all",
        ]
        if self.left_out:
            lines.append(f"{self.left_out:,} distinct ones were left out by the pattern")
        return "\n".join(lines)

    def _table(self) -> list[str]:
        return [columns([_HEADER, *map(self._cells, self.rows)], left=_LEFT)] if self.rows else []

    def _cells(self, each: Replayed) -> tuple[str, ...]:
        dispatch = each.dispatch
        name = _shown(dispatch.name)
        if each.why:
            return (
                name,
                f"{dispatch.count:,}",
                "",
                "",
                "",
                "",
                "",
                _shown(each.verdict, 100),
                _line(dispatch.line),
            )
        return (
            name,
            f"{dispatch.count:,}",
            readable_seconds(each.seconds),
            readable_seconds(each.total),
            f"{each.total / self.seconds:.1%}" if self.seconds else "",
            _rate(each.gigabytes_per_second),
            _rate(each.gigaflops),
            each.verdict,
            _line(dispatch.line),
        )


def _outcome(row: Replayed) -> str:
    if row.why:
        return "not run"
    if row.outcome is None:
        return "not verified"
    return "equal" if row.outcome.same else "within tolerance" if row.outcome.right else "differs"


def _shown(text: str, most: int = NAME) -> str:
    """A text of a file for a terminal: no sign that would steer it, and not too long."""
    plain = "".join(each if each.isprintable() else "?" for each in text)
    return plain if len(plain) <= most else plain[: most - 1] + "…"


def _line(text: str) -> str:
    """A place in a user's code; of a long path its end matters."""
    shown = _shown(text, len(text))
    return shown if len(shown) <= NAME else "…" + shown[1 - NAME :]


def _rate(value: float) -> str:
    return f"{value:.2f}" if value else ""
