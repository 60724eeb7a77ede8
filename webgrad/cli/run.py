"""`webgrad run MODEL --input name=file`: an ONNX model on files, and what it gives, shown or written.

In: a model and a value for each of its inputs. Out: a line for each output, and .npy files where a folder is
named. Without inputs: what the model takes.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import webgrad as wg

from ..arrays import Array, np
from .onnx_models import add_inputs, given_inputs, is_onnx, load, what_to_give
from .options import Parser, add_device, add_json
from .terminal import Output

__all__ = ["main"]

FEW = 6  # numbers that a line shows


def main(arguments: Sequence[str]) -> int:
    """Run a model once."""
    options = _parser().parse_args(arguments)
    if not is_onnx(options.model):
        raise wg.ArgumentError(
            f"{options.model} is no ONNX model: give the path of an .onnx file, or see webgrad models"
        )
    model = load(options.model, options.device)
    given = given_inputs(model, options)
    if not given and model.inputs:
        return _tell_inputs(model, options)
    missing = [str(each) for each in model.inputs if each.name not in given]
    if missing:
        raise wg.ArgumentError(f"there is no --input for {', '.join(missing)}")
    start = time.perf_counter()
    outputs = {name: array_of(value) for name, value in model(**given).items()}
    seconds = time.perf_counter() - start
    files = {} if options.output is None else _written(outputs, options.output)
    if options.json:
        rows = [_row(name, value) | {"file": files.get(name)} for name, value in outputs.items()]
        print(json.dumps({"device": model.device.name, "seconds": round(seconds, 4), "outputs": rows}))
        return 0
    screen = Output(sys.stdout)
    for name, value in outputs.items():
        screen.line(f"{name}: {_described(value)}" + (f" → {files[name]}" if name in files else ""))
    notes = Output(sys.stderr)
    notes.line(f"{seconds:.2f} s on {model.device.name}, compiling included", notes.dim)
    return 0


def array_of(value: Any) -> Any:
    """An output on the host; sequences as lists."""
    if isinstance(value, list):
        return [array_of(each) for each in value]
    return value.numpy() if isinstance(value, wg.Tensor) else value


def _tell_inputs(model: wg.onnx.Model, options: Any) -> int:
    if options.json:
        sides = {kind: list(map(str, getattr(model, kind))) for kind in ("inputs", "outputs")}
        print(json.dumps(sides))
        return 0
    screen = Output(sys.stdout)
    for kind in ("inputs", "outputs"):
        screen.line(f"{kind}:", screen.bold)
        for each in getattr(model, kind):
            screen.line(f"  {each}")
    screen.line(f"give them: webgrad run {options.model} {what_to_give(model)} --output out/")
    return 0


# Outputs


def _row(name: str, value: Any) -> dict[str, Any]:
    if isinstance(value, np.ndarray):
        return {"name": name, "dtype": str(value.dtype), "shape": list(value.shape)}
    return {"name": name, "dtype": type(value).__name__, "shape": None}


def _described(value: Any) -> str:
    """An array's type, shape, range and first numbers."""
    if not isinstance(value, np.ndarray):
        return "nothing" if value is None else f"{len(value)} values"
    first = ", ".join(_short(each) for each in value.reshape(-1)[:FEW])
    what = f"{value.dtype}[{', '.join(map(str, value.shape))}]"
    more = ", …" if value.size > FEW else ""
    return f"{what}{_range(value)}: {first}{more}"


def _range(value: Array) -> str:
    if value.dtype.kind not in "fiu" or value.size <= FEW:
        return ""
    with np.errstate(all="ignore"):
        return f" from {_short(value.min())} to {_short(value.max())}"


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, np.floating) else str(value)


def _written(outputs: dict[str, Any], folder: Path) -> dict[str, str]:
    """Files of the outputs that are arrays, by name; letters that no system has in names become _."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise wg.ArgumentError(f"--output {folder}: {error.strerror or error}") from None
    found: dict[str, str] = {}
    for at, (name, value) in enumerate(outputs.items()):
        plain = re.sub(r"[^A-Za-z0-9._-]+", "_", name).lstrip(".") or f"output_{at}"
        if isinstance(value, np.ndarray) and value.dtype != object:
            path = folder / f"{plain}.npy"
            if str(path) in found.values():
                path = folder / f"{plain}_{at}.npy"
            wg.io.save(path, {plain: wg.asarray(value, device="cpu")})
            found[name] = str(path)
    return found


def _parser() -> Parser:
    parser = Parser(
        prog="webgrad run",
        description="Run an ONNX model on files. Without --input its inputs are shown, and what to give.",
    )
    parser.add_argument("model", metavar="MODEL", help="an .onnx file, or a name of webgrad models")
    add_inputs(parser)
    parser.add_argument("--output", type=Path, metavar="FOLDER", help="write each output as a .npy file")
    add_device(parser)
    add_json(parser)
    return parser
