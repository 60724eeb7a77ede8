"""Sequences and optionals, as inputs and outputs of models too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.onnx.models import floats, graph, loaded, model, node

PLACE: Any = ("int64", [])


def lists(values: Any) -> list[Any]:
    return [each.tolist() for each in values]


ELEMENTS = [floats(1), floats(2, 3), floats(4, 5, 6)]


@pytest.mark.parametrize(("place", "expected"), [(0, 0), (2, 2), (3, 3), (-1, 2), (-3, 0)])
def test_insert_at_each_end_and_between(tmp_path: Path, place: int, expected: int) -> None:
    m = loaded(
        tmp_path,
        model([node("SequenceInsert", "s x p", "y")], {"s": None, "x": [1], "p": PLACE}, {"y": None}),
    )
    found = m(ELEMENTS, floats(9), np.asarray(place))["y"]
    wanted = [each.tolist() for each in ELEMENTS]
    wanted.insert(expected, [9])
    assert lists(found) == wanted


@pytest.mark.parametrize("place", [0, 2, -1, -3])
def test_at_and_erase(tmp_path: Path, place: int) -> None:
    nodes = [node("SequenceAt", "s p", "one"), node("SequenceErase", "s p", "rest")]
    m = loaded(tmp_path, model(nodes, {"s": None, "p": PLACE}, {"one": None, "rest": None}))
    out = m(ELEMENTS, np.asarray(place))
    wanted = [each.tolist() for each in ELEMENTS]
    assert out["one"].tolist() == wanted.pop(place)
    assert lists(out["rest"]) == wanted


def test_a_place_outside_is_refused(tmp_path: Path) -> None:
    m = loaded(tmp_path, model([node("SequenceAt", "s p", "one")], {"s": None, "p": PLACE}, {"one": None}))
    with pytest.raises(wg.IndexingError, match="the position 3 is outside of a sequence of 3"):
        m(ELEMENTS, np.asarray(3))


@pytest.mark.parametrize(
    ("split", "sizes"), [(None, [1] * 5), (np.asarray(2), [2, 2, 1]), (np.asarray([1, 4]), [1, 4])]
)
def test_split_to_a_sequence(tmp_path: Path, split: Any, sizes: list[int]) -> None:
    weights = {} if split is None else {"n": split}
    names = "x" if split is None else "x n"
    m = loaded(
        tmp_path, model([node("SplitToSequence", names, "y", axis=1)], {"x": [2, 5]}, {"y": None}, weights)
    )
    x = np.arange(10, dtype=np.float32).reshape(2, 5)
    expected = np.split(x, np.cumsum(sizes)[:-1], axis=1)
    assert lists(m(x)["y"]) == lists(expected)


def test_a_split_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    weights = {"n": np.asarray([1, 3])}
    m = loaded(
        tmp_path, model([node("SplitToSequence", "x n", "y", axis=1)], {"x": [2, 5]}, {"y": None}, weights)
    )
    with pytest.raises(wg.ShapeError, match="an axis of 5 cannot be split"):
        m(np.zeros((2, 5), np.float32))


def test_a_map_over_two_sequences_and_a_tensor(tmp_path: Path) -> None:
    body = graph(
        [node("Add", "a b", "sum"), node("Mul", "sum c", "product")],
        {"a": None, "b": None, "c": None},
        {"sum": None, "product": None},
    )
    m = loaded(
        tmp_path,
        model(
            [node("SequenceMap", "s t c", "y z", body=body)],
            {"s": None, "t": None, "c": [1]},
            {"y": None, "z": None},
        ),
    )
    for _ in range(2):
        out = m(ELEMENTS, ELEMENTS, floats(3))
        assert lists(out["y"]) == [(2 * each).tolist() for each in ELEMENTS]
        assert lists(out["z"]) == [(6 * each).tolist() for each in ELEMENTS]


@pytest.mark.parametrize("value", [None, floats(7)])
def test_optionals_as_inputs(tmp_path: Path, value: Any) -> None:
    nodes = [node("OptionalHasElement", "x", "has"), node("Optional", "x", "y")]
    m = loaded(tmp_path, model(nodes, {"x": None}, {"has": ("bool", []), "y": None}))
    out = m(value)
    assert out["has"].item() is (value is not None)
    assert (out["y"] is None) if value is None else (out["y"].tolist() == [7])


def test_an_empty_optional_has_nothing_to_get(tmp_path: Path) -> None:
    m = loaded(tmp_path, model([node("OptionalGetElement", "x", "y")], {"x": None}, {"y": None}))
    assert m(floats(7))["y"].tolist() == [7]
    with pytest.raises(wg.ArgumentError, match="the optional is empty"):
        m(None)
