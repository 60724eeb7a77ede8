"""Cross-checks with other libraries: `python -m scripts.peer_tests NAME [pytest's arguments]`.

In: pyproject.toml and the versions below. Out: .venv-NAME, an environment of its own with torch for CPUs and
the library, made once; then pytest's exit code for the tests that compare with it, those that take minutes
too.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from scripts.environments import interpreter
from scripts.system import ROOT
from scripts.torch_tests import ensure

__all__ = ["SUITES", "Suite", "main"]


@dataclass(frozen=True, slots=True)
class Suite:
    """A library, with what it needs to be compared with, and the tests that do so."""

    folder: Path
    packages: tuple[str, ...]
    tests: tuple[str, ...]


SUITES: Mapping[str, Suite] = {
    "transformers": Suite(
        ROOT / ".venv-transformers",
        ("transformers==5.22.2", "accelerate==1.15.0"),  # which reads GGUF files with it
        ("tests/transformers", "tests/models/test_smollm2.py"),
    ),
    "diffusers": Suite(
        ROOT / ".venv-diffusers",
        (
            "diffusers==0.42.0",
            "transformers==5.23.0",
            "accelerate==1.15.0",
            "peft==0.21.2",
            "sentencepiece==0.2.3",
            "protobuf==7.36.2",  # which T5's tokenizer is read with
        ),
        ("tests/diffusers",),
    ),
}


def main(arguments: Sequence[str]) -> int:
    """Make the environment if need be, and run the tests."""
    suite = SUITES[arguments[0]]
    if code := ensure(suite.folder, suite.packages):
        return code
    command = [str(interpreter(suite.folder)), "-m", "pytest", "-m", "", *suite.tests, *arguments[1:]]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
