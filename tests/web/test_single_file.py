"""One HTML file of an export: what is folded into it, what is refused, and that it runs from a disk."""

from __future__ import annotations

import base64
import json
import re
import tracemalloc
from pathlib import Path

import pytest

import webgrad as wg
from tests.pages import DrivenBrowser
from tests.web.page_folders import FACTS, MOCKS, PLAN, mock_files
from webgrad import runtime
from webgrad.errors import ArgumentError
from webgrad.web import single_file
from webgrad.web.bundle import Bundle
from webgrad.web.page import page_files
from webgrad.web.single_file import PART, fold, write_single_file

READY = "['ready', 'failed'].includes(document.body.dataset.state)"
PAGE = b"""<html><head>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'self'">
<link rel="stylesheet" href="./page.css">
<script src="./first.js"></script>
<script type="module" src="./entry.js"></script>
</head><body><p>words</p></body></html>
"""
FILES: dict[str, bytes | Path] = {
    "index.html": PAGE,
    "page.css": b"p::after { content: '</style>'; }",
    "first.js": b"const words = '</script>';\n",
    "entry.js": b'// Adds.\nimport { a } from "./a.js";\nimport { b, c } from "./b-2.js";\nalert(a + b);\n',
    "a.js": b'import { b } from "./b-2.js";\nconst a = b;\nexport { a };\n',
    "b-2.js": b"const b = /<!--/u;\nconst c = `<SCRIPT>`;\nexport { b, c };\n",
    "unused.js": b"nothing",
    "model.d.ts": b"nothing",
    "data.json": b'{"a": "</script>"}',
    "empty.bin": b"",
}


def folded(files: dict[str, bytes | Path]) -> str:
    return b"".join(fold(files)).decode()


def test_everything_is_inside() -> None:
    text = folded(FILES)
    assert "./" not in text
    assert "nothing" not in text
    assert "script-src 'unsafe-inline'" in text
    assert "content: '<\\/style>'" in text
    assert "<script>const words = '\\x3c/script>';\n</script>" in text
    assert text.endswith("</body></html>\n")
    (module,) = re.findall(r'<script type="module">\n(.*?)</script>', text, re.DOTALL)
    assert module == (
        "const module_b_2d_2_2e_js = (() => {\n"
        "const b = /\\x3c!--/u;\nconst c = `\\x3cSCRIPT>`;\nreturn { b, c };\n})();\n"
        "const module_a_2e_js = (() => {\n"
        "const { b } = module_b_2d_2_2e_js;\nconst a = b;\nreturn { a };\n})();\n"
        "const module_entry_2e_js = (() => {\n"
        "// Adds.\nconst { a } = module_a_2e_js;\n"
        "const { b, c } = module_b_2d_2_2e_js;\nalert(a + b);\n})();\n"
    )
    data = dict(
        re.findall(r'<script type="application/octet-stream;base64" data-name="(.*?)">(.*?)</script>', text)
    )
    assert data == {"data.json": base64.b64encode(b'{"a": "</script>"}').decode(), "empty.bin": ""}


REFUSED: dict[str, tuple[dict[str, bytes | Path], str]] = {
    "missing": (
        {"b-2.js": b'import { d } from "./d.js";\n'},
        "b-2.js needs d.js, which is not among the files",
    ),
    "ring": (
        {"b-2.js": b'import { a } from "./a.js";\n'},
        "modules import each other: entry.js → a.js → b-2.js → a.js",
    ),
    "default": (
        {"b-2.js": b"export default 1;\n"},
        "b-2.js, line 1: 'export default 1;' cannot be in a single file",
    ),
    "whole": ({"a.js": b'import * as b from "./b-2.js";\n'}, r"a.js, line 1: .* cannot be in a single file"),
    "meta": ({"a.js": b"const a = import.meta.url;\nexport { a };\n"}, "a.js, line 1"),
    "early": ({"a.js": b"const a = 1;\nexport { a };\nalert();\n"}, "a.js, line 2"),
    "body": ({"index.html": b"<p>words"}, "index.html has no </body>"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fold_is_refused(name: str) -> None:
    changed, words = REFUSED[name]
    with pytest.raises(ArgumentError, match=words):
        folded(FILES | changed)


@pytest.mark.parametrize("kind", FACTS)
def test_every_page_folds(kind: str) -> None:
    runner = Path(runtime.__file__).parent / "runner.js"
    files: dict[str, bytes | Path] = {"runner.js": runner, "model.js": b"", **page_files(kind, FACTS[kind])}
    text = folded(files)
    assert f"const module_page_5f_{kind}_2e_js" in text
    assert "const module_runner_2e_js" in text
    assert re.findall(r'(?:src|href)="(?!data:,)', text) == []


def test_large_files_go_through_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    part = 3 << 18
    monkeypatch.setattr(single_file, "PART", part)
    weights = tmp_path / "weights.safetensors"
    content = bytes(range(256)) * (61 * part // 3 // 256)
    weights.write_bytes(content)
    out = tmp_path / "one.html"
    write_single_file(FILES, out)  # what is imported for it is not counted
    tracemalloc.start()
    try:
        write_single_file(FILES | {"weights.safetensors": weights}, out)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 6 * part
    parts = re.findall(rb'data-name="weights.safetensors">(.*?)</script>', out.read_bytes())
    assert len(parts) == 21
    assert b"".join(map(base64.b64decode, parts)) == content


def test_a_single_file_runs_from_a_disk(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    pytest.importorskip("fcntl")  # pipes to a browser are made for POSIX only
    browser = request.getfixturevalue("browser")
    files: dict[str, bytes | Path] = {**mock_files("plain")}
    content = bytes(range(251)) * (PART // 200)
    files |= {
        "runner.js": (MOCKS / "runner.js").read_bytes(),
        "weights.safetensors": content,
        "plan.json": json.dumps(json.loads(PLAN) | {"name": "</script> & 名"}).encode(),
    }
    write_single_file(files, tmp_path / "one.html")
    page = browser.page()
    page.open(tmp_path / "one.html")
    page.wait_for(READY)
    seen = page.evaluate("seen")
    assert seen["plan"] == "</script> & 名"
    assert (seen["bytes"], seen["sum"]) == (len(content), sum(content) % 65521)
    assert seen["loaded"] == [PART, len(content)]
    assert seen["markup"] == "</script><!--<script>"
    page.evaluate("document.querySelector('[data-input=rate]').value = '3'; run.click()")
    page.evaluate("document.querySelector('[data-input=x]').value = '1 2 3 4 5 6'; run.click()")
    page.settle()
    assert page.evaluate("document.querySelector('.result tbody').innerText.split(/\\s+/)") == [
        *("0", "3", "6", "9"),
        *("1", "12", "15", "18"),
    ]
    assert (page.errors(), page.requests()) == ([], [])


@pytest.mark.web
def test_an_export_runs_from_a_disk_in_both_browsers(any_browser: DrivenBrowser, tmp_path: Path) -> None:
    layer = wg.nn.Linear(3, 4)
    x = wg.asarray([[1.0, 2.0, 3.0]])
    bundle = Bundle("layer")
    bundle.add("run", layer, (x,))
    bundle.write(tmp_path)
    facts = {"title": "A layer"}
    files: dict[str, bytes | Path] = {path.name: path for path in tmp_path.iterdir()}
    write_single_file({**files, **page_files("plain", facts)}, tmp_path / "one.html")
    page = any_browser.page()
    page.open(tmp_path / "one.html")
    page.wait_for(READY)
    assert page.errors() == []
    assert page.evaluate("problem.hidden")
    page.evaluate("document.querySelector('textarea').value = '1 2 3', run.click()")
    page.wait_for("document.querySelector('.result') !== null")
    shown = page.evaluate(
        "[...document.querySelectorAll('.result td')].map((each) => Number(each.innerText))"
    )
    assert shown == pytest.approx(layer(x).tolist()[0], abs=1e-4)
    assert page.requests() == []
