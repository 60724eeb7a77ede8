"""What functions ask about a device while they build a graph: the only place where they may do so.

In: a device. Out: a yes or no by which a function composes its graph. Other ops that kernels lack are
rewritten by `schedule/legalise.py`. These are composed at the call: they take numbers (masks of bits, steps
of a search) and tables (twiddles), which are scalars and leaves that a user's graph feeds and a `Snapshot`
does not make, or they read values to know a shape.
"""

from __future__ import annotations

from typing import Any

from .transforms import halves_have_kernels, has_kernels

__all__ = [
    "has_host_memory",
    "has_real_transform",
    "has_transform",
    "prefers_slices",
    "sorts_elements",
    "takes_int64_indices",
]


def has_host_memory(device: Any) -> bool:
    """Whether values are in the host's memory: reading them copies nothing."""
    return not device.is_gpu


def sorts_elements(device: Any) -> bool:
    """Whether the device has the rows of `ops/ordered.py`, which sort elements of any dtype.

    Others sort unsigned keys; sorted values, indices and counts are computed from these.
    """
    return not device.is_gpu


def takes_int64_indices(device: Any) -> bool:
    """Whether scatters take int64 indices: elsewhere indices are clamped, so that int32 holds them."""
    return not device.is_gpu


def has_transform(device: Any, length: int) -> bool:
    """Whether there is a Fourier transform of `length` complex numbers."""
    return not device.is_gpu or has_kernels(length)


def has_real_transform(device: Any, length: int) -> bool:
    """Whether there is a Fourier transform of `length` real numbers."""
    return not device.is_gpu or halves_have_kernels(length)


def prefers_slices(device: Any) -> bool:
    """Whether windows are faster as strided slices of whole arrays, one per element of a window, than as one
    gather of all of them: with NumPy each op is a loop over memory, and long rows matter.
    """
    return not device.is_gpu
