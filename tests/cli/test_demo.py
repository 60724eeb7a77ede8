"""`webgrad demo`: it computes on the devices asked for, checks, and says so when a result is wrong."""

from __future__ import annotations

from typing import Any

import pytest

import webgrad as wg
from webgrad.cli import demo, main


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "RUNS", 1)
    monkeypatch.setattr(demo, "LAYERS", 2)


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("device", [pytest.param("webgpu", marks=pytest.mark.gpu), "cpu"])
def test_it_runs_on_the_device_asked_for_alone(device: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--device", device]) == 0
    text = capsys.readouterr().out
    assert text.count("softmax(gelu(x @ w + b)) on") == 1
    assert text.count("largest relative difference from NumPy") == 2
    assert f"2 kernels on {wg.open_device(device).name}" in text
    assert ("counters of 1 runs" in text) == (device != "cpu")


@pytest.mark.gpu
@pytest.mark.usefixtures("short")
def test_where_the_default_is_the_cpu_an_adapter_is_shown_too(
    clean_environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clean_environment.setenv("WEBGRAD_DEVICE", "cpu")
    assert main(["demo"]) == 0
    text = capsys.readouterr().out
    assert "softmax(gelu(x @ w + b)) on <CpuDevice" in text
    assert "softmax(gelu(x @ w + b)) on <Device webgpu:0" in text


@pytest.mark.usefixtures("short")
def test_a_wrong_result_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    right = wg.gelu

    def wrong(x: wg.Tensor, **options: Any) -> wg.Tensor:
        return right(x, **options) * 1.01

    monkeypatch.setattr(wg, "gelu", wrong)
    assert main(["demo", "--device", "cpu"]) == 1
    assert "largest relative difference from NumPy" in capsys.readouterr().out


def test_a_device_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--device", "webgpu:99"]) == 2
    assert "webgrad demo: " in capsys.readouterr().err
