"""In torchvision's place: images that NumPy draws, for programs that are about something else."""

from . import datasets, transforms, utils

__all__ = ["datasets", "transforms", "utils"]
