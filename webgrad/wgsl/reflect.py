"""From expanded WGSL to a Program: entry point, bindings, params, features, and the canonical text.

In: `Expanded` lines and the name of the entry point. Out: a Program. Invariant: what the entry point does
not reach is neither in the Program's tables nor in its text; a user's mistake is a CompileError with file
and line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from webgrad.errors import CompileError
from webgrad.wgsl.hazards import check_hazards
from webgrad.wgsl.layout import Layout, Layouts
from webgrad.wgsl.limits import check_branches, check_depth
from webgrad.wgsl.pointers import check_pointers
from webgrad.wgsl.preprocess import Expanded
from webgrad.wgsl.program import Access, Binding, Field, Program
from webgrad.wgsl.scopes import Resolution, reachable, resolve
from webgrad.wgsl.source import Source
from webgrad.wgsl.syntax import PARAM_SPACES, RESOURCE_SPACES, Declaration, Module, parse_module

_PARAM_TYPE = re.compile(r"(vec[234]<)?[iuf]32>?")
_SUBGROUP_FUNCTION = re.compile(r"(subgroup|quad)[A-Z]\w*")
_SUBGROUP_VALUES = frozenset({"subgroup_invocation_id", "subgroup_size", "subgroup_id", "num_subgroups"})
_HALF_TYPE = re.compile(r"f16|vec[234]h|mat[234]x[234]h")
_SUFFIXED = re.compile(r"\.?[0-9].*?(l[iuf]|[iuh])")  # a number
_SPACES = (*RESOURCE_SPACES, "private", "workgroup")


def entry_names(expanded: Expanded) -> tuple[str, ...]:
    """The compute entry points of a text, in order."""
    module = parse_module(Source(expanded.text, expanded.origins))
    return tuple(entry.name for entry in module.entries())


def reflect(
    expanded: Expanded, *, entry: str | None, label: str, defines: tuple[tuple[str, str], ...]
) -> Program:
    """The Program of one entry point; `entry` may be None where there is only one."""
    source = Source(expanded.text, expanded.origins)
    check_depth(source)
    module = parse_module(source)
    return _Reflection(module, label, entry).program(expanded, label, defines)


@dataclass(frozen=True, slots=True)
class _Slot:
    group: int
    binding: int
    declaration: Declaration
    layout: Layout


class _Reflection:
    def __init__(self, module: Module, label: str, entry: str | None) -> None:
        self.module = module
        self.source = module.source
        self.layouts = Layouts(module)
        self.resolution: Resolution = resolve(module)
        self.entry = self.find_entry(label, entry)
        self.names = reachable(module, self.resolution, {self.entry.name})
        check_branches(module, self.resolution, self.entry)
        check_hazards(module, self.resolution, self.names)
        check_pointers(module, self.resolution, self.names)

    def find_entry(self, label: str, name: str | None) -> Declaration:
        entries = self.module.entries()
        listed = ", ".join(one.name for one in entries)
        if not entries:
            raise CompileError(
                f"{label}: there is no entry point; write `@compute @workgroup_size(64) fn main(…)`"
            )
        if name is None and len(entries) > 1:
            raise CompileError(f"{label}: there are several entry points ({listed}); say which with entry=…")
        for one in entries:
            if name is None or one.name == name:
                return one
        raise CompileError(f"{label}: there is no @compute entry point `{name}`; there is {listed}")

    def is_kept(self, one: Declaration) -> bool:
        if one.kind == "directive":
            # Features are enabled by the renderer, from what is used.
            return self.source.tokens[one.start].text != "enable"
        return one.kind == "const_assert" or one.name in self.names

    def program(self, expanded: Expanded, label: str, defines: tuple[tuple[str, str], ...]) -> Program:
        variables = [one for one in self.module.declarations if one.kind == "var" and one.name in self.names]
        slots = self.storage(variables)
        params = self.params_variable(variables)
        fields, size = self.fields(params) if params else ((), 0)
        text, origins = self.canonical(expanded, slots, params)
        return Program(
            label=label,
            text=text,
            entry=self.entry.name,
            bindings=tuple(self.binding(slot) for slot in slots),
            params=fields,
            params_size=size,
            workgroup_size=self.workgroup_size(),
            requires=self.requires(slots),
            origins=origins,
            defines=defines,
            uses_array_length="arrayLength" in self.externals(),
        )

    # --- variables

    def storage(self, variables: list[Declaration]) -> list[_Slot]:
        """The storage variables in the order of (group, binding)."""
        slots: dict[tuple[int, int], _Slot] = {}
        for one in variables:
            space = one.spaces[0] if one.spaces else ""
            if space not in _SPACES:
                if one.type[0] < one.type[1]:
                    self.layouts.type(one.type)  # says so if it is a texture or a sampler
                raise self.source.error(
                    one.index,
                    f"var `{one.name}` needs an address space: var<storage, read>, var<workgroup> …",
                )
            if one.type[0] == one.type[1] and space in RESOURCE_SPACES:
                raise self.source.error(one.index, f"var<{space}> `{one.name}` has no type")
            if space != "storage":
                continue
            slot = self.slot(one)
            known = slots.setdefault((slot.group, slot.binding), slot)
            if known is not slot:
                raise self.source.error(
                    one.index,
                    f"@group({slot.group}) @binding({slot.binding}) is used twice, "
                    f"by `{known.declaration.name}` and `{one.name}`; give each its own number",
                )
        return [slots[key] for key in sorted(slots)]

    def slot(self, one: Declaration) -> _Slot:
        group, binding = one.attribute("group"), one.attribute("binding")
        if group is None or binding is None:
            raise self.source.error(
                one.index, f"var<storage> `{one.name}` needs its place: @group(0) @binding(0)"
            )
        numbers = [self.layouts.constant((at.start, at.stop)) for at in (group, binding)]
        if len(one.spaces) > 1 and one.spaces[1] not in ("read", "read_write"):
            raise self.source.error(
                one.index, f"`{one.spaces[1]}` is not an access of a storage buffer; write read or read_write"
            )
        return _Slot(numbers[0], numbers[1], one, self.layouts.type(one.type))

    def binding(self, slot: _Slot) -> Binding:
        spaces, layout = slot.declaration.spaces, slot.layout
        access: Access = "read_write" if spaces[1:] == ("read_write",) else "read"
        stride = layout.stride if layout.runtime else 0
        return Binding(slot.declaration.name, access, layout.spelling, stride, layout.size)

    def params_variable(self, variables: list[Declaration]) -> Declaration | None:
        found = [one for one in variables if one.spaces and one.spaces[0] in PARAM_SPACES]
        if len(found) > 1:
            raise self.source.error(
                found[1].index,
                f"`{found[0].name}` and `{found[1].name}` are both params variables; "
                "a kernel has one: put all fields in one struct",
            )
        return found[0] if found else None

    def fields(self, params: Declaration) -> tuple[tuple[Field, ...], int]:
        layout = self.layouts.type(params.type)
        if not layout.members:
            self.check_field(layout, params.type[0], params.name)
            return (Field(params.name, layout.spelling, 0, layout.size),), layout.size
        for member in layout.members:
            self.check_field(member.layout, member.index, member.name)
        found = tuple(
            Field(member.name, member.layout.spelling, member.offset, member.layout.size)
            for member in layout.members
        )
        return found, layout.size

    def check_field(self, layout: Layout, index: int, name: str) -> None:
        if not _PARAM_TYPE.fullmatch(layout.spelling):
            raise self.source.error(
                index,
                f"params field `{name}` is {layout.spelling}; allowed are i32, u32, f32 and vec2, vec3, vec4 "
                "of them: put anything else in a storage buffer",
            )

    # --- the entry point

    def workgroup_size(self) -> tuple[int, int, int]:
        attribute = self.entry.attribute("workgroup_size")
        if attribute is None or attribute.start == attribute.stop:
            raise self.source.error(
                self.entry.index, f"entry point `{self.entry.name}` needs @workgroup_size(64), say"
            )
        sizes = [self.layouts.constant(span) for span in self.source.split(attribute.start, attribute.stop)]
        if len(sizes) > 3 or min(sizes) < 1:
            raise self.source.error(
                attribute.index, f"@workgroup_size takes one to three numbers from 1 up, not {sizes}"
            )
        x, y, z = [*sizes, 1, 1][:3]
        return x, y, z

    def reached(self) -> list[Declaration]:
        return [self.module.names[name] for name in self.names]

    def externals(self) -> set[str]:
        return set().union(*(self.resolution.externals[one.start] for one in self.reached()))

    def requires(self, slots: list[_Slot]) -> frozenset[str]:
        """The features the reachable text needs."""
        words = self.externals()
        texts = [self.module.words((one.start, one.stop)) for one in self.reached()]
        # Of the numbers; a plain f is left out, being a hexadecimal digit too.
        suffixes = {match.group(1) for text in texts for word in text if (match := _SUFFIXED.fullmatch(word))}
        types = [_whole(slot.layout) for slot in slots] + ["".join(text) for text in texts]
        found = {
            "f16": "h" in suffixes or any(_HALF_TYPE.fullmatch(word) for word in words),
            "f64": "f64" in words or "lf" in suffixes,
            "int64": bool(words & {"i64", "u64"} or suffixes & {"li", "lu"}),
            "subgroups": bool(words & _SUBGROUP_VALUES) or any(map(_SUBGROUP_FUNCTION.fullmatch, words)),
            "f32-atomics": any("atomic<f32>" in each for each in types),
        }
        return frozenset(name for name, used in found.items() if used)

    # --- the text

    def canonical(
        self, expanded: Expanded, slots: list[_Slot], params: Declaration | None
    ) -> tuple[str, tuple[tuple[str, int], ...]]:
        """The text with unreached declarations blanked and places renumbered, then without blank lines."""
        edits = [
            (*self.characters(one.start, one.stop), "")
            for one in self.module.declarations
            if not self.is_kept(one)
        ]
        for number, slot in enumerate(slots):
            edits.append(self.renumbered(slot.declaration, f"@group(0) @binding({number}) var<", 2))
        if params is not None:
            edits.append(self.renumbered(params, "@group(1) @binding(0) var<uniform>", 4))
        text = _apply(self.source.text, sorted(edits))
        lines = [
            (line.rstrip(), origin)
            for line, origin in zip(text.split("\n"), expanded.origins, strict=False)
            if line.strip()
        ]
        return "".join(line + "\n" for line, _ in lines), tuple(origin for _, origin in lines)

    def characters(self, start: int, stop: int) -> tuple[int, int]:
        return self.source.tokens[start].start, self.source.tokens[stop - 1].end

    def renumbered(self, one: Declaration, replacement: str, count: int) -> tuple[int, int, str]:
        """Replaces a variable's attributes and the first `count` tokens from `var` on."""
        keyword = one.attributes[-1].stop if one.attributes else one.start
        while self.source.tokens[keyword].text != "var":
            keyword += 1
        return (*self.characters(one.start, keyword + count), replacement)


def _whole(layout: Layout) -> str:
    """The spelling of a type with those of its members."""
    return " ".join([layout.spelling, *(_whole(member.layout) for member in layout.members)])


def _apply(text: str, edits: list[tuple[int, int, str]]) -> str:
    """Replaces character ranges, keeping the line breaks inside them so that line numbers stay."""
    pieces: list[str] = []
    position = 0
    for start, end, replacement in edits:
        breaks = "\n" * text.count("\n", start, end)
        pieces += [text[position:start], breaks, replacement]
        position = end
    pieces.append(text[position:])
    return "".join(pieces)
