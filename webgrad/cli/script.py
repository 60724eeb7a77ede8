"""A user's script, run by a command of ours: `webgrad profile script.py --its-own options`.

In: the script's path and its arguments. Out: its exit code. The script sees itself as __main__, its own
arguments and its own folder first on the path, as `python script.py` would have it.
"""

from __future__ import annotations

import argparse
import contextlib
import runpy
import sys
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..errors import ArgumentError

__all__ = ["add_script", "check_script", "output_aside", "run_script"]


def add_script(parser: argparse.ArgumentParser) -> None:
    """The arguments `script` and `arguments`: everything behind the script's name is the script's own."""
    parser.add_argument("script", help="the Python script to run")
    rest = parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its own arguments")
    rest.required = False  # else a missing script is told as two missing arguments


@contextlib.contextmanager
def output_aside(aside: bool) -> Iterator[None]:
    """Let what a script prints go to stderr, where stdout is for JSON."""
    with contextlib.redirect_stdout(sys.stderr) if aside else contextlib.nullcontext():
        yield


def check_script(script: str) -> Path:
    """The script's path; for commands that write files, before they begin to."""
    path = Path(script)
    if not path.is_file():
        raise ArgumentError(f"there is no script {script}: give the path of a Python file")
    return path


def run_script(script: str, arguments: Sequence[str]) -> int:
    """Run a script to its end; an error of its own is printed as Python does, and gives 1, Ctrl-C 130."""
    path = check_script(script)
    before, folders = sys.argv, sys.path.copy()
    sys.argv, sys.path = [script, *arguments], [str(path.resolve().parent), *sys.path]
    try:
        runpy.run_path(str(path), run_name="__main__")
    except SystemExit as end:
        return _code(end)
    except KeyboardInterrupt:  # how many a training ends: what was seen until then is shown
        return 130
    except Exception:
        _print_error()
        return 1
    finally:
        sys.argv, sys.path[:] = before, folders
    return 0


def _code(end: SystemExit) -> int:
    """The exit code that Python makes of `sys.exit(...)`."""
    if end.code is None or isinstance(end.code, int):
        return end.code or 0
    print(end.code, file=sys.stderr)
    return 1


def _print_error() -> None:
    """The traceback without the frames above the script's own."""
    kind, error, trace = sys.exc_info()
    ours = {__file__, runpy.__file__}
    while trace is not None and (trace.tb_frame.f_code.co_filename in ours or "runpy" in str(trace.tb_frame)):
        trace = trace.tb_next
    traceback.print_exception(kind, error, trace)
