"""Tests of layers run on the cpu device: what they are made of is tested on every device elsewhere."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import webgrad as wg


@pytest.fixture(autouse=True)
def on_cpu() -> Iterator[None]:
    wg.set_default_device("cpu")
    wg.random.seed(0)
    yield
    wg.set_default_device(None)
