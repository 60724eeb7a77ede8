"""jit on a GPU: what is replayed, what is made anew, what is written in place."""

from __future__ import annotations

from textwrap import dedent

import pytest

import webgrad as wg
from tests.runtime.helpers import run_python

pytestmark = pytest.mark.gpu
GPU = "webgpu:0"


def test_a_cache_is_written_in_place() -> None:
    cache = wg.zeros((64, 256), device=GPU)
    device = wg.open_device(GPU)

    @wg.jit
    def write(x: wg.Tensor, at: int) -> None:
        cache[at] = x

    row = wg.ones(256, device=GPU)
    for at in range(3):
        write(row, at)
    before = device.stats()
    for at in range(3, 8):
        write(row, at)
    after = device.stats()
    assert after["in_place"] - before["in_place"] == 5
    assert after["bind_groups_created"] == before["bind_groups_created"]
    assert cache.sum().item() == 8 * 256


def test_a_repeated_call_creates_nothing() -> None:
    step = wg.jit(lambda x: wg.softmax(x @ x, axis=-1) @ x)
    device = wg.open_device(GPU)
    x = wg.ones((16, 16), device=GPU)
    for _ in range(4):
        wg.eval(step(x))
    before = device.stats()
    for _ in range(5):
        wg.eval(step(x))
    after = device.stats()
    made = ("buffers_created", "bind_groups_created", "pipelines_compiled", "queues_resolved")
    assert {each: after[each] - before[each] for each in made} == dict.fromkeys(made, 0)
    assert after["submissions"] - before["submissions"] == 5
    assert after["queues_replayed"] - before["queues_replayed"] == 5


def test_numbers_that_change_from_call_to_call_arrive() -> None:
    @wg.jit
    def f(x: wg.Tensor, scale: float, shift: float) -> tuple[wg.Tensor, wg.Tensor, wg.Tensor]:
        scaled = x * scale
        return scaled, scaled.sum() + shift, x @ x * scale - shift

    x = wg.ones((4, 4), device=GPU)
    for scale, shift in ((2.0, 1.0), (2.0, 1.0), (3.0, 1.0), (3.0, -5.0), (2.0, 1.0)):
        scaled, total, product = f(x, scale, shift)
        found = (scaled[0, 0].item(), total.item(), product[0, 0].item())
        assert found == (scale, 16 * scale + shift, 4 * scale - shift)
    signs = [str(f(x, zero, 1.0)[0][0, 0].item()) for zero in (0.0, -0.0, 0.0)]
    assert signs == ["0.0", "-0.0", "0.0"], "they are equal, and not the same"


def test_values_larger_than_a_binding() -> None:
    size = (160 << 20) // 4
    step = wg.jit(lambda x, n: (x + n)[::1048576])
    x = wg.zeros(size, device=GPU)
    for n in (1.0, 2.0, 3.0):
        assert step(x, n).tolist() == [n] * 40


def test_a_lost_device_is_told_and_a_new_one_used() -> None:
    code = """
        import numpy as np, webgrad as wg
        device = wg.open_device("webgpu:0")
        weight = wg.asarray(np.float32([2.0]), device=device)
        step = wg.jit(lambda x: x * weight)
        one = lambda: wg.asarray(np.float32([3.0]), device=device)
        assert step(one()).item() == step(one()).item() == 6
        device.queue.context.native.destroy()
        try:
            step(one()).item()
        except wg.DeviceLostError as error:
            print("lost")
        weight[...] = wg.asarray(np.float32([5.0]), device=device)
        print(step(one()).item())
    """
    result = run_python(dedent(code))
    assert result.stdout.split() == ["lost", "15.0"], result.stderr


def test_a_replay_without_commands_leaves_the_queue_as_it_was() -> None:
    x = wg.arange(6, dtype=wg.float32, device=GPU)
    reshaped = wg.jit(lambda x: x.reshape(2, 3))
    for count in range(4):
        assert reshaped(x).tolist() == [[0, 1, 2], [3, 4, 5]]
        assert (x * 2 + count).tolist() == [2 * each + count for each in range(6)]
