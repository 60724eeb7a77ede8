"""jit: caches are written where they are, and only where nobody else holds them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.jit.helpers import DEVICES, tensor

pytestmark = pytest.mark.parametrize("device", DEVICES)


def address(x: wg.Tensor) -> int:
    return int(x.node.storage.ctypes.data)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
@pytest.mark.parametrize("key", ["row", "rows", "third axis", "two axes"])
def test_a_large_cache_stays_where_it_is(device: str, dtype: str, key: str) -> None:
    """On the cpu; and what comes of it is what comes of the function itself."""
    shape, generator = (24, 3, 40, 16), np.random.default_rng(1)
    start = generator.integers(0, 99, shape).astype(dtype)
    cache, plain = (wg.asarray(start, device=device) for _ in range(2))

    def write(into: wg.Tensor, x: wg.Tensor, at: Any) -> wg.Tensor:
        if key == "row":
            into[at] = x[0]
        elif key == "rows":
            into[wg.stack([at, at + 1])] = x[:2]
        elif key == "third axis":
            into[:, :, at] = x[:, :, 0]
        else:
            into[wg.arange(24, device=device), :, at] = x[:, :, 1]
        return into[1].astype("float32").sum()

    quick, seen = wg.jit(write), []
    for at in (0, 3, 21, 3, 7):
        x = wg.asarray(generator.integers(0, 99, shape).astype(dtype), device=device)
        place = wg.asarray(at, device=device)
        assert quick(cache, x, place).item() == write(plain, x, place).item()
        np.testing.assert_array_equal(cache.numpy(), plain.numpy())
        if device == "cpu":
            seen.append(address(cache))
    assert len(set(seen[1:])) <= 1


def test_what_others_hold_is_not_written_to(device: str) -> None:
    given = np.zeros((200, 300), np.float32)
    cache = wg.asarray(given, device=device, copy=False if device == "cpu" else None)

    @wg.jit
    def write(into: wg.Tensor, at: int) -> None:
        into[at] = 1.0

    kept = []
    for at in range(5):
        lazy, same, read = cache.reshape(-1) * 1, cache.clone(), cache.numpy()
        write(cache, at)
        kept.append((lazy, same, read))
        read_again = np.asarray(cache)
        read_again[...] = 7
        write(cache, at)
    assert given.sum() == 0
    for count, (lazy, same, read) in enumerate(kept):
        assert lazy.sum().item() == same.sum().item() == read.sum() == 300 * count
    assert cache.sum().item() == 1500


def test_memory_of_a_users_own_is_not_written_to(device: str) -> None:
    if device != "cpu":
        pytest.skip("only the cpu shares memory")
    memory = bytearray(4 * 200 * 300)
    owner = np.zeros((400, 300), np.float32)
    views = [np.frombuffer(memory, np.float32).reshape(200, 300), owner[100:300]]

    @wg.jit
    def write(into: wg.Tensor, at: int) -> None:
        into[at] = 1.0

    for number in range(2):
        cache = wg.asarray(views[number], device=device, copy=False)
        views[number] = np.zeros(1, np.float32)  # only the cache holds the array now
        write(cache, 0)
        write(cache, 1)
        assert cache.sum().item() == 600
    assert not any(memory)
    assert owner.sum() == 0


def test_a_cache_that_is_read_after_it_is_written(device: str) -> None:
    cache = wg.zeros((200, 300), device=device)

    @wg.jit
    def write(x: wg.Tensor, at: int) -> tuple[wg.Tensor, wg.Tensor, wg.Tensor]:
        before = cache.sum(axis=0)
        old = cache * 1
        cache[at] = x
        return before, old, cache.reshape(-1)

    for at in range(4):
        before, old, after = write(tensor(np.ones(300), device), at)
        assert before.sum().item() == old.sum().item() == 300 * at
        assert after.sum().item() == cache.sum().item() == 300 * (at + 1)
        cache.numpy()
    assert after.shape == (60_000,)
