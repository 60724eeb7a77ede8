"""The guard zone of the harness does find kernels that leave their buffers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.kernels.harness import PROFILES, run
from webgrad.kernels.choose import fill, reduce
from webgrad.kernels.launch import pack


@pytest.mark.gpu
def test_a_write_beyond_the_end_is_found() -> None:
    launch = fill(PROFILES["software"], 64, 0)
    wrong = replace(launch, params=pack(launch.program, groups=5, chunk=2048, grid_x=1, pattern=0))
    run(launch, [], np.uint32, 16)
    with pytest.raises(AssertionError, match="wrote beyond the end"):
        run(wrong, [], np.uint32, 16)


@pytest.mark.gpu
def test_a_read_beyond_the_end_is_found() -> None:
    (launch,) = reduce(PROFILES["software"], "sum", "f32", 1, 16)
    wrong = replace(launch, params=pack(launch.program, parts=1, columns=5, segment=5, segments=1, grid_x=1))
    ones = np.ones(16, np.float32)
    assert run(launch, [ones], np.float32, 1)[0] == 16
    assert np.isnan(run(wrong, [ones], np.float32, 1)[0])
