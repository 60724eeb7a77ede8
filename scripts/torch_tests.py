"""The cross-check against torch: `python -m scripts.torch_tests [pytest's arguments]`.

In: pyproject.toml and the version of torch below. Out: .venv-torch, an environment of its own with torch for
CPUs, made once; then pytest's exit code for tests/torch. scripts/peer_tests.py makes others with it.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from scripts import environments
from scripts.environments import interpreter
from scripts.system import ROOT, say

__all__ = ["FOLDER", "TORCH", "ensure", "install_torch", "main"]

TORCH = "torch==2.13.0+cpu"
EXPECT = "expecttest==0.3.0"  # which torch's own tables of tests import
WHEELS = (
    "https://download.pytorch.org/whl/cpu"  # where wheels for CPUs are kept; an own index may have them too
)
FOLDER = ROOT / ".venv-torch"


def install_torch(pip: Callable[..., int]) -> int:
    """Have pip install torch, from its own index or from torch's; 0, or the code of what failed."""
    code = pip(TORCH, quiet=True) and pip(TORCH, "--index-url", WHEELS)
    if code:
        say(f"pip found no {TORCH}, neither in its own index nor at {WHEELS}")
    return code


def ensure(folder: Path, more: Sequence[str] = ()) -> int:
    """Make an environment with torch and more packages, once; 0, or the code of what failed."""

    def install(pip: Callable[..., int]) -> int:
        return install_torch(pip) or pip(*more, "-e", ".[dev]")

    versions = (TORCH, *more)
    return environments.ensure(folder, " ".join(versions), versions, install)


def main(arguments: Sequence[str]) -> int:
    """Make the environment if need be, and run the tests."""
    if code := ensure(FOLDER, (EXPECT,)):
        return code
    command = [str(interpreter(FOLDER)), "-m", "pytest", "tests/torch", *arguments]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
