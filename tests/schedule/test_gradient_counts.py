"""How many kernels gradients take: they are scheduled and fused like everything else."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.graph.helpers import tensor
from tests.schedule.graphs import PORTABLE, SOFTWARE, assert_valid, planned
from webgrad import dtypes
from webgrad.device_profile import DeviceProfile
from webgrad.functions.learning.activations import gelu, relu, softmax
from webgrad.functions.learning.losses import cross_entropy, mse_loss
from webgrad.functions.learning.normalisation import layer_norm, rms_norm
from webgrad.gradients.autograd import value_and_grad
from webgrad.tensor import Tensor

pytestmark = pytest.mark.golden

PROFILES = {"software": SOFTWARE, "portable": PORTABLE}


def count(build: Callable[[], list[Tensor]], profile: DeviceProfile) -> int:
    """How many launches compute these tensors; what is held would be stored, so they are built here."""
    plan = planned(*build(), profile=profile)
    assert_valid(plan)
    return len(plan.bundles)


def with_gradients(function: Callable[..., Tensor], *shapes: tuple[int, ...]) -> Callable[[], list[Tensor]]:
    """The function's value and its gradients by all arguments, for a gradient that comes from elsewhere."""

    def build() -> list[Tensor]:
        given = [tensor(*shape) for shape in shapes]
        upstream = tensor(*function(*given).shape)
        results: list[Tensor] = []

        def scored(*args: Tensor) -> Tensor:
            result = function(*args)
            results.append(result)
            return (result * upstream).sum()

        _, gradients = value_and_grad(scored, tuple(range(len(given))))(*given)
        return [*results, *gradients]

    return build


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
def test_a_layer_takes_three_kernels_more(profile: DeviceProfile) -> None:
    layer = with_gradients(lambda x, w, b: relu(x @ w + b), (128, 784), (784, 256), (256,))
    assert count(layer, profile) == 1 + 3


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
def test_softmax_takes_one_more(profile: DeviceProfile) -> None:
    assert count(with_gradients(softmax, (64, 100)), profile) == 2


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
def test_norms(profile: DeviceProfile) -> None:
    """The folds of the value and of its gradient are over the same rows: one kernel, where they meet."""
    assert count(with_gradients(lambda x: layer_norm(x, 128), (64, 128)), profile) == 1
    assert count(with_gradients(lambda x: rms_norm(x, 128), (64, 128)), profile) == 1
    between = with_gradients(lambda x, w: layer_norm(x, 128) @ w, (64, 128), (128, 32))
    assert count(between, profile) == 4
    weighted = with_gradients(lambda x, w, b: layer_norm(x, 128, w, b), (64, 128), (128,), (128,))
    assert count(weighted, profile) <= 6


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
def test_maps(profile: DeviceProfile) -> None:
    assert count(with_gradients(lambda x, y: gelu(x * y) + x, (64, 128), (64, 128)), profile) <= 2


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
def test_losses(profile: DeviceProfile) -> None:
    """The loss of every row and its gradient are one kernel; another one counts the rows that matter."""

    def build(loss: Callable[[Tensor], Tensor]) -> Callable[[], list[Tensor]]:
        return lambda: [*value_and_grad(loss)(tensor(128, 10))]

    labels, target = tensor(128, dtype=dtypes.int32), tensor(128, 10)
    assert count(build(lambda x: cross_entropy(x, labels)), profile) == 3
    assert count(build(lambda x: mse_loss(x, target)), profile) <= 3
