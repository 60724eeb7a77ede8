"""How much kernels do: operations and bytes as anybody would count them, on both devices."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import webgrad as wg


def values(*shape: int, device: str) -> wg.Tensor:
    return wg.asarray(np.random.default_rng(0).random(shape, np.float32), device=device)


def counted(result: wg.Tensor, name: str) -> int:
    return sum(each.operations for each in wg.explain(result).kernels if name in each.name)


CASES: dict[str, tuple[str, Callable[[Callable[..., wg.Tensor]], wg.Tensor], int]] = {
    "products": ("contract", lambda of: of(4, 5, 6) @ of(4, 6, 7), 2 * 4 * 5 * 6 * 7),
    "turned": ("contract", lambda of: of(6, 5).T @ of(6, 7), 2 * 5 * 6 * 7),
    "nothing to add": ("contract", lambda of: of(3, 0) @ of(0, 7), 0),
    "convolution": ("contract", lambda of: wg.conv2d(of(1, 3, 8, 8), of(5, 3, 3, 3)), 2 * 5 * 27 * 36),
    "attention": (
        "attend",
        lambda of: wg.scaled_dot_product_attention(of(2, 8, 16), of(2, 10, 16), of(2, 10, 16)),
        2 * 8 * 10 * (2 * 16 + 2 * 16 + 5),
    ),
    "sums": ("rows", lambda of: wg.sum(of(8, 100), axis=1), 800),
    "nothing": ("rows", lambda of: wg.sum(of(0, 3)), 0),
    "running sums": ("scan", lambda of: wg.cumulative_sum(of(100)), 100),
    "transforms": ("fft", lambda of: wg.fft.fft(wg.astype(of(4, 64), wg.complex64)), 5 * 4 * 64 * 6),
    "of real numbers": ("fft", lambda of: wg.fft.rfft(of(4, 64)), 5 * 4 * 64 * 6 // 2),
    "and back": ("fft", lambda of: wg.fft.irfft(wg.astype(of(4, 33), wg.complex64)), 5 * 4 * 64 * 6 // 2),
}


@pytest.mark.parametrize("device", [pytest.param("webgpu", marks=pytest.mark.gpu), "cpu"])
@pytest.mark.parametrize("case", CASES)
def test_operations(case: str, device: str) -> None:
    name, make, operations = CASES[case]
    result = make(lambda *shape: values(*shape, device=device))
    launches = sum(name in each.name for each in wg.explain(result).kernels)
    assert 0 <= operations - counted(result, name) < max(1, launches)  # what several share is rounded


@pytest.mark.parametrize("device", [pytest.param("webgpu", marks=pytest.mark.gpu), "cpu"])
def test_of_what_is_looked_up_only_the_parts_are_read(device: str) -> None:
    table, rows = values(1000, 16, device=device), wg.asarray(np.arange(6, dtype=np.int32), device=device)

    def read(result: wg.Tensor) -> int:
        return sum(each.bytes_read for each in wg.explain(result).kernels)

    assert read(table[5:9] * 2) == 4 * 16 * 4
    assert read(table.T[3:5] * 2) == 2 * 1000 * 4
    assert read(wg.take(table, rows, axis=0) * 2) == 6 * 16 * 4 + 6 * 4
    assert read(table[5:9] + table[7:11]) == 8 * 16 * 4
    assert read(table[5:9].sum() + table.sum()) >= 1000 * 16 * 4


@pytest.mark.gpu
def test_launches_share_the_work_of_a_sort() -> None:
    sorts = [
        each for each in wg.explain(wg.sort(values(8, 1024, device="webgpu"))).kernels if each.name == "sort"
    ]
    assert len(sorts) > 1
    assert 0 <= 8 * 1024 * 10 - sum(each.operations for each in sorts) < len(sorts)
    assert sum(each.bytes_read for each in sorts) <= 8 * 1024 * 4
