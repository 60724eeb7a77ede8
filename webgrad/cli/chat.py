"""`webgrad chat [MODEL]`: a conversation with a language model.

In: a terminal, lines of standard input, or one prompt. Out: answers on standard output while they are made,
and how quick they were: on a terminal below the answer, else on standard error.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import webgrad as wg

from ..config import cache_path, settings
from .answers import Answer, report_json
from .info import in_short
from .options import Parser, add_device, add_json, add_settings, clean, one_line, settings_of
from .prompt import LineReader, lines_of, text_of
from .protocols import language_model
from .talk import COMMANDS, Conversation, is_command
from .terminal import Output, is_terminal

__all__ = ["DEFAULT_MODEL", "main"]

DEFAULT_MODEL = "smollm2:135m"


def main(arguments: Sequence[str]) -> int:
    """Talk until the user leaves, the lines end, or the one prompt is answered."""
    options = _options(arguments)
    if options.first is not None and not options.quiet:
        notes = Output(sys.stderr)
        notes.line(in_short(options.device), notes.dim)
    model = language_model(options.model, options.device, options.context)
    if not model.tokenizer.has_chat:
        raise wg.ArgumentError(
            f"{options.model} has no chat template: it goes on with texts; try: webgrad generate "
            f"{shlex.quote(options.model)} TEXT"
        )
    screen, notes = Output(sys.stdout), Output(sys.stderr)
    is_asked_here = is_terminal(sys.stdin) and screen.is_terminal
    talk = Conversation(
        model,
        Path(options.model).name or options.model,
        settings_of(options),
        screen,
        clean(options.system or ""),
        notes=screen if is_asked_here and options.prompt is None else notes,
    )
    if options.prompt is not None:
        return _once(talk, options)
    if is_asked_here:
        return _converse(talk, options)
    if options.first is not None:
        return _once(talk, options)
    return _lines(talk, options)


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = Parser(
        prog="webgrad chat",
        description="Talk with a language model. Lines of a pipe are turns; /help at the prompt tells more.",
    )
    parser.add_argument(
        "model",
        nargs="?",
        default=DEFAULT_MODEL,
        metavar="MODEL",
        help=f"a name of the catalogue, a source, or a path (default: {DEFAULT_MODEL}); pulled where needed",
    )
    either = parser.add_mutually_exclusive_group()
    either.add_argument("--prompt", metavar="TEXT", help="answer this and end; - reads it from a pipe")
    either.add_argument("--first", metavar="TEXT", help="ask this first, and go on at a terminal")
    parser.add_argument("--system", metavar="TEXT", help="what the model is told before all else")
    parser.add_argument("--quiet", action="store_true", help="without speeds and other remarks")
    add_device(parser)
    add_json(parser, "print one JSON object a line for every answer")
    add_settings(parser)
    options = parser.parse_args(arguments)
    if options.prompt == "-":
        options.prompt = text_of(sys.stdin)
    for name in ("prompt", "first"):
        if getattr(options, name) is not None and not getattr(options, name).strip():
            parser.error(f"--{name} has no words")
    return options


# The three ways to talk


def _once(talk: Conversation, options: argparse.Namespace) -> int:
    text = options.prompt if options.prompt is not None else options.first
    return _finished(talk, _answered(talk, text, options), options)


def _lines(talk: Conversation, options: argparse.Namespace) -> int:
    """Every line of standard input is a turn; what begins with a slash is text like any other.

    A line that cannot be answered, as one that is too long, is told of; later ones are answered all the same.
    """
    result = 0
    for line in lines_of(sys.stdin):
        try:
            code = _finished(talk, _answered(talk, line, options), options)
        except wg.ArgumentError as error:
            result = 2
            if options.json:
                print(json.dumps({"error": one_line(error)}), flush=True)
            else:
                talk.remark(f"webgrad chat: {one_line(error)}")
            continue
        if code:
            return code
    return result


def _finished(talk: Conversation, answer: Answer, options: argparse.Namespace) -> int:
    """Say how it went; Ctrl-C without a prompt to go back to ends the program."""
    if not answer.is_whole:
        return 130
    if not options.quiet and not options.json:
        talk.show_report(answer)
    return 0


def _answered(talk: Conversation, text: str, options: argparse.Namespace) -> Answer:
    if not options.json:
        return talk.say(text)
    answer = talk.say(text, is_shown=False)
    if answer.is_whole:
        record = {"text": answer.text, "ids": list(answer.ids), "report": report_json(answer.report)}
        print(json.dumps(record), flush=True)
    return answer


def _converse(talk: Conversation, options: argparse.Namespace) -> int:
    screen = talk.output
    prompt, more = screen.bold(">>> "), screen.bold("... ")
    reader = LineReader(settings().cache or cache_path(), (*COMMANDS,))
    if not options.quiet:
        talk.remark(f"{talk.name} on {talk.model.device.name}; /help tells more, Ctrl-D leaves")
    if options.first is not None:
        screen.line(options.first, lambda text: prompt + text)
        _turn(talk, options.first, options)
    while True:
        text = reader.turn(prompt, more)
        if text is None:
            screen.line()
            return 0
        if is_command(text):
            if not talk.command(text):
                return 0
        elif text.strip():
            _turn(talk, text, options)


def _turn(talk: Conversation, text: str, options: argparse.Namespace) -> None:
    """One turn at the prompt: what cannot be answered is said, and the conversation goes on."""
    try:
        answer = _answered(talk, text, options)
    except wg.WebgradError as error:
        talk.remark(one_line(error))
        return
    if not answer.is_whole or not (options.quiet or options.json):
        talk.show_report(answer)
