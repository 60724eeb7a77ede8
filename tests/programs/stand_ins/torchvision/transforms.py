"""Transforms of torchvision's names, on NumPy's arrays; those at random leave an image as it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

__all__ = [
    *("CenterCrop", "Compose", "Lambda", "Normalize", "Pad", "RandomCrop", "RandomHorizontalFlip", "Resize"),
    "ToTensor",
]


class Compose:
    """Transforms one after another."""

    def __init__(self, transforms: Sequence[Callable[[Any], Any]]) -> None:
        self.transforms = transforms

    def __call__(self, image: Any) -> Any:
        for each in self.transforms:
            image = each(image)
        return image


class Lambda:
    """Any function."""

    def __init__(self, lambd: Callable[[Any], Any]) -> None:
        self.function = lambd

    def __call__(self, image: Any) -> Any:
        return self.function(image)


class ToTensor:
    """Bytes as floats between 0 and 1, the colours in front."""

    def __call__(self, image: Any) -> Any:
        array = image if image.ndim == 3 else image[..., None]
        values = torch.from_numpy(np.ascontiguousarray(array.transpose(2, 0, 1)))
        return values.to(torch.get_default_dtype()) / 255


class Normalize:
    """Less the mean, divided by the deviation, of each colour."""

    def __init__(self, mean: Sequence[float], std: Sequence[float], inplace: bool = False) -> None:
        self.mean, self.std = (torch.tensor(each).view(-1, 1, 1) for each in (mean, std))

    def __call__(self, image: Any) -> Any:
        return (image - self.mean) / self.std


class Resize:
    """Another size, by the nearest pixel."""

    def __init__(self, size: Any, *_: Any) -> None:
        self.size = (size, size) if isinstance(size, int) else tuple(size)

    def __call__(self, image: Any) -> Any:
        rows, columns = (
            np.arange(new) * old // new for new, old in zip(self.size, image.shape, strict=False)
        )
        return image[rows][:, columns]


class _Same:
    def __init__(self, *_: Any, **__: Any) -> None: ...

    def __call__(self, image: Any) -> Any:
        return image


class CenterCrop(_Same):
    """Of images that have the size already."""


class Pad(_Same):
    """For a crop at random."""


class RandomCrop(_Same):
    """A crop at random."""


class RandomHorizontalFlip(_Same):
    """A flip at random."""
