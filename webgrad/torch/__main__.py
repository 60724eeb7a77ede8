"""A program for PyTorch, run with webgrad.torch in torch's place.

    python -m webgrad.torch program.py --its --arguments
    python -m webgrad.torch -m package.module --its --arguments

In: a script or a module, and its arguments. Out: what it does. The invariant: torch is not imported.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from .imports import install

USAGE = "usage: python -m webgrad.torch (program.py | -m module) [arguments]"


def main(arguments: list[str]) -> None:
    """Run a program with these arguments."""
    if not arguments or arguments == ["-m"] or arguments[0] in ("-h", "--help"):
        print(USAGE)
        sys.exit(0 if arguments and arguments != ["-m"] else 2)
    install()
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return
    program = Path(arguments[0])
    if not program.exists():
        sys.exit(f"webgrad.torch: there is no file {program}")
    sys.argv = arguments
    sys.path[0] = str(program.absolute().parent)
    runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
