"""`webgrad replay run.zip`: run a recording's dispatches again, verify what they write, and time them.

In: a recording, a device. Out: a table, the costliest kernel first, or JSON. The exit code is 1 where
something differs, and 2 where the file cannot be read, or nothing in it was run.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

import webgrad as wg

from .options import Parser, add_device, add_json, count
from .text import encodable

__all__ = ["main"]


def main(arguments: Sequence[str]) -> int:
    """Replay a recording; 0 when nothing differs."""
    parser = Parser(prog="webgrad replay", description=__doc__.splitlines()[0])
    parser.add_argument("recording", help="a file that wg.record or `webgrad record` made")
    parser.add_argument("--repeat", type=count, default=5, metavar="N", help="time each N times (default: 5)")
    parser.add_argument(
        "--only", default="*", metavar="PATTERN", help="only kernels of such names: 'matmul*'"
    )
    parser.add_argument("--no-verify", action="store_true", help="time only; results are not compared")
    add_device(parser)
    add_json(parser)
    options = parser.parse_args(arguments)
    report = wg.replay(
        options.recording,
        options.device,
        repeat=options.repeat,
        only=options.only,
        verify=not options.no_verify,
    )
    text = json.dumps(report.as_dict(), indent=2) if options.json else str(report)
    print(encodable(text, sys.stdout.encoding or "ascii"))
    if not report.rows:
        why = f"no kernel has a name like {options.only!r}" if report.left_out else "the recording is empty"
        print(f"webgrad replay: {why}: nothing was run", file=sys.stderr)
        return 2
    return 0 if report.right else 1
