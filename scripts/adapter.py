"""How tests run Mesa's software adapter: on the calling thread, quickly compiled, with a cache of its own.

In: the width of its vectors. Out: environment variables, for a process that has loaded no driver yet. The
invariant: code that Mesa has compiled for one width is never run with another. Its cache does not tell them
apart, and then subgroups have a size that no kernel was chosen for: results are wrong.
"""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["LANES", "adapter_environment"]

LANES = 4  # of a subgroup; kernels for eight take twice as long to compile
WIDTH = "LP_NATIVE_VECTOR_WIDTH"
BITS = 32  # of a lane


def adapter_environment(lanes: int | None = None) -> dict[str, str]:
    """What the driver asks for; without a number of lanes as many as the environment says, or LANES."""
    width = BITS * lanes if lanes else int(os.environ.get(WIDTH) or BITS * LANES)
    return {
        "LP_NUM_THREADS": "0",  # it computes on the thread that calls it
        "GALLIVM_PERF": "nopt",  # LLVM's passes are left out; Mesa's own are not
        WIDTH: str(width),
        "MESA_SHADER_CACHE_DIR": str(cache_folder() / f"mesa-{width}"),
    }


def cache_folder() -> Path:
    """Where tests keep what is made again if it is lost; `make clean` removes it."""
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "webgrad-tests"
