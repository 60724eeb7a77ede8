"""Small models of diffusers with numbers that are not what they begin with, and what they give."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webgrad as wg

torch: Any = pytest.importorskip("torch", reason="torch is not installed: `make test-diffusers` runs these")
diffusers: Any = pytest.importorskip(
    "diffusers", reason="diffusers is not installed: `make test-diffusers` runs these"
)
transformers: Any = pytest.importorskip("transformers")
torch.set_num_threads(1)
torch.set_grad_enabled(False)

__all__ = ["difference", "diffusers", "drawn", "on", "torch", "transformers", "varied"]

Array = np.ndarray[Any, Any]


def varied(model: Any) -> Any:
    """The model in evaluation mode, with norms and biases that do something."""
    generator = torch.Generator().manual_seed(1)
    for name, each in model.named_parameters():
        if each.ndim == 1:
            each.copy_(float(name.endswith("weight")) + 0.1 * torch.randn(each.shape, generator=generator))
    return model.eval()


def drawn(*shape: int, seed: int = 0) -> Any:
    """Normal numbers."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def on(value: Any, device: str) -> Any:
    """A tensor of torch as one of ours."""
    return wg.asarray(value.numpy(), device=device)


def difference(ours: Any, theirs: Any) -> float:
    """The largest difference, of the largest number."""
    wanted = np.asarray(theirs, np.float64)
    given = np.asarray(ours.numpy() if isinstance(ours, wg.Tensor) else ours, np.float64)
    assert given.shape == wanted.shape
    return float(np.abs(given - wanted).max() / np.abs(wanted).max())


def saved(model: Any, folder: Path) -> Path:
    """The model's folder."""
    model.save_pretrained(folder)
    return folder
