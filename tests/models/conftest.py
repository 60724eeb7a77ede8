"""Real models for tests: out of webgrad's cache, where `make demo` and `webgrad pull` put them.

Without the model a test is skipped, and says what to run; with CI=true it is pulled.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import webgrad as wg
from tests.missing import IN_CI


def model_path(name: str) -> Path:
    """Where a model of the catalogue is; a skip if it is not on this machine."""
    try:
        return wg.models.locate(name, pull=IN_CI)
    except wg.ModelFileError as error:
        if IN_CI:
            raise
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """SmolLM2-135M-Instruct, a GGUF file."""
    return model_path("smollm2:135m")


@pytest.fixture(scope="session")
def minilm() -> Path:
    """all-MiniLM-L6-v2, a folder."""
    return model_path("minilm")
