"""torch.autograd.graph: what programs ask of it."""

from __future__ import annotations

from typing import Any

__all__ = ["save_on_cpu", "saved_tensors_hooks"]


class saved_tensors_hooks:
    """Taken and without effect: what is needed again is computed again, or kept where it is."""

    def __init__(self, *hooks: Any, **options: Any) -> None:
        self.hooks = hooks

    def __enter__(self) -> None:
        """Nothing to do."""

    def __exit__(self, *error: object) -> None:
        """Nothing to do."""


save_on_cpu = saved_tensors_hooks
