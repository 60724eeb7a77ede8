"""Tests of native code are passed over where there is none."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from webgrad.native import attending
from webgrad.native.compiler import is_available


@pytest.fixture(autouse=True)
def needs_native() -> None:
    if not is_available():
        pytest.skip("no native code here: llvmlite is not installed, or switched off")


@pytest.fixture
def switch_off(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Everything by NumPy from then on."""

    def switch() -> None:
        monkeypatch.setattr(attending, "is_available", lambda: False)

    return switch
