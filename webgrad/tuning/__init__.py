"""Tuning: kernels chosen by measuring, where their lowering knows more ways than one. Off unless asked for.

In: `wg.tune()` or WEBGRAD_TUNE, and the groups of a plan that is being made. Out: a choice for each, found in
memory, on disk (`entries.py`), or by running every candidate (`measure.py`); `choice.py` decides. The
invariant: without tuning kernels come from the device's profile alone, and no file is touched.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from ..config import settings

_asked: ContextVar[bool | None] = ContextVar("webgrad_tune", default=None)


def is_on() -> bool:
    """Whether kernels that are made now, in this thread, are chosen by measuring."""
    asked = _asked.get()
    return settings().tune if asked is None else asked


@contextmanager
def tune(enabled: bool = True) -> Iterator[None]:
    """Inside `with wg.tune():` kernels are chosen by measuring; `wg.tune(False)` is the opposite.

    It holds for this thread (or asyncio task), and may be nested and used as a decorator; WEBGRAD_TUNE=1 is
    the same for a whole process. A kernel is measured once: what was found is kept on disk. Put it around
    the loop that is to be fast, since what runs outside of it has the kernels of the device's profile.

    >>> with wg.tune():
    ...     print(wg.sum(wg.ones((2, 3))).item())
    6.0
    """
    token = _asked.set(enabled)
    try:
        yield
    finally:
        _asked.reset(token)
