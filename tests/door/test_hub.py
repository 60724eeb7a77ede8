"""torch.hub: weights that are there are loaded, nothing is downloaded or run."""

from __future__ import annotations

from pathlib import Path

import pytest

import webgrad.torch as torch
from webgrad.torch import hub
from webgrad.torch.utils import model_zoo


def test_weights_that_are_on_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "_folder", {})
    hub.set_dir(tmp_path)
    address = "https://example.org/models/net-1a2b.pth?x=1"
    with pytest.raises(RuntimeError, match=r"downloads nothing, and there is no .*checkpoints.net-1a2b\.pth"):
        hub.load_state_dict_from_url(address)
    (tmp_path / "checkpoints").mkdir()
    torch.save({"weight": torch.ones(2)}, tmp_path / "checkpoints" / "net-1a2b.pth")
    assert hub.load_state_dict_from_url(address, progress=True)["weight"].tolist() == [1, 1]
    assert model_zoo.load_url(address, tmp_path / "checkpoints")["weight"].tolist() == [1, 1]


def test_programs_are_not_fetched() -> None:
    with pytest.raises(RuntimeError, match="would fetch the program of pytorch/vision"):
        hub.load("pytorch/vision", "resnet18", pretrained=True)
    with pytest.raises(RuntimeError, match="downloads nothing"):
        hub.download_url_to_file("https://example.org/x", "x")
