"""onnxruntime on given inputs: `python onnx_peer.py MODEL FOLDER`, with a Python that has onnxruntime.

In: inputs-0.npz, inputs-1.npz … in the folder, and links.json: which inputs take an output of the set before.
Out: outputs-0.npz … there, by the outputs' places.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime


def main(model: str, folder: Path) -> int:
    """Run every set of inputs."""
    onnxruntime.set_default_logger_severity(3)
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_outputs()]
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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2])))
