"""Random programs of views and in-place writes against NumPy, on the cpu and on a GPU.

In: a seed. Out: "right", or an error that shows the program. `python -m scripts.fuzz --only views` tries
20,000 programs.
"""

from __future__ import annotations

from pathlib import Path

from scripts.fuzzing import Case

__all__ = ["WrongView", "start"]

GPU_EVERY = 7  # programs: kernels are compiled for these, so they take longer


class WrongView(Exception):
    """A program that left other values than NumPy; the text is the report."""


def start(_: Path) -> Case:
    """A function that runs the program of a seed on the cpu, and some on a GPU too."""
    # Here: a driver is loaded by what these import, and workers are forked before there is one.
    from tests.properties.view_programs import difference, write_program

    def case(seed: int) -> str:
        program = write_program(seed)
        for device in ("cpu", "webgpu:0") if seed % GPU_EVERY == 0 else ("cpu",):
            text = difference(program, device)
            if text:
                raise WrongView(f"on {device}: {text}")
        return "right"

    return case
