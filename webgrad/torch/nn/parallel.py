"""torch.nn.parallel: one module on one device; a batch is not divided.

In: a module. Out: a module with it as its part `module`, as torch has it, so that its names carry over.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .module import Module

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel"]


class DataParallel(Module):
    """A module whose calls are another's."""

    def __init__(self, module: Any, device_ids: Any = None, output_device: Any = None, dim: int = 0) -> None:
        super().__init__()
        self.module = module
        self.device_ids = [] if device_ids is None else list(device_ids)

    def forward(self, *inputs: Any, **options: Any) -> Any:
        """What the module computes."""
        return self.module(*inputs, **options)


class DistributedDataParallel(DataParallel):
    """A module in one process: its gradients are those of all processes."""

    def __init__(
        self, module: Any, device_ids: Any = None, output_device: Any = None, **options: Any
    ) -> None:
        super().__init__(module, device_ids, output_device)
        self.require_backward_grad_sync = True

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Nothing is sent anyway."""
        yield


def data_parallel(
    module: Any,
    inputs: Any,
    device_ids: Any = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: Any = None,
) -> Any:
    """What the module makes of the inputs."""
    given = inputs if isinstance(inputs, tuple) else (inputs,)
    return module(*given, **(module_kwargs or {}))
