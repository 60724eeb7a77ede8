"""Attention of com.microsoft against NumPy in float64."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.onnx.models import loaded, model, node
from tests.onnx.operators.scores import attended, by_head, rotated, softmax, together
from tests.onnx.operators.single import run, run_one
from webgrad.onnx.evaluation import Run

GENERATOR = np.random.default_rng(16)
MICROSOFT = "com.microsoft"
BATCH, HEADS, LENGTH, HIDDEN = 2, 2, 4, 8


def drawn(*shape: int) -> Any:
    return GENERATOR.standard_normal(shape, np.float32)


def near(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found, expected, 1e-3, 1e-5)


def behind(queries: int, keys: int) -> Any:
    """What the last queries of some positions see."""
    return np.arange(keys) <= np.arange(queries)[:, None] + keys - queries


def hidden(seen: Any) -> Any:
    return np.where(seen, 0.0, -10000.0)


MASKS: dict[str, tuple[Any, Any]] = {
    "none": (None, np.ones((1, 1, 1, LENGTH), bool)),
    "ends": (np.array([3, 4], np.int32), np.array([[1, 1, 1, 0], [1, 1, 1, 1]])[:, None, None]),
    "ends and starts": (
        np.array([3, 4, 1, 2], np.int32),
        np.array([[0, 1, 1, 0], [0, 0, 1, 1]])[:, None, None],
    ),
    "by key": (
        np.array([[1, 0, 1, 1], [1, 1, 1, 0]], np.int32),
        np.array([[1, 0, 1, 1], [1, 1, 1, 0]])[:, None, None],
    ),
    "by query": (
        np.tri(LENGTH, dtype=np.int32)[None].repeat(BATCH, 0),
        np.tri(LENGTH)[None, None].repeat(BATCH, 0),
    ),
}


@pytest.mark.parametrize("mask", list(MASKS))
@pytest.mark.parametrize("is_causal", [0, 1])
def test_attention(mask: str, is_causal: int) -> None:
    x, weights, bias = drawn(BATCH, LENGTH, HIDDEN), drawn(HIDDEN, 3 * HIDDEN), drawn(3 * HIDDEN)
    given, seen = MASKS[mask]
    settings = {"domain": MICROSOFT, "num_heads": HEADS, "unidirectional": is_causal}
    found = run_one("Attention", x, weights, bias, given, **settings)
    q, k, v = (by_head(each, HEADS) for each in np.split(x @ weights + bias, 3, -1))
    shown = behind(LENGTH, LENGTH) if is_causal else True
    near(found, together(attended(q, k, v, hidden(seen > 0), shown)[0]))


def test_attention_with_a_past_and_sizes_of_its_own() -> None:
    x, weights, past = drawn(BATCH, 1, HIDDEN), drawn(HIDDEN, 3 * HIDDEN), drawn(2, BATCH, HEADS, 3, 4)
    settings: Any = {"domain": MICROSOFT, "num_heads": HEADS}
    y, present = run("Attention", x, weights, None, None, past, unidirectional=1, outputs=2, **settings)
    q, k, v = (by_head(each, HEADS) for each in np.split(x @ weights, 3, -1))
    keys, values = np.concatenate([past[0], k], 2), np.concatenate([past[1], v], 2)
    near(present, np.stack([keys, values]))
    near(y, together(attended(q, keys, values)[0]))
    wide = drawn(HIDDEN, 20)
    found = run_one("Attention", x, wide, qkv_hidden_sizes=[8, 8, 4], scale=0.3, **settings)
    parts = np.split(x @ wide, [8, 16], -1)
    q, k, v = (by_head(each, HEADS) for each in parts)
    near(found, together(attended(q, k, v, scale=0.3)[0]))


def test_a_shared_buffer_is_filled_where_it_ends() -> None:
    x, weights, room = drawn(BATCH, 1, HIDDEN), drawn(HIDDEN, 3 * HIDDEN), drawn(2, BATCH, HEADS, 6, 4)
    there = np.array([3], np.int32)
    settings: Any = {"domain": MICROSOFT, "num_heads": HEADS, "past_present_share_buffer": 1}
    y, present = run("Attention", x, weights, None, None, room, None, there, outputs=2, **settings)
    short, _ = run(
        "Attention", x, weights, None, None, room[:, :, :, :3], outputs=2, domain=MICROSOFT, num_heads=HEADS
    )
    near(y, short)
    np.testing.assert_array_equal(present[..., :3, :], room[..., :3, :])
    np.testing.assert_array_equal(present[..., 4:, :], room[..., 4:, :])


@pytest.mark.parametrize("form", ["flat", "packed", "packed keys", "by head"])
def test_multi_head_attention_in_all_forms(form: str) -> None:
    q, k, v = (drawn(BATCH, each, HIDDEN) for each in (LENGTH, 5, 5))
    if form == "packed":
        k, v = k[:, :LENGTH], v[:, :LENGTH]
    heads = [each.reshape(*each.shape[:2], HEADS, -1) for each in (q, k, v)]
    given = {
        "flat": (q, k, v),
        "packed": (np.stack(heads, 3),) if form == "packed" else (),
        "packed keys": (q, np.stack(heads[1:], 3)),
        "by head": (q, by_head(k, HEADS).copy(), by_head(v, HEADS).copy()),
    }[form]
    found = run_one("MultiHeadAttention", *given, domain=MICROSOFT, num_heads=HEADS)
    near(found, together(attended(*(by_head(each, HEADS) for each in (q, k, v)))[0]))


def test_multi_head_attention_with_everything() -> None:
    q, k, v = (drawn(BATCH, LENGTH, HIDDEN) for _ in range(3))
    bias, numbers = drawn(3 * HIDDEN), drawn(1, HEADS, LENGTH, LENGTH + 2)
    past = drawn(2, BATCH, HEADS, 2, 4)
    keep = np.array([[1, 1, 0, 1, 1, 1], [1] * 6], np.int32)
    settings: Any = {"domain": MICROSOFT, "num_heads": HEADS, "unidirectional": 1}
    given = (q, k, v, bias, keep, numbers, *past)
    y, keys, values = run("MultiHeadAttention", *given, outputs=3, **settings)
    heads = [by_head(each + part, HEADS) for each, part in zip((q, k, v), np.split(bias, 3), strict=True)]
    near(keys, np.concatenate([past[0], heads[1]], 2))
    near(values, np.concatenate([past[1], heads[2]], 2))
    added = numbers + hidden(keep[:, None, None] > 0)
    expected, weights = attended(heads[0], keys, values, added, behind(LENGTH, LENGTH + 2))
    near(y, together(expected))
    shown = run("MultiHeadAttention", *given, outputs=4, **settings)
    near(shown[0], together(expected))
    near(shown[3], weights)


def test_decoding_one_query_at_a_time() -> None:
    q, k, v = (drawn(BATCH, 1, HIDDEN) for _ in range(3))
    past = drawn(2, BATCH, HEADS, 3, 4)
    settings: Any = {"domain": MICROSOFT, "num_heads": HEADS}
    expected = run("MultiHeadAttention", q, k, v, None, None, None, *past, outputs=3, **settings)
    found = run("DecoderMaskedMultiHeadAttention", q, k, v, None, None, *past, outputs=3, **settings)
    packed = np.concatenate([q, k, v], -1)
    again = run(
        "DecoderMaskedMultiHeadAttention", packed, None, None, None, None, *past, outputs=3, **settings
    )
    for one, other, third in zip(found, again, expected, strict=True):
        near(one, third)
        near(other, third)


# Group query attention


SHARED, COLUMNS, ROOM = 2, 8, 9
COS, SIN = (
    np.cos(np.arange(64).reshape(16, 4) / 7).astype(np.float32),
    np.sin(np.arange(64).reshape(16, 4) / 7).astype(np.float32),
)


def grouped(
    queries: int,
    lengths: list[int],
    room: int,
    rotary: int = 0,
    interleaved: int = 0,
    packed: bool = False,
    **more: Any,
) -> tuple[list[Any], list[Any]]:
    """What the operator gives, and what each sample by itself gives with NumPy: outputs, keys, values."""
    samples, heads = len(lengths), 4
    q, k, v = (drawn(samples, queries, each * COLUMNS) for each in (heads, SHARED, SHARED))
    past = drawn(2, samples, SHARED, room, COLUMNS)
    given = (np.concatenate([q, k, v], -1), None, None) if packed else (q, k, v)
    ends, total = np.array([each - 1 for each in lengths], np.int32), np.array(max(lengths), np.int32)
    caches = (COS, SIN) if rotary else (None, None)
    settings: Any = {
        "num_heads": heads,
        "kv_num_heads": SHARED,
        "do_rotary": rotary,
        "rotary_interleaved": interleaved,
    }
    found = run(
        "GroupQueryAttention", *given, *past, ends, total, *caches,
        domain=MICROSOFT, outputs=3, **settings, **more,
    )  # fmt: skip
    expected: list[Any] = [[], [], []]
    for at, length in enumerate(lengths):
        start = length - queries
        own = [by_head(each[at : at + 1], count) for each, count in ((q, heads), (k, SHARED), (v, SHARED))]
        if rotary:
            cos, sin = COS[start:length], SIN[start:length]
            own[:2] = [rotated(each, cos, sin, bool(interleaved)) for each in own[:2]]
        keys, values = (
            np.concatenate([past[side, at : at + 1, :, :start], own[1 + side]], 2) for side in range(2)
        )
        seen = behind(queries, length)
        window = more.get("local_window_size", -1)
        if window > 0:
            seen &= np.arange(length) > np.arange(queries)[:, None] + start - window
        y = attended(own[0], keys, values, 0.0, seen, more.get("scale"), more.get("softcap", 0.0))[0]
        for each, value in zip(expected, (together(y), keys, values), strict=True):
            each.append(value)
    return found, expected


@pytest.mark.parametrize(
    ("queries", "lengths", "room"),
    [
        (4, [4, 4], 0),  # the first prompt
        (4, [4, 4], ROOM),
        (1, [6, 6], 5),  # one more
        (1, [6], 5),
        (1, [6, 4], ROOM),  # of different lengths
        (3, [7], ROOM),  # several more
    ],
)
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"rotary": 1},
        {"rotary": 1, "interleaved": 1, "packed": True},
        {"local_window_size": 2},
        {"softcap": 2.0, "scale": 0.4},
    ],
)
def test_group_query_attention(queries: int, lengths: list[int], room: int, more: dict[str, Any]) -> None:
    found, expected = grouped(queries, lengths, room, **more)
    assert found[1].shape[2] == max(room, max(lengths))
    for at, length in enumerate(lengths):
        near(found[0][at], expected[0][at][0])
        for side in (1, 2):
            near(found[side][at, :, :length], expected[side][at][0])


def test_a_sink_takes_a_share_of_the_weights() -> None:
    q, k, v = drawn(1, 3, 16), drawn(1, 3, 16), drawn(1, 3, 16)
    ends, total, sink = np.array([2], np.int32), np.array(3, np.int32), drawn(2)
    nothing = (None,) * 4
    settings: Any = {"domain": MICROSOFT, "num_heads": 2, "kv_num_heads": 2}
    scores = by_head(q, 2) @ by_head(k, 2).swapaxes(-1, -2) / np.sqrt(8)
    scores = np.where(behind(3, 3), scores, -np.inf)
    for given, smooth in ((sink, 0), (None, 1)):
        column = np.zeros(2) if given is None else given
        wide = np.concatenate([scores, np.broadcast_to(column.reshape(1, 2, 1, 1), (1, 2, 3, 1))], -1)
        expected = together(softmax(wide)[..., :-1] @ by_head(v, 2))
        found = run_one(
            "GroupQueryAttention",
            q,
            k,
            v,
            None,
            None,
            ends,
            total,
            *nothing,
            given,
            smooth_softmax=smooth,
            **settings,
        )
        near(found, expected)


@pytest.mark.parametrize("interleaved", [0, 1])
def test_rotary_embedding(interleaved: int) -> None:
    x, positions = drawn(BATCH, 3, 16), np.array([[4, 0, 9], [1, 2, 3]])
    settings: Any = {"domain": MICROSOFT, "interleaved": interleaved}
    expected = rotated(by_head(x, 2), COS[positions][:, None], SIN[positions][:, None], bool(interleaved))
    near(run_one("RotaryEmbedding", x, positions, COS, SIN, **settings), together(expected))
    expected = rotated(by_head(x, 2), COS[5:8], SIN[5:8], bool(interleaved))
    near(run_one("RotaryEmbedding", x, np.array([5]), COS, SIN, **settings), together(expected))


def test_what_is_not_there_is_refused() -> None:
    x = drawn(1, 1, 8)
    with pytest.raises(wg.ModelFileError, match="do_rotary"):
        run_one("Attention", x, drawn(8, 24), domain=MICROSOFT, num_heads=2, do_rotary=1)
    settings: Any = {"domain": MICROSOFT, "num_heads": 1}
    beams = (x, x, x, *(None,) * 6, np.zeros((1, 1, 4), np.int32))
    with pytest.raises(wg.ModelFileError, match="cache_indirection"):
        run_one("MultiHeadAttention", *beams, **settings)
    given = (x, x, x, None, None, np.array([0], np.int32), np.array(1, np.int32))
    with pytest.raises(wg.ModelFileError, match="sliding"):
        run_one("GroupQueryAttention", *given, kv_num_heads=1, sliding_window_cache=1, **settings)


def test_a_buffer_with_room_is_one_capture_for_all_its_lengths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`total_sequence_length` may be the room that there is: where keys end is what `seqlens_k` says."""
    heads, room, columns = 2, 6, 4
    names = "q k v past_k past_v last total"
    inputs: dict[str, Any] = {name: [1, 1, heads * columns] for name in "qkv"}
    inputs |= {name: [1, heads, "p", columns] for name in ("past_k", "past_v")}
    inputs |= {name: ("int32", [1]) for name in ("last", "total")}
    settings: Any = {"num_heads": heads, "kv_num_heads": heads}
    nodes = [node("GroupQueryAttention", names, "y k2 v2", domain="com.microsoft", **settings)]
    outputs = {"y": None, "k2": None, "v2": None}
    m = loaded(tmp_path, model(nodes, inputs, outputs, opset={"": 18, "com.microsoft": 1}))
    generator = np.random.default_rng(5)
    keys, values = np.zeros((2, 1, heads, room, columns), np.float32)
    node_of, ran = Run.node, []

    def counted(*given: Any) -> Any:
        ran.append(last)
        return node_of(*given)

    monkeypatch.setattr(Run, "node", counted)
    for last in range(1, room):
        q, k, v = generator.standard_normal((3, 1, 1, heads * columns)).astype(np.float32)
        found = m(q, k, v, keys, values, np.array([last], np.int32), np.array([room], np.int32))
        keys[:, :, last], values[:, :, last] = (each.reshape(1, heads, columns) for each in (k, v))
        scores = np.einsum("hc,hkc->hk", q.reshape(heads, columns), keys[0, :, : last + 1]) / 2
        expected = np.einsum("hk,hkc->hc", softmax(scores), values[0, :, : last + 1])
        near(found.y.numpy(), expected.reshape(1, 1, -1))
        np.testing.assert_array_equal(found.k2.numpy(), keys)
        np.testing.assert_array_equal(found.v2.numpy(), values)
    assert ran == [1]  # the first step's
