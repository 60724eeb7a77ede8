"""`webgrad profile script.py`: where a script's time and memory go, as a table, a trace and a page.

In: a script and its own arguments. Out: the table on standard output, a trace for Perfetto and a page beside
it. The exit code is the script's own.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from .. import set_default_device
from ..tools.profiling.profile import profile
from ..tools.profiling.table import as_text
from .options import Parser, add_device, add_json, count
from .script import add_script, check_script, output_aside, run_script
from .text import encodable

__all__ = ["main"]


def main(arguments: Sequence[str]) -> int:
    """Run a script inside of a profile."""
    parser = Parser(prog="webgrad profile", description="Show where a script's time and memory go.")
    add_device(parser)
    add_json(parser)
    parser.add_argument("--trace", metavar="PATH", help="where the trace goes (SCRIPT.trace.json)")
    parser.add_argument("--html", metavar="PATH", help="where the page goes (SCRIPT.profile.html)")
    parser.add_argument("--no-files", action="store_true", help="write neither of them")
    parser.add_argument("--kernels", type=count, default=20, help="how many kernels the table has (20)")
    add_script(parser)
    options = parser.parse_args(arguments)
    name = check_script(options.script).stem
    paths = [options.trace or f"{name}.trace.json", options.html or f"{name}.profile.html"]
    found = profile(
        *(() if options.no_files else paths), title=" ".join([options.script, *options.arguments])
    )
    if options.device is not None:
        set_default_device(options.device)
    with found, output_aside(options.json):
        code = run_script(options.script, options.arguments)
    if options.json:
        print(json.dumps(found.as_dict()))
        return code
    text = as_text(found.summary, options.kernels)
    print(encodable(f"\n{text}", sys.stdout.encoding or "ascii"))
    if not options.no_files:
        print(f"\ntrace: {paths[0]} (open it in Perfetto)\npage:  {paths[1]}")
    return code
