"""SentencePiece's BPE by scores: from the letters of a text to its tokens.

In: ids of letters, and which of them are one stretch of text. Out: ids of tokens. Any two neighbours whose
texts make a token become that token, the one with the best score first, of equal pairs the leftmost. The
invariant: ids are those of an engine that has all such pairs as its merges (`token_pairs.py`), a table that
takes a second to make of a large vocabulary; here a pair is looked for when a text has it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from operator import itemgetter

__all__ = ["Merger"]

MOST_KNOWN = 1 << 17  # pairs that are remembered
Pair = tuple[int, int, int, int]  # the rank of what two ids make, the ids, what they make
GONE = -1


class Merger:
    """Merges ids of a vocabulary. `ranks` are those of what may be merged, -1 for what may not."""

    def __init__(self, tokens: Sequence[str], places: Mapping[str, int], ranks: Sequence[int]) -> None:
        self._tokens, self._places, self._ranks = tokens, places, ranks
        self._known: dict[tuple[int, int], Pair | None] = {}

    def merged(self, ids: Sequence[int], stretches: Sequence[int | None]) -> list[int]:
        """Tokens of letters; `stretches` has a number for each, None where nothing is to be merged."""
        found: list[int] = []
        for stretch, part in itertools.groupby(zip(stretches, ids, strict=True), key=itemgetter(0)):
            letters = [each for _, each in part]
            found += letters if stretch is None or len(letters) == 1 else self._merged(letters)
        return found

    def _merged(self, ids: list[int]) -> list[int]:
        count = len(ids)
        before, after = [*range(-1, count - 1)], [*range(1, count + 1)]
        waiting = list(self._pairs(ids, zip(range(count), range(1, count), strict=False)))
        heapify(waiting)
        while waiting:
            (_, first, second, whole), at = heappop(waiting)
            right = after[at]
            if ids[at] != first or right == count or ids[right] != second:  # one of them was merged meanwhile
                continue
            ids[at], ids[right] = whole, GONE
            after[at] = beyond = after[right]
            left, places = before[at], []
            if left >= 0:
                places.append((left, at))
            if beyond < count:
                before[beyond] = at
                places.append((at, beyond))
            for each in self._pairs(ids, places):
                heappush(waiting, each)
        return [each for each in ids if each != GONE]

    def _pairs(self, ids: Sequence[int], places: Iterable[tuple[int, int]]) -> Iterable[tuple[Pair, int]]:
        """What neighbours may become, each with the place of the first."""
        known = self._known
        for at, right in places:
            both = ids[at], ids[right]
            pair = known.get(both, ())
            if pair == ():
                pair = self._learnt(*both)
            if pair:
                yield pair, at

    def _learnt(self, first: int, second: int) -> Pair | None:
        """What two ids make, None where that is no token."""
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
        ranks, pair = self._ranks, None
        if ranks[first] >= 0 and ranks[second] >= 0:
            whole = self._places.get(self._tokens[first] + self._tokens[second], GONE)
            if whole >= 0 and ranks[whole] >= 0:
                pair = ranks[whole], first, second, whole
        self._known[first, second] = pair
        return pair
