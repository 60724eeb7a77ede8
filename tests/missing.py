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
from scripts.npm import lacking

__all__ = ["IN_CI", "missing_key", "need_folder", "need_model", "need_package", "need_program"]

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
