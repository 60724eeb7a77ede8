"""JSON out of files from anywhere: objects in which no name comes twice, counted before they are made.

In: a path, or bytes out of a file. Out: a dict. The invariant: nothing is built that has more parts than the
limits say, so that no text is dear.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import webgrad as wg

from .memory_map import map_file, shown

__all__ = ["LARGEST", "OBJECTS", "checked_object", "read_object"]

LARGEST = 1 << 25  # bytes; by its quotes an index has up to 262,144 tensors
OBJECTS = 1 << 16
_MOST = {b'"': 1 << 20, b",": 1 << 20}  # texts may have some of their own


def read_object(path: Path, what: str, objects: int = OBJECTS) -> dict[str, Any]:
    """The object that is all of a file; `what` says what the file is meant to be."""
    data = map_file(path)
    if len(data) > LARGEST:
        raise wg.ModelFileError(f"{path} is longer than {LARGEST:,} bytes, too long for {what}")
    return checked_object(path, data.tobytes(), objects)


def checked_object(path: Path, text: bytes, objects: int = OBJECTS) -> dict[str, Any]:
    """A JSON object in which no name comes twice: readers would disagree on which one is meant."""
    for mark, most in {b"{": objects, **_MOST}.items():
        if text.count(mark) > most:
            raise wg.ModelFileError(
                f"{path} lists too much: {text.count(mark):,} {mark.decode()} where the limit is {most:,}"
            )

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
            raise wg.ModelFileError(f"{path} is damaged: it has {shown(twice)} twice")
        return found

    try:
        parsed = json.loads(text, object_pairs_hook=once)
    except (ValueError, RecursionError) as error:
        if isinstance(error, wg.ModelFileError):
            raise
        raise wg.ModelFileError(f"{path} is damaged: its text is no JSON: {error}") from None
    if not isinstance(parsed, dict):
        raise wg.ModelFileError(f"{path} is damaged: its text is no JSON object")
    return parsed
