"""Give the tests their packages of npm: scripts/web/node_modules, from the lock file there.

In: whether all of them are wanted, or only Dawn with its compiler Tint, which `make test` asks. Out: the
folder in step with the lock. It never fails a run: what it cannot do it says, and the tests say which of them
were skipped.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

from scripts.browser import find
from scripts.system import ROOT, say

__all__ = ["FOLDER", "ensure_packages", "lacking"]

FOLDER = ROOT / "scripts" / "web"
SECONDS = 300  # a mirror may be slow, and an npm without a connection waits for minutes


def ensure_packages(folder: Path = FOLDER, *, everything: bool = False) -> None:
    """Install the packages, once; where all of them are there, so are the few."""
    lock, npm = folder / "package-lock.json", shutil.which("npm")
    stamp = folder / "node_modules" / ".webgrad-stamp"
    few = hashlib.sha256(lock.read_bytes()).hexdigest()
    full = f"{few} with Pyodide and TypeScript"
    there = stamp.read_text(encoding="utf-8") if stamp.is_file() else ""
    if there == full or (there == few and not everything):
        return
    without = "the tests with node (Tint, Dawn, Pyodide) will be skipped"
    if npm is None:
        say(f"npm is not on PATH: {without}")
        return
    say(f"installing {'everything' if everything else 'Tint, the second shader compiler,'} of scripts/web")
    command = [npm, "ci", "--silent", "--no-audit", "--no-fund", "--prefix", str(folder)]
    command += [] if everything else ["--omit=dev"]
    try:
        failed = subprocess.run(command, cwd=ROOT, check=False, timeout=SECONDS).returncode
    except subprocess.TimeoutExpired:
        failed = 1
    if failed:
        say(f"npm ci failed: {without}")
        return
    stamp.write_text(full if everything else few, encoding="utf-8")


def lacking(package: str, folder: Path = FOLDER) -> str:
    """What to do where a package is not there; "" where it is."""
    if find("node") is None:
        return "node was not found; `python -m scripts.browser node` installs it on Debian, NODE may name it"
    if not (folder / "node_modules" / package).is_dir():
        return f"npm's {package} is not there: run `npm ci --prefix scripts/web`"
    return ""
