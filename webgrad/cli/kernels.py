"""`webgrad kernels [script.py | MODEL]`: the kernels that a run compiles, and which of them are needless.

In: a script with its own arguments, or a model; nothing: the templates that ship. Out: a table of variants,
then what need not have been compiled. The exit code is the script's own.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import webgrad as wg

from ..observing import observe
from ..tools.debug import Dump, text_name
from ..tools.gpu_choice import gpu_for
from ..tools.kernels import Finding, Shipped, Variant, Watch, findings, shipped
from ..tools.profiling.table import columns, readable_seconds
from . import protocols
from .options import Parser, add_device, add_json
from .script import output_aside, run_script
from .text import encodable

__all__ = ["main"]

NAME = 56  # characters of a kernel's name
TOKENS = 8  # that a language model writes
TEXTS = ("A short text.", "A text of some more words, so that another length is compiled too. " * 4)
PROMPT = "The old harbour lay quiet in the morning light, and boats came in one after another. " * 2


def main(arguments: Sequence[str]) -> int:
    """List the kernels of a run, or the templates that ship."""
    parser = Parser(
        prog="webgrad kernels",
        description="List the kernels that a script or a model compiles on a GPU, and show needless ones. "
        "Without either: the templates that ship, and how many variants of each there are.",
    )
    add_device(parser)
    add_json(parser)
    parser.add_argument("--dump", metavar="FOLDER", help="write the texts there, one file each")
    parser.add_argument("run", nargs="?", metavar="SCRIPT.py | MODEL", help="what to run")
    parser.add_argument("arguments", nargs="...", help="the script's own arguments")
    options = parser.parse_args(arguments)
    if options.run is None:
        if options.dump is not None:
            raise wg.ArgumentError("--dump writes what a run compiles: name a script or a model")
        return _show_shipped(options.json)
    dump = None if options.dump is None else Dump(Path(options.dump), "--dump")
    device = gpu_for(options.device, "kernels are compiled on GPUs only")
    watch = Watch()
    with observe(watch), output_aside(options.json):
        code = _run(options.run, options.arguments, device)
    variants = watch.variants()
    if dump is not None:
        for each in variants:
            dump.write(each)
    found = findings(variants)
    if options.json:
        print(json.dumps({"variants": list(map(_as_dict, variants)), "findings": list(map(_finding, found))}))
    else:
        _print(_table(variants, with_lines=_is_script(options.run)))
        _print("\n".join(_needless(found)))
    return code


def _is_script(what: str) -> bool:
    return what.endswith(".py")


def _run(what: str, arguments: Sequence[str], device: Any) -> int:
    """Run a script, or let a model work a little."""
    if _is_script(what):
        wg.set_default_device(device)
        return run_script(what, arguments)
    if arguments:
        raise wg.ArgumentError(f"a model takes no arguments: {' '.join(arguments)}")
    model = protocols.load(what, device.name)
    if hasattr(model, "embed"):
        for text in TEXTS:
            model.embed([text]).numpy()
    else:
        for _ in model.generate_ids(model.tokenizer.encode(PROMPT), max_tokens=TOKENS, temperature=0):
            pass
    return 0


def _print(text: str) -> None:
    print(encodable(text, sys.stdout.encoding or "ascii"))


def _table(variants: Sequence[Variant], *, with_lines: bool) -> str:
    """A model's kernels all have the line that ran it, which says nothing."""
    if not variants:
        return "no kernel was compiled: nothing was computed on a GPU"
    rows = [("kernel", "launches", "bytes", "compiled in", "needs", "line")]
    for each in sorted(variants, key=lambda each: -each.launches):
        name = each.name if len(each.name) <= NAME else each.name[: NAME - 1] + "…"
        marks = [each.role] * (each.role != "plain") + ["checked"] * each.checked
        rows.append(
            (
                f"{name} ({', '.join(marks)})" if marks else name,
                f"{each.launches:,}",
                f"{len(each.text):,}",
                readable_seconds(each.seconds),
                ", ".join(each.requires),
                each.line if with_lines else "",
            )
        )
    total = f"{len(variants)} variants, {sum(each.launches for each in variants):,} launches, "
    seconds = readable_seconds(sum(each.seconds for each in variants))
    return f"{columns(rows, left=(0, 4, 5))}\n\n{total}{seconds} of compiling"


def _needless(found: Sequence[Finding]) -> list[str]:
    if not found:
        return ["needless: none"]
    lines = [f"needless: {len(found)}"]
    for each in found:
        lines.append(f"  {each.kind}: {each.what}")
        lines += [f"      {line}" for line in each.difference]
    return lines


def _as_dict(variant: Variant) -> dict[str, Any]:
    return asdict(variant) | {"defines": dict(variant.defines), "file": f"{text_name(variant)}.wgsl"}


def _finding(found: Finding) -> dict[str, Any]:
    return {
        "kind": found.kind,
        "what": found.what,
        "difference": list(found.difference),
        "files": [f"{text_name(each)}.wgsl" for each in found.variants],
    }


def _show_shipped(as_json: bool) -> int:
    templates = shipped()
    if as_json:
        print(json.dumps({"templates": [asdict(each) for each in templates]}))
    else:
        _print(_shipped_table(templates))
    return 0


def _shipped_table(templates: Sequence[Shipped]) -> str:
    """Which entry points and defines there are is for --json: some have a dozen."""
    rows: list[tuple[str, ...]] = [("template", "variants", "bytes", "entry points", "defines")]
    rows += [
        (
            each.name,
            *(f"{count:,}" for count in (each.variants, each.nbytes, len(each.entries), len(each.defines))),
        )
        for each in templates
    ]
    total = f"{sum(each.variants for each in templates):,} variants of {len(templates)} templates"
    return f"{columns(rows)}\n\n{total}"
