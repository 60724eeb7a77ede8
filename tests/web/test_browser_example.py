"""examples/browser: its page runs programs in Chromium, shows what they print and how they fail; stopping."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("fcntl")  # browsers are driven on POSIX only

from tests.browser import WEBGPU, Browser
from tests.missing import need_package, need_program
from tests.pages import DrivenPage
from tests.web.pyodide_site import EXAMPLE, make_site
from webgrad.web.server import serving

pytestmark = pytest.mark.web
SHOTS = os.environ.get("WEBGRAD_SHOTS")  # a folder to put screenshots into, to be looked at


@pytest.fixture(scope="module")
def folder(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Path:
    need_package(pytestconfig, "pyodide")
    return make_site(tmp_path_factory.mktemp("example"))


@pytest.fixture(scope="module", params=["isolated", "plain"])
def page(request: pytest.FixtureRequest, folder: Path) -> Iterator[DrivenPage]:
    """The page when Python is ready, with memory that page and worker share, and without; for all tests."""
    need_program(request.config, "chromium")
    with serving(folder, isolated=request.param == "isolated") as url, Browser(*WEBGPU) as browser:
        opened = browser.page(900, 900, dark=request.param == "isolated")
        opened.open(f"{url.rstrip('/')}/index.html")
        opened.wait_for("!document.getElementById('run').disabled")
        yield opened
        assert opened.errors() == []


def choose(page: DrivenPage, name: str) -> None:
    page.evaluate(
        f"programs.value = {json.dumps(name)}, programs.dispatchEvent(new Event('change')), undefined"
    )
    title = f"programs/{name}.py"
    page.wait_for(f"fetch({json.dumps(title)}).then((got) => got.text()).then((text) => text === code.value)")


def write(page: DrivenPage, text: str) -> None:
    page.evaluate(f"code.value = {json.dumps(text)}, code.dispatchEvent(new Event('input')), undefined")


def run(page: DrivenPage) -> str:
    """Run what is in the cell, and give all that the page shows for it."""
    page.click("#run")
    return ended(page)


def ended(page: DrivenPage) -> str:
    page.wait_for("/ s$|anew$/.test(state.textContent) && !run.disabled")
    return page.text("#output") + page.text("#seen")


def shoot(page: DrivenPage, name: str) -> None:
    if SHOTS:
        page.screenshot(Path(SHOTS) / f"{name}.png")


def test_the_programs_of_the_page(page: DrivenPage) -> None:
    device = page.text("#device")
    assert "Chromium" in device
    assert "webgpu:0" in device
    for name, words in {
        "regression": "y = 3.0 x + 0.5",
        "graph": "mean",
        "gradients": "the top is at x = 1.31384, where f is 0.81383",
        "pictures": "% of 64 new pictures are right",
    }.items():
        choose(page, name)
        shown = run(page)
        assert words in shown, shown
        assert page.evaluate("problem.hidden")
        shoot(page, f"{name}-{'isolated' if page.evaluate('crossOriginIsolated') else 'plain'}")


def test_an_error_shows_the_programs_own_lines_first(page: DrivenPage) -> None:
    write(page, "import webgrad as wg\nx = wg.ones((2, 3))\nprint('before')\nx @ x\nprint('after')")
    shown = run(page)
    assert shown.startswith("before\n")
    assert "ShapeError: matmul" in shown
    assert shown.endswith("line 4: x @ x")
    assert "after" not in shown
    assert "webgrad/functions" in page.evaluate("whole.textContent")
    shoot(page, "error")
    write(page, "1 + 1")
    assert run(page) == "2\n", "the next program begins anew"
    assert page.evaluate("problem.hidden")


def test_a_program_that_never_ends_is_stopped(page: DrivenPage) -> None:
    write(page, "print('begun')\nwhile True:\n    pass")
    page.click("#run")
    page.wait_for("output.textContent.includes('begun')")
    page.click("#stop")
    shown = ended(page)
    if page.evaluate("crossOriginIsolated"):
        assert "KeyboardInterrupt" in shown
    write(page, "import webgrad as wg\nprint(wg.arange(3).sum().item())")
    assert run(page) == "3\n"


def test_keys_of_the_editor(page: DrivenPage) -> None:
    write(page, "")
    page.evaluate("code.focus()")
    page.press("Tab")
    assert page.evaluate("code.value") == "    "
    write(page, "print(7 * 6)")
    page.evaluate(
        "code.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', ctrlKey: true, bubbles: true }))"
    )
    assert ended(page) == "42\n"


def test_without_a_gpu_the_page_says_why(folder: Path, pytestconfig: pytest.Config) -> None:
    need_program(pytestconfig, "chromium")
    with serving(folder) as url, Browser() as browser:  # which offers no adapter without its options
        page = browser.page()
        page.open(f"{url.rstrip('/')}/index.html")
        page.wait_for("!problem.hidden")
        assert page.text("#device") == "Programs cannot be run here"
        assert "no GPU adapter was found (" in page.text("#seen")
        assert page.evaluate("run.disabled")


def test_without_its_files_the_page_says_how_to_get_them(browser: Browser, tmp_path: Path) -> None:
    shutil.copytree(EXAMPLE, tmp_path / "site", ignore=shutil.ignore_patterns("files"))
    with serving(tmp_path / "site") as url:
        page = browser.page()
        page.open(f"{url.rstrip('/')}/index.html")
        page.wait_for("!problem.hidden")
        assert page.text("#seen") == "fetch.py puts Python and webgrad beside this page: see README.md"
