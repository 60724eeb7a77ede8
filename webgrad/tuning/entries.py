"""What was measured, kept in memory and on disk: one JSON file for each kernel, shape and machine.

In: a key (plain JSON) and what was found for it. Out: the same, in this process or another. Files are written
beside their place and moved there, so that nobody sees half of one; a file that is damaged, or another key's,
is a miss. Where nothing can be written, what was found is kept in memory, and said once.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..config import cache_path, settings
from ..lower.choices import Choice
from ..runtime.kept_files import write_whole
from ..runtime.shield import shield

FORMAT = 1
MAX_ENTRIES = 4096  # entries in memory


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to make a kernel, and its time; without one, why it was dropped."""

    choice: Choice
    seconds: float | None
    dropped: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """What was measured for a key, the default first. The winner is one of those that have a time."""

    key: Mapping[str, Any]
    candidates: tuple[Candidate, ...]
    winner: Choice

    @property
    def gain(self) -> float:
        """How many times as fast as the default the winner is."""
        times = {each.choice: each.seconds for each in self.candidates}
        default, best = self.candidates[0].seconds, times.get(self.winner)
        return default / best if default and best else 1.0


def entries_folder() -> Path | None:
    """Where entries are kept: in the folder that WEBGRAD_CACHE names, or the system's own."""
    cache = settings().cache or cache_path()
    return None if cache is None else cache / "tuning"


class Entries:
    """Entries by key. `folder` is None where they are kept in memory only."""

    def __init__(self, folder: Path | None, limit: int = MAX_ENTRIES) -> None:
        self.folder = folder
        self._limit = limit
        self._memory: dict[str, Entry] = {}
        self._warned = False

    def find(self, key: Mapping[str, Any]) -> Entry | None:
        """The entry of a key, from memory or from disk."""
        name = _name(key)
        entry = self._memory.get(name)
        if entry is None and self.folder is not None:
            entry = _read(self.folder / name)
            if entry is None or entry.key != key:
                return None
            self._remember(name, entry)
        return entry

    def keep(self, entry: Entry, *, lasting: bool = True) -> None:
        """Keep an entry, in the place of an older one; in memory only where it is not `lasting`."""
        name = _name(entry.key)
        self._remember(name, entry)
        if lasting and self.folder is not None:
            with shield:
                try:
                    write_whole(self.folder, name, _as_text(entry))
                except OSError as error:
                    self._warn(error)

    def _remember(self, name: str, entry: Entry) -> None:
        if len(self._memory) >= self._limit:
            self._memory.clear()
        self._memory[name] = entry

    def _warn(self, error: OSError) -> None:
        if not self._warned:
            self._warned = True
            warnings.warn(
                f"measured kernels cannot be kept in {self.folder} ({error.strerror}): they are measured "
                "anew by every process. Name another folder with WEBGRAD_CACHE.",
                RuntimeWarning,
                stacklevel=2,
            )

    def __iter__(self) -> Iterator[tuple[Path, Entry | None]]:
        """Every file with its entry, None where it cannot be read."""
        for path in _files(self.folder):
            yield path, _read(path)

    def clear(self) -> int:
        """Forget every entry, in memory and on disk; gives how many files went."""
        self._memory.clear()
        gone = 0
        for path in _files(self.folder):
            path.unlink(missing_ok=True)
            gone += 1
        return gone


def _files(folder: Path | None) -> list[Path]:
    return [] if folder is None or not folder.is_dir() else sorted(folder.glob("*.json"))


def _name(key: Mapping[str, Any]) -> str:
    text = json.dumps(key, sort_keys=True)
    return f"{key['kind']}-{hashlib.sha256(text.encode()).hexdigest()[:24]}.json"


def _as_text(entry: Entry) -> str:
    """JSON with a line for each candidate and each part of the key."""
    candidates = ",\n".join(f"    {json.dumps(_as_table(each))}" for each in entry.candidates)
    key = ",\n".join(f"    {json.dumps(name)}: {json.dumps(value)}" for name, value in entry.key.items())
    return (
        f'{{\n  "format": {FORMAT},\n  "winner": {json.dumps(dict(entry.winner))},\n'
        f'  "gain": {entry.gain:.3f},\n  "candidates": [\n{candidates}\n  ],\n  "key": {{\n{key}\n  }}\n}}\n'
    )


def _as_table(candidate: Candidate) -> dict[str, Any]:
    table: dict[str, Any] = {"choice": dict(candidate.choice)}
    if candidate.seconds is None:
        return table | {"dropped": candidate.dropped}
    return table | {"microseconds": round(candidate.seconds * 1e6, 3)}


def _read(path: Path) -> Entry | None:
    """The entry in a file; None where there is none, or something else."""
    with shield:  # an OSError of a signal's handler is not the system's
        try:
            table = json.loads(path.read_text(encoding="utf-8"))
            candidates = tuple(_candidate(each) for each in table["candidates"])
            entry = Entry(dict(table["key"]), candidates, _choice(table["winner"]))
            timed = [each.choice for each in candidates if each.seconds is not None]
            return entry if table["format"] == FORMAT and entry.winner in timed else None
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None


def _candidate(table: Mapping[str, Any]) -> Candidate:
    if "dropped" in table:
        return Candidate(_choice(table["choice"]), None, str(table["dropped"]))
    return Candidate(_choice(table["choice"]), float(table["microseconds"]) / 1e6)


def _choice(table: Mapping[str, Any]) -> Choice:
    choice = tuple(table.items())
    if not all(type(value) is int for _, value in choice):
        raise ValueError
    return choice
