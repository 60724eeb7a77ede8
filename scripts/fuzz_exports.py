"""Random graphs as exports: traced, planned, and run by runner.js in node with Dawn, against NumPy.

In: a seed, which stands for ten graphs: node takes longer to start than a graph to run. Out: "right", or an
error that names the wrong ones. `python -m scripts.fuzz --only exports`; without node nothing is tried.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from scripts.fuzzing import Case
from scripts.npm import lacking

__all__ = ["WrongExport", "start"]

GRAPHS = 10


class WrongExport(Exception):
    """Graphs whose exports give something else than NumPy; a line for each."""


def start(folder: Path) -> Case:
    """A function that exports the graphs of a seed, and runs each for one kind of adapter."""
    if why := lacking("webgpu"):
        return lambda seed: f"not tried: {why}"
    from tests.web.random_exports import wrong_exports

    def case(seed: int) -> str:
        place = folder / str(seed)
        texts = wrong_exports(range(seed * GRAPHS, (seed + 1) * GRAPHS), place)
        shutil.rmtree(place, ignore_errors=True)
        if texts:
            raise WrongExport("\n".join(texts))
        return "right"

    return case
