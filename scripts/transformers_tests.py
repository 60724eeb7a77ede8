"""The cross-check against transformers: `python -m scripts.transformers_tests [pytest's arguments]`.

In: pyproject.toml and the versions below. Out: .venv-transformers, an environment of its own with torch for
CPUs and transformers, made once; then pytest's exit code for tests/transformers and every prompt of SmolLM2.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

from scripts.environments import interpreter
from scripts.system import ROOT
from scripts.torch_tests import ensure

__all__ = ["FOLDER", "PACKAGES", "main"]

PACKAGES = ("transformers==5.22.2", "accelerate==1.15.0")  # which reads GGUF files with it
FOLDER = ROOT / ".venv-transformers"
TESTS = ("tests/transformers", "tests/models/test_smollm2.py")


def main(arguments: Sequence[str]) -> int:
    """Make the environment if need be, and run the tests, those that take minutes too."""
    if code := ensure(FOLDER, PACKAGES):
        return code
    command = [str(interpreter(FOLDER)), "-m", "pytest", "-m", "", *TESTS, *arguments]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
