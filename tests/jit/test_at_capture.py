"""`wg.at_capture`: what hangs on shapes alone is computed and read while a function is captured."""

from __future__ import annotations

import numpy as np
import pytest

import webgrad as wg
from webgrad.web.paper import VARIANTS, PaperDevice
from webgrad.web.trace import trace_on_paper

EVERYWHERE = pytest.mark.parametrize("device", ["cpu", pytest.param("webgpu", marks=pytest.mark.gpu)])


@EVERYWHERE
def test_values_of_shapes_are_constants_of_the_capture(device: str) -> None:
    runs = []

    @wg.jit
    def shifted(x: wg.Tensor) -> wg.Tensor:
        with wg.at_capture():
            table = (wg.arange(x.shape[0], device="cpu") * 2).numpy()
            runs.append(table)
        return x + wg.asarray(table.astype(np.float32), device=x.device)

    for start in (0.0, 5.0):
        x = wg.full((3,), start, device=device)
        assert shifted(x).tolist() == [start, start + 2, start + 4]
    assert len(runs) == 1
    assert shifted(wg.zeros(2, device=device)).tolist() == [0, 2]
    assert len(runs) == 2


@EVERYWHERE
@pytest.mark.parametrize("read", [lambda x: x.numpy(), lambda x: (x + 1).numpy(), lambda x: wg.eval(x * 2)])
def test_arguments_have_no_values_yet(device: str, read: object) -> None:
    @wg.jit
    def reading(x: wg.Tensor) -> wg.Tensor:
        with wg.at_capture():
            read(x)  # type: ignore[operator]
        return x

    with pytest.raises(wg.CaptureError, match="no values yet"):
        reading(wg.ones(3, device=device))


def test_after_the_block_nothing_can_be_read_again() -> None:
    known = wg.ones(2) + 1

    @wg.jit
    def reading(x: wg.Tensor) -> wg.Tensor:
        with wg.at_capture():
            pass
        return x * float((known + 1).numpy()[0])

    with pytest.raises(wg.CaptureError):
        reading(wg.ones(3))
    assert (known + 1).tolist() == [3, 3]


def test_outside_of_captures_it_is_any_code() -> None:
    with wg.at_capture():
        assert (wg.ones(2) + 1).tolist() == [2, 2]


def test_what_an_export_computes_at_once_is_not_on_its_paper_device() -> None:
    def shifted(x: wg.Tensor) -> wg.Tensor:
        with wg.at_capture():
            table = (wg.arange(x.shape[0], device="cpu") * 2).numpy()
        return x + wg.asarray(table.astype(np.float32))

    graph = trace_on_paper(shifted, (wg.ones(3),), PaperDevice(VARIANTS[0]))
    assert len(graph.outputs) == 1
