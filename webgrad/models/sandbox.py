"""A jinja2 environment for templates out of model files, which may be hostile.

What goes in is a template's text and plain values; what comes out is a text, or a `Refused`. jinja2's
immutable sandbox keeps a template away from Python's insides; this adds bounds. Operators, calls, filters,
tests, literals and output pay for their work by the sizes of their operands before they do it, each run of a
loop's or a macro's body pays for its length (`fuel.py`), and only the methods and filters in the tables of
`template_functions.py` are there. So time and memory are bounded without a clock, and
without a process of its own.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from types import BuiltinMethodType, FunctionType, MethodType
from typing import Any, cast

import jinja2
import jinja2.ext
import jinja2.nodes as nodes
import jinja2.runtime
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

from .fuel import FUEL, STEP, Fuel, Refused, check_bits
from .template_functions import (
    CALL,
    FILTERS,
    GLOBALS,
    INNER_FILTERS,
    LOOKUP,
    METHODS,
    PLAIN_FILTERS,
    PLAIN_METHODS,
    TEST_WORK,
    BoundedFormat,
    RefusedByTemplate,
    Work,
    formatted,
    linear,
    made,
    nothing,
    paid,
    spent,
    written_size,
)

__all__ = ["FUEL", "BoundedEnvironment", "Fuel", "Refused", "RefusedByTemplate"]

MOST_TOKENS = 12_000  # three times those of the longest published template; they compile in half a second
EMPTY = sys.getsizeof("")
NODE = 10  # units for each node of a body, at each run of it

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


def is_offered(function: Any) -> bool:
    """Whether a template may call this: what it defines itself, and what GLOBALS gives it."""
    if isinstance(function, MethodType):
        return isinstance(function.__self__, WITH_METHODS)
    if isinstance(function, (FunctionType, type)):
        return any(function is known for known in GLOBALS.values())
    return isinstance(function, (*TEMPLATES_OWN, BoundedFormat, jinja2.utils.Joiner))
