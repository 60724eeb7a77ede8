"""What a template out of a model file may call, and what each call pays: methods, filters, tests, functions.

In: plain values. Out: the same, or a `Refused`. Tables name everything that is offered, beside the work it
does for its operands; the functions that stand here pay by themselves.
"""

from __future__ import annotations

import json
import operator
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any

import jinja2
import jinja2.filters
import markupsafe
from jinja2.utils import Namespace

from .fuel import ELEMENT, FUEL, LONGEST_VALUE, STEP, Refused, check_keys, search_work

__all__ = [
    "CALL",
    "FILTERS",
    "GLOBALS",
    "INNER_FILTERS",
    "LOOKUP",
    "METHODS",
    "PLAIN_FILTERS",
    "PLAIN_METHODS",
    "TEST_WORK",
    "BoundedFormat",
    "RefusedByTemplate",
    "Work",
    "formatted",
    "linear",
    "made",
    "nothing",
    "paid",
    "spent",
    "written_size",
]

LONGEST_RANGE = 10_000
WIDEST_INDENT = 64
PIECE = 60  # bytes of a short text
LETTER = 110  # bytes of a letter that is an element of a list
ESCAPES = 6  # letters that one becomes where it is written as repr or JSON do
LOOKUP = 200  # an attribute
CALL = 1000  # a macro's
SORTED = 500  # an element that is sorted
FIELD = 400  # units for each field of a format

# Where a format asks for a width that is computed.
COMPUTED_PERCENT = re.compile(r"%(\([^)]*\))?[^a-zA-Z%]*\*")
COMPUTED_BRACES = re.compile(r"\{[^{}]+\{")


class RefusedByTemplate(Exception):
    """The template itself refused the messages, by raise_exception."""


def compared(left: Any, *pairs: Any) -> Any:
    """A comparison, `left`, then operators and operands by turns."""
    fuel = FUEL.get()
    result: Any = True
    for name, right in zip(pairs[::2], pairs[1::2], strict=True):
        fuel.spend(LOOKUP + comparing([left, right]) + (fuel.size(right) if name in MEMBERSHIP else 0))
        result = COMPARISONS[name](left, right)
        if not result:
            break
        left = right
    return result


COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "lteq": operator.le,
    "gt": operator.gt,
    "gteq": operator.ge,
    "in": lambda item, values: item in values,
    "notin": lambda item, values: item not in values,
}
MEMBERSHIP = ("in", "notin")


def joined(parts: list[Any]) -> str:
    """The operator ~."""
    return join_method("", parts)


@jinja2.pass_environment
def join_filter(environment: Any, values: Iterable[Any], d: str = "", attribute: str | None = None) -> str:
    """The filter join."""
    if attribute is not None:
        values = map(jinja2.filters.make_attrgetter(environment, attribute), values)
    return join_method(str(d), values)


def join_method(separator: str, values: Iterable[Any]) -> str:
    """A text's method join."""
    fuel = FUEL.get()
    parts: list[str] = []
    for value in values:
        fuel.spend(ELEMENT + written_size(value) + sys.getsizeof(separator))
        parts.append(str(value))
    return separator.join(parts)


def written_size(value: Any) -> int:
    """The bytes of a value where it is written as a text."""
    size = FUEL.get().size(value)
    return size if isinstance(value, str) else size * ESCAPES


def replace(text: str, old: str, new: str, count: int | None = -1) -> str:
    """The filter and the method replace."""
    fuel = FUEL.get()
    text, old, new = str(text), str(old), str(new)
    fuel.spend(search_work(text, old))
    places = text.count(old) if count is None or count < 0 else min(text.count(old), count)
    fuel.spend(fuel.size(text) + places * fuel.size(new))
    return text.replace(old, new, -1 if count is None else count)


def split(text: str, sep: str | None = None, maxsplit: int = -1) -> list[str]:
    """A text's method split."""
    spend_on_pieces(text, sep)
    return text.split(sep, maxsplit)


def rsplit(text: str, sep: str | None = None, maxsplit: int = -1) -> list[str]:
    """A text's method rsplit."""
    spend_on_pieces(text, sep)
    return text.rsplit(sep, maxsplit)


def spend_on_pieces(text: str, sep: str | None) -> None:
    """Pay for what a split makes."""
    fuel = FUEL.get()
    fuel.spend(fuel.size(text) + search_work(text, sep or ""))
    fuel.spend(PIECE * (text.count(sep) if sep else len(text) // 2))


def indent(text: str, width: int | str = 4, first: bool = False, blank: bool = False) -> str:
    """The filter indent."""
    margin = len(width) if isinstance(width, str) else width
    if margin > WIDEST_INDENT:
        raise Refused(f"it indents by more than {WIDEST_INDENT}")
    FUEL.get().spend(len(text) * (margin + ELEMENT))  # each letter may be a line
    return jinja2.filters.do_indent(text, width, first, blank)


def rounded(value: float, precision: int = 0, method: Any = "common") -> float:
    """The filter round."""
    if abs(precision) > 100:
        raise Refused("it rounds to more than 100 digits")
    return jinja2.filters.do_round(value, precision, method)


def escaped(value: object) -> str:
    """The filter escape, for web pages; its result is a text like any other."""
    FUEL.get().spend(written_size(value) * ESCAPES)
    return str(markupsafe.escape(str(value)))


def written(value: object) -> str:
    """The filters string and safe."""
    FUEL.get().spend(written_size(value))
    return str(value)


def tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """JSON as it is, with nothing escaped for web pages."""
    fuel = FUEL.get()
    size, height = fuel.measured([value])
    margin = len(indent) if isinstance(indent, str) else indent or 0
    if margin > WIDEST_INDENT:
        raise Refused(f"it indents by more than {WIDEST_INDENT}")
    between = margin * height + sum(map(len, separators or ()))  # what each element may have beside it
    fuel.spend(size * ESCAPES + size // ELEMENT * between)
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def formatted(text: str, values: Any) -> str:
    """Python's % for texts."""
    if COMPUTED_PERCENT.search(text):
        raise Refused("it formats with a width that is computed")
    spend_on_format(text, "%", [values])
    result: str = text % values
    return result


def spend_on_format(text: str, mark: str, values: Iterable[Any]) -> None:
    """Pay for a format: each field may write every value, and each number in it may be a width."""
    fuel = FUEL.get()
    fields = text.count(mark)
    widths = sum(int(digits[:12]) for digits in re.findall(r"\d+", text)) if fields else 0
    fuel.spend(fuel.size(text) + widths * 4 + fields * (FIELD + sum(map(written_size, values))))


def format_filter(text: str, *values: Any, **named: Any) -> str:
    """The filter format."""
    return formatted(str(text), named or values)


def raise_exception(message: object) -> None:
    """How a template refuses messages."""
    raise RefusedByTemplate(written(message)[:1000])


def strftime_now(form: str) -> str:
    """The time here and now."""
    if len(form) > 100 or re.search(r"%[^a-zA-Z%]*\d", form):
        raise Refused("it formats the time with a width, or with more than 100 characters")
    spent(CALL * form.count("%"))
    return datetime.now().strftime(form)


def bounded_range(*ends: int) -> range:
    """Python's range."""
    values = range(*ends)
    if len(values) > LONGEST_RANGE:
        raise Refused(f"it counts further than {LONGEST_RANGE:,}")
    return values


class BoundedNamespace(Namespace):
    """What templates keep across loops; one in another could be written endlessly, so that is refused."""

    def __init__(*args: Any, **named: Any) -> None:
        self, values = args[0], new_dict(*args[1:], **named)
        spent(CALL)
        Namespace.__init__(self)
        for name, value in values.items():
            self[name] = value

    def __setitem__(self, name: str, value: Any) -> None:
        if str(name).startswith("_"):
            raise Refused(f"it sets {name} of a namespace")
        super().__setitem__(name, made(value))


def new_dict(values: Any = (), **named: Any) -> dict[Any, Any]:
    """Python's dict, without the methods of the class."""
    pairs = values.items() if isinstance(values, dict) else [tuple(pair) for pair in values]
    check_keys(key for key, _ in pairs)
    return {**dict(pairs), **named}


# What an operation pays, by its operands (the text or list first), before it runs.
Work = Callable[[list[Any]], int]


def linear(units: int) -> Work:
    """So many units for each byte that goes in."""
    return lambda values: units * sum(map(FUEL.get().size, values))


def searching(values: list[Any]) -> int:
    """Each letter may be compared with each that is sought."""
    return linear(1)(values) + (search_work(values[0], values[1]) if len(values) > 1 else 0)


def comparing(values: list[Any]) -> int:
    """Two values are compared up to the end of the smaller, or one is sought in the other."""
    return min(map(FUEL.get().size, values)) + search_work(*reversed(values)) if len(values) == 2 else 0


def by_element(units: int) -> Work:
    """So many units for each element of a list; of a text, each letter is one."""

    def work(values: list[Any]) -> int:
        value: Any = values[0] if values else ()
        length = len(value) if hasattr(value, "__len__") else 0
        if isinstance(value, str) and length * LETTER > LONGEST_VALUE:
            raise Refused(f"it goes through a text of more than {LONGEST_VALUE // LETTER:,} letters")
        return units * length

    return work


def sorting(values: list[Any]) -> int:
    """Elements are compared with one another, whatever they hold."""
    return by_element(SORTED)(values) + linear(6)(values)


def nothing(values: list[Any]) -> int:
    """What takes no time, and functions of this file, which spend by themselves."""
    return 0


# What templates do with texts, lists and dictionaries, and what it costs. The first are Python's own.
PLAIN_METHODS: dict[str, Work] = {
    **dict.fromkeys(("get", "is_integer", "items", "keys", "values"), nothing),
    **dict.fromkeys(("endswith", "removeprefix", "removesuffix", "startswith"), linear(1)),
    **dict.fromkeys(("isalnum", "isalpha", "isascii", "isdecimal", "isdigit", "islower"), linear(1)),
    **dict.fromkeys(("isnumeric", "isspace", "istitle", "isupper"), linear(1)),
    **dict.fromkeys(("capitalize", "casefold", "lower", "swapcase", "title", "upper"), linear(3)),
    **dict.fromkeys(("count", "find", "index", "lstrip", "partition", "rfind", "rindex"), searching),
    **dict.fromkeys(("rpartition", "rstrip", "strip"), searching),
    "splitlines": linear(PIECE // 2),
}
METHODS: dict[str, Callable[..., Any]] = {
    "join": join_method,
    "replace": replace,
    "split": split,
    "rsplit": rsplit,
}
PLAIN_FILTERS: dict[str, Work] = {
    **dict.fromkeys(("abs", "count", "d", "default", "first", "last", "length"), nothing),
    **dict.fromkeys(("float", "int", "reverse"), linear(1)),
    **dict.fromkeys(("capitalize", "lower", "truncate", "upper"), linear(3)),
    **dict.fromkeys(("title", "wordcount"), linear(60)),
    "trim": searching,
    **dict.fromkeys(("items", "list", "map", "reject", "rejectattr"), by_element(ELEMENT)),
    **dict.fromkeys(("select", "selectattr"), by_element(ELEMENT)),
    **dict.fromkeys(("dictsort", "groupby", "max", "min", "sort", "unique"), sorting),
}
FILTERS: dict[str, Callable[..., Any]] = {
    **{name: jinja2.filters.FILTERS[name] for name in PLAIN_FILTERS},
    "join": join_filter,
    "replace": replace,
    "indent": indent,
    "round": rounded,
    "tojson": tojson,
    "format": format_filter,
    "string": written,
    "safe": written,
    "e": escaped,
    "escape": escaped,
}
# The tests that look into their operands.
TEST_WORK: dict[str, Work] = {
    **dict.fromkeys(("eq", "equalto", "==", "ne", "!=", "lt", "lessthan", "<", "le", "<="), comparing),
    **dict.fromkeys(("gt", "greaterthan", ">", "ge", ">="), comparing),
    **dict.fromkeys(("lower", "upper"), linear(1)),
    "in": lambda values: comparing(values) + linear(1)(values),
}
GLOBALS: dict[str, Any] = {
    "range": bounded_range,
    "dict": new_dict,
    "namespace": BoundedNamespace,
    "raise_exception": raise_exception,
    "strftime_now": strftime_now,
    "cycler": jinja2.utils.Cycler,
    "joiner": jinja2.utils.Joiner,
}


def paid(function: Callable[[], Any], work: Work, values: list[Any]) -> Any:
    """The function's result, after its work is paid; the result is paid too."""
    fuel = FUEL.get()
    for value in values:
        fuel.size(value)  # refuses what cannot be written, whatever the function does with it
    fuel.spend(STEP + work(values))
    result = function()
    if isinstance(result, Namespace):
        return result
    # Not lazily: generators of generators would be a stack as deep as a template likes.
    return fuel.made(listed(result) if isinstance(result, Iterator) else result)


def listed(values: Iterable[Any]) -> list[Any]:
    """The values as a list, each paid for before the next is asked for."""
    fuel = FUEL.get()
    elements = []
    for value in values:
        fuel.spend(ELEMENT + (sys.getsizeof(value) if isinstance(value, str) else 0))
        elements.append(value)
    return elements


def made(value: Any) -> Any:
    """The value, paid for."""
    return FUEL.get().made(value)


def spent(units: int) -> bool:
    """True, after so much is paid."""
    FUEL.get().spend(units)
    return True


# Names that no template can write, for what `Paying` puts into its tree.
INNER_FILTERS: dict[str, Callable[..., Any]] = {
    "made value": made,
    "new dict": lambda pairs: made(new_dict(pairs)),
    "joined parts": joined,
    "listed values": listed,
    "compared values": compared,
    "spent units": spent,
}


class BoundedFormat:
    """A text's format method, which pays before it runs."""

    def __init__(self, function: Callable[..., str], text: str) -> None:
        self.function, self.text = function, text

    def __call__(self, *args: Any, **named: Any) -> str:
        if COMPUTED_BRACES.search(self.text):
            raise Refused("it formats with a width that is computed")
        spend_on_format(self.text, "{", (*args, *named.values()))
        return self.function(*args, **named)
