"""Pipelines are compiled by several threads at once, outside of error scopes: errors find their makers."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.runtime.helpers import bench
from webgrad.errors import CompileError
from webgrad.runtime.native import native_of

pytestmark = pytest.mark.gpu

GOOD = "@compute @workgroup_size(1) fn f() { }"
UNBOUND = (
    "@group(0) @binding(0) var<storage, read_write> x: array<f32>;"
    "@compute @workgroup_size(1) fn f() { x[0] = 1.0; }"
)  # valid by itself, but not with the empty layout it is given


def test_an_error_goes_to_the_thread_whose_pipeline_it_is() -> None:
    native = native_of(bench().device.queue.context.native)
    layout = native.create_pipeline_layout([native.create_group_layout([])])
    stop = threading.Event()

    def scopes() -> None:
        while not stop.is_set():
            native.release_buffer(native.create_buffer(256))  # raises if it meets another's error

    def compile_one(number: int) -> str:
        try:
            native.release_pipeline(
                native.create_pipeline(UNBOUND if number % 2 else GOOD, "f", layout, checked=True)
            )
        except CompileError as error:
            return f"refused: {'not available in the pipeline layout' in str(error)}"
        return "made"

    with ThreadPoolExecutor(6) as threads:
        busy = [threads.submit(scopes) for _ in range(2)]
        outcomes = list(threads.map(compile_one, range(60)))
        stop.set()
        for each in busy:
            each.result()
    assert outcomes == ["made", "refused: True"] * 30
