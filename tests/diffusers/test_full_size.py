"""Models of full width and a few layers against diffusers': the network, and a picture of 256 × 256."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.diffusers.models import difference
from tests.diffusers.test_pipelines import DEVICES
from webgrad.diffusion.folder import load

full_size: Any = pytest.importorskip("scripts.full_size_diffusion")
pytestmark = [
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]


@pytest.fixture(params=DEVICES, scope="module")
def device(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(params=full_size.MODELS, scope="module")
def loaded(request: pytest.FixtureRequest, device: str) -> tuple[Any, Any, Any]:
    """A model's row, what diffusers made of it, and our pipeline, one at a time."""
    folder = full_size.model(request.param)
    with np.load(folder / "reference.npz") as reference:
        wanted = dict(reference)
    return full_size.MODELS[request.param], wanted, load(folder, device=device)


@wg.no_grad()
def test_the_network(loaded: Any, device: str) -> None:
    row, wanted, pipe = loaded
    network = getattr(pipe, row.network)
    names = wanted.keys() - {"x", "prediction", "picture"}
    given = {name: wg.asarray(wanted[name], device=device) for name in names}
    assert {each.dtype for each in network.parameters()} == {wg.float16}
    found = network(wg.asarray(wanted["x"], device=device), full_size.TIME, **given)
    assert difference(found, wanted["prediction"]) < 1e-4


def test_the_picture(loaded: Any, device: str) -> None:
    row, wanted, pipe = loaded
    noise = wg.asarray(wanted["x"], device=device)
    options = {"steps": full_size.STEPS, "guidance": row.guidance, "size": (256, 256)}
    last = list(pipe.steps(full_size.PROMPT, noise=noise, **options))[-1]
    with wg.no_grad():
        values = pipe.decoded(last.latents).numpy()
    found = np.clip(values.transpose(0, 2, 3, 1) / 2 + 0.5, 0, 1)
    assert np.abs(found - wanted["picture"]).max() < 1e-3
