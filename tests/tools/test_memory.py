"""The memory report: what is live on each device, who holds it, and the lines that made it."""

from __future__ import annotations

import gc
import inspect
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.runtime.helpers import bench
from webgrad.config import MemoryBudget
from webgrad.graph.holders import words_of
from webgrad.runtime.host_buffers import clear
from webgrad.runtime.stats import host_memory
from webgrad.tools.memory import TensorMemory

ROW = 1 << 18  # float32: 1 MiB


@pytest.fixture(params=["cpu", pytest.param("webgpu", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> Iterator[str]:
    """A device of this test's own where there can be one: other tests' tensors are not in its report."""
    opened = wg.open_device("cpu") if request.param == "cpu" else bench().device
    wg.set_default_device(opened)
    gc.collect()
    yield opened.name
    wg.set_default_device(None)


def here() -> int:
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    return frame.f_back.f_lineno


def of(shape: tuple[int, ...]) -> list[TensorMemory]:
    return [each for each in wg.memory(wg.default_device()).tensors if each.shape == shape]


def test_live_bytes_are_those_of_the_tensors_and_go_with_them(device: str) -> None:
    clear()
    before = wg.memory(wg.default_device()).devices[device]
    kept = [wg.asarray(np.full(ROW, number, np.float32)) for number in range(3)]
    wg.synchronize()
    during = wg.memory(wg.default_device()).devices[device]
    assert during.live - before.live == during.tensors - before.tensors
    assert 3 << 20 <= during.live - before.live <= (3 << 20) + 1024
    assert during.peak >= during.live
    kept.clear()
    wg.synchronize()
    after = wg.memory(wg.default_device()).devices[device]
    assert after.live == before.live
    assert after.pooled >= during.pooled + (3 << 20)


def test_a_list_that_grows_is_the_first_line(device: str) -> None:
    losses = []
    weights = wg.asarray(np.ones((300, 300), np.float32))
    for number in range(12):
        line = here() + 1
        losses.append(weights * number)
    wg.eval(*losses)
    found = next(each for each in wg.memory(wg.default_device()).lines if each.where == f"{__file__}:{line}")
    assert found.count == 12
    assert found.nbytes >= 12 * weights.nbytes
    text = str(wg.memory(wg.default_device()))
    assert any(f"test_memory.py:{line}" in row and " 12 " in row for row in text.splitlines())
    assert text.splitlines()[0].split() == ["device", "live", "tensors", "other", "pooled", "peak", "budget"]


def test_data_computed_values_and_captured_results_have_their_lines(device: str) -> None:
    line = here() + 1
    data = wg.asarray(np.ones((37, 1001), np.float32))
    square = wg.jit(lambda x: x.T @ x)
    made = here() - 1
    results = [square(data), square(data)]  # the second is a replay
    wg.synchronize()
    assert [each.where for each in of((37, 1001))] == [f"{__file__}:{line}"]
    assert [each.where for each in of((1001, 1001))] == [f"{__file__}:{made}"] * 2
    assert results[0].shape == (1001, 1001)


def test_tensors_that_share_memory_count_once(device: str) -> None:
    x = wg.asarray(np.ones((41, 1003), np.float32))
    same = [wg.Tensor(x.node), wg.Tensor(x.node)]
    (found,) = of((41, 1003))
    assert found.held_by == "tensor"
    assert x.nbytes <= found.nbytes <= 1.13 * x.nbytes
    waiting = wg.exp(x)
    del x, same
    (held,) = of((41, 1003))
    assert held.held_by == "graph"
    assert "(held by the graph)" in str(wg.memory(wg.default_device()))
    assert waiting.shape == (41, 1003)


def test_asking_computes_nothing(device: str) -> None:
    x = wg.exp(wg.asarray(np.ones((43, 1005), np.float32)))
    wg.memory()
    assert x.node.storage is None


def test_the_peak_is_reset(device: str) -> None:
    big = wg.asarray(np.ones((16, ROW), np.float32))
    del big
    wg.synchronize()
    assert wg.memory(wg.default_device()).devices[device].peak >= 16 << 20
    wg.reset_stats()
    after = wg.memory(wg.default_device()).devices[device]
    assert after.peak == after.live or device == "cpu"
    assert after.peak < 16 << 20


def test_memory_of_a_frozen_collector_is_found() -> None:
    x = wg.asarray(np.ones((47, 1007), np.float32), device="cpu")
    gc.collect()
    gc.freeze()
    try:
        assert [each.shape for each in wg.memory("cpu").tensors if each.shape == x.shape] == [x.shape]
        assert not gc.get_freeze_count()  # or what is garbage now would stay for ever
    finally:
        gc.unfreeze()


def test_every_open_device_has_a_row_and_the_cpu_always() -> None:
    assert "cpu" in wg.memory().devices
    assert list(wg.memory("cpu").devices) == ["cpu"]
    with pytest.raises(wg.DeviceError):
        wg.memory("no such thing")


def test_a_part_of_an_array_keeps_all_of_it_and_a_file_is_mapped(tmp_path: Path) -> None:
    whole: Any = np.ones((64, 1011), np.float32)
    part = wg.asarray(whole[:2], device="cpu", copy=False)
    (found,) = [each for each in wg.memory("cpu").tensors if each.shape == part.shape]
    assert found.nbytes == whole.nbytes
    path = tmp_path / "weights.safetensors"
    wg.io.save(path, {"w": wg.asarray(np.ones((64, 1013), np.float32), device="cpu")})
    before = wg.memory("cpu").devices["cpu"]
    loaded = wg.io.open(path).read("w", device="cpu")
    after = wg.memory("cpu").devices["cpu"]
    assert after.mapped - before.mapped == loaded.nbytes
    assert after.live == before.live


def test_large_arrays_of_the_host_are_counted_while_they_are_lent() -> None:
    gc.collect()
    before = host_memory.live
    x = wg.asarray(np.ones((2, ROW), np.float32), device="cpu")
    assert host_memory.live == before + (2 << 20)
    assert wg.stats("cpu")["bytes_live"] == host_memory.live
    del x
    assert host_memory.live == before


@pytest.mark.gpu
def test_what_is_no_tensors_is_other() -> None:
    private = bench()
    wg.synchronize(private.device)
    kept = private.upload(np.ones(ROW, np.float32))
    account = wg.memory(private.device).devices[private.device.name]
    assert (account.live, account.tensors, account.other) == (1 << 20, 0, 1 << 20)
    assert kept.nbytes == 1 << 20


@pytest.mark.gpu
def test_two_devices_of_an_adapter_have_names_of_their_own() -> None:
    first, second = bench().device, bench().device
    names = [name for name in wg.memory().devices if name.startswith(first.name)]
    assert len(names) >= 2
    assert len(set(names)) == len(names)
    assert second.name == first.name


@pytest.mark.gpu
def test_without_room_the_error_names_the_largest_tensors_and_their_lines() -> None:
    private = bench(memory=MemoryBudget(bytes=4 << 20)).device
    line = here() + 1
    kept = [wg.asarray(np.ones(ROW, np.float32), device=private) for _ in range(3)]
    with pytest.raises(wg.OutOfMemoryError) as caught:
        wg.asarray(np.ones((2, ROW), np.float32), device=private)
    assert f"float32 (262144,) made at {__file__}:{line} 1.0 MiB" in str(caught.value)
    assert len(kept) == 3


def test_words() -> None:
    x = wg.asarray(np.ones((2, 3), np.float32), device="cpu")
    assert words_of(x.node).startswith(f"float32 (2, 3) made at {__file__}:")
    assert words_of(wg.asarray(np.ones(2), device="cpu").node).startswith("float64 (2,) made at ")


def test_dead_proxies_are_not_asked_what_they_are() -> None:
    proxy = weakref.proxy(set())  # of a set that is gone
    assert "cpu" in wg.memory("cpu").devices
    assert type(proxy) is weakref.ProxyType
