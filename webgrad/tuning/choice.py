"""Choosing: which of its choices a bundle is made by, for a plan that is being made.

In: a device and a bundle. Out: a choice, or None for the default. It is looked for in memory, then on disk;
else all candidates are measured and the winner is kept. Where that cannot be, there is the default.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from .. import __version__
from ..errors import DeviceLostError, ForkError, WebgradError
from ..graph.snapshot import Snapshot
from ..lower.choices import Choice
from ..lower.compile import Choose, choices_of, compile_bundle
from ..observing import observers
from ..runtime.webgpu import Device
from ..schedule.plan import Group
from . import is_on
from .entries import Candidate, Entries, Entry, entries_folder
from .measure import measure

MIN_GAIN = 1.03  # a choice that gains less than this over the default is noise


@functools.lru_cache(maxsize=8)
def _entries(folder: Path | None) -> Entries:
    return Entries(folder)


def entries() -> Entries:
    """The entries of this process, in the folder that the settings name."""
    return _entries(entries_folder())


@contextmanager
def choosing(device: Device, numbers: Mapping[int, Any] | None = None) -> Iterator[Choose | None]:
    """What chooses for the bundles of one plan; None without tuning.

    `numbers` are the run-time numbers of the plan's first run, by node: what is measured is measured with
    them.
    """
    if not is_on():
        yield None
        return
    progress = _Progress(sys.stderr)
    try:
        yield _Tuner(device, numbers or {}, progress).choose
    finally:
        progress.finish()


def known(device: Device) -> Choose | None:
    """What chooses among what was measured before, and measures nothing; None without tuning."""
    return _Tuner(device, {}, None).choose if is_on() else None


class _Tuner:
    """Chooses on one device; without a `progress` it measures nothing."""

    def __init__(self, device: Device, numbers: Mapping[int, Any], progress: _Progress | None) -> None:
        self._device = device
        self._numbers = numbers
        self._progress = progress

    def choose(self, graph: Snapshot, groups: tuple[Group, ...]) -> Choice | None:
        """The choice for a bundle; None where there is nothing to choose, or nothing is known."""
        device = self._device
        offered = choices_of(graph, groups, device.profile)
        if not offered:
            return None
        key = key_of(device, graph, groups, offered)
        entry = entries().find(key)
        if entry is None and self._progress is not None:
            self._progress.begin(f"{key['kernel']} {key['shapes'][-1]}", len(offered))
            entry = self._measure(graph, groups, offered, key)
            self._progress.end(entry)
            for each in observers() if entry is not None else ():
                each.tuned(device, entry)
        return entry.winner if entry is not None and entry.winner in offered else None

    def _measure(
        self, graph: Snapshot, groups: tuple[Group, ...], offered: Sequence[Choice], key: dict[str, Any]
    ) -> Entry | None:
        try:
            candidates = measure(self._device, graph, groups, offered, self._numbers)
        except DeviceLostError:  # perhaps by a candidate that ran too long: this process does not try again
            lost = Candidate(offered[0], None, "the device was lost")
            entries().keep(Entry(key, (lost,), offered[0]), lasting=False)
            raise
        except ForkError:
            raise
        except WebgradError:  # no room for its data, say: the plan will say so itself where it matters
            return None
        timed = [(each.seconds, each.choice) for each in candidates if each.seconds is not None]
        default = candidates[0].seconds or 0.0
        best, winner = min(timed)
        entry = Entry(key, candidates, winner if default > MIN_GAIN * best else offered[0])
        entries().keep(entry)
        return entry


def key_of(
    device: Device, graph: Snapshot, groups: Sequence[Group], offered: Sequence[Choice]
) -> dict[str, Any]:
    """What a measurement depends on, in plain JSON types.

    The default's text stands for what shapes do not say: what is fused, and how values lie in memory.
    """
    launches = compile_bundle(graph, tuple(groups), device.profile)
    texts = "\n".join(each.program.text for each in launches)
    values = [graph.sigs[each] for group in groups for each in (*group.reads, *group.outputs)]
    return {
        "kind": groups[0].kind,
        "kernel": launches[0].kernel.name,
        "shapes": [list(each.shape) for each in values],
        "dtypes": [each.dtype.name for each in values],
        "text": hashlib.sha256(texts.encode()).hexdigest()[:24],
        "choices": [dict(each) for each in offered],
        "adapter": device.info.name,
        "backend": device.info.backend,
        "driver": device.info.driver,
        "features": sorted(device.features),
        "checked": device.settings.checks,
        **_versions(),
    }


@functools.cache
def _versions() -> dict[str, str]:
    return {"webgrad": __version__, "wgpu": importlib.metadata.version("wgpu")}


class _Progress:
    """One line on a terminal that says what is measured; elsewhere nothing."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream if stream is not None and stream.isatty() else None
        self._began = time.monotonic()
        self._gains: list[float] = []
        self._width = 0

    def begin(self, what: str, count: int) -> None:
        self._say(f"webgrad: tuning kernel {len(self._gains) + 1}, {what}: {count} ways …")

    def end(self, entry: Entry | None) -> None:
        self._gains.append(1.0 if entry is None else entry.gain)

    def finish(self) -> None:
        if self._gains:
            faster = [each for each in self._gains if each > 1]
            gained = f"{len(faster)} of them faster, up to {max(faster):.2f} ×" if faster else "none faster"
            seconds = time.monotonic() - self._began
            self._say(f"webgrad: tuned {len(self._gains)} kernels in {seconds:.1f} s, {gained}", "\n")

    def _say(self, text: str, end: str = "") -> None:
        """Write over the line that was there."""
        if self._stream is not None:
            room = shutil.get_terminal_size().columns - 1
            self._stream.write(f"\r{text[:room]:{self._width}}{end}")
            self._stream.flush()
            self._width = min(len(text), room)
