"""A profile as the plain data that the page (report.html) draws.

In: what was collected, and its summary. Out: a dictionary that JSON can hold; times are microseconds from the
profile's beginning.
"""

from __future__ import annotations

import platform
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from ... import __version__
from ...runtime.device import opened_devices
from .collector import MOST_EVENTS, Collected, Span
from .summary import Summary, short_line, stage_name

__all__ = ["page_data"]


def page_data(found: Collected, summary: Summary, title: str) -> dict[str, Any]:
    """What the page is given."""
    devices = list(dict.fromkeys(each[0] for each in found.kernels))
    main = devices[0] if devices else "cpu"
    places = {(row.device, row.name, row.line): number for number, row in enumerate(summary.kernels)}
    stages = {row.name: number for number, row in enumerate(summary.stages)}
    spans: list[list[Any]] = []
    mine = [each for each in found.spans if each[0] == found.thread]
    for (_, stage, began, ended), depth in zip(mine[:MOST_EVENTS], _depths(mine[:MOST_EVENTS]), strict=True):
        name = stage_name(stage, began, ended)
        spans.append(["host", name, *_at(found, began, ended), depth, stages.get(name, -1)])
    for device, note, began, ended in found.kernels[: max(0, MOST_EVENTS - len(spans))]:
        place = places.get((device, note.name, short_line(note.where)), -1)
        spans.append([device, note.name, *_at(found, began, ended), 0, place])
    notes = list(summary.notes)
    if len(spans) < len(mine) + len(found.kernels):
        notes.append(f"the timeline shows the first {len(spans):,} events; the tables have all of them")
    return {
        "title": title,
        "device": main,
        "adapter": next((each.info.name for each in opened_devices() if each.name == main), ""),
        "version": __version__,
        "python": platform.python_version(),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": summary.seconds,
        "explained": summary.explained,
        "timing": found.timing.get(main, "wall"),
        "stages": [asdict(each) for each in summary.stages],
        "kernels": [
            asdict(each) | {"flops": each.operations, "ops": list(each.ops)} for each in summary.kernels
        ],
        "tracks": ["host", *devices],
        "spans": spans,
        "memory": {
            **{
                device: [[*_at(found, moment), live, pooled] for moment, live, pooled in series]
                for device, series in found.memory.items()
            },
            "process": [[*_at(found, moment), nbytes] for moment, nbytes in found.resident],
        },
        "flushes": [[*_at(found, moment), cause, commands] for moment, _, cause, commands in found.flushes],
        "flush_causes": summary.causes,
        "notes": notes,
    }


def _at(found: Collected, began: int, ended: int | None = None) -> list[float]:
    start = round((began - found.began) / 1e3, 3)
    return [start] if ended is None else [start, round((ended - began) / 1e3, 3)]


def _depths(spans: list[Span]) -> list[int]:
    """How many others each span lies in."""
    order = sorted(range(len(spans)), key=lambda each: (spans[each][2], -spans[each][3]))
    depths = [0] * len(spans)
    open_until: list[int] = []
    for number in order:
        _, _, began, ended = spans[number]
        while open_until and open_until[-1] <= began:
            open_until.pop()
        depths[number] = len(open_until)
        open_until.append(ended)
    return depths
