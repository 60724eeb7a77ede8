"""Asking TypeScript what it thinks of declarations and of what uses them.

In: .ts and .d.ts files. Out: the compiler's errors, none where all is well. Strict, with the types that
browsers have, WebGPU's among them.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from scripts.browser import find
from scripts.npm import FOLDER
from tests.limits import HANG

__all__ = ["type_errors"]

OPTIONS = (
    *("--noEmit", "--strict", "--pretty", "false", "--skipLibCheck", "false"),
    *("--target", "es2022", "--module", "esnext", "--moduleResolution", "bundler"),
    *("--lib", "es2022,dom,dom.iterable", "--types", ""),
)


def type_errors(files: Sequence[Path]) -> list[str]:
    """The compiler's lines for these files and what they import; tests ask for the fixture `typescript`."""
    compiler = FOLDER / "node_modules" / "typescript" / "bin" / "tsc"
    done = subprocess.run(
        [str(find("node")), str(compiler), *OPTIONS, *map(str, files)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=HANG,
        check=False,
    )
    lines = done.stdout.splitlines()
    # What it says without an exit code, or the other way round, must not pass for "all is well".
    return lines if lines or not done.returncode else [done.stderr or f"exit code {done.returncode}"]
