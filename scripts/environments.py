"""Environments of their own for tests that need more than the project does: each made once.

In: a folder, what it depends on, and how to install it. Out: a virtual environment there, with a stamp that
says what it was made for; nothing is done where the stamp is the same.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from scripts.system import ROOT, say

__all__ = ["ensure", "interpreter"]


def interpreter(folder: Path) -> Path:
    """The Python of an environment."""
    return folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def ensure(
    folder: Path, what: str, versions: Sequence[str], install: Callable[[Callable[..., int]], int]
) -> int:
    """Make an environment unless its stamp names this project file, this Python and these versions.

    `install` gets a function that runs pip with some arguments. 0, or the code of what failed.
    """
    stamp = folder / "webgrad-stamp"
    depends = (ROOT / "pyproject.toml").read_bytes() + " ".join((sys.version, *versions)).encode()
    wanted = hashlib.sha256(depends).hexdigest()
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == wanted:
        return 0
    say(f"making {folder.name} with {what}")
    if code := subprocess.run([sys.executable, "-m", "venv", str(folder)], check=False).returncode:
        return code

    def pip(*arguments: str, quiet: bool = False) -> int:
        command = [str(interpreter(folder)), "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
        errors = subprocess.DEVNULL if quiet else None
        return subprocess.run([*command, *arguments], cwd=ROOT, check=False, stderr=errors).returncode

    if code := install(pip):
        return code
    stamp.write_text(wanted, encoding="utf-8")
    return 0
