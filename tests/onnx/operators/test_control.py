"""Branches, loops and scans: what they give, and when the host waits for a condition."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.onnx.models import floats, graph, loaded, model, node

FLAG: Any = ("bool", [])
COUNT: Any = ("int64", [])


def branches() -> dict[str, Any]:
    """A branch that adds an outer weight, and one that multiplies by it."""
    return {
        "then_branch": graph([node("Add", "x w", "a")], {}, {"a": None}),
        "else_branch": graph([node("Mul", "x w", "b")], {}, {"b": None}),
    }


def test_a_condition_that_is_given_decides_at_each_call(tmp_path: Path) -> None:
    m = loaded(
        tmp_path,
        model(
            [node("If", "c", "y", **branches())],
            {"x": [2], "c": FLAG},
            {"y": [2]},
            {"w": floats(3, 4)},
        ),
    )
    x = floats(1, 2)
    for flag, expected in ((True, [4, 6]), (False, [3, 8]), (True, [4, 6])):
        assert m(x, np.asarray(flag))["y"].tolist() == expected
    assert m.waits == ()


def test_a_condition_that_is_computed_is_waited_for(tmp_path: Path) -> None:
    m = loaded(
        tmp_path,
        model(
            [
                node("Equal", "x w", "c"),
                node("If", "c", "y", called="choice", **branches()),
            ],
            {"x": [1, 1]},
            {"y": [1, 1]},
            {"w": floats([3])},
        ),
    )
    assert m(floats([3]))["y"].tolist() == [[6]]
    assert m(floats([5]))["y"].tolist() == [[15]]
    assert m.waits == ("choice",)


def doubling(condition: bytes, types: dict[str, Any]) -> Any:
    """A body: the carried value twice as large, and what it was as a scan output."""
    body = [condition, node("Add", "v v", "next"), node("Identity", "v", "was")]
    return graph(body, {"i": COUNT, "go": FLAG, "v": None}, types)


@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_a_loop_of_a_known_number_of_rounds(tmp_path: Path, rounds: int) -> None:
    body = doubling(node("Identity", "go", "goes"), {"goes": FLAG, "next": [2], "was": [2]})
    m = loaded(
        tmp_path,
        model(
            [node("Loop", "n - x", "last all", body=body)],
            {"n": COUNT, "x": [2]},
            {"last": [2], "all": [None, 2]},
        ),
    )
    out = m(np.asarray(rounds), floats(1, 3))
    assert out["last"].tolist() == [2.0**rounds, 3 * 2.0**rounds]
    assert out["all"].shape == (rounds, 2)
    assert out["all"].tolist() == [[2.0**at, 3 * 2.0**at] for at in range(rounds)]
    assert m.waits == ()


def test_a_loop_ends_when_its_body_says_so(tmp_path: Path) -> None:
    """The rounds go on while i = j, and j is 0 and then again 1: known on the host, though x is not."""
    body = graph(
        [
            node("Equal", "i j", "goes"),
            node("Add", "v v", "next"),
            node("Add", "j one", "k"),
            node("Mul", "k k", "squared"),
        ],
        {"i": COUNT, "go": FLAG, "v": None, "j": COUNT},
        {"goes": FLAG, "next": [1], "squared": COUNT},
    )
    weights = {"yes": np.asarray(True), "zero": np.asarray(0), "one": np.asarray(1)}
    loop = node("Loop", "- yes x zero", "y j_last", body=body)
    m = loaded(tmp_path, model([loop], {"x": [1]}, {"y": [1], "j_last": COUNT}, weights))
    out = m(floats(1))  # i = 0, j = 0; i = 1, j = 1; i = 2, j = 4: the last round
    assert out["y"].tolist() == [8]
    assert out["j_last"].item() == 25
    assert m.waits == ()


def test_a_loop_of_lists(tmp_path: Path) -> None:
    body = graph(
        [node("Identity", "go", "goes"), node("SequenceInsert", "s x", "longer")],
        {"i": COUNT, "go": FLAG, "s": None},
        {"goes": FLAG, "longer": None},
    )
    nodes = [
        node("SequenceEmpty", "", "none"),
        node("Loop", "n - none", "s_last", body=body),
        node("ConcatFromSequence", "s_last", "y", axis=0, new_axis=1),
    ]
    m = loaded(tmp_path, model(nodes, {"n": COUNT, "x": [2]}, {"y": [None, 2]}))
    assert m(np.asarray(3), floats(1, 2))["y"].tolist() == [[1, 2]] * 3


def running_sum() -> Any:
    nodes = [node("Add", "s e", "t"), node("Identity", "t", "u")]
    return graph(nodes, {"s": None, "e": None}, {"t": [2], "u": [2]})


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("backward", [0, 1])
def test_scan_along_axes_and_directions(tmp_path: Path, axis: int, backward: int) -> None:
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    given = x if axis == 0 else x.T.copy()
    attributes = {
        "num_scan_inputs": 1,
        "scan_input_axes": [axis],
        "scan_input_directions": [backward],
        "scan_output_axes": [-axis if axis else 1],
        "scan_output_directions": [backward],
        "body": running_sum(),
    }
    scan = node("Scan", "s x", "y ys", **attributes)
    m = loaded(tmp_path, model([scan], {"s": [2], "x": list(given.shape)}, {"y": [2], "ys": None}))
    out = m(floats(1, 1), given)
    rows = x[::-1] if backward else x
    sums = 1 + np.cumsum(rows, 0)
    sums = sums[::-1] if backward else sums
    assert out["y"].tolist() == (1 + x.sum(0)).tolist()
    assert out["ys"].tolist() == np.moveaxis(sums, 0, -axis if axis else 1).tolist()


def test_scan_of_batches_of_several_lengths(tmp_path: Path) -> None:
    scan = node("Scan", "n s x", "y ys", num_scan_inputs=1, body=running_sum())
    inputs = {"n": ("int64", [2]), "s": [2, 2], "x": [2, 3, 2]}
    m = loaded(tmp_path, model([scan], inputs, {"y": [2, 2], "ys": [2, 3, 2]}, opset=8))
    x = np.arange(12, dtype=np.float32).reshape(2, 3, 2)
    out = m(np.asarray([3, 2]), np.zeros((2, 2), np.float32), x)
    sums = np.cumsum(x, 1)
    assert out["y"].tolist() == [sums[0, 2].tolist(), sums[1, 1].tolist()]
    sums[1, 2] = 0
    assert out["ys"].tolist() == sums.tolist()
