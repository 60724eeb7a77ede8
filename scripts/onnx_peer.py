"""onnxruntime on given inputs: `python onnx_peer.py MODEL FOLDER [--nodes]`, with a Python that has it.

In: inputs-0.npz, inputs-1.npz … in the folder, and links.json: which inputs take an output of the set before.
Out: outputs-0.npz … there, by the outputs' places; with --nodes those of all nodes, and names.json.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime


def main(model: str, folder: Path, *, nodes: bool) -> int:
    """Run every set of inputs."""
    onnxruntime.set_default_logger_severity(3)
    options = onnxruntime.SessionOptions()
    if nodes:
        model = _with_all_outputs(model, folder)
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_outputs()]
    (folder / "names.json").write_text(json.dumps(names))
    links = json.loads((folder / "links.json").read_text())
    before: dict[str, Any] = {}
    for at, linked in enumerate(links):
        with np.load(folder / f"inputs-{at}.npz") as kept:
            given = {name: kept[name] for name in kept.files}
        given |= {name: before[output] for name, output in linked.items()}
        outputs = session.run(None, given)
        before = dict(zip(names, outputs, strict=True))
        np.savez(folder / f"outputs-{at}.npz", *outputs)
    return 0


def _with_all_outputs(model: str, folder: Path) -> str:
    """A copy of a model whose outputs are those of all its nodes."""
    import onnx

    loaded = onnx.load(model)
    before = {each.name for each in loaded.graph.output}
    made = [name for node in loaded.graph.node for name in node.output if name and name not in before]
    loaded.graph.output.extend(map(onnx.helper.make_empty_tensor_value_info, made))
    onnx.save(loaded, folder / "nodes.onnx")
    return str(folder / "nodes.onnx")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2]), nodes="--nodes" in sys.argv))
