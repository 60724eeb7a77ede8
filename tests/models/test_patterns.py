"""Regular expressions of tokenizers: those in use are accepted, those that search for long are refused."""

from __future__ import annotations

import pytest

from webgrad.errors import ModelFileError
from webgrad.models.patterns import check_pattern
from webgrad.models.pretokenizers import PRETOKENIZERS

IN_USE = {cut for rules in PRETOKENIZERS.values() for cut in rules.cuts} | {
    *(r"\s+", " {2,}", r"\s{2,}|[\n\r\t]", "``", ".", r"(.|\n)", r"(?<! ) +\z|\A +", "[0-9][0-9][0-9]"),
    r"(?=(\d{3})+(?!\d))",
    r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+",
}


@pytest.mark.parametrize("pattern", sorted(IN_USE))
def test_expressions_in_use(pattern: str) -> None:
    check_pattern(pattern, "it")


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(a|aa|a+)+$", "a repeat in one of several alternatives"),
        ("((a*)*)*b", "it repeats what can be matched in several ways"),
        ("(a|a)+b", "it repeats what can be matched in several ways"),
        ("(a?){30}a{30}", "it repeats what can be matched in several ways"),
        ("a*a*a*b", "two repeats before something that may fail"),
        ("[^x]*[yz]", "a repeat before something that may fail"),
        (r"\s+$", "a repeat before something that may fail"),
        ("(?=.*x)a", "it looks more than 16 letters ahead or back"),
        ("a{0,60}a{0,60}b", "too many ways to match"),
        (r"(a)\1", "it refers to what it matched"),
        ("a" * 20_000, "it has 20,000 letters"),
        ("(" * 2_000 + "a" + ")" * 2_000, ""),
    ],
)
def test_expressions_that_search_for_long(pattern: str, reason: str) -> None:
    with pytest.raises(
        ModelFileError, match=r"it is refused: its regular expression .* may search"
    ) as caught:
        check_pattern(pattern, "it")
    assert reason in str(caught.value)


def test_the_fewest_letters_of_a_match() -> None:
    assert [check_pattern(each, "it") for each in ("(?=.)", "x*", "a|bc", "a{3,}")] == [0, 0, 1, 3]
