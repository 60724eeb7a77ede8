"""Browsers for the tests of pages: each of them, or both in turn.

In: the programs of scripts/browser.py. Out: running browsers with WebGPU, on SwiftShader in Chromium and on
the system's Vulkan driver in Firefox; they are started once in a run, and the pages that a test opens are
closed after it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from scripts.npm import FOLDER
from tests.missing import need_package, need_program

if TYPE_CHECKING:
    from tests.firefox import Firefox
    from tests.pages import DrivenBrowser, DrivenPage


@pytest.fixture
def firefox(running_firefox: Firefox) -> Iterator[Firefox]:
    """A headless Firefox; the pages that a test opens are closed after it."""
    yield running_firefox
    running_firefox.close_pages()


@pytest.fixture(scope="session")
def running_firefox(pytestconfig: pytest.Config) -> Iterator[Firefox]:
    """A headless Firefox for every test that asks for it; without one they are skipped, in CI they fail."""
    need_program(pytestconfig, "firefox")
    from tests.firefox import Firefox

    with Firefox() as running:
        yield running


@pytest.fixture
def dawn(request: pytest.FixtureRequest) -> None:
    """What tests/web/dawn.py needs is there; in CI `make test` may run without, `make test-browser` not."""
    must = request.node.get_closest_marker("web") is not None
    need_package(request.config, "webgpu", must=must)


@pytest.fixture
def typescript(pytestconfig: pytest.Config) -> None:
    """What tests/web/typescript.py needs is there."""
    need_package(pytestconfig, "typescript")


@pytest.fixture
def pyodide_folder(pytestconfig: pytest.Config) -> Path:
    """Where the files of Pyodide are."""
    need_package(pytestconfig, "pyodide")
    return FOLDER / "node_modules" / "pyodide"


@pytest.fixture(params=["chromium", "firefox"])
def any_browser(request: pytest.FixtureRequest) -> DrivenBrowser:
    """Chromium, and then Firefox."""
    fixture = {"chromium": "browser", "firefox": "firefox"}[request.param]
    return cast("DrivenBrowser", request.getfixturevalue(fixture))


@pytest.fixture
def web_page(any_browser: DrivenBrowser) -> DrivenPage:
    """An empty page of each browser."""
    return any_browser.page()
