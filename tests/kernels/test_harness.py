"""The guard zone of the harness does find kernels that leave their buffers."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels.harness import run
from webgrad.kernels.launch import Launch, pack
from webgrad.wgsl import program_from_source

PROGRAM = program_from_source("""
struct Params { from_: u32, to: u32 }
var<uniform> p: Params;
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(1) fn copy() { y[p.to] = x[p.from_]; }
""")


def copied(source: int, target: int) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    """One of 16 numbers copied to another place of 16."""
    launch = Launch(PROGRAM, pack(PROGRAM, from_=source, to=target), (1, 1, 1))
    return run(launch, [np.arange(16, dtype=np.float32)], np.float32, 16)


@pytest.mark.gpu
def test_a_write_beyond_the_end_is_found() -> None:
    assert copied(5, 15)[15] == 5
    with pytest.raises(AssertionError, match="wrote beyond the end"):
        copied(5, 16)


@pytest.mark.gpu
def test_a_read_beyond_the_end_is_found() -> None:
    assert copied(15, 0)[0] == 15
    assert np.isnan(copied(16, 0)[0])
