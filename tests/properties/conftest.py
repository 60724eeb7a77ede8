"""For all property tests: graphs are built whole before anything is computed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.properties.helpers import unlimited_backlog


@pytest.fixture(autouse=True)
def whole_graphs() -> Iterator[None]:
    """Large graphs are not cut while they are made."""
    with unlimited_backlog():
        yield
