"""Questions about the trees of a user's kernel: what they name, call and leave.

In: expressions and statements. Out: names, and whether a statement jumps or returns.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..translation import tree


def nodes(part: object) -> Iterator[object]:
    """A tree's nodes; without recursion, as sums may be long."""
    waiting = [part]
    while waiting:
        each = waiting.pop()
        yield each
        if isinstance(each, tuple):
            waiting += each


def called_names(part: object) -> Iterator[str]:
    """The names of all that a tree calls."""
    return (each.callee.name for each in nodes(part) if isinstance(each, tree.Call))


def names_in(part: object) -> Iterator[str]:
    """All names of a tree."""
    return (each.name for each in nodes(part) if isinstance(each, tree.Name))


def has(part: object, kind: type) -> bool:
    """Whether a tree has such a node."""
    return any(isinstance(each, kind) for each in nodes(part))


def escapes(part: object, keywords: tuple[str, ...] = ("break", "continue")) -> bool:
    """Whether a statement jumps out of itself."""
    if isinstance(part, tree.Jump):
        return part.keyword in keywords
    if isinstance(part, tree.Loop | tree.Declare | tree.Assign | tree.Evaluate):
        return False
    if isinstance(part, tree.Switch):
        keywords = tuple(each for each in keywords if each != "break")
    return isinstance(part, tuple) and any(escapes(each, keywords) for each in part)


def returns_early(body: tree.Block) -> bool:
    """Whether a function returns before its last statement."""
    return any(has(each, tree.Return) for each in body.body if each is not body.body[-1]) or (
        bool(body.body) and not isinstance(body.body[-1], tree.Return) and has(body.body[-1], tree.Return)
    )
