"""WGSL text together with where each line came from, so that every error can name the user's file and line.

In: expanded lines. Out: tokens, and errors that show the place and the line.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

from webgrad.errors import CompileError
from webgrad.wgsl.tokens import Token, TokenError, closing, template_lists, tokenize

MAX_SHOWN = 160  # characters of a line in a message


def message_at(file: str, line: int, message: str, text: str) -> str:
    """What an error says: the place, the message, and the line."""
    shown = text.strip()
    shown = shown if len(shown) <= MAX_SHOWN else shown[: MAX_SHOWN - 3] + "..."
    return f"{file}:{line}: {message}\n    {shown}"


@dataclass(slots=True)
class Source:
    """A text, its origins, its tokens, and which brackets and `<` `>` belong together."""

    text: str
    origins: tuple[tuple[str, int], ...] = ()
    tokens: list[Token] = field(init=False)
    pairs: dict[int, int] = field(init=False)
    templates: dict[int, int] = field(init=False)
    starts: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.starts = [0]
        for line in self.text.split("\n")[:-1]:
            self.starts.append(self.starts[-1] + len(line) + 1)
        try:
            self.tokens = tokenize(self.text)
            self.pairs = closing(self.tokens)
        except TokenError as error:
            raise self.error_at(error.offset, str(error)) from None
        self.templates = template_lists(self.tokens)

    def line_of(self, offset: int) -> int:
        """The index of the line an offset is in."""
        return bisect_right(self.starts, offset) - 1

    def error_at(self, offset: int, message: str) -> CompileError:
        """A CompileError that says where, what, and shows the line."""
        line = self.line_of(offset)
        file, number = self.origins[line] if line < len(self.origins) else ("text", line + 1)
        return CompileError(message_at(file, number, message, self.text.split("\n")[line]))

    def error(self, index: int, message: str) -> CompileError:
        """The same for the token with this index; an index past the end means the last token."""
        if not self.tokens:
            return self.error_at(0, message)
        return self.error_at(self.tokens[min(index, len(self.tokens) - 1)].start, message)

    def template_end(self, opening: int) -> int:
        """The index behind the `>` of the template list that opens here; 0 if none does."""
        return self.templates.get(opening, -1) + 1

    def is_text(self, index: int, text: str) -> bool:
        """Whether there is such a token at this index."""
        return index < len(self.tokens) and self.tokens[index].text == text

    def split(self, start: int, stop: int) -> list[tuple[int, int]]:
        """The token ranges between commas outside brackets and template lists; the last may be left empty."""
        spans: list[tuple[int, int]] = []
        begin = index = start
        while index < stop:
            if self.tokens[index].text == ",":
                spans.append((begin, index))
                begin = index + 1
            index = (self.pairs.get(index) or self.templates.get(index) or index) + 1
        return [*spans, (begin, stop)] if begin < stop else spans
