"""A profile as a trace in Chrome's JSON, which Perfetto (ui.perfetto.dev) and chrome://tracing open.

In: what was collected, and its summary. Out: text: a track for each thread with its stages, one for each
device with its kernels, memory as counters, flushes as marks.
"""

from __future__ import annotations

import json
from typing import Any

from .collector import MOST_EVENTS, Collected
from .summary import Summary, short_line, stage_name

__all__ = ["chrome_trace"]

HOST, DEVICES = 1, 2  # the trace's processes


def chrome_trace(found: Collected, summary: Summary) -> str:
    """The trace as text."""
    events: list[dict[str, Any]] = [_named(HOST, "host"), _named(DEVICES, "devices")]

    def at(moment: int) -> float:
        return (moment - found.began) / 1e3  # microseconds

    threads = {found.thread: 1}
    for thread, stage, began, ended in found.spans[:MOST_EVENTS]:
        place = threads.setdefault(thread, len(threads) + 1)
        name = stage_name(stage, began, ended)
        events.append(_complete(HOST, place, name, "stage", at(began), (ended - began) / 1e3))
    devices = {name: number for number, name in enumerate(dict.fromkeys(k[0] for k in found.kernels), 1)}
    for device, note, began, ended in found.kernels[:MOST_EVENTS]:
        event = _complete(DEVICES, devices[device], note.name, "kernel", at(began), (ended - began) / 1e3)
        moved, operations = note.bytes_read + note.bytes_written, note.operations
        event["args"] = {
            "ops": ", ".join(note.ops),
            "line": short_line(note.where),
            "bytes": moved,
            "operations": operations,
        }
        events.append(event)
    for device, series in found.memory.items():
        for moment, live, pooled in series:
            sizes = {"live": live, "pooled": pooled}
            events.append(_counter(f"memory of {device}", at(moment), sizes))
    for moment, nbytes in found.resident:
        events.append(_counter("memory of the process", at(moment), {"resident": nbytes}))
    for moment, device, cause, commands in found.flushes:
        mark = _complete(HOST, 1, f"flush: {cause}", "flush", at(moment), 0)
        del mark["dur"]
        events.append(mark | {"ph": "i", "s": "t", "args": {"device": device, "commands": commands}})
    events += [_named(HOST, f"thread {number}", number) for number in threads.values()]
    events += [_named(DEVICES, name, number) for name, number in devices.items()]
    other = {
        "seconds": summary.seconds,
        "explained": summary.explained,
        "stages": {each.name: each.seconds for each in summary.stages},
        "timing": found.timing,
    }
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ms", "otherData": {"webgrad": other}})


def _named(process: int, name: str, thread: int = 0) -> dict[str, Any]:
    kind = "thread_name" if thread else "process_name"
    return {"ph": "M", "pid": process, "tid": thread, "name": kind, "args": {"name": name}}


def _complete(process: int, thread: int, name: str, kind: str, start: float, length: float) -> dict[str, Any]:
    return {
        "ph": "X",
        "pid": process,
        "tid": thread,
        "name": name,
        "cat": kind,
        "ts": round(start, 3),
        "dur": round(length, 3),
    }


def _counter(name: str, moment: float, values: dict[str, int]) -> dict[str, Any]:
    return {"ph": "C", "pid": HOST, "tid": 0, "name": name, "ts": round(moment, 3), "args": values}
