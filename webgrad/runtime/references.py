"""Weak references whose ends are noted without a step of Python.

A finalizer written in Python (`__del__`, `weakref.finalize`) may be struck by a signal, and what the
signal's handler raises there is swallowed. A `Tagged` reference with a callback written in C, such as the
`append` of a deque, cannot be: whoever owns the deque looks into it later.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar
from weakref import ref

Referent = TypeVar("Referent")


class Tagged(ref[Referent]):
    """A weak reference that knows more than its referent; somebody else has to hold it."""

    __slots__ = ("tag",)
    tag: Any


def tagged(referent: Referent, tag: Any, ended: Callable[[Any], object]) -> Tagged[Referent]:
    """A reference to be given to `ended`, a function written in C, when the referent is gone.

    >>> from collections import deque
    >>> ended, made = deque(), {1, 2}
    >>> reference = tagged(made, "a set", ended.append)
    >>> del made
    >>> [each.tag for each in ended]
    ['a set']
    """
    reference = Tagged(referent, ended)
    reference.tag = tag
    return reference
