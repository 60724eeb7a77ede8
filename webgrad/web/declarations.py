"""The module that an exported model is, and its TypeScript declarations.

In: a plan. Out: texts: model.js, which opens the plan beside it, and model.d.ts, in which every function has
its inputs and outputs by name.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["declarations", "module_text"]

_ARRAYS = {
    "bool": "Uint8Array",
    "int8": "Int8Array",
    "int16": "Int16Array",
    "int32": "Int32Array",
    "uint8": "Uint8Array",
    "uint16": "Uint16Array",
    "uint32": "Uint32Array",
    "float16": "Float32Array",
    "bfloat16": "Float32Array",
    "float32": "Float32Array",
}


def module_text() -> str:
    """model.js."""
    return (
        "// Opens the model whose plan is beside this file.\n"
        'import { load } from "./runner.js";\n\n'
        'const open = (options = {}) => load(new URL("./plan.json", import.meta.url), options);\n\n'
        "export { open };\n"
    )


def declarations(plan: Mapping[str, Any]) -> str:
    """model.d.ts."""
    parts = [
        f"// {' '.join(plan['name'].split())}: the functions of this model, with their inputs and outputs.",
        'import type { LoadOptions, Model, Output, TensorInput } from "./runner.js";\n',
    ]
    table = []
    for (name, function), title in zip(plan["functions"].items(), _titles(plan["functions"]), strict=True):
        parts.append(_interface(f"{title}Inputs", function["inputs"], _input_type))
        parts.append(_interface(f"{title}Outputs", function["outputs"], _output_type))
        table.append(f"  {name}: {{ inputs: {title}Inputs; outputs: {title}Outputs }};")
    parts.append("export interface Functions {\n" + "\n".join(table) + "\n}\n")
    parts.append("export declare const open: (options?: LoadOptions) => Promise<Model<Functions>>;\n")
    return "\n".join(parts)


def _titles(names: Iterable[str]) -> list[str]:
    """Functions' names as types begin, StepOne for step_one; what two would share has a number."""
    titles: list[str] = []
    for name in names:
        title = "".join(part[:1].upper() + part[1:] for part in name.split("_"))
        while title in titles:
            title += str(len(titles) + 1)
        titles.append(title)
    return titles


def _interface(name: str, fields: Mapping[str, Any], type_of: Any) -> str:
    lines = [
        f"  /** {_about(each)} */\n  {_key(key)}{'?' if _is_optional(each) else ''}: {type_of(each)};"
        for key, each in fields.items()
    ]
    return f"export interface {name} {{\n" + "\n".join(lines) + "\n}\n"


def _key(name: str) -> str:
    return name if name.isidentifier() else json.dumps(name)


def _about(field: Mapping[str, Any]) -> str:
    if "shape" in field:
        return f"{field['dtype']} of shape [{', '.join(map(str, field['shape']))}]"
    if field["kind"] == "random":
        return "32 random bits; drawn where none are given"
    default = f", {field['default']} where none is given" if "default" in field else ""
    return f"a number, {field['dtype']}{default}"


def _is_optional(field: Mapping[str, Any]) -> bool:
    return field.get("kind") == "random" or "default" in field


def _input_type(field: Mapping[str, Any]) -> str:
    return f"TensorInput<{_ARRAYS[field['dtype']]}>" if field["kind"] == "tensor" else "number"


def _output_type(field: Mapping[str, Any]) -> str:
    return f"Output<{_ARRAYS[field['dtype']]}>"
