"""What real GPUs' compilers make of webgrad's kernels: `python -m scripts.gpus [--gpu NAMES] [--update]`.

In: the GPUs of webgrad/tools/gpus. Out: Mesa's packages installed where that can be done, a table for each
GPU, and what became worse than the figures kept in tests/tools/gpus/golden; `--update` writes those anew.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from scripts.driver import bring
from scripts.system import ROOT, say
from webgrad.cli.gpu_kernels import Inspection, Kernel, inspect, table
from webgrad.tools.gpus.table import Gpu, missing, named

__all__ = ["Figures", "figures_of", "kept", "kept_driver", "main", "worse"]

GOLDEN = ROOT / "tests" / "tools" / "gpus" / "golden"
PACKAGES = ("mesa-drm-shim", "mesa-vulkan-drivers")
SEPARATOR = " | "
TITLES = ("family", "kernel", "registers", "spills", "scratch", "subgroups", "of at most", "loop", "products")


@dataclass(frozen=True, slots=True)
class Figures:
    """What is kept of one kernel: the instructions and the multiply-adds are those of its hot loop."""

    registers: int
    spills: int
    scratch: int
    occupancy: int
    most: int
    instructions: int
    multiply_adds: int


def figures_of(found: Inspection) -> dict[str, Figures]:
    """The figures by family and kernel; a second kernel of the same name in a family has a number."""
    seen: Counter[str] = Counter()
    figures = {}
    for each in found.kernels:
        name = f"{each.family}{SEPARATOR}{each.name}"
        seen[name] += 1
        figures[name if seen[name] == 1 else f"{name} {seen[name]}"] = _figures(each)
    return figures


def _figures(kernel: Kernel) -> Figures:
    made, loop = kernel.statistics, kernel.statistics.loop
    work = (0, 0) if loop is None else (loop.instructions, loop.multiply_adds)
    return Figures(made.registers, made.spills, made.scratch, made.occupancy, made.most, *work)


def golden_path(gpu: str) -> Path:
    """The file of a GPU's figures."""
    return GOLDEN / f"{gpu}.txt"


def write(found: Inspection) -> None:
    """Keep a GPU's figures."""
    lines = [found.driver, SEPARATOR.join(TITLES)]
    for name, each in figures_of(found).items():
        fields = (getattr(each, field) for field in Figures.__slots__)
        lines.append(SEPARATOR.join((name, *map(str, fields))))
    golden_path(found.gpu.name).write_text("\n".join(lines) + "\n", encoding="utf-8")


def kept_driver(gpu: str) -> str:
    """The driver whose figures are kept of a GPU; "" where none are."""
    path = golden_path(gpu)
    return path.read_text(encoding="utf-8").splitlines()[0] if path.is_file() else ""


def kept(gpu: str) -> dict[str, Figures]:
    """The figures that are kept of a GPU."""
    figures = {}
    for line in golden_path(gpu).read_text(encoding="utf-8").splitlines()[2:]:
        family, kernel, *fields = line.split(SEPARATOR)
        figures[SEPARATOR.join((family, kernel))] = Figures(*map(int, fields))
    return figures


def worse(before: Mapping[str, Figures], now: Mapping[str, Figures]) -> Iterator[str]:
    """What a user's GPU would notice: spills, fewer subgroups at once, more instructions for each product."""
    for name in before.keys() | now.keys():
        if name not in before or name not in now:
            yield f"{name}: there is {'no such kernel any more' if name in before else 'a new kernel'}"
            continue
        old, new = before[name], now[name]
        if new.spills > old.spills or new.scratch > old.scratch:
            yield f"{name}: spills {new.spills} registers, and {new.scratch} bytes of scratch"
        if new.occupancy < old.occupancy:
            yield f"{name}: {new.occupancy} subgroups at once, and there were {old.occupancy}"
        if new.instructions * old.multiply_adds > old.instructions * new.multiply_adds:
            yield (
                f"{name}: {new.instructions} instructions of the hot loop for {new.multiply_adds} products, "
                f"and there were {old.instructions} for {old.multiply_adds}"
            )


def ensure_compilers(gpus: Sequence[Gpu]) -> list[Gpu]:
    """The GPUs that can be asked, once Mesa's packages were installed, where that was needed and allowed."""
    lacking = [missing(gpu) for gpu in gpus if missing(gpu)]
    if lacking:
        _install(lacking[0])
    for gpu in gpus:
        if what := missing(gpu):
            say(f"{gpu.name} is left out: {what}")
    return [gpu for gpu in gpus if not missing(gpu)]


def _install(why: str) -> None:
    if problem := bring(why, PACKAGES, f"they are packages of Debian and Ubuntu: {', '.join(PACKAGES)}"):
        say(f"they could not be installed: {problem}")


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; 1 where a kernel became worse."""
    parser = argparse.ArgumentParser(
        prog="scripts.gpus", description="Ask the compilers of real GPUs about webgrad's kernels."
    )
    parser.add_argument("--gpu", default="all", metavar="NAMES", help="some of them: navi31, navi10, …")
    parser.add_argument("--update", action="store_true", help="keep the figures, as what tests compare with")
    options = parser.parse_args(arguments)
    regressions = 0
    for gpu in ensure_compilers(named(options.gpu)):
        found = inspect(gpu, ["--all"])
        print(table(found), end="\n\n", flush=True)
        if options.update:
            write(found)
        elif kept_driver(gpu.name) == found.driver:
            for line in worse(kept(gpu.name), figures_of(found)):
                say(f"worse on {gpu.name}: {line}")
                regressions += 1
    return int(regressions > 0)


if __name__ == "__main__":
    sys.exit(main())
