"""Write the standard's node cases as folders: `python onnx_data.py FOLDER`, with a Python that has onnx.

Newer packages bring the code that makes these cases, and no files of them any more.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases


def main(folder: Path) -> int:
    """Write every case that is not there."""
    for case in collect_testcases(None):
        target = folder / case.name
        if case.model is None or (target / "model.onnx").exists():
            continue
        target.mkdir(parents=True, exist_ok=True)
        (target / "tolerance").write_text(f"{case.rtol} {case.atol}\n")
        for number, (inputs, outputs) in enumerate(case.data_sets):
            data = target / f"test_data_set_{number}"
            data.mkdir(exist_ok=True)
            for kind, values, declared in (
                ("input", inputs, case.model.graph.input),
                ("output", outputs, case.model.graph.output),
            ):
                for at, (value, each) in enumerate(zip(values, declared, strict=False)):
                    (data / f"{kind}_{at}.pb").write_bytes(_message(value, each).SerializeToString())
        (target / "model.onnx").write_bytes(case.model.SerializeToString())
    return 0


def _message(value: Any, declared: Any) -> Any:
    if hasattr(value, "SerializeToString"):
        return value
    if declared.type.HasField("sequence_type"):
        return numpy_helper.from_list(value, declared.name)
    if declared.type.HasField("optional_type"):
        return numpy_helper.from_optional(value, declared.name)
    return numpy_helper.from_array(value, declared.name)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
