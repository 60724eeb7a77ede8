"""A run's kernels compiled once more, each by itself, with what the driver prints of it in a file of its own.

In: the variants of a run, and a folder. Out: `<text's name>.txt` for each. Drivers print to the process's
stderr, from any thread, and name no kernel: so one is compiled at a time while stderr is that kernel's file.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from ...runtime.device import opened_gpus
from ..debug import text_name
from ..kernels import Variant

__all__ = ["compile_alone", "drivers_silenced", "output_path"]


def output_path(folder: Path, name: str) -> Path:
    """The file of the kernel whose text has this name."""
    return folder / f"{name}.txt"


def compile_alone(variants: Sequence[Variant], folder: Path) -> None:
    """Write what the driver prints of each variant. Without such output the files are empty."""
    folder.mkdir(parents=True, exist_ok=True)
    asked = {(each.device, each.text, each.entry): text_name(each) for each in variants}
    for device in opened_gpus():
        compiler = device.queue.context.compiler
        for each in compiler.compiled():
            program = each.pipeline.program
            name = asked.get((device.name, program.text, program.entry))
            if name is not None:
                with _native_stderr(output_path(folder, name)):
                    compiler.compile_again(each)


@contextlib.contextmanager
def drivers_silenced() -> Iterator[None]:
    """Let only Python write to stderr: a driver that is made to print does so for every pipeline."""
    with (
        os.fdopen(os.dup(2), "w", encoding="utf-8", errors="replace", buffering=1) as own,
        contextlib.redirect_stderr(own),
        _native_stderr(Path(os.devnull)),
    ):
        yield


@contextlib.contextmanager
def _native_stderr(path: Path) -> Iterator[None]:
    sys.stderr.flush()
    before = os.dup(2)
    try:
        with path.open("wb") as file:
            os.dup2(file.fileno(), 2)
            yield
    finally:
        os.dup2(before, 2)
        os.close(before)
