"""Tests of native code are passed over where there is none."""

from __future__ import annotations

import pytest

from webgrad.native.compiler import is_available


@pytest.fixture(autouse=True)
def needs_native() -> None:
    if not is_available():
        pytest.skip("no native code here: llvmlite is not installed, or switched off")
