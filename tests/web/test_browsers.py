"""Both browsers that tests drive: WebGPU computes in them, values come back, and no error goes unseen."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

pytest.importorskip("fcntl")  # browsers are driven on POSIX only

from tests.firefox import Firefox
from tests.pages import BrowserError, DrivenBrowser, DrivenPage

pytestmark = pytest.mark.web

# It lets the icon through, which Firefox loads in its own time.
POLICY = "default-src 'none'; img-src data:; script-src 'unsafe-inline'"
STRICT = f'<meta http-equiv=Content-Security-Policy content="{POLICY}">'
# Squares 64 numbers and reads them back.
COMPUTE = """(async () => {
  const device = await (await navigator.gpu.requestAdapter()).requestDevice();
  const code = `@group(0) @binding(0) var<storage, read_write> x: array<f32>;
    @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) i: vec3u) { x[i.x] *= x[i.x]; }`;
  const pipeline = device.createComputePipeline({
    layout: "auto", compute: { module: device.createShaderModule({ code }), entryPoint: "main" } });
  const { STORAGE, COPY_SRC, COPY_DST, MAP_READ } = GPUBufferUsage;
  const buffer = device.createBuffer({ size: 256, usage: STORAGE | COPY_SRC | COPY_DST });
  const staging = device.createBuffer({ size: 256, usage: COPY_DST | MAP_READ });
  device.queue.writeBuffer(buffer, 0, Float32Array.from({ length: 64 }, (_, index) => index));
  const entries = [{ binding: 0, resource: { buffer } }];
  const encoder = device.createCommandEncoder();
  const pass = encoder.beginComputePass();
  pass.setPipeline(pipeline);
  pass.setBindGroup(0, device.createBindGroup({ layout: pipeline.getBindGroupLayout(0), entries }));
  pass.dispatchWorkgroups(1);
  pass.end();
  encoder.copyBufferToBuffer(buffer, 0, staging, 0, 256);
  device.queue.submit([encoder.finish()]);
  await staging.mapAsync(GPUMapMode.READ);
  return [...new Float32Array(staging.getMappedRange())];
})()"""


def opened(page: DrivenPage, folder: Path, text: str) -> DrivenPage:
    file = folder / "page.html"
    file.write_text(f"<!doctype html><link rel=icon href='data:,'>{text}", encoding="utf-8")
    page.open(file)
    return page


def test_webgpu_computes(web_page: DrivenPage, tmp_path: Path) -> None:
    assert opened(web_page, tmp_path, "").evaluate(COMPUTE) == [index * index for index in range(64)]


def test_values_of_expressions(any_browser: DrivenBrowser) -> None:
    page = any_browser.page(640, 480, dark=True)
    assert page.evaluate("[1 + 1, 'é', null]") == [2, "é", None]
    assert page.evaluate("undefined") is None
    assert page.evaluate("new Promise((go) => setTimeout(() => go('later'), 5))") == "later"
    assert page.evaluate("[innerWidth, matchMedia('(prefers-color-scheme: dark)').matches]") == [640, True]
    page.show(media="print")
    shown = page.evaluate(
        "['print', '(prefers-color-scheme: light)'].map((each) => matchMedia(each).matches)"
    )
    assert shown == [True, True]
    for wrong in ("nowhere.at.all", "Promise.reject(new Error('nowhere'))", "1 +", "nowhere("):
        with pytest.raises(BrowserError):
            page.evaluate(wrong)
    with pytest.raises(BrowserError, match="no answer in time"):
        page.evaluate("new Promise(() => {})", seconds=0.2)
    assert page.evaluate("'and goes on'") == "and goes on"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<script>throw new Error('thrown')</script>", "thrown"),
        ("<script>Promise.reject(new Error('rejected'))</script>", "rejected"),
        ("<script>console.error('said', 3)</script>", "said 3"),
        ("<script>no syntax</script>", "nexpected"),
        (f"{STRICT}<p style='color: red'>", "Content Security Policy"),
    ],
)
def test_errors_are_seen(web_page: DrivenPage, tmp_path: Path, text: str, words: str) -> None:
    errors = opened(web_page, tmp_path, text).errors()
    assert len(errors) == 1, errors
    assert words in errors[0]
    assert opened(web_page, tmp_path, "<script>console.log('fine')</script>").errors() == []


def test_the_mouse_and_the_keys(web_page: DrivenPage, tmp_path: Path) -> None:
    text = """<div style="height: 3000px"></div><form onsubmit="window.sent = true; return false">
      <input id=words><textarea id=more></textarea></form>
      <button onclick="this.textContent = 'clicked'">click</button>
      <script>addEventListener("keydown", (event) => (window.last = event.key));
      addEventListener("wheel", (event) => (window.turned = event.deltaY));</script>"""
    page = opened(web_page, tmp_path, text)
    page.click("button")
    assert page.text("button") == "clicked"
    page.click("#words")
    page.type("Hé, you")
    assert page.evaluate("words.value") == "Hé, you"
    page.press("ArrowLeft")
    assert page.evaluate("last") == "ArrowLeft"
    page.press("Enter")
    assert page.evaluate("sent") is True
    page.mouse("mouseWheel", 100, 100, deltaX=0, deltaY=-40)
    assert page.wait_for("window.turned") < 0
    with pytest.raises(BrowserError, match="no element #missing"):
        page.click("#missing")


def test_dragging(web_page: DrivenPage, tmp_path: Path) -> None:
    text = """<script>window.seen = [];
      for (const kind of ["pointerdown", "pointermove", "pointerup"])
        addEventListener(kind, (event) => seen.push([kind, event.clientX, event.clientY, event.buttons]));
      </script>"""
    page = opened(web_page, tmp_path, text)
    page.drag([(10, 10), (30, 20), (50, 40)])
    assert page.evaluate("seen.filter(([kind, , , buttons]) => kind !== 'pointermove' || buttons)") == [
        ["pointerdown", 10, 10, 1],
        ["pointermove", 30, 20, 1],
        ["pointermove", 50, 40, 1],
        ["pointerup", 50, 40, 0],
    ]


def test_choosing_a_file(web_page: DrivenPage, tmp_path: Path) -> None:
    file = tmp_path / "words.txt"
    file.write_text("chosen", encoding="utf-8")
    text = "<input type=file onchange='this.files[0].text().then((words) => (window.words = words))'>"
    page = opened(web_page, tmp_path, text)
    page.choose_files("input", [file])
    assert page.wait_for("window.words") == "chosen"
    with pytest.raises(BrowserError, match="no element #missing"):
        page.choose_files("#missing", [file])


def test_what_runs_before_a_page(any_browser: DrivenBrowser, tmp_path: Path) -> None:
    text = "<script>window.found = navigator.gpu === undefined</script>"
    page, other = any_browser.page(), any_browser.page()
    page.preload("Object.defineProperty(navigator, 'gpu', { value: undefined });")
    assert opened(page, tmp_path, text).evaluate("found") is True
    assert opened(other, tmp_path, text).evaluate("found") is False
    assert page.errors() == []


def test_screenshots(any_browser: DrivenBrowser, tmp_path: Path) -> None:
    page = opened(any_browser.page(320, 200), tmp_path, "<body style='margin: 0'><div style='height: 700px'>")
    sizes = []
    for whole in (False, True):
        png = page.screenshot(tmp_path / "page.png", whole=whole)
        assert (tmp_path / "page.png").read_bytes() == png
        assert png.startswith(b"\x89PNG")
        sizes.append(struct.unpack("!II", png[16:24]))
    assert sizes == [(320, 200), (320, 700)]


def test_waiting_ends(web_page: DrivenPage, tmp_path: Path) -> None:
    page = opened(web_page, tmp_path, "<p>hello<script>setTimeout(() => { window.ready = 3; }, 300)</script>")
    assert page.wait_for("window.ready") == 3
    with pytest.raises(BrowserError, match=r"window\.never: not within 0 s; page: 'hello"):
        page.wait_for("window.never", seconds=0.1)


def test_an_address_that_cannot_be_opened(web_page: DrivenPage, tmp_path: Path) -> None:
    with pytest.raises(BrowserError, match=r"missing\.html"):
        web_page.open(tmp_path / "missing.html")


@pytest.mark.usefixtures("firefox")  # which skips where there is none
def test_a_firefox_goes_with_its_processes_and_its_profile() -> None:
    with Firefox() as running:
        folder, process = running.folder, running.process.pid
        assert running.page().evaluate("1") == 1
    assert not folder.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


@pytest.mark.usefixtures("firefox")
def test_a_firefox_that_died_is_told_of() -> None:
    with Firefox() as running:
        os.killpg(running.process.pid, 9)
        with pytest.raises(BrowserError, match="Firefox has ended"):
            running.page()
