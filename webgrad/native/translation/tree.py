"""The nodes of WGSL's trees: expressions and statements.

Named tuples; `at` is the index of a token, for errors. All loops are one kind: a condition, a body, and what
runs after each turn. A type is an expression: a Name with its template arguments. `{0}`, an operand in the
spelling of a map op, is a Name too.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias


class Number(NamedTuple):
    """A literal, as it is written."""

    text: str
    at: int


class Name(NamedTuple):
    """A name, or a type: `vec2<f32>` has one template argument."""

    name: str
    template: tuple[Expression, ...]
    at: int


class Unary(NamedTuple):
    """`-x`, `!x`, `~x`, `*x`, `&x`."""

    sign: str
    operand: Expression
    at: int


class Binary(NamedTuple):
    """`left sign right`."""

    sign: str
    left: Expression
    right: Expression
    at: int


class Call(NamedTuple):
    """A call of a function, or a constructor."""

    callee: Name
    arguments: tuple[Expression, ...]
    at: int


class Member(NamedTuple):
    """`of.name`."""

    of: Expression
    name: str
    at: int


class Index(NamedTuple):
    """`of[place]`."""

    of: Expression
    place: Expression
    at: int


Expression: TypeAlias = Number | Name | Unary | Binary | Call | Member | Index


class Declare(NamedTuple):
    """`let`, `var` or `const`."""

    keyword: str
    name: str
    type: Expression | None
    value: Expression | None
    at: int


class Assign(NamedTuple):
    """`target = value`; `sign` is + in `x += y` and `x++`, else empty."""

    target: Expression
    sign: str
    value: Expression
    at: int


class Evaluate(NamedTuple):
    """A call for its effect, or `_ = value`."""

    value: Expression
    at: int


class If(NamedTuple):
    """`if`, with what follows `else`."""

    condition: Expression
    yes: Block
    no: Block
    at: int


class Loop(NamedTuple):
    """while (condition) { body; continuing }, left at the end of a turn if `leave` is true."""

    condition: Expression | None
    body: Block
    continuing: Block
    leave: Expression | None
    at: int


class Switch(NamedTuple):
    """`switch`: for each case its selectors (None: default) and its body."""

    value: Expression
    cases: tuple[tuple[tuple[Expression | None, ...], Block], ...]
    at: int


class Jump(NamedTuple):
    """`break` or `continue`."""

    keyword: str
    at: int


class Return(NamedTuple):
    """`return`."""

    value: Expression | None
    at: int


class Block(NamedTuple):
    """Statements in braces."""

    body: tuple[Statement, ...]
    at: int


Statement: TypeAlias = Declare | Assign | Evaluate | If | Loop | Switch | Jump | Return | Block
