"""The page that paints, on mocks of a model: what it asks for, stops, and shows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.web.page_folders import FACTS, mock_files, served
from webgrad.functions.random import threefry

pytest.importorskip("fcntl")  # pipes to a browser are made for POSIX only

from tests.browser import Browser, Page

CALLS = """JSON.parse(JSON.stringify(mock.calls.splice(0), (name, value) =>
ArrayBuffer.isView(value) ? Array.from(value) : value))"""
SEED = 2**40 + 3
DONE = "document.getElementById('stop').disabled && !document.getElementById('painting').hidden"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served(tmp_path_factory.mktemp("page"), mock_files("paint")) as found:
        yield found


def opened(browser: Browser, address: str) -> Page:
    page = browser.page(1280, 800)
    page.open(address)
    page.wait_for("document.body.dataset.state === 'ready'")
    page.evaluate(f"document.getElementById('seed').value = {SEED}")
    return page


def test_what_is_asked_of_the_model(browser: Browser, address: str) -> None:
    page = opened(browser, address)
    options = "[...document.getElementById('class').options].map((each) => each.text)"
    assert page.evaluate(options) == ["each in turn", "any", "cat", "<b>dog</b>"]
    page.click("#paint")
    page.wait_for(DONE)
    key = (SEED % 2**32, SEED >> 32)
    words = [word for draw in (0, 1) for word in threefry(key, (draw, 0))]
    more = {"classes": [2, 2, 2, 0, 1, 0], "scale": 2}
    found: Any = page.evaluate(CALLS)
    begin = {"start": 1, **dict(zip(FACTS["paint"]["draws"]["begin"], words, strict=True))}
    assert found[0] == ["begin_3_4_4", begin]
    assert found[1] == ["step_3_4_4", {"timestep": 1000, "by_x": 1, **more}]
    assert found[3] == ["step_3_4_4", {"timestep": 500, "by_x": 0.5, **more}]
    assert [name for name, _ in found[2::2]] == ["show_3_4_4", "show_3_4_4"]
    assert page.text("#working").startswith(f"2 steps · seed {SEED}")
    # Three pictures are two columns of two rows, of which the last place stays empty.
    shown = """(() => { const { width, height } = document.getElementById("painting");
    const { data } = document.getElementById("painting").getContext("2d").getImageData(0, 0, width, height);
    return [width, height, [...data.slice(0, 12)], data[4 * (4 * 8 + 4) + 3]]; })()"""
    assert page.evaluate(shown) == [8, 8, [0, 0, 0, 255, 128, 128, 128, 255, 255, 255, 255, 255], 0]
    assert page.errors() == []


def test_previews_only_at_the_end_and_one_class(browser: Browser, address: str) -> None:
    page = opened(browser, address)
    for name, value in (("every", "100000"), ("layout", "0"), ("class", "1"), ("guidance", "3.5")):
        page.evaluate(f"document.getElementById('{name}').value = '{value}'")
    page.click("#paint")
    page.wait_for(DONE)
    found = page.evaluate(CALLS)
    assert [name for name, _ in found] == ["begin_1_4_4", "step_1_4_4", "step_1_4_4", "show_1_4_4"]
    assert found[1][1]["classes"] == [2, 1]
    assert found[1][1]["scale"] == 3.5
    label = page.evaluate("document.getElementById('painting').getAttribute('aria-label')")
    assert label == f"1 picture, class: <b>dog</b>, seed {SEED}"


@pytest.mark.parametrize(("guidance", "told"), [(20.25, "20.25"), (1.0, "1"), (4.5, "4.5")])
def test_guidance_begins_with_what_was_exported(
    guidance: float, told: str, browser: Browser, tmp_path: Path
) -> None:
    with served(tmp_path, mock_files("paint", guidance=guidance)) as address:
        page = opened(browser, address)
        assert page.text("#guidance-told") == told
        page.click("#paint")
        page.wait_for(DONE)
        assert page.evaluate(CALLS)[1][1]["scale"] == guidance


def test_stopping_shows_what_there_is(browser: Browser, address: str) -> None:
    page = opened(browser, address)
    page.evaluate("mock.delay = 300")
    page.click("#paint")
    page.wait_for("!document.getElementById('stop').disabled")
    page.press("Escape")
    page.wait_for(DONE)
    assert page.text("#working").startswith("stopped after step 1")
    names = [name for name, _ in page.evaluate(CALLS)]
    assert names == ["begin_3_4_4", "step_3_4_4", "show_3_4_4"]


def test_a_model_that_is_lost(browser: Browser, address: str, tmp_path: Path) -> None:
    page = opened(browser, address)
    page.evaluate("mock.lose()")
    page.wait_for("document.body.dataset.state === 'failed'")
    assert page.text("#problem h2") == "The GPU was lost"
    assert page.evaluate("document.getElementById('paint').disabled")
    assert page.screenshot(tmp_path / "page.png").startswith(b"\x89PNG")
