"""Whole trainings beside torch's: one start, data and optimiser give the same losses, eager and captured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.torch.checking import Array, close, torch

STEPS = 8


def perceptron(nn: Any) -> Any:
    return nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.LayerNorm(16), nn.Linear(16, 5))


def convolutional(nn: Any) -> Any:
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(4, 6, 3, padding=1, bias=False),
        nn.GELU(),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(24, 5),
    )


def recurrent(nn: Any) -> Any:
    return nn.ModuleList([nn.LSTM(3, 8, num_layers=2, batch_first=True), nn.Linear(8, 5)])


def last_output(both: Any, x: Any) -> Any:
    layer, head = both
    return head(layer(x)[0][:, -1])


def transformer(nn: Any) -> Any:
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True, norm_first=True)
    return nn.ModuleList(
        [nn.Embedding(11, 8), nn.TransformerEncoder(layer, 2, norm=nn.LayerNorm(8)), nn.Linear(8, 5)]
    )


def pooled(parts: Any, x: Any) -> Any:
    table, encoder, head = parts
    return head(encoder(table(x)).mean(1))


def plainly(model: Any, x: Any) -> Any:
    return model(x)


def floats(*shape: int) -> Array:
    return np.random.default_rng(1).standard_normal((STEPS, *shape)).astype(np.float32)


def words(*shape: int) -> Array:
    return np.random.default_rng(1).integers(0, 11, (STEPS, *shape))


# A large eps: biases that a norm or a softmax takes away again have gradients of rounding only, and Adam
# would make whole steps of them.
EPS = {"lr": 0.01, "eps": 1e-3}
CASES: dict[str, tuple[Callable[[Any], Any], Callable[..., Any], Array, tuple[str, dict[str, Any]]]] = {
    "perceptron": (perceptron, plainly, floats(16, 12), ("SGD", {"lr": 0.1, "momentum": 0.9})),
    "convolutional": (convolutional, plainly, floats(8, 1, 8, 8), ("Adam", EPS)),
    "recurrent": (recurrent, last_output, floats(8, 6, 3), ("RMSprop", EPS)),
    "transformer": (transformer, pooled, words(8, 6), ("AdamW", {**EPS, "weight_decay": 0.1})),
}


@pytest.mark.filterwarnings("ignore::UserWarning")  # torch says what it does not optimise
@pytest.mark.parametrize("captured", [False, True], ids=["eager", "captured"])
@pytest.mark.parametrize("name", CASES)
def test_it_trains_as_torch_does(name: str, captured: bool) -> None:
    make, call, data, (kind, options) = CASES[name]
    labels = np.random.default_rng(2).integers(0, 5, data.shape[:2])
    torch.manual_seed(0)
    theirs, ours = make(torch.nn), make(wg.nn)
    ours.load_state_dict({key: value.numpy() for key, value in theirs.state_dict().items()})
    their_optimiser = getattr(torch.optim, kind)(theirs.parameters(), **options)
    our_optimiser = getattr(wg.optim, kind)(ours.parameters(), **options)

    def step(x: wg.Tensor, y: wg.Tensor) -> wg.Tensor:
        our_optimiser.zero_grad()
        loss = wg.cross_entropy(call(ours, x), y)
        loss.backward()
        our_optimiser.step()
        return loss

    run = wg.jit(step) if captured else step
    for number, (x, y) in enumerate(zip(data, labels, strict=True)):
        their_optimiser.zero_grad()
        wanted = torch.nn.functional.cross_entropy(call(theirs, torch.tensor(x)), torch.tensor(y))
        wanted.backward()
        their_optimiser.step()
        given = x.astype(np.int32) if x.dtype.kind == "i" else x
        found = run(wg.asarray(given), wg.asarray(y.astype(np.int32)))
        assert float(found) == pytest.approx(wanted.item(), rel=1e-3, abs=1e-4), f"step {number}"
    state = ours.state_dict()
    for key, value in theirs.state_dict().items():
        close(key, state[key].numpy(), value.numpy(), scale=10)
