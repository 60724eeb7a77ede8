"""Pages of exports in both browsers: every kind does its work on mocks, and a real CNN sees its sample."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import webgrad as wg
from tests.documents import blocks_of
from tests.pages import DrivenBrowser, DrivenPage
from tests.web.page_folders import FACTS, mock_files, served
from webgrad.web.server import serving

pytestmark = pytest.mark.web

LABELS = ["zero", "one", "two", "three"]
DRAWN = """[...document.querySelectorAll("#bars li")].map((each) => each.innerText.split("\\n")[0])"""


def opened(browser: DrivenBrowser, address: str) -> DrivenPage:
    page = browser.page()
    page.open(address)
    page.wait_for("['ready', 'failed'].includes(document.body.dataset.state)")
    return page


# What is done on a page on mocks, and then true of it.
DONE = {
    "chat": (
        "document.getElementById('text').value = 'hello', document.getElementById('form').requestSubmit()",
        "document.querySelector('.answer:not(.going) pre')?.textContent === 'print(1 < 2)'",
    ),
    "search": (
        """document.getElementById('text').value = 'The cat sleeps.\\n\\nA matrix of numbers.',
        document.getElementById('query').value = 'matrices',
        document.getElementById('by').dispatchEvent(new Event('change'))""",
        "document.querySelector('#hits li')?.innerText.includes('A matrix of numbers.')",
    ),
    "classifier": (
        "document.querySelector('#samples button').click()",
        "document.querySelector('#bars li')?.innerText.startsWith('Dress')",
    ),
    "paint": (
        "document.getElementById('paint').click()",
        "!document.getElementById('painting').hidden && document.getElementById('stop').disabled",
    ),
    "plain": (
        "document.getElementById('run').click()",
        "document.querySelectorAll('.result td').length === 6",
    ),
}


@pytest.mark.parametrize("kind", FACTS)
def test_every_kind_of_page(any_browser: DrivenBrowser, tmp_path: Path, kind: str) -> None:
    with served(tmp_path, mock_files(kind)) as address:
        page = opened(any_browser, address)
        action, outcome = DONE[kind]
        page.evaluate(action)
        page.wait_for(outcome)
        assert page.text("h1") == FACTS[kind]["title"]
        assert page.errors() == []
        assert [url for url in page.requests() if not url.startswith(address)] == []


@pytest.mark.parametrize("broken", ["missing", "too new"])
def test_a_page_whose_modules_do_not_start(any_browser: DrivenBrowser, tmp_path: Path, broken: str) -> None:
    files = mock_files("chat")
    del files["generation.js"]
    if broken == "too new":
        files["generation.js"] = b"const a = 1 of 2;\n"
    with served(tmp_path, files) as address:
        page = opened(any_browser, address)
        assert page.text("#problem h2") == "This page could not start"
        assert "too old" in page.text("#problem")
        assert page.text("#device") == "Not running"


def classifier() -> wg.nn.Module:
    wg.random.seed(3)
    return wg.nn.Sequential(
        wg.nn.Conv2d(1, 4, 3), wg.nn.ReLU(), wg.nn.MaxPool2d(2), wg.nn.Flatten(), wg.nn.Linear(4 * 5 * 5, 4)
    ).eval()


@pytest.mark.parametrize("single_file", [False, True])
def test_a_classifier_sees_its_sample(any_browser: DrivenBrowser, tmp_path: Path, single_file: bool) -> None:
    model = classifier()
    sample = np.tril(np.full((12, 12), 200, np.uint8))
    shown = wg.export(
        model,
        (wg.zeros((1, 1, 12, 12)),),
        tmp_path,
        labels=LABELS,
        mean=0.25,
        std=0.5,
        inverted=True,
        samples=[("a corner", sample)],
        single_file=single_file,
    )
    seen = (sample / np.float32(255) - 0.25) / 0.5
    scores = model(wg.asarray(seen.reshape(1, 1, 12, 12).astype(np.float32))).numpy()[0]
    best = [LABELS[place] for place in np.argsort(-scores)]
    shares = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
    with serving(tmp_path) as address:
        page = opened(any_browser, shown.as_uri() if single_file else address)
        page.evaluate("document.querySelector('#samples button').click()")
        page.wait_for("document.querySelectorAll('#bars li').length > 0")
        assert page.evaluate(DRAWN) == best
        assert page.text("#best") == f"{best[0]} · {100 * shares.max():.1f} %"
        assert page.errors() == []
        assert page.screenshot().startswith(b"\x89PNG")


def test_the_page_of_the_documentation(any_browser: DrivenBrowser, tmp_path: Path) -> None:
    """docs/browser.md: a page of one's own beside an export."""
    (block,) = (each for each in blocks_of("docs/browser.md") if each.language == "html")
    wg.export(wg.nn.Linear(3, 2).eval(), (wg.zeros((1, 3)),), tmp_path)
    (tmp_path / "mine.html").write_text(block.text, encoding="utf-8")
    with serving(tmp_path) as address:
        page = any_browser.page()
        page.open(f"{address}mine.html")
        page.wait_for("!answer.innerText.startsWith('Loading')")
        assert page.text("#answer").startswith("2 scores, computed by ")
