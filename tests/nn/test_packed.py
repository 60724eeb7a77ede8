"""Sequences of different lengths: packed, padded, and through recurrent layers as each by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webgrad as wg
from webgrad.nn.utils import rnn

RANDOM = np.random.default_rng(6)
LENGTHS = [3, 5, 1, 3]
ROWS = [RANDOM.normal(size=(length, 2)).astype(np.float32) for length in LENGTHS]


def sequences(device: str = "cpu") -> list[Any]:
    return [wg.asarray(each, device=device) for each in ROWS]


def test_the_order_of_what_is_packed() -> None:
    packed = rnn.pack_sequence(sequences(), enforce_sorted=False)
    order = [1, 0, 3, 2]
    wanted = [ROWS[each][time] for time in range(5) for each in order if time < LENGTHS[each]]
    np.testing.assert_array_equal(packed.data.numpy(), wanted)
    assert packed.batch_sizes.tolist() == [4, 3, 3, 1, 1]
    assert packed.sorted_indices is not None
    assert packed.unsorted_indices is not None
    assert packed.sorted_indices.tolist() == order
    assert packed.unsorted_indices.tolist() == [1, 0, 3, 2]


@pytest.mark.parametrize("batch_first", [False, True])
def test_what_is_packed_comes_back(batch_first: bool) -> None:
    packed = rnn.pack_sequence(sequences(), enforce_sorted=False)
    padded, lengths = rnn.pad_packed_sequence(packed, batch_first, padding_value=-1.0, total_length=7)
    assert lengths.tolist() == LENGTHS
    assert padded.shape == ((4, 7, 2) if batch_first else (7, 4, 2))
    rows = padded.numpy() if batch_first else padded.numpy().swapaxes(0, 1)
    for row, each in zip(rows, ROWS, strict=True):
        np.testing.assert_array_equal(row[: len(each)], each)
        assert (row[len(each) :] == -1).all()
    again = rnn.pack_padded_sequence(padded, lengths, batch_first, enforce_sorted=False)
    np.testing.assert_array_equal(again.data.numpy(), packed.data.numpy())
    for mine, other in zip(rnn.unpack_sequence(packed), ROWS, strict=True):
        np.testing.assert_array_equal(mine.numpy(), other)


def test_padding_may_stand_before() -> None:
    found = rnn.pad_sequence([wg.asarray([1, 2]), wg.asarray([3])], True, 9, "left")
    assert found.tolist() == [[1, 2], [9, 3]]


@pytest.mark.parametrize(
    "make",
    [
        lambda: wg.nn.RNN(2, 3, num_layers=2),
        lambda: wg.nn.LSTM(2, 4, num_layers=2, bidirectional=True, proj_size=3),
        lambda: wg.nn.GRU(2, 3, bidirectional=True, batch_first=True, bias=False),
    ],
    ids=["RNN", "LSTM", "GRU"],
)
def test_a_layer_gives_of_each_sequence_what_it_gives_of_it_alone(make: Any) -> None:
    wg.random.seed(3)
    layer = make()
    together, last = layer(rnn.pack_sequence(sequences(), enforce_sorted=False))
    sum(each.sum() for each in (together.data, *(last if isinstance(last, tuple) else (last,)))).backward()
    gradients = [each.grad.numpy() for each in layer.parameters()]
    layer.zero_grad()
    total: Any = 0.0
    for at, (row, mine) in enumerate(zip(sequences(), rnn.unpack_sequence(together), strict=True)):
        alone, end = layer(row)
        np.testing.assert_allclose(mine.detach().numpy(), alone.detach().numpy(), atol=1e-5)
        ends = end if isinstance(end, tuple) else (end,)
        for found, wanted in zip(last if isinstance(last, tuple) else (last,), ends, strict=True):
            np.testing.assert_allclose(found.detach().numpy()[:, at], wanted.detach().numpy(), atol=1e-5)
        total = total + alone.sum() + sum(each.sum() for each in ends)
    total.backward()
    for found, each in zip(gradients, layer.parameters(), strict=True):
        np.testing.assert_allclose(found, each.grad.numpy(), atol=2e-4)


@pytest.mark.gpu
def test_a_gpu_gives_what_the_cpu_gives() -> None:
    layer = wg.nn.RNN(2, 3)
    short = [each[:2] for each in sequences()[1:3]]
    wanted, _ = layer(rnn.pack_sequence(short))
    found, last = layer.to("webgpu")(rnn.pack_sequence(short).to(device="webgpu"))
    np.testing.assert_allclose(found.data.detach().numpy(), wanted.data.detach().numpy(), atol=1e-5)
    assert last.shape == (1, 2, 3)


def test_first_states_are_those_of_the_sequences() -> None:
    layer = wg.nn.LSTM(2, 3)
    first = tuple(wg.asarray(RANDOM.normal(size=(1, 4, 3)).astype(np.float32)) for _ in range(2))
    _, (h, c) = layer(rnn.pack_sequence(sequences(), enforce_sorted=False), first)
    for at, row in enumerate(sequences()):
        _, (mine, cell) = layer(row, tuple(each[:, at] for each in first))
        np.testing.assert_allclose(h.detach().numpy()[:, at], mine.detach().numpy(), atol=1e-5)
        np.testing.assert_allclose(c.detach().numpy()[:, at], cell.detach().numpy(), atol=1e-5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: rnn.pack_padded_sequence(x, [1, 3]), "must fall when enforce_sorted"),
        (lambda x: rnn.pack_padded_sequence(x, [3, 0]), "lengths are from 1 to 3"),
        (lambda x: rnn.pack_padded_sequence(x, [4, 1]), "lengths are from 1 to 3"),
        (lambda x: rnn.pack_padded_sequence(x, [3]), "1 lengths for a batch of 2"),
        (lambda x: rnn.pad_packed_sequence(rnn.pack_sequence([x]), total_length=2), "total_length=2"),
        (lambda x: rnn.pad_sequence([x], padding_side="top"), "padding_side is"),
        (lambda x: rnn.pad_sequence([]), "one sequence or more"),
        (lambda x: wg.nn.GRU(5, 2)(rnn.pack_sequence([x[:, 0]])), "packed data"),
    ],
)
def test_what_does_not_fit_is_refused(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(wg.ones((3, 2, 2)))
