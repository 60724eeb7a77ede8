"""Rotary positions of published models: how quickly each pair of features turns.

In: a base, a number of features, and a scaling that stretches a model over more positions. Out: tables of
cosines and sines for every position, computed once on the host. Scalings are a table; unknown ones are
refused by their names.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import webgrad as wg

from ..arrays import Array, np
from .reader import Reader

__all__ = ["Rotary", "frequencies", "rotary_of_config", "rotary_of_gguf", "tables"]


@dataclass(frozen=True, slots=True)
class Rotary:
    """base^(-2i/dims), and how that is scaled."""

    base: float
    dims: int
    kind: str = "default"
    factor: float = 1.0
    low: float = 1.0  # llama3: turns over the old context below which a pair is slowed by the whole factor
    high: float = 4.0  # and above which it is left alone
    old_context: int = 8192


def frequencies(rotary: Rotary, factors: Array | None = None) -> Array:
    """Radians that each pair turns by for a position, as float32; GGUF's table of `factors` divides them."""
    powers = np.arange(0, rotary.dims, 2, dtype=np.float32) / np.float32(rotary.dims)
    plain = (1.0 / np.float32(rotary.base) ** powers).astype(np.float32)
    if factors is not None:
        if factors.shape != plain.shape:
            raise wg.ModelFileError(
                f"rope_freqs has {factors.size} factors for {plain.size} pairs of features"
            )
        if not (np.isfinite(factors) & (factors > 0)).all():
            raise wg.ModelFileError("rope_freqs has factors that are not positive numbers")
        return (plain / factors).astype(np.float32)
    return _SCALINGS[rotary.kind](rotary, plain)


def tables(rotary: Rotary, positions: int, factors: Array | None = None) -> tuple[Array, Array]:
    """Cosines and sines, (positions, dims / 2) of float32."""
    places = np.arange(positions, dtype=np.float32)
    angles = np.multiply.outer(places, frequencies(rotary, factors)).astype(np.float64)
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


def _unscaled(rotary: Rotary, plain: Array) -> Array:
    return plain


def _linear(rotary: Rotary, plain: Array) -> Array:
    return (plain / np.float32(rotary.factor)).astype(np.float32)


def _llama3(rotary: Rotary, plain: Array) -> Array:
    """Slow pairs are slowed down, quick ones are not, and those between partly."""
    turns = rotary.old_context * plain.astype(np.float64) / (2 * math.pi)
    share = np.clip((turns - rotary.low) / (rotary.high - rotary.low), 0.0, 1.0)
    return ((1 - share) * plain / rotary.factor + share * plain).astype(np.float32)


_SCALINGS: Mapping[str, Callable[[Rotary, Array], Array]] = {
    "default": _unscaled,
    "linear": _linear,
    "llama3": _llama3,
}


def rotary_of_config(told: Reader, dims: int, layers: str = "", base: float = 10000.0) -> Rotary:
    """From config.json: `rope_theta` and `rope_scaling`, or `rope_parameters`, maybe by kinds of layers."""
    own = told.get("rope_parameters")
    if isinstance(own, Mapping) and isinstance(own.get(layers), Mapping):
        own = own[layers]
    local = layers == "sliding_attention"
    scaling = own if isinstance(own, Mapping) else (None if local else told.get("rope_scaling"))
    inner = Reader(scaling if isinstance(scaling, Mapping) else {}, f"{told.source}: rope scaling")
    key = "rope_local_base_freq" if local else "rope_theta"
    kind = inner.text("rope_type", inner.text("type", "default"))
    if kind not in _SCALINGS:
        raise wg.ModelFileError(
            f"{told.source}: rotary positions scaled by {kind!r} are not offered; webgrad has "
            f"{', '.join(_SCALINGS)}"
        )
    share = inner.number("partial_rotary_factor", default=told.number("partial_rotary_factor", default=1.0))
    rotary = Rotary(
        base=inner.number("rope_theta", default=told.number(key, default=base)),
        dims=_checked_dims(told, int(dims * min(share, 2.0)), dims),
        kind=kind,
        factor=inner.number("factor", default=1.0),
        low=inner.number("low_freq_factor", default=1.0),
        high=inner.number("high_freq_factor", default=4.0),
        old_context=inner.whole("original_max_position_embeddings", default=8192),
    )
    if rotary.low >= rotary.high:
        raise wg.ModelFileError(
            f"{inner.source}: low_freq_factor={rotary.low} is not below high_freq_factor={rotary.high}"
        )
    return rotary


def rotary_of_gguf(told: Reader, dims: int, *, local: bool = False, base: float | None = 10000.0) -> Rotary:
    """From a GGUF file's metadata; a factor that is given without a kind is linear, as llama.cpp has it."""
    factor = told.cap("rope.scaling.factor") or told.cap("rope.scale_linear") or 1.0
    known = {"none": "default", "linear": "linear"}
    kind = "default" if local else told.one_of("rope.scaling.type", "linear", known)
    keys = ("rope.freq_base_swa", "rope.local.freq_base") if local else ("rope.freq_base",)
    return Rotary(
        base=told.number(*keys, default=base),
        dims=_checked_dims(told, told.whole("rope.dimension_count", default=dims), dims),
        kind="default" if factor == 1.0 else kind,
        factor=1.0 if kind == "default" else factor,
    )


def _checked_dims(told: Reader, dims: int, columns: int) -> int:
    """How many features of a head turn: pairs of them."""
    if dims % 2 or not 0 < dims <= columns:
        raise wg.ModelFileError(
            f"{told.source}: {dims} of a head's {columns} features cannot turn: pairs of them do"
        )
    return dims
