"""The packages of scripts/web: TypeScript finds mistakes, Pyodide starts in both browsers and waits."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.pages import DrivenPage
from tests.web.typescript import type_errors
from webgrad.web.server import serving

pytestmark = pytest.mark.web

DECLARED = """export interface Options { gpu?: GPU; onProgress?: (at: { stage: string }) => void }
export declare function open(options?: Options): Promise<{ run(x: Float32Array): Promise<Float32Array> }>;
"""
USED = """import { open } from "./model.js";
const model = await open({ gpu: navigator.gpu, onProgress: ({ stage }) => console.log(stage) });
const result: Float32Array = await model.run(new Float32Array(4));
console.log(result);
"""
WAITS = """(async () => {
  const { loadPyodide } = await import("./pyodide.mjs");
  const pyodide = await loadPyodide();
  return pyodide.runPythonAsync(`
import sys, asyncio
from pyodide.ffi import can_run_sync, run_sync
async def later():
    await asyncio.sleep(0.01)
    return 3
[can_run_sync(), run_sync(later()), list(sys.version_info[:2])]
`).then((found) => found.toJs());
})()"""


@pytest.mark.usefixtures("typescript")
def test_typescript_finds_mistakes(tmp_path: Path) -> None:
    (tmp_path / "model.d.ts").write_text(DECLARED, encoding="utf-8")
    user = tmp_path / "user.ts"
    user.write_text(USED, encoding="utf-8")
    assert type_errors([user]) == []
    user.write_text(USED.replace("result: Float32Array", "result: string"), encoding="utf-8")
    (error,) = type_errors([user])
    assert "user.ts(3,7): error TS2322" in error
    (tmp_path / "model.d.ts").write_text(
        DECLARED.replace("Options { gpu", "Options { : gpu"), encoding="utf-8"
    )
    assert any("model.d.ts(1," in each for each in type_errors([user]))


def test_pyodide_waits_for_promises(web_page: DrivenPage, pyodide_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("<!doctype html><link rel=icon href='data:,'>", encoding="utf-8")
    shutil.copytree(pyodide_folder, tmp_path, dirs_exist_ok=True)
    with serving(tmp_path) as url:
        web_page.open(url)
        can, waited, version = web_page.evaluate(WAITS)
        assert (can, waited) == (True, 3)
        assert tuple(version) >= (3, 11)
        assert web_page.errors() == []
        assert [each for each in web_page.requests() if not each.startswith(url)] == []
