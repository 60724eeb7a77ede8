"""torch.distributed in one process: nothing is initialised, and what needs a process group says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

__all__ = [
    "get_backend",
    "get_rank",
    "get_world_size",
    "init_process_group",
    "is_available",
    "is_initialized",
]


def is_available() -> bool:
    """Whether there are process groups: there are none."""
    return False


def is_initialized() -> bool:
    """Whether a process group was made: never."""
    return False


is_torchelastic_launched = is_nccl_available = is_gloo_available = is_mpi_available = is_initialized


def init_process_group(*args: Any, **kwargs: Any) -> NoReturn:
    """Refused: a program of webgrad.torch is one process."""
    raise RuntimeError(
        "webgrad.torch has no process groups: run the program as one process, without torchrun, and it takes "
        "the branch for torch.distributed.is_available() == False"
    )


def _ungrouped(name: str) -> Callable[..., NoReturn]:
    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise ValueError(
            f"{name}: Default process group has not been initialized, and webgrad.torch has none: a program "
            "runs as one process, in which torch.distributed.is_initialized() is False"
        )

    refuse.__name__ = name
    refuse.__doc__ = f"torch's {name}, which needs a process group: a ValueError."
    return refuse


get_rank, get_world_size, get_backend = map(_ungrouped, ("get_rank", "get_world_size", "get_backend"))
barrier, all_reduce, all_gather, broadcast, reduce, gather, scatter, destroy_process_group = map(
    _ungrouped,
    (
        "barrier",
        "all_reduce",
        "all_gather",
        "broadcast",
        "reduce",
        "gather",
        "scatter",
        "destroy_process_group",
    ),
)
