"""torch.multiprocessing: Python's, since tensors are pickled by their values.

A forked child cannot use a GPU (`webgrad.ForkError` says so there); start processes by "spawn".
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from typing import Any

__all__ = ["get_all_sharing_strategies", "get_sharing_strategy", "set_sharing_strategy", "spawn"]


def __getattr__(name: str) -> Any:
    return getattr(multiprocessing, name)


def spawn(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> Any:
    """Processes that call fn(number, *args); with `join`, an error where one of them fails."""
    context: Any = multiprocessing.get_context(start_method)
    processes = [context.Process(target=fn, args=(each, *args), daemon=daemon) for each in range(nprocs)]
    for each in processes:
        each.start()
    if not join:
        return processes
    for each in processes:
        each.join()
    failed = next((at for at, each in enumerate(processes) if each.exitcode), None)
    if failed is not None:
        raise RuntimeError(f"process {failed} terminated with exit code {processes[failed].exitcode}")
    return None


def set_sharing_strategy(new_strategy: str) -> None:
    """Taken, and means nothing here."""


def get_sharing_strategy() -> str:
    """The one there is."""
    return "file_system"


def get_all_sharing_strategies() -> set[str]:
    """The one there is."""
    return {"file_system"}
