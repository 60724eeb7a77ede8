"""What functions must know of a device while they build a graph: the only place where they may ask.

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
]


def has_host_memory(device: Any) -> bool:
    """Whether values lie in the host's memory: reading them moves nothing."""
    return not device.is_gpu


def sorts_elements(device: Any) -> bool:
    """Whether the rows of `ops/ordered.py` are there: elements of any dtype, as they are.

    Others sort unsigned keys, of which sorted values, places and counts are made.
    """
    return not device.is_gpu


def has_transform(device: Any, length: int) -> bool:
    """Whether there is a Fourier transform of so many complex numbers."""
    return not device.is_gpu or has_kernels(length)


def has_real_transform(device: Any, length: int) -> bool:
    """Whether there is a Fourier transform of so many real numbers."""
    return not device.is_gpu or halves_have_kernels(length)


def prefers_slices(device: Any) -> bool:
    """Whether windows are quicker as strided slices of whole arrays, one for each of their elements, than as
    one gather of all of them: with NumPy each op is a loop over memory, and long rows matter.
    """
    return not device.is_gpu
