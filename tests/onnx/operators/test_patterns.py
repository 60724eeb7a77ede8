"""Regular expressions: Python's own answers, without its time."""

from __future__ import annotations

import random
import re

import pytest

import webgrad as wg
from webgrad.onnx.operators.patterns import matches_whole

PATTERNS = [
    r"www\.[\w.-]+\.\bcom\b", r"(a|b|)*c?", r"a{2,3}b{0,2}c{2,}", r"[^ab]\d\D\s\S\W", r"(?i:aB)c",
    r"(?i)[a-b]+1", r"(?s:.).", r"^a(^b|c)$", r"(?P<name>ab)+?", r"((a|bc)+|c)*", r"\Aa\B1\Z",
    r"(?m)a$\n^b", "",
]  # fmt: skip
RANDOM = random.Random(7)
TEXTS = ["", "www.a-b.com", "aabbcc", "c1a b!", "ABc", "ab1", "ab", "a\nb", "a1", "abcbca"] + [
    "".join(RANDOM.choices("abcA1. ", k=RANDOM.randint(1, 5))) for _ in range(200)
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_answers_are_pythons(pattern: str) -> None:
    expected = [text for text in TEXTS if re.fullmatch(pattern, text)]
    assert [text for text in TEXTS if matches_whole(pattern, text)] == expected
    assert expected or "\\D" in pattern


def test_the_end_is_the_end() -> None:
    assert not matches_whole("a$\n", "a\n")  # Python's own has an end before a last line's end too


@pytest.mark.parametrize("pattern", ["(a+)+b", "(a|a)*b", "(a*)*b", "((a?){9}){9}b"])
def test_what_would_be_tried_again_and_again(pattern: str) -> None:
    assert not matches_whole(pattern, "a" * 300)
    assert matches_whole(pattern, "a" * 60 + "b")


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        (r"(a)\1", "groupref needs going back"),
        ("(?=a)a", "assert needs going back"),
        ("(", "missing"),
        ("((a{99}){99}){99}", "more than 10,000 states"),
        ("a{0,99999}", "more than 10,000 states"),
        ("(" * 5000 + ")" * 5000, "is none that is known"),
    ],
)
def test_what_is_refused(pattern: str, why: str) -> None:
    with pytest.raises(wg.ArgumentError, match=why):
        matches_whole(pattern, "a")
