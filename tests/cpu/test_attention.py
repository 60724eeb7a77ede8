"""Attention under `wg.jit` on the cpu: options, dtypes, layouts, what is fused with it, lesser processors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.cpu.test_plan import setting
from tests.native.attentions import EVERY, Array, Rules, wanted
from webgrad.cpu import attention_programs
from webgrad.cpu.layout import HostStep
from webgrad.cpu.plan import CompiledPlan
from webgrad.evaluate import cpu_plan
from webgrad.evaluate.evaluate import clear_plans
from webgrad.native.compiler import is_available
from webgrad.native.processor import host
from webgrad.schedule.plan import Schedule

RNG = np.random.default_rng(4)
Function = Callable[..., wg.Tensor]
RULES = [
    EVERY,
    Rules(causal=True),
    Rules(causal=True, window=7),
    Rules(length=13),
    Rules(causal=True, from_end=True, length=29),
    Rules(causal=True, from_end=True, window=9, length=29),
]


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every graph is compiled before it runs."""
    if not is_available():
        pytest.skip("no native code here: llvmlite is not installed, or switched off")
    monkeypatch.setattr(cpu_plan, "_has_stored_weights", lambda graph: False, raising=False)
    monkeypatch.setattr(cpu_plan, "CompiledPlan", noted)
    clear_plans()


plans: list[CompiledPlan] = []


def noted(made: Schedule) -> CompiledPlan:
    plans[:] = [CompiledPlan(made)]
    return plans[0]


def on_cpu(array: Array) -> wg.Tensor:
    return wg.asarray(np.ascontiguousarray(array), device="cpu")


def operands(
    heads: tuple[int, int],
    queries: int,
    keys: int,
    columns: tuple[int, int] = (16, 16),
    dtype: Any = np.float32,
) -> tuple[Array, Array, Array]:
    first, last = columns
    shapes = (2, heads[0], queries, first), (2, heads[1], keys, first), (2, heads[1], keys, last)
    q, k, v = (RNG.standard_normal(each).astype(dtype) for each in shapes)
    return q, k, v


def attention(rules: Rules = EVERY, mask: Array | None = None) -> Function:
    def function(q: wg.Tensor, k: wg.Tensor, v: wg.Tensor) -> wg.Tensor:
        return wg.scaled_dot_product_attention(
            *(q, k, v, None if mask is None else on_cpu(mask)),
            is_causal=rules.causal,
            scale=0.3,
            enable_gqa=True,
            window=rules.window or None,
            length=rules.length,
        )

    return function


def check(
    function: Function, arrays: Sequence[Array], want: Array, limit: float = 5e-6, steps: int = 1
) -> Array:
    """A captured call gives what is wanted, in so many steps of native code."""
    fast, tensors = wg.jit(function), [on_cpu(each) for each in arrays]
    found, again = fast(*tensors).numpy(), fast(*tensors).numpy()
    assert found.tobytes() == again.tobytes()
    np.testing.assert_allclose(found.astype(want.dtype), want, rtol=limit, atol=limit)
    (plan,) = plans
    assert len(plan._steps) == steps
    assert not any(isinstance(each, HostStep) for each in plan._steps)
    return found


@pytest.mark.parametrize("queries", [1, 3, 17])
@pytest.mark.parametrize("rules", RULES)
def test_rules(rules: Rules, queries: int) -> None:
    arrays = operands((4, 2), queries, 33, (16, 20))
    check(attention(rules), arrays, wanted(*arrays, rules))
    for shape in ((1, 1, 1, 33), (2, 4, queries, 33), (queries, 33)):
        mask = RNG.standard_normal(shape).astype(np.float32)
        whole = np.broadcast_to(mask, (2, 4, queries, 33))
        check(attention(rules, mask), arrays, wanted(*arrays, rules, whole))


@pytest.mark.parametrize("queries", [1, 40])
def test_dtypes(queries: int) -> None:
    for dtype, limit in ((np.float64, 1e-13), (np.float16, 4e-3)):
        arrays = operands((3, 1), queries, 50, (24, 9), dtype)
        want = wanted(*arrays)
        assert check(attention(), arrays, want, limit).dtype == dtype


@pytest.mark.parametrize("queries", [1, 40])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_caches_of_half_floats_are_read_as_they_are_stored(dtype: str, queries: int) -> None:
    q, k, v = operands((6, 2), queries, 300)
    keys, values = (on_cpu(each).astype(getattr(wg, dtype)).numpy() for each in (k, v))

    def function(q: wg.Tensor, k: wg.Tensor, v: wg.Tensor) -> wg.Tensor:
        return attention(Rules(causal=True, length=290))(q, k.astype(wg.float32), v.astype(wg.float32))

    rules = Rules(causal=True, from_end=True, length=290)
    check(function, [q, keys, values], wanted(q, keys, values, rules))


@pytest.mark.parametrize("queries", [1, 40])
def test_what_is_around_it_costs_no_step(queries: int) -> None:
    """Heads side by side in memory, before and after; maps of operands and of the result."""
    q, k, v = operands((4, 2), queries, 30)
    rows = [
        np.ascontiguousarray(each.transpose(0, 2, 1, 3)).reshape(2, -1, each.shape[1] * 16)
        for each in (q, k, v)
    ]
    beside = RNG.standard_normal((2, queries, 64)).astype(np.float32)

    def function(q: wg.Tensor, k: wg.Tensor, v: wg.Tensor, beside: wg.Tensor) -> wg.Tensor:
        q, k, v = (each.reshape(2, each.shape[1], -1, 16).permute(0, 2, 1, 3) for each in (q, k, v))
        made = attention(Rules(causal=True))(q * 2, k, wg.negative(v))
        return wg.relu(made.permute(0, 2, 1, 3).reshape(2, queries, 64)) + beside

    want = wanted(q * 2, k, -v, Rules(causal=True)).transpose(0, 2, 1, 3).reshape(2, queries, 64)
    check(function, [*rows, beside], np.maximum(want, 0) + beside)


@pytest.mark.parametrize("queries", [1, 40])
def test_operands_that_are_no_part_of_memory(queries: int) -> None:
    q, k, v = operands((2, 2), queries, 30)

    def function(q: wg.Tensor, k: wg.Tensor, v: wg.Tensor) -> wg.Tensor:
        return attention()(
            wg.flip(q, axis=-1), wg.pad(k[:, :, 5:], ((0, 0), (0, 0), (2, 3), (0, 0))), wg.flip(v, axis=2)
        )

    keys = np.pad(k[:, :, 5:], ((0, 0), (0, 0), (2, 3), (0, 0)))
    check(function, [q, k, v], wanted(q[..., ::-1], keys, v[:, :, ::-1]))


def test_a_length_that_is_known_at_run_time() -> None:
    q, k, v = operands((4, 2), 1, 700)

    def function(q: wg.Tensor, k: wg.Tensor, v: wg.Tensor, length: wg.Tensor) -> wg.Tensor:
        return wg.scaled_dot_product_attention(
            q, k, v, is_causal=True, scale=0.3, enable_gqa=True, length=length
        )

    fast, (queries, keys, values) = wg.jit(function), (on_cpu(each) for each in (q, k, v))
    for length in (1, 16, 255, 256, 300, 700):
        count = wg.asarray(length, dtype=wg.int32, device="cpu")
        found = fast(queries, keys, values, count).numpy()
        want = wanted(q, k, v, Rules(causal=True, from_end=True, length=length))
        np.testing.assert_allclose(found, want, rtol=5e-6, atol=5e-6)


@pytest.mark.parametrize("queries", [1, 90])
def test_threads_change_no_bit(queries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = [on_cpu(each) for each in operands((6, 2), queries, 1100)]
    found = []
    for count in (1, 2, 9):
        clear_plans()
        monkeypatch.setattr(attention_programs, "cores", lambda count=count: count)
        found.append(wg.jit(attention(Rules(causal=True, length=1000)))(*arrays).numpy().tobytes())
    assert found[1:] == found[:-1]


@pytest.mark.parametrize("queries", [1, 40])
def test_every_processor_that_runs_here(queries: int) -> None:
    q, k, v = operands((6, 2), queries, 300, (24, 19))
    half = k.astype(np.float16)
    for name in ("x86-64-v2", "x86-64-v3") if host().architecture == "x86_64" else ():
        with setting("WEBGRAD_PROCESSOR", name):
            clear_plans()
            rules = Rules(causal=True)
            check(attention(rules), [q, k, v], wanted(q, k, v, rules))

            def function(q: wg.Tensor, k: wg.Tensor, v: wg.Tensor) -> wg.Tensor:
                return attention()(q, k.astype(wg.float32), v)

            check(function, [q, half, v], wanted(q, half, v))
    clear_plans()
