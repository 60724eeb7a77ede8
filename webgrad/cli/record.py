"""`webgrad record script.py [arguments]`: run a script and keep every distinct dispatch in a file.

In: a script and what it takes; a last `-o name.zip` may also stand behind that. Out: a recording that
`webgrad replay` runs again; it holds what had run even where the script fails. The exit code is the script's
own, or 2 where nothing ran on a GPU.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import webgrad as wg

from ..tools.gpu_choice import gpu_for
from .options import Parser, add_device, count
from .script import add_script, check_script, run_script

__all__ = ["main"]

MEBIBYTE = 1 << 20


def main(arguments: Sequence[str]) -> int:
    """Run the script inside of `wg.record`."""
    parser = Parser(
        prog="webgrad record",
        usage="webgrad record [-o FILE] [--limit MIB] [--portable] [--device D] script.py ... [-o FILE.zip]",
        description=__doc__.splitlines()[0],
        epilog="Options come before the script; what follows it is the script's own.",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="where it goes (default: run.zip)")
    parser.add_argument(
        "--limit", type=count, default=2048, metavar="MIB", help="buffers kept, in MiB (default: 2048)"
    )
    parser.add_argument(
        "--portable", action="store_true", help="only kernels that run on every adapter; slower, maybe"
    )
    add_device(parser)
    add_script(parser)
    options = parser.parse_args(arguments)
    check_script(options.script)
    wg.set_default_device(gpu_for(options.device, "kernels are recorded on GPUs only"))
    output, given = _output(options.output, options.arguments)
    with wg.record(output, limit=options.limit * MEBIBYTE, portable=options.portable) as recording:
        code = run_script(options.script, given)
    print(recording, file=sys.stderr)
    if code and options.portable:  # the adapter has what the script's error says it has not
        print(
            "webgrad record: --portable leaves out int64, float64 and all that not every adapter has",
            file=sys.stderr,
        )
    return code or (0 if recording.distinct else 2)


def _output(named: str | None, arguments: list[str]) -> tuple[str, list[str]]:
    """Where the recording goes, and what is the script's: a last `-o name.zip` is ours, if no other is."""
    if named is None and arguments[-2:-1] == ["-o"] and arguments[-1].endswith(".zip"):
        return arguments[-1], arguments[:-2]
    return named or "run.zip", arguments
