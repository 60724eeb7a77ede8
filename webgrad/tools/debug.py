"""What WEBGRAD_DEBUG writes to stderr while a program runs: one observer, with a writer for each level.

In: what the stages tell (observing.py). Out: lines that begin with `webgrad[level]`, and with WEBGRAD_DUMP a
file for each kernel's text. The invariants: nothing is written that was not asked for, each text once, and a
stream or a folder that takes no more ends the writing, never the program.
"""

from __future__ import annotations

import hashlib
import re
import struct
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, TextIO

from ..config import Settings
from ..errors import ConfigError
from ..graph.node import line_of
from ..lower.threads import name_of
from ..native.compiler import assembly
from ..observing import Note, Observer, observe
from ..runtime.stats import readable_bytes
from ..schedule.work import work_of

__all__ = ["Debug", "Dump", "enter", "params_of", "text_name"]

_LIMITS = (
    "max-buffer-size",
    "max-storage-buffer-binding-size",
    "max-storage-buffers-per-shader-stage",
    "max-compute-invocations-per-workgroup",
    "max-compute-workgroup-storage-size",
    "max-compute-workgroups-per-dimension",
)
_FIELD_CODES = {"f32": "f", "i32": "i", "u32": "I"}
_kept = ExitStack()  # what the settings ask for is watched until the process ends


def enter(settings: Settings) -> None:
    """Write what the settings ask for, from now on."""
    folder = None if settings.dump is None else Dump(settings.dump)
    _kept.enter_context(observe(Debug(settings.debug, dump=folder)))


class Dump:
    """A folder of texts, one file for each."""

    def __init__(self, folder: Path, option: str = "WEBGRAD_DUMP") -> None:
        self.folder = folder
        self.trouble = ""
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"{option}: the folder {folder} cannot be made: {error.strerror}") from error

    def write(self, program: Any) -> None:
        """Write a program's text, unless writing failed before."""
        self._write(f"{text_name(program)}.wgsl", f"// {_head(program)}\n{program.text}")

    def write_native(self, label: str, text: str) -> None:
        """Write a module's text, and what the processor gets."""
        name = _file_name(label, text)
        self._write(f"{name}.ll", f"; {label}\n{text}")
        self._write(f"{name}.s", assembly(text))

    def _write(self, name: str, text: str) -> None:
        if not self.trouble:
            try:
                (self.folder / name).write_text(text, encoding="utf-8")
            except OSError as error:
                self.trouble = f"{self.folder} takes no more texts: {error.strerror}"
                print(f"webgrad: {self.trouble}", file=sys.stderr)


def text_name(program: Any) -> str:
    """What a program's file is called: its label, and some of its text's hash, the same in every run."""
    return _file_name(program.label, program.text)


def _file_name(label: str, text: str) -> str:
    word = re.sub(r"\W+", "_", label).strip("_")[:80] or "kernel"
    return f"{word}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def _head(program: Any) -> str:
    defines = " ".join(f"{name}={value}" for name, value in program.defines)
    needs = ", ".join(sorted(program.requires))
    return f"{program.label}" + (f"; {defines}" if defines else "") + (f"; needs {needs}" if needs else "")


def params_of(program: Any, params: bytes) -> Iterator[str]:
    """The parameters of a launch with their names: "p0 4096"."""
    for each in program.params:
        code = _FIELD_CODES.get(each.type)
        raw = params[each.offset : each.offset + each.size]
        if code and len(raw) == 4:
            yield f"{each.name} {struct.unpack('<' + code, raw)[0]:.6g}"
        else:
            yield f"{each.name} 0x{raw.hex()}"


class Debug(Observer):
    """Writes what it sees, as far as a level asks for it."""

    def __init__(
        self, levels: frozenset[str], stream: TextIO | None = None, dump: Dump | None = None
    ) -> None:
        self.levels = levels
        self._stream = stream
        self._dump = dump
        self._lock = threading.Lock()
        self._plans = 0
        self._flushes = 0
        self._texts: set[int] = set()  # hashes of what was shown
        self._kernels: set[int] = set()
        self._counted: dict[int, tuple[int, int]] = {}  # buffers made and let go, by queue, when last told

    def say(self, level: str, text: str) -> None:
        """Write lines, if their level is asked for."""
        if level in self.levels:
            stream = self._stream or sys.stderr
            lines = "".join(f"webgrad[{level}] {line}\n" for line in text.splitlines())
            with self._lock, suppress(OSError, ValueError, AttributeError):  # closed, or none at all
                stream.write(lines)
                stream.flush()

    # Devices

    def opened(self, device: Any, why: str) -> None:
        """The adapter, its features, its limits and the budget."""
        info = device.info
        self.say("device", f"{device.name}: {info.name}, because {why}")
        if device.is_gpu:
            limits = ", ".join(f"{name} {info.limits[name]:,}" for name in _LIMITS if name in info.limits)
            self.say(
                "device",
                f"  {info.type} by {info.backend}, {info.driver}\n"
                f"  features: {', '.join(sorted(device.features)) or 'none'}\n"
                f"  limits: {limits}\n"
                f"  budget: {readable_bytes(device.budget)}",
            )

    def troubled(self, name: str, what: str) -> None:
        """A loss, and the next device."""
        self.say("device", f"{name} {what}")

    # Plans

    def planned(self, device: Any, schedule: Any, compiled: Any) -> None:
        """The groups of a plan, and the IR and text of its kernels."""
        self._plans += 1
        if "schedule" in self.levels:
            self.say("schedule", "\n".join(_schedule_lines(self._plans, device, schedule)))
        for _, launches in compiled:
            for each in launches:
                ir = str(each.kernel) if "ir" in self.levels else ""
                if ir and hash(ir) not in self._kernels:
                    self._kernels.add(hash(ir))
                    self.say("ir", ir)
                for program in each.programs:
                    self._text(program)

    def _text(self, program: Any) -> None:
        """Show a text that was not shown before."""
        key = hash(program)
        if key not in self._texts:
            self._texts.add(key)
            self.say("wgsl", f"// {_head(program)}\n{program.text}")
            if self._dump is not None:
                self._dump.write(program)

    def compiled(self, label: str, text: str) -> None:
        """The text of native code, which is compiled once a process."""
        self.say("llvm", f"; {label}\n{text}")
        if self._dump is not None:
            self._dump.write_native(label, text)

    def tuned(self, device: Any, entry: Any) -> None:
        """The candidates with their times."""
        key = entry.key
        lines = [f"{key['kernel']} {key['shapes'][-1]} on {device.name}: {entry.gain:.2f} × the default"]
        for each in entry.candidates:
            mark = "→" if each.choice == entry.winner else " "
            choice = ", ".join(f"{name} {value}" for name, value in each.choice)
            time = f"{each.seconds * 1e6:10.1f} µs" if each.seconds is not None else each.dropped
            lines.append(f"{mark} {time}  {choice}")
        self.say("tune", "\n".join(lines))

    # Running

    def computed(self, device: Any, note: Note, began: int, ended: int) -> None:
        """A group on the cpu."""
        self.say("launches", f"{device.name} {_about(note)}, {(ended - began) / 1e3:.1f} µs")

    def flushed(self, flush: Any) -> None:
        """The launches of a submission, and what it changed in the pool."""
        self._flushes += 1
        queue = flush.queue
        for each in flush.launches:
            self._text(each.program)
        if "launches" in self.levels:
            head = (
                f"flush {self._flushes} on {queue.name}, cause {flush.cause}: "
                f"{len(flush.launches)} launches, {flush.in_place} in place, {len(flush.copies)} read back"
            )
            lines = [f"  {at}. {_launch(each)}" for at, each in enumerate(flush.launches, 1)]
            self.say("launches", "\n".join([head, *lines]))
        if "memory" in self.levels:
            self.say("memory", self._pool(queue))

    def _pool(self, queue: Any) -> str:
        pool, counters = queue.context.pool, queue.counters
        before = self._counted.get(id(queue), (0, 0))
        now = (counters.buffers_created, counters.buffers_evicted)
        self._counted[id(queue)] = now
        made, gone = (max(0, each - old) for each, old in zip(now, before, strict=True))
        return (
            f"flush {self._flushes} on {queue.name}: live {readable_bytes(pool.bytes_live)}, "
            f"pooled {readable_bytes(pool.bytes_free)}, peak {readable_bytes(pool.bytes_peak)}, "
            f"{made} buffers made, {gone} let go"
        )


def _about(note: Note) -> str:
    place = line_of(note.where)
    moved = f"reads {readable_bytes(note.bytes_read)}, writes {readable_bytes(note.bytes_written)}"
    return f"{note.name}: {moved}" + (f", {place}" if place else "")


def _launch(launch: Any) -> str:
    """One launch in a line: kernel, grid, bytes, parameters, the user's line."""
    about = launch.name if launch.note is None else _about(launch.note)
    grid = " × ".join(map(str, launch.row.grid))
    params = ", ".join(params_of(launch.program, launch.params))
    return f"{about}, grid {grid}" + (f", params {params}" if params else "")


def _schedule_lines(number: int, device: Any, schedule: Any) -> Iterator[str]:
    """A plan's kernels: what each stores, why, and the ops inside it."""
    graph, groups = schedule.graph, schedule.groups
    bundles: Sequence[Sequence[int]] = schedule.bundles or [(at,) for at in range(len(groups))]
    readers: dict[int, list[int]] = {}
    for at, bundle in enumerate(bundles, 1):
        for each in {value for group in bundle for value in groups[group].reads}:
            readers.setdefault(each, []).append(at)
    yield f"plan {number} on {device.name}: {len(graph.order())} nodes, {len(bundles)} kernels"
    for at, bundle in enumerate(bundles, 1):
        members = [groups[each] for each in bundle]
        work = work_of(graph, members, len(graph.lines))
        line = line_of(graph.lines[work.origin]) if work.origin >= 0 else ""
        together = f" × {len(members)}" if len(members) > 1 else ""
        yield f"  {at}. {name_of(graph, members[0])}{together}: {', '.join(work.ops)}" + f"  {line}".rstrip()
        for group in members:
            for each in group.outputs:
                sig = graph.sigs[each]
                why = _why(graph, each, readers.get(each, []))
                yield f"     stores %{each} {sig.dtype.name} {sig.shape}: {why}"


def _why(graph: Any, value: int, readers: Sequence[int]) -> str:
    """Why a value is stored."""
    if value in graph.roots:
        return "it was asked for"
    read = f"read by {', '.join(map(str, readers))}" if readers else "read by none"
    return f"somebody holds it, {read}" if value in graph.held else read
