"""A conversation: its messages, how the model is to write, and the commands that begin with a slash.

In: what the user types. Out: answers on the output, and the messages so far. The invariant: messages are
turns that were answered; a turn that failed, or was stopped before its first word, leaves no trace.
"""

from __future__ import annotations

import argparse
import difflib
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import webgrad as wg

from .answers import Answer, report_text, show
from .options import SETTINGS, clean, one_line
from .protocols import LanguageModel, Report
from .terminal import Output, terminal_width
from .text import Line, layout

__all__ = ["COMMANDS", "Conversation", "is_command"]

LARGEST_FILE = 16 * 2**20  # bytes of a conversation that is loaded
ROOM = 64  # tokens of the context that are kept free for an answer
Turn = dict[str, str]


def is_command(text: str) -> bool:
    """Whether a turn is a word after a slash, and no path, and no text of several lines."""
    return re.fullmatch(r"/[\w?-]*( .*)?", text.rstrip()) is not None


class Conversation:
    """A model and what was said so far."""

    def __init__(
        self,
        model: LanguageModel,
        name: str,
        settings: Mapping[str, Any],
        output: Output,
        system: str = "",
        notes: Output | None = None,
    ) -> None:
        self.model = model
        self.name = name
        self.settings = dict(settings)
        self.system = system
        self.turns: list[Turn] = []
        self.reports: list[Report] = []
        self.output = output
        self.notes = notes or output  # where speeds and remarks go

    # Turns

    def say(self, text: str, *, is_shown: bool = True) -> Answer:
        """One turn: the model's answer is shown as it comes, and remembered."""
        asked = [*self.turns, {"role": "user", "content": clean(text)}]
        turns = self._fitting(asked)
        generation = self.model.chat([*self._system(), *turns], **self.settings)
        answer = show(generation, self.output if is_shown else None)
        if answer.text or answer.is_whole:
            self.reports.append(answer.report)
            self.turns = [*turns, {"role": "assistant", "content": answer.text}]
            if len(turns) < len(asked):  # told only now: a turn that fails forgets nothing
                forgotten = len(asked) - len(turns)
                self.remark(f"the context is full: the first {forgotten} messages are forgotten")
        return answer

    def _system(self) -> list[Turn]:
        return [{"role": "system", "content": self.system}] if self.system else []

    def _fitting(self, turns: list[Turn]) -> list[Turn]:
        """The turns without the oldest ones that the context has no room for."""
        room = self.model.context - min(ROOM, self.settings["max_tokens"])
        left = turns
        while len(left) > 1 and self.length(left) > room:
            left = left[2:]
        return left

    def length(self, turns: list[Turn]) -> int:
        """How many tokens the turns are."""
        return len(self.model.tokenizer.encode_chat([*self._system(), *turns], add_generation_prompt=True))

    # Words of our own

    def remark(self, text: str) -> None:
        """Say something that is not the model's."""
        self.notes.line(text, self.notes.dim)

    def show_report(self, answer: Answer) -> None:
        """How quick the last answer was."""
        text = report_text(answer.report, self.model.device.name)
        self.remark(text if answer.is_whole else f"stopped · {text}" if answer.text else "stopped")

    def command(self, line: str) -> bool:
        """Do what a line with a slash says; False when the conversation is over."""
        word, _, rest = line.strip().partition(" ")
        name = ALIASES.get(word, word)
        if name == "/quit":
            return False
        if name not in COMMANDS:
            near = difflib.get_close_matches(word, COMMANDS, n=1)
            self.remark(f"there is no {word}; " + (f"did you mean {near[0]}?" if near else "see /help"))
            return True
        try:
            COMMANDS[name][2](self, rest.strip())
        except (wg.WebgradError, argparse.ArgumentTypeError) as error:
            self.remark(one_line(error))
        except OSError as error:
            self.remark(f"{error.filename or rest}: {error.strerror or error}")
        return True


# What the commands do


def _help(talk: Conversation, rest: str) -> None:
    rows = [Line(f"{name} {takes}", does) for name, (takes, does, _) in COMMANDS.items()]
    rows += [
        Line("\\", "at a line's end: it goes on in the next"),
        Line('"""', "begins and ends a block of lines"),
        Line("Ctrl-C", "stops an answer; at the prompt it drops the line, and twice it leaves"),
    ]
    for line in layout(rows, terminal_width()):
        talk.output.line(line)


def _reset(talk: Conversation, rest: str) -> None:
    talk.turns, talk.reports = [], []
    talk.remark("a new conversation")


def _system(talk: Conversation, rest: str) -> None:
    if rest:
        talk.system = "" if rest == "none" else rest
    talk.remark(f"system: {talk.system}" if talk.system else "there is no system message but the model's own")


def _set(talk: Conversation, rest: str) -> None:
    name, _, text = rest.replace("=", " ").partition(" ")
    name = name.replace("-", "_")
    if not name:
        rows = [
            Line(f"{each.name} {_said(talk.settings[each.name])}", each.sentence)
            for each in SETTINGS.values()
        ]
        for line in layout(rows, terminal_width()):
            talk.output.line(line)
        return
    if name not in SETTINGS:
        near = difflib.get_close_matches(name, SETTINGS, n=1)
        talk.remark(f"there is no setting {name}; " + (f"did you mean {near[0]}?" if near else "see /set"))
        return
    if text.strip():
        talk.settings[name] = SETTINGS[name].read(text.strip())
    talk.remark(f"{name} {_said(talk.settings[name])}")


def _said(value: object) -> str:
    return "none" if value is None else str(value)


def _retry(talk: Conversation, rest: str) -> None:
    if not talk.turns:
        talk.remark("nothing was asked yet")
        return
    asked = talk.turns[-2]["content"]
    kept, before = talk.turns, talk.turns[:-2]
    talk.turns = before
    try:
        talk.show_report(talk.say(asked))
    finally:
        if talk.turns is before:  # there was no answer
            talk.turns = kept


def _stats(talk: Conversation, rest: str) -> None:
    reports = talk.reports
    used = talk.length(talk.turns) if talk.turns else 0
    talk.remark(f"{talk.name} on {talk.model.device.name}, {used} of {talk.model.context} tokens in use")
    read = sum(each.prompt_tokens - each.cached_tokens for each in reports)
    written = sum(each.tokens for each in reports)
    slow = sum(each.prefill_seconds for each in reports), sum(each.decode_seconds for each in reports)
    if reports and all(slow):
        talk.remark(
            f"{len(reports)} answer{'s' * (len(reports) > 1)}: {read} tokens read at {read / slow[0]:.3g}/s, "
            f"{written} written at {written / slow[1]:.3g}/s"
        )


def _save(talk: Conversation, rest: str) -> None:
    if not rest:
        talk.remark("say where to: /save FILE.json")
        return
    path = Path(rest).expanduser()
    record = {"model": talk.name, "system": talk.system, "messages": talk.turns}
    with wg.io.replacing(path) as temporary:
        temporary.write_text(json.dumps(record, indent=1, ensure_ascii=False), encoding="utf-8")
    talk.remark(f"{len(talk.turns)} messages in {path}")


def _load(talk: Conversation, rest: str) -> None:
    if not rest:
        talk.remark("say what: /load FILE.json")
        return
    path = Path(rest).expanduser()
    if path.stat().st_size > LARGEST_FILE:
        raise wg.ModelFileError(f"{path} is too large for a conversation")
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        system, turns = record["system"], [dict(each) for each in record["messages"]]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise wg.ModelFileError(f"{path} is not a conversation that /save wrote") from None
    roles = [each.get("role") for each in turns]
    right = all(set(each) == {"role", "content"} and isinstance(each["content"], str) for each in turns)
    if not right or not isinstance(system, str) or roles != ["user", "assistant"] * (len(turns) // 2):
        raise wg.ModelFileError(f"{path} is not a conversation that /save wrote")
    talk.turns, talk.system = turns, system
    talk.remark(f"{len(turns)} messages from {path}")


# command → (what it takes, what it does, the function)
COMMANDS: Mapping[str, tuple[str, str, Callable[[Conversation, str], None]]] = {
    "/help": ("", "this list", _help),
    "/reset": ("", "forget everything that was said", _reset),
    "/retry": ("", "answer the last question anew", _retry),
    "/system": ("[TEXT|none]", "show or set what the model is told before all else", _system),
    "/set": ("[NAME [VALUE]]", "show or set how the model writes: temperature, seed …", _set),
    "/stats": ("", "how quick it was, and how full the context is", _stats),
    "/save": ("FILE", "write the conversation to a file", _save),
    "/load": ("FILE", "go on with a conversation from a file", _load),
    "/quit": ("", "leave", lambda talk, rest: None),
}
ALIASES = {"/?": "/help", "/clear": "/reset", "/bye": "/quit", "/exit": "/quit", "/q": "/quit"}
