"""The regular expressions of tokenizers, as JavaScript writes them.

In comes what the package tokenizers takes (Oniguruma's kind), out comes the source of a JavaScript expression
for the flag u. Every set of characters, such as `\\s` or `[^\\r\\n\\p{L}]`, is asked of that package and
written as ranges, so it is the same in browsers of any Unicode version; [@3] stands for the set number 3.
What has no equal in JavaScript is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from webgrad.arrays import np
from webgrad.errors import ModelFileError

__all__ = ["PROBE", "Classes", "Ranges", "literal", "members", "ranges_of", "translate"]

Ranges = tuple[tuple[int, int], ...]  # first and last code points, ascending

# Where all characters up to the next entry are alike: unassigned planes, and those for private use.
ALIKE = {0x40000: 0xE0000, 0xE1000: 0xF0000, 0xF0000: 0xFFFFE, 0x100000: 0x10FFFE}
# Every character but those alike, of which there is the first.
PROBE = "".join(
    chr(code)
    for code in (
        *range(0xD800),
        *range(0xE000, 0x40001),
        *range(0xE0000, 0xE1001),
        *(0xF0000, 0xFFFFE, 0xFFFFF, 0x100000, 0x10FFFE, 0x10FFFF),
    )
)

GROUPS = ("(?:", "(?=", "(?!", "(?<=", "(?<!")  # those that JavaScript writes the same
ANCHORS = {"^": r"(?<![^\n])", "$": r"(?![^\n])", r"\A": "^", r"\z": "$", r"\Z": r"(?=\n?$)"}
ONE = re.compile(
    r"\\(?:[pP]\{\^?\w+\}|[sSdDwWhHtnrfvae]|x[0-9a-fA-F]{2}|x\{[0-9a-fA-F]+\}|u[0-9a-fA-F]{4}|[^\w\s])"
)
INTERVAL = re.compile(r"\{(?:\d+,?\d*|,\d+)\}")


class Classes:
    """The sets of characters of one tokenizer, each once."""

    def __init__(self) -> None:
        self._places: dict[Ranges, int] = {}

    def name(self, ranges: Ranges) -> str:
        """How an expression writes this set."""
        if not ranges:
            return "(?!)"
        return f"[@{self._places.setdefault(ranges, len(self._places))}]"

    def written(self) -> list[str]:
        """The sets in order: gaps and lengths by turns, in base 36."""
        return [" ".join(map(base36, distances(ranges))) for ranges in self._places]


def distances(ranges: Ranges) -> Iterable[int]:
    """For each range how many are left out before it, and how many follow its first."""
    end = 0
    for first, last in ranges:
        yield first - end
        yield last - first
        end = last + 1


def base36(number: int) -> str:
    """A number by the digits that JavaScript's parseInt(text, 36) reads."""
    digits = ""
    while number or not digits:
        number, digit = divmod(number, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[digit] + digits
    return digits


def ranges_of(characters: str, are_members: bool = True) -> Ranges:
    """A set of characters: those of PROBE that are members, or that are not."""
    is_member = np.full(0x110001, not are_members)
    is_member[np.frombuffer(characters.encode("utf-32-le"), np.uint32)] = are_members
    is_member[-1] = False  # after the last character
    for first, end in ALIKE.items():
        is_member[first:end] = is_member[first]
    is_member[0xD800:0xE000] = is_member[0xD7FF] & is_member[0xE000]  # surrogates, which texts have in pairs
    changes = np.flatnonzero(np.diff(is_member, prepend=False)).tolist()
    return tuple((first, end - 1) for first, end in zip(changes[::2], changes[1::2], strict=True))


@cache
def members(atom: str) -> Ranges:
    """The characters that an expression for one character matches."""
    from tokenizers import Regex, normalizers

    try:
        others = normalizers.Replace(Regex(f"(?:{atom})"), "").normalize_str(PROBE)
    except Exception as error:
        raise refusal(f"{atom!r:.80}, which cannot be read ({str(error)[:80]})") from None
    return ranges_of(others, are_members=False)


def refusal(what: str) -> ModelFileError:
    """The error for a tokenizer that a page cannot have."""
    return ModelFileError(
        f"the model's tokenizer has {what}: the tokenizer of exported pages does not know it, and other ids "
        "than the model's own would be of no use. Export the model with wg.export and give it token ids"
    )


@cache
def longer_folds() -> tuple[frozenset[int], frozenset[str]]:
    """Characters that equal several ones where case does not count (ß and ss), and those several."""
    longer = {ord(each): folded for each in PROBE if len(folded := each.casefold()) > 1}
    return frozenset(longer), frozenset(longer.values())


def literal(text: str) -> str:
    """The expression for a text as it is written."""
    return "".join(
        each if (each.isascii() and each.isalnum()) or each in " '" else f"\\u{{{ord(each):x}}}"
        for each in text
    )


def translate(pattern: str, classes: Classes) -> str:
    """The source of the JavaScript expression that matches the same."""
    reader = Reader(pattern, classes)
    source = reader.alternatives(ignore_case=False)
    if reader.place < len(pattern):
        raise reader.refuse("a ) that closes nothing")
    check_never_empty(pattern)
    return source


def check_never_empty(pattern: str) -> None:
    """Between two matches, engines do not agree on where an empty one may be."""
    from tokenizers import Regex, normalizers

    written: str = normalizers.Replace(Regex(pattern), "x").normalize_str("\ue000")
    if "\ue000" in written and written != "\ue000":
        raise refusal(f"the expression {pattern!r:.80}, which matches the empty text")


class Reader:
    """Reads an expression from left to right."""

    def __init__(self, pattern: str, classes: Classes) -> None:
        self.pattern, self.classes, self.place = pattern, classes, 0
        self.kept = 0  # groups that possessive quantifiers need
        self.letters = ""  # the run of plain characters being read, where case does not count

    def refuse(self, what: str) -> ModelFileError:
        return refusal(f"{what} in the expression {self.pattern!r:.200}")

    def take(self, text: str) -> bool:
        """Whether this comes next; then it is passed over."""
        found = self.pattern.startswith(text, self.place)
        self.place += len(text) if found else 0
        return found

    def alternatives(self, ignore_case: bool) -> str:
        """All up to a closing bracket or the end."""
        parts: list[str] = []
        self.letters = ""
        while self.place < len(self.pattern) and self.pattern[self.place] != ")":
            if self.take("|"):
                self.letters = ""
                parts.append("|")
            else:
                parts.append(self.item(ignore_case))
        return "".join(parts)

    def item(self, ignore_case: bool) -> str:
        """One thing to match, with how often."""
        for anchor, written in ANCHORS.items():
            if self.take(anchor):
                return written
        if self.pattern.startswith("(", self.place):
            inner, is_text = self.group(ignore_case)
            self.letters = ""
        else:
            inner, is_text = self.character(ignore_case), True
        return self.repeated(inner, is_text)

    def group(self, ignore_case: bool) -> tuple[str, bool]:
        """A group, and whether it matches text, as what only looks around does not."""
        for start in GROUPS:
            if self.take(start):
                return f"{start}{self.closed(ignore_case)})", start == "(?:"
        if self.take("(?i:"):
            return f"(?:{self.closed(True)})", True
        if self.take("(?>"):
            return self.whole(self.closed(ignore_case)), True
        if self.pattern.startswith("(?", self.place):
            raise self.refuse(f"{self.pattern[self.place : self.place + 4]!r}")
        self.place += 1
        return f"(?:{self.closed(ignore_case)})", True

    def closed(self, ignore_case: bool) -> str:
        inner = self.alternatives(ignore_case)
        if not self.take(")"):
            raise self.refuse("a ( that is not closed")
        return inner

    def whole(self, inner: str) -> str:
        """What is matched once and for all: JavaScript never changes a match that it looked ahead for."""
        self.kept += 1
        return f"(?:(?=(?<k{self.kept}>{inner}))\\k<k{self.kept}>)"

    def repeated(self, inner: str, is_text: bool) -> str:
        interval = INTERVAL.match(self.pattern, self.place)
        often = interval[0] if interval else self.pattern[self.place : self.place + 1]
        if not interval and (not often or often not in "*+?"):
            return inner
        self.place += len(often)
        self.letters = ""
        following = self.pattern[self.place : self.place + 1]
        is_chained = following and following in "*+?" and (interval or following == "*")
        if not is_text or is_chained or INTERVAL.match(self.pattern, self.place):
            raise self.refuse(f"{often + following!r}")
        often = often.replace("{,", "{0,")
        if following == "+":
            self.place += 1
            return self.whole(inner + often)
        lazy = "?" if self.take("?") else ""
        if self.pattern[self.place : self.place + 1] in ("*", "+", "?"):
            raise self.refuse(f"{often + lazy + self.pattern[self.place]!r}")
        return inner + often + lazy

    def character(self, ignore_case: bool) -> str:
        """One character: itself, an escape, a set."""
        start = self.place
        first = self.pattern[start]
        if first in "*+?":
            raise self.refuse(f"{first!r} after nothing")
        if first == "\\":
            found = ONE.match(self.pattern, start)
            if found is None:
                raise self.refuse(f"{self.pattern[start : start + 2]!r}")
            self.place = found.end()
        elif first == "[":
            self.place = self.end_of_set(start)
        else:
            self.place += 1
        return self.asked(self.pattern[start : self.place], ignore_case)

    def end_of_set(self, start: int) -> int:
        """Sets may hold sets; what they mean is asked as a whole."""
        place, depth = start, 0
        while place < len(self.pattern):
            each = self.pattern[place]
            if each == "[":
                depth += 1
                place += self.pattern.startswith("^", place + 1)
                place += self.pattern.startswith("]", place + 1)  # first, it is a member
            elif each == "]":
                depth -= 1
            place += 2 if each == "\\" else 1
            if depth == 0:
                return place
        raise self.refuse("a [ that is not closed")

    def asked(self, atom: str, ignore_case: bool) -> str:
        if len(atom) == 1 and atom != "." and not ignore_case:
            return literal(atom)
        ranges = members(f"(?i:{atom})" if ignore_case else atom)
        if ignore_case:
            self.check_folds(atom, ranges)
        if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
            return literal(chr(ranges[0][0]))
        return self.classes.name(ranges)

    def check_folds(self, atom: str, ranges: Ranges) -> None:
        """Where case does not count, Oniguruma takes ß for ss, which ranges cannot say."""
        longer, texts = longer_folds()
        self.letters = self.letters + atom.casefold() if len(atom) == 1 else ""
        is_longer = any(first <= code <= last for first, last in ranges for code in longer)
        if is_longer or any(text in self.letters for text in texts):
            raise self.refuse("(?i: before characters that equal several ones")
