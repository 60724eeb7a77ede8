"""A profile as one HTML page: where the time went, a timeline, memory, and the kernels.

In: what a profile found, as plain data (`page` says which). Out: text of a page that needs nothing else: no
network, no fonts, no scripts but its own. Names and paths in it are users' words: they get into the page only
as escaped text or as JSON that no markup can end.
"""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

__all__ = ["headline", "page"]

FOLDER = Path(__file__).parent
SCRIPTS = tuple(
    f"report_{part}.js" for part in ("words", "overview", "timeline", "moving", "memory")
)  # in this order
DEFAULTS: Mapping[str, Any] = {
    "title": "",
    "device": "",
    "adapter": "",
    "version": "",
    "python": "",
    "started": "",
    "seconds": 0.0,
    "explained": None,
    "timing": "wall",
    "stages": (),
    "kernels": (),
    "tracks": (),
    "spans": (),
    "memory": {},
    "flushes": (),
    "flush_causes": {},
    "notes": (),
}
# Stages in which the host waits for kernels, or computes them itself: they say nothing beside the kernels.
OF_KERNELS = ("wait", "kernels")
# What JSON may hold and HTML would read: a text "</script>" must not end the element that holds the data.
HARMLESS = {ord(mark): f"\\u{ord(mark):04x}" for mark in "<>&"}


def page(data: Mapping[str, Any]) -> str:
    """A whole HTML page of a profile's data.

    The keys are those of `DEFAULTS`, and each may be missing. A span is (track, name, start, duration, depth,
    index), in microseconds: the track by its name or its place in "tracks", and the index counting in
    "stages" for the track "host", in "kernels" for the others, or -1. Memory is (time, live, pooled) for a
    device and (time, bytes) for "process"; a flush (time, cause, commands).

    >>> from webgrad.tools.profiling.report import page
    >>> page({"title": "a < b"}).count("<h1>a &lt; b</h1>")
    1
    """
    known = {key: data.get(key, default) for key, default in DEFAULTS.items()}
    spans = known.pop("spans")
    known |= _rows(spans, known["tracks"])
    known["end"] = _end(known)
    style, script, frame = _files()
    parts = {
        "TITLE": _escaped(known["title"] or "untitled"),
        "HEADLINE": _escaped(headline(data)),
        "STYLE": style,
        "SCRIPT": script,
        "DATA": _embedded(known),
    }
    # One pass: what was put in is not looked through again.
    return re.sub(r"@([A-Z]+)@", lambda found: parts[found[1]], frame)


def headline(data: Mapping[str, Any]) -> str:
    """What dominates a profile, in one sentence.

    >>> from webgrad.tools.profiling.report import headline
    >>> kernel = {"name": "matmul", "count": 12, "seconds": 0.61, "line": "train.py:12"}
    >>> headline({"seconds": 1.0, "kernels": [kernel]})
    '61 % of the time is one kernel, matmul, launched 12 times, at train.py:12.'
    """
    seconds = float(data.get("seconds") or 0.0)
    kernels: Sequence[Mapping[str, Any]] = data.get("kernels") or ()
    stages: Sequence[Mapping[str, Any]] = data.get("stages") or ()
    own = [stage for stage in stages if stage["name"] not in OF_KERNELS or not kernels]
    stage = max(own, key=_seconds, default=None)
    kernel = max(kernels, key=_seconds, default=None)
    if seconds <= 0 or (stage is None and kernel is None):
        return "Nothing was computed."
    if kernel is None or (stage is not None and _seconds(stage) > sum(map(_seconds, kernels))):
        return _of_stage(stage or {}, seconds)
    share = _percent(_seconds(kernel) / seconds)
    times = "once" if kernel["count"] == 1 else f"{kernel['count']:,} times"
    line = f", at {kernel['line']}" if kernel.get("line") else ""
    first = f"{share} of the time is one kernel, {kernel['name']}, launched {times}{line}"
    others = sum(map(_seconds, kernels)) - _seconds(kernel)
    if len(kernels) == 1 or others < 0.01 * seconds:
        return f"{first}."
    more = "1 other kernel takes" if len(kernels) == 2 else f"{len(kernels) - 1:,} other kernels take"
    return f"{first}; {more} {_percent(others / seconds)}."


def _of_stage(stage: Mapping[str, Any], seconds: float) -> str:
    share = _percent(_seconds(stage) / seconds)
    if stage["name"] == "python":
        return f"{share} of the time is the program's own Python code, not webgrad's."
    what = f" ({stage['what'].rstrip('.')})" if stage.get("what") else ""
    return f"{share} of the time the host is in one stage, {stage['name']}{what}."


def _seconds(row: Mapping[str, Any]) -> float:
    return float(row.get("seconds") or 0.0)


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.0095 else "less than 1 %"


def _rows(spans: Iterable[Sequence[Any]], tracks: Iterable[str]) -> dict[str, Any]:
    """Spans by track and depth, each row in the order of time, with names as numbers: half of the bytes."""
    named = list(tracks)
    places = {name: place for place, name in enumerate(named)}
    names: dict[str, int] = {}
    rows: dict[tuple[int, int], list[tuple[float, float, int, int]]] = {}
    for track, name, start, duration, depth, index in spans:
        if isinstance(track, str) and track not in places:
            places[track] = len(named)
            named.append(track)
        row = rows.setdefault((places[track] if isinstance(track, str) else track, depth), [])
        number = names.setdefault(name, len(names))
        row.append((round(start, 2), round(duration, 2), number, -1 if index is None else index))
    keys = ("start", "duration", "name", "index")
    found = []
    for (place, depth), row in sorted(rows.items()):
        row.sort(key=lambda span: span[0])
        columns = zip(keys, zip(*row, strict=True), strict=True)
        found.append({"track": place, "depth": depth, **dict(columns)})
    return {"tracks": named, "names": list(names), "rows": found}


def _end(known: Mapping[str, Any]) -> float:
    """The last moment that anything tells of, in microseconds."""
    times = [1e6 * (known["seconds"] or 0.0)]
    times += [max(map(sum, zip(row["start"], row["duration"], strict=True))) for row in known["rows"]]
    times += [flush[0] for flush in known["flushes"]]
    times += [points[-1][0] for points in known["memory"].values() if points]
    return max(times)


def _escaped(text: str) -> str:
    return html.escape(text.encode("utf-8", errors="replace").decode("utf-8"))


def _embedded(value: Any) -> str:
    """JSON that a script element may hold; numbers that JSON has no word for become null."""
    try:
        text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    except ValueError:
        text = json.dumps(_finite(value), separators=(",", ":"))
    return text.translate(HARMLESS)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(each) for key, each in value.items()}
    return [_finite(each) for each in value] if isinstance(value, list | tuple) else value


@lru_cache(maxsize=1)
def _files() -> tuple[str, str, str]:
    """The page's style, its script and its frame."""
    script = "\n".join((FOLDER / name).read_text(encoding="utf-8") for name in SCRIPTS)
    style, frame = ((FOLDER / f"report.{kind}").read_text(encoding="utf-8") for kind in ("css", "html"))
    return style, script, frame
