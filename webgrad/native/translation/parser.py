"""WGSL's expressions and statements as trees.

In: a Source and where to begin. Out: nodes of `tree.py`. Invariant: `position` is the index of the next
token; a statement that is parsed is behind it, its semicolon included.
"""

from __future__ import annotations

from collections.abc import Callable

from ...errors import CompileError
from ...wgsl.conditions import LEVELS
from ...wgsl.source import Source
from .tree import (
    Assign,
    Binary,
    Block,
    Call,
    Declare,
    Evaluate,
    Expression,
    If,
    Index,
    Jump,
    Loop,
    Member,
    Name,
    Number,
    Return,
    Statement,
    Switch,
    Unary,
)

_LEVEL = {sign: level for level, signs in enumerate(LEVELS) for sign in signs}
_ASSIGNING = ("+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=")
_LONGEST = (">>=", ">>", ">=")  # what the tokenizer leaves in pieces


class Parser:
    """Reads trees from a place on; `position` is the index of the next token."""

    def __init__(self, source: Source, position: int = 0) -> None:
        self.source = source
        self.position = position

    # Tokens

    def peek(self) -> str:
        """The next token; `>>`, `>=` and `>>=` as one."""
        tokens, at = self.source.tokens, self.position
        if at >= len(tokens):
            return ""
        if tokens[at].text == ">":
            run = self.source.text[tokens[at].start : tokens[at].start + 3]
            return next((each for each in _LONGEST if run.startswith(each)), ">")
        return tokens[at].text

    def take(self, wanted: str | None = None) -> str:
        """The next token, which is then behind us."""
        token = self.peek()
        if not token or (wanted is not None and token != wanted):
            found = f"`{token}`" if token else "the end of the text"
            raise self.error(f"`{wanted}` is expected, not {found}" if wanted else f"{found} is unexpected")
        self.position += len(token) if token in _LONGEST else 1
        return token

    def took(self, wanted: str) -> bool:
        """Whether this was the next token."""
        if self.peek() != wanted:
            return False
        self.take()
        return True

    def error(self, message: str) -> CompileError:
        """An error at the next token."""
        return self.source.error(self.position, message)

    def identifier(self) -> str:
        """A word."""
        tokens, at = self.source.tokens, self.position
        if at >= len(tokens) or tokens[at].kind != "word":
            raise self.error(f"a name is expected, not `{self.peek()}`")
        return self.take()

    # Expressions

    def expression(self, level: int = 0) -> Expression:
        """An expression of operators that bind at least as closely as those of this level."""
        left = self.unary()
        while _LEVEL.get(self.peek(), -1) >= level:
            at, sign = self.position, self.take()
            left = Binary(sign, left, self.expression(_LEVEL[sign] + 1), at)
        return left

    def unary(self) -> Expression:
        """A sign and its operand, or a value with its members and indices."""
        at = self.position
        if self.peek() in ("-", "!", "~", "*", "&"):
            return Unary(self.take(), self.unary(), at)
        made = self.primary()
        while self.peek() in (".", "["):
            at = self.position
            if self.take() == ".":
                made = Member(made, self.identifier(), at)
            else:
                made = Index(made, self.expression(), at)
                self.take("]")
        return made

    def primary(self) -> Expression:
        """A literal, a name, a call, or an expression in parentheses."""
        at = self.position
        if self.took("("):
            inner = self.expression()
            self.take(")")
            return inner
        if self.took("{"):
            operand = Name(f"{{{self.take()}}}", (), at)
            self.take("}")
            return operand
        if at < len(self.source.tokens) and self.source.tokens[at].kind == "number":
            return Number(self.take(), at)
        name = self.type()
        if not self.took("("):
            return name
        return Call(name, self.several(")"), at)

    def type(self) -> Name:
        """A name with template arguments, if it has any."""
        at, word = self.position, self.identifier()
        if self.position not in self.source.templates:
            return Name(word, (), at)
        self.position += 1
        arguments: list[Expression] = []
        end = self.source.templates[at + 1]
        while self.position < end:
            arguments.append(self.expression(len(LEVELS) - 2))  # as WGSL: `>` ends the list
            if self.position < end:
                self.take(",")
        self.position = end + 1
        return Name(word, tuple(arguments), at)

    def several(self, end: str) -> tuple[Expression, ...]:
        """Expressions between commas, up to `end`."""
        made: list[Expression] = []
        while not self.took(end):
            made.append(self.expression())
            if self.peek() != end:
                self.take(",")
        return tuple(made)

    # Statements

    def block(self) -> Block:
        """Statements in braces."""
        at = self.position
        self.take("{")
        made: list[Statement] = []
        while not self.took("}"):
            if not self.took(";"):
                made.append(self.statement())
        return Block(tuple(made), at)

    def statement(self) -> Statement:
        """One statement."""
        parse = _STATEMENTS.get(self.peek())
        if parse is not None:
            return parse(self)
        made = self.simple()
        self.take(";")
        return made

    def simple(self) -> Statement:
        """A declaration, an assignment or a call, without its semicolon."""
        at = self.position
        if self.peek() in ("let", "var", "const"):
            return self.declaration()
        if self.took("_"):
            self.take("=")
            return Evaluate(self.expression(), at)
        target = self.unary()
        sign = self.peek()
        if sign in ("++", "--"):
            self.take()
            return Assign(target, sign[0], Number("1", at), at)
        if sign == "=" or sign in _ASSIGNING:
            self.take()
            return Assign(target, sign[:-1], self.expression(), at)
        if not isinstance(target, Call):
            raise self.error("a statement is expected")
        return Evaluate(target, at)

    def declaration(self) -> Declare:
        """`let`, `var` or `const`; the address space of a variable of a function is "function"."""
        at, keyword = self.position, self.take()
        if self.position in self.source.templates:
            self.position = self.source.templates[self.position] + 1
        name = self.identifier()
        type = self.type() if self.took(":") else None
        value = self.expression() if self.took("=") else None
        return Declare(keyword, name, type, value, at)

    def if_(self) -> If:
        at = self.position
        self.take("if")
        condition, yes = self.expression(), self.block()
        no = Block((), at)
        if self.took("else"):
            no = Block((self.if_(),), at) if self.peek() == "if" else self.block()
        return If(condition, yes, no, at)

    def while_(self) -> Loop:
        at = self.position
        self.take("while")
        return Loop(self.expression(), self.block(), Block((), at), None, at)

    def for_(self) -> Block:
        at = self.position
        self.take("for")
        self.take("(")
        first = () if self.peek() == ";" else (self.simple(),)
        self.take(";")
        condition = None if self.peek() == ";" else self.expression()
        self.take(";")
        after = () if self.peek() == ")" else (self.simple(),)
        self.take(")")
        return Block((*first, Loop(condition, self.block(), Block(after, at), None, at)), at)

    def loop(self) -> Loop:
        at = self.position
        self.take("loop")
        self.take("{")
        body: list[Statement] = []
        after, leave = Block((), at), None
        while not self.took("}"):
            if self.took("continuing"):
                after, leave = self.continuing()
            elif not self.took(";"):
                body.append(self.statement())
        return Loop(None, Block(tuple(body), at), after, leave, at)

    def continuing(self) -> tuple[Block, Expression | None]:
        """What runs after each turn, and `break if`."""
        at = self.position
        self.take("{")
        made: list[Statement] = []
        leave = None
        while not self.took("}"):
            if self.took("break"):
                self.take("if")
                leave = self.expression()
                self.take(";")
            elif not self.took(";"):
                made.append(self.statement())
        return Block(tuple(made), at), leave

    def switch(self) -> Switch:
        at = self.position
        self.take("switch")
        value = self.expression()
        self.take("{")
        cases: list[tuple[tuple[Expression | None, ...], Block]] = []
        while not self.took("}"):
            selectors: list[Expression | None] = []
            if self.take() == "default":
                selectors.append(None)
            while self.peek() not in (":", "{"):
                selectors.append(None if self.took("default") else self.expression())
                self.took(",")
            self.took(":")
            cases.append((tuple(selectors), self.block()))
        return Switch(value, tuple(cases), at)

    def jump(self) -> Jump:
        at = self.position
        made = Jump(self.take(), at)
        self.take(";")
        return made

    def return_(self) -> Return:
        at = self.position
        self.take("return")
        value = None if self.peek() == ";" else self.expression()
        self.take(";")
        return Return(value, at)


_STATEMENTS: dict[str, Callable[[Parser], Statement]] = {
    "{": Parser.block,
    "if": Parser.if_,
    "while": Parser.while_,
    "for": Parser.for_,
    "loop": Parser.loop,
    "switch": Parser.switch,
    "break": Parser.jump,
    "continue": Parser.jump,
    "return": Parser.return_,
}
