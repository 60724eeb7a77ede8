"""A jinja2 environment for templates out of model files, which may be hostile.

What goes in is a template's text and plain values; what comes out is a text, or a `Refused`. jinja2's
immutable sandbox keeps a template away from Python's insides; this adds bounds. Every value that a template
makes (by an operator, a call, a filter, a literal) is weighed and charged to a budget, every step looks at
the clock, and methods or filters that make much of little are not there. So time and memory stay bounded
without a process of its own.
"""

from __future__ import annotations

import functools
import json
import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from datetime import datetime
from types import BuiltinMethodType, FunctionType, MethodType
from typing import Any, cast

import jinja2
import jinja2.ext
import jinja2.filters
import jinja2.nodes as nodes
import jinja2.runtime
import markupsafe
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace
from jinja2.visitor import NodeTransformer

LONGEST_VALUE = 4_000_000  # the weight of one value: 1 for a character, ELEMENT and its own for an element
ALL_VALUES = 64_000_000  # the weight of all that one rendering makes
ELEMENT = 8
SECONDS = 1.0  # how long one rendering may take
LARGEST_NUMBER_BITS = 512
LONGEST_RANGE = 10_000
WIDEST_INDENT = 64

# What templates do with texts, lists and dictionaries; none gives much more than it takes.
PLAIN_METHODS = frozenset(
    (
        *("capitalize", "casefold", "count", "endswith", "find", "get", "index", "isalnum", "isalpha"),
        *("isascii", "isdecimal", "isdigit", "islower", "isnumeric", "isspace", "istitle", "isupper"),
        *("is_integer", "items", "keys", "lower", "lstrip", "partition", "removeprefix", "removesuffix"),
        *("rfind", "rindex", "rpartition", "rsplit", "rstrip", "split", "splitlines", "startswith", "strip"),
        *("swapcase", "title", "upper", "values"),
    )
)
PLAIN_FILTERS = (
    *("abs", "capitalize", "count", "d", "default", "dictsort", "first", "float", "groupby", "int", "items"),
    *("last", "length", "list", "lower", "map", "max", "min", "reject", "rejectattr", "reverse", "select"),
    *("selectattr", "sort", "title", "trim", "truncate", "unique", "upper", "wordcount"),
)
# A width of more than three digits in a format, or one that is computed.
WIDE_PERCENT = re.compile(r"%[^%a-zA-Z]*(\d{4}|\*)")
WIDE_BRACES = re.compile(r"\{[^{}]*\d{4}|\{[^{}]+\{")


class Refused(Exception):
    """A template went over a bound, or used what is not offered; the text says which."""


class RefusedByTemplate(Exception):
    """The template itself refused the messages, by raise_exception."""


class Budget:
    """What one rendering may still make, and when it has to end."""

    def __init__(self) -> None:
        self.left = ALL_VALUES
        self.deadline = time.monotonic() + SECONDS
        # Weights of containers by identity, with the containers, so that no identity is used twice. A list
        # that holds another one twice, which holds … is small, and endless when written: its weight says so.
        self.weights: dict[int, tuple[int, object]] = {}

    def step(self) -> None:
        if time.monotonic() > self.deadline:
            raise Refused(f"it ran for more than {SECONDS:g} s")

    def charge(self, amount: int) -> None:
        """Take a value's weight off what may be made, before it is made where that is known."""
        if amount > LONGEST_VALUE:
            raise Refused(f"it made a value of more than {LONGEST_VALUE:,} characters, or a list as large")
        self.left -= amount
        if self.left < 0:
            raise Refused(f"the values it made came to more than {ALL_VALUES:,} characters")
        self.step()

    def checked(self, value: Any) -> Any:
        self.charge(self.weigh(value))
        return value

    def weigh(self, value: object) -> int:
        if isinstance(value, str):
            return len(value)
        if isinstance(value, bool) or value is None or isinstance(value, float):
            return 1
        if isinstance(value, int):
            if value.bit_length() > LARGEST_NUMBER_BITS:
                raise Refused("it made a number of more than 150 digits")
            return 1
        if isinstance(value, CONTAINERS):
            return self.weigh_container(value)
        if isinstance(value, Namespace):
            raise Refused("it put a namespace into a value")
        return 1

    def weigh_container(self, value: Any) -> int:
        known = self.weights.get(id(value))
        if known is not None:
            return known[0]
        self.weights[id(value)] = (LONGEST_VALUE + 1, value)  # for one that holds itself
        total = 1
        for part in value:
            total += ELEMENT + self.weigh(part) + (self.weigh(value[part]) if isinstance(value, dict) else 0)
            if total > LONGEST_VALUE:
                break
        self.weights[id(value)] = (total, value)
        return total


CONTAINERS: tuple[type, ...] = (
    list,
    tuple,
    dict,
    set,
    frozenset,
    type({}.keys()),
    type({}.values()),
    type({}.items()),
)
BUDGET: ContextVar[Budget] = ContextVar("BUDGET")


def counted(values: Iterable[Any]) -> Iterator[Any]:
    """The values of a loop, with a look at the clock for each."""
    budget = BUDGET.get()
    for value in values:
        budget.step()
        yield value


def joined(parts: list[Any]) -> str:
    """The operator ~."""
    BUDGET.get().charge(sum(map(BUDGET.get().weigh, parts)))
    return "".join(map(str, parts))


@jinja2.pass_environment
def join_filter(environment: Any, values: Iterable[Any], d: str = "", attribute: str | None = None) -> str:
    """The filter join."""
    if attribute is not None:
        values = map(jinja2.filters.make_attrgetter(environment, attribute), values)
    return join_method(str(d), values)


def join_method(separator: str, values: Iterable[Any]) -> str:
    """A text's method join."""
    budget = BUDGET.get()
    parts: list[str] = []
    for value in values:
        budget.charge(budget.weigh(value) + len(separator))
        parts.append(str(value))
    return separator.join(parts)


def replace(text: str, old: str, new: str, count: int | None = -1) -> str:
    """The filter and the method replace."""
    text, old, new = str(text), str(old), str(new)
    places = text.count(old) if count is None or count < 0 else min(text.count(old), count)
    BUDGET.get().charge(len(text) + places * len(new))
    return text.replace(old, new, -1 if count is None else count)


def indent(text: str, width: int | str = 4, first: bool = False, blank: bool = False) -> str:
    """The filter indent."""
    margin = len(width) if isinstance(width, str) else width
    if margin > WIDEST_INDENT:
        raise Refused(f"it indents by more than {WIDEST_INDENT}")
    BUDGET.get().charge(len(text) + len(text.splitlines()) * (margin + 1))
    return jinja2.filters.do_indent(text, width, first, blank)


def rounded(value: float, precision: int = 0, method: Any = "common") -> float:
    """The filter round."""
    if abs(precision) > 100:
        raise Refused("it rounds to more than 100 digits")
    return jinja2.filters.do_round(value, precision, method)


def escaped(value: object) -> str:
    """The filter escape, for web pages; its result is a text like any other."""
    return str(markupsafe.escape(str(value)))


def tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """JSON as it is, with nothing escaped for web pages."""
    BUDGET.get().checked(value)
    if (len(indent) if isinstance(indent, str) else indent or 0) > WIDEST_INDENT:
        raise Refused(f"it indents by more than {WIDEST_INDENT}")
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def formatted(text: str, values: Any) -> str:
    """Python's % for texts."""
    budget = BUDGET.get()
    if WIDE_PERCENT.search(text):
        raise Refused("it formats with a width of more than three digits")
    budget.charge(len(text) + 1000 * text.count("%") + budget.weigh(values))
    result: str = text % values
    return result


def format_filter(text: str, *values: Any, **named: Any) -> str:
    """The filter format."""
    return formatted(str(text), named or values)


def raise_exception(message: object) -> None:
    """How a template refuses messages."""
    raise RefusedByTemplate(str(message)[:1000])


def strftime_now(form: str) -> str:
    """The time here and now."""
    if len(form) > 100 or re.search(r"%.?\d", form):
        raise Refused("it formats the time with a width, or with more than 100 characters")
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
        self, values = args[0], dict(*args[1:], **named)
        Namespace.__init__(self)
        for name, value in values.items():
            self[name] = value

    def __setitem__(self, name: str, value: Any) -> None:
        if str(name).startswith("_"):
            raise Refused(f"it sets {name} of a namespace")
        super().__setitem__(name, BUDGET.get().checked(value))


def new_dict(*args: Any, **named: Any) -> dict[Any, Any]:
    """Python's dict, without the methods of the class."""
    return dict(*args, **named)


METHODS: dict[str, Callable[..., Any]] = {"join": join_method, "replace": replace}
FILTERS: dict[str, Callable[..., Any]] = {
    **{name: jinja2.filters.FILTERS[name] for name in PLAIN_FILTERS},
    "join": join_filter,
    "replace": replace,
    "indent": indent,
    "round": rounded,
    "tojson": tojson,
    "format": format_filter,
    "string": str,
    "safe": str,
    "e": escaped,
    "escape": escaped,
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
TEMPLATES_OWN = (
    jinja2.runtime.Macro,
    jinja2.runtime.LoopContext,
    jinja2.runtime.BlockReference,
    jinja2.Undefined,
)
WITH_METHODS = (jinja2.runtime.LoopContext, jinja2.utils.Cycler)


def guarded(function: Callable[..., Any]) -> Callable[..., Any]:
    """A filter whose result is weighed; jinja2's marks on it (which takes the context …) are kept."""

    def call(*args: Any, **named: Any) -> Any:
        budget = BUDGET.get()
        for value in (*args, *named.values()):
            budget.weigh(value)  # refuses what cannot be written, whatever the filter does with it
        budget.step()
        result = function(*args, **named)
        # Not lazily: generators of generators would be a stack as deep as a template likes.
        return budget.checked(list(counted(result)) if isinstance(result, Iterator) else result)

    call.__dict__.update(getattr(function, "__dict__", {}))
    return call


def timed(function: Callable[..., Any]) -> Callable[..., Any]:
    """A test, with a look at the clock."""

    def call(*args: Any) -> Any:
        BUDGET.get().step()
        return function(*args)

    call.__dict__.update(getattr(function, "__dict__", {}))
    return call


class Weighing(NodeTransformer):
    """Puts a weighing around what jinja2 computes without asking the environment."""

    def around(self, node: Any, name: str) -> Any:
        node = self.generic_visit(node)
        return nodes.Filter(node, name, [], [], None, None, lineno=node.lineno)

    def visit_List(self, node: nodes.List) -> Any:
        return self.around(node, "checked value")

    visit_Dict = visit_Compare = visit_List

    def visit_Tuple(self, node: nodes.Tuple) -> Any:
        return self.around(node, "checked value") if node.ctx == "load" else self.generic_visit(node)

    def visit_Getitem(self, node: nodes.Getitem) -> Any:
        is_slice = isinstance(node.arg, nodes.Slice)
        return self.around(node, "checked value") if is_slice else self.generic_visit(node)

    def visit_Concat(self, node: nodes.Concat) -> Any:
        self.generic_visit(node)
        parts = nodes.List(node.nodes, lineno=node.lineno)
        return nodes.Filter(parts, "joined parts", [], [], None, None, lineno=node.lineno)

    def visit_For(self, node: nodes.For) -> Any:
        self.generic_visit(node)
        node.iter = nodes.Filter(node.iter, "counted values", [], [], None, None, lineno=node.lineno)
        return node

    def visit_TemplateData(self, node: nodes.TemplateData) -> Any:
        return nodes.Const(node.data, lineno=node.lineno)  # so that it is charged like other output


class Generation(jinja2.ext.Extension):
    """{% generation %}: what training code marks as the model's own words; here its text only."""

    tags = {"generation"}  # noqa: RUF012 (jinja2 declares it so)

    def parse(self, parser: Parser) -> Any:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


@jinja2.pass_context
def finalize(context: Any, value: Any) -> Any:
    """What is written; taking the context keeps jinja2 from computing constants while it compiles."""
    return BUDGET.get().checked(value)


class BoundedEnvironment(ImmutableSandboxedEnvironment):
    """jinja2's sandbox as chat templates expect it, with every way to make values bounded."""

    intercepted_binops = frozenset(("+", "-", "*", "/", "//", "**", "%"))

    def __init__(self) -> None:
        extensions = (Generation, jinja2.ext.loopcontrols)
        super().__init__(
            trim_blocks=True, lstrip_blocks=True, extensions=extensions, optimized=False, finalize=finalize
        )
        self.globals = dict(GLOBALS)
        self.filters = {name: guarded(function) for name, function in FILTERS.items()}
        # Names that no template can write.
        self.filters |= {"checked value": checked, "joined parts": joined, "counted values": counted}
        self.tests = {name: timed(cast(Any, function)) for name, function in self.tests.items()}

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree: nodes.Template = Weighing().visit(super()._parse(source, name, filename))
        return tree

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        budget = BUDGET.get()
        weights = budget.weigh(left), budget.weigh(right)
        if operator == "%" and isinstance(left, str):
            return budget.checked(formatted(left, right))
        if operator == "*":
            times = max((value for value in (left, right) if isinstance(value, int)), default=0)
            if not isinstance(left, (int, float)) or not isinstance(right, (int, float)):
                budget.charge(max(weights) * max(times, 0))
        are_whole = isinstance(left, int) and isinstance(right, int)
        if operator == "**" and are_whole and left.bit_length() * right > LARGEST_NUMBER_BITS:
            raise Refused("it made a number of more than 150 digits")
        return budget.checked(self.binop_table[operator](left, right))

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        function = super().wrap_str_format(value)
        if function is None:
            return None
        if WIDE_BRACES.search(value.__self__):
            raise Refused("it formats with a width of more than three digits")
        return BoundedFormat(function, value.__self__)

    def call(__self, __context: Any, __function: Any, *args: Any, **named: Any) -> Any:
        budget = BUDGET.get()
        budget.step()
        if isinstance(__function, jinja2.runtime.LoopContext) and args:
            args = (counted(args[0]), *args[1:])
        elif isinstance(__function, BuiltinMethodType):
            for value in args:  # what comes by name is jinja2's own, or a number
                budget.weigh(value)
            __function = __self.bounded_method(__function)
        elif not is_offered(__function):
            raise Refused(
                f"it calls {type(__function).__name__} {str(__function)[:60]}, which is not offered"
            )
        result = super().call(__context, __function, *args, **named)
        return result if isinstance(result, (Namespace, Iterator)) else budget.checked(result)

    def bounded_method(self, method: BuiltinMethodType) -> Callable[..., Any]:
        name = method.__name__
        if name in METHODS and isinstance(method.__self__, str):
            return functools.partial(METHODS[name], method.__self__)
        if name in PLAIN_METHODS:
            return method
        raise Refused(f"it calls the method {name}, which is not offered")


class BoundedFormat:
    """A text's format method, whose result is charged before it is made."""

    def __init__(self, function: Callable[..., str], text: str) -> None:
        self.function, self.text = function, text

    def __call__(self, *args: Any, **named: Any) -> str:
        budget = BUDGET.get()
        largest = max(map(budget.weigh, (*args, *named.values())), default=0)
        budget.charge(len(self.text) + self.text.count("{") * (1000 + largest))
        return self.function(*args, **named)


def checked(value: Any) -> Any:
    """The value, charged."""
    return BUDGET.get().checked(value)


def is_offered(function: Any) -> bool:
    """Whether a template may call this: what it defines itself, and what GLOBALS gives it."""
    if isinstance(function, MethodType):
        return isinstance(function.__self__, WITH_METHODS)
    if isinstance(function, (FunctionType, type)):
        return any(function is known for known in GLOBALS.values())
    return isinstance(function, (*TEMPLATES_OWN, BoundedFormat, jinja2.utils.Joiner))
