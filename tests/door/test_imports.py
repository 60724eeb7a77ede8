"""Programs that import torch get webgrad.torch: the finder, and `python -m webgrad.torch`."""

from __future__ import annotations

import importlib
import importlib.metadata
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import webgrad.torch as door

PROGRAM = """
import sys
import torch, torch.nn as nn
import torch.nn.functional as F
from torch.optim import Adam
from neighbour import number
print(sys.argv[1:], __name__, torch.__name__, nn.Linear(2, number)(torch.ones(1, 2)).size())
"""


@pytest.fixture(autouse=True)
def without_torch(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As in a process where torch was never imported."""
    for name in [each for each in sys.modules if each == "torch" or each.startswith("torch.")]:
        monkeypatch.delitem(sys.modules, name)
    yield
    door.uninstall()


def test_torch_and_its_submodules_are_webgrads() -> None:
    door.install()
    door.install()  # again is no fault
    for name in ("torch", "torch.nn", "torch.nn.functional", "torch.optim.lr_scheduler", "torch.autograd"):
        found = importlib.import_module(name)
        assert found is importlib.import_module("webgrad." + name)
        assert found.__name__ == found.__spec__.name == "webgrad." + name  # type: ignore[union-attr]
    assert importlib.metadata.version("torch") == door.__version__


def test_a_module_that_is_missing_is_named() -> None:
    door.install()
    with pytest.raises(ModuleNotFoundError, match=r"webgrad\.torch has no module 'nothing', so torch\.noth"):
        importlib.import_module("torch.nothing")
    with pytest.raises(ImportError):
        exec("from torch import nothing")


def test_torch_that_is_imported_already_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", ModuleType("torch"))
    with pytest.raises(ImportError, match=r"call webgrad\.torch\.install\(\) before"):
        door.install()


def test_uninstalled_it_is_torch_again() -> None:
    door.install()
    importlib.import_module("torch.nn")
    door.uninstall()
    assert not [each for each in sys.modules if each == "torch" or each.startswith("torch.")]
    assert not [each for each in sys.meta_path if type(each).__module__ == "webgrad.torch.imports"]


def test_a_program_runs_unchanged(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "neighbour.py").write_text("number = 3")
    command = [sys.executable, "-m", "webgrad.torch", str(tmp_path / "program.py"), "--lr", "1"]
    found = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert found.stdout == "['--lr', '1'] __main__ webgrad.torch torch.Size([1, 3])\n", found.stderr
