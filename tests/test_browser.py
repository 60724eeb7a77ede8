"""The browser that tests drive: values come back, and no error of a page goes unseen."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

pytest.importorskip("fcntl")  # pipes to a browser are made for POSIX only

from tests.browser import Browser, BrowserError

STRICT = (
    "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'; script-src 'unsafe-inline'\">"
)


def opened(browser: Browser, folder: Path, text: str) -> list[str]:
    file = folder / "page.html"
    file.write_text(f"<!doctype html><link rel=icon href='data:,'>{text}", encoding="utf-8")
    page = browser.page()
    page.open(file)
    return page.errors()


def test_values_of_expressions(browser: Browser) -> None:
    page = browser.page(640, 480, dark=True)
    assert page.evaluate("[1 + 1, 'é', null]") == [2, "é", None]
    assert page.evaluate("new Promise((go) => setTimeout(() => go('later'), 5))") == "later"
    assert page.evaluate("[innerWidth, matchMedia('(prefers-color-scheme: dark)').matches]") == [640, True]
    with pytest.raises(BrowserError, match="nowhere is not defined"):
        page.evaluate("nowhere.at.all")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<script>throw new Error('thrown')</script>", "thrown"),
        ("<script>Promise.reject(new Error('rejected'))</script>", "rejected"),
        ("<script>console.error('said', 3)</script>", "said 3"),
        ("<script>no syntax</script>", "Unexpected identifier"),
        ("<img src='missing.png'>", "ERR_FILE_NOT_FOUND"),
        (f"{STRICT}<p style='color: red'>", "Content Security Policy"),
    ],
)
def test_errors_are_seen(browser: Browser, tmp_path: Path, text: str, words: str) -> None:
    (error,) = opened(browser, tmp_path, text)
    assert words in error


def test_a_page_without_errors_has_none(browser: Browser, tmp_path: Path) -> None:
    assert opened(browser, tmp_path, "<script>console.log('fine')</script>") == []


def test_an_address_that_cannot_be_opened(browser: Browser, tmp_path: Path) -> None:
    with pytest.raises(BrowserError, match="ERR_FILE_NOT_FOUND"):
        browser.page().open(tmp_path / "missing.html")


@pytest.mark.usefixtures("browser")  # which skips where there is none
def test_a_browser_goes_with_its_processes_and_its_profile() -> None:
    with Browser() as running:
        folder, process = Path(running.folder), running.process
        assert running.page().evaluate("1") == 1
    assert not folder.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


@pytest.mark.usefixtures("browser")
def test_a_browser_that_died_is_told_of() -> None:
    with Browser() as running, pytest.raises(BrowserError, match="the browser has ended"):
        running.call("Browser.crash")


def test_pages_have_webgpu(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text("<!doctype html>", encoding="utf-8")
    page = browser.page()
    page.open(file)
    found = page.evaluate(
        """(async () => { const device = await (await navigator.gpu.requestAdapter()).requestDevice();
        return device.limits.maxStorageBuffersPerShaderStage; })()"""
    )
    assert found >= 8
