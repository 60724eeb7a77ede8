"""One public name as a reader of the reference sees it: its signature, what its docstring says, its example.

In: a name's spelling and its object. Out: lines of Markdown. What is told comes from the object alone, and is
the same on every version of Python: annotations as they are written, defaults by their repr.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

__all__ = ["cell", "entry", "first_paragraph", "function_of", "members", "prose", "signature"]

WIDTH = 88
EXAMPLE = re.compile(r"^>>> ", re.MULTILINE)
CODE = re.compile(r"(`[^`]*`)")
SPECIAL = re.compile(r"([*\[\]])")
STARS: Mapping[object, str] = {
    inspect.Parameter.VAR_POSITIONAL: "*",
    inspect.Parameter.VAR_KEYWORD: "**",
}
# Everybody has these, and nobody calls them by hand
LEFT_OUT = {"extra_repr"}
# Classes that a program gets and never makes: how they are made is nobody's business
GIVEN = frozenset(
    {
        *("BatchArray", "Blocks", "Buffer", "CpuDevice", "DType", "Device", "EmbeddingModel", "Entry"),
        *("Event", "Explanation", "Generation", "History", "Images", "Kernel", "LanguageModel"),
        *("MemoryReport", "Profile", "Pulled", "QuantisedTensor", "Ran", "Recording", "ReplayReport"),
        *("Report", "Summary", "Tensor", "TracedGraph", "TracedNode", "Weights"),
    }
)


def signature(spelling: str, function: Any, *, types: bool = True) -> str:
    """A call of it with all parameters; on several lines where it is long. A bound one's self is left out."""
    try:
        found = inspect.signature(function)
    except (TypeError, ValueError):  # a class made by C
        return f"{spelling}(…)"
    words = list(_parameters(found, types))
    result = "" if not types or inspect.isclass(function) else _annotation(found.return_annotation, " -> ")
    line = f"{spelling}({', '.join(words)}){result}"
    if len(line) <= WIDTH or not types:
        return line
    return "\n".join([f"{spelling}(", *(f"    {each}," for each in words), f"){result}"])


def _parameters(found: inspect.Signature, types: bool) -> Iterator[str]:
    before = None
    for name, each in found.parameters.items():
        if name in ("self", "cls") and before is None:
            continue
        if (
            before is not None
            and before.kind is each.POSITIONAL_ONLY
            and each.kind is not each.POSITIONAL_ONLY
        ):
            yield "/"
        if each.kind is each.KEYWORD_ONLY and (
            before is None or before.kind not in (each.KEYWORD_ONLY, each.VAR_POSITIONAL)
        ):
            yield "*"
        stars = STARS.get(each.kind, "")
        annotation = _annotation(each.annotation, ": ") if types else ""
        yield f"{stars}{name}{annotation}{_default(each, ' = ' if annotation else '=')}"
        before = each
    if before is not None and before.kind is before.POSITIONAL_ONLY:
        yield "/"


def _annotation(annotation: Any, between: str) -> str:
    if annotation is inspect.Signature.empty:
        return ""
    return between + (annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "Any"))


def _default(parameter: inspect.Parameter, between: str) -> str:
    default = parameter.default
    if default is inspect.Parameter.empty:
        return ""
    if inspect.isclass(default) or callable(default):
        return between + str(getattr(default, "__name__", "…"))
    return between + ("…" if " at 0x" in repr(default) or repr(default).startswith("<") else repr(default))


def prose(text: str) -> str:
    """Words of a docstring as Markdown: what is not in backticks has no special meaning."""
    parts = CODE.split(text)
    return "".join(
        part if at % 2 else SPECIAL.sub(r"\\\1", part.replace("&", "&amp;").replace("<", "&lt;"))
        for at, part in enumerate(parts)
    )


def first_paragraph(thing: object) -> str:
    """The first paragraph of a docstring, on one line."""
    own = getattr(thing, "__doc__", None) or ""
    return " ".join(inspect.cleandoc(own).split("\n\n")[0].split())


def cell(text: str) -> str:
    """A text for a cell of a table."""
    return text.replace("|", "\\|")


def blocks(doc: str) -> Iterator[str]:
    """A docstring's paragraphs as Markdown; examples are blocks of code, and so is what is indented."""
    for paragraph in re.split(r"\n\s*\n", doc):
        if EXAMPLE.match(paragraph):
            yield f"```pycon\n{paragraph}\n```"
        elif at := EXAMPLE.search(paragraph):
            yield prose(paragraph[: at.start()].rstrip())
            yield f"```pycon\n{paragraph[at.start() :]}\n```"
        elif paragraph.startswith("    "):
            yield paragraph
        else:
            yield prose(paragraph)


def joined(parts: Iterator[str]) -> Iterator[str]:
    """The same blocks, with examples that follow each other made one."""
    held = ""
    for part in parts:
        if held and part.startswith("```pycon"):
            held = held.removesuffix("\n```") + "\n\n" + part.removeprefix("```pycon\n")
            continue
        if held:
            yield held
        held = part
        if not part.startswith("```pycon"):
            yield part
            held = ""
    if held:
        yield held


def entry(spelling: str, thing: Any) -> list[str]:
    """A signature and what the docstring says; of a class also its members."""
    given = inspect.isclass(thing) and (thing.__name__ in GIVEN or issubclass(thing, Exception))
    shown = signature(spelling, thing) if callable(thing) and not given else spelling
    lines = [f"```py\n{shown}\n```", *joined(blocks(inspect.cleandoc(thing.__doc__ or "")))]
    if inspect.isclass(thing) and (rows := list(member_rows(thing))):
        lines.append("\n".join(["| | |", "|---|---|", *rows]))
    return lines


def members(thing: type) -> list[tuple[str, Any]]:
    """A class's own public methods and properties, and those of bases that are not public themselves."""
    found: dict[str, Any] = {}
    for each in thing.__mro__:
        hidden = each.__name__.startswith("_") or each.__name__ == "PytorchMethods"
        if each is not thing and (not hidden or not each.__module__.startswith("webgrad")):
            break
        for name, kept in list(vars(each).items()):
            # A method that is fetched when it is first used is asked for
            member = getattr(thing, name) if type(kept).__module__.startswith("webgrad") else kept
            if not name.startswith("_") and name not in LEFT_OUT and _is_member(member):
                found.setdefault(name, member)
    return list(found.items())


def _is_member(member: Any) -> bool:
    kinds = (property, staticmethod, classmethod)
    return isinstance(member, kinds) or (callable(member) and not inspect.isclass(member))


def function_of(member: Any) -> Callable[..., Any]:
    """The function behind a method or property."""
    if isinstance(member, property):
        assert member.fget is not None
        return member.fget
    return getattr(member, "__func__", member)  # type: ignore[no-any-return]


def member_rows(thing: type) -> Iterator[str]:
    """A class's members as rows of a table."""
    for name, member in members(thing):
        function = function_of(member)
        said = first_paragraph(function) or first_paragraph(getattr(thing.__mro__[1], name, None))
        shown = name if isinstance(member, property) else signature(name, function, types=False)
        yield f"| `{cell(shown)}` | {cell(prose(said))} |"
