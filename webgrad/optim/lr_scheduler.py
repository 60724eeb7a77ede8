"""PyTorch's place for schedules of learning rates."""

from __future__ import annotations

from . import cycles, schedules, waves
from .cycles import *  # noqa: F403
from .schedules import *  # noqa: F403
from .waves import *  # noqa: F403

__all__: list[str] = []
__all__ += cycles.__all__
__all__ += schedules.__all__
__all__ += waves.__all__
