"""Profiles: what they see on both devices, that they change nothing, and what they write."""

from __future__ import annotations

import dataclasses
import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from webgrad.errors import ArgumentError
from webgrad.observing import observers
from webgrad.runtime.adapters import list_adapters
from webgrad.runtime.webgpu import Device
from webgrad.tools.profiling.profile import Profile

DEVICES = [pytest.param("webgpu", marks=pytest.mark.gpu), "cpu"]


def private(*, without: str = "", **settings: Any) -> Device:
    """A GPU of this test's own, perhaps without a feature."""
    info = list_adapters()[0]
    changed = dataclasses.replace(wg.open_device("webgpu").settings, **settings)  # type: ignore[union-attr]
    return Device(dataclasses.replace(info, features=info.features - {without}), changed)


@pytest.mark.parametrize("device", DEVICES)
def test_kernels_have_their_counts_and_lines(device: str) -> None:
    x = wg.ones((64, 64), device=device)
    with wg.profile() as found:
        for _ in range(3):
            y = wg.relu(x @ x + 1)
            z = wg.softmax(y).numpy()
    assert z.sum() == pytest.approx(64, rel=1e-5)
    product = next(each for each in found.kernels if "matmul" in each.ops)
    assert product.count == 3
    assert product.line.endswith(f"test_profile.py:{LINE}")
    assert product.operations >= 3 * 2 * 64**3
    assert product.bytes >= 3 * 64 * 64 * 4
    assert 0 < sum(each.seconds for each in found.kernels) <= found.seconds
    assert sum(each.share for each in found.kernels) == pytest.approx(1)
    assert sum(each.seconds for each in found.stages) == pytest.approx(found.seconds)
    assert {"build", "walk", "record"} <= {each.name for each in found.stages}
    assert 0.05 < found.explained <= 1
    assert observers() == ()


LINE = test_kernels_have_their_counts_and_lines.__code__.co_firstlineno + 5


@pytest.mark.gpu
@pytest.mark.parametrize(
    "changes", [{}, {"without": "timestamps"}, {"without": "immediates"}, {"encoder": "plain"}]
)
def test_a_profile_changes_no_result(changes: dict[str, Any]) -> None:
    device = private(**changes)
    numbers = np.random.default_rng(0).normal(size=(33, 65)).astype(np.float32)

    @wg.jit
    def step(x: wg.Tensor, rate: float) -> wg.Tensor:
        state[...] = state * 0.5 + x * rate
        return wg.softmax(state, axis=0)

    def run() -> list[Any]:
        state[...] = wg.zeros((33, 65), device=device)
        x = wg.asarray(numbers, device=device)
        several = [step(x, rate).numpy() for rate in (0.1, 0.2, 0.3)]
        return [*several, wg.sum(wg.exp(x) * 3, axis=1).numpy(), wg.sort(x).numpy()]

    state = wg.zeros((33, 65), device=device)
    before = run()
    with wg.profile() as found:
        during = run()
    for one, other in zip(before, during, strict=True):
        np.testing.assert_array_equal(one, other)
    assert found._found is not None
    assert found._found.timing[device.name] == (
        "wall" if changes.get("without") == "timestamps" else "timestamps"
    )
    assert sum(each.count for each in found.kernels if "exp" in each.ops) == 4
    assert all(each.seconds > 0 for each in found.kernels)


@pytest.mark.gpu
def test_a_flush_of_thousands_of_launches() -> None:
    device = private()
    x = wg.zeros(8, device=device)

    @wg.jit
    def many(x: wg.Tensor) -> wg.Tensor:
        for _ in range(1100):
            x = wg.cumulative_sum(x) * 0.5
        return x

    before = many(x + 1).numpy()
    with wg.profile() as found:
        during = many(x + 1).numpy()
    np.testing.assert_array_equal(before, during)
    assert max(each[3] for each in found._found.flushes) > 1024


def test_functions_are_put_back() -> None:
    exp, add = wg.exp, wg.Tensor.__add__
    with wg.profile() as found:
        assert wg.exp is not exp
        float((wg.exp(wg.ones(3)) + 1).sum())
    assert wg.exp is exp
    assert wg.Tensor.__add__ is add
    built = next(each for each in found.stages if each.name == "build")
    assert 4 <= built.count <= 8  # not those that functions call themselves


def test_files_are_written_even_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), wg.profile(tmp_path / "trace.json", tmp_path / "page.html"):
        float(wg.ones(10).sum()) / 0
    events = json.loads((tmp_path / "trace.json").read_text("utf-8"))["traceEvents"]
    kernels = [each for each in events if each.get("cat") == "kernel"]
    assert any("sum" in each["args"]["ops"] for each in kernels)
    for each in events:
        assert each["ph"] in "MXCi"
        if each["ph"] == "X":
            assert each["dur"] >= 0
            assert isinstance(each["name"], str)
    assert "<html" in (tmp_path / "page.html").read_text("utf-8")


def test_the_data_of_the_page_is_json_and_whole() -> None:
    with wg.profile(title="a </script> title") as found:
        float((wg.ones((50, 50)) @ wg.ones((50, 50))).sum())
    data = json.loads(json.dumps(found.as_dict()))
    assert data["title"] == "a </script> title"
    assert data["tracks"] == ["host", "cpu"]
    kernels = [each for each in data["spans"] if each[0] == "cpu"]
    assert len(kernels) == sum(each["count"] for each in data["kernels"])
    assert all(data["kernels"][each[5]]["name"] == each[1] for each in kernels)


@pytest.mark.parametrize(
    ("path", "message"),
    [("trace.txt", "ends in neither"), ("nowhere/at/all/trace.json", "there is no folder")],
)
def test_a_path_that_cannot_be_written_is_refused_at_once(path: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=message):
        wg.profile(tmp_path / path)


def test_what_is_refused() -> None:
    with wg.profile() as found:
        with pytest.raises(ArgumentError, match="still running"):
            found.seconds  # noqa: B018
        with pytest.raises(ArgumentError, match="under way"), wg.profile():
            pass
    with pytest.raises(ArgumentError, match="used before"), found:
        pass
    assert isinstance(found, Profile)
    assert "s in all" in str(found)


@pytest.mark.parametrize("device", DEVICES)
def test_other_threads_may_work_meanwhile(device: str) -> None:
    wrong: list[float] = []

    def work() -> None:
        for number in range(20):
            value = float((wg.ones(100, device=device) * number).sum())
            if value != 100 * number:
                wrong.append(value)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for each in threads:
        each.start()
    with wg.profile() as found:
        work()
    for each in threads:
        each.join()
    assert not wrong
    assert sum(each.count for each in found.kernels) >= 20
