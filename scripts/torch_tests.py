"""The cross-check against torch: `python -m scripts.torch_tests [pytest's arguments]`.

In: pyproject.toml and the version of torch below. Out: .venv-torch, an environment of its own with torch for
CPUs, made once; then pytest's exit code for tests/torch. scripts/transformers_tests.py makes another with it.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from scripts.system import ROOT, say

__all__ = ["ensure", "interpreter", "main"]

TORCH = "torch==2.13.0+cpu"
WHEELS = (
    "https://download.pytorch.org/whl/cpu"  # where wheels for CPUs are kept; an own index may have them too
)
FOLDER = ROOT / ".venv-torch"


def interpreter(folder: Path) -> Path:
    """The Python of an environment."""
    return folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def fingerprint(pyproject: Path, more: Sequence[str]) -> str:
    """What the environment depends on: the project file, the interpreter, and the packages' versions."""
    versions = " ".join((sys.version, TORCH, *more))
    return hashlib.sha256(pyproject.read_bytes() + versions.encode()).hexdigest()


def ensure(folder: Path, more: Sequence[str] = ()) -> int:
    """Make an environment with torch and more packages, unless its stamp says that it is there.

    0, or the code of what failed.
    """
    stamp, wanted = folder / "webgrad-stamp", fingerprint(ROOT / "pyproject.toml", more)
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == wanted:
        return 0
    say(f"making {folder.name} with {' '.join((TORCH, *more))}")
    if code := subprocess.run([sys.executable, "-m", "venv", str(folder)], check=False).returncode:
        return code
    pip = [str(interpreter(folder)), "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
    code = subprocess.run([*pip, TORCH], check=False, stderr=subprocess.DEVNULL).returncode
    code = code and subprocess.run([*pip, TORCH, "--index-url", WHEELS], check=False).returncode
    if code:
        say(f"pip found no {TORCH}, neither in its own index nor at {WHEELS}")
        return code
    if code := subprocess.run([*pip, *more, "-e", ".[dev]"], cwd=ROOT, check=False).returncode:
        return code
    stamp.write_text(wanted, encoding="utf-8")
    return 0


def main(arguments: Sequence[str]) -> int:
    """Make the environment if need be, and run the tests."""
    if code := ensure(FOLDER):
        return code
    command = [str(interpreter(FOLDER)), "-m", "pytest", "tests/torch", *arguments]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
