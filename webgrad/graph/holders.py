"""Who holds memory: the computed nodes that are alive, by the storage behind them.

In: nothing; Python's garbage collector knows every node, so making one costs nothing for this. Out: nodes,
and descriptions. The invariant: this takes no lock and keeps nothing alive; objects that `gc.freeze` had set
aside are ordinary again.
"""

from __future__ import annotations

import gc
from collections.abc import Sequence
from typing import Any

from .node import Node, where_made


def alive(*kinds: type) -> list[Any]:
    """Every object of these classes and their subclasses."""
    if gc.get_freeze_count():
        gc.unfreeze()  # the collector does not list frozen ones; to freeze again would freeze garbage too
    classes = list(kinds)
    for each in classes:
        classes += each.__subclasses__()
    # An object refers to its class. A list of all objects would hold the tuples that other threads are making
    # too, and Python cannot finish a tuple that something else holds: a SystemError there.
    found = gc.get_referrers(*classes)
    # By their type: `isinstance` would ask proxies what they stand for, and a dead one raises.
    return [each for each in found if issubclass(type(each), kinds)]


def holders() -> list[Node]:
    """The nodes that have storage; not scalars, which are parameters of commands."""
    return [each for each in alive(Node) if each.storage is not None and each.sig.kind != "scalar"]


def words_of(node: Node) -> str:
    """A short description of a value: "float32 (64, 128) made at train.py:12"."""
    sizes = ", ".join(map(str, node.sig.shape)) + ("," if len(node.sig.shape) == 1 else "")
    place = where_made(node)
    return f"{node.sig.dtype.name} ({sizes})" + (f" made at {place}" if place else "")


def largest_arrays(device: Any, count: int = 5) -> str:
    """The largest values on a device with host memory, for an error message."""
    nodes = sorted(
        (each for each in holders() if each.sig.device is device), key=lambda each: -each.sig.nbytes
    )
    return ", ".join(f"{words_of(each)} {each.sig.nbytes:,} bytes" for each in nodes[:count]) or "none"


def name_buffers(buffers: Sequence[Any]) -> list[str]:
    """The names of a GPU's buffers (the queue's records of them): of a tensor's values, or their label."""
    owners = {id(getattr(node.storage, "virtual", None)): node for node in holders()}
    return [words_of(owners[id(each)]) if id(each) in owners else each.label or "unnamed" for each in buffers]
