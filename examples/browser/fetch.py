"""Puts what the page needs beside it: Python for browsers (Pyodide, of npm) and the wheel of this checkout.

    python examples/browser/fetch.py

In: scripts/web/package-lock.json, whose checksums npm compares, and the checkout. Out: the folder files.
After that the page asks no other host for anything.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1]))

from scripts.npm import FOLDER, ensure_packages  # noqa: E402  (the checkout is on the path only now)
from scripts.wheel import build_wheel  # noqa: E402  (the same)

FILES = HERE / "files"
# The interpreter and its library; what else the package has is for node and for other pages.
PYODIDE = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "pyodide-lock.json", "python_stdlib.zip")


def fetch(folder: Path = FILES) -> None:
    """Fill the folder; what is there already is replaced."""
    ensure_packages(everything=True)
    package = FOLDER / "node_modules" / "pyodide"
    if not package.is_dir():
        sys.exit("npm's pyodide is not there: install node with npm, and run this again")
    folder.mkdir(exist_ok=True)
    for name in PYODIDE:
        shutil.copyfile(package / name, folder / name)
    wheel = build_wheel(folder)
    (folder / "files.json").write_text(json.dumps({"wheel": wheel.name}) + "\n", encoding="utf-8")


if __name__ == "__main__":
    fetch()
    print(f"{FILES} is filled; now: webgrad serve-static {HERE} --isolated")
