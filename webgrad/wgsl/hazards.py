"""What compilers of WGSL die of although it looks innocent: some functions and indices of some integers.

In: a Module with its meaning. Out: nothing, or a CompileError that names the place and the way round. There
are no types here: a value has a trait (64 bits, unsigned) as soon as a word of its expression may bring it
in. Invariant: no value with the trait is missed, so that what passes does not end the process; a value
without it is refused now and then, and a conversion such as `u32(…)` around it always helps.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from webgrad.errors import CompileError
from webgrad.wgsl.scopes import RESULT_MEMBERS, SWIZZLE, Resolution
from webgrad.wgsl.syntax import Declaration, Module
from webgrad.wgsl.tokens import Token


@dataclass(frozen=True, slots=True)
class _Trait:
    """A property of values, the words and numbers that bring it in, and what must not be done to it."""

    words: re.Pattern[str]
    numbers: re.Pattern[str]
    refused: dict[str, str]  # function, or "[" for an index → why, and what to do
    bitcast_keeps: bool = False  # a bitcast does not take it away


_BITS = (
    *("countLeadingZeros", "countTrailingZeros", "firstLeadingBit", "firstTrailingBit"),
    *("reverseBits", "extractBits", "insertBits"),
)
_HALVES = (
    "of a 64-bit integer ends compilers and drivers, which know it for 32 bits: call it for u32(x) and for "
    "u32(x >> 32u), or write `{0}(u32(…))` where 32 bits are meant"
)
_TRAITS = (
    # naga 29 has no SPIR-V for the leading ones and panics; Mesa's LLVM aborts on countTrailingZeros and
    # reverseBits; the others are defined for 32 bits by Vulkan and compute something else.
    _Trait(
        re.compile(r"[iuf]64"),  # a bitcast makes an integer of a float
        re.compile(r".*l[iuf]"),
        {
            **dict.fromkeys(_BITS, f"`{{0}}` {_HALVES}"),
            "[": "an index of 64 bits ends some drivers: write `u32(…)` around it",
        },
        bitcast_keeps=True,  # for naga `bitcast<u32>(x)` of a u64 is one
    ),
    # naga's validator lets it through and its SPIR-V writer panics.
    _Trait(
        re.compile(r"u32|u64|vec[234]u"),
        re.compile(r".*u"),
        {
            "sign": "`sign` is for signed numbers, and of an unsigned one it ends the compiler: write "
            "`min(x, 1)` for those, or `sign(f32(…))`, `sign(i32(…))` around what is not plainly signed"
        },
    ),
)

# Types that are spelt without a template list; a call of one gives it, whatever is converted.
_TYPE = re.compile(r"bool|[iuf](16|32|64)|vec[234][iufh]|mat[234]x[234][fh]")
# Functions with one type of result, by that type's word.
_RESULTS = (
    (re.compile(r"pack\w+|arrayLength|dot4U8Packed|unpack4xU8|subgroupBallot"), "u32"),
    (re.compile(r"dot4I8Packed|unpack4xI8"), "i32"),
    (re.compile(r"unpack(2x16|4x8)\w+|quantizeToF16"), "f32"),
    (re.compile(r"all|any|subgroupAll|subgroupAny"), "bool"),
)
_ENDS = frozenset(";{}")
_COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", "&&", "||", "!"})


def check_hazards(module: Module, resolution: Resolution, names: set[str]) -> None:
    """Refuse what ends compilers or drivers in the declarations with these names, and in const_asserts."""
    declarations = [one for one in module.declarations if one.kind == "const_assert" or one.name in names]
    words = set().union(*(resolution.externals[one.start] for one in declarations))
    for trait in _TRAITS:
        if "[" in trait.refused or words & trait.refused.keys():
            values = _Values(module, resolution, trait)
            if values.anywhere(declarations):
                for one in declarations:
                    _Scan(values, one).run()


class _Values:
    """Which names of a module, and members of its structs, may have a trait."""

    def __init__(self, module: Module, resolution: Resolution, trait: _Trait) -> None:
        self.module = module
        self.source = module.source
        self.trait = trait
        self.local_of = {
            index: local.index for local in resolution.locals for index in (local.index, *local.uses)
        }
        self.locals: set[int] = set()  # those with the trait, by the token that declares them
        self.globals = self.traited_globals(resolution)
        self.members: dict[str, bool] = {}
        for one in module.declarations:
            if one.kind == "struct":
                for member in one.members:
                    self.members[member.name] = self.members.get(member.name, False) | self.mentions(
                        member.type
                    )

    def anywhere(self, declarations: Iterable[Declaration]) -> bool:
        return any(self.mentions((one.start, one.stop)) for one in declarations)

    def own(self, token: Token) -> bool:
        """Whether a word or number has the trait by itself."""
        if token.kind == "word":
            return self.trait.words.fullmatch(token.text) is not None
        return token.kind == "number" and self.trait.numbers.fullmatch(token.text) is not None

    def mentions(self, span: tuple[int, int]) -> bool:
        tokens = self.source.tokens[span[0] : span[1]]
        return any(token.text in self.globals or self.own(token) for token in tokens)

    def traited_globals(self, resolution: Resolution) -> set[str]:
        """Globals whose type, or whose value where no type is written, mentions the trait, or one that does.

        A struct has none: nothing can be done to it before one of its members is named.
        """
        users: dict[str, list[str]] = {}
        pending: list[str] = []
        for one in self.module.names.values():
            typed = one.kind == "fn" or one.type[0] < one.type[1]
            start, stop = one.type if typed else one.value
            tokens = self.source.tokens[start:stop]
            if any(map(self.own, tokens)):
                pending.append(one.name)
            for word in {token.text for token in tokens} & resolution.references[one.start]:
                users.setdefault(word, []).append(one.name)
        found: set[str] = set()
        while pending:
            name = pending.pop()
            if name not in found:
                found.add(name)
                pending += users.get(name, [])
        return found


@dataclass(slots=True)
class _Frame:
    """An open bracket: what its expression has so far, and what it means to close it."""

    function: str = ""  # called with this bracket; "[" for an index
    index: int = 0
    result: bool | None = None  # of the call, where the arguments do not matter
    before: bool = False  # whether the name, or the value that is indexed, has the trait
    total: bool = False
    last: bool = False  # the value that a `.member` or an index would go on from
    boolean: bool = False  # a comparison: what is compared does not matter
    arguments: int = 1

    def has(self) -> bool:
        return (self.total or self.last) and not self.boolean

    def clear(self) -> None:
        self.total = self.last = self.boolean = False

    def value(self, has: bool) -> None:
        """Another value comes."""
        self.total |= self.last
        self.last = has


class _Scan:
    """One pass over a declaration, with a stack for its brackets: expressions may be deep."""

    def __init__(self, values: _Values, declaration: Declaration) -> None:
        self.values = values
        self.declaration = declaration
        self.source = values.source
        self.tokens = values.source.tokens
        self.frames = [_Frame()]
        self.declared: tuple[int, bool | None] | None = None  # a local, and what its written type has

    def run(self) -> None:
        if self.declaration.kind == "fn":
            for member in self.declaration.members:
                if self.values.mentions(member.type):
                    self.values.locals.add(member.index)
        index, stop = self.declaration.value
        while index < stop:
            index = self.token(index)

    def token(self, index: int) -> int:
        """Handles the token at `index`; returns the index of the next one."""
        token = self.tokens[index]
        frame = self.frames[-1]
        if token.text in ("let", "var", "const"):
            return self.declare(index)
        if token.kind == "word":
            return self.word(index)
        if token.kind == "number":
            frame.value(self.values.own(token))
        elif token.text in ("(", "["):
            self.open(index)
        elif token.text in (")", "]"):
            self.close()
        elif token.text == ",":
            frame.arguments += 1
            if frame.function == "select" and frame.arguments == 3:  # the condition decides no type
                frame.result = frame.has()
        elif token.text in _COMPARISONS or token.text == "=":
            self.equals_or_compares(index)
        elif token.text in _ENDS:
            self.end(token.text)
        elif token.text != ".":
            frame.value(False)
        return index + 1

    def equals_or_compares(self, index: int) -> None:
        """`>` is a token of its own, so that `>=` and `>>` are two, and `>>=` three."""
        before, token, after = self.tokens[index - 1 : index + 2]
        follows = before.text == ">" and before.end == token.start
        goes_on = after.text in (">", "=") and token.end == after.start
        frame = self.frames[-1]
        if token.text == "=" and not (follows and frame.boolean):
            self.end("=")
        elif token.text == ">" and (follows or (goes_on and after.text == ">")):
            frame.value(False)
        else:
            frame.value(False)
            frame.boolean = True

    def declare(self, keyword: int) -> int:
        """Up to the `=` or `;` behind a local's name and type."""
        index = self.source.template_end(keyword + 1) or keyword + 1
        stop = index + 1
        while stop < self.declaration.stop - 1 and self.tokens[stop].text not in ("=", ";"):
            stop = self.source.template_end(stop) or stop + 1
        typed = self.tokens[index + 1].text == ":"
        self.declared = (index, self.values.mentions((index + 2, stop)) if typed else None)
        return stop if self.tokens[stop].text == ";" else stop + 1

    def end(self, text: str) -> None:
        """A statement ends, or its left side."""
        frame = self.frames[-1]
        if text == ";" and self.declared is not None:
            name, typed = self.declared
            if frame.has() if typed is None else typed:
                self.values.locals.add(name)
            self.declared = None
        frame.clear()

    def word(self, index: int) -> int:
        name = self.tokens[index].text
        frame = self.frames[-1]
        if self.source.is_text(index - 1, "."):
            if name in self.values.members:
                # Members of vectors and of what built-in functions give have the traits of the whole.
                inherited = frame.last and (name in RESULT_MEMBERS or SWIZZLE.fullmatch(name) is not None)
                frame.last = self.values.members[name] or inherited
            return index + 1
        stop = self.source.template_end(index + 1) or index + 1
        local = self.values.local_of.get(index)
        if local is not None:
            has = local in self.values.locals
        else:
            has = self.values.mentions((index, stop))
        if not self.source.is_text(stop, "("):
            frame.value(has)
            return stop
        frame.value(False)
        own = name in self.values.module.names  # a user's function may be called `sign`
        self.frames.append(_Frame("" if own else name, index, self.result(name, has, stop > index + 1), has))
        return stop + 1

    def result(self, name: str, has: bool, template: bool) -> bool | None:
        """What a call gives whatever its arguments are; None where they decide."""
        if name == "bitcast" and self.values.trait.bitcast_keeps:
            return None
        if template or name in self.values.module.names or _TYPE.fullmatch(name):
            return has
        for pattern, word in _RESULTS:
            if pattern.fullmatch(name):
                return self.values.trait.words.fullmatch(word) is not None
        return None

    def open(self, index: int) -> None:
        frame = self.frames[-1]
        if self.tokens[index].text == "[":
            self.frames.append(_Frame("[", index, frame.last))
        else:
            frame.value(False)
            self.frames.append(_Frame())

    def close(self) -> None:
        if len(self.frames) == 1:  # it was opened in a declaration that no compiler reads: `let a (b = c);`
            return
        frame = self.frames.pop()
        has = frame.has()
        if has and frame.function in self.values.trait.refused:
            raise self.refusal(frame)
        self.frames[-1].last = (has or frame.before) if frame.result is None else frame.result

    def refusal(self, frame: _Frame) -> CompileError:
        text = self.values.trait.refused[frame.function].format(frame.function)
        return self.source.error(frame.index, text)
