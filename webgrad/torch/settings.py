"""What programs set for the whole process. webgrad decides about threads, precision and kernels itself.

In: what torch's functions of these names take. Out: what was set, and nothing else changes; a value that
torch refuses is refused.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

__all__ = [
    *("are_deterministic_algorithms_enabled", "get_float32_matmul_precision", "get_num_interop_threads"),
    *("get_num_threads", "set_float32_matmul_precision", "set_flush_denormal", "set_num_interop_threads"),
    *("set_num_threads", "set_printoptions", "use_deterministic_algorithms"),
]
_set: dict[str, Any] = {"precision": "highest", "deterministic": False, "threads": None, "interop": None}
PRECISIONS = ("highest", "high", "medium")
PROFILES = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": 2**62, "edgeitems": 3, "linewidth": 80},
}


def set_num_threads(n: int) -> None:
    """Taken, and without effect: webgrad uses as many threads as a kernel is worth."""
    _set["threads"] = _positive(n, "set_num_threads")


def get_num_threads() -> int:
    """What was set, or how many processors there are."""
    return _set["threads"] or os.cpu_count() or 1


def set_num_interop_threads(n: int) -> None:
    """Taken, and without effect."""
    _set["interop"] = _positive(n, "set_num_interop_threads")


def get_num_interop_threads() -> int:
    """What was set, or how many processors there are."""
    return _set["interop"] or os.cpu_count() or 1


def set_float32_matmul_precision(precision: str) -> None:
    """Taken, and without effect: products of float32 are as exact as "highest" says."""
    if precision not in PRECISIONS:
        raise RuntimeError(f"{precision!r} is no precision: there are {', '.join(PRECISIONS)}")
    _set["precision"] = precision


def get_float32_matmul_precision() -> str:
    """What was set."""
    return str(_set["precision"])


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Taken: what webgrad computes is the same each time on one device anyway."""
    _set["deterministic"] = bool(mode)


def are_deterministic_algorithms_enabled() -> bool:
    """What was set."""
    return bool(_set["deterministic"])


def set_flush_denormal(mode: bool) -> bool:
    """False: whether small numbers are flushed is up to the device."""
    return False


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """How tensors are printed, and NumPy's arrays with them."""
    if profile is not None and profile not in PROFILES:
        raise ValueError(f"{profile!r} is no profile: there are {', '.join(PROFILES)}")
    wanted: dict[str, Any] = dict(PROFILES[profile]) if profile else {}
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    wanted |= {name: value for name, value in given.items() if value is not None}
    if sci_mode is not None:
        wanted["suppress"] = not sci_mode
    if wanted.get("threshold") == float("inf"):
        wanted["threshold"] = 2**62
    np.set_printoptions(**wanted)


def _positive(count: Any, name: str) -> int:
    if not isinstance(count, int) or isinstance(count, bool):
        raise TypeError(f"{name} takes an int, not {type(count).__name__}")
    if count < 1:
        raise RuntimeError(f"{name} expects a positive number, not {count}")
    return count
