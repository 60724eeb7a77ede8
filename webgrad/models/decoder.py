"""A decoder with its caches: ids in, the next id out, one captured step at a time.

In: the ids of a text. Out: the next one, chosen on the device. The invariant: `held` are the ids whose keys
and values the caches have; a text that begins with them is not computed again, and whoever comes with another
text gets its own, so that several texts may take turns.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, Protocol

import webgrad as wg

from ..arrays import np
from .caches import Cache, Places
from .sampling import Kind, Sampling, choose
from .settings import Settings

__all__ = ["CHUNKS", "Decoder", "Decoding", "chunk_sizes"]

CHUNKS = (512, 256, 128, 64, 32, 16, 8)  # how many tokens are read at once; each size is captured once
CHUNK_COST = 16  # tokens that could be read in the time that one more chunk takes
_LEAST_ROOM = 512


class Decoder(Protocol):
    """What a family's module does."""

    settings: Settings

    def prepare(self, room: int) -> None:
        """Make what depends on how many positions there is room for, unless it is there for more."""

    def __call__(self, ids: wg.Tensor, places: Places, caches: Sequence[Cache]) -> wg.Tensor:
        """Hidden states (n, width) of new tokens."""

    def logits(self, x: wg.Tensor) -> wg.Tensor:
        """Their logits (n, vocabulary)."""


class Decoding:
    """The steps of one model on one device; threads may share it."""

    def __init__(
        self,
        decoder: Decoder,
        context: int,
        device: Any,
        chunks: Sequence[int] = CHUNKS,
        cache_dtype: wg.DType = wg.float32,
    ) -> None:
        self.decoder = decoder
        self.context = context
        self.device = device
        self.chunks = tuple(chunks)
        self.cache_dtype = cache_dtype
        self.held: list[int] = []
        self.lock = threading.RLock()
        self.room = 0
        self.caches: list[Cache] = []
        self._seen = wg.zeros(decoder.settings.vocabulary, device=device)
        self._generator = wg.random.Generator()
        self._step = wg.jit(self.step, static="kind")
        self._chunk = wg.jit(self.read_chunk)
        self._told = wg.jit(self.step_logits)

    # The captured functions, which exports trace as well

    def read_chunk(self, ids: wg.Tensor, position: Any) -> None:
        """Keys and values of tokens from a position on."""
        places = Places.after(position, ids.shape[0], self.device)
        self.decoder(ids, places, self.caches)

    def step(self, token: Any, position: Any, numbers: Any, kind: Kind) -> wg.Tensor:
        """The token after this one, 0-d."""
        if kind.penalty:
            self._seen[token] = 1.0
        states = self.decoder(token.reshape(1), Places.after(position, 1, self.device), self.caches)
        return choose(self.decoder.logits(states)[0], kind, numbers, self._seen, self._generator)

    def step_logits(self, token: Any, position: Any) -> wg.Tensor:
        """The logits after this token."""
        states = self.decoder(token.reshape(1), Places.after(position, 1, self.device), self.caches)
        return self.decoder.logits(states)[0]

    # Texts

    def make_room(self, positions: int) -> None:
        """See to it that so many positions fit."""
        wanted = positions + self.chunks[0]  # a filled-up chunk may reach beyond the last token
        if wanted <= self.room:
            return
        room = self._rounded(wanted)
        if self.caches:
            for cache in self.caches:
                cache.grow(room)
                wg.eval(cache.stored)  # one at a time, so that each old one goes before the next is made
        else:
            settings = self.decoder.settings
            self.caches = [
                Cache(settings, room, self.device, self.cache_dtype) for _ in range(settings.layers)
            ]
        self.decoder.prepare(room)
        self.room = room

    def _rounded(self, positions: int) -> int:
        """Room for these and more, so that texts of many lengths have the same: 1 or 1½ times 2ⁿ."""
        double = 1 << (positions - 1).bit_length()
        room = max(_LEAST_ROOM, double * 3 // 4 if positions <= double * 3 // 4 else double)
        return max(positions, min(room, self.context + self.chunks[0]))

    @wg.no_grad()
    def read(self, ids: Sequence[int]) -> int:
        """Compute keys and values of all these tokens; how many were there already."""
        with self.lock:
            common = _common(self.held, ids)
            position = common
            # Another list: who held the last one sees that it is no longer his.
            self.held = list(ids[:common])
            self.make_room(len(ids))
            for size in chunk_sizes(self.chunks, len(ids) - position):
                part = list(ids[position : position + size])
                filled = part + [part[-1]] * (size - len(part))
                self._chunk(wg.asarray(filled, dtype=wg.int32, device=self.device), position)
                position += len(part)
                self.held.extend(part)
            return common

    @wg.no_grad()
    def next(self, token: int, sampling: Sampling, draws: Any) -> tuple[int, Any]:
        """The token after `held` and this one, and the state of draws.

        Tokens go in as run-time numbers: a tensor would lie in another place at every second step.
        """
        with self.lock:
            self._generator.set_state(draws)
            chosen = self._step(token, len(self.held), sampling.numbers, sampling.kind)
            return int(chosen.item()), self._generator.get_state()

    def note(self, ids: Sequence[int]) -> None:
        """Say which tokens were in the text, for the repetition penalty."""
        marks = np.zeros(self.decoder.settings.vocabulary, np.float32)
        marks[list(ids)] = 1.0
        self._seen[...] = wg.asarray(marks, device=self.device)

    @wg.no_grad()
    def next_logits(self, ids: Sequence[int]) -> wg.Tensor:
        """The logits after these tokens, (vocabulary,), by a step from what the caches have of them."""
        with self.lock:
            self.read(ids[:-1])
            self.make_room(len(ids))
            result = self._told(ids[-1], len(ids) - 1)
            wg.eval(result)
            self.held.append(ids[-1])
            return result

    @wg.no_grad()
    def logits(self, ids: Sequence[int]) -> wg.Tensor:
        """The logits after every one of these tokens: (length, vocabulary).

        Keys and values are in float32, whatever caches are kept in: nothing of them stays.
        """
        with self.lock:
            settings = self.decoder.settings
            self.decoder.prepare(self._rounded(len(ids)))
            caches = [Cache(settings, len(ids), self.device) for _ in range(settings.layers)]
            parts = []
            for start in range(0, len(ids), self.chunks[0]):
                part = list(ids[start : start + self.chunks[0]])
                tokens = wg.asarray(part, dtype=wg.int32, device=self.device)
                states = self.decoder(tokens, Places.after(start, len(part), self.device), caches)
                parts.append(self.decoder.logits(states))
            result = wg.concat(parts) if len(parts) > 1 else parts[0]
            wg.eval(result)
            return result


def _common(held: Sequence[int], ids: Sequence[int]) -> int:
    """How many ids two texts begin with in common."""
    least = min(len(held), len(ids))
    if list(held[:least]) == list(ids[:least]):
        return least
    return next(at for at in range(least) if held[at] != ids[at])


def chunk_sizes(chunks: Sequence[int], count: int) -> list[int]:
    """The chunks in which so many tokens are read, the last one filled up: of all ways to go on with the
    largest that fits or to fill one up, the cheapest.
    """
    whole, rest = divmod(count, chunks[0])
    return [chunks[0]] * whole + _rest_sizes(chunks, rest)


def _rest_sizes(chunks: Sequence[int], count: int) -> list[int]:
    if not count:
        return []
    filled = [min(size for size in chunks if size >= count)]
    fitting = next((size for size in chunks if size < count), None)
    if fitting is None:
        return filled
    several = [fitting, *_rest_sizes(chunks, count - fitting)]
    return min(filled, several, key=lambda sizes: sum(sizes) + CHUNK_COST * len(sizes))
