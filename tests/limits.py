"""Limits of time that hold on every machine: of processor time, and a guard against what never ends.

In: seconds. Out: a test that fails. The clock on the wall also counts what other programs do, so no test
compares it with a limit that could be reached.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["HANG", "processor_time"]

HANG = 600.0  # seconds by the wall's clock: what takes longer has no end, however busy the machine is


@contextmanager
def processor_time(seconds: float) -> Iterator[None]:
    """Fail where this process computes for longer within the block."""
    began = time.process_time()
    yield
    took = time.process_time() - began
    assert took < seconds, f"it took {took:.2f} s of processor time, and {seconds} s are allowed"
