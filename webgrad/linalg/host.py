"""The one way to the host: factorisations are computed by NumPy's LAPACK, and their results sent back.

In: a tensor's matrices, and what to compute of them. Out: tensors on the same device. The invariant: this is
never hidden. `webgrad.stats()` counts a round trip for each tensor that is read, on the cpu as well, since it
waits there too; inside of a captured function it is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import webgrad as wg
from webgrad import Tensor

from ..arrays import Array, np

__all__ = ["each_or_nan", "on_host", "read"]

SINGULAR = "is singular: use linalg.pinv or linalg.lstsq, or add a small multiple of the identity to it"
ENDLESS = "did not converge: look for NaN and infinities with webgrad.isfinite"
REASONS = {
    "inv": SINGULAR,
    "solve": SINGULAR,
    "cholesky": (
        "is not positive definite: add a small multiple of the identity to it, or use linalg.eigh, which "
        "takes any symmetric matrix"
    ),
}


def on_host(name: str, compute: Callable[..., tuple[Any, ...]], *tensors: Tensor) -> tuple[Tensor, ...]:
    """What NumPy computes of the values of tensors, on the device of the first one."""
    arrays = [read(name, each) for each in tensors]
    device = tensors[0].device
    with np.errstate(all="ignore"):
        try:
            found = compute(*arrays)
        except np.linalg.LinAlgError:
            raise _error(_failure(name, compute, arrays)) from None
    return tuple(wg.asarray(np.asarray(each), device=device) for each in found)


def _error(message: str) -> wg.LinearAlgebraError:
    """An error that is NumPy's as well: its class is there before NumPy is imported, so it is told here."""
    wg.LinearAlgebraError.__bases__ = (wg.WebgradError, np.linalg.LinAlgError)
    return wg.LinearAlgebraError(message)


def read(name: str, x: Tensor) -> Array:
    """A tensor's values, for the function of that name; a round trip that is counted."""
    counters = x.device.counters
    before = counters.host_round_trips
    try:
        array = x.numpy()
    except wg.CaptureError:
        raise wg.CaptureError(
            f"linalg.{name} is computed on the host, so it reads a tensor's value, and there is none yet "
            "inside a function that webgrad.jit captures: call it outside, and pass its result as an argument"
        ) from None
    if counters.host_round_trips == before:  # the cpu, or a value of which the host had a copy
        counters.host_round_trips += 1
    return array


def _failure(name: str, compute: Callable[..., tuple[Any, ...]], arrays: list[Array]) -> str:
    """Which matrix it was, and what to do."""
    first = arrays[0]
    what = f"linalg.{name} of a tensor of shape {first.shape}"
    reason = REASONS.get(name, ENDLESS)
    if first.ndim == 2:
        return f"{what}: the matrix {reason}"
    for place in np.ndindex(first.shape[:-2]):
        try:
            compute(*[each[place] for each in arrays])
        except np.linalg.LinAlgError:
            return f"{what}: the matrix at {place if len(place) > 1 else place[0]} {reason}"
    return f"{what}: one of the matrices {reason}"


def each_or_nan(compute: Callable[[Array], Array], a: Array) -> Array:
    """What NumPy computes of each square matrix of a stack, NaN for those that it cannot do."""
    try:
        return compute(a)
    except np.linalg.LinAlgError:
        result = np.full_like(a, np.nan)
        for place in np.ndindex(a.shape[:-2]) if a.ndim > 2 else ():
            result[place] = each_or_nan(compute, a[place])
        return result
