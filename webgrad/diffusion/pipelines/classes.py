"""Classes by their numbers and by their names, as `id2label` of model_index.json has them.

In: what a user asks for, a number or a name, or several. Out: numbers, one for each picture.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import webgrad as wg

__all__ = ["Classes", "Labels", "labels_of", "numbers_of"]

Labels = Mapping[int, str]  # a class's names, with commas between them
Classes = int | str | Sequence[int | str]


def labels_of(settings: Mapping[str, Any], source: str) -> Labels:
    """The names of classes that model_index.json has; none where it says nothing of them."""
    given = settings.get("id2label") or {}
    if isinstance(given, dict) and all(_is_label(*each) for each in given.items()):
        return {int(number): name for number, name in given.items()}
    raise wg.ModelFileError(f"{source}: id2label is no table of classes' numbers and names")


def _is_label(number: Any, name: Any) -> bool:
    return isinstance(name, str) and str(number).isascii() and str(number).isdecimal() and len(number) < 10


def numbers_of(labels: Labels, wanted: Classes, count: int, known: int | None) -> list[int]:
    """The classes of `count` pictures: one for all of them, or one each, of so many that there are.

    >>> numbers_of({0: "Sandal", 1: "Ankle boot"}, "boot", 2, 2)
    [1, 1]
    """
    several: list[Any] = [wanted] * count
    if isinstance(wanted, Iterable) and not isinstance(wanted, str):
        several = list(wanted)
    if len(several) != count:
        raise wg.ArgumentError(f"there are {count} pictures, and classes for {len(several)}")
    numbers = [_named(labels, each) if isinstance(each, str) else _number(each) for each in several]
    if known is not None and not all(0 <= each < known for each in numbers):
        raise wg.ArgumentError(f"the network knows classes 0 to {known - 1}, and it was asked for {numbers}")
    return numbers


def _number(given: Any) -> int:
    try:
        found = operator.index(given)
    except TypeError:
        found = None
    if found is None or isinstance(given, bool):
        raise wg.ArgumentError(f"a class is a number or a name, not {given!r}")
    return found


def _named(labels: Labels, name: str) -> int:
    """The class that has this name, or else the only one that has it in its name."""
    word = name.strip().casefold()
    names = {
        number: [each.strip().casefold() for each in label.split(",")] for number, label in labels.items()
    }
    found = [number for number, several in names.items() if word in several]
    found = found or [number for number, label in labels.items() if word and word in label.casefold()]
    if len(found) != 1:
        what = "several classes have" if found else "no class has"
        known = ", ".join([*labels.values()][:20]) or "the model names none"
        raise wg.ArgumentError(f"{what} the name {name!r}: {known}")
    return found[0]
