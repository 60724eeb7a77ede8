"""The `webgrad` command: `webgrad info`, `webgrad pull` and the others of `COMMANDS`, `webgrad --version`.

In: the command line. Out: an exit code. Each command is a module with `main(arguments) -> int`, imported only
when it is asked for, so that `--help` and `--version` are quick and touch no GPU.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Mapping, Sequence

from .. import __version__
from ..errors import WebgradError

__all__ = ["main"]

# command → (module, what it does); arguments after the command go to the module as they are
COMMANDS: Mapping[str, tuple[str, str]] = {
    "info": ("webgrad.cli.info", "show the devices, their features, and the active settings"),
    "demo": ("webgrad.cli.demo", "run a small computation on the GPU and say how it went"),
    "pull": ("webgrad.cli.pull", "bring a model to this machine"),
    "models": ("webgrad.cli.models", "list, show or remove the models on this machine"),
    "tune": ("webgrad.cli.tune", "list or clear the kernel choices that were measured and kept"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; errors webgrad raises on purpose become a message and exit code 2."""
    parsed = _parser().parse_args(arguments)
    module, _ = COMMANDS[parsed.command]
    try:
        return int(importlib.import_module(module).main(parsed.rest))
    except WebgradError as error:
        print(f"webgrad {parsed.command}: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader, `head` say, has seen enough
        sys.stderr.close()
        return 0


def _parser() -> argparse.ArgumentParser:
    width = max(map(len, COMMANDS))
    parser = argparse.ArgumentParser(
        prog="webgrad",
        usage="webgrad [--help] [--version] command ...",
        description="A tensor and machine-learning library for every GPU.",
        epilog="commands:\n" + "\n".join(f"  {name:{width}}  {does}" for name, (_, does) in COMMANDS.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"webgrad {__version__}")
    parser.add_argument("command", choices=COMMANDS, help=argparse.SUPPRESS)
    # Each module parses its own options, --help included.
    parser.add_argument("rest", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return parser
