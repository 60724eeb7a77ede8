"""Python's garbage collector, paused where many objects are made that all live.

In: nothing. Out: a context. The invariant: whoever had switched the collector off finds it off.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["collector_paused"]


@contextmanager
def collector_paused() -> Iterator[None]:
    """No garbage collection: it would walk thousands of new records again and again, and find none dead."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
