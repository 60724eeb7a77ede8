"""What tests do where a program that they need is not there: they are skipped loudly, and in CI they fail.

In: what is missing. Out: a skip with its reason, which tests/conftest.py tells again at the end of the run.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn

import pytest

import webgrad
from scripts.browser import PROGRAMS, find
from scripts.gpus import kept_driver
from scripts.npm import lacking
from webgrad.tools.gpus.table import GPUS, missing

__all__ = [
    "IN_CI",
    "missing_key",
    "need_compiler",
    "need_folder",
    "need_model",
    "need_package",
    "need_program",
]

IN_CI = os.environ.get("CI", "").lower() in ("1", "true")
missing_key = pytest.StashKey[list[str]]()


def need_program(config: pytest.Config, name: str) -> None:
    """Go on only where a program of scripts/browser.py is there."""
    program = PROGRAMS[name]
    if sys.platform == "win32" or find(name) is None:
        how = f"`python -m scripts.browser {name}` installs one on Debian, {program.variable} may name one"
        _leave(config, f"no {program.title} was found; {how}")


def need_package(config: pytest.Config, package: str, *, must: bool = True) -> None:
    """Go on only where a package of scripts/web is there, and node; without `must` CI may go on as well."""
    if problem := lacking(package):
        _leave(config, problem, must)


def need_model(config: pytest.Config, name: str) -> None:
    """Go on only where a model of the catalogue is there; CI pulls it."""
    try:
        webgrad.models.locate(name, pull=IN_CI)
    except webgrad.ModelFileError as error:
        _leave(config, str(error))


def need_compiler(config: pytest.Config, gpu: str, driver: str = "") -> None:
    """Go on only where a GPU's compiler is there, and is the one whose figures are kept; CI may go on too."""
    if problem := missing(GPUS[gpu]):
        _leave(config, f"{problem}; `make gpus` installs them on Debian", must=False)
    if driver not in ("", kept_driver(gpu)):
        _leave(
            config, f"the figures kept of {gpu} are of {kept_driver(gpu)}, and here is {driver}", must=False
        )


def need_folder(config: pytest.Config, variable: str, what: str) -> Path:
    """Go on only where an environment variable names a folder of published files, which CI may lack."""
    folder = Path(os.environ.get(variable, ""))
    if variable not in os.environ or not folder.is_dir():
        _leave(config, f"no folder of {what} was found: {variable} may name one", must=False)
    return folder


def _leave(config: pytest.Config, reason: str, must: bool = True) -> NoReturn:
    reasons = config.stash.setdefault(missing_key, [])
    if reason not in reasons:
        reasons.append(reason)
    # In CI an error, so that the closing line cannot be read as a success.
    if IN_CI and must:
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)
