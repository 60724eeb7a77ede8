"""The functions under PyTorch's names are webgrad's own."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import pytest

import webgrad as wg
from scripts.reference_page import names_of
from webgrad.functions.convolution import adaptive, convolution, pooling, unpooling, windows
from webgrad.functions.learning import activations, attention, losses, normalisation
from webgrad.functions.spellings import spelled
from webgrad.nn import (
    chance,
    ctc,
    distances,
    dropout_functions,
    functional,
    margins,
    pooling_functions,
    sampling,
    spatial,
    tables,
)

MODULES = [activations, adaptive, attention, convolution, losses, normalisation, pooling, unpooling, windows]
OWN: list[ModuleType] = [
    *(chance, ctc, distances, dropout_functions, margins, pooling_functions, sampling, spatial, tables)
]
OTHER_NAMES = {"swish", "batch_norm_training"}  # which PyTorch does not have


def test_every_name_is_webgrads_function_or_one_of_this_folder() -> None:
    own = {name: module for module in OWN for name in module.__all__}
    for name in functional.__all__:
        assert getattr(functional, name) is spelled(getattr(own.get(name, wg), name)), name
    assert set(own) <= set(functional.__all__)


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.rpartition(".")[2])
def test_what_layers_are_made_of_is_there(module: ModuleType) -> None:
    assert set(names_of(module)) - OTHER_NAMES <= set(functional.__all__)


def test_pad_is_pytorchs() -> None:
    assert functional.pad is not wg.pad  # which takes NumPy's widths, from the first axis on
    assert functional.pad(wg.zeros((2, 3), device="cpu"), (1, 2)).shape == (2, 6)


def test_it_is_loaded_when_it_is_first_used() -> None:
    code = (
        "import sys, webgrad as wg\n"
        "assert 'webgrad.nn' not in sys.modules and 'nn' in dir(wg)\n"
        "print(wg.nn.functional.relu(wg.asarray([-1.0, 2.0], device='cpu')).tolist())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[0.0, 2.0]"
