"""Profiles: what they see on both devices, that they change nothing, and what they write."""

from __future__ import annotations

import dataclasses
import json
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from webgrad.errors import ArgumentError
from webgrad.observing import Observer, observe, observers
from webgrad.runtime.adapters import list_adapters
from webgrad.runtime.launches import Flush, FlushedLaunch
from webgrad.runtime.webgpu import Device
from webgrad.tools.profiling import collector
from webgrad.tools.profiling.collector import Collector
from webgrad.tools.profiling.profile import Profile
from webgrad.wgsl import program_from_source

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
    products = [each for each in found.kernels if "matmul" in each.ops]
    assert sum(each.count for each in products) == 3  # on the cpu twice by itself, then fused
    assert all(each.line.endswith(f"test_profile.py:{LINE}") for each in products)
    assert sum(each.operations for each in products) >= 3 * 2 * 64**3
    assert sum(each.bytes for each in products) >= 3 * 64 * 64 * 4
    assert 0 < sum(each.seconds for each in found.kernels) <= found.seconds
    assert sum(each.share for each in found.kernels) == pytest.approx(1)
    assert sum(each.seconds for each in found.stages) == pytest.approx(found.seconds)
    assert {"build", "walk", "record"} <= {each.name for each in found.stages}
    assert 0 < found.explained <= 1
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
    assert found._found is not None
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
        with pytest.raises(ArgumentError, match="is active"), wg.profile():
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


COPY = """
@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read_write> b: array<f32>;
@compute @workgroup_size(1) fn copy(@builtin(global_invocation_id) id: vec3<u32>) { b[id.x] = a[id.x]; }
"""


@pytest.mark.gpu
@pytest.mark.parametrize("without", ["", "timestamps"])
def test_a_flush_in_which_nothing_is_left_to_launch(without: str) -> None:
    device = private(without=without)
    pipeline = device.pipeline(program_from_source(COPY), in_place=[(((0, 1),), None)])
    source = device.upload(np.ones(8, np.float32))
    with wg.profile() as found:
        copied = device.compute(pipeline, [source], 32, b"", (8, 1, 1))
        del source
        assert device.read(copied).view(np.float32).tolist() == [1] * 8
    assert found.kernels == []
    assert found.summary.causes == {"read": 1}


@pytest.mark.gpu
def test_a_lost_device_hides_no_error_of_the_block(tmp_path: Path) -> None:
    device = private()

    def lose(why: type[Exception] | None = None) -> None:
        wg.eval(wg.ones(10, device=device) * 2)
        device.queue.context.native.destroy()
        if why is not None:
            raise why

    with pytest.raises(ZeroDivisionError), wg.profile(tmp_path / "trace.json"):
        lose(ZeroDivisionError)
    assert (tmp_path / "trace.json").exists()
    with pytest.raises(wg.DeviceLostError), wg.profile(tmp_path / "page.html") as found:
        lose()
    assert (tmp_path / "page.html").exists()
    assert "have no times" in found.summary.notes[0]


@pytest.mark.gpu
def test_what_has_run_one_by_one_is_not_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    device = private(without="timestamps")
    kernel = wg.kernel(COPY.replace("b[id.x] = a[id.x]", "b[id.x] += a[id.x]"), device=device)
    ones = device.upload(np.ones(8, np.float32))
    once, other = (device.upload(np.zeros(8, np.float32)) for _ in range(2))
    run, launched = Flush.run, []

    def crowded(self: Flush, launch: FlushedLaunch) -> None:
        launched.append(launch)
        if len(launched) == 2:
            raise wg.OutOfMemoryError("no room")
        run(self, launch)

    def add() -> None:
        for each in (once, other):
            kernel(ones, each, threads=8)

    monkeypatch.setattr(Flush, "run", crowded)
    with pytest.raises(wg.DeviceError, match="could not be run to its end: no room"), wg.profile():
        add()
    assert device.read(once).view(np.float32).tolist() == [1] * 8


@pytest.mark.gpu
def test_who_comes_while_a_flush_is_under_way_hears_nothing_of_it() -> None:
    late = Collector()

    class Early(Observer):
        def span(self, stage: str, began: int, ended: int) -> None:
            if stage == "encode":
                stack.enter_context(observe(late))

    x = wg.ones(10, device=private())
    with ExitStack() as stack, observe(Early()):
        assert wg.sum(x * 2).item() == 20
    assert late.finish().flushes == []


def test_functions_that_a_program_takes_along_tell_nothing_afterwards() -> None:
    with wg.profile() as found:
        taken = wg.exp
    assert found._found is not None
    before = len(found._found.spans)
    assert float(taken(wg.zeros(1))[0]) == 1
    assert len(found._found.spans) == before


def test_a_file_that_cannot_be_written_is_an_error_of_ours(tmp_path: Path) -> None:
    (tmp_path / "trace.json").mkdir()
    with wg.profile() as found:
        pass
    with pytest.raises(wg.ModelFileError, match="it is a folder"):
        found.save(tmp_path / "trace.json")


@pytest.mark.gpu
def test_launches_keep_their_lines_where_others_are_left_out_for_want_of_room() -> None:
    device = private()
    device.queue.context.pool.budget = 2 << 20
    x = wg.asarray(np.ones(1 << 18, np.float32), device=device)
    with wg.profile() as found:
        forgotten, kept = wg.cumulative_sum(x), wg.sin(x)
        with pytest.raises(wg.OutOfMemoryError):
            wg.eval(forgotten, kept)  # for one of them there is room
        del forgotten
        assert kept.numpy()[0] == pytest.approx(np.sin(1))
    assert [each.name for each in found.kernels] == ["map_sin"]
    assert "test_profile.py" in found.kernels[0].line


@pytest.mark.parametrize("device", DEVICES)
def test_a_profile_that_is_full_ends_and_says_so(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "MOST_KEPT", 100)
    x = wg.ones(10, device=device)
    with wg.profile() as found:
        for number in range(50):
            assert (x * number).sum().item() == 10 * number
    assert found._found is not None
    assert 100 <= len(found._found.spans) + len(found._found.kernels) < 150
    assert "full with 100 events" in str(found)
    assert sum(each.seconds for each in found.stages) == pytest.approx(found.seconds)


@pytest.mark.gpu
def test_kernels_of_the_users_own_have_their_line_and_bytes() -> None:
    device = wg.open_device("webgpu")
    assert isinstance(device, Device)
    double = wg.kernel(
        """
        @group(0) @binding(0) var<storage, read_write> x: array<f32>;
        @compute @workgroup_size(64)
        fn double(@builtin(global_invocation_id) id: vec3<u32>) {
            if (id.x < arrayLength(&x)) { x[id.x] *= 2.0; }
        }""",
        label="double",
        device=device,
    )
    buffer = device.upload(np.ones(1000, np.float32))
    with wg.profile() as found:
        double(buffer, threads=0)
        double(buffer, threads=1000)
        batch = wg.Batch(device)
        given = batch.upload(np.zeros(500, np.float32))
        result = batch.gelu(given)
        batch.execute()
    assert batch.read(result).tolist() == batch.read(given).tolist()
    assert device.read(buffer).view(np.float32).tolist() == [2.0] * 1000
    rows = {each.name.split()[0]: each for each in found.kernels}
    assert (rows["double"].count, rows["double"].bytes) == (1, 4000)
    assert "test_profile.py:" in rows["double"].line
    assert sum(each.bytes for each in found.kernels) == 4000 + 2 * 2000
