"""What an exported page says when things go wrong, with its real runner: no GPU, no memory, a lost device."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import webgrad as wg
from webgrad.web.server import serving

pytest.importorskip("fcntl")  # pipes to a browser are made for POSIX only

from tests.browser import Browser, Page

pytestmark = pytest.mark.web

OPENED = "['ready', 'failed'].includes(document.body.dataset.state)"
# Scripts that run before the page's own.
MISSING = "Object.defineProperty(Navigator.prototype, 'gpu', { value: undefined });"
INSECURE = MISSING + "Object.defineProperty(globalThis, 'isSecureContext', { value: false });"
REFUSED = "GPU.prototype.requestAdapter = async () => null;"
NO_DEVICE = "GPUAdapter.prototype.requestDevice = async () => { throw new TypeError('it is taken'); };"
NO_MEMORY = "GPUDevice.prototype.popErrorScope = async () => new GPUOutOfMemoryError('none is left');"
KEPT = """const before = GPUAdapter.prototype.requestDevice;
GPUAdapter.prototype.requestDevice = async function (...given) {
  return (globalThis.kept = await before.apply(this, given)); };"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An export of a layer."""
    layer = wg.nn.Linear(3, 4)
    return wg.export(layer, (wg.zeros((1, 3)),), tmp_path_factory.mktemp("layer"), name="A layer").parent


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    with serving(folder) as url:
        yield url


def opened(browser: Browser, address: str, script: str = "") -> Page:
    page = browser.page()
    if script:
        page.call("Page.addScriptToEvaluateOnNewDocument", source=script)
    page.open(address)
    page.wait_for(OPENED)
    return page


def details(page: Page) -> str:
    return str(page.evaluate("document.querySelector('#problem pre').textContent"))


# What happens before the page starts, its heading, and some of the details.
STARTS: Mapping[str, tuple[str, str, str]] = {
    "missing": (MISSING, "This browser has no WebGPU", "no-webgpu: "),
    "insecure": (INSECURE, "WebGPU needs a secure address", "insecure: "),
    "refused": (REFUSED, "No GPU was given to this page", "no-adapter: "),
    "no device": (NO_DEVICE, "The GPU could not be opened", "it is taken"),
    "no memory": (NO_MEMORY, "There is not enough GPU memory", "none is left"),
}


@pytest.mark.parametrize("name", STARTS)
def test_where_a_page_cannot_start(browser: Browser, address: str, name: str) -> None:
    script, heading, words = STARTS[name]
    page = opened(browser, address, script)
    assert page.text("#problem h2") == heading
    assert words in details(page)
    assert page.text("#device") == "Not running"
    assert page.evaluate("run.disabled")
    assert page.errors() == []


def test_a_truncated_weight_file(browser: Browser, folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    (weights,) = tmp_path.glob("*.safetensors")
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-9])
    with serving(tmp_path) as url:
        page = opened(browser, url)
        assert page.text("#problem h2") == "A weight file is damaged"
        assert weights.name in details(page)
        assert str(len(whole)) in details(page)
        weights.write_bytes(whole)
        page.click("#retry")
        page.wait_for("document.body.dataset.state === 'ready'")
        assert page.evaluate("problem.hidden && !run.disabled")


def test_a_lost_device_is_opened_again(browser: Browser, address: str) -> None:
    page = opened(browser, address, KEPT)
    page.evaluate("document.querySelector('textarea').value = '1 2 3', kept.destroy()")
    page.wait_for("document.body.dataset.state === 'failed'")
    assert page.text("#problem h2") == "The GPU was lost"
    page.click("#retry")
    page.wait_for("document.body.dataset.state === 'ready'")
    page.click("#run")
    page.wait_for("document.querySelectorAll('.result td').length === 4")
    assert page.evaluate("document.querySelector('textarea').value") == "1 2 3"
    assert page.errors() == []
