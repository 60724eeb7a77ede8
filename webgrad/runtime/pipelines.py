"""Pipelines: programs made ready for one device, compiled once, in threads, and kept for the device's life.

A `Pipeline` is what commands name: it outlives a lost device. What was compiled for the open device is kept
in `Compiler` by the pipeline's number, and compiled again for the next device on demand.
"""

from __future__ import annotations

import itertools
import re
import threading
import time
from concurrent.futures import Future
from typing import Any

from ..device_profile import MAX_PARAMS
from ..errors import CompileError, DTypeError, LaunchError, OutOfMemoryError
from ..observing import stage
from ..wgsl import Program
from ..wgsl.renderer import render
from .groups import BindGroups, Layout
from .layer import DeviceLayer, Handle
from .stats import Counters
from .threads import pool

Pairs = tuple[tuple[int, int], ...]  # bindings: inputs with the outputs that may take their buffers

_numbers = itertools.count(1)
WORKERS = 4  # threads that compile, for all devices
STACK = 64 << 20  # bytes for a compiling thread: compilers recurse, and some systems give only 512 KiB
# Of this thread, where the system has such a clock: one of the wall would count waiting for the driver too.
_clock = getattr(time, "thread_time", time.perf_counter)
PADDING = 32  # every buffer has a multiple of this many bytes: four numbers of 64 bits


class Pipeline:
    """A program and how it is to be compiled.

    `in_place` are pairs of bindings (input, output) with the variant that writes each output where its input
    lies, and binds only the outputs; None where nothing is left to do then.
    """

    __slots__ = (
        "accesses",
        "arity",
        "careful",
        "checked",
        "exact",
        "in_place",
        "number",
        "params_size",
        "program",
    )

    def __init__(
        self,
        program: Program,
        *,
        checked: bool,
        in_place: tuple[tuple[Pairs, Pipeline | None], ...] = (),
    ) -> None:
        if program.params_size > MAX_PARAMS:
            raise LaunchError(
                f"{program.label} takes {program.params_size} bytes of parameters; at most {MAX_PARAMS} are "
                "allowed. Pass the rest in a storage buffer."
            )
        self.program = program
        self.checked = checked
        self.in_place = in_place
        self.number = next(_numbers)
        self.arity = len(program.bindings)
        self.params_size = program.params_size
        self.accesses = tuple(binding.access for binding in program.bindings)
        for pairs, variant in in_place:
            fit = all(
                self.accesses[old : old + 1] == ("read",) and self.accesses[new : new + 1] == ("read_write",)
                for old, new in pairs
            )
            if not fit or (variant is not None and variant.arity != self.arity - len(pairs)):
                raise LaunchError(
                    f"{program.label} in place of {pairs}: these are (input, output) by binding, and the "
                    "variant binds all but the inputs"
                )
        self.exact = program.uses_array_length  # then a binding must end where its buffer does
        # Every launch must be checked in full, unless it writes to its last binding alone and minds no sizes.
        self.careful = (
            self.exact
            or self.accesses.count("read_write") != 1
            or self.accesses[-1] != "read_write"
            or any(binding.bytes > PADDING for binding in program.bindings)
        )

    def __repr__(self) -> str:
        return f"<Pipeline {self.number}: {self.program.label}>"


class Compiled:
    """A pipeline on the open device."""

    __slots__ = ("argument", "handle", "layout", "owned", "pipeline", "seconds")

    def __init__(
        self, pipeline: Pipeline, handle: Handle, argument: Any, layout: Layout, seconds: float = 0.0
    ) -> None:
        self.pipeline = pipeline
        self.handle = handle
        self.argument = argument
        self.layout = layout
        self.seconds = seconds  # that compiling took
        self.owned = True  # whether the handle is this one's to release

    def shared_with(self, pipeline: Pipeline) -> Compiled:
        """The same for another pipeline of the same text."""
        made = Compiled(pipeline, self.handle, self.argument, self.layout)
        made.owned = False
        return made


class Compiler:
    """Compiles pipelines for one open device, each once, in a few threads."""

    def __init__(
        self,
        native: DeviceLayer,
        groups: BindGroups,
        counters: Counters,
        features: frozenset[str],
    ) -> None:
        self._native = native
        self._groups = groups
        self._counters = counters
        self._features = features
        # By number; a pipeline stands for one of the same text that was asked for before.
        self._compiled: dict[int, Future[Compiled] | Compiled | Pipeline] = {}
        self._texts: dict[tuple[str, str, bool], Pipeline] = {}

    def __len__(self) -> int:
        return len(self._compiled)

    def request(self, pipeline: Pipeline) -> None:
        """Begin to compile, unless that was asked for before. The caller holds the device's lock."""
        if pipeline.number in self._compiled:
            return
        missing = pipeline.program.requires - self._features
        if missing:
            raise DTypeError(
                f"{pipeline.program.label} needs {', '.join(sorted(missing))}, which this device lacks "
                f"(it has: {', '.join(sorted(self._features)) or 'none of the optional features'})"
            )
        program = pipeline.program
        first = self._texts.setdefault((program.text, program.entry, pipeline.checked), pipeline)
        if first is pipeline:
            self._begin(pipeline)
        else:
            self._compiled[pipeline.number] = first

    def _begin(self, pipeline: Pipeline) -> None:
        layout = self._groups.layout(pipeline.accesses)
        if not self._native.threaded:
            self._counters.pipelines_compiled += 1
            self._compiled[pipeline.number] = self._compile(pipeline, layout)
            return
        self._counters.pipelines_compiled += 1
        usual = threading.stack_size(STACK)  # of the threads that are started here
        try:
            self._compiled[pipeline.number] = pool("compile", WORKERS).submit(self._compile, pipeline, layout)
        finally:
            threading.stack_size(usual)

    def get(self, pipeline: Pipeline) -> Compiled:
        """The compiled pipeline; waits for it. A CompileError is raised here, each time."""
        found = self._compiled.get(pipeline.number)
        if isinstance(found, Compiled):
            return found
        if found is None:
            self.request(pipeline)
            return self.get(pipeline)
        if isinstance(found, Pipeline):
            return self._shared(pipeline, found)
        try:
            with stage("compile"):
                compiled = found.result()
        except OutOfMemoryError:
            del self._compiled[pipeline.number]  # there may be room the next time
            raise
        self._compiled[pipeline.number] = compiled
        return compiled

    def confirm(self, pipeline: Pipeline) -> None:
        """Wait for a pipeline, also where compilers work by themselves: its CompileError is raised here."""
        compiled = self.get(pipeline)
        try:
            self._native.confirm_pipeline(compiled.handle)
        except CompileError as error:
            raise self._explained(pipeline.program, compiled.layout, error) from None

    def _shared(self, pipeline: Pipeline, first: Pipeline) -> Compiled:
        try:
            compiled = self.get(first).shared_with(pipeline)
        except CompileError:
            self._begin(pipeline)  # so that the message speaks of this one
            return self.get(pipeline)
        self._compiled[pipeline.number] = compiled
        return compiled

    def close(self) -> None:
        """Let every pipeline go; waits for those that are being compiled."""
        for found in self._compiled.values():
            if isinstance(found, Compiled) and found.owned:
                self._native.release_pipeline(found.handle)
            elif isinstance(found, Future) and found.exception() is None:
                self._native.release_pipeline(found.result().handle)
        self._compiled.clear()
        self._texts.clear()

    def compiled(self) -> list[Compiled]:
        """All that is compiled, each text once, in the order of asking; waits for what is under way."""
        found = []
        for each in list(self._compiled.values()):
            if isinstance(each, Compiled) and each.owned:
                found.append(each)
            elif isinstance(each, Future) and each.exception() is None:
                found.append(each.result())
        return found

    def compile_again(self, compiled: Compiled) -> None:
        """Compile a pipeline once more and let it go: for those who listen to what the driver says of it."""
        again = self._compile(compiled.pipeline, compiled.layout)
        self._native.release_pipeline(again.handle)

    def _compile(self, pipeline: Pipeline, layout: Layout) -> Compiled:
        began = _clock()
        program = pipeline.program
        text = self._text(program, minify=not pipeline.checked)
        try:
            handle = self._native.create_pipeline(
                text, program.entry, layout.pipeline, checked=pipeline.checked
            )
        except CompileError as error:
            raise self._explained(program, layout, error) from None
        return Compiled(pipeline, handle, self._native.argument(handle), layout, _clock() - began)

    def _text(self, program: Program, *, minify: bool) -> str:
        return render(
            program, dialect=self._native.dialect, parameters=self._native.parameters, minify=minify
        )

    def _explained(self, program: Program, layout: Layout, error: CompileError) -> CompileError:
        """Compile the readable text once more: only its lines can be found in the source."""
        text = self._text(program, minify=False)
        try:
            handle = self._native.create_pipeline(text, program.entry, layout.pipeline, checked=True)
            self._native.confirm_pipeline(handle)
        except CompileError as readable:
            error = readable
        return CompileError(explain(program, text, str(error)))


# naga's way to name a place, and Tint's
_PLACE = re.compile(r"(?:┌─ [^:\n]*|WGSL: |^):(\d+):(\d+)", re.MULTILINE)
_REASON = re.compile(r"^.*error: .*$|\^+ .*$|^ *= .*$", re.MULTILINE)


def explain(program: Program, text: str, message: str) -> str:
    """The compiler's words with the entry point, the defines and the numbered source lines they speak of."""
    defines = " ".join(f"{name}={value}" for name, value in program.defines)
    reasons = [each.strip(" ^=") for each in _REASON.findall(message)] or [message.strip()]
    parts = [
        f"the shader compiler refused {program.label}",
        f"  entry point: {program.entry}",
        f"  defines: {defines or 'none'}",
        *(f"  {each}" for each in dict.fromkeys(reasons)),
    ]
    lines = text.splitlines()
    for number, column in dict.fromkeys(_PLACE.findall(message)):
        index = int(number) - 1
        if not 0 <= index < min(len(lines), len(program.origins)):
            continue
        file, line = program.origins[index]
        parts.append(f"  at {file}:{line}, column {column}")
        for nearby in range(max(index - 2, 0), min(index + 3, len(lines), len(program.origins))):
            mark = ">" if nearby == index else " "
            parts.append(f"  {mark} {program.origins[nearby][1]:5} | {lines[nearby]}")
    return "\n".join(parts)
