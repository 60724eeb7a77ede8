"""Random graphs give what NumPy gives: fused, unfused, under any passes, and as compiled for other devices.

200 graphs with fixed seeds, on a GPU 50 of them in `make test`; `make fuzz` checks 10,000.
A failure prints the graph and a smaller one that fails too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from scripts.fuzz_graphs import WrongGraph, start
from scripts.fuzz_programs import WrongProgram, start_cpu, start_gpu
from scripts.fuzzing import Case
from tests.gradients.kinks import KINKS
from tests.properties import points
from tests.properties.calls import CALLS, Calls, Drawer, difference, write_calls
from tests.properties.drawing import has_equal_sizes
from tests.properties.helpers import on
from tests.properties.programs import Program, joined, values_of
from tests.properties.running import WAYS, Results, fused, report
from tests.properties.writing import write_program
from tests.selection import first

pytestmark = pytest.mark.property
COUNT, CHUNK = 200, 25
CHUNKS = range(0, COUNT, CHUNK)
ON_GPU = first(2, CHUNKS)  # drivers compile slowly
AT_TIMES = [name for name in WAYS if name not in ("cpu", "compiled", "fused", "unfused")]


def check(way: str, seeds: list[int]) -> None:
    wrong = [text for seed in seeds if (text := report(write_program(seed), WAYS[way], way, seed))]
    assert not wrong, f"{len(wrong)} of {len(seeds)} graphs are wrong\n\n" + "\n\n".join(wrong[:3])


@pytest.mark.parametrize("seed", CHUNKS)
def test_random_graphs(seed: int) -> None:
    check("cpu", list(range(seed, seed + CHUNK)))


@pytest.mark.gpu
@pytest.mark.parametrize("seed", ON_GPU)
@pytest.mark.parametrize("way", ["fused", "unfused"])
def test_random_graphs_on_a_gpu(way: str, seed: int) -> None:
    check(way, list(range(seed, seed + CHUNK)))


@pytest.mark.gpu
@pytest.mark.parametrize("seed", ON_GPU)
@pytest.mark.parametrize("way", AT_TIMES)
def test_random_graphs_compiled_otherwise(way: str, seed: int) -> None:
    check(way, list(range(seed + AT_TIMES.index(way), seed + CHUNK, 8)))


@pytest.mark.gpu
@pytest.mark.parametrize("seed", first(2, range(0, 40, 8)))
def test_several_graphs_in_one_evaluation(seed: int) -> None:
    program = joined([write_program(each) for each in range(seed, seed + 8)])
    text = report(program, fused, "fused", seed)
    assert not text, text


@pytest.mark.parametrize("seed", range(0, 400, 100))
def test_small_programs(seed: int, tmp_path: Path) -> None:
    """`make fuzz` checks 100,000."""
    check_small(start_cpu(tmp_path), range(seed, seed + 100))


@pytest.mark.gpu
@pytest.mark.parametrize("seed", first(2, range(0, 32, 8)))
def test_small_programs_on_a_gpu(seed: int, tmp_path: Path) -> None:
    """`make fuzz` checks 15,000."""
    check_small(start_gpu(tmp_path), range(seed, seed + 8))


def check_small(case: Case, seeds: range) -> None:
    wrong = []
    for seed in seeds:
        try:
            assert case(seed) == "right"
        except WrongProgram as error:
            wrong.append(f"seed {seed}: {error}")
    assert not wrong, f"{len(wrong)} of {len(seeds)} programs are wrong\n\n" + "\n\n".join(wrong[:3])


def test_what_goes_wrong_easily_is_drawn_often() -> None:
    """Squares, pairs of transposes, ties and zeros in a third of programs; empty and 0-d at times."""
    graphs = [write_program(seed, small=True) for seed in range(COUNT)]
    leaves = [[step.data for step in graph.steps if step.op == "leaf"] for graph in graphs]
    calls = [write_calls(seed) for seed in range(COUNT)]
    for starts in (leaves, [[each.start] for each in calls]):
        for is_so in (lambda x: has_equal_sizes(x.shape), has_ties):
            assert sum(any(map(is_so, each)) for each in starts) >= COUNT / 3
        assert any(not x.size for each in starts for x in each)
        assert any(not x.ndim for each in starts for x in each)
    assert any(np.any((x == 0) & np.signbit(x)) for each in calls if (x := each.start).dtype.kind == "f")
    assert sum(any("between" in name for name, _ in each.steps) for each in calls) >= COUNT / 3
    ops = [[step.op for step in write_program(seed).steps] for seed in range(COUNT)]
    assert sum(each.count("permute") > 1 for each in ops) >= COUNT / 3
    assert {name.split(" between")[0] for each in calls for name, _ in each.steps} >= CALLS.keys() - {
        "einsum"
    }


def has_ties(x: np.ndarray[Any, Any]) -> bool:
    return x.size > len(np.unique(x.astype(np.float32) if x.dtype.kind == "V" else x))


def test_points_are_of_every_row_and_right() -> None:
    """Special values, ties, kinks and bools; the other numbers of a line are not hidden by its NaN."""
    drawn = [points.Points(seed, on("cpu")).array(wg.float32, (3, 40)) for seed in range(COUNT)]
    for is_so in (np.isnan, np.isinf, lambda x: (x == 0) & np.signbit(x), lambda x: np.abs(x) == 0.5):
        assert COUNT / 10 <= sum(bool(np.any(is_so(x))) for x in drawn) <= COUNT * 9 / 10
    for name in points.ROWS:
        assert points.wrong(name, 3, on("cpu")) == ""


def test_what_is_wrong_at_a_point_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gradient at a kink, a NaN that is passed over, a bool that became a number, and what raises."""
    maximum, kinks = KINKS["maximum"], dict.fromkeys(KINKS, replace(KINKS["maximum"], slopes=([1] * 4,) * 2))
    assert maximum.slopes != kinks["maximum"].slopes
    monkeypatch.setattr("tests.properties.points.slopes.KINKS", kinks)
    monkeypatch.setattr("webgrad.argmax", lambda x, axis: wg.nan_to_num(x).min(axis).astype(wg.int32))
    monkeypatch.setattr(
        "webgrad.masked_fill", lambda x, mask, number: wg.where(mask, number, x.astype(wg.int32))
    )
    monkeypatch.setattr("webgrad.max_pool1d", lambda *_: 1 // 0)
    for name, words in (
        ("kinks", "at a kink"),
        ("folds", "argmax of"),
        ("bools", "masked_fill of bools: the dtype is int32, not bool"),
        ("pool", "ZeroDivisionError"),
    ):
        assert any(words in points.wrong(name, seed, on("cpu")) for seed in range(20)), name


def test_a_wrong_result_of_a_call_is_found() -> None:
    """Whatever is wrong with values, shape or gradient; and what raises."""
    calls = next(each for seed in range(COUNT) if (each := write_calls(seed)).dtype is wg.float32)
    name, (webgrad, numpy) = calls.steps[-1]
    assert difference(calls, on("cpu"), 1) == ""
    for wrong, words in (
        (lambda x: webgrad(x) + 0.01, "of the result wrong"),
        (lambda x: webgrad(x)[None], "the shape is"),
        (lambda x: 1 // 0, "ZeroDivisionError"),
    ):
        changed = replace(calls, steps=[*calls.steps[:-1], (name, (wrong, numpy))])
        assert words in difference(changed, on("cpu"), 1)
    square = np.arange(9, dtype=np.float32).reshape(3, 3)
    flat = ("flat", (lambda x: x if x.dtype is wg.float64 else x.detach() + x * 0, lambda x: x))
    found = [difference(Calls(wg.float32, square, [flat], square, square), on("cpu"), at) for at in range(9)]
    assert any("of the gradient wrong" in each for each in found)  # which is looked at in some cases
    flat = ("flat", (lambda x: x.detach() + x * 0, lambda x: x))  # in float64 too: the rule itself is wrong
    found = [difference(Calls(wg.float32, square, [flat], square, square), on("cpu"), at) for at in range(9)]
    assert any("the slope of the gradient is 0.0" in each for each in found)


def test_zeros_of_both_signs_keep_their_order_in_sorts() -> None:
    """What comes after a sort may ask for their signs."""
    zeros = np.array([0, -0.0, 1, -0.0, 0, -1, -0.0], np.float32)
    for seed in range(8):
        drawer = Drawer(np.random.default_rng(seed), wg.float32)
        drawer.shape = zeros.shape
        webgrad, numpy = CALLS["sort"][2](drawer)
        np.testing.assert_array_equal(
            np.signbit(webgrad(wg.asarray(zeros)).numpy()), np.signbit(numpy(zeros))
        )


@pytest.mark.parametrize(
    "function",
    [
        lambda x: wg.sort(x)[3],
        lambda x: wg.minimum(wg.max(x), 0.5),
        wg.sign,
        lambda x: wg.clip(x, 0.5, 2.0),
    ],
    ids=["the middle of equal ones", "a maximum at a bound", "a jump to both sides", "a bound"],
)
def test_a_kink_is_no_wrong_gradient(function: Callable[[Any], Any]) -> None:
    """Though along some lines the slope is the same to both sides."""
    ties = np.full(7, 0.5 if function is not wg.sign else 0.0, np.float32)
    wanted = function(wg.asarray(ties)).numpy()
    kink = Calls(wg.float32, ties, [("kink", (function, lambda x: x))], wanted, wanted)
    assert [difference(kink, on("cpu"), seed) for seed in range(60)] == [""] * 60


def test_a_kink_that_hides_another_is_no_wrong_gradient() -> None:
    start, wanted = np.array([-2, -1, 0.25], np.float32), np.array(-0.75, np.float32)

    def found(second: Callable[[Any], Any]) -> list[str]:
        steps: list[Any] = [("clip", (at_least, lambda x: x)), ("extreme", (second, lambda x: x))]
        return [
            difference(Calls(wg.float32, start, steps, wanted, wanted), on("cpu"), at) for at in range(30)
        ]

    assert found(lambda x: wg.min(x) + x[2]) == [""] * 30
    assert any("the slope" in each for each in found(lambda x: wg.min(x) + x[2].detach()))


def at_least(x: wg.Tensor) -> wg.Tensor:
    return wg.clip(x, -1, 2)


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
