"""The functions under PyTorch's names are webgrad's own."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import pytest

import webgrad as wg
from webgrad.nn import functional
from webgrad.ops import (
    activations,
    adaptive,
    attention,
    convolution,
    losses,
    normalise,
    pooling,
    unpooling,
    windows,
)

MODULES = [activations, adaptive, attention, convolution, losses, normalise, pooling, unpooling, windows]
OTHER_NAMES = {"swish", "batch_norm_training"}  # which PyTorch does not have


def test_every_name_is_webgrads_function() -> None:
    for name in functional.__all__:
        assert getattr(functional, name) is getattr(wg, name), name


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.rpartition(".")[2])
def test_what_layers_are_made_of_is_there(module: ModuleType) -> None:
    assert set(module.__all__) - OTHER_NAMES <= set(functional.__all__)


def test_what_means_something_else_in_pytorch_is_not_there() -> None:
    assert not hasattr(functional, "pad")  # by NumPy's widths, from the first axis on


def test_it_is_loaded_when_it_is_first_used() -> None:
    code = (
        "import sys, webgrad as wg\n"
        "assert 'webgrad.nn' not in sys.modules and 'nn' in dir(wg)\n"
        "print(wg.nn.functional.relu(wg.asarray([-1.0, 2.0], device='cpu')).tolist())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[0.0, 2.0]"
