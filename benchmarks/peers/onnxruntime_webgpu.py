"""onnxruntime's WebGPU provider: inputs and outputs bound on the device where it can, else with transfers."""

from __future__ import annotations

from typing import Any

import onnxruntime as ort
from models import model
from worker import Array, Run, serve

PROVIDER = "WebGpuExecutionProvider"


def session(data: bytes) -> Any:
    options = ort.SessionOptions()
    options.log_severity_level = 3
    made = ort.InferenceSession(data, options, providers=[PROVIDER])
    if PROVIDER not in made.get_providers():
        raise RuntimeError(f"{PROVIDER} was not taken: it runs on {made.get_providers()}")
    return made


def build(name: str, inputs: dict[str, Array]) -> Run:
    data, feeds = model(name, inputs, vendor=True)
    made = session(data)
    try:
        bound = made.io_binding()
        for each, value in feeds.items():
            bound.bind_ortvalue_input(each, ort.OrtValue.ortvalue_from_numpy(value, "webgpu", 0))
        bound.bind_output("y", "webgpu", 0)
        made.run_with_iobinding(bound)
        bound.synchronize_outputs()
    except Exception as error:
        print(f"{name}: with upload and download, since it cannot bind on the device: {error}")
        return lambda: made.run(["y"], feeds)[0], lambda result: result

    def run() -> Any:
        made.run_with_iobinding(bound)
        bound.synchronize_outputs()
        return bound

    return run, lambda result: result.copy_outputs_to_cpu()[0]


if __name__ == "__main__":
    serve(build, {"library": f"onnxruntime-webgpu {ort.__version__}"})
