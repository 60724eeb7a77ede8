"""What NumPy does for nodes: quick functions for ops that have no kernel, the table's rows for all others.

In: a node's signature. Out: a `HostFunction`. float16 and bfloat16 are computed in float32 and rounded, as
kernels do. The invariant: inputs are never written to, but by `rewrite`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..arrays import Array, np
from ..graph.node import Signature
from .fourier import half_of_real, real_from_half, transformed
from .ordering import binned_places, counts_between, searched_places, sorted_places, sorted_values
from .scattering import scatter, set_turned

__all__ = ["HostFunction", "host_function", "value_of"]


@dataclass(frozen=True, slots=True)
class HostFunction:
    """`compute` gives a node's value. `rewrite` writes it over the first input, which is contiguous."""

    compute: Callable[..., Array]
    rewrite: Callable[..., Array] | None = None


def value_of(sig: Signature, inputs: list[Array]) -> Array:
    """One node's value from its inputs' values, by its row."""
    return host_function(sig, quick=False).compute(*inputs)


def host_function(sig: Signature, *, quick: bool = True) -> HostFunction:
    """The function of a node that is no leaf; not `quick`: its row's, which says what is right."""
    by_bits = sig.op.name == "bitcast" or sig.op.name == "scatter_set"
    make = _QUICK.get(sig.op.name) if quick else None
    function, rewrite = make(sig) if make else (_by_row(sig), None)
    return HostFunction(partial(_computed, sig, function, by_bits), rewrite)


def _computed(sig: Signature, function: Callable[..., Any], by_bits: bool, *inputs: Array) -> Array:
    arrays = inputs if by_bits else [_widened(each) for each in inputs]
    with np.errstate(all="ignore"):
        found = np.asarray(function(*arrays)).astype(sig.dtype.numpy, copy=False)
    return found if found.shape == sig.shape else found.reshape(sig.shape)


def _widened(array: Array) -> Array:
    return array.astype(np.float32) if array.dtype.kind in "fV" and array.dtype.itemsize == 2 else array


def _by_row(sig: Signature) -> Callable[..., Any]:
    function: Any = sig.op.numpy
    return function if sig.kind == "map" else partial(function, sig)


# Quick functions of ops that have no kernel, and whether they can write over their first input

Quick = tuple[Callable[..., Array], Callable[..., Array] | None]


def _scatter(sig: Signature) -> Quick:
    how = sig.op.name.removeprefix("scatter_")
    function = partial(set_turned, *sig.attributes) if sig.attributes else partial(scatter, how)
    # Half floats are added up in float32, so not where they are stored
    return function, partial(function, reuse=True) if how == "set" or not sig.dtype.is_half else None


def _sort_places(sig: Signature) -> Quick:
    descending, count = sig.attributes
    return lambda x: sorted_places(x, descending, count), None


def _sort_values(sig: Signature) -> Quick:
    (descending,) = sig.attributes
    return lambda x: sorted_values(x, descending), None


def _search_places(sig: Signature) -> Quick:
    (side,) = sig.attributes
    return lambda line, x: searched_places(line, x, side), None


def _fft(sig: Signature) -> Quick:
    inverse, scale, axis = sig.attributes
    return lambda x: transformed(x, inverse, scale, axis), None


def _rfft(sig: Signature) -> Quick:
    (scale,) = sig.attributes
    return lambda x: half_of_real(x, scale), None


def _irfft(sig: Signature) -> Quick:
    length, scale = sig.attributes
    return lambda x: real_from_half(x, length, scale), None


_QUICK: dict[str, Callable[[Signature], Quick]] = {
    "scatter_set": _scatter,
    "scatter_add": _scatter,
    "scatter_max": _scatter,
    "sort_order": lambda sig: (sorted_places, None),
    "sort_places": _sort_places,
    "sort_values": _sort_values,
    "search_places": _search_places,
    "bin_places": lambda sig: (binned_places, None),
    "counts_between": lambda sig: (counts_between, None),
    "fft": _fft,
    "rfft": _rfft,
    "irfft": _irfft,
}
