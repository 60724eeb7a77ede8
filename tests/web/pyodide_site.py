"""Pyodide with the wheel of this checkout, for tests: a folder that is served, and pages and workers in it.

In: examples/browser, its files as its fetch.py puts them there, and programs. Out: what programs call
`result`.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from scripts.system import ROOT
from tests.pages import DrivenPage

__all__ = ["EXAMPLE", "Run", "make_site", "python_in_page", "python_in_worker"]

EXAMPLE = ROOT / "examples" / "browser"
Run = Callable[[str], Any]


def make_site(folder: Path) -> Path:
    """A copy of examples/browser with all of its files, and what tests add."""
    spec = importlib.util.spec_from_file_location("browser_fetch", EXAMPLE / "fetch.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    site = folder / "site"
    shutil.copytree(EXAMPLE, site, ignore=shutil.ignore_patterns("files", "__pycache__"))
    module.fetch(site / "files")
    shutil.copyfile(Path(__file__).with_name("python.js"), site / "python.js")
    (site / "blank.html").write_text("<!doctype html><link rel=icon href='data:,'>", encoding="utf-8")
    return site


def python_in_page(page: DrivenPage, url: str, *, suspending: bool = True) -> Run:
    """Python on a page; without `suspending` as in a browser that cannot suspend it."""
    page.open(f"{url}/blank.html")
    if not suspending:
        page.evaluate("delete WebAssembly.Suspending, delete WebAssembly.promising")
    page.evaluate("import('./python.js').then((module) => { globalThis.run = module.run; })")
    return lambda text: json.loads(page.evaluate(f"run({json.dumps(text)})"))


def python_in_worker(page: DrivenPage, url: str) -> Run:
    """Python in a worker of a page."""
    page.open(f"{url}/blank.html")
    page.evaluate(
        """(() => {
        const worker = new Worker("./python.js", { type: "module" });
        globalThis.run = (text) => new Promise((go, refuse) => {
          worker.onmessage = ({ data: [, { value, error }] }) => error ? refuse(new Error(error)) : go(value);
          worker.onerror = (event) => refuse(new Error(event.message));
          worker.postMessage([0, text]);
        });
        })()"""
    )
    return lambda text: json.loads(page.evaluate(f"run({json.dumps(text)})"))
