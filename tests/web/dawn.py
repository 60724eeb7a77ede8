"""JavaScript in node, with WebGPU by Dawn: runner.js and exported bundles without a browser.

In: an ES module, or the text of one, and the input of its function. Out: what the function returned. Arrays
of NumPy and typed arrays of JavaScript stand for each other, both ways; the module may fetch file: addresses.
Tests ask for the fixture `dawn`, which skips them where node or Dawn is missing.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from scripts.adapter import adapter_environment
from scripts.browser import find
from scripts.npm import FOLDER
from tests.limits import HANG

__all__ = ["NULL", "JavaScriptError", "run_module", "run_text"]

NULL = ("backend=null",)  # validates everything and computes nothing; needs no driver
KINDS = {
    "Int8Array": "int8",
    "Uint8Array": "uint8",
    "Uint8ClampedArray": "uint8",
    "Int16Array": "int16",
    "Uint16Array": "uint16",
    "Int32Array": "int32",
    "Uint32Array": "uint32",
    "Float32Array": "float32",
    "Float64Array": "float64",
    "BigInt64Array": "int64",
    "BigUint64Array": "uint64",
}
NAMES = {dtype: name for name, dtype in reversed(KINDS.items())}


class JavaScriptError(Exception):
    """The function threw; `name`, `code` and `stack` are the error's own."""

    def __init__(self, name: str, message: str, code: str | None, stack: str) -> None:
        super().__init__(f"{name}: {message}")
        self.name, self.code, self.stack = name, code, stack


def run_module(
    module: Path,
    value: Any = None,
    *,
    function: str = "main",
    threads: int = 0,
    lanes: int | None = None,
    options: Sequence[str] = (),
) -> Any:
    """What a module's function gives for a value; `threads` and `lanes` are of Mesa's software adapter."""
    asked = json.dumps({"input": value, "options": list(options)}, default=_packed)
    adapter = (adapter_environment(lanes) if lanes else {}) | {"LP_NUM_THREADS": str(threads)}
    done = subprocess.run(
        [str(find("node")), str(FOLDER / "dawn.mjs"), str(module.resolve()), function],
        input=asked,
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={"XDG_RUNTIME_DIR": tempfile.gettempdir(), **os.environ, **adapter},
        timeout=HANG,
        check=False,
    )
    if done.returncode or not done.stdout.strip():
        raise JavaScriptError("node", done.stderr[-2000:], str(done.returncode), done.stderr)
    answer = json.loads(done.stdout.splitlines()[-1], object_hook=_unpacked)
    if error := answer.get("error"):
        raise JavaScriptError(error["name"], error["message"], error.get("code"), error["stack"])
    return answer.get("value")


def run_text(text: str, value: Any = None, **more: Any) -> Any:
    """The same for the text of a module that exports `main`; it imports others by their `Path.as_uri()`."""
    with tempfile.TemporaryDirectory() as folder:
        module = Path(folder) / "main.mjs"
        module.write_text(text, encoding="utf-8")
        return run_module(module, value, **more)


def _packed(value: Any) -> Any:
    array = np.ascontiguousarray(value)
    return {"$array": NAMES[array.dtype.name], "base64": base64.b64encode(array.tobytes()).decode()}


def _unpacked(value: dict[str, Any]) -> Any:
    if "$array" not in value:
        return value
    return np.frombuffer(base64.b64decode(value["base64"]), KINDS[value["$array"]])
