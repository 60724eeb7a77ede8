"""Modules that torch has under a second name, or for several processes; webgrad has one process.

In: torch's arguments. Out: modules that are others of `torch.nn`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import webgrad as wg

from .members import MEMBERS
from .module import Module, counterpart

__all__ = ["Container", "CrossMapLRN2d", "LinearCrossEntropyOptions", "NLLLoss2d", "RNNBase", "RNNCellBase"]
__all__ += ["SyncBatchNorm"]

_BatchNorm: Any = counterpart(wg.nn.BatchNorm2d, MEMBERS)
_NLLLoss: Any = counterpart(wg.nn.NLLLoss, MEMBERS)
_LocalResponseNorm: Any = counterpart(wg.nn.LocalResponseNorm, MEMBERS)
RNNBase: Any = counterpart(wg.nn.LSTM, MEMBERS).__base__
RNNCellBase: Any = counterpart(wg.nn.LSTMCell, MEMBERS).__base__


class NLLLoss2d(_NLLLoss):  # type: ignore[misc]
    """`NLLLoss`, which takes images too."""


class CrossMapLRN2d(_LocalResponseNorm):  # type: ignore[misc]
    """`LocalResponseNorm` of images."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__(size, alpha, beta, k)


class Container(Module):
    """A module that holds those that it is given by name."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__()
        for name, module in kwargs.items():
            self.add_module(name, module)


class SyncBatchNorm(_BatchNorm):  # type: ignore[misc]
    """A batch norm over the batches of all processes, of which there is one; for any number of dimensions."""

    axes = (0, 1, 2, 3)

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype)
        self.process_group = process_group

    @classmethod
    def convert_sync_batchnorm(cls, module: Any, process_group: Any = None) -> Any:
        """The same model: its batch norms see all batches of the one process."""
        return module


@dataclass
class LinearCrossEntropyOptions:
    """How torch cuts the scores of `linear_cross_entropy` into chunks, which webgrad's compiler decides."""

    allow_retain_graph: bool = False
    batch_chunk_size: Any = None
    chunking_method: str = "auto"
    acc_policy: str = "auto"
    acc_dtype: Any = None
