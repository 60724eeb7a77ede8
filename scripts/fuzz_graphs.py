"""Random graphs against NumPy: fused, unfused, under any passes, and as compiled for other devices.

In: a seed. Out: "right", or an error that shows the graph and a smaller one that is wrong too.
`python -m scripts.fuzz --only graphs` checks 10,000.
"""

from __future__ import annotations

from pathlib import Path

from scripts.fuzzing import Case

__all__ = ["WrongGraph", "start"]


class WrongGraph(Exception):
    """A graph whose results are not NumPy's; the text is the report."""


def start(_: Path) -> Case:
    """A function that checks the graph of a seed in every way."""
    # Here: a driver is loaded by what these import, and workers are forked before there is one.
    from tests.properties.helpers import unlimited_backlog
    from tests.properties.running import WAYS, report
    from tests.properties.writing import write_program

    def case(seed: int) -> str:
        program = write_program(seed)
        with unlimited_backlog():
            texts = [text for name, way in WAYS.items() if (text := report(program, way, name, seed))]
        if texts:
            raise WrongGraph("\n\n".join(texts))
        return "right"

    return case
