"""Integer expressions of `#if`, `#for` and of WGSL constants, evaluated without Python's eval.

In: a list of token texts and a function that gives the value of a name. Out: an int, or a Symbol for a name
that has no value. Invariant: a Symbol may only be compared with `==` and `!=` to another Symbol (`T ==
f32`); any other use of it is an error, so that a misspelt define is never silently 0.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import lshift, rshift

MAX_DEPTH = 64
MAX_BITS = 128  # hostile shifts must not build huge numbers
_WORD = re.compile(
    r"\s*(?:(0[xX][0-9a-fA-F]+|\d+)[iu]?\b|([^\W\d]\w*)|(<<|>>|<=|>=|==|!=|&&|\|\||.))", re.DOTALL
)

# How tightly each operator binds, as in C.
LEVELS = (
    ("||",),
    ("&&",),
    ("|",),
    ("^",),
    ("&",),
    ("==", "!="),
    ("<", "<=", ">", ">="),
    ("<<", ">>"),
    ("+", "-"),
    ("*", "/", "%"),
)
_BINDING = {operator: level for level, operators in enumerate(LEVELS) for operator in operators}


class ExpressionError(Exception):
    """An expression that has no value; the caller adds the place."""


@dataclass(frozen=True, slots=True)
class Symbol:
    """A name without a value: comparable to another name, and nothing else."""

    name: str


Value = int | Symbol


def _divide(left: int, right: int) -> int:
    if right == 0:
        raise ExpressionError("division by zero")
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _shift(operator: Callable[[int, int], int], left: int, right: int) -> int:
    if not 0 <= right < 64:
        raise ExpressionError(f"shift by {right}: allowed are 0 to 63")
    return operator(left, right)


_BINARY: dict[str, Callable[[int, int], int]] = {
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "&": lambda a, b: a & b,
    "==": lambda a, b: int(a == b),
    "!=": lambda a, b: int(a != b),
    "<": lambda a, b: int(a < b),
    "<=": lambda a, b: int(a <= b),
    ">": lambda a, b: int(a > b),
    ">=": lambda a, b: int(a >= b),
    "<<": lambda a, b: _shift(lshift, a, b),
    ">>": lambda a, b: _shift(rshift, a, b),
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": _divide,
    "%": lambda a, b: a - b * _divide(a, b),
}

_UNARY: dict[str, Callable[[int], int]] = {
    "!": lambda a: int(not a),
    "-": lambda a: -a,
    "+": lambda a: a,
    "~": lambda a: ~a,
}


def split_words(text: str) -> list[str]:
    """The tokens of an expression: numbers, names and operators."""
    return [match.group().strip() for match in _WORD.finditer(text) if match.group().strip()]


def evaluate(words: Sequence[str], value_of: Callable[[str], Value]) -> int:
    """The integer value of an expression.

    >>> evaluate(split_words("(2 + N) * 3 > 10"), {"N": 2}.__getitem__)
    1
    """
    parser = _Parser(words, value_of)
    result = parser.binary(0, live=True)
    if parser.position < len(words):
        raise ExpressionError(f"`{words[parser.position]}` is not expected here")
    return _number(result)


def _number(value: Value) -> int:
    if isinstance(value, Symbol):
        raise ExpressionError(
            f"`{value.name}` is not defined; test it with defined({value.name}), or give it a value"
        )
    return value


class _Parser:
    """Precedence climbing; `live` is false in the half of && and || whose value does not count."""

    def __init__(self, words: Sequence[str], value_of: Callable[[str], Value]) -> None:
        self.words = words
        self.value_of = value_of
        self.position = 0
        self.depth = 0

    def peek(self) -> str:
        return self.words[self.position] if self.position < len(self.words) else ""

    def take(self) -> str:
        word = self.peek()
        self.position += 1
        return word

    def binary(self, level: int, *, live: bool) -> Value:
        """An expression of operators that bind at least as tightly as `level`."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise ExpressionError(f"nested more than {MAX_DEPTH} deep")
        left = self.operand(live=live)
        while _BINDING.get(operator := self.peek(), -1) >= level:
            self.take()
            left = self.combine(operator, left, live=live)
        self.depth -= 1
        return left

    def combine(self, operator: str, left: Value, *, live: bool) -> Value:
        level = _BINDING[operator]
        if operator in ("&&", "||"):
            decided = live and bool(_number(left)) == (operator == "||")
            right = self.binary(level + 1, live=live and not decided)
            if not live or decided:
                return int(operator == "||")
            return int(bool(_number(right)))
        right = self.binary(level + 1, live=live)
        if not live:
            return 0
        if operator in ("==", "!=") and isinstance(left, Symbol) and isinstance(right, Symbol):
            return int((left == right) == (operator == "=="))
        result = _BINARY[operator](_number(left), _number(right))
        if result.bit_length() > MAX_BITS:
            raise ExpressionError("the number is too large")
        return result

    def operand(self, *, live: bool) -> Value:
        word = self.take()
        if word in _UNARY:
            operand = self.binary(len(LEVELS), live=live)  # no operator: an operand alone
            return _UNARY[word](_number(operand)) if live else 0
        if word == "(":
            inner = self.binary(0, live=live)
            if self.take() != ")":
                raise ExpressionError("a `)` is missing")
            return inner
        if word[:1].isdigit():
            return _literal(word)
        if word[:1].isalpha() or word[:1] == "_":
            return self.value_of(word) if live else 0
        raise ExpressionError(f"`{word}` is not expected here" if word else "the expression is incomplete")


def _literal(word: str) -> int:
    try:
        value = int(word.rstrip("iu"), 0) if word[:2].lower() == "0x" else int(word.rstrip("iu"))
    except ValueError:
        raise ExpressionError(f"`{word}` is not an integer") from None
    if value.bit_length() > MAX_BITS:
        raise ExpressionError("the number is too large")
    return value
