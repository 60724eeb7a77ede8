"""torch.profiler: contexts that programs enter; `wg.profile` is what shows where time goes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ContextDecorator
from enum import Enum
from typing import Any, Self

__all__ = [
    "ProfilerAction", "ProfilerActivity", "profile", "record_function", "schedule",
    "tensorboard_trace_handler",
]  # fmt: skip
_INSTEAD = (
    "webgrad.torch.profiler records nothing: use `with webgrad.profile() as profile: …; print(profile)`"
)


class ProfilerActivity(Enum):
    """What torch would record."""

    CPU = 0
    CUDA = 1
    XPU = 2


class ProfilerAction(Enum):
    """What torch would do at a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


class profile(ContextDecorator):
    """A context as torch's; it records nothing, and says so where its records are asked for."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self.step_num = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Nothing was recorded."""

    def start(self) -> None:
        """Nothing is recorded."""

    stop = start

    def step(self) -> None:
        """The next step of the program."""
        self.step_num += 1

    def key_averages(self, *args: Any, **options: Any) -> Any:
        """Refused: there are no records."""
        raise RuntimeError(_INSTEAD)

    export_chrome_trace = export_stacks = events = key_averages


class record_function(ContextDecorator):
    """A context with a name."""

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Nothing was recorded."""


def schedule(*args: Any, **options: Any) -> Callable[[int], ProfilerAction]:
    """A schedule by which nothing is recorded."""
    return lambda step: ProfilerAction.NONE


def tensorboard_trace_handler(*args: Any, **options: Any) -> Callable[[Any], None]:
    """A handler of traces, of which there are none."""
    return lambda profiler: None
