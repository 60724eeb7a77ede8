"""`webgrad check script.py | MODEL`: whether a GPU computes what the cpu does, and which op does not.

In: a script with its own arguments, or a model's name. Out: a report; exit code 0 where the devices agree, 1
where they diverge, 2 for what the user can mend: a script's own error, or one that computes nothing.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import webgrad as wg

from ..tools.checking.check import COMPARES, check
from ..tools.checking.models import LEAST, ModelReport, Step, check_embedding, check_language
from ..tools.checking.verdict import CheckReport, Divergence, plain
from ..tools.gpu_choice import gpu_for
from . import protocols
from .onnx_check import check_onnx
from .onnx_models import add_inputs, is_onnx
from .options import Parser, add_json, clean, count
from .script import output_aside, run_script
from .text import encodable

__all__ = ["main"]

PROMPT = "The old harbour lay quiet in the morning light, and the first boats"
TEXTS = (
    "The old harbour lay quiet in the morning light.",
    "A cat sat on the mat.",
    "Matrix products are most of what a model computes, and where the time goes.",
    "Why?",
)


def main(arguments: Sequence[str]) -> int:
    """Check a script or a model."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.what.endswith(".py"):
        return _script(options, gpu_for(options.device, COMPARES))
    if options.arguments:  # a model has none of its own: options may stand behind its name
        options = parser.parse_args([*options.arguments, options.what], options)
    if options.arguments:
        parser.error(f"{' '.join(options.arguments)}: only a script, which ends with .py, has arguments")
    if is_onnx(options.what):
        return check_onnx(options)
    return _model(options, gpu_for(options.device, COMPARES))


def _parser() -> Parser:
    parser = Parser(
        prog="webgrad check",
        usage="webgrad check [options] script.py [its arguments] | MODEL",
        description="Run a script, or a model, on a GPU, hold every op against the cpu, and name the first "
        "that diverges. The exit code is 0 where they agree and 1 where they do not.",
    )
    parser.add_argument("what", metavar="script.py | MODEL", help="a Python script, or see webgrad models")
    rest = parser.add_argument("arguments", nargs=argparse.REMAINDER, help="a script's own arguments")
    rest.required = False
    parser.add_argument(
        "--device", help="webgpu, webgpu:N or a part of an adapter's name (default: the best)"
    )
    parser.add_argument("--all", action="store_true", help="go on after the first divergence")
    parser.add_argument(
        "--times",
        type=count,
        default=3,
        metavar="N",
        help="how often what has the same structure is compared (default: 3)",
    )
    parser.add_argument("--wgsl", action="store_true", help="print the whole text of a kernel that is wrong")
    parser.add_argument("--prompt", default=PROMPT, help="what a language model goes on with")
    parser.add_argument(
        "--steps", type=count, default=8, metavar="N", help="decode steps of a language model (default: 8)"
    )
    add_inputs(parser)
    add_json(parser)
    return parser


def _say(text: str) -> None:
    print(encodable(text, sys.stdout.encoding or "ascii"), flush=True)


def _script(options: Any, device: wg.Device) -> int:
    before = wg.default_device()
    wg.set_default_device(device)
    try:
        with output_aside(options.json):
            report = check(
                run_script,
                options.what,
                options.arguments,
                device=device,
                everything=options.all,
                times=options.times,
            )
    finally:
        wg.set_default_device(before)
    if options.json:
        print(json.dumps(report.as_dict()))
    else:
        _show(report, options.wgsl)
    if not report.ok:
        return 1
    if report.result:
        print(f"webgrad check: {options.what} ended with exit code {report.result}", file=sys.stderr)
        return 2
    if not report.kernels:
        print(
            f"webgrad check: {options.what} computed nothing that can be compared on {device.name}: kernels "
            "of your own (wg.kernel) and batches have no reference",
            file=sys.stderr,
        )
        return 2
    return 0


def _show(report: CheckReport, whole: bool) -> None:
    _say("\n".join(report.lines(None if whole else 0)))
    if report.first is not None and report.first.wgsl and not whole:
        _say(f"  the kernel's text is in {_written(report.first)}")


def _written(found: Divergence) -> Path:
    """A file with the text of a kernel that is wrong."""
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", prefix=f"webgrad_{found.op}_", suffix=".wgsl", delete=False
    ) as file:
        file.write(found.wgsl)
    return Path(file.name)


def _model(options: Any, device: wg.Device) -> int:
    model = protocols.load(options.what, device.name)
    reference = protocols.load(options.what, "cpu")

    def tell(step: Step) -> None:
        if not options.json:
            _say(str(step))

    if hasattr(model, "embed"):
        report = check_embedding(model, reference, TEXTS, tell)
    else:
        ids = model.tokenizer.encode(clean(options.prompt))
        if not ids:
            raise wg.ArgumentError("--prompt has no token: write a word at least")
        report = check_language(model, reference, ids, options.steps, tell)
    if options.json:
        print(json.dumps(_as_dict(options.what, device, report)))
    else:
        _tell(options.what, device, report, options.wgsl)
    return 0 if report.ok else 1


def _tell(name: str, device: wg.Device, report: ModelReport, whole: bool) -> None:
    if report.nodes is not None:
        _show(report.nodes, whole)
    refused = report.refused
    if refused is not None:
        _say(f"REFUSED: {name} on {device.name} does not compute what the cpu does: {refused}")
    elif not report.ok:
        _say(f"REFUSED: an op of {name} diverges on {device.name}, though its results are within {LEAST}")
    else:
        least = min(each.cosine for each in report.steps)
        _say(f"{name} on {device.name} agrees with the cpu: every cosine is at least {least:.6f}")


def _as_dict(name: str, device: wg.Device, report: ModelReport) -> dict[str, Any]:
    steps = [
        {"name": each.name, "cosine": plain(each.cosine), "same_top": each.same_top, "ok": each.ok}
        for each in report.steps
    ]
    nodes = None if report.nodes is None else report.nodes.as_dict()
    return {"model": name, "device": device.name, "ok": report.ok, "steps": steps, "nodes": nodes}
