"""torch.save and torch.load: values come back, what shares memory still does, code is refused."""

from __future__ import annotations

import argparse
import io
import zipfile
from collections import Counter, OrderedDict, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webgrad as wg
import webgrad.torch as torch
from webgrad.torch.serialization import safe_globals

FILES = Path(__file__).parents[1] / "io"


def saved(value: Any, **options: Any) -> Any:
    """A value, written and read again."""
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return torch.load(file, **options)


@pytest.mark.parametrize("name", ["torch-zip.pt", "torch-legacy.pt"])
def test_files_of_torch_itself(name: str) -> None:
    found = torch.load(FILES / name)
    model = found["model"]
    assert isinstance(model, OrderedDict)
    assert isinstance(model["weight"], torch.nn.Parameter)
    assert type(model["turned"]) is torch.Tensor
    assert model["turned"].tolist() == [[0, 3], [1, 4], [2, 5]]
    assert found["ids"].tolist() == [1, 1 << 40]
    assert found["half"].dtype is torch.bfloat16
    assert (found["dtype"], found["size"]) == (torch.float16, torch.Size([2, 3]))
    assert (found["lr"], found["names"], found["none"].shape) == (0.1, ["a", ("b", None, True)], (0, 3))
    with torch.no_grad():
        model["weight"][1, 1] = 9  # which they all share, as they did in torch
    assert (model["turned"][1, 1].item(), model["row"][1].item(), model["part"][1, 0].item()) == (9, 9, 9)


def test_plain_values() -> None:
    values: list[Any] = [
        *(
            None,
            True,
            3,
            -1,
            1 << 31,
            1 << 70,
            0.5,
            1 + 2j,
            "ü",
            b"\0\xff",
            bytearray(b"a"),
            (),
            (1, "a"),
            {1, 2},
        ),
        *(frozenset("a"), {"a": [1]}, OrderedDict(b=2), defaultdict(list, {"x": [1]}), Counter("aab")),
        *(
            argparse.Namespace(lr=0.1),
            torch.Size([2, 3]),
            torch.int16,
            torch.device("cpu"),
            list(range(3000)),
        ),
        *(np.float64(0.5), np.bool_(True)),
    ]
    found = saved(values)
    assert found == values
    assert list(map(type, found)) == list(map(type, values))
    array = saved(np.arange(6, dtype=np.int16).reshape(2, 3).T)
    assert (array.dtype, array.tolist()) == (np.int16, [[0, 3], [1, 4], [2, 5]])


DTYPES = (
    *("bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"),
    *("float16", "bfloat16", "float32", "float64", "complex64"),
)


@pytest.mark.parametrize("dtype", DTYPES)
def test_tensors_of_every_dtype(dtype: str) -> None:
    x = torch.tensor([[0, 1, 1], [1, 0, 1]]).to(getattr(torch, dtype))
    for each in (x, x[1, 2], x[:, :0]):
        found = saved(each)
        assert (found.dtype, found.shape, found.tolist()) == (each.dtype, each.shape, each.tolist())


def test_what_shares_memory_still_does() -> None:
    x = torch.arange(24.0).reshape(4, 6)
    views = {
        "x": x,
        "turned": x.t(),
        "row": x[2],
        "part": x[1:3, 2:5:2],
        "wide": x[3].expand(2, 6),
        "cube": x.view(2, 2, 6),
    }
    found = saved(views | {"alone": torch.zeros(1000, 1000)[0, :2]})
    assert {name: each.tolist() for name, each in found.items() if name != "alone"} == {
        name: each.tolist() for name, each in views.items()
    }
    found["part"][1, 0] = -1  # which is x[2, 2]
    assert [found["x"][2, 2].item(), found["turned"][2, 2].item(), found["row"][2].item()] == [-1, -1, -1]
    assert found["cube"][1, 0, 2].item() == -1
    file = io.BytesIO()
    torch.save(torch.zeros(1000, 1000)[0, :2], file)
    assert len(file.getvalue()) < 4000  # nothing of what no tensor shows
    same = saved([x, x])
    assert same[0] is same[1]


def test_a_training_state_goes_on(tmp_path: Path) -> None:
    def parts() -> tuple[Any, Any]:
        torch.manual_seed(1)
        model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
        return model, torch.optim.Adam(model.parameters(), lr=0.1)

    def step(model: Any, optimiser: Any) -> float:
        optimiser.zero_grad()
        loss = model(torch.arange(12.0).reshape(4, 3)).pow(3).sum()
        loss.backward()
        optimiser.step()
        return float(loss)

    model, optimiser = parts()
    step(model, optimiser)
    path = tmp_path / "state.pt"
    torch.save({"model": model.state_dict(), "optimiser": optimiser.state_dict(), "epoch": 1}, path)
    expected = step(model, optimiser)
    again, its = parts()
    state = torch.load(path, map_location="cpu", weights_only=True)
    again.load_state_dict(state["model"])
    its.load_state_dict(state["optimiser"])
    assert step(again, its) == expected
    torch.save(model.state_dict(), tmp_path / "w.safetensors")
    assert set(torch.load(tmp_path / "w.safetensors")) == set(model.state_dict())
    mapped = torch.load(path, mmap=True)["model"]["0.weight"]
    path.unlink()
    assert mapped.shape == (4, 3)


def test_requires_grad_stays() -> None:
    found = saved(
        [torch.nn.Parameter(torch.ones(2), False), torch.ones(2, requires_grad=True), torch.ones(2)]
    )
    assert [type(each) is torch.nn.Parameter for each in found] == [True, False, False]
    assert [each.requires_grad for each in found] == [False, True, False]


def test_places() -> None:
    x = {"x": torch.ones(2)}
    asked: list[Any] = []

    def chosen(storage: Any, location: str) -> Any:
        asked.append(location)
        return storage.cpu()

    for where in (
        None,
        "cpu",
        torch.device("cpu"),
        {"cpu": "cpu"},
        chosen,
        lambda storage, location: storage,
    ):
        assert saved(x, map_location=where)["x"].device == "cpu"
    assert asked == ["cpu"]


@pytest.mark.gpu
def test_on_a_gpu() -> None:
    found = saved([torch.arange(4), torch.ones(2, 3).t()], map_location="webgpu:0")
    assert [each.device for each in found] == ["webgpu:0"] * 2
    assert found[0].tolist() == [0, 1, 2, 3]
    assert saved(found[1]).tolist() == [[1, 1]] * 3
    if found[0].dtype is torch.int32:
        with pytest.raises(RuntimeError, match=r'no integers of 64 bits.*map_location="cpu"'):
            saved(torch.tensor([1 << 40]), map_location="webgpu:0")


@dataclass
class Settings:
    width: int = 3


def test_programs_are_refused_and_what_is_allowed_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    torch.save(1, path)
    with pytest.raises(RuntimeError, match=r"a Linear is a program.*model\.state_dict\(\)"):
        torch.save(torch.nn.Linear(2, 2), path)
    with pytest.raises(RuntimeError, match=r"Settings is neither a tensor nor a plain value"):
        torch.save({"settings": Settings()}, path)
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(RuntimeError, match="nested too deeply"):
        torch.save(deep, path)
    assert torch.load(path) == 1
    data = b"\x80\x02c" + __name__.encode() + b"\nSettings\n)\x81}X\x05\0\0\0widthK\x07sb."
    path = tmp_path / "settings.pt"
    torch.save(None, path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("settings/data.pkl", data)
    with pytest.raises(wg.ModelFileError, match=r"it holds .*Settings, which is neither"):
        torch.load(path, weights_only=False)
    with safe_globals([Settings]):
        assert torch.load(path) == Settings(7)
    with pytest.raises(wg.ModelFileError):
        torch.load(path)


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        torch.load(tmp_path / "none.pt")
    with pytest.raises(RuntimeError, match="Parent directory"):
        torch.save(1, tmp_path / "none" / "x.pt")


def test_a_value_that_contains_itself() -> None:
    value: list[Any] = [1]
    value.append({"back": value})
    found = saved(value)
    assert found[1]["back"] is found
