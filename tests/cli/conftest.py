"""What the tests of the commands share: a model that echoes, and a cache of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.fakes import FakeModel
from webgrad import config
from webgrad.cli import protocols


@pytest.fixture
def cache(clean_environment: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty cache."""
    clean_environment.setenv("WEBGRAD_CACHE", str(tmp_path))
    config.reload()
    return tmp_path


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> FakeModel:
    """A model that every command gets, whatever it asks for."""
    found = FakeModel()
    monkeypatch.setattr(protocols, "load", lambda name, device, context=None: found)
    return found
