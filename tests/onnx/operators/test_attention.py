"""Attention of the standard against NumPy in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.onnx.models import graph, loaded, model, node
from tests.onnx.operators.scores import attended, by_head, rotated, softmax, together
from tests.onnx.operators.single import run, run_one
from webgrad.onnx.operators import find

GENERATOR = np.random.default_rng(15)
BATCH, HEADS, QUERIES, KEYS, COLUMNS = 2, 4, 3, 5, 8
OPSET = 25


def drawn(*shape: int) -> Any:
    return GENERATOR.standard_normal(shape, np.float32)


def operands(shared: int = HEADS, keys: int = KEYS, values: int = COLUMNS) -> tuple[Any, Any, Any]:
    return (
        drawn(BATCH, HEADS, QUERIES, COLUMNS),
        drawn(BATCH, shared, keys, COLUMNS),
        drawn(BATCH, shared, keys, values),
    )


def near(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found, expected, 1e-3, 1e-5)


def causal(keys: int, offset: int = 0, left: int | None = None, right: int = 0) -> Any:
    ahead = np.arange(keys) - np.arange(QUERIES)[:, None] - offset
    return (ahead <= right) & (True if left is None else ahead >= -left)


@pytest.mark.parametrize("shared", [HEADS, 2, 1])
@pytest.mark.parametrize("values", [COLUMNS, 6])
@pytest.mark.parametrize(
    ("settings", "options"),
    [
        ({}, {}),
        ({"scale": 0.5}, {"scale": 0.5}),
        ({"softcap": 2.0}, {"softcap": 2.0}),
        ({"is_causal": 1}, {"seen": causal(KEYS)}),
        ({"is_causal": 1, "softcap": 2.0}, {"seen": causal(KEYS), "softcap": 2.0}),
        ({"left_window_size": 1, "right_window_size": 1}, {"seen": causal(KEYS, 0, 1, 1)}),
        ({"is_causal": 1, "left_window_size": 1}, {"seen": causal(KEYS, 0, 1)}),
    ],
)
def test_attention(shared: int, values: int, settings: Any, options: Any) -> None:
    q, k, v = operands(shared, values=values)
    near(run_one("Attention", q, k, v, opset=OPSET, **settings), attended(q, k, v, **options)[0])


@pytest.mark.parametrize(
    "shape", [(QUERIES, KEYS), (HEADS, QUERIES, KEYS), (BATCH, 1, QUERIES, KEYS), (KEYS,)]
)
def test_masks_of_all_ranks(shape: tuple[int, ...]) -> None:
    q, k, v = operands()
    numbers, seen = drawn(*shape), GENERATOR.random(shape) > 0.4
    near(run_one("Attention", q, k, v, numbers, opset=OPSET), attended(q, k, v, numbers)[0])
    near(run_one("Attention", q, k, v, seen, opset=OPSET), attended(q, k, v, seen=seen)[0])
    found = run_one("Attention", q, k, v, seen, opset=OPSET, is_causal=1)
    near(found, attended(q, k, v, seen=seen & causal(KEYS))[0])


def test_keys_beyond_a_mask_are_not_seen() -> None:
    q, k, v = operands()
    short = drawn(QUERIES, KEYS - 2)
    expected = attended(q, k[:, :, :-2], v[:, :, :-2], short)[0]
    near(run_one("Attention", q, k, v, short, opset=OPSET), expected)


def test_a_query_that_sees_nothing_gives_zeros() -> None:
    q, k, v = operands()
    seen = np.ones((QUERIES, KEYS), bool)
    seen[1] = False
    y, _, _, weights = run("Attention", q, k, v, seen, opset=OPSET, outputs=4, qk_matmul_output_mode=3)
    near(y, attended(q, k, v, seen=seen)[0])
    assert not y[:, :, 1].any()
    assert not weights[:, :, 1].any()


@pytest.mark.parametrize("settings", [{}, {"is_causal": 1}, {"is_causal": 1, "softcap": 2.0}])
def test_past_keys_come_before_the_new_ones(settings: dict[str, Any]) -> None:
    q, k, v = operands(2, QUERIES)
    past_key, past_value = drawn(BATCH, 2, 4, COLUMNS), drawn(BATCH, 2, 4, COLUMNS)
    found = run("Attention", q, k, v, None, past_key, past_value, outputs=3, opset=OPSET, **settings)
    y, keys, values = found
    np.testing.assert_array_equal(keys, np.concatenate([past_key, k], 2))
    np.testing.assert_array_equal(values, np.concatenate([past_value, v], 2))
    seen = causal(4 + QUERIES, 4) if "is_causal" in settings else True
    near(y, attended(q, keys, values, seen=seen, softcap=settings.get("softcap", 0.0))[0])


@pytest.mark.parametrize("is_causal", [0, 1])
def test_samples_with_different_numbers_of_keys(is_causal: int) -> None:
    q, k, v = operands()
    lengths = np.array([5, 3])
    found = run_one("Attention", q, k, v, None, None, None, lengths, opset=OPSET, is_causal=is_causal)
    for at, length in enumerate(lengths):
        seen = causal(length, length - QUERIES) if is_causal else True
        own = slice(at, at + 1)
        near(found[own], attended(q[own], k[own, :, :length], v[own, :, :length], seen=seen)[0])


def test_flat_operands() -> None:
    q, k, v = drawn(BATCH, QUERIES, 32), drawn(BATCH, KEYS, 16), drawn(BATCH, KEYS, 12)
    found = run_one("Attention", q, k, v, opset=OPSET, q_num_heads=4, kv_num_heads=2)
    near(found, together(attended(by_head(q, 4), by_head(k, 2), by_head(v, 2))[0]))


@pytest.mark.parametrize("mode", [0, 1, 2, 3])
def test_scores_as_an_output(mode: int) -> None:
    q, k, v = operands(2)
    numbers = drawn(QUERIES, KEYS)
    settings: dict[str, Any] = {"softcap": 2.0, "qk_matmul_output_mode": mode, "opset": OPSET, "outputs": 4}
    y, _, _, shown = run("Attention", q, k, v, numbers, **settings)
    raw = q.astype(np.float64) @ k.repeat(2, 1).swapaxes(-1, -2) / np.sqrt(COLUMNS)
    capped = np.tanh(raw / 2) * 2
    near(shown, [raw, capped, capped + numbers, softmax(capped + numbers)][mode])
    near(y, attended(q, k, v, numbers, softcap=2.0)[0])


def test_attention_of_float64_and_of_16_bits() -> None:
    q, k, v = operands()
    wide = [each.astype(np.float64) for each in (q, k, v)]
    found = run_one("Attention", *wide, opset=OPSET, is_causal=1)
    np.testing.assert_allclose(found, attended(q, k, v, seen=causal(KEYS))[0], 1e-12, 1e-13)
    halves = [each.astype(np.float16) for each in (q, k, v)]
    found = run_one("Attention", *halves, opset=OPSET)
    assert found.dtype == np.float16
    np.testing.assert_allclose(found.astype(np.float64), attended(*halves)[0], 5e-3, 5e-3)


def test_attention_is_one_kernel() -> None:
    row = find("", "Attention", 23)
    assert row is not None
    tensors = [wg.asarray(each) for each in operands(2)]

    class Call:
        outputs = 1

    y = row.function(*tensors, is_causal=1, call=Call())[0]
    assert len(wg.explain(y).kernels) == 1


@pytest.mark.parametrize("changed", ["score_mod", "prob_mod", ""])
def test_flex_attention(tmp_path: Any, changed: str) -> None:
    q, k, v = operands(2)
    body = graph([node("Mul", "s two", "t")], {"s": None}, {"t": None}, {"two": np.float32(2)})
    settings: Any = {changed: body} if changed else {}
    nodes = [node("FlexAttention", "q k v", "y", domain="ai.onnx.preview", **settings)]
    shapes: Any = {"q": None, "k": None, "v": None}
    types = dict.fromkeys(shapes, ("float32", None))
    m = loaded(tmp_path, model(nodes, types, {"y": None}, opset={"": 25, "ai.onnx.preview": 1}))
    scale = COLUMNS**-0.5 * (2 if changed == "score_mod" else 1)
    expected = attended(q, k, v, scale=scale)[0] * (2 if changed == "prob_mod" else 1)
    near(m(q, k, v)["y"].numpy(), expected)


@pytest.mark.parametrize("rule", ["linear", "gated", "delta", "gated_delta"])
def test_linear_attention(rule: str) -> None:
    q, k, v = drawn(1, 4, 2 * 3), drawn(1, 4, 3), drawn(1, 4, 2)
    decay = -np.abs(drawn(1, 4, 3)) if "gated" in rule else None
    beta = np.abs(drawn(1, 4, 1)) if "delta" in rule else None
    past = drawn(1, 1, 3, 2)
    y, state = run(
        "LinearAttention", q, k, v, past, decay, beta,
        opset=27, outputs=2, update_rule=rule, q_num_heads=2, kv_num_heads=1,
    )  # fmt: skip
    expected = past[0, 0].astype(np.float64)
    for at in range(4):
        if decay is not None:
            expected = expected * np.exp(decay[0, at])[:, None]
        new = v[0, at] if beta is None else beta[0, at] * (v[0, at] - expected.T @ k[0, at])
        expected = expected + np.outer(k[0, at], new)
        near(y[0, at].reshape(2, 2), q[0, at].reshape(2, 3) @ expected / np.sqrt(3))
    near(state[0, 0], expected)


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("pairs", [4, 2])
def test_rotary_embedding(interleaved: int, pairs: int) -> None:
    x, cos, sin = drawn(BATCH, HEADS, QUERIES, 8), drawn(10, pairs), drawn(10, pairs)
    positions = GENERATOR.integers(0, 10, (BATCH, QUERIES))
    settings = {"interleaved": interleaved, "opset": 23} | ({"rotary_embedding_dim": 4} if pairs == 2 else {})
    expected = rotated(x, cos[positions][:, None], sin[positions][:, None], bool(interleaved))
    near(run_one("RotaryEmbedding", x, cos, sin, positions, **settings), expected)
    near(run_one("RotaryEmbedding", x, cos[positions], sin[positions], **settings), expected)
    flat = run_one("RotaryEmbedding", together(x), cos, sin, positions, num_heads=HEADS, **settings)
    near(flat, together(expected))


@pytest.mark.parametrize("mode", ["linear", "circular"])
def test_tensor_scatter(mode: str) -> None:
    cache, update = drawn(2, 3, 5, 2), drawn(2, 3, 2, 2)
    starts = np.array([1, 4 if mode == "circular" else 3])
    found = run_one("TensorScatter", cache, update, starts, opset=24, mode=mode)
    expected = cache.copy()
    for sample, at in np.ndindex(2, 2):
        expected[sample, :, (starts[sample] + at) % 5] = update[sample, :, at]
    np.testing.assert_array_equal(found, expected)
    first = run_one("TensorScatter", cache, update, opset=24)
    np.testing.assert_array_equal(first, np.concatenate([update, cache[:, :, 2:]], 2))
