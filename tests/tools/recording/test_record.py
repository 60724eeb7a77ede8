"""Recording: what is distinct, what is kept of it, and that computing goes on as it would."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from webgrad.runtime.adapters import list_adapters
from webgrad.runtime.launches import Flush, FlushedLaunch
from webgrad.runtime.webgpu import Device
from webgrad.tools.recording.file_format import Dispatch, RecordingWriter
from webgrad.tools.recording.reader import RecordingReader

pytestmark = pytest.mark.gpu
DEVICE = "webgpu:0"


@pytest.fixture(autouse=True)
def default() -> Iterator[None]:
    wg.set_default_device(DEVICE)
    yield
    wg.set_default_device(None)


def dispatches(path: Path) -> tuple[Dispatch, ...]:
    with RecordingReader(path) as recording:
        return recording.dispatches


def contents(path: Path, place: int) -> tuple[Any, Any]:
    """What the last buffer of a dispatch held before and after, as floats."""
    with RecordingReader(path) as recording:
        last = recording.dispatches[place].bindings[-1]
        before, after = (recording.contents(each, last.nbytes) for each in (last.before, last.after))
        return np.frombuffer(before, np.float32), np.frombuffer(after, np.float32)


def test_equal_dispatches_are_kept_once_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "run.zip"
    x, longer = wg.arange(40, dtype=wg.float32), wg.arange(80, dtype=wg.float32)
    wg.eval(x, longer)
    with wg.record(path) as recording:
        for number in (2.0, 3.0, 4.0):  # numbers of the run make nothing distinct
            y = (wg.exp(x) * number).numpy()
        (wg.exp(longer) * 2.0).numpy()
    assert (recording.dispatches, recording.distinct, recording.without_buffers) == (4, 2, 0)
    assert "4 dispatches, 2 distinct" in repr(recording)
    np.testing.assert_allclose(y, np.exp(np.arange(40, dtype=np.float32)) * 4, rtol=1e-5)
    first, second = dispatches(path)
    assert (first.count, second.count) == (3, 1)
    assert first.name.startswith("map_exp")
    assert first.ops == "exp multiply"
    assert Path(first.line.rpartition(":")[0]) == Path(__file__)
    assert (first.moved, first.bindings[-1].dtype) == (320, "float32")
    assert first.operations > 0
    np.testing.assert_allclose(contents(path, 0)[1], y / 2, rtol=1e-5)  # the first one's
    assert wg.replay(path, DEVICE).counts()["equal"] == 2


ADD_ONE = """
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@compute @workgroup_size(64)
fn add_one(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < arrayLength(&x)) { x[id.x] += 1.0; }
}
"""


def test_a_user_s_kernel_that_writes_where_it_reads(tmp_path: Path) -> None:
    path = tmp_path / "run.zip"
    kernel = wg.kernel(ADD_ONE, label="add one", device=DEVICE)
    buffer = kernel.device.upload(np.arange(5, dtype=np.float32))
    with wg.record(path):
        for _ in range(3):
            kernel(buffer, threads=5)
    assert kernel.device.read(buffer).view(np.float32).tolist() == [3, 4, 5, 6, 7]
    (dispatch,) = dispatches(path)
    assert (dispatch.name, dispatch.count, dispatch.moved) == ("add one", 3, 20)
    before, after = contents(path, 0)
    assert before.tolist() == [0, 1, 2, 3, 4]
    assert after.tolist() == [1, 2, 3, 4, 5]
    (row,) = wg.replay(path, DEVICE).rows
    assert row.verdict == "equal"


def test_what_was_recorded_before_the_block_is_not_in_it(tmp_path: Path) -> None:
    kernel = wg.kernel(ADD_ONE, label="add one", device=DEVICE)
    buffer = kernel.device.upload(np.zeros(5, np.float32))
    kernel(buffer, threads=5)
    assert kernel.device.queue.waiting == 1
    with wg.record(tmp_path / "run.zip") as recording:
        wg.eval(wg.ones(8) * 3)  # nobody waits for it, and it is in
    assert [each.name for each in dispatches(tmp_path / "run.zip")] != ["add one"]
    assert recording.dispatches == 1
    assert kernel.device.read(buffer).view(np.float32).tolist() == [1] * 5


def network() -> tuple[wg.nn.Module, wg.optim.Optimizer]:
    random = np.random.default_rng(3)
    net = wg.nn.Sequential(wg.nn.ReLU(), wg.nn.Linear(6, 3))
    with wg.no_grad():
        for each in net.parameters():
            each.copy_(wg.asarray(random.standard_normal(each.shape, np.float32)))
    return net, wg.optim.Adam(net.parameters(), lr=0.01)


def train() -> list[float]:
    """Losses of a step, and of three that are captured."""
    net, optimizer = network()
    random = np.random.default_rng(4)
    x = wg.asarray(random.standard_normal((10, 6), np.float32))
    y = wg.asarray(random.integers(0, 3, 10).astype(np.int32))

    def step(x: wg.Tensor, y: wg.Tensor) -> wg.Tensor:
        optimizer.zero_grad()
        loss = wg.nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        return loss

    captured = wg.jit(step)
    return [step(x, y).item(), *(captured(x, y).item() for _ in range(3))]


@pytest.mark.parametrize("here", ["vulkan", "opengl"])
def test_a_training_step_replays_on_the_other_adapter(here: str, tmp_path: Path) -> None:
    """Recorded with nothing but what all adapters have, it runs there as a whole."""
    opengl = next((each.device for each in list_adapters() if each.backend == "opengl"), None)
    if opengl is None:
        pytest.skip("there is no OpenGL adapter")
    here, there = (DEVICE, opengl) if here == "vulkan" else (opengl, DEVICE)
    wg.set_default_device("cpu")
    expected = train()
    wg.set_default_device(here)
    with wg.record(tmp_path / "run.zip", portable=True) as recording:
        np.testing.assert_allclose(train(), expected, rtol=1e-4)
    assert recording.dispatches > 2 * recording.distinct > 10
    report = wg.replay(tmp_path / "run.zip", there, repeat=1)
    assert report.right
    counts = report.counts()
    assert counts["equal"] + counts["within tolerance"] == recording.distinct


def test_parts_of_a_large_buffer(tmp_path: Path) -> None:
    path = tmp_path / "run.zip"
    whole = wg.open_device(DEVICE)
    limits = dict(whole.info.limits) | {"max-storage-buffer-binding-size": 4096}
    small = Device(replace(whole.info, limits=limits))
    values = np.arange(3000, dtype=np.float32)
    x = wg.asarray(values, device=small)
    with wg.record(path):
        result = (wg.flip(x) * 2 + x).numpy()
    np.testing.assert_array_equal(result, values[::-1] * 2 + values)
    (dispatch,) = dispatches(path)
    assert sorted(each.nbytes for each in dispatch.bindings if each.access == "read_write")[-1] == 4096
    assert sum(each.nbytes for each in dispatch.bindings if each.access == "read_write") == 12_000
    assert wg.replay(path, DEVICE).counts()["equal"] == 1


def test_beyond_the_limit_dispatches_are_kept_without_buffers(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "run.zip"
    x, longer = wg.ones(8) * 1, wg.ones(4000) * 1
    wg.eval(x, longer)
    with caplog.at_level(logging.WARNING, "webgrad"), wg.record(path, limit=10_000) as recording:
        assert wg.exp(longer).numpy()[0] == pytest.approx(np.e, 1e-5)
        wg.exp(x).numpy()
        wg.exp(longer[:3000]).numpy()
    assert (recording.distinct, recording.without_buffers) == (3, 2)
    assert recording.nbytes <= 10_000
    assert len(caplog.messages) == 1
    assert "limit= allows 9.8 KiB" in caplog.text
    report = wg.replay(path, DEVICE)
    assert report.right
    assert report.counts() | {"equal": 1, "not verified": 2} == report.counts()


def test_an_error_inside_leaves_what_ran(tmp_path: Path) -> None:
    path = tmp_path / "run.zip"
    with pytest.raises(ZeroDivisionError), wg.record(path):
        assert (wg.ones(8) * 3).tolist()[0] / 0 == 1
    assert len(dispatches(path)) == 1
    assert [each.name for each in tmp_path.iterdir()] == ["run.zip"]


def test_a_disk_that_is_full_stops_no_computation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: RecordingWriter, data: bytes) -> str:
        raise wg.ModelFileError("no space left")

    path = tmp_path / "run.zip"
    monkeypatch.setattr(RecordingWriter, "buffer", full)
    with pytest.raises(wg.ModelFileError, match="no space left"), wg.record(path):
        assert wg.exp(wg.zeros(3)).tolist() == [1, 1, 1]
    assert list(tmp_path.iterdir()) == []


def test_memory_that_is_not_there_for_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def crowded(self: Flush, bound: Any) -> Any:
        raise wg.OutOfMemoryError("no room")

    monkeypatch.setattr(Flush, "read", crowded)
    with wg.record(tmp_path / "run.zip") as recording:
        assert wg.exp(wg.zeros(3)).tolist() == [1, 1, 1]
    assert recording.without_buffers == recording.distinct == 1


def test_memory_that_is_not_there_in_the_middle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What has run is not run again: the buffer is written where it is read."""
    kernel = wg.kernel(ADD_ONE, label="add one", device=DEVICE)
    buffer, longer = (kernel.device.upload(np.zeros(count, np.float32)) for count in (5, 6))
    run = Flush.run

    def crowded(self: Flush, launch: FlushedLaunch) -> None:
        if launch.sizes[0][1] > 20:
            raise wg.OutOfMemoryError("no room")
        run(self, launch)

    monkeypatch.setattr(Flush, "run", crowded)
    with (
        pytest.raises(wg.DeviceError, match="could not be run to its end: no room"),
        wg.record(tmp_path / "run.zip"),
    ):
        add_both(kernel, buffer, longer)
    assert kernel.device.read(buffer).view(np.float32).tolist() == [1] * 5
    assert [each.count for each in dispatches(tmp_path / "run.zip")] == [1]


def add_both(kernel: wg.Kernel, first: wg.Buffer, second: wg.Buffer) -> None:
    kernel(first, threads=5)
    kernel(second, threads=6)
    kernel.device.flush()


def test_nothing_on_a_gpu(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "run.zip"
    with wg.record(path):
        wg.sum(wg.ones(3, device="cpu")).item()
    assert "no kernel ran on a GPU" in caplog.text
    assert "0 dispatches, 0 distinct: none" in str(wg.replay(path, DEVICE))


def test_what_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.zip"
    for limit in (-1, 1.5, "1"):
        with pytest.raises(wg.ArgumentError, match="limit is"):
            wg.record(path, limit=limit)  # type: ignore[arg-type]
    recording = wg.record(path)
    with recording, pytest.raises(wg.ArgumentError, match="a recording is active"), wg.record(path):
        pass
    with pytest.raises(wg.ArgumentError, match="was made already"), recording:
        pass
    wg.set_default_device("cpu")
    with pytest.raises(wg.DeviceError, match="needs a GPU"), wg.record(path, portable=True):
        pass
    with pytest.raises(wg.ModelFileError, match="no folder"), wg.record(tmp_path / "none" / "run.zip"):
        pass
