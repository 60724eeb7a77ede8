"""The probes on real devices: all is well with lavapipe and the cpu, and what is wrong is found and told."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from itertools import count
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from webgrad.runtime import adapters
from webgrad.tools.probes import numbers, results, speed, table
from webgrad.tools.probes.findings import Finding, ok, problem
from webgrad.tools.probes.table import PROBES, Probe, examine

ROWS = {each.name: each for each in PROBES}


def findings_of(name: str, device: str = "cpu") -> list[Finding]:
    return list(examine(device, [ROWS[name]]))


@pytest.mark.gpu
def test_all_is_well_with_this_adapter(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(numbers, "INTEGERS", ("int32", "uint8", "int64"))  # each type compiles its own kernel
    [device, _] = table.devices_for()
    table.main({"device": device, "first": 0})
    said = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert said[-1] == {"done": True}
    found = [Finding(**each["finding"]) for each in said if "finding" in each]
    assert [each for each in found if each.verdict == "problem"] == []
    assert [each.name for each in found if each.verdict != "ok" and not each.advice] == []
    assert [each.name for each in found if each.verdict == "ok" and each.advice] == []
    assert {each.group for each in found} == {"What it is", "Numbers", "Results", "Costs"}
    figures = {each.name: each.figures for each in found}
    assert figures["matmul float32"]["gflops"] > 0
    assert set(figures["accuracy"]["ulp"]) == set(numbers.ACCURATE)
    assert 0 < figures["a launch"]["replayed_us"] <= figures["a launch"]["finished_us"]


def test_all_is_well_with_the_cpu() -> None:
    found = list(examine("cpu"))
    assert len(found) > 15
    assert [each for each in found if each.verdict == "problem"] == []


def test_an_error_of_a_probe_is_a_problem_and_no_end() -> None:
    def broken(device: Any) -> Finding:
        raise ZeroDivisionError("two\nlines")

    probes = [Probe("broken", "Numbers", "both", broken), ROWS["softmax"]]
    first, second = examine("cpu", probes)
    assert (first.name, first.text, first.verdict) == ("broken", "ZeroDivisionError: two lines", "problem")
    assert first.advice
    assert second.verdict == "ok"


def test_a_vital_probe_ends_it() -> None:
    probes = [
        Probe("opening", "Numbers", "both", lambda _: problem("opening", "closed", "open it"), vital=True),
        ROWS["softmax"],
    ]
    assert [each.name for each in examine("cpu", probes)] == ["opening"]


def test_figures_are_plain() -> None:
    def found(device: Any) -> list[Finding]:
        return [ok("a", "b", n=np.int64(3), far=float("inf"), each=[np.float32(0.5), float("nan")])]

    [finding] = examine("cpu", [Probe("a", "Numbers", "both", found)])
    assert json.loads(json.dumps(asdict(finding), allow_nan=False))["figures"] == {
        "n": 3,
        "far": "inf",
        "each": [0.5, "nan"],
    }


def test_without_an_adapter_the_cpu_is_examined_and_it_says_what_to_install(
    clean_environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clean_environment.setattr(adapters, "list_adapters", lambda: ())
    table.main({"list": None, "every": False})
    said = json.loads(capsys.readouterr().out)
    assert said["devices"] == ["cpu"]
    [finding] = said["findings"]
    assert finding["verdict"] == "note"
    assert "Or use the device cpu." in finding["advice"]


@pytest.mark.gpu
def test_which_devices(clean_environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert table.devices_for() == ("webgpu:0", "cpu")
    assert table.devices_for("webgpu") == ("webgpu:0",)
    assert table.devices_for("cpu") == ("cpu",)
    assert table.devices_for(every=True) == tuple(each.device for each in adapters.devices())
    table.main({"list": "webgpu:99", "every": False})
    assert json.loads(capsys.readouterr().out)["refused"].startswith("webgpu:99 was asked for")


# Wrong results, one for each probe of results, on the cpu


def slightly_wrong(name: str, factor: float) -> Callable[..., Any]:
    right = getattr(wg, name)
    return lambda *arguments, **options: right(*arguments, **options) * factor


@pytest.mark.parametrize(
    ("probe", "name", "factor"),
    [
        ("accuracy", "exp", 1.000001),
        ("NaN and infinity", "exp", 1.01),
        ("softmax", "softmax", 1.00001),
        ("sum", "sum", 2),
    ],
)
def test_a_function_that_is_slightly_wrong(
    monkeypatch: pytest.MonkeyPatch, probe: str, name: str, factor: float
) -> None:
    monkeypatch.setattr(wg, name, slightly_wrong(name, factor))
    [found] = findings_of(probe)
    assert found.verdict == "problem"
    assert found.text.startswith("wrong: ")
    assert name in found.text or probe in ("softmax", "sum")


def test_nan_that_is_not_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wg, "isnan", lambda x: x != x + 1)
    [found] = findings_of("NaN and infinity")
    assert (found.text, found.verdict) == ("wrong: isnan", "problem")


@pytest.mark.parametrize("probe", ["matmul float32", "matmul float16"])
def test_a_product_with_one_wrong_element(monkeypatch: pytest.MonkeyPatch, probe: str) -> None:
    right = wg.Tensor.__matmul__

    def wrong(a: wg.Tensor, b: wg.Tensor) -> wg.Tensor:
        product = right(a, b)
        product[-1, -1] = product[-1, -1] + 1
        return product

    monkeypatch.setattr(wg.Tensor, "__matmul__", wrong)
    [found] = findings_of(probe)
    assert found.verdict == "problem"
    assert "127x65x33 by" in found.text


@pytest.mark.parametrize("probe", ["float16", "bfloat16", "casts to integers"])
def test_casts_that_round_wrongly(monkeypatch: pytest.MonkeyPatch, probe: str) -> None:
    right = wg.Tensor.astype
    monkeypatch.setattr(wg.Tensor, "astype", lambda x, dtype: right(x * 1.0001, dtype))
    [found] = findings_of(probe)
    assert found.verdict == "problem"


def test_division_that_truncates(monkeypatch: pytest.MonkeyPatch) -> None:
    def truncating(m: Any, x: Any, y: Any) -> Any:
        return x // y + ((x % y != 0) & (x < 0)).astype(x.dtype) if m is wg else x // y

    monkeypatch.setitem(numbers.ARITHMETIC, "//", truncating)
    [found] = findings_of("integers")
    assert found.text == "wrong: int32 //, int8 //, int16 //, int64 //"


def test_results_that_change(monkeypatch: pytest.MonkeyPatch) -> None:
    numbered = count()
    monkeypatch.setattr(
        results, "_steps", lambda device: [[np.array([next(numbered)])] * 3 for _ in range(2)]
    )
    assert findings_of("twice the same")[0].verdict == "problem"


@pytest.mark.gpu
def test_a_device_that_the_cpu_does_not_agree_with(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "_steps", lambda device: [[np.ones(4) + 1e-4 * device.is_gpu] * 3])
    [found] = findings_of("agrees with cpu", "webgpu:0")
    assert (found.verdict, found.figures["errors"][0]) == ("problem", pytest.approx(1e-4))


@pytest.mark.gpu
def test_workgroups_that_do_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "MANY", results.MANY.replace("id.y * groups.x", "0u"))
    [found] = findings_of("many workgroups", "webgpu:0")
    assert found.text == "wrong: 65,535 of 131,070 workgroups did not run"


@pytest.mark.gpu
def test_a_compiler_that_loses_nan_when_loading(monkeypatch: pytest.MonkeyPatch) -> None:
    keep = numbers.PLAIN["load and store"][1]
    monkeypatch.setitem(numbers.PLAIN, "load and store", ("max(x, -3.0e38)", keep))
    [found] = findings_of("NaN in plain WGSL", "webgpu:0")
    assert found.verdict == "problem"
    assert "load and store" in found.text


@pytest.mark.gpu
@pytest.mark.parametrize("told", [-1.0, 0.0, 1e9, None])
def test_a_clock_that_cannot_be_right(monkeypatch: pytest.MonkeyPatch, told: float | None) -> None:
    from webgrad.runtime.timer import Timer

    monkeypatch.setattr(Timer, "both", lambda *_: (told, 0.01))
    [found] = findings_of("GPU's clock", "webgpu:0")
    assert found.verdict == "note"
    assert "cannot be trusted" in found.advice


@pytest.mark.gpu
def test_bytes_that_come_back_as_others(monkeypatch: pytest.MonkeyPatch) -> None:
    device = wg.open_device("webgpu:0")
    assert isinstance(device, wg.Device)
    right = device.read
    monkeypatch.setattr(speed, "_BYTES", 1 << 12)
    monkeypatch.setattr(device, "read", lambda buffer: right(buffer) ^ 1)
    assert findings_of("transfers", "webgpu:0")[0].verdict == "problem"
