"""WGSL text as tokens: words, numbers and operators, each with its place in the text.

In: WGSL text. Out: a list of Token. Comments (block comments nest) and space are skipped. Invariant: `>` is
always a token of its own, so that `array<vec4<f32>>` needs no look-ahead; `>>`, `>=` and `>>=` are runs of
touching tokens.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

Kind = Literal["word", "number", "sign"]
_KINDS: dict[str, Kind] = {"word": "word", "number": "number", "sign": "sign"}

_PATTERN = re.compile(
    r"""
      (?P<word>[^\W\d]\w*)
    | (?P<number>
          0[xX](?:[0-9a-fA-F]*\.[0-9a-fA-F]+|[0-9a-fA-F]+\.?)(?:[pP][+-]?[0-9]+)?(?:l[iuf]|[iufh])?
        | (?:[0-9]*\.[0-9]+|[0-9]+\.?)(?:[eE][+-]?[0-9]+)?(?:l[iuf]|[iufh])?
      )
    | (?P<sign><<=|->|&&|\|\||\+\+|--|\+=|-=|\*=|/=|%=|&=|\|=|\^=|==|!=|<=|<<|[-+*/%&|^!~<>=(){}\[\];:,.@])
    | (?P<stranger>\S)
    """,
    re.VERBOSE,
)
_COMMENT = re.compile(r"//[^\n\r\v\f\x85\u2028\u2029]*|/\*")
_COMMENT_EDGE = re.compile(r"/\*|\*/")
_NO_BREAK = re.compile(r"[^\n]")
_CLOSING = {"(": ")", "[": "]", "{": "}"}


class TokenError(Exception):
    """A character that WGSL does not have, or a bracket that does not match; carries the offset."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.offset = offset


class Token(NamedTuple):
    """One token; `text` is as written, `start` its offset. (A tuple, as there are very many.)"""

    kind: Kind
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


def tokenize(text: str) -> list[Token]:
    """The tokens of a WGSL text, in order.

    >>> [token.text for token in tokenize("let x = a<vec2<f32>>(1.5e3f); // c")]
    ['let', 'x', '=', 'a', '<', 'vec2', '<', 'f32', '>', '>', '(', '1.5e3f', ')', ';']
    """
    tokens: list[Token] = []
    for match in _PATTERN.finditer(without_comments(text)):
        kind = _KINDS.get(match.lastgroup or "")
        if kind is not None:
            tokens.append(Token(kind, match.group(), match.start()))
        elif match.lastgroup == "stranger":
            raise TokenError(f"{match.group()!r} is not a WGSL character", match.start())
    return tokens


def without_comments(text: str) -> str:
    """The text with spaces for comments, so that offsets and lines stay; block comments nest."""
    pieces: list[str] = []
    position = 0
    while match := _COMMENT.search(text, position):
        end = _comment_end(text, match.start()) if match.group() == "/*" else match.end()
        pieces += [text[position : match.start()], _NO_BREAK.sub(" ", text[match.start() : end])]
        position = end
    return "".join([*pieces, text[position:]])


def _comment_end(text: str, start: int) -> int:
    """The offset behind the block comment that begins at `start`."""
    depth = 0
    for match in _COMMENT_EDGE.finditer(text, start):
        depth += 1 if match.group() == "/*" else -1
        if depth == 0:
            return match.end()
    raise TokenError("the block comment opened here is never closed with */", start)


def closing(tokens: list[Token]) -> dict[int, int]:
    """For the index of each opening bracket, the index of its closing one."""
    pairs: dict[int, int] = {}
    stack: list[int] = []
    for index, token in enumerate(tokens):
        if token.kind != "sign":
            continue
        if token.text in _CLOSING:
            stack.append(index)
        elif token.text in (")", "]", "}"):
            if not stack or _CLOSING[tokens[stack[-1]].text] != token.text:
                raise TokenError(f"`{token.text}` closes nothing", token.start)
            pairs[stack.pop()] = index
    if stack:
        opening = tokens[stack[-1]]
        raise TokenError(f"`{opening.text}` is never closed", opening.start)
    return pairs


def template_lists(tokens: list[Token]) -> dict[int, int]:
    """For the index of each `<` that opens a template list, the index of its `>`, as WGSL discovers them.

    >>> template_lists(tokenize("a < b; array<vec2<f32>>"))
    {7: 9, 5: 10}
    """
    pairs: dict[int, int] = {}
    candidates: list[tuple[int, int]] = []  # (index of `<`, depth of brackets)
    depth = 0
    for index, token in enumerate(tokens):
        text = token.text
        if text == "<" and index > 0 and tokens[index - 1].kind == "word":
            candidates.append((index, depth))
        elif text == ">" and candidates and candidates[-1][1] == depth:
            pairs[candidates.pop()[0]] = index
        elif text in ("(", "["):
            depth += 1
        elif text in (")", "]", "&&", "||"):
            while candidates and candidates[-1][1] >= depth:
                candidates.pop()
            depth -= text in (")", "]")
        elif text in (";", "{", ":", "="):
            candidates.clear()
            depth = 0
    return pairs
