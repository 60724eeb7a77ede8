"""Walking the graph without recursion: every node a value depends on, inputs first."""

from __future__ import annotations

from collections.abc import Iterable

from .node import Node


def pending(roots: Iterable[Node]) -> list[Node]:
    """The nodes under `roots`, leaves included, each once, inputs before their users."""
    order: list[Node] = []
    seen: set[int] = set()
    stack = list(roots)
    stack.reverse()
    while stack:
        node = stack[-1]
        if id(node) in seen:
            stack.pop()
            continue
        waiting = [each for each in node.inputs if id(each) not in seen]
        if waiting:
            stack += reversed(waiting)
        else:
            seen.add(id(node))
            order.append(node)
            stack.pop()
    return order
