"""What AMD's compiler makes of every family of kernels is no worse than what is kept.

`make gpus` installs what this needs, and `python -m scripts.gpus --update` keeps figures anew.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from scripts.gpus import Figures, figures_of, kept, kept_driver, worse
from tests.missing import need_compiler
from webgrad.cli.gpu_kernels import inspect
from webgrad.tools.gpus.table import GPUS

FIRST = "navi31"  # the one that every run of the tests asks

OLD = Figures(60, 0, 0, 24, 32, 400, 200)


@pytest.mark.parametrize(
    "gpu", [each if each == FIRST else pytest.param(each, marks=pytest.mark.long) for each in GPUS]
)
@pytest.mark.golden
def test_no_kernel_became_worse(gpu: str, pytestconfig: pytest.Config) -> None:
    need_compiler(pytestconfig, gpu)
    found = inspect(GPUS[gpu], ["--all"])
    need_compiler(pytestconfig, gpu, found.driver)
    assert list(worse(kept(gpu), figures_of(found))) == []


@pytest.mark.parametrize("gpu", GPUS)
def test_kept_figures(gpu: str) -> None:
    assert kept_driver(gpu).startswith("Mesa ")
    figures = kept(gpu)
    assert figures.keys() == kept(FIRST).keys()
    assert all(each.spills == each.scratch == 0 for each in figures.values())


@pytest.mark.parametrize(
    ("new", "told"),
    [
        (OLD, []),
        (replace(OLD, registers=72, occupancy=28, instructions=300), []),
        (replace(OLD, instructions=200, multiply_adds=100), []),
        (replace(OLD, occupancy=12), ["k: 12 subgroups at once, and there were 24"]),
        (replace(OLD, spills=3), ["k: spills 3 registers, and 0 bytes of scratch"]),
        (replace(OLD, scratch=16), ["k: spills 0 registers, and 16 bytes of scratch"]),
        (
            replace(OLD, instructions=401),
            ["k: 401 instructions of the hot loop for 200 products, and there were 400 for 200"],
        ),
    ],
)
def test_worse(new: Figures, told: list[str]) -> None:
    assert list(worse({"k": OLD}, {"k": new})) == told


def test_kernels_come_and_go() -> None:
    assert list(worse({"k": OLD}, {})) == ["k: there is no such kernel any more"]
    assert list(worse({}, {"k": OLD})) == ["k: there is a new kernel"]
