"""Reference counts of an object that nothing else holds, for each way of counting.

Out: constants, measured when this is imported, since one Python counts an argument and another does not. More
references than these mean that somebody else holds the object. The comparisons are written inline: a
function of ours would hold the object too.
"""

from __future__ import annotations

from sys import getrefcount


def _of_named() -> int:
    held = object()
    return getrefcount(held)


def _of_item() -> int:
    held = [object()]
    return getrefcount(held[0])


def _of_argument(held: object) -> int:
    return getrefcount(held)


def _argument_count() -> int:
    held = object()
    return _of_argument(held)


LISTED = next(map(getrefcount, [object()]))  # only a list holds it: `map(getrefcount, list)`
NAMED = _of_named()  # only a name of the function holds it: `getrefcount(name)`
# Only a container or an object holds it: `getrefcount(list[0])`, `getrefcount(object.member)`
ITEM = _of_item()
ARGUMENT = _argument_count()  # only a name of the caller holds it: `getrefcount(argument)`
