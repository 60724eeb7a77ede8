"""What functions ask about a device while they build a graph: the only place where they may do so.

In: a device. Out: a yes or no by which a function composes its graph. Ops that kernels lack are rewritten by
passes (`schedule/legalise.py`, `schedule/sorting.py`). These are composed at the call:

- transforms, because they take tables of twiddles: leaves with memory of the device, which a `Snapshot` has
  none of, and which exports, captures and checks would each have to learn of beside a user's leaves;
- gradients of pooling, because what suits NumPy and what suits kernels are two algorithms, not one op: as
  slices, windows of 3 × 3 that overlap are four kernels, and as a gather two;
- what reads values to know a shape, or where bytes lie;
- what is computed apart (`compute_apart`): only where the host computes is nothing gained by waiting.
"""

from __future__ import annotations

from typing import Any

from .transforms import halves_have_kernels, has_kernels


def has_host_memory(device: Any) -> bool:
    """Whether values are in the host's memory: reading them copies nothing."""
    return not device.is_gpu


def has_transform(device: Any, length: int) -> bool:
    """Whether there is a Fourier transform of `length` complex numbers."""
    return not device.is_gpu or has_kernels(length)


def has_real_transform(device: Any, length: int) -> bool:
    """Whether there is a Fourier transform of `length` real numbers."""
    return not device.is_gpu or halves_have_kernels(length)
