"""Products with quantised blocks, and their weights, as native programs: against NumPy's weights and sums."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.cpu.helpers import last_plan
from tests.ops.block_reference import dequantise, random_blocks
from webgrad.config import settings
from webgrad.cpu import block_programs
from webgrad.cpu.plan import CompiledPlan
from webgrad.evaluate import cpu_plan
from webgrad.evaluate.evaluate import clear_plans
from webgrad.ops.blocks import FORMATS

Array = np.ndarray[Any, Any]
ALL = sorted(FORMATS)
PROCESSORS = ["", "x86-64-v2", "x86-64-v3"]
RNG = np.random.default_rng(5)
COUNTS = (1, 2, 3, 8, 9, 16, 31, 32, 33, 100)
FEW_COUNTS = (1, 3, 8, 33)


@pytest.fixture(autouse=True)
def no_plans() -> Iterator[None]:
    clear_plans()
    yield
    clear_plans()
    settings.cache_clear()


@pytest.fixture
def choose(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Code for another processor than the machine's own."""

    def chosen(name: str) -> None:
        settings.cache_clear()
        if name:
            monkeypatch.setenv("WEBGRAD_PROCESSOR", name)
        else:
            monkeypatch.delenv("WEBGRAD_PROCESSOR", raising=False)
        try:
            from webgrad.native.processor import chosen as processor

            processor()
        except wg.ConfigError as error:
            pytest.skip(str(error))

    return chosen


def made(name: str, shape: tuple[int, int]) -> tuple[wg.QuantisedTensor, Array]:
    """A matrix, and its weights."""
    data = random_blocks(name, shape, scale=0.1)
    return wg.from_blocks(data, name, shape, device="cpu"), dequantise(data, name, shape)


def floats(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def on_cpu(array: Array) -> wg.Tensor:
    return wg.asarray(array, device="cpu")


def steps() -> int:
    """How many steps the last native plan has."""
    plan = last_plan()
    assert isinstance(plan.plan, CompiledPlan)
    return len(plan.plan._steps)


def products(q: wg.QuantisedTensor, *xs: Array) -> list[Array]:
    found = wg.jit(lambda *xs: [x @ q.T for x in xs])(*map(on_cpu, xs))
    return [each.numpy() for each in found]


def check(q: wg.QuantisedTensor, weights: Array, counts: tuple[int, ...], columns: int) -> None:
    xs = [floats(count, columns) for count in counts]
    for x, found in zip(xs, products(q, *xs), strict=True):
        want = x.astype(np.float64) @ weights.astype(np.float64).T
        size = np.abs(x).astype(np.float64) @ np.abs(weights).astype(np.float64).T
        assert found.shape == want.shape
        assert (np.abs(found - want) <= 1e-6 * size).all(), len(x)


@pytest.mark.parametrize("name", ALL)
def test_a_product_of_any_rows(name: str) -> None:
    """Rows of blocks of an odd number, so many blocks that scales of more than one stretch are taken."""
    columns = 1280 if FORMATS[name].weights == 256 else 65 * 32
    check(*made(name, (37, columns)), COUNTS, columns)


@pytest.mark.parametrize("processor", PROCESSORS[1:])
@pytest.mark.parametrize(
    "name",
    [
        each if each in ("Q4_0", "Q5_1", "Q6_K") else pytest.param(each, marks=pytest.mark.long)
        for each in ALL
    ],
)
def test_a_product_on_other_processors(name: str, processor: str, choose: Callable[[str], None]) -> None:
    choose(processor)
    columns = FORMATS[name].weights * 3
    check(*made(name, (29, columns)), FEW_COUNTS, columns)


@pytest.mark.long
@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("name", ALL)
def test_every_count_of_rows_on_every_processor(
    name: str, processor: str, choose: Callable[[str], None]
) -> None:
    choose(processor)
    columns = FORMATS[name].weights * 5
    check(*made(name, (1, columns)), COUNTS, columns)
    check(*made(name, (95, columns)), COUNTS, columns)


@pytest.mark.parametrize("columns", [32, 15 * 32, 17 * 32, 65 * 32])
def test_rows_of_any_length(columns: int) -> None:
    for rows in (1, 4, 9):
        q, weights = made("Q4_1", (rows, columns))
        check(q, weights, (1, 14), columns)


@pytest.mark.parametrize("processor", PROCESSORS)
def test_weights_are_those_of_numpy_to_the_bit(processor: str, choose: Callable[[str], None]) -> None:
    """Whole matrices, and rows by indices of any type, out of range and moved before."""
    choose(processor)
    names = ALL if not processor else ["Q4_0", "Q4_1", "Q5_0", "Q8_0", "Q4_K", "Q6_K"]
    pairs = [made(name, (11, 512)) for name in names]
    index = np.array([[3, 0, 99], [10, 7, 3]], np.int32)

    def weights(index: wg.Tensor) -> list[wg.Tensor]:
        found = []
        for q, _ in pairs:
            found += [q.dequantise(), q.take(index.T), q.take(index[:, :1].astype(wg.int64))]
        return found

    found = iter(wg.jit(weights)(on_cpu(index)))
    rows = np.minimum(index, 10)
    for _, want in pairs:
        np.testing.assert_array_equal(next(found).numpy(), want)
        np.testing.assert_array_equal(next(found).numpy(), want[rows.T])
        np.testing.assert_array_equal(next(found).numpy(), want[rows[:, :1]])


def test_more_rows_than_are_named_at_a_time() -> None:
    q, weights = made("Q8_0", (50, 64))
    index = RNG.integers(0, 50, 200)
    np.testing.assert_array_equal(wg.jit(q.take)(on_cpu(index)).numpy(), weights[index])


@pytest.mark.parametrize("count", [1, 5, 20])
def test_what_is_fused_with_a_product(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One step for what comes before, for the product and for what comes after."""
    monkeypatch.setattr(cpu_plan, "MUCH", 0)
    monkeypatch.setattr(cpu_plan, "PLANNED", 0)
    q, weights = made("Q4_1", (40, 96))
    x, bias, more = floats(2, count, 96), floats(40), floats(2, count, 40)

    found = (wg.relu((on_cpu(x) * 2 + 1) @ q.T + on_cpu(bias)) + on_cpu(more)).numpy()
    assert steps() == 1
    want = np.maximum((2.0 * x + 1) @ weights.T.astype(np.float64) + bias, 0) + more
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("count", [1, 20])
def test_half_floats_around_a_product(count: int) -> None:
    q, weights = made("Q8_0", (24, 64))
    x = floats(count, 64).astype(np.float16)
    found = wg.jit(lambda x: (x.astype(wg.float32) @ q.T).astype(wg.float16))(on_cpu(x)).numpy()
    want = (x.astype(np.float64) @ weights.T).astype(np.float16)
    np.testing.assert_allclose(found.astype(np.float64), want.astype(np.float64), rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("count", [1, 20])
def test_rows_that_lie_in_any_way(count: int) -> None:
    q, weights = made("Q5_0", (33, 96))
    x = floats(96, count)
    found = wg.jit(lambda x: x.T @ q.T)(on_cpu(x)).numpy()
    np.testing.assert_allclose(found, x.T @ weights.T, rtol=1e-4, atol=1e-4)
    wide = floats(count, 200)
    found = wg.jit(lambda x: x[:, 3:99] @ q.T)(on_cpu(wide)).numpy()
    np.testing.assert_allclose(found, wide[:, 3:99] @ weights.T, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["Q4_1", "Q6_K"])
def test_neither_threads_nor_batches_change_a_bit(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    q, _ = made(name, (1001, 1536))
    x = floats(40, 1536)

    def found() -> list[Array]:
        clear_plans()
        return products(q, x[:8], x, x[3:4], x[:1], x[9:30])

    monkeypatch.setattr(block_programs, "cores", lambda: 1)
    alone = found()
    np.testing.assert_array_equal(alone[0][3:4], alone[2])
    np.testing.assert_array_equal(alone[0][:1], alone[3])
    np.testing.assert_array_equal(alone[1][9:30], alone[4])
    for threads in (2, 5):
        monkeypatch.setattr(block_programs, "cores", lambda threads=threads: threads)
        for ours, before in zip(found(), alone, strict=True):
            np.testing.assert_array_equal(ours, before)


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("place", ["x", "scale"])
def test_what_is_not_finite_comes_out_as_numpy_has_it(
    place: str, processor: str, choose: Callable[[str], None]
) -> None:
    choose(processor)
    for name, size in (("Q4_0", 18), ("Q4_1", 20), ("Q8_0", 34)):
        for number in (np.inf, -np.inf, np.nan):
            data = random_blocks(name, (9, 96), scale=0.1)
            x = floats(20, 96)
            if place == "x":
                x[[0, 10], 40] = number
            else:
                data.reshape(-1, size)[4, :2] = np.array([number], np.float16).view(np.uint8)
            q = wg.from_blocks(data, name, (9, 96), device="cpu")
            with np.errstate(all="ignore"):
                weights = dequantise(data, name, (9, 96))
                want = np.array([[np.sum(row * line) for line in weights] for row in x])
            assert not np.isfinite(want).all()
            for found, first in zip(products(q, x[:1], x), (1, 20), strict=True):
                np.testing.assert_allclose(found, want[:first], rtol=1e-4, atol=1e-4)


def test_sums_that_only_overflow_when_scales_come_last() -> None:
    data = np.zeros((1, 34), np.uint8)
    data[0, :2] = np.array([1e-4], np.float16).view(np.uint8)
    data[0, 2:] = 127
    q = wg.from_blocks(data.reshape(-1), "Q8_0", (1, 32), device="cpu")
    x = np.full((1, 32), 1e38, np.float32)
    want = x.astype(np.float64) @ dequantise(data.reshape(-1), "Q8_0", (1, 32)).astype(np.float64).T
    np.testing.assert_allclose(products(q, x / 2)[0], want / 2, rtol=1e-5)


def test_switched_off_it_is_the_same_within_rounding(clean_environment: pytest.MonkeyPatch) -> None:
    q, weights = made("Q4_K", (20, 512))
    x, index = floats(2, 3, 512), np.array([3, 19, 0])
    ours = wg.jit(lambda x, index: (x @ q.T, q.take(index)))
    native = [each.numpy() for each in ours(on_cpu(x), on_cpu(index))]
    clean_environment.setenv("WEBGRAD_NATIVE", "0")
    settings.cache_clear()
    clear_plans()
    plain = wg.jit(lambda x, index: (x @ q.T, q.take(index)))(on_cpu(x), on_cpu(index))
    np.testing.assert_allclose(native[0], plain[0].numpy(), rtol=1e-4, atol=1e-3)
    np.testing.assert_array_equal(native[1], weights[index])
    np.testing.assert_array_equal(plain[1].numpy(), weights[index])


def test_a_plan_with_everything_around() -> None:
    """Products one after the other, their weights, and results in other shapes."""
    q, weights = made("Q8_0", (64, 256))
    back, others = made("Q4_0", (256, 64))
    x = floats(30, 256)

    def block(x: wg.Tensor) -> tuple[wg.Tensor, wg.Tensor]:
        hidden = wg.relu(x @ q.T) @ back.T + x
        return hidden.reshape(-1, 30), (q.dequantise() * 3).sum()

    found, total = wg.jit(block)(on_cpu(x))
    want = np.maximum(x.astype(np.float64) @ weights.T, 0) @ others.T.astype(np.float64) + x
    np.testing.assert_allclose(found.numpy(), want.reshape(-1, 30), rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(total.numpy(), 3 * weights.sum(dtype=np.float64), rtol=1e-3, atol=1e-2)
