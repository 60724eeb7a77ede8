"""Data sets of torchvision's names: a few images each, drawn by NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

__all__ = ["CIFAR10", "MNIST", "FakeData", "FashionMNIST"]

COUNT, CLASSES = 200, 10


class _Images(torch.utils.data.Dataset):  # type: ignore[misc]
    shape: tuple[int, ...] = (28, 28)

    def __init__(
        self,
        root: Any = None,
        train: bool = True,
        transform: Callable[[Any], Any] | None = None,
        target_transform: Callable[[Any], Any] | None = None,
        download: bool = False,
        **_: Any,
    ) -> None:
        rng = np.random.default_rng(int(train))
        self.data = torch.from_numpy(rng.integers(0, 256, (COUNT, *self.shape), dtype=np.uint8))
        self.targets = torch.from_numpy(np.arange(COUNT) % CLASSES)
        self.train, self.transform, self.target_transform = train, transform, target_transform
        self.classes = [str(each) for each in range(CLASSES)]

    def __len__(self) -> int:
        return COUNT

    def __getitem__(self, index: int) -> tuple[Any, int]:
        image: Any = self.data[index].numpy()
        label = int(self.targets[index])
        image = self.transform(image) if self.transform else image
        return image, self.target_transform(label) if self.target_transform else label


class MNIST(_Images):
    """Grey images."""


class FashionMNIST(_Images):
    """Grey images."""


class CIFAR10(_Images):
    """Images of three colours."""

    shape = (32, 32, 3)


class FakeData(_Images):
    """Images of a size that is asked for."""

    def __init__(self, image_size: tuple[int, ...] = (3, 32, 32), **options: Any) -> None:
        self.shape = (*image_size[1:], image_size[0])
        super().__init__(**options)
