"""torch.nn.modules.loss: the losses, and the bases that programs derive their own from."""

from __future__ import annotations

from typing import Any

from ... import nn as _nn
from ..module import Module

_LOSSES: list[str] = [name for name in vars(_nn) if name.endswith("Loss")]
__all__ = list(_LOSSES)
globals().update({name: getattr(_nn, name) for name in _LOSSES})


class _Loss(Module):
    """A loss with a reduction."""

    def __init__(self, size_average: Any = None, reduce: Any = None, reduction: str = "mean") -> None:
        super().__init__()
        if size_average is not None or reduce is not None:
            averaged = "mean" if size_average is None or size_average else "sum"
            reduction = averaged if reduce is None or reduce else "none"
        self.reduction = reduction


class _WeightedLoss(_Loss):
    """A loss with a weight for each class."""

    def __init__(
        self, weight: Any = None, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
