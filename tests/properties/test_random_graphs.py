"""Random graphs give what NumPy gives: fused, unfused, under any passes, and as compiled for other devices.

200 graphs with fixed seeds a run; `make fuzz` checks 10,000.
A failure prints the graph and a smaller one that fails too.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from scripts.fuzz_graphs import WrongGraph, start
from tests.properties.programs import Program, joined, values_of
from tests.properties.running import WAYS, Results, fused, report
from tests.properties.writing import write_program

pytestmark = pytest.mark.property
COUNT, CHUNK = 200, 25
CHUNKS = range(0, COUNT, CHUNK)
ALWAYS = [pytest.param("cpu"), *[pytest.param(name, marks=pytest.mark.gpu) for name in ("fused", "unfused")]]
AT_TIMES = [name for name in WAYS if name not in ("cpu", "fused", "unfused")]


def check(way: str, seeds: list[int]) -> None:
    wrong = [text for seed in seeds if (text := report(write_program(seed), WAYS[way], way, seed))]
    assert not wrong, f"{len(wrong)} of {len(seeds)} graphs are wrong\n\n" + "\n\n".join(wrong[:3])


@pytest.mark.parametrize("first", CHUNKS)
@pytest.mark.parametrize("way", ALWAYS)
def test_random_graphs(way: str, first: int) -> None:
    check(way, list(range(first, first + CHUNK)))


@pytest.mark.gpu
@pytest.mark.parametrize("first", CHUNKS)
@pytest.mark.parametrize("way", AT_TIMES)
def test_random_graphs_compiled_otherwise(way: str, first: int) -> None:
    check(way, list(range(first + AT_TIMES.index(way), first + CHUNK, 8)))


@pytest.mark.gpu
@pytest.mark.parametrize("first", range(0, 40, 8))
def test_several_graphs_in_one_evaluation(first: int) -> None:
    program = joined([write_program(seed) for seed in range(first, first + 8)])
    text = report(program, fused, "fused", first)
    assert not text, text


def test_a_seed_gives_the_same_program_again() -> None:
    a, b = write_program(7), write_program(7)
    assert [step.op for step in a.steps] == [step.op for step in b.steps]
    assert a.roots == b.roots
    for left, right in zip(values_of(a), values_of(b), strict=True):
        np.testing.assert_array_equal(left.array, right.array)


def test_programs_are_as_varied_as_they_should_be() -> None:
    programs = [write_program(seed) for seed in range(COUNT)]
    ops = {step.op for program in programs for step in program.steps}
    assert {"matmul", "sum", "max", "exp", "take", "concat", "cumulative_sum", "pad", "where", "iota"} <= ops
    assert {"fft", "rfft"} <= ops
    values = [value for program in programs[:60] for value in values_of(program)]
    assert {value.array.ndim for value in values} >= {0, 1, 2, 3, 4}
    assert {"float32", "float16", "int32", "int8", "bool"} <= {value.dtype.name for value in values}
    assert any(value.array.size == 0 for value in values)
    assert max(len(program.steps) for program in programs) > 25
    assert any(len(program.roots) > 2 for program in programs)


def test_a_wrong_kernel_is_found_and_its_graph_made_smaller() -> None:
    """As if every `add` were off by a thousandth."""

    def wrong(program: Program, random: np.random.Generator) -> Results:
        has_add = any(step.op == "add" for step in program.steps)
        values = values_of(program)
        return {root: values[root].array + np.float32(1e-2 if has_add else 0) for root in program.roots}

    seed = next(
        seed
        for seed in range(COUNT)
        if (program := write_program(seed)).steps[program.roots[-1]].op == "tanh"
        and all(values_of(program)[root].dtype.name == "float32" for root in program.roots)
        and any(step.op == "add" for step in program.steps)
    )
    text = report(write_program(seed), wrong, "wrong", seed)
    smaller = text.split("smaller: ")[1]
    assert f"seed {seed}" in text
    assert "wrong, first at" in text
    assert " add " in smaller
    assert smaller.count("(%") < text.split("smaller: ")[0].count("(%")


@pytest.mark.gpu
def test_a_case_of_the_fuzzer_goes_all_ways(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = start(tmp_path)
    assert case(5) == "right"
    monkeypatch.setitem(WAYS, "cpu", lambda program, random: {program.roots[0]: np.zeros(977, np.int8)})
    with pytest.raises(WrongGraph, match=r"again: python -m scripts\.fuzz --only graphs --count 1 --seed 5"):
        case(5)
