"""DistributedSampler: the part of a dataset that one of several processes takes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from ... import distributed, random
from .sampler import Sampler

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler[int]):
    """Every `num_replicas`-th number of an order that all processes share, which `set_epoch` changes.

    >>> import webgrad.torch as torch
    >>> data = torch.utils.data
    >>> list(data.DistributedSampler(range(5), num_replicas=2, rank=1, shuffle=False))
    [1, 3, 0]
    """

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        self.num_replicas = distributed.get_world_size() if num_replicas is None else num_replicas
        self.rank = distributed.get_rank() if rank is None else rank
        if not 0 <= self.rank < self.num_replicas:
            raise ValueError(
                f"Invalid rank {self.rank}, rank should be in the interval [0, {self.num_replicas - 1}]"
            )
        self.dataset = dataset
        self.epoch = 0
        self.drop_last = drop_last
        self.shuffle = shuffle
        self.seed = seed
        rounded = math.floor if drop_last else math.ceil
        self.num_samples = rounded(len(dataset) / self.num_replicas)
        self.total_size = self.num_samples * self.num_replicas

    def __iter__(self) -> Iterator[int]:
        count = len(self.dataset)
        order = list(range(count))
        if self.shuffle:
            generator = random.Generator().manual_seed(self.seed + self.epoch)
            order = random.functions["randperm"](count, generator=generator, device="cpu").tolist()
        if order:
            order = [order[at % count] for at in range(self.total_size)]
        return iter(order[self.rank : self.total_size : self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Another order from now on, the same one in every process."""
        self.epoch = epoch
