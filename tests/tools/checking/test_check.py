"""check finds what is wrong and names it, and is silent where nothing is."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

import webgrad as wg
from tests.tools.checking.faults import (
    cpu_fault,
    library_fault,
    loop_fault,
    move_fault,
    pass_fault,
    template_fault,
)
from webgrad import nn, optim
from webgrad.evaluate.evaluate import clear_plans
from webgrad.schedule import split_reductions
from webgrad.tools.checking import checked_graph, kernel_runs, reference

pytestmark = pytest.mark.gpu


def tensor(*shape: int, device: str = "cpu") -> wg.Tensor:
    numbers = np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)
    return wg.asarray(numbers, device=device)


# What is wrong


def _gelu(x: wg.Tensor) -> wg.Tensor:
    return wg.gelu(x @ x.mT + 1)


_CAST = "wg_cast_f32_i8(x: F) -> I { return select(I(clamp(x"
FAULTS: dict[str, tuple[AbstractContextManager[None], Callable[[wg.Tensor], Any], str, str]] = {
    "a wrong constant": (library_fault("0.737438381", "0.7375"), _gelu, "gelu", "op"),
    "a fold that ends too early": (loop_fault(), lambda x: (x * 2).sum(axis=1) + 1, "sum", "op"),
    "a wrong index": (move_fault("permute"), lambda x: wg.exp(x.permute(1, 0)) + x, "permute", "op"),
    "a wrong cast": (
        library_fault(_CAST, f"{_CAST} + F(0.5)"),
        lambda x: (x * 20).astype(wg.int8),
        "cast",
        "op",
    ),
    "a product without its tail": (
        template_fault("matmul.pwgsl", "step < p.steps; step++", "step + 1u < p.steps; step++"),
        lambda x: wg.relu(x @ x),
        "matmul",
        "op",
    ),
    "weights of attention": (
        template_fault("attention.pwgsl", "exp(shown_##i##_##j -", "exp(1.001 * shown_##i##_##j -"),
        lambda x: wg.scaled_dot_product_attention(x[None, None], x[None, None], x[None, None]),
        "attention",
        "op",
    ),
    "scales of quantised blocks": (
        template_fault("blocks.pwgsl", "return vec2<f32>(unpack", "return vec2<f32>(1.0001 * unpack"),
        lambda x: x[:, :32] @ wg.quantise(x[:, 1:33], "Q8_0").mT,
        "decode",
        "op",
    ),
    "two functions taken for one": (
        pass_fault("exp", "sin"),
        lambda x: wg.exp(x) + wg.sin(x),
        "add",
        "fusion",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_named(name: str) -> None:
    fault, function, op, cause = FAULTS[name]
    x = tensor(34, 34)
    with fault:
        report = wg.check(function, x)
    first = report.first
    assert first is not None
    assert (first.op, first.cause) == (op, cause), str(report)
    assert report.result is None
    assert 0 < first.wrong <= first.elements
    assert first.max_error > first.tolerance
    assert first.line.startswith(__file__)
    assert "@compute" in first.wgsl
    assert first.op in first.ops or "matmul_blocks" in first.ops  # which decodes within
    assert "DIVERGES" in str(report)
    assert first.op in str(report)
    assert wg.check(function, x).ok


def test_a_rewrite_that_is_wrong() -> None:
    right = split_reductions._in_parts

    def wrong(graph: Any, number: int, source: int, before: int, length: int, after: int, parts: int) -> None:
        right(graph, number, source, before, length, after, parts)
        reshaped = graph.inputs[number][0]
        graph.inputs[reshaped] = graph.inputs[reshaped][:1] * len(graph.inputs[reshaped])  # twice the body

    with patch.object(split_reductions, "_in_parts", wrong):
        report = wg.check(lambda x: x.sum(), tensor(50_001))
    first = report.first
    assert first is not None
    assert (first.op, first.cause) == ("sum", "rewrite"), str(report)


_WRONG_ON_CPU: list[tuple[str, str, Callable[[wg.Tensor], Any]]] = [
    ("gelu", "cpu", _gelu),
    ("gelu", "webgpu", _gelu),
    ("matmul", "webgpu", _gelu),
    ("sum", "cpu", lambda x: wg.exp((x * 2).sum(axis=1) + 1)),
    ("permute", "cpu", lambda x: wg.exp(x.permute(1, 0)) + x.max()),
    ("rfft", "cpu", lambda x: wg.real(wg.fft.rfft(x * 2))),  # of 34 numbers, which GPUs compose of others
]


@pytest.mark.parametrize(("op", "device", "function"), _WRONG_ON_CPU)
def test_a_cpu_that_is_wrong(op: str, device: str, function: Callable[[wg.Tensor], Any]) -> None:
    x = tensor(34, 34, device=device)
    with cpu_fault(op, lambda array: array * np.float32(1.0001)):
        report = wg.check(function, x)
    first = report.first
    assert first is not None
    assert (first.op, first.cause, first.device) == (op, "cpu", "cpu"), str(report)
    assert first.line.startswith(__file__)
    assert "the cpu's own code is wrong" in str(report)
    assert wg.check(function, x).ok


def test_a_run_that_gives_other_values() -> None:
    x = tensor(64, device="webgpu")
    right = kernel_runs.array_of
    seen: list[str] = []

    def corrupted(device: Any, buffer: Any, sig: Any) -> Any:
        array = right(device, buffer, sig)
        seen.append(sig.op.name)
        return array + 1 if seen.count("exp") == 3 and sig.op.name == "exp" else array

    with patch.object(checked_graph, "array_of", corrupted):
        report = wg.check(lambda: wg.exp(x))
    assert report.first is not None
    assert report.first.cause == "run"


def test_everything_goes_on_after_a_divergence() -> None:
    x = tensor(34, 34)

    def function() -> list[wg.Tensor]:
        first = wg.gelu(x)
        wg.eval(first)
        return [first, wg.gelu(x + 1), wg.exp(x)]

    with library_fault("0.737438381", "0.7375"):
        report = wg.check(function, everything=True)
    assert [each.op for each in report.divergences] == ["gelu", "gelu"]
    assert report.result is not None
    assert wg.check(function).ok


# What is right


@pytest.mark.parametrize("device", ["cpu", "webgpu"])
def test_a_training_step_is_silent_and_does_what_it_does_unchecked(device: str) -> None:
    x, y = tensor(4, 9, device=device), wg.asarray(np.array([0, 2, 1, 0], np.int32), device=device)
    calls: list[int] = []

    def training() -> Callable[[], float]:
        model = nn.Sequential(nn.Linear(9, 9), nn.GELU(), nn.Linear(9, 3))
        model.to(device)
        with wg.no_grad():
            for each in model.parameters():
                each[...] = tensor(*each.shape, device=device)
        optimiser = optim.Adam(model.parameters(), lr=1e-2)

        @wg.jit
        def step(x: wg.Tensor, y: wg.Tensor, rate: Any) -> wg.Tensor:
            calls.append(1)
            optimiser.zero_grad()
            loss = nn.functional.cross_entropy(model(x) * rate, y)
            loss.backward()
            optimiser.step()
            return loss

        return lambda: float(step(x, y, 0.5))

    plain, checked = training(), training()
    wanted = [plain() for _ in range(3)]
    calls.clear()
    losses: list[float] = []
    report = wg.check(lambda: losses.extend(checked() for _ in range(2)))
    assert report.ok, str(report)
    assert len(calls) == 2  # as a plain function
    assert report.evaluations >= 2
    assert report.kernels > 10
    assert report.unjudged < report.elements // 100
    assert 0 < report.largest < 1
    assert report.largest_op
    assert report.drift < 1e-2
    assert [*losses, checked()] == pytest.approx(wanted, rel=1e-5)
    assert len(calls) == 3  # captured now


def test_values_of_every_kind() -> None:
    x = tensor(40, 33)
    i = wg.asarray(np.arange(40, dtype=np.int32) * 7 % 33)
    c = wg.as_complex(tensor(20, 2)) if hasattr(wg, "as_complex") else wg.exp(1j * x[0])

    def function() -> list[wg.Tensor]:
        half = x.astype(wg.float16)
        return [
            *(half @ half.mT, half.sum(axis=0), wg.exp(half * 3)),
            *(x.astype(wg.int8), i // 3 % 5, x > 0.5, wg.argmax(x * 3, axis=1), wg.sort(x[0] * 2)),
            *(wg.cumulative_sum(x, axis=0), x[i], wg.log(x), wg.exp(x * 100), x / 0.0),
            *(c * c, wg.abs(c), wg.fft.fft(x[0]), wg.random.normal((50,)), wg.random.uniform((50,)) < 0.3),
        ]

    report = wg.check(function)
    assert report.ok, str(report)
    assert report.unjudged == 0
    on_gpu = wg.check(lambda: wg.sort(wg.exp(x.to_device("webgpu")), axis=1))
    assert on_gpu.ok
    assert on_gpu.kernels > 2


@pytest.mark.parametrize("dtype", [wg.float32, wg.float16, wg.bfloat16])
def test_bits_of_what_was_computed_without_rounding(dtype: wg.DType) -> None:
    x = tensor(20).astype(dtype)
    wg.eval(x)
    report = wg.check(lambda: [wg.nextafter(x, x * 0), wg.copysign(x * 2, x * 0)])
    assert report.ok, str(report)
    assert report.unjudged == 0


def test_what_a_gpu_does_not_do_is_told() -> None:
    x = tensor(34)
    report = wg.check(lambda: wg.exp(wg.real(wg.fft.rfft(x * 2))))
    assert report.ok, str(report)
    assert any(what.startswith("rfft") for what in report.skipped)
    assert "not compared: rfft" in str(report)
    assert report.kernels == 2


def test_sorts_and_searches_are_compared_though_gpus_do_them_by_keys() -> None:
    x, line = tensor(30), wg.asarray(np.arange(9, dtype=np.float32))
    wg.eval(x, line)
    report = wg.check(lambda: [wg.exp(wg.sort(x)), wg.topk(x, 3)[1], wg.searchsorted(line, x)])
    assert report.ok, str(report)
    assert not report.skipped
    assert report.unjudged == 0


def test_a_dtype_that_a_gpu_does_not_have() -> None:
    x = wg.asarray(np.arange(30, dtype=np.int64))
    device = wg.open_device("webgpu")
    with patch.object(device, "features", device.features - {"int64"}):  # type: ignore[union-attr]
        report = wg.check(lambda: wg.exp((x + 1).astype(wg.float32) / 40))
    assert report.ok, str(report)
    assert [what.partition(" ")[0] for what in report.skipped] == ["add", "cast"]
    assert report.kernels == 1


def test_a_kernel_that_cannot_be_compiled_is_told() -> None:
    x = tensor(30)
    with library_fault("fn wg_gelu(x: F) -> F {", "fn wg_gelu(x: F) -> F { this is no text;"):
        report = wg.check(lambda: wg.gelu(x))
    assert report.kernels == 0
    assert "was not compared with the cpu" in str(report)
    assert "not compared: gelu float32 [30]" in str(report)
    assert "the shader compiler refused" in str(report)


def test_what_does_not_fit_the_host_is_told() -> None:
    x = tensor(30, 30)
    with patch.object(reference, "memory_bytes", lambda: 4 * 40 * 100):
        report = wg.check(lambda: wg.exp(x * 2))
    assert report.kernels == 0
    assert "does not fit the host's memory" in str(report)


def test_structures_are_compared_as_often_as_is_asked_for() -> None:
    x = tensor(8)

    def function() -> float:
        return sum(float((x * number).sum()) for number in range(5))

    report = wg.check(function, times=2)
    assert (report.evaluations, report.repeated) == (2, 3)
    assert wg.check(function).evaluations == 5


def test_a_report_is_plain_data_too() -> None:
    report = wg.check(lambda x: {"y": x + 1}, tensor(3))
    found = report.as_dict()
    assert found["ok"] is True
    assert found["kernels"] == 1
    assert report.result["y"].shape == (3,)
    with library_fault("B { return wg_size_bits(x) != U", "B { return wg_size_bits(x) == U"):
        wrong = wg.check(lambda x: (x / 0.0 - x / 0.0).astype(wg.bool), tensor(3)).as_dict()
    assert json.loads(json.dumps(wrong, allow_nan=False))["divergences"][0]["attributes"] == ["webgrad.bool"]
    assert isinstance(report, wg.CheckReport)


def test_the_page_about_it(capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[3] / "docs" / "check.md").read_text("utf-8")
    block = page.partition("```python\n")[2].partition("```")[0]
    exec(compile(block, "example.py", "exec"), {})
    text = capsys.readouterr().out
    assert text.startswith("True\n")
    assert "agrees with the cpu: 2 kernels of 3 ops, 72 elements compared" in text


async def _later() -> wg.Tensor:
    return tensor(3) + 1


def test_mistakes() -> None:
    with pytest.raises(wg.ArgumentError, match="check takes a function"):
        wg.check(tensor(3))  # type: ignore[arg-type]
    with pytest.raises(wg.DeviceError, match="holds a GPU against the cpu, and the device is the cpu"):
        wg.check(lambda: 1, device="cpu")
    with pytest.raises(wg.ArgumentError, match="times must be an integer from 1"):
        wg.check(lambda: 1, times=0)
    with pytest.raises(wg.ArgumentError, match=r"times must be an integer from 1, or None, not 2\.5"):
        wg.check(lambda: 1, times=2.5)  # type: ignore[arg-type]
    with pytest.raises(wg.ArgumentError, match="a generator, which has not run"):
        wg.check(lambda: (tensor(3) * each for each in range(3)))
    with pytest.raises(wg.ArgumentError, match="a coroutine, which has not run"):
        wg.check(_later)
    with pytest.raises(wg.ArgumentError, match="one at a time"):
        wg.check(lambda: wg.check(lambda: 1))
    with pytest.raises(ZeroDivisionError):
        wg.check(lambda: 1 / 0)
    assert wg.check(lambda: 1).ok  # the last one left nothing behind
    clear_plans()
