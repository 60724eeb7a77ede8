"""Orders that can be had again: a permutation that depends on nothing but its length and a few numbers.

NumPy promises that raw words of a bit generator stay the same from version to version, and promises it of
nothing that is made of them; so the order is that of raw words, sorted here.
"""

from __future__ import annotations

from typing import Any

import webgrad as wg

from ..arrays import Array, np

__all__ = ["generator_of", "permutation", "seed_or_drawn"]

_MOST = 2**64


def permutation(length: int, *numbers: int) -> Array:
    """The numbers below `length` in the order that these integers stand for."""
    words = np.random.Philox(np.random.SeedSequence(numbers)).random_raw(length)
    return np.argsort(words, kind="stable")


def generator_of(*numbers: int) -> np.random.Generator:
    """NumPy's generator of these integers."""
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(numbers)))


def seed_or_drawn(what: str, seed: Any) -> int:
    """A seed that was given; without one, the next that follows from that of `webgrad.random.seed`."""
    if seed is None:
        first, draws = wg.random.get_state()
        wg.random.set_state((first, (draws + 1) % _MOST))  # two loaders must not have the same order
        return int(np.random.SeedSequence((first, draws)).generate_state(1, np.uint64)[0])
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < _MOST:
        raise wg.ArgumentError(f"{what}: seed must be an integer from 0 to 2**64 - 1, not {seed!r}")
    return int(seed)
