"""Operators of texts, which are arrays of the host; counts of what is in sequences of words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from ...arrays import Array, np
from .patterns import matches_whole
from .table import Call, operator
from .values import bounded

__all__: list[str] = []


@operator("StringConcat", 20)
def joined(a: Array, b: Array) -> Array:
    return np.asarray(a + b, object)


@operator("StringSplit", 20)
def split_texts(x: Array, *, delimiter: str = "", maxsplit: int = -1) -> tuple[Array, Array]:
    """Parts along a new last axis, filled up with empty texts, and how many each text has."""
    parts = [each.split(delimiter or None, maxsplit) for each in x.reshape(-1)]
    counts = np.array([len(each) for each in parts], np.int64)
    widest = counts.max(initial=0)
    found = np.full(bounded(len(parts), widest), "", object)
    for row, each in zip(found, parts, strict=True):
        row[: len(each)] = each
    return found.reshape(*x.shape, widest), counts.reshape(x.shape)


_CASES: dict[str, Callable[[str], str]] = {"NONE": str, "LOWER": str.lower, "UPPER": str.upper}


@operator("StringNormalizer", 10)
def normalised(
    x: Array,
    *,
    case_change_action: str = "NONE",
    is_case_sensitive: int = 0,
    locale: str = "",
    stopwords: Sequence[str] = (),
) -> Array:
    """Texts without stop words, in another case; cases are those of Unicode, whatever the locale."""
    compared = _CASES["NONE" if is_case_sensitive else "LOWER"]
    stops = set(map(compared, stopwords))
    change = _CASES[case_change_action]
    kept = [change(each) for each in x.reshape(-1) if compared(each) not in stops] or [""]
    return np.array(kept, object).reshape(*x.shape[:-1], len(kept))


@operator("RegexFullMatch", 20)
def matches(x: Array, *, pattern: str = "") -> Array:
    found = [matches_whole(pattern, each) for each in x.reshape(-1)]
    return np.array(found, bool).reshape(x.shape)


# Sequences of words or numbers, as counts of those that a pool has

Gram = tuple[Any, ...]


@operator("TfIdfVectorizer", 9, known="x")
def gram_counts(
    x: Any,
    *,
    max_gram_length: int,
    max_skip_count: int,
    min_gram_length: int,
    mode: str,
    ngram_counts: tuple[int, ...],
    ngram_indexes: tuple[int, ...],
    pool_int64s: tuple[int, ...] = (),
    pool_strings: tuple[str, ...] = (),
    weights: tuple[float, ...] = (),
    call: Call,
) -> Array:
    """For each row how often the grams of the pool occur in it, those with gaps between items included."""
    array = call.host(x)
    places = _pool(pool_strings or pool_int64s, ngram_counts)
    counts = np.zeros(bounded(*array.shape[:-1], max(ngram_indexes) + 1, 1)[:-1], np.float32)
    factors = np.ones(len(ngram_indexes)) if not weights or mode == "TF" else np.asarray(weights)
    for row, found in zip(
        array.reshape(-1, array.shape[-1]), counts.reshape(-1, counts.shape[-1]), strict=True
    ):
        for gram in _grams(row.tolist(), min_gram_length, max_gram_length, max_skip_count):
            if gram in places:
                found[ngram_indexes[places[gram]]] += 1
        if mode == "IDF":
            np.minimum(found, 1, out=found)
        found[list(ngram_indexes)] *= factors
    return counts


@lru_cache(maxsize=16)
def _pool(items: tuple[Any, ...], starts: tuple[int, ...]) -> dict[Gram, int]:
    """Each gram of the pool with its number; those of one length follow each other from a start on."""
    found: dict[Gram, int] = {}
    ends = (*starts[1:], len(items))
    for length, (start, end) in enumerate(zip(starts, ends, strict=True), 1):
        for at in range(start, end - length + 1, length):
            found[tuple(items[at : at + length])] = len(found)
    return found


def _grams(items: list[Any], shortest: int, longest: int, most_skipped: int) -> Any:
    for length in range(shortest, longest + 1):
        for step in range(1, most_skipped + 2 if length > 1 else 2):
            reach = (length - 1) * step
            for start in range(len(items) - reach):
                yield tuple(items[start : start + reach + 1 : step])
