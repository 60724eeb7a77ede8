"""All ways to write a token of a vocabulary as two others: what a file without merges leaves to be found.

In: the tokens, their lengths, and which come first. Out: pairs of tokens that make a third. Millions of
beginnings and ends are looked up by NumPy, as hashes. The invariant: what comes out does not depend on the
hashes; no two tokens have the same, and what is found by them is compared.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from ..arrays import Array, np

__all__ = ["token_pairs"]

BITS = 24  # of hashes: most of what is no token is seen by them not to be one
TOGETHER = 1 << 15  # tokens that are cut at a time


def token_pairs(tokens: Sequence[str], lengths: Array, ranks: Array) -> list[tuple[str, str]]:
    """Pairs in order of the rank of what they make, then of their own places.

    No token is empty, or there twice.
    """
    for seed in itertools.count():  # until no two tokens have the same hash: seldom more than once
        weights = np.random.default_rng(seed).integers(1 << 64, size=lengths.max(initial=1), dtype=np.uint64)
        parts = [
            _Cuts(tokens[start : start + TOGETHER], lengths[start : start + TOGETHER], weights)
            for start in range(0, len(tokens), TOGETHER)
        ]
        begins, ends = (_Table([getattr(part, name) for part in parts]) for name in ("as_begin", "as_end"))
        if begins.is_unique and ends.is_unique:
            break
    found = [part.pairs(begins, ends) for part in parts]
    for number, each in enumerate(found):
        each[0] += number * TOGETHER
    whole, first, second = np.concatenate([np.empty((3, 0), np.int64), *found], axis=1)
    order = np.lexsort((second, first, ranks[whole]))
    texts = (map(tokens.__getitem__, each[order].tolist()) for each in (whole, first, second))
    return [(a, b) for both, a, b in zip(*texts, strict=True) if a + b == both]


class _Cuts:
    """Hashes of tokens and of what they begin and end with: sums of letters, each with the weight of its
    distance from the beginning, or from the end.
    """

    def __init__(self, tokens: Sequence[str], lengths: Array, weights: Array) -> None:
        text = "".join(tokens).encode("utf-32-le", "surrogatepass")
        letters = (np.frombuffer(text, "<u4").astype(np.uint64) + np.uint64(1)) * np.uint64(
            0x9E3779B97F4A7C15
        )
        letters ^= letters >> np.uint64(32)
        lasts = np.cumsum(lengths) - 1
        starts = lasts - lengths + 1
        places = np.arange(len(letters))
        self.token = np.repeat(np.arange(len(lengths)), lengths)
        forward = np.cumsum(letters * weights[places - starts[self.token]])
        backward = np.cumsum(letters * weights[lasts[self.token] - places])
        self.begin = forward - (forward[starts] - letters[starts] * weights[0])[self.token]
        self.end = backward[lasts][self.token] - backward
        self.as_begin = self.begin[lasts]
        self.as_end = self.end[starts] + letters[starts] * weights[lengths - 1]
        self.cuts = np.flatnonzero(places != lasts[self.token])  # behind these letters

    def pairs(self, begins: _Table, ends: _Table) -> Array:
        """Places of wholes (among these tokens), of first parts and of second ones."""
        cuts = self.cuts
        for table, hashes in ((begins, self.begin), (ends, self.end)):
            cuts = cuts[table.may_have(hashes[cuts])]
        found = np.array([self.token[cuts], begins.places(self.begin[cuts]), ends.places(self.end[cuts])])
        return found[:, (found >= 0).all(axis=0)]


class _Table:
    """The places of tokens by their hashes."""

    def __init__(self, parts: Sequence[Array]) -> None:
        hashes = np.concatenate(parts) if parts else np.empty(0, np.uint64)
        self.order = np.argsort(hashes)
        self.hashes = hashes[self.order]
        self.is_unique = bool((self.hashes[1:] != self.hashes[:-1]).all())
        self.known = np.zeros(1 << BITS, np.bool_)
        self.known[hashes >> np.uint64(64 - BITS)] = True

    def may_have(self, hashes: Array) -> Array:
        """Whether there is a hash with the same upper bits."""
        found: Array = self.known[hashes >> np.uint64(64 - BITS)]
        return found

    def places(self, hashes: Array) -> Array:
        """Places of tokens, -1 where there is none."""
        at = np.minimum(np.searchsorted(self.hashes, hashes), len(self.hashes) - 1)
        return np.where(self.hashes[at] == hashes, self.order[at], -1)
