"""Typed Python calls of the templates: `python -m webgrad.wgsl.bindings` writes kernels/bindings.py.

In: every template with `//! variants:` lines. Out: for each entry point one function with keyword-only
buffers and params that gives the buffers in binding order and the packed params. Invariant: a function is
made from the first declared variant of its entry point, and the written file is what `generate()` gives (a
test says so).
"""

from __future__ import annotations

import keyword
import sys
from collections.abc import Iterator, Sequence

from webgrad.errors import TemplateError
from webgrad.wgsl.program import Field, Program
from webgrad.wgsl.template import KERNELS, load_template, template_names
from webgrad.wgsl.variants import variant_keys

__all__ = ["first_variants", "function_name", "generate", "main"]

_HEAD = '''"""Typed calls of the kernel templates, one for each entry point.

Written by `python -m webgrad.wgsl.bindings` from the templates; change those and run it again.
Each call takes the buffers and params by keyword and gives (buffers in binding order, packed params).
"""

from __future__ import annotations

from typing import TypeVar

from webgrad.wgsl.packing import Packer

__all__ = [
{names}]

BufferT = TypeVar("BufferT")
'''

_PYTHON_TYPES = {"i32": "int", "u32": "int", "f32": "float"}


def function_name(template: str, entry: str) -> str:
    """The Python name of an entry point: the entry's own, led by the file's where it does not begin so."""
    stem = template.removesuffix(".pwgsl").replace("/", "_")
    return entry if entry == stem or entry.startswith(f"{stem}_") else f"{stem}_{entry}"


def first_variants(templates: Sequence[str] | None = None) -> Iterator[tuple[str, Program]]:
    """For each entry point (template, Program) of its first declared variant, in the order of the files."""
    for template in template_names() if templates is None else templates:
        seen: set[str] = set()
        for entry, defines in variant_keys(template):
            if entry not in seen:
                seen.add(entry)
                yield template, load_template(template, entry, **defines)


def generate(templates: Sequence[str] | None = None) -> str:
    """The text of kernels/bindings.py."""
    functions: dict[str, str] = {}
    for template, program in first_variants(templates):
        name = function_name(template, program.entry)
        if name in functions:
            raise TemplateError(
                f"{template}: entry point {program.entry} gives the name `{name}` a second time"
            )
        functions[name] = _function(name, template, program)
    names = "".join(f'    "{name}",\n' for name in sorted(functions))
    return "\n\n".join([_HEAD.format(names=names), *functions.values()])


def _function(name: str, template: str, program: Program) -> str:
    buffers = [_argument(binding.name) for binding in program.bindings]
    params = [_argument(field.name) for field in program.params]
    twice = set(buffers) & set(params)
    if twice:
        raise TemplateError(
            f"{template} {program.entry}: {sorted(twice)} names both a buffer and a params field"
        )
    packer = f"_{name.upper()}"
    lines = [
        f"{packer} = Packer(",
        f'    "{name}",',
        *_field_lines(program.params),
        f"    {program.params_size},",
        ")",
        "",
        "",
        f"def {name}(",
        "    *,",
        *(f"    {buffer}: BufferT," for buffer in buffers),
        *(
            f"    {param}: {_python_type(field)},"
            for param, field in zip(params, program.params, strict=True)
        ),
        ") -> tuple[tuple[BufferT, ...], bytes]:",
        f'    """{template}, entry point {program.entry}: {_described(program)}."""',
        f"    buffers = ({', '.join(buffers)}{',' * (len(buffers) == 1)})",
        *_return_lines(packer, params),
    ]
    return "\n".join(lines) + "\n"


def _argument(name: str) -> str:
    return f"{name}_" if keyword.iskeyword(name) or name == "buffers" else name


def _field_lines(fields: Sequence[Field]) -> list[str]:
    if not fields:
        return ["    (),"]
    return ["    (", *(f'        ("{one.name}", "{one.type}", {one.offset}),' for one in fields), "    ),"]


def _return_lines(packer: str, params: Sequence[str]) -> list[str]:
    if not params:
        return [f"    return buffers, {packer}.pack()"]
    return [f"    return buffers, {packer}.pack(", *(f"        {param}," for param in params), "    )"]


def _python_type(field: Field) -> str:
    if not field.type.startswith("vec"):
        return _PYTHON_TYPES[field.type]
    component = _PYTHON_TYPES[field.type[5:-1]]
    return f"tuple[{', '.join([component] * int(field.type[3]))}]"


def _described(program: Program) -> str:
    written = [binding.name for binding in program.bindings if binding.access == "read_write"]
    return f"writes {', '.join(written) or 'nothing'}"


def main(arguments: Sequence[str]) -> int:
    """Writes the file, or with --check only says whether it is up to date."""
    path = KERNELS / "bindings.py"
    text = generate()
    if "--check" in arguments:
        current = path.is_file() and path.read_text(encoding="utf-8") == text
        print(f"{path.name} is {'up to date' if current else 'old: run python -m webgrad.wgsl.bindings'}")
        return 0 if current else 1
    path.write_text(text, encoding="utf-8", newline="\n")
    print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
