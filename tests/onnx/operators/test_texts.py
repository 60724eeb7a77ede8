"""Operators of texts, and counts of grams."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.onnx.operators.single import run, run_one


def texts(*values: Any) -> Any:
    return np.array(values, object)


def test_joined_with_broadcasting() -> None:
    assert run_one("StringConcat", texts(["a"], ["b"]), texts("x", "y")).tolist() == [
        ["ax", "ay"],
        ["bx", "by"],
    ]


@pytest.mark.parametrize(
    ("settings", "parts", "counts"),
    [
        ({}, [["a", "b"], ["c,,d", ""]], [2, 1]),
        ({"delimiter": ","}, [[" a  b", "", ""], ["c", "", "d"]], [1, 3]),
        ({"delimiter": ",", "maxsplit": 1}, [[" a  b", ""], ["c", ",d"]], [1, 2]),
    ],
)
def test_split(settings: dict[str, Any], parts: Any, counts: Any) -> None:
    found, lengths = run("StringSplit", texts(" a  b", "c,,d"), outputs=2, **settings)
    assert found.tolist() == parts
    assert lengths.tolist() == counts
    assert lengths.dtype == np.int64


def test_split_of_nothing() -> None:
    found, lengths = run("StringSplit", np.zeros((0, 2), object), outputs=2)
    assert found.shape == (0, 2, 0)
    assert lengths.shape == (0, 2)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"stopwords": ["monday"]}, ["Friday"]),
        ({"stopwords": ["monday"], "is_case_sensitive": 1}, ["Monday", "Friday"]),
        ({"case_change_action": "UPPER"}, ["MONDAY", "FRIDAY"]),
        ({"case_change_action": "LOWER", "stopwords": ["Friday"], "is_case_sensitive": 1}, ["monday"]),
        ({"stopwords": ["monday", "friday"]}, [""]),
    ],
)
def test_normalised(settings: dict[str, Any], expected: list[str]) -> None:
    x = texts("Monday", "Friday")
    assert run_one("StringNormalizer", x, **settings).tolist() == expected
    assert run_one("StringNormalizer", x.reshape(1, 2), **settings).tolist() == [expected]


def test_whole_matches() -> None:
    x = texts(["www.a.com", "a.com"], ["www.", "xwww.a.com"])
    found = run_one("RegexFullMatch", x, pattern=r"www\.[a-z.]+")
    assert found.tolist() == [[True, False], [False, False]]
    with pytest.raises(wg.ArgumentError, match="is none that is known"):
        run_one("RegexFullMatch", x, pattern="(")


GRAMS = {
    "ngram_counts": [0, 2],
    "ngram_indexes": [0, 2, 1],
    "pool_int64s": [5, 7, 5, 7],
    "min_gram_length": 1,
    "max_gram_length": 2,
    "max_skip_count": 0,
}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"mode": "TF"}, [2, 1, 2]),
        ({"mode": "IDF", "weights": [10.0, 3.0, 2.0]}, [10, 2, 3]),
        ({"mode": "TFIDF", "weights": [10.0, 3.0, 2.0]}, [20, 2, 6]),
        ({"mode": "TF", "max_skip_count": 1}, [2, 3, 2]),
        ({"mode": "TF", "min_gram_length": 2}, [0, 1, 0]),
    ],
)
def test_counts_of_grams(settings: dict[str, Any], expected: list[float]) -> None:
    x = np.array([5, 5, 7, 7])
    for each, result in ((x, expected), (np.stack([x, x * 0]), [expected, [0, 0, 0]])):
        found = run_one("TfIdfVectorizer", each, **(GRAMS | settings))
        assert found.dtype == np.float32
        assert found.tolist() == result
