"""What NumPy does for nodes: quick functions for ops that have no kernel, the table's rows for all others.

In: a node's signature. Out: a `HostFunction`, or, for graphs that run node by node, a plain function
(`plain.py`). float16 and bfloat16 are computed in float32 and rounded, as kernels do. The invariant: inputs
are never written to, but by `rewrite`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Any

from ..arrays import Array, np
from ..graph.node import Signature
from .direct import DIRECT
from .fourier import half_of_real, real_from_half, transformed
from .ordering import binned_places, counts_between, searched_places, sorted_places, sorted_values
from .scattering import scatter, set_turned

__all__ = ["HostFunction", "functions_for", "host_function", "value_of"]

KEPT = 1 << 16  # functions that are kept


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


class _Functions(dict[Signature, Callable[..., Any]]):
    """The functions of nodes, each made when it is first asked for. NumPy's warnings are the caller's."""

    def __init__(self, make: Callable[[Signature], Callable[..., Any]]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, sig: Signature) -> Callable[..., Any]:
        if len(self) >= KEPT:
            self.clear()
        function = self[sig] = self._make(sig)
        return function


def _direct(sig: Signature) -> Callable[..., Any]:
    """A function for arrays of which none is of half floats; it may give one of NumPy's scalars."""
    make = DIRECT.get(sig.op.name)
    if make is not None:
        return make(sig)
    if sig.kind == "map" and isinstance(sig.op.numpy, np.ufunc):
        return sig.op.numpy  # operands of one dtype give that dtype, or bools
    return _whole(sig)


def _whole(sig: Signature) -> Callable[..., Array]:
    """By the quick function or the row, as an array of the dtype and shape."""
    make = _QUICK.get(sig.op.name)
    function = make(sig)[0] if make else _by_row(sig)
    return partial(_fitted, sig.shape, sig.dtype.numpy, function)


def _fitted(shape: tuple[int, ...], dtype: Any, function: Callable[..., Any], *arrays: Array) -> Array:
    found = np.asarray(function(*arrays)).astype(dtype, copy=False)
    return found if found.shape == shape else found.reshape(shape)


_is_of_halves: Callable[[Signature], bool] = attrgetter("dtype.is_half")
_directly = _Functions(_direct)
_carefully = _Functions(lambda sig: host_function(sig).compute)


def functions_for(sigs: Sequence[Signature]) -> Mapping[Signature, Callable[..., Any]]:
    """The functions of a graph's nodes."""
    return _carefully if any(map(_is_of_halves, sigs)) else _directly


def _computed(sig: Signature, function: Callable[..., Any], by_bits: bool, *inputs: Array) -> Array:
    arrays = inputs if by_bits else [_widened(each) for each in inputs]
    with np.errstate(all="ignore"):
        return _fitted(sig.shape, sig.dtype.numpy, function, *arrays)


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
