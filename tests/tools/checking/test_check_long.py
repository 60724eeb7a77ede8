"""check is silent over all that is right: trainings, random graphs and real models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.models.conftest import model_path
from tests.properties.helpers import gpu, unlimited_backlog
from tests.properties.writing import write_program
from webgrad import nn, optim
from webgrad.cli import main
from webgrad.evaluate.evaluate import checking, evaluate
from webgrad.tools.checking.check import Checker

pytestmark = [pytest.mark.gpu, pytest.mark.soak]

random = np.random.default_rng(5)


def tensor(*shape: int) -> wg.Tensor:
    return wg.asarray(random.normal(size=shape).astype(np.float32))


def numbers(most: int, *shape: int) -> wg.Tensor:
    return wg.asarray(random.integers(0, most, shape).astype(np.int32))


class _Last(nn.Module):
    """What an LSTM says at the end."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.out = nn.LSTM(6, 16, batch_first=True), nn.Linear(16, 3)

    def forward(self, x: wg.Tensor) -> wg.Tensor:
        return self.out(self.inner(x)[0][:, -1])  # type: ignore[no-any-return]


def _images() -> tuple[nn.Module, wg.Tensor, wg.Tensor]:
    first = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2))
    last = nn.Sequential(nn.Conv2d(8, 16, 3, stride=2), nn.GELU(), nn.Flatten(), nn.Linear(784, 10))
    return nn.Sequential(first, last), tensor(8, 3, 32, 32), numbers(10, 8)


def _words() -> tuple[nn.Module, wg.Tensor, wg.Tensor]:
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
    model = nn.Sequential(nn.Embedding(50, 32), nn.TransformerEncoder(layer, 2), nn.Flatten(0, 1))
    return nn.Sequential(model, nn.Linear(32, 50)), numbers(50, 4, 12), numbers(50, 48)


def _sequences() -> tuple[nn.Module, wg.Tensor, wg.Tensor]:
    return _Last(), tensor(5, 9, 6), numbers(3, 5)


@pytest.mark.parametrize("made", [_images, _words, _sequences])
def test_trainings(made: Callable[[], tuple[nn.Module, wg.Tensor, wg.Tensor]]) -> None:
    model, x, y = made()
    optimiser = optim.Adam(model.parameters(), lr=1e-2)

    def step() -> float:
        optimiser.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimiser.step()
        return float(loss)

    report = wg.check(lambda: [step() for _ in range(3)])
    assert report.ok, str(report)
    assert report.kernels > 100
    assert report.unjudged * 100 < report.elements


def test_random_graphs() -> None:
    elements = unjudged = 0
    with unlimited_backlog():
        for seed in range(300):
            roots, held = write_program(seed).build(gpu())
            checker = Checker(gpu(), everything=True)
            with checking(checker):
                evaluate([*roots, *held])
            assert checker.report.ok, f"seed {seed}\n{checker.report}"
            elements += checker.report.elements
            unjudged += checker.report.unjudged
    assert unjudged * 1000 < elements


@pytest.mark.parametrize("name", ["minilm", "smollm2:135m"])
def test_real_models_pass(name: str, capsys: Any) -> None:
    model_path(name)
    assert main(["check", name, "--device", "webgpu"]) == 0
    text = capsys.readouterr().out
    assert "every cosine is at least" in text
    assert "BELOW" not in text
