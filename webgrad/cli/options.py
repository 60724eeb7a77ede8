"""What the commands' options have in common: how a mistake is told, devices, and how a model writes.

In: words of the command line, or of the chat's /set. Out: values that are in range; anything else is one line
on stderr and exit code 2. Every way to change how a model writes is one row of `SETTINGS`.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

__all__ = [
    "SETTINGS",
    "Parser",
    "Setting",
    "add_device",
    "add_json",
    "add_settings",
    "checked",
    "clean",
    "count",
    "one_line",
    "pair",
    "settings_of",
    "size",
]

Value = TypeVar("Value")
MOST = 2**31 - 1  # of anything that is counted: what a tensor of int32 holds
MOST_SIDE = (1 << 16) - 1  # pixels along a picture
SHOWN = 40  # letters of a word that is not allowed


class Parser(argparse.ArgumentParser):
    """A parser that tells of a mistake in one line."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, and where to read on; exit code 2."""
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")

    def _print_message(self, message: str, file: Any = None) -> None:
        """Not as argparse does, which is silent where a disk is full."""
        (file or sys.stderr).write(message)


def one_line(error: BaseException) -> str:
    """An error's message without its line ends."""
    return " ".join(line.strip() for line in str(error).splitlines())


def clean(text: str) -> str:
    """A text as Unicode has it: bytes of the command line that are no UTF-8 become question marks."""
    return text.encode("utf-8", errors="replace").decode("utf-8")


def whole(low: int, high: int = MOST) -> Callable[[str], int]:
    """Reads an integer in a range."""

    def parse(text: str) -> int:
        number = int(text)
        if not low <= number <= high:
            raise ValueError
        return number

    return parse


def checked(parse: Callable[[str], Value], allowed: str) -> Callable[[str], Value]:
    """The same reader, whose error says what is allowed."""

    def read(text: str) -> Value:
        try:
            return parse(text)
        except (ValueError, OverflowError):
            shown = text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
            raise argparse.ArgumentTypeError(f"{shown!r} is not allowed; it must be {allowed}") from None

    return read


def real(low: float, high: float = math.inf) -> Callable[[str], float]:
    """Reads a number in a range."""

    def parse(text: str) -> float:
        number = float(text)
        if not low <= number <= high or math.isinf(number):
            raise ValueError
        return number

    return parse


count = checked(whole(1), f"an integer from 1 to {MOST}")


def pair(text: str) -> tuple[int, int]:
    """Two counts, of 4x3 say."""
    first, second = (whole(1)(each) for each in text.lower().replace("×", "x").split("x"))
    return first, second


def _size(text: str) -> tuple[int, int]:
    """Height and width, of a side's length or of width x height."""
    width, height = pair(text if "x" in text.lower() or "×" in text else f"{text}x{text}")
    if max(width, height) > MOST_SIDE:
        raise ValueError
    return height, width


size = checked(_size, "a side's length, or WIDTHxHEIGHT, as 768x512")


def _seed(text: str) -> int | None:
    return None if text.lower() == "none" else whole(0, 2**63 - 1)(text)


def but(parse: Callable[[str], float], left_out: float) -> Callable[[str], float]:
    """The same range without one of its ends."""

    def read(text: str) -> float:
        number = parse(text)
        if number == left_out:
            raise ValueError
        return number

    return read


@dataclass(frozen=True, slots=True)
class Setting:
    """One way to change how a model writes: an option, a word for /set, and an argument of `generate`."""

    name: str
    parse: Callable[[str], Any]
    default: Any
    allowed: str  # completes "must be …"
    sentence: str

    def read(self, text: str) -> Any:
        """The value; an ArgumentTypeError that says what is allowed."""
        return checked(self.parse, self.allowed)(text)


SETTINGS: Mapping[str, Setting] = {
    each.name: each
    for each in (
        Setting("max_tokens", whole(1), 512, f"an integer from 1 to {MOST}", "tokens of an answer, at most"),
        Setting("temperature", real(0, 100), 0.8, "a number from 0 to 100", "0 always takes the likeliest"),
        Setting("top_k", whole(0), 0, f"an integer from 0 to {MOST}", "only among the k likeliest; 0: all"),
        Setting(
            "top_p",
            but(real(0, 1), 0),
            1.0,
            "above 0 and at most 1",
            "only the likeliest that make up p; 1: all",
        ),
        Setting(
            "min_p", but(real(0, 1), 1), 0.05, "from 0 to below 1", "none below p times the likeliest; 0: all"
        ),
        Setting(
            "repetition_penalty",
            but(real(0, 1000), 0),
            1.0,
            "above 0 and at most 1000",
            "above 1: repeat less",
        ),
        Setting(
            "seed", _seed, None, f"an integer from 0 to {2**63 - 1}, or none", "the same words every time"
        ),
    )
}


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Add the options about how a model writes."""
    group = parser.add_argument_group("how it writes")
    for each in SETTINGS.values():
        shown = "" if each.default is None else f" (default: {each.default})"
        option = "--" + each.name.replace("_", "-")
        group.add_argument(
            option, type=each.read, default=each.default, metavar="N", help=each.sentence + shown
        )
    group.add_argument(
        "--stop",
        action="append",
        default=[],
        metavar="TEXT",
        help="end before this text; may be given several times",
    )
    parser.add_argument(
        "--context", type=count, metavar="N", help="tokens it can see at once (default: the model's own)"
    )


def settings_of(options: argparse.Namespace) -> dict[str, Any]:
    """What `generate` and `chat` of a model take, from the parsed options."""
    chosen = {name: getattr(options, name) for name in SETTINGS}
    return chosen | {"stop": tuple(clean(each) for each in options.stop if each)}


def add_device(parser: argparse.ArgumentParser) -> None:
    """Add --device."""
    parser.add_argument(
        "--device", help="cpu, webgpu, webgpu:N or a part of an adapter's name (default: the best)"
    )


def add_json(parser: argparse.ArgumentParser, what: str = "print one JSON object instead of text") -> None:
    """Add --json."""
    parser.add_argument("--json", action="store_true", help=what)
