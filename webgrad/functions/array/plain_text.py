"""Values as text where there is no NumPy to write them: nested brackets, numbers of one width, as NumPy does.

In: values on the host. Out: text. Of long axes only both ends are written, where `edges` says so.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...values import Values

DIGITS = 6  # significant ones of a float


def plain_text(values: Values, separator: str, prefix: str, edges: int = 0) -> str:
    """Nested brackets; with `edges`, the middle of an axis that is longer than both ends is dots."""
    texts = [_number(each) for each in values.numbers()]
    width = max(map(len, texts), default=0)
    padded = iter([each.rjust(width) for each in texts])
    return _rows(padded, values.shape, separator, " " * len(prefix), edges)


def _rows(texts: Iterator[str], shape: tuple[int, ...], separator: str, indent: str, edges: int) -> str:
    if not shape:
        return next(texts)
    if 0 in shape:
        return "[]"
    parts = [_rows(texts, shape[1:], separator, f"{indent} ", edges) for _ in range(shape[0])]
    if edges and shape[0] > 2 * edges:
        parts[edges] = "..."
    between = separator.rstrip() + "\n" * (len(shape) - 1) + indent + " " if len(shape) > 1 else separator
    return f"[{between.join(parts)}]"


def _number(value: bool | int | float | complex) -> str:
    if isinstance(value, complex):
        return f"{_number(value.real)}{'' if value.imag < 0 else '+'}{_number(value.imag)}j"
    if not isinstance(value, float):
        return str(value)
    text = f"{value:.{DIGITS}g}"
    return f"{text}." if text.lstrip("-").isdigit() else text
