"""Devices for the runtime's tests: a shared one, one for a test alone, one for each way to encode."""

from __future__ import annotations

from typing import Any

import pytest

from tests.runtime.helpers import Bench, bench

ENCODINGS: dict[str, dict[str, Any]] = {
    "fast-immediates": {"encoder": "fast", "immediates": True},
    "fast-uniform": {"encoder": "fast", "immediates": False},
    "plain-immediates": {"encoder": "plain", "immediates": True},
    "plain-uniform": {"encoder": "plain", "immediates": False},
}


@pytest.fixture(scope="session")
def shared() -> Bench:
    """A device that many tests use; its counters and its pool have a history."""
    return bench()


@pytest.fixture
def alone() -> Bench:
    """A device of the test's own."""
    return bench()


@pytest.fixture(scope="session", params=list(ENCODINGS.values()), ids=list(ENCODINGS))
def encoded(request: pytest.FixtureRequest) -> Bench:
    """A shared device for each way of encoding and passing parameters."""
    return bench(**request.param)
