"""How deep and how long a kernel may be: compilers recurse, inline, and die (not fail) where it is too much.

In: a Source, then a Module with its meaning. Out: nothing, or a CompileError that names the place. Invariant:
what passes is compiled by naga on a 64 MiB stack and run by every driver known to us: naga overflows its
stack in deep expressions, Mesa's llvmpipe its table of 80 open branches, and every driver inlines calls.
"""

from __future__ import annotations

from dataclasses import dataclass

from webgrad.wgsl.scopes import Resolution
from webgrad.wgsl.source import Source
from webgrad.wgsl.syntax import Declaration, Module

MAX_DEPTH = 1000  # brackets open at once, with the operators before each in its expression
MAX_BRANCHES = 64  # blocks open at once, those of the callers too; a chain of else-ifs or cases counts each
MAX_TOKENS = 2_000_000  # of the entry point with everything it calls put in

_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")
_SEPARATORS = frozenset({",", ";", ":", "=", "return"})


def check_depth(source: Source) -> None:
    """Refuse expressions nested too deep, by brackets, template lists, or long chains of operators."""
    template_ends = set(source.templates.values())
    chains = [0]  # for each open bracket, the operators in its expression so far
    depth = 0
    for index, token in enumerate(source.tokens):
        text = token.text
        if text in _OPENING or index in source.templates:
            chains.append(0)
            depth += 1
            if text == "[":  # a[0][1][2] … is a chain too
                chains[-2] += 1
                depth += 1
        elif text in _CLOSING or index in template_ends:
            depth -= chains.pop() + 1
            if text == "}":
                depth -= chains[-1]
                chains[-1] = 0
        elif text in _SEPARATORS:
            depth -= chains[-1]
            chains[-1] = 0
        elif token.kind == "sign":
            chains[-1] += 1
            depth += 1
        if depth > MAX_DEPTH:
            raise source.error(
                index,
                f"the expression is more than {MAX_DEPTH:,} brackets and operators deep, which shader "
                "compilers do not survive: split it with `let`",
            )


def check_branches(module: Module, resolution: Resolution, entry: Declaration) -> None:
    """Refuse an entry point whose blocks are nested too deep, or that grows too long with all it calls."""
    _Branches(module, resolution).check(entry)


@dataclass(slots=True)
class _Call:
    index: int
    name: str
    branches: int  # open where it stands


@dataclass(slots=True)
class _Block:
    weight: int
    cases: int | None = None  # of a switch: the clauses so far


class _Branches:
    """Depth and length of functions, callees first; recursion is the compiler's to refuse."""

    def __init__(self, module: Module, resolution: Resolution) -> None:
        self.module = module
        self.source = module.source
        self.resolution = resolution
        self.known: dict[str, tuple[int, int]] = {}  # function → (branches, tokens), with what it calls

    def check(self, entry: Declaration) -> None:
        for function in self.callees_first(entry):
            self.known[function.name] = self.measure(function)

    def callees_first(self, entry: Declaration) -> list[Declaration]:
        """The functions an entry point reaches; no recursion here, as chains of calls may be long."""
        found: dict[str, Declaration] = {}
        pending = [(entry, False)]
        visited: set[str] = set()
        while pending:
            function, called_done = pending.pop()
            if called_done:
                found.setdefault(function.name, function)
            elif function.name not in visited:
                visited.add(function.name)
                pending.append((function, True))
                callees = (self.module.names[name] for name in self.resolution.references[function.start])
                pending += [(one, False) for one in callees if one.kind == "fn"]
        return list(found.values())

    def measure(self, function: Declaration) -> tuple[int, int]:
        deepest, calls = self.walk(function)
        length = function.stop - function.start
        for call in calls:
            branches, tokens = self.known.get(call.name, (0, 0))
            deepest = max(deepest, call.branches + branches)
            length += tokens
            if deepest > MAX_BRANCHES or length > MAX_TOKENS:
                raise self.refusal(call.index, deepest)
        return deepest, length

    def refusal(self, index: int, branches: int) -> Exception:
        if branches > MAX_BRANCHES:
            return self.source.error(
                index,
                f"more than {MAX_BRANCHES} blocks are open at once here, counting those of the callers and "
                "each `else if` and `case` of a chain; drivers do not survive that: use a table, or less",
            )
        return self.source.error(
            index,
            f"with every call put in, as drivers do, the kernel is longer than {MAX_TOKENS:,} words here: "
            "call less, or in a loop",
        )

    def walk(self, function: Declaration) -> tuple[int, list[_Call]]:
        """The most branches open at once in a body, and its calls."""
        tokens = self.source.tokens
        blocks = [_Block(0)]
        calls: list[_Call] = []
        deepest = branches = 0
        chain = 0  # of else-ifs: the branches that the next block comes after
        switch = False
        closed = _Block(0)
        for index in range(function.value[0] + 1, function.value[1] - 1):
            text = tokens[index].text
            if text == "{":
                weight = blocks[-1].cases or chain + 1
                blocks.append(_Block(weight, 0 if switch else None))
                branches += weight
                chain, switch = 0, False
                deepest = max(deepest, branches)
                if branches > MAX_BRANCHES:
                    raise self.refusal(index, branches)
            elif text == "}":
                closed = blocks.pop()
                branches -= closed.weight
            elif text == "else":
                chain = closed.weight
            elif text in ("case", "default") and blocks[-1].cases is not None:
                blocks[-1].cases += 1
            elif text == "switch":
                switch = True
            elif text in self.module.names and self.module.names[text].kind == "fn":
                calls.append(_Call(index, text, branches))
        return deepest, calls
