"""What the texts promise: README's code runs, and the examples in docstrings give what they show."""

from __future__ import annotations

import doctest
import importlib
import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import webgrad

ROOT = Path(__file__).parents[1]
MODULES = [
    each.name for each in pkgutil.walk_packages(webgrad.__path__, "webgrad.") if "__main__" not in each.name
]


def code_of(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize(
    ("page", "number"),
    [
        (page, number)
        for page in (
            *("docs/nn.md", "docs/training.md", "docs/optim.md", "docs/files.md", "docs/linalg.md"),
            *("docs/fft.md", "docs/array-api.md"),
        )
        for number in range(len(code_of(page)))
    ],
)
def test_the_code_about_training_runs(page: str, number: int, capsys: pytest.CaptureFixture[str]) -> None:
    block = code_of(page)[number]
    webgrad.set_default_device("cpu")
    try:
        exec(compile(block, page, "exec"), {})
    finally:
        webgrad.set_default_device(None)
    printed = capsys.readouterr().out
    assert printed
    for promised in re.findall(r"^print\(.*\)  # (.*)$", block, re.MULTILINE):
        assert promised in printed


@pytest.mark.parametrize("device", [pytest.param("webgpu", marks=pytest.mark.gpu), "cpu"])
def test_the_code_in_the_readme_runs(device: str) -> None:
    for block, words in zip(
        code_of("README.md"), ("y = 3.0 x + 0.5", "(64, 128)", "period: 16"), strict=True
    ):
        environment = os.environ | {"WEBGRAD_DEVICE": device}
        done = subprocess.run(
            [sys.executable, "-c", block],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert words in done.stdout


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name: str) -> None:
    webgrad.set_default_device("cpu")
    try:
        found = doctest.testmod(importlib.import_module(name), extraglobs={"wg": webgrad, "np": np})
    finally:
        webgrad.set_default_device(None)
    assert found.failed == 0


def test_every_error_is_in_the_tree_that_errors_draws() -> None:
    from webgrad import errors

    drawn = re.findall(r"[├└]── (\w+)", errors.__doc__ or "")
    assert sorted([*drawn, "WebgradError"]) == sorted(errors.__all__)
