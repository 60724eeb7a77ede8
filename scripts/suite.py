"""Types and all tests in several processes, one more at a time than there are cores: how `make test` ends.

In: groups of folders and files, the longest first, and for each a module of Python with its arguments. Out:
each group's output when it ends, and the first exit code that is not 0. Whoever is done takes the next group,
so no list has to say which of them take equally long.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import IO

from scripts.system import say

__all__ = ["GROUPS", "WHOLE", "arguments_of", "cores", "lanes_of", "run_groups"]

# Folders and files of tests/, what takes longest first; those that are in no group are one more, before all
# others. Groups are small, so that they end together, and because every capture looks through all objects of
# its process.
GROUPS = (
    ("functions", "ops"),
    ("onnx",),
    ("cpu", "native", "reference"),
    ("models",),
    ("properties",),
    ("runtime",),
    ("web", "examples", "libraries"),
    ("scripts", "benchmarks", "tuning"),
    ("tools", "cli"),
    ("optim", "amp", "data", "io", "linalg", "signal", "special", "training"),
    ("lower",),
    ("jit", "evaluate"),
    ("gradients", "graph"),
    ("nn", "diffusion"),
    ("kernels",),
    ("wgsl", "schedule"),
    (
        "test_docs.py",
        "test_docs_commands.py",
        "test_docs_links.py",
        "test_errors_page.py",
        "torch",
        "transformers",
        "diffusers",
    ),
)
# What runs with subgroups of another size than all others, since kernels are chosen by it.
LANES = {"tests/lower": 8}
# With the tests marked long, which pytest leaves out by itself (pyproject.toml).
WHOLE = ("-m", "not soak and not web")
SPARE = 1  # at a time, beyond the cores: groups wait for children, timers and the driver's thread
MOST = 4  # at a time: each may take 2 GB of memory
Start = Callable[[Sequence[str], IO[bytes]], "subprocess.Popen[bytes]"]


@dataclass(frozen=True, slots=True)
class _Running:
    arguments: Sequence[str]
    process: subprocess.Popen[bytes]
    output: IO[bytes]


def cores() -> int:
    """How many processes can compute at once."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


def arguments_of(groups: Sequence[Sequence[str]], options: Sequence[str] = ()) -> list[list[str]]:
    """The module pytest and what it is told for each group; first for all that is in none."""
    folders = [[f"tests/{each}" for each in group] for group in groups]
    rest = [f"--ignore={each}" for group in folders for each in group]
    return [["pytest", *each, *options] for each in (rest, *folders)]


def lanes_of(arguments: Sequence[str]) -> int | None:
    """The lanes of the software adapter's subgroups in a group; None: as many as everywhere."""
    return next((LANES[each] for each in arguments if each in LANES), None)


def run_groups(groups: Sequence[Sequence[str]], start: Start, jobs: int | None = None) -> int:
    """Have every group run, so many at a time; 0, or the code of the first that failed."""
    waiting, running, failed = list(groups), list[_Running](), list[_Running]()
    most = jobs or min(cores() + SPARE, MOST)
    with ExitStack() as files:
        try:
            while waiting or running:
                while waiting and len(running) < most:
                    arguments, output = waiting.pop(0), files.enter_context(tempfile.TemporaryFile())
                    running.append(_Running(arguments, start(arguments, output), output))
                ended = [each for each in running if each.process.poll() is not None]
                for each in ended:
                    running.remove(each)
                    _show(each)
                failed += [each for each in ended if each.process.returncode]
                if not ended:
                    time.sleep(0.1)
        finally:
            for each in running:
                each.process.kill()
                each.process.wait()
    for each in failed:
        say(f"ended with {each.process.returncode}: {_name(each)}")
    return failed[0].process.returncode if failed else 0


def _name(group: _Running) -> str:
    module, *words = group.arguments
    folders = [each for each in words if each.startswith("tests/")]
    return " ".join([module, *folders]) if folders or not words else f"{module}, all other tests"


def _show(group: _Running) -> None:
    say(f"{_name(group)}:")
    group.output.seek(0)
    sys.stdout.write(group.output.read().decode(errors="replace"))
    sys.stdout.flush()
