"""A shorter text with the same meaning, for naga and for Tint.

In: WGSL text and its entry point. Out: the text without comments, space, unreachable declarations and
unused simple locals, with short names. Invariant: minifying twice changes nothing more; the entry point and
all resource variables stay.
"""

from __future__ import annotations

import itertools
import re
import string
from collections.abc import Iterator

from webgrad.wgsl.scopes import RESULT_MEMBERS, SWIZZLE, Resolution, reachable, resolve
from webgrad.wgsl.source import Source
from webgrad.wgsl.syntax import RESOURCE_SPACES, Declaration, Module, parse_module

# Keywords, reserved words and built-in functions of at most three letters: what a generated name could hit.
_SHORT_WORDS = """
as do fn if is of or abs all any asm bit cos dot exp fma for get let log max min mix mod mut new nil not pow
ptr pub ref set sin std tan try use var
"""
_TAKEN = frozenset(_SHORT_WORDS.split())
# Calls that do more than give a value.
_EFFECTS = re.compile(
    r"atomic[A-Z]\w*|\w+Barrier|texture\w*|workgroupUniformLoad|subgroup[A-Z]\w*|quad[A-Z]\w*"
)
# Two signs that would read as one, or as a comment, without a space between them.
_JOINED = re.compile(r"&&|\|\||\+\+|--|->|[-+*/%&|^=!<]=|<<|//|/\*")


def minify(text: str, entry: str) -> str:
    """The shortened text.

    >>> minify("@compute @workgroup_size(8) fn main() { let unused = 1; }", "main")
    '@compute@workgroup_size(8)fn main(){}\\n'
    """
    while True:
        module = parse_module(Source(text))
        resolution = resolve(module)
        cuts = [*_unreachable(module, resolution, entry), *_unused_locals(module, resolution)]
        if not cuts:
            break
        text = _without(module.source, cuts)  # shorter each time: the loop ends
    return _emit(module, _names(module, resolution, entry))


# --- what goes


def _unreachable(module: Module, resolution: Resolution, entry: str) -> Iterator[tuple[int, int]]:
    roots = {entry} & module.names.keys()
    for one in module.declarations:
        if one.kind == "var" and one.spaces and one.spaces[0] in RESOURCE_SPACES:
            roots.add(one.name)
    kept = reachable(module, resolution, roots)
    for one in module.declarations:
        if one.name and one.name not in kept:
            yield one.start, one.stop


def _unused_locals(module: Module, resolution: Resolution) -> list[tuple[int, int]]:
    """Statements whose local nobody reads, or only other such statements do."""
    tokens = module.source.tokens
    gone: set[int] = set()
    cuts: list[tuple[int, int]] = []
    for local in reversed(resolution.locals):  # a use comes after the declaration
        start, stop = local.statement
        in_for_header = start > 0 and tokens[start - 1].text == "("
        if stop and not in_for_header and gone.issuperset(local.uses) and _is_pure(module, start, stop):
            cuts.append((start, stop))
            gone.update(range(start, stop))
    return cuts


def _is_pure(module: Module, start: int, stop: int) -> bool:
    """Whether no token of a statement can name something with an effect."""
    for token in module.source.tokens[start:stop]:
        declared = module.names.get(token.text)
        if (declared is not None and declared.kind == "fn") or _EFFECTS.fullmatch(token.text):
            return False
    return True


def _without(source: Source, cuts: list[tuple[int, int]]) -> str:
    """The text without these token ranges; a cut inside another one goes with it."""
    pieces: list[str] = []
    position = 0
    for start, stop in sorted(cuts):
        begin, end = source.tokens[start].start, source.tokens[stop - 1].end
        if begin >= position:
            pieces.append(source.text[position:begin])
            position = end
    pieces.append(source.text[position:])
    return " ".join(pieces)


# --- new names


def _names(module: Module, resolution: Resolution, entry: str) -> dict[int, str]:
    """The new name of every token that gets one."""
    taken = _TAKEN | {entry}.union(*resolution.externals.values())
    slots: dict[tuple[int, str], list[int]] = {}
    for local in resolution.locals:
        # Locals that are never visible together share a name, across functions too.
        slots.setdefault((local.visible, ""), []).extend((local.index, *local.uses))
    for name, uses in resolution.globals.items():
        if name != entry:
            slots[-1, name] = uses
    found = _assign(list(slots.values()), taken)
    declared = {member.name for one in module.declarations if one.kind == "struct" for member in one.members}
    members = [
        uses
        for name, uses in resolution.members.items()
        if name in declared and not SWIZZLE.fullmatch(name) and name not in RESULT_MEMBERS
    ]
    kept = {name for name in declared if SWIZZLE.fullmatch(name)}
    return found | _assign(members, _TAKEN | RESULT_MEMBERS | kept, swizzles=False)


def _assign(
    groups: list[list[int]], taken: frozenset[str] | set[str], *, swizzles: bool = True
) -> dict[int, str]:
    """One name for the tokens of each group; the most frequent group gets the shortest."""
    fresh = (
        name for name in _short_names() if name not in taken and (swizzles or not SWIZZLE.fullmatch(name))
    )
    ordered = sorted(groups, key=lambda uses: (-len(uses), min(uses)))
    return {index: name for uses, name in zip(ordered, fresh, strict=False) for index in uses}


def _short_names() -> Iterator[str]:
    for length in (1, 2, 3):
        for letters in itertools.product(string.ascii_letters, repeat=length):
            yield "".join(letters)


# --- the text


def _emit(module: Module, names: dict[int, str]) -> str:
    return "".join(_emit_declaration(module, one, names) + "\n" for one in module.declarations)


def _emit_declaration(module: Module, one: Declaration, names: dict[int, str]) -> str:
    tokens = module.source.tokens
    stop = one.stop
    if one.kind == "struct" and tokens[stop - 1].text == ";":
        stop -= 1
    pieces: list[str] = []
    previous = -1
    for index in range(one.start, stop):
        if tokens[index].text == "," and index + 1 < stop and tokens[index + 1].text in (")", "}"):
            continue  # a comma behind the last element
        if previous >= 0 and _needs_space(module.source, previous, index):
            pieces.append(" ")
        pieces.append(names.get(index, tokens[index].text))
        previous = index
    return "".join(pieces)


def _needs_space(source: Source, left_index: int, right_index: int) -> bool:
    left, right = source.tokens[left_index], source.tokens[right_index]
    if left.kind != "sign" and right.kind != "sign":
        return True
    if left.text == ">" and right.text in (">", "=", "=="):
        return left.end != right.start  # `>=` touches, `array<f32> =` does not: as it was written
    if left.kind == "number" and right.text == ".":
        return True
    return left.kind == right.kind == "sign" and bool(_JOINED.fullmatch(left.text[-1] + right.text[0]))
