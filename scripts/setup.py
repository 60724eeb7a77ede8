"""Make the project's virtual environment: `python -m scripts.setup [--dev]`.

In: pyproject.toml. Out: .venv with webgrad installed in place, with what language models need, and with the
development tools for --dev.
Nothing is done where the stamp in .venv says that this pyproject.toml is installed already.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from scripts.system import ROOT, VENV, apt_prefix, run_apt, say, venv_python

__all__ = ["main", "setup"]

STAMP = VENV / "webgrad-stamp.json"
OLDEST = (3, 11)


class SetupError(Exception):
    """The environment cannot be made; the message says what to do."""


def fingerprint(pyproject: Path) -> str:
    """What an installed environment depends on: the project file and the interpreter."""
    return hashlib.sha256(pyproject.read_bytes() + sys.version.encode()).hexdigest()


def is_current(stamp: Path, wanted: str, *, dev: bool) -> bool:
    """Whether the stamp says that `wanted` is installed, with development tools where they are asked for."""
    try:
        record = json.loads(stamp.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return record.get("fingerprint") == wanted and (record.get("dev", False) or not dev)


def setup(*, dev: bool) -> None:
    """Bring .venv up to date."""
    if sys.version_info < OLDEST:
        raise SetupError(
            f"Python {'.'.join(map(str, OLDEST))} or newer is needed; this is {sys.version.split()[0]}."
        )
    wanted = fingerprint(ROOT / "pyproject.toml")
    if is_current(STAMP, wanted, dev=dev) and _works(venv_python(), ""):
        return
    if not _works(venv_python(), "import pip"):
        _make_venv()
    say(f"installing into .venv ({'with' if dev else 'without'} development tools)")
    target = ".[dev]" if dev else ".[lm]"
    command = [
        str(venv_python()),
        "-m",
        "pip",
        "install",
        "-qq",
        "--disable-pip-version-check",
        "-e",
        target,
    ]
    if subprocess.run(command, cwd=ROOT, check=False).returncode != 0:
        raise SetupError("pip could not install webgrad's dependencies; its message is above.")
    STAMP.write_text(json.dumps({"fingerprint": wanted, "dev": dev}), encoding="utf-8")


def _works(python: Path, code: str) -> bool:
    if not python.exists():
        return False
    return subprocess.run([str(python), "-c", code], capture_output=True, check=False).returncode == 0


def _make_venv() -> None:
    if any(importlib.util.find_spec(name) is None for name in ("venv", "ensurepip")):
        _install_venv_module()
    say(f"making .venv with Python {sys.version.split()[0]}")
    shutil.rmtree(VENV, ignore_errors=True)
    if subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=False).returncode != 0:
        raise SetupError(f"{sys.executable} -m venv failed; its message is above.")


def _install_venv_module() -> None:
    package = f"python{sys.version_info.major}.{sys.version_info.minor}-venv"
    prefix = apt_prefix()
    if prefix is None:
        raise SetupError(
            f"this Python cannot make virtual environments; run: apt-get install python3-venv {package}"
        )
    say(f"installing {package}")
    run_apt(prefix, "update")
    if problem := run_apt(prefix, "install", "-y", "python3-venv", package):
        raise SetupError(f"apt-get install python3-venv {package} failed: {problem}")
    importlib.invalidate_caches()


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="scripts.setup", description="Make .venv and install webgrad in it."
    )
    parser.add_argument("--dev", action="store_true", help="install the development tools too")
    try:
        setup(dev=parser.parse_args(arguments).dev)
    except SetupError as error:
        say(str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
