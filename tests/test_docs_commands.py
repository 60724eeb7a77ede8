"""Commands that the texts name exist: programs, sub-commands, options, targets of make, extras of pip.

Lines of ```sh blocks and of indented code are parsed by the commands' own parsers; what stands in a sentence
(`webgrad info --json`) must at least name a command and options that there are.
"""

from __future__ import annotations

import argparse
import importlib
import re
import shlex
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

import pytest

from scripts.tasks import TARGETS
from tests.documents import ALL_BLOCKS, PAGES, ROOT, indented_lines, inline_code, name_of
from webgrad import config
from webgrad.cli import COMMANDS

# Settings of other programs that our texts name
OTHER_VARIABLES = {"PIP_NO_INDEX", "PIP_FIND_LINKS", "LP_NUM_THREADS"}
PLAIN = {"cat", "cd", "git"}  # programs of which nothing is ours to check
STARTS = re.compile(r"(webgrad|make|pip|python3?) ")
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
    "optional-dependencies"
]


class Parsed(Exception):
    """A command's parser took the arguments."""


@contextmanager
def only_parsing() -> Iterator[None]:
    """Commands end when they have parsed their arguments."""
    with pytest.MonkeyPatch.context() as patch:
        parse = argparse.ArgumentParser.parse_args

        def parse_and_end(self: Any, arguments: Any = None, namespace: Any = None) -> Any:
            parse(self, arguments, namespace)
            raise Parsed

        patch.setattr(argparse.ArgumentParser, "parse_args", parse_and_end)
        yield


@cache
def parser_of(command: str) -> argparse.ArgumentParser:
    """The parser that a command makes for its arguments."""
    found: list[argparse.ArgumentParser] = []
    with pytest.MonkeyPatch.context() as patch:

        def note(self: Any, arguments: Any = None, namespace: Any = None) -> Any:
            found.append(self)
            raise Parsed

        patch.setattr(argparse.ArgumentParser, "parse_args", note)
        with pytest.raises(Parsed):
            importlib.import_module(COMMANDS[command][0]).main([])
    return found[0]


def options_of(command: str) -> set[str]:
    """The options that a command has, by all their spellings."""
    return {option for action in parser_of(command)._actions for option in action.option_strings}


def webgrad_command(words: list[str]) -> None:
    if words[:1] in (["--help"], ["--version"]):
        return
    assert words, "webgrad alone says nothing"
    assert words[0] in COMMANDS, f"there is no command {words[0]}"
    with only_parsing(), pytest.raises((Parsed, SystemExit)) as ended:
        importlib.import_module(COMMANDS[words[0]][0]).main(words[1:])
    assert ended.type is Parsed or "--help" in words, f"the parser refuses {shlex.join(words)}"


def make_command(words: list[str]) -> None:
    for word in words:
        assert "=" in word or word in TARGETS, f"make has no target {word}"


def pip_command(words: list[str]) -> None:
    assert words[:1] in (["install"], ["download"]), f"pip {words[:1]} is not checked"
    for word in words[1:]:
        if found := re.fullmatch(r"(?:webgrad|\.)\[(.*)\]", word):
            assert set(found[1].split(",")) <= EXTRAS.keys(), f"there is no extra {found[1]}"


def python_command(words: list[str]) -> None:
    if words[:1] == ["-m"]:
        if words[1].startswith(("scripts.", "benchmarks.")):
            assert (ROOT / f"{words[1].replace('.', '/')}.py").is_file(), f"there is no {words[1]}"
    elif words[0].startswith(("examples/", "benchmarks/", "scripts/")):
        assert (ROOT / words[0]).is_file(), f"there is no {words[0]}"


CHECKS: Mapping[str, Callable[[list[str]], None]] = {
    "webgrad": webgrad_command,
    "make": make_command,
    "pip": pip_command,
    "python": python_command,
    "python3": python_command,
}


def check_line(line: str) -> None:
    """A line of a shell: every command in it, and every setting before one."""
    shown = re.split(r"\s{2,}", line.removeprefix("$ ").strip())[0]  # what is further right is a remark
    words = _words(shown)
    command: list[str] = []
    for word in [*words, "|"]:
        if word not in ("|", "&&", ";"):
            command.append(word)
            continue
        check_command(command)
        command = []


def _words(shown: str) -> list[str]:
    lexer = shlex.shlex(shown, posix=True, punctuation_chars="|&;")
    lexer.whitespace_split = True
    return list(lexer)


def check_command(words: list[str]) -> None:
    while words and re.match(r"\w+=", words[0]):
        name = words.pop(0).partition("=")[0]
        known = {option.variable for option in config.OPTIONS} | {config.CONFIG_VARIABLE} | OTHER_VARIABLES
        assert name in known, f"there is no variable {name}"
    if not words or words[0] in PLAIN:
        return
    assert words[0] in CHECKS, f"nothing is known of the program {words[0]}"
    CHECKS[words[0]](words[1:])


@pytest.mark.parametrize(
    "block",
    [
        pytest.param(block, id=block.name)
        for block in ALL_BLOCKS
        if block.language == "sh" and not block.not_run
    ],
)
def test_commands_of_a_block_exist(block: Any) -> None:
    for line in block.text.replace("\\\n", " ").splitlines():
        check_line(line)


@pytest.mark.parametrize("page", [name_of(path) for path in PAGES])
def test_commands_in_a_page_exist(page: str) -> None:
    for line in indented_lines(page):
        if STARTS.match(line):
            check_line(line)
    for code in inline_code(page):
        if code.startswith(("webgrad ", "make ")) and not code.startswith("webgrad command"):
            named(code)


def named(code: str) -> None:
    """A command in a sentence: it and its options exist; what it is called with may be a placeholder."""
    program, first, *rest = code.split(" ")
    if program == "make":
        assert first in TARGETS, f"{code}: make has no such target"
    elif not first.startswith("-"):
        assert first in COMMANDS, f"{code}: there is no such command"
        strange = {each.partition("=")[0] for each in rest if each.startswith("--")} - options_of(first)
        assert not strange, f"{code}: {first} has no {strange}"


def test_a_command_that_does_not_exist_is_found() -> None:
    for wrong in (
        "webgrad chatt",
        "webgrad chat --tempreature 1",
        "make everything",
        'pip install "webgrad[all]"',
        "WEBGRAD_DEBUGG=1 webgrad info",
        "cat x | webgrad nothing",
        "python -m scripts.nothing",
        "npx something",
    ):
        with pytest.raises(AssertionError):
            check_line(wrong)
    for right in (
        "webgrad chat --temperature 1   a remark",
        'WEBGRAD_DEVICE=cpu make test ARGS="-k x"  # why',
    ):
        check_line(right)
    with pytest.raises(AssertionError):
        named("webgrad info --nothing")
