"""`webgrad kernels [script.py | MODEL | --all]`: the kernels that a run compiles, and which are needless.

In: a script with its own arguments, a model, or the fixed list of families; nothing: the templates that ship.
Out: a table of variants, then what need not have been compiled; with --gpu what real GPUs' compilers make of
them. The exit code is the script's own.
"""

from __future__ import annotations

import contextlib
import json
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import webgrad as wg

from ..observing import observe
from ..tools.debug import Dump, text_name
from ..tools.gpu_choice import gpu_for
from ..tools.gpus.compilation import compile_alone, drivers_silenced
from ..tools.gpus.families import prepared
from ..tools.kernels import Finding, Shipped, Variant, Watch, findings, shipped
from ..tools.profiling.table import columns, readable_seconds
from . import gpu_kernels, protocols
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
    options = _parser().parse_args(arguments)
    _check(options)
    if options.gpu is not None:
        return gpu_kernels.show(options)
    if options.run is None and not options.all:
        return _show_shipped(options.json)
    with contextlib.nullcontext() if options.driver_output is None else drivers_silenced():
        return _show_run(options)


def _parser() -> Parser:
    parser = Parser(
        prog="webgrad kernels",
        description="List the kernels that a script or a model compiles on a GPU, and show needless ones. "
        "Without either: the templates that ship, and how many variants of each there are.",
    )
    add_device(parser)
    add_json(parser)
    parser.add_argument("--all", action="store_true", help="run a fixed list of kernels' families instead")
    parser.add_argument(
        "--gpu",
        metavar="NAMES",
        help="ask these GPUs' compilers, which need no GPU: navi31, navi10, … or all",
    )
    parser.add_argument("--dump", metavar="FOLDER", help="write the texts there, one file each")
    parser.add_argument(
        "--driver-output", metavar="FOLDER", help="write there what the driver prints of each kernel"
    )
    parser.add_argument("run", nargs="?", metavar="SCRIPT.py | MODEL", help="what to run")
    parser.add_argument("arguments", nargs="...", help="the script's own arguments")
    return parser


def _check(options: Namespace) -> None:
    """Refuse options that contradict each other."""
    if options.all and options.run is not None:
        raise wg.ArgumentError(f"--all runs a list of its own, and not {options.run}")
    if options.run is not None or options.all:
        if options.gpu is not None and options.device is not None:
            raise wg.ArgumentError("--gpu opens devices of its own: leave --device out")
        return
    for name in ("dump", "gpu", "driver_output"):
        if getattr(options, name) is not None:
            option = name.replace("_", "-")
            raise wg.ArgumentError(f"--{option} needs something to run: name a script or a model, or --all")


def _show_run(options: Namespace) -> int:
    dump = None if options.dump is None else Dump(Path(options.dump), "--dump")
    device = gpu_for(options.device, "kernels are compiled on GPUs only")
    families: dict[str, list[Variant]] = {}
    with output_aside(options.json):
        code = _run_all(device, families) if options.all else _run_one(device, options, families)
    variants = [each for family in families.values() for each in family]
    if dump is not None:
        for each in variants:
            dump.write(each)
    if options.driver_output is not None:
        compile_alone(variants, Path(options.driver_output))
    found = [] if options.all else findings(variants)
    if options.json:
        rows = [_as_dict(each, family) for family, each in _pairs(families)]
        adapter = {"name": device.info.name, "driver": device.info.driver}
        print(json.dumps({"adapter": adapter, "variants": rows, "findings": list(map(_finding, found))}))
    else:
        _print(_table(list(_pairs(families)), with_lines=_is_script(options.run or "")))
        _print("\n".join([] if options.all else _needless(found)))
    return code


def _pairs(families: Mapping[str, Sequence[Variant]]) -> Iterator[tuple[str, Variant]]:
    return ((family, each) for family, variants in families.items() for each in variants)


def _run_all(device: Any, families: dict[str, list[Variant]]) -> int:
    """Run each family of the fixed list, and keep its variants."""
    for name, run in prepared(device).items():
        watch = Watch()
        with observe(watch):
            run()
            device.synchronize()
        families[name] = watch.variants()
    return 0


def _run_one(device: Any, options: Namespace, families: dict[str, list[Variant]]) -> int:
    watch = Watch()
    with observe(watch):
        code = _run(options.run, options.arguments, device)
    families[""] = watch.variants()
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


def _table(pairs: Sequence[tuple[str, Variant]], *, with_lines: bool) -> str:
    """A model's kernels all have the line that ran it, which says nothing; a family's have its name."""
    if not pairs:
        return "no kernel was compiled: nothing was computed on a GPU"
    variants = [each for _, each in pairs]
    rows = [("kernel", "launches", "bytes", "compiled in", "needs", "line")]
    for family, each in sorted(pairs, key=lambda pair: -pair[1].launches * (not pair[0])):
        name = each.name if len(each.name) <= NAME else each.name[: NAME - 1] + "…"
        marks = [each.role] * (each.role != "plain") + ["checked"] * each.checked
        rows.append(
            (
                f"{name} ({', '.join(marks)})" if marks else name,
                f"{each.launches:,}",
                f"{len(each.text):,}",
                readable_seconds(each.seconds),
                ", ".join(each.requires),
                each.line if with_lines else family,
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


def _as_dict(variant: Variant, family: str) -> dict[str, Any]:
    more = {"defines": dict(variant.defines), "file": f"{text_name(variant)}.wgsl", "family": family}
    return asdict(variant) | more


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
