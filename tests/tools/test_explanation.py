"""Explaining: the kernels that would run, and nothing computed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.graph.helpers import tensor, unlimited_backlog
from tests.runtime.helpers import bench
from webgrad import dtypes
from webgrad.errors import DeviceError, DTypeError, WebgradError
from webgrad.evaluate.evaluate import plans
from webgrad.functions.array.creation import asarray
from webgrad.functions.array.elementwise import exp
from webgrad.functions.array.reductions import sum as total
from webgrad.functions.learning.activations import relu, softmax
from webgrad.graph.node import leaf
from webgrad.runtime.stats import readable_bytes
from webgrad.tensor import Tensor
from webgrad.tools.explanation import Explanation, explain

__all__ = ["unlimited_backlog"]  # for every test here: leaves without data must not be computed


def layer() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    x, w, b = tensor(64, 128), tensor(128, 32), tensor(32)
    return relu(x @ w + b), x, w, b


def test_a_layer_is_one_kernel_with_everything_known() -> None:
    y, x, w, b = layer()
    explained = explain(y)
    (kernel,) = explained.kernels
    assert kernel.ops == ("matmul", "add", "clamp_min")
    assert kernel.bytes_read == x.nbytes + w.nbytes + b.nbytes
    assert kernel.bytes_written == y.nbytes == 64 * 32 * 4
    assert "hole finish" in kernel.ir
    assert "define void @kernel(" in kernel.text
    assert len(kernel.grid) == 3
    assert min(kernel.grid) >= 1
    assert "matmul" in kernel.name
    assert explained.bytes_peak == kernel.bytes_read + kernel.bytes_written
    assert 2 * 64 * 128 * 32 < kernel.operations < 3 * 64 * 128 * 32
    assert kernel.line.endswith(f"{__file__}:{layer.__code__.co_firstlineno + 2}")
    assert f"at {kernel.line}" in str(explained)


def test_nothing_is_computed() -> None:
    y, *_ = layer()
    before = plans()
    explain(y, softmax(y))
    assert y.node.storage is None
    assert y.node.sig.op.name == "clamp_min"
    assert plans() == before


def test_it_says_what_will_run() -> None:
    x = asarray(np.arange(12, dtype=np.float32).reshape(3, 4) / 4, device="cpu")
    y = softmax(exp(x))
    assert len(explain(y).kernels) == 1
    np.testing.assert_allclose(y.numpy().sum(-1), np.ones(3), rtol=1e-6)
    assert explain(y).kernels == []


def test_what_only_the_cpu_computes_is_explained_there() -> None:
    x = asarray(np.arange(3.0), device="cpu")
    assert x.dtype is dtypes.float64
    (kernel,) = explain(exp(x)).kernels
    assert kernel.ops == ("exp",)


def test_the_graph_is_shown() -> None:
    x = tensor(3, 4)
    text = explain(exp(x) * 2.0).graph
    lines = text.splitlines()
    assert any(line.endswith("= leaf (3, 4) float32()") for line in lines)
    assert any("exp (3, 4) float32(%" in line for line in lines)
    assert lines[-1].endswith("→ result")
    assert "multiply" in lines[-1]


def test_several_results() -> None:
    x = tensor(100, 40)
    explained = explain(exp(x), x * 2.0, total(x, 0))
    assert explained.graph.count("→ result") == 3
    written = sum(each.bytes_written for each in explained.kernels)
    assert written >= 2 * x.nbytes + 40 * 4
    assert len(explain(exp(x), exp(x)).kernels) >= 1


def test_the_same_result_twice_counts_once() -> None:
    y = exp(tensor(8))
    assert len(explain(y, y).kernels) == 1


def test_what_is_there_needs_no_kernel() -> None:
    explained = explain(tensor(5, 5))
    assert explained.kernels == []
    assert explained.bytes_peak == 100
    assert str(explained).startswith("0 kernels on cpu")


def test_the_peak_counts_what_lives_at_one_time() -> None:
    size = 64
    a = tensor(size, size)
    x = a
    for _ in range(10):
        x = x @ a
    explained = explain(x)
    assert len(explained.kernels) == 10
    assert explained.bytes_peak == 3 * size * size * 4  # the leaf, one product, and the next


def test_it_prints_well() -> None:
    y, *_ = layer()
    explained = explain(y)
    text = str(explained)
    assert text == repr(explained)
    first, second, third, fourth = text.splitlines()
    assert first == f"1 kernel on cpu, peak {readable_bytes(explained.bytes_peak)}"
    (kernel,) = explained.kernels
    assert second == f"  1. {kernel.name}: matmul, add, clamp_min"
    assert f"reads {readable_bytes(kernel.bytes_read)}" in third
    assert f"writes {readable_bytes(kernel.bytes_written)}" in third
    assert "grid" in third
    assert fourth == f"     at {kernel.line}"
    assert repr(kernel).startswith(f"<kernel {kernel.name}: 3 ops, reads")
    assert "2 kernels" in str(explain(total(softmax(tensor(64, 64)), 0)))


def test_a_kernel_says_its_ir_and_text() -> None:
    (kernel,) = explain(softmax(tensor(16, 12))).kernels
    assert kernel.ir.startswith(f"kernel {kernel.name}:")
    assert "in %0: float32[192]  (binding 0)" in kernel.ir
    assert "loop(" in kernel.ir
    assert "define void @kernel(" in kernel.text
    assert explain(softmax(tensor(16, 13))).kernels[0].text == kernel.text  # sizes are fields


@pytest.mark.parametrize("wrong", [3, np.zeros(3), "x", None, [1.0]], ids=str)
def test_what_is_no_tensor_is_refused(wrong: Any) -> None:
    with pytest.raises(DTypeError, match="explain takes tensors"):
        explain(wrong)


def test_no_tensors_at_all() -> None:
    with pytest.raises((WebgradError, TypeError), match="explain"):
        explain()


@pytest.mark.gpu
def test_on_a_gpu_it_is_what_runs() -> None:
    device = bench().device
    array = np.ones((64, 128), np.float32)
    x = Tensor(leaf(device.upload(array), array.shape, dtypes.float32, device))
    explained = explain(softmax(x))
    assert isinstance(explained, Explanation)
    assert explained.device == device.name
    before = device.stats()["dispatches"]
    softmax(x).numpy()
    assert device.stats()["dispatches"] - before == len(explained.kernels)


@pytest.mark.gpu
def test_tensors_of_two_devices_are_refused() -> None:
    device = bench().device
    x = Tensor(leaf(device.upload(np.ones(4, np.float32)), (4,), dtypes.float32, device))
    with pytest.raises(DeviceError, match=f"cpu.*{device.name}|{device.name}.*cpu"):
        explain(exp(x), exp(tensor(4)))
