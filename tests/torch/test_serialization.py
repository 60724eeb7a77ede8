"""Files both ways: what torch saves is loaded here, and what is saved here torch loads, `weights_only`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import webgrad.torch as door
from tests.torch.checking import torch


def value(of: Any) -> dict[str, Any]:
    """A checkpoint made with torch or with webgrad.torch."""
    model = of.nn.Sequential(of.nn.Linear(3, 4), of.nn.BatchNorm1d(4))
    for number, each in enumerate(model.parameters()):
        each.data = of.arange(float(each.numel())).reshape(each.shape) / 8 + number
    optimiser = of.optim.AdamW(model.parameters(), lr=0.1)
    model(of.arange(12.0).reshape(4, 3)).pow(3).sum().backward()
    optimiser.step()
    x = of.arange(24.0).reshape(4, 6)
    return {
        "model": model.state_dict(),
        "optimiser": optimiser.state_dict(),
        "views": {"x": x, "turned": x.t(), "row": x[2], "part": x[1:3, 2:5], "wide": x[3].expand(2, 6)},
        "dtypes": [
            of.ones(2, dtype=getattr(of, name))
            for name in ("uint16", "bfloat16", "complex64", "bool", "int64")
        ],
        "plain": [1, 1 << 40, 0.5, "ü", None, True, (1, [2]), {1: {2}}, of.Size([2, 3]), of.float16],
        "parameter": of.nn.Parameter(of.zeros(2), requires_grad=False),
    }


def plain(x: Any) -> Any:
    """A value without torch's types."""
    if hasattr(x, "tolist"):
        kind = str(x.dtype).rpartition(".")[2]
        return kind, tuple(x.shape), (x.real if kind == "complex64" else x).float().tolist()
    if isinstance(x, dict):
        return {
            key: plain(each)
            for key, each in x.items()
            if key not in ("foreach", "capturable", "differentiable", "fused")
        }
    if isinstance(x, list | tuple):
        return [plain(each) for each in x]
    return str(x).rpartition(".")[2] if "float16" in str(x) else x


def close(first: Any, second: Any) -> None:
    if isinstance(first, dict):
        assert list(first) == list(second)
        first, second = list(first.values()), list(second.values())
    if isinstance(first, list | tuple):
        assert len(first) == len(second)
        for each, one in zip(first, second, strict=True):
            close(each, one)
    else:
        assert first == (pytest.approx(second, rel=1e-4, abs=1e-5) if isinstance(second, float) else second)


@pytest.mark.parametrize("options", [{}, {"_use_new_zipfile_serialization": False}, {"pickle_protocol": 4}])
def test_what_torch_saves_is_loaded(options: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    expected = value(torch)
    if "_use_new_zipfile_serialization" in options:
        expected["dtypes"] = expected["dtypes"][1:]  # the legacy format has no uint16
    torch.save(expected, path, **options)
    found = door.load(path)
    close(plain(found), plain(expected))
    found["views"]["turned"][2, 1] = -1
    assert found["views"]["part"][0, 0].item() == found["views"]["x"][1, 2].item() == -1


@pytest.mark.parametrize("mmap", [False, True])
def test_what_is_saved_torch_loads(mmap: bool, tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    expected = value(door)
    door.save(expected, path)
    found = torch.load(path, weights_only=True, mmap=mmap)
    close(plain(found), plain(expected))
    assert type(found["model"]) is type(torch.nn.Linear(1, 1).state_dict())
    assert found["model"]._metadata.keys() == {"", "0", "1"}
    assert found["views"]["turned"].stride() == (1, 6)
    found["views"]["turned"][2, 1] = -1
    assert found["views"]["part"][0, 0].item() == -1
