"""Pointers to a part of a variable, given to a function: naga 29 accepts them and panics in writing SPIR-V.

In: a Module with its meaning. Out: nothing, or a CompileError that names the place and the way round.
Invariant: no `&x[i]` and no `&x.member` is an argument of a user's function, nor is a `let` that holds one;
pointers to whole variables, and those that built-in functions take, are free.
"""

from __future__ import annotations

from itertools import islice

from webgrad.wgsl.scopes import Resolution
from webgrad.wgsl.source import Source
from webgrad.wgsl.syntax import Declaration, Module


def check_pointers(module: Module, resolution: Resolution, names: set[str]) -> None:
    """Refuse pointers to elements and members as arguments, in the functions with these names."""
    if "&" not in module.source.text:
        return
    held = _held(module.source, resolution)
    for one in module.declarations:
        if one.kind == "fn" and one.name in names:
            _check(module, one, held)


def _check(module: Module, function: Declaration, held: set[int]) -> None:
    source = module.source
    functions = {name for name, one in module.names.items() if one.kind == "fn"}
    arguments = [False]  # for each open bracket, whether it holds arguments of a user's function
    for index in range(*function.value):
        text = source.tokens[index].text
        if text in ("(", "["):
            before = source.tokens[index - 1]
            if text == "(" and before.kind == "sign" and before.text != ">":
                arguments.append(arguments[-1])
            else:
                arguments.append(text == "(" and before.text in functions)
        elif text in (")", "]"):
            arguments.pop()
        elif arguments[-1] and (_takes_part(source, index) or (index in held and _is_bare(source, index))):
            raise source.error(
                index,
                "a pointer to an element or a member, given to a function, ends the compiler: copy the part "
                "to a `var`, give its pointer and copy it back, or give a pointer to the whole",
            )


def _held(source: Source, resolution: Resolution) -> set[int]:
    """The tokens that mean a `let` with a pointer to a part."""
    held: set[int] = set()
    for local in resolution.locals:
        index, stop = local.index + 1, local.statement[1]
        while index < stop and source.tokens[index].text != "=":
            index = source.template_end(index) or index + 1
        index += 1
        while index < stop and source.tokens[index].text == "(":
            index += 1
        if index < stop and (_takes_part(source, index) or (index in held and _is_bare(source, index))):
            held.update(local.uses)
    return held


def _takes_part(source: Source, index: int) -> bool:
    """Whether `&` of something with an index or a member stands here."""
    tokens = source.tokens
    before = tokens[index - 1]
    if tokens[index].text != "&" or before.kind != "sign" or before.text in (")", "]"):
        return False
    depth = 0
    for token in islice(tokens, index + 1, None):
        if token.text in ("[", "."):
            return True
        depth += (token.text == "(") - (token.text == ")")
        if token.text in (",", ";") or depth < 0:
            break
    return False


def _is_bare(source: Source, index: int) -> bool:
    """Whether the pointer itself is meant, neither what it points to nor a part of that."""
    return source.tokens[index - 1].text != "*" and source.tokens[index + 1].text not in ("[", ".")
