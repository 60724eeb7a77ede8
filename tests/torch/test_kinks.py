"""The table of gradients at kinks against torch: what it says is what torch gives."""

from __future__ import annotations

import numpy as np
import pytest

from tests.gradients.kinks import KINKS, array_of
from tests.torch.checking import torch


@pytest.mark.parametrize("name", KINKS)
def test_the_table_of_kinks_is_torchs(name: str) -> None:
    row = KINKS[name]
    tensors = [torch.tensor(array_of(each), requires_grad=True) for each in row.points]
    result = row.function(torch, *tensors)
    result.sum().backward()
    for tensor, slope in zip(tensors, row.slopes, strict=True):
        found = np.zeros(tensor.shape) if tensor.grad is None else tensor.grad.numpy()
        np.testing.assert_allclose(found, array_of(slope), rtol=1e-6, atol=1e-9)
