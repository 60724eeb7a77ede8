"""Small random programs against NumPy: graphs of a few nodes, a few calls, and single functions where they
go wrong: at infinities, NaN, limits, ties and kinks.

In: a seed; of three one after another one is a graph, one calls, one such points. Out: "right", or an error
that shows the program. Squares, transposes in pairs, ties, zeros and empty arrays come often
(`tests/properties/drawing.py`).
`python -m scripts.fuzz --only programs native gpu-programs`
"""

from __future__ import annotations

from pathlib import Path

from scripts.fuzzing import Case

__all__ = ["WrongProgram", "start_cpu", "start_gpu", "start_native"]


class WrongProgram(Exception):
    """A program whose results are not NumPy's; the text is the report."""


def start_cpu(_: Path) -> Case:
    """A function that checks the program of a seed on the cpu."""
    return _start("programs", "cpu", "cpu")


def start_native(_: Path) -> Case:
    """The same by native code, for the processor that `WEBGRAD_PROCESSOR` names."""
    from webgrad.evaluate import cpu_plan

    cpu_plan.MUCH = 0
    return _start("native", "cpu", "cpu")


def start_gpu(_: Path) -> Case:
    """A function that checks the program of a seed on a GPU."""
    return _start("gpu-programs", "fused", "webgpu")


def _start(part: str, way: str, device: str) -> Case:
    # Here: a driver is loaded by what these import, and workers are forked before there is one.
    from tests.properties import points
    from tests.properties.calls import difference, write_calls
    from tests.properties.helpers import on, unlimited_backlog
    from tests.properties.running import WAYS, profiled, report
    from tests.properties.writing import write_program

    on_gpu = device != "cpu"
    others = [profiled(kind="discrete", subgroup_size=0), profiled(subgroup_size=0)] if on_gpu else []
    devices = [on(device)] * 4 + others

    def case(seed: int) -> str:
        with unlimited_backlog():
            if seed % 3 == 0:
                text = report(write_program(seed, small=True), WAYS[way], way, seed, part)
            elif seed % 3 == 1:
                text = difference(write_calls(seed, on_gpu=on_gpu), on(device), seed)
            else:
                text = points.difference(seed, devices[seed // 3 % len(devices)])
        if text:
            raise WrongProgram(text)
        return "right"

    return case
