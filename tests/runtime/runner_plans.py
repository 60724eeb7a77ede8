"""Plans written by hand for the tests of runner.js, and a server that a page can load one from.

Out: dictionaries as plan.json has them, with the content of their weight files; no export is asked.
"""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

__all__ = [
    "EXPECTED",
    "FIRST",
    "LOAD",
    "RUNNER",
    "SCALE",
    "WEIGHT",
    "Server",
    "X",
    "chain",
    "echo",
    "entry",
    "served_chain",
    "uncompilable",
    "variants",
]

RUNNER = Path(__file__).parents[2] / "webgrad" / "runtime" / "runner.js"
PARAMS = "struct Params { rate: f32, shift: i32, seed: u32 }; "
START = "@compute @workgroup_size(4) fn main(@builtin(global_invocation_id) id: vec3u) { let i = id.x; "


def kernel(accesses: str, statement: str, element: str = "f32") -> str:
    """A text whose storage bindings are a, b, c and whose parameters are p, bound last."""
    kinds = {"r": "read", "w": "read_write"}
    bindings = [
        f"@group(0) @binding({at}) var<storage, {kinds[access]}> {'abc'[at]}: array<{element}>;"
        for at, access in enumerate(accesses)
    ]
    params = f"{PARAMS} @group(0) @binding({len(accesses)}) var<uniform> p: Params;"
    return " ".join([*bindings, params, START, statement, "}"])


SCALE = kernel("rw", "b[i] = a[i] * p.rate;")
X = [1.0, 2.0, 3.0, 4.0]
WEIGHT = np.array([1, 10, 100, 1000], np.float32)
FIRST = np.array([0.5, 1.5, 2.5, 3.5], np.float32)
FLOATS = {"dtype": "float32", "shape": [2, 2], "bytes": 16}


def entry(name: str, content: bytes) -> dict[str, Any]:
    return {"file": name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def plan_of(**more: Any) -> dict[str, Any]:
    base = {"format": "webgrad-plan", "version": 1, "generator": "tests", "name": "plan", "texts": []}
    return base | {"weights": [], "tensors": {}, "state": {}, "functions": {}} | more


def chain() -> dict[str, Any]:
    """A running total of what comes in, its product with a weight, and the bits that were drawn."""
    files = {"one.safetensors": b"head" + WEIGHT.tobytes(), "two.safetensors": FIRST.tobytes()}
    kernels = [
        ("rw", "b[i] = b[i] + a[i] * p.rate + f32(p.shift);", "f32", "accumulate"),
        ("rrw", "c[i] = a[i] * b[i];", "f32", "multiply"),
        ("w", "if (i == 0u) { a[0] = p.seed; }", "u32", "remember"),
        ("w", "a[i] = a[i] + 1.0;", "f32", "touch"),
    ]
    seed = base64.b64encode(np.array([0, 0, 77], np.uint32).tobytes()).decode()
    variant = {
        "label": "plain",
        "kernels": [
            {"text": at, "entry": "main", "accesses": accesses, "label": label}
            for at, (accesses, _, _, label) in enumerate(kernels)
        ],
        "buffers": [
            {"bytes": 16},
            {"bytes": 16, "state": "total"},
            {"bytes": 16, "tensor": "weight"},
            {"bytes": 16},
            {"bytes": 4},
            {"bytes": 16, "state": "count"},
            {"bytes": 16, "data": base64.b64encode(FIRST.tobytes()).decode()},
        ],
        "functions": {
            "run": {
                "commands": [
                    [0, [0, 0, 16, 1, 0, 16], [1, 1, 1], ""],
                    [1, [1, 0, 16, 2, 0, 16, 3, 0, 16], [1, 1, 1], ""],
                    [2, [4, 0, 4], [1, 1, 1], seed],
                ],
                "numbers": [["rate", "f32", [0]], ["shift", "i32", [4]], ["seed", "u32", [520]]],
                "inputs": {"x": 0},
                "outputs": {"y": 3, "total": 1, "bits": 4, "kept": 6, "count": 5},
                "copies": [1, 0, 5, 0, 16],
            },
            "touch": {
                "commands": [[3, [1, 0, 16], [1, 1, 1], ""]],
                "numbers": [],
                "inputs": {},
                "outputs": {},
            },
        },
    }
    outputs = dict.fromkeys(("y", "total", "kept", "count"), FLOATS)
    bits = {"dtype": "uint32", "shape": [], "bytes": 4}
    inputs = {
        "x": {"kind": "tensor", **FLOATS},
        "rate": {"kind": "number", "dtype": "float32", "default": 2.0},
        "shift": {"kind": "number", "dtype": "int32"},
        "seed": {"kind": "random", "dtype": "uint32"},
    }
    plan = plan_of(
        texts=[kernel(accesses, text, element) for accesses, text, element, _ in kernels],
        weights=[entry(name, content) for name, content in files.items()],
        tensors={
            "weight": {"file": 0, "start": 4, **FLOATS},
            "first": {"file": 1, "start": 0, **FLOATS},
        },
        state={"total": {**FLOATS, "tensor": "first"}, "count": {**FLOATS, "tensor": None}},
        functions={
            "run": {"inputs": inputs, "outputs": outputs | {"bits": bits}},
            "touch": {"inputs": {}, "outputs": {}},
        },
        variants=[variant],
    )
    return {"plan": plan, "files": {name: base64.b64encode(each).decode() for name, each in files.items()}}


def echo(count: int, given: str, **outputs: str) -> dict[str, Any]:
    """A plan without kernels whose outputs are its input's bytes, in dtypes of their own."""
    size = count * np.dtype(getattr(ml_dtypes, given, given)).itemsize
    specs = {name: {"dtype": dtype, "shape": [count], "bytes": size} for name, dtype in outputs.items()}
    inputs = {"x": {"kind": "tensor", "dtype": given, "shape": [count], "bytes": size}}
    function = {"commands": [], "numbers": [], "inputs": {"x": 0}, "outputs": dict.fromkeys(outputs, 0)}
    variant = {"label": "all", "kernels": [], "buffers": [{"bytes": size}], "functions": {"run": function}}
    return {
        "plan": plan_of(functions={"run": {"inputs": inputs, "outputs": specs}}, variants=[variant]),
        "files": {},
    }


def variants() -> dict[str, Any]:
    needs: dict[str, Any] = {
        "software, subgroups of 4": {"software": True, "features": ["subgroups"], "subgroupSize": 4},
        "wide": {"software": False, "features": ["shader-f16"], "limits": {"maxBufferSize": 2**31}},
        "hardware": {"software": False},
    }
    made = [
        {"label": label, "needs": each, "kernels": [], "buffers": [], "functions": {}}
        for label, each in needs.items()
    ]
    last = {"label": "any", "kernels": [], "buffers": [], "functions": {}}
    return {"plan": plan_of(variants=[*made, last]), "files": {}}


def uncompilable() -> dict[str, Any]:
    kernels = [{"text": 0, "entry": "main", "accesses": "w", "label": "softmax of rows"}]
    variant = {"label": "any", "kernels": kernels, "buffers": [], "functions": {}}
    return {"plan": plan_of(texts=[kernel("w", "a[i] = nothing;")], variants=[variant]), "files": {}}


class Server:
    """Files of a folder in memory over http, and the paths that were asked for."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = files
        self.asked: list[str] = []
        self.broken = ""  # the file whose connection breaks in the middle
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                name = self.path.partition("?")[0].removeprefix("/")
                outer.asked.append(name)
                content = outer.files.get(name)
                self.send_response(404 if content is None else 200)
                kind = {"js": "text/javascript", "html": "text/html"}.get(
                    name.rpartition(".")[2], "text/plain"
                )
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(content or b"")))
                self.end_headers()
                self.wfile.write((content or b"")[: 5 if name == outer.broken else None])

            def log_message(self, format: str, *arguments: Any) -> None:
                """Nothing: pytest's output is for what fails."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@contextmanager
def served_chain() -> Iterator[Server]:
    """The chain's plan and weights, the runner, and an empty page."""
    made = chain()
    files = {name: base64.b64decode(content) for name, content in made["files"].items()}
    page = b"<!doctype html><link rel=icon href='data:,'>"
    files |= {
        "plan.json": json.dumps(made["plan"]).encode(),
        "runner.js": RUNNER.read_bytes(),
        "page.html": page,
    }
    server = Server(files)
    try:
        yield server
    finally:
        server.server.shutdown()
        server.server.server_close()


EXPECTED = ((FIRST + np.array(X, np.float32) * 2 + 1) * WEIGHT).tolist()  # what LOAD gets
LOAD = """(async () => {
  const { load } = await import("/runner.js");
  const steps = [];
  try {
    const model = await load("plan.json", { onProgress: (step) => steps.push(step) });
    const { y } = await model.run({ x: [1, 2, 3, 4], shift: 1 });
    model.close();
    const keys = await (await caches.open("webgrad-weights")).keys();
    return { y: [...y.data], steps, kept: keys.map(({ url }) => url).sort(), name: model.info.device.name };
  } catch (error) {
    return { code: error.code, message: error.message, runner: error.name === "RunnerError" };
  }
})()"""
