"""Data for training: datasets, and loaders that make shuffled batches ahead of use, on a thread.

`webgrad.data.datasets` has a few known ones. Like any other program this uses webgrad's public names only.
"""

from __future__ import annotations

from . import datasets
from .loader import DataLoader
from .sets import ArrayDataset, Dataset, Subset, TensorDataset, collate, random_split

__all__ = [
    "ArrayDataset",
    "DataLoader",
    "Dataset",
    "Subset",
    "TensorDataset",
    "collate",
    "datasets",
    "random_split",
]
