"""`webgrad generate MODEL PROMPT`: a language model goes on with a text.

In: a text, from the command line or a pipe. Out: what the model writes after it, on standard output while it
is made, and how quick it was on standard error; or both as one JSON object.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from .answers import report_json, report_text, show
from .options import Parser, add_device, add_json, add_settings, clean, settings_of
from .prompt import text_of
from .protocols import language_model
from .terminal import Output

__all__ = ["main"]


def main(arguments: Sequence[str]) -> int:
    """Write one continuation."""
    parser = Parser(
        prog="webgrad generate",
        description="Let a language model go on with a text, as it stands, without a chat template.",
    )
    parser.add_argument("model", metavar="MODEL", help="a name of the catalogue, a source, or a path")
    parser.add_argument("text", metavar="PROMPT", nargs="?", help="the text; - reads it from a pipe")
    parser.add_argument("--prompt", metavar="TEXT", help="the same, as chat has it")
    parser.add_argument("--quiet", action="store_true", help="without speeds")
    add_device(parser)
    add_json(parser, "print one JSON object with text, ids and report")
    add_settings(parser)
    options = parser.parse_args(arguments)
    if (options.text is None) == (options.prompt is None):
        parser.error("one PROMPT is needed: the text that the model is to go on with")
    given = options.text if options.prompt is None else options.prompt
    prompt = text_of(sys.stdin) if given == "-" else clean(given)
    if not prompt:
        parser.error("the prompt is empty: give the text that the model is to go on with")
    model = language_model(options.model, options.device, options.context)
    generation = model.generate(prompt, **settings_of(options))
    answer = show(generation, None if options.json else Output(sys.stdout), is_trimmed=False)
    if not answer.is_whole:
        return 130
    if options.json:
        record = {"text": answer.text, "ids": list(answer.ids), "report": report_json(answer.report)}
        print(json.dumps(record))
    elif not options.quiet:
        notes = Output(sys.stderr)
        notes.line(report_text(answer.report, model.device.name), notes.dim)
    return 0
