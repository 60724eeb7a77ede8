"""`webgrad profile script.py | model.onnx`: where time and memory go, as a table, a trace and a page.

In: a script and its own arguments, or an ONNX model, whose first two calls, which compile, are not seen. Out:
the table on standard output, a trace for Perfetto and a page beside it. The exit code is the script's own.
"""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from .. import set_default_device
from ..tools.profiling.profile import profile
from ..tools.profiling.table import as_text
from .onnx_models import add_inputs, is_onnx, load, random_inputs
from .options import Parser, add_device, add_json, count
from .run import array_of
from .script import add_script, check_script, output_aside, run_script
from .text import encodable

__all__ = ["main"]


def main(arguments: Sequence[str]) -> int:
    """Run a script, or calls of a model, inside of a profile."""
    parser = Parser(
        prog="webgrad profile", description="Show where the time and memory of a script or an ONNX model go."
    )
    add_device(parser)
    add_json(parser)
    parser.add_argument("--trace", metavar="PATH", help="where the trace goes (SCRIPT.trace.json)")
    parser.add_argument("--html", metavar="PATH", help="where the page goes (SCRIPT.profile.html)")
    parser.add_argument("--no-files", action="store_true", help="write neither of them")
    parser.add_argument("--kernels", type=count, default=20, help="how many kernels the table has (20)")
    parser.add_argument("--runs", type=count, default=3, metavar="N", help="calls of an ONNX model (3)")
    add_inputs(parser)
    add_script(parser)
    options = parser.parse_args(arguments)
    if is_onnx(options.script) and options.arguments:  # a model has none of its own
        options = parser.parse_args([*options.arguments, options.script], options)
    run = _calls_of(options) if is_onnx(options.script) else _script
    name = Path(options.script).stem
    if run is _script:
        check_script(options.script)
    paths = [options.trace or f"{name}.trace.json", options.html or f"{name}.profile.html"]
    found = profile(
        *(() if options.no_files else paths), title=" ".join([options.script, *options.arguments])
    )
    if options.device is not None:
        set_default_device(options.device)
    with found, output_aside(options.json):
        code = run(options)
    if options.json:
        print(json.dumps(found.as_dict()))
        return code
    text = as_text(found.summary, options.kernels)
    print(encodable(f"\n{text}", sys.stdout.encoding or "ascii"))
    if not options.no_files:
        print(f"\ntrace: {paths[0]} (open it in Perfetto)\npage:  {paths[1]}")
    return code


def _script(options: Any) -> int:
    return run_script(options.script, options.arguments)


def _calls_of(options: Any) -> Callable[[Any], int]:
    """Calls of a model that was called twice: compiled, and captured."""
    model = load(options.script, options.device)
    given = random_inputs(model, options)

    def run(options: Any) -> int:
        for _ in range(options.runs):
            for value in model(**given).values():
                array_of(value)
        return 0

    run(Namespace(runs=2))
    return run
