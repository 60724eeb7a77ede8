"""The cross-check against diffusers: `python -m scripts.diffusers_tests [pytest's arguments]`.

In: pyproject.toml and the versions below. Out: .venv-diffusers, an environment of its own with torch for CPUs
and diffusers, made once; then pytest's exit code for tests/diffusers.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

from scripts.environments import interpreter
from scripts.system import ROOT
from scripts.torch_tests import ensure

__all__ = ["FOLDER", "PACKAGES", "main"]

PACKAGES = ("diffusers==0.42.0", "transformers==5.23.0", "accelerate==1.15.0")
FOLDER = ROOT / ".venv-diffusers"


def main(arguments: Sequence[str]) -> int:
    """Make the environment if need be, and run the tests."""
    if code := ensure(FOLDER, PACKAGES):
        return code
    command = [str(interpreter(FOLDER)), "-m", "pytest", "-m", "", "tests/diffusers", *arguments]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
