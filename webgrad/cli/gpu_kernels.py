"""`webgrad kernels --gpu navi31 …`: what real GPUs' compilers make of a run's kernels, without such a GPU.

In: the options of `webgrad kernels`. Out: a table for each GPU. The run goes to a process of its own, in
which the GPU's driver opens; results are zeros there, and what the script makes of them is its own affair.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..config import child_environment
from ..errors import DeviceError
from ..tools.gpus.compilation import output_path
from ..tools.gpus.listing import Kind, Statistics
from ..tools.gpus.table import Gpu, environment, named
from ..tools.profiling.table import columns
from .text import encodable

__all__ = ["Inspection", "Kernel", "inspect", "show", "table"]

# The process gets this one's path, wherever webgrad was imported from.
PROGRAM = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from webgrad.cli import main
sys.exit(main(sys.argv[2:]))
"""
NAME = 40  # characters of a kernel's name
KINDS: tuple[Kind, ...] = ("vector", "scalar", "memory", "workgroup", "branch", "wait")


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel on a GPU."""

    family: str
    name: str
    launches: int
    line: str
    statistics: Statistics


@dataclass(frozen=True, slots=True)
class Inspection:
    """What a GPU's compiler made of a run's kernels. `code` is the script's exit code."""

    gpu: Gpu
    driver: str
    kernels: tuple[Kernel, ...]
    code: int


def show(options: Namespace) -> int:
    """Print what each GPU's compiler makes of a run; the exit code of the last run."""
    run = ["--all"] if options.all else [options.run, *options.arguments]
    found = [inspect(gpu, run, dump=options.dump, keep=options.driver_output) for gpu in named(options.gpu)]
    if options.json:
        print(json.dumps({each.gpu.name: _as_dict(each) for each in found}))
    else:
        print(encodable("\n\n".join(map(table, found)), sys.stdout.encoding or "ascii"))
    return found[-1].code


def inspect(gpu: Gpu, run: Sequence[str], *, dump: str | None = None, keep: str | None = None) -> Inspection:
    """Run something in a process that sees this GPU, and read what its driver says of the kernels.

    Texts are written to `dump`, and the driver's words to `keep`, each in a folder of the GPU's name.
    """
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) if keep is None else Path(keep) / gpu.name
        options = ["--json", "--device", "webgpu", "--driver-output", str(folder)]
        options += [] if dump is None else ["--dump", str(Path(dump) / gpu.name)]
        command = [sys.executable, "-c", PROGRAM, json.dumps(sys.path), "kernels", *options, *run]
        variables = child_environment(environment(gpu))
        done = subprocess.run(command, env=variables, stdout=subprocess.PIPE, encoding="utf-8", check=False)
        try:
            report = json.loads(done.stdout)
        except ValueError:
            raise DeviceError(
                f"the run on {gpu.name} ended with code {done.returncode} before its kernels were known"
            ) from None
        kernels = tuple(_kernel(each, gpu, folder) for each in report["variants"])
    return Inspection(gpu, report["adapter"]["driver"], kernels, done.returncode)


def _kernel(variant: dict[str, Any], gpu: Gpu, folder: Path) -> Kernel:
    path = output_path(folder, Path(variant["file"]).stem)
    try:
        statistics = gpu.driver.parse(path.read_text(encoding="utf-8", errors="replace"), gpu)
    except (ValueError, LookupError) as error:
        raise DeviceError(
            f"what {gpu.driver.title} prints of {variant['name']} on {gpu.name} is not understood "
            f"({type(error).__name__}: {error}); --driver-output FOLDER keeps it"
        ) from None
    return Kernel(variant["family"], variant["name"], variant["launches"], variant["line"], statistics)


def _as_dict(found: Inspection) -> dict[str, Any]:
    gpu = found.gpu
    return {
        "title": gpu.title,
        "architecture": gpu.architecture,
        "driver": found.driver,
        "kernels": [asdict(each) for each in found.kernels],
    }


def table(found: Inspection) -> str:
    """A GPU's kernels in lines."""
    gpu = found.gpu
    head = f"{gpu.name}: {gpu.title}, {gpu.architecture}, as compiled by {gpu.driver.title} ({found.driver})"
    titles = ("kernel", "registers", "spills", "scratch", "shared", "subgroups", "instructions")
    rows = [(*titles, *KINDS, "hot loop", "multiply-adds", "share", "of")]
    rows += [_row(each) for each in found.kernels]
    return f"{head}\n\n{columns(rows, left=(0, len(rows[0]) - 1))}"


def _row(kernel: Kernel) -> tuple[str, ...]:
    made, loop = kernel.statistics, kernel.statistics.loop
    name = kernel.name if len(kernel.name) <= NAME else kernel.name[: NAME - 1] + "…"
    work = ("", "", "")
    if loop is not None:
        share = f"{loop.share:.0%}" if loop.multiply_adds else ""
        work = (f"{loop.instructions:,}", f"{loop.multiply_adds:,}", share)
    return (
        name,
        f"{made.registers:,}",
        f"{made.spills:,}",
        f"{made.scratch:,}",
        f"{made.workgroup_memory:,}",
        f"{made.occupancy}/{made.most} of {made.lanes}",
        f"{made.instructions:,}",
        *(f"{made.kinds.get(kind, 0):,}" for kind in KINDS),
        *work,
        kernel.family or kernel.line,
    )
