"""A jinja2 environment for templates out of model files, which may be hostile.

What goes in is a template's text and plain values; what comes out is a text, or a `Refused`. jinja2's
immutable sandbox keeps a template away from Python's insides; this adds bounds. Operators, calls, filters,
tests, literals and output pay for their work by the sizes of their operands before they do it, each run of a
loop's or a macro's body pays for its length (`fuel.py`), and only the methods and filters in the tables below
are there. So time and memory are bounded without a clock, and without a process of its own.
"""

from __future__ import annotations

import functools
import json
import operator
import re
import sys
from collections.abc import Callable, Iterable, Iterator
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

from .fuel import (
    CONTAINERS,
    ELEMENT,
    FUEL,
    LONGEST_VALUE,
    STEP,
    Fuel,
    Refused,
    check_bits,
    check_keys,
    search_work,
)

__all__ = ["FUEL", "BoundedEnvironment", "Fuel", "Refused", "RefusedByTemplate"]

MOST_TOKENS = 12_000  # three times those of the longest published template; they compile in half a second
LONGEST_RANGE = 10_000
WIDEST_INDENT = 64
PIECE = 60  # bytes of a short text
LETTER = 110  # bytes of a letter that is an element of a list
EMPTY = sys.getsizeof("")
NODE = 10  # units for each node of a body, at each run of it
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
        length = len(value) if isinstance(value, (str, *CONTAINERS)) else 0
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
TEMPLATES_OWN = (
    jinja2.runtime.Macro,
    jinja2.runtime.LoopContext,
    jinja2.runtime.BlockReference,
    jinja2.Undefined,
)
WITH_METHODS = (jinja2.runtime.LoopContext, jinja2.utils.Cycler)
NUMBERS = (int, float, complex, jinja2.Undefined)
JINJAS_OWN = (jinja2.Environment, jinja2.runtime.Context, nodes.EvalContext)


def guarded(function: Callable[..., Any], work: Work) -> Callable[..., Any]:
    """A filter that pays before it runs, with jinja2's marks (that it takes the context …)."""

    def call(*args: Any, **named: Any) -> Any:
        values = [value for value in (*args, *named.values()) if not isinstance(value, JINJAS_OWN)]
        return paid(functools.partial(function, *args, **named), work, values)

    call.__dict__.update(getattr(function, "__dict__", {}))
    return call


def tested(function: Callable[..., Any], work: Work) -> Callable[..., Any]:
    """A test that pays before it runs."""

    def call(*args: Any) -> Any:
        spent(STEP + work([value for value in args if not isinstance(value, JINJAS_OWN)]))
        return function(*args)

    call.__dict__.update(getattr(function, "__dict__", {}))
    return call


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
# Bodies that may run more often than they are written.
REPEATED = (nodes.For, nodes.Macro, nodes.CallBlock, nodes.Block)


class Paying(NodeTransformer):
    """Lets what jinja2 computes without asking the environment pay for itself."""

    def visit_Template(self, node: nodes.Template) -> Any:
        self.names = NODE * sum(1 for _ in node.find_all(nodes.Name))
        return self.generic_visit(node)

    def through(self, node: Any, name: str, *args: Any) -> Any:
        return nodes.Filter(node, name, list(args), [], None, None, lineno=node.lineno)

    def visit_List(self, node: nodes.List) -> Any:
        return self.through(self.generic_visit(node), "made value")

    def visit_Tuple(self, node: nodes.Tuple) -> Any:
        self.generic_visit(node)
        return self.through(node, "made value") if node.ctx == "load" else node

    def visit_Dict(self, node: nodes.Dict) -> Any:
        self.generic_visit(node)
        pairs = [nodes.Tuple([pair.key, pair.value], "load", lineno=node.lineno) for pair in node.items]
        return self.through(nodes.List(pairs, lineno=node.lineno), "new dict")

    def visit_Getitem(self, node: nodes.Getitem) -> Any:
        self.generic_visit(node)
        return self.through(node, "made value") if isinstance(node.arg, nodes.Slice) else node

    def visit_Concat(self, node: nodes.Concat) -> Any:
        self.generic_visit(node)
        return self.through(nodes.List(node.nodes, lineno=node.lineno), "joined parts")

    def visit_Compare(self, node: nodes.Compare) -> Any:
        self.generic_visit(node)
        pairs = [part for each in node.ops for part in (nodes.Const(each.op), each.expr)]
        return self.through(node.expr, "compared values", *pairs)

    def visit_Call(self, node: Any) -> Any:
        self.generic_visit(node)
        if node.dyn_args is not None:
            node.dyn_args = self.through(node.dyn_args, "listed values")
        return node

    visit_Filter = visit_Test = visit_Call

    def visit_TemplateData(self, node: nodes.TemplateData) -> Any:
        return nodes.Const(node.data, lineno=node.lineno)  # so that it is paid for like other output

    def visit_ScopedEvalContextModifier(self, node: Any) -> Any:
        raise Refused("it uses autoescape, which is not offered")

    def visit_For(self, node: Any) -> Any:
        units = STEP + NODE * length_of(node)
        if isinstance(node, nodes.Macro):
            units += STEP * len(node.args)
        if isinstance(node, nodes.Block):
            units += self.names  # of which a scoped block gets a copy
        self.generic_visit(node)
        payment = self.through(nodes.Const(units, lineno=node.lineno), "spent units")
        if getattr(node, "test", None) is not None:
            node.test = nodes.And(payment, node.test, lineno=node.lineno)
        node.body.insert(0, nodes.ExprStmt(payment, lineno=node.lineno))
        return node

    visit_Macro = visit_CallBlock = visit_Block = visit_For


def length_of(node: nodes.Node) -> int:
    """The nodes that a run of a body goes through at most; bodies in it pay for themselves."""
    return 1 + sum(
        1 if isinstance(child, REPEATED) else length_of(child) for child in node.iter_child_nodes()
    )


class Generation(jinja2.ext.Extension):
    """{% generation %}: what training code marks as the model's own words; here its text only."""

    tags = {"generation"}  # noqa: RUF012 (jinja2 declares it so)

    def filter_stream(self, stream: Any) -> Iterator[Any]:
        """All tokens of the template, of which there may be so many: they decide how long it compiles."""
        for place, token in enumerate(stream):
            if place == MOST_TOKENS:
                raise Refused(f"it has more than {MOST_TOKENS:,} words and signs")
            yield token

    def parse(self, parser: Parser) -> Any:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


@jinja2.pass_context
def finalize(context: Any, value: Any) -> Any:
    """What is written; taking the context keeps jinja2 from computing constants while it compiles."""
    FUEL.get().spend(written_size(value))
    return value


class BoundedEnvironment(ImmutableSandboxedEnvironment):
    """jinja2's sandbox as chat templates expect it, where every operation is paid for."""

    intercepted_binops = frozenset(("+", "-", "*", "/", "//", "**", "%"))

    def __init__(self) -> None:
        extensions = (Generation, jinja2.ext.loopcontrols)
        super().__init__(
            trim_blocks=True, lstrip_blocks=True, extensions=extensions, optimized=False, finalize=finalize
        )
        self.globals = dict(GLOBALS)
        self.filters = {
            name: guarded(function, PLAIN_FILTERS.get(name, nothing)) for name, function in FILTERS.items()
        }
        self.filters |= INNER_FILTERS
        self.tests = {
            name: tested(cast(Any, function), TEST_WORK.get(name, nothing))
            for name, function in self.tests.items()
        }

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree: nodes.Template = Paying().visit(super()._parse(source, name, filename))
        return tree

    def getitem(self, obj: Any, argument: Any) -> Any:
        fuel = FUEL.get()
        fuel.spend(LOOKUP + (fuel.size(argument) if isinstance(argument, tuple) else 0))
        return super().getitem(obj, argument)

    def getattr(self, obj: Any, attribute: str) -> Any:
        FUEL.get().spend(LOOKUP)
        return super().getattr(obj, attribute)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        fuel = FUEL.get()
        sizes = fuel.size(left), fuel.size(right)
        fuel.spend(STEP)
        if isinstance(left, str) and operator == "%":
            return fuel.made(formatted(left, right))
        if isinstance(left, NUMBERS) and isinstance(right, NUMBERS):
            if operator == "**" and isinstance(left, int) and isinstance(right, int):
                check_bits(left.bit_length() * right)
        elif operator == "*":
            times = max((value for value in (left, right) if isinstance(value, int)), default=0)
            fuel.spend((max(sizes) - EMPTY) * max(times, 0))
        elif operator != "+":  # nor are there sets of what the views of a dictionary have
            raise TypeError(f"{type(left).__name__} {operator} {type(right).__name__}")
        return fuel.made(self.binop_table[operator](left, right))

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        function = super().wrap_str_format(value)
        return None if function is None else BoundedFormat(function, value.__self__)

    def call(__self, __context: Any, __function: Any, *args: Any, **named: Any) -> Any:
        values = [*args, *(named[name] for name in named if name not in ("_loop_vars", "_block_vars"))]
        call = functools.partial(super().call, __context, __function, *args, **named)
        if isinstance(__function, BuiltinMethodType):
            name, owner = __function.__name__, __function.__self__
            if name in METHODS and isinstance(owner, str):
                method = functools.partial(METHODS[name], owner)
                call = functools.partial(super().call, __context, method, *args, **named)
            elif name not in PLAIN_METHODS:
                raise Refused(f"it calls the method {name}, which is not offered")
            return paid(call, PLAIN_METHODS.get(name, nothing), [owner, *values])
        if not is_offered(__function):
            raise Refused(
                f"it calls {type(__function).__name__} {str(__function)[:60]}, which is not offered"
            )
        if isinstance(__function, (*TEMPLATES_OWN, BoundedFormat)):  # whose bodies pay
            FUEL.get().spend(CALL)
            return made(call())
        return paid(call, linear(1), values)


class BoundedFormat:
    """A text's format method, which pays before it runs."""

    def __init__(self, function: Callable[..., str], text: str) -> None:
        self.function, self.text = function, text

    def __call__(self, *args: Any, **named: Any) -> str:
        if COMPUTED_BRACES.search(self.text):
            raise Refused("it formats with a width that is computed")
        spend_on_format(self.text, "{", (*args, *named.values()))
        return self.function(*args, **named)


def is_offered(function: Any) -> bool:
    """Whether a template may call this: what it defines itself, and what GLOBALS gives it."""
    if isinstance(function, MethodType):
        return isinstance(function.__self__, WITH_METHODS)
    if isinstance(function, (FunctionType, type)):
        return any(function is known for known in GLOBALS.values())
    return isinstance(function, (*TEMPLATES_OWN, BoundedFormat, jinja2.utils.Joiner))
