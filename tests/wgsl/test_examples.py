"""The examples in the docstrings of webgrad/wgsl do what they show."""

from __future__ import annotations

import doctest
import importlib

import pytest


@pytest.mark.parametrize("module", ["conditions", "macros", "minify", "tokens"])
def test_examples_hold(module: str) -> None:
    result = doctest.testmod(importlib.import_module(f"webgrad.wgsl.{module}"))
    assert result.attempted > 0
    assert result.failed == 0
