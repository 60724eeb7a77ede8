"""A profile as text for a terminal: where the time went, and the kernels that took the most.

In: a `Summary`. Out: lines, at most as wide as the widest kernel's name and line need.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...runtime.stats import counted, readable_bytes
from .summary import KernelRow, Summary

__all__ = ["as_text", "columns", "readable_seconds"]

KERNELS = 20  # shown
NAME = 44  # characters of a kernel's name


def as_text(summary: Summary, kernels: int = KERNELS) -> str:
    """The whole table."""
    parts = [_head(summary), _stages(summary)]
    if summary.kernels:
        parts.append(_kernels(summary.kernels, kernels))
    parts += [f"note: {each}" for each in summary.notes[:5]]
    return "\n\n".join(parts)


def _head(summary: Summary) -> str:
    lines = [f"{readable_seconds(summary.seconds)} in all, {summary.explained:.1%} of it explained"]
    for device, share in summary.busy.items():
        peak = summary.peaks.get(device)
        memory = f", at most {readable_bytes(peak)} in use" if peak is not None else ""
        lines.append(f"{device}: kernels ran {share:.1%} of the time{memory}")
    if summary.causes:
        causes = ", ".join(f"{count} by {cause}" for cause, count in sorted(summary.causes.items()))
        lines.append(f"{counted(sum(summary.causes.values()), 'flush', 'flushes')}: {causes}")
    return "\n".join(lines)


def _stages(summary: Summary) -> str:
    rows = [("host", "time", "share", "times", "")]
    rows += [
        (
            each.name,
            readable_seconds(each.seconds),
            f"{each.seconds / summary.seconds:.1%}",
            f"{each.count:,}" if each.count else "",
            each.what,
        )
        for each in summary.stages
    ]
    return columns(rows, left=(0, 4))


def _kernels(kernels: Sequence[KernelRow], most: int) -> str:
    rows: list[tuple[str, ...]] = [
        ("kernel", "count", "total", "share", "slowest", "GB/s", "GFLOP/s", "line")
    ]
    several = len({each.device for each in kernels}) > 1
    for each in kernels[:most]:
        name = each.name if len(each.name) <= NAME else each.name[: NAME - 1] + "…"
        rows.append(
            (
                f"{name} ({each.device})" if several else name,
                f"{each.count:,}",
                readable_seconds(each.seconds),
                f"{each.share:.1%}",
                readable_seconds(each.slowest),
                f"{each.gigabytes_a_second:.2f}",
                f"{each.gigaflops:.2f}",
                each.line,
            )
        )
    rest = kernels[most:]
    if rest:
        seconds, share = sum(each.seconds for each in rest), sum(each.share for each in rest)
        count = sum(each.count for each in rest)
        rows.append((f"{len(rest)} more", f"{count:,}", readable_seconds(seconds), f"{share:.1%}", *[""] * 4))
    return columns(rows, left=(0, 7))


def columns(rows: Sequence[Sequence[str]], left: Sequence[int] = (0,)) -> str:
    """Rows in columns: those in `left` begin together, the others end together."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            f"{cell:<{width}}" if number in left else f"{cell:>{width}}"
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def readable_seconds(seconds: float) -> str:
    """A time for people.

    >>> readable_seconds(0.0123), readable_seconds(2.5), readable_seconds(42e-6)
    ('12.30 ms', '2.500 s', '42.0 µs')
    """
    if seconds >= 1:
        return f"{seconds:.3f} s"
    return f"{seconds * 1e3:.2f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.1f} µs"
