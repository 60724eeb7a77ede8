"""Training by plain gradient steps: every family of layers learns, the same eagerly and captured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.selection import every
from webgrad import nn

Shapes = tuple[tuple[int, ...], ...]
# what is trained, and the shapes of what it takes; its output is drawn to 0.3
LAYERS: dict[str, tuple[Callable[[], nn.Module], Shapes]] = {
    "Linear": (lambda: nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)), ((6, 4),)),
    "Bilinear": (lambda: nn.Bilinear(4, 3, 2), ((6, 4), (6, 3))),
    "Conv1d": (lambda: nn.Conv1d(3, 4, 3, padding="same", padding_mode="circular"), ((2, 3, 8),)),
    "Conv2d": (lambda: nn.Conv2d(4, 4, 3, groups=4, padding=1, padding_mode="reflect"), ((2, 4, 6, 6),)),
    "Conv3d": (lambda: nn.Conv3d(2, 3, 2, dilation=2), ((2, 2, 4, 4, 4),)),
    "ConvTranspose1d": (lambda: nn.ConvTranspose1d(3, 4, 3, stride=2), ((2, 3, 5),)),
    "ConvTranspose2d": (lambda: nn.ConvTranspose2d(3, 4, 3, 2, 1, output_padding=1), ((2, 3, 5, 5),)),
    "ConvTranspose3d": (lambda: nn.ConvTranspose3d(2, 2, 2, stride=2), ((1, 2, 3, 3, 3),)),
    "BatchNorm1d": (lambda: nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4, momentum=None)), ((6, 4),)),
    "BatchNorm2d": (lambda: nn.Sequential(nn.Conv2d(2, 3, 2), nn.BatchNorm2d(3)), ((2, 2, 4, 4),)),
    "LayerNorm": (lambda: nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4)), ((6, 4),)),
    "RMSNorm": (lambda: nn.Sequential(nn.Linear(4, 4), nn.RMSNorm(4)), ((6, 4),)),
    "GroupNorm": (lambda: nn.GroupNorm(2, 4), ((2, 4, 5),)),
    "InstanceNorm": (lambda: nn.InstanceNorm2d(2, affine=True, track_running_stats=True), ((2, 2, 4, 4),)),
    "Dropout": (lambda: nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.3), nn.Linear(8, 1)), ((6, 4),)),
    "PReLU": (lambda: nn.Sequential(nn.Linear(4, 6), nn.PReLU(6)), ((6, 4),)),
    "pooling": (
        lambda: nn.Sequential(
            nn.Conv2d(2, 4, 1), nn.MaxPool2d(2), nn.AvgPool2d(2, 1), nn.AdaptiveAvgPool2d(1)
        ),
        ((2, 2, 6, 6),),
    ),
    "images": (
        lambda: nn.Sequential(
            nn.Conv2d(2, 4, 1),
            nn.Upsample(scale_factor=2, mode="bilinear"),
            nn.PixelShuffle(2),
            nn.ZeroPad2d(1),
        ),
        ((2, 2, 3, 3),),
    ),
}


def losses_of(make: Callable[[], Any], inputs: Any, captured: bool) -> tuple[list[float], Any]:
    wg.random.seed(1)
    model = make()

    def step(*inputs: wg.Tensor) -> wg.Tensor:
        model.zero_grad()
        loss: wg.Tensor = ((model(*inputs) - 0.3) ** 2).mean()
        loss.backward()
        with wg.no_grad():
            for parameter in model.parameters():
                parameter -= 0.1 * parameter.grad
        return loss

    call = wg.jit(step) if captured else step
    return [call(*inputs).item() for _ in range(5)], model


@pytest.mark.parametrize("name", every(3, LAYERS))
def test_layers_learn_eagerly_and_captured(name: str) -> None:
    make, shapes = LAYERS[name]
    inputs = [wg.random.normal(shape) for shape in shapes]
    (plain, eager), (fast, captured) = (losses_of(make, inputs, each) for each in (False, True))
    assert plain[-1] < plain[0]
    np.testing.assert_allclose(fast, plain, rtol=1e-4, atol=1e-6)
    state = captured.state_dict()
    for key, value in eager.state_dict().items():
        np.testing.assert_allclose(state[key].numpy(), value.numpy(), rtol=1e-3, atol=1e-5)


def test_an_embedding_learns_but_for_its_padding() -> None:
    index = wg.asarray([[0, 1, 2], [3, 4, 0]])
    found, model = losses_of(lambda: nn.Embedding(6, 4, padding_idx=0), (index,), True)
    assert found[-1] < found[0]
    assert model.weight[0].tolist() == [0.0] * 4


@pytest.mark.gpu
def test_a_convolutional_net_learns_on_a_gpu_as_on_the_cpu() -> None:
    x = wg.random.normal((4, 1, 8, 8))

    def make() -> nn.Module:
        wg.random.seed(2)
        return nn.Sequential(
            nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(27, 2)
        )

    plain, _ = losses_of(make, (x,), False)
    found, model = losses_of(lambda: make().to("webgpu"), (x.to_device("webgpu"),), True)
    np.testing.assert_allclose(found, plain, rtol=1e-3, atol=1e-5)
    assert model[1].num_batches_tracked.item() == 5
