"""Kernels of every example, forwards and in a step of training, pass Tint, for all kinds of adapters."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import webgrad as wg
from tests.wgsl import tint
from webgrad import nn

ROOT = Path(__file__).parents[2]


def _trained(model: nn.Module, loss: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """A step of training; its optimiser has made its state."""
    optimiser = wg.optim.AdamW(model.parameters())

    def step(x: Any, y: Any) -> Any:
        optimiser.zero_grad()
        found = loss(model(x), y)
        found.backward()
        optimiser.step()
        return found

    return step


def _pictures(examples: Any) -> dict[str, tuple[Any, Any]]:
    net = examples("fashion_mnist").Net(4)
    x, y = wg.zeros((2, 28, 28), dtype=wg.uint8), wg.zeros(2, dtype=wg.int32)
    step = _trained(net, nn.CrossEntropyLoss())
    step(x, y)
    return {"step": (step, (x, y)), "classify": (net, x)}


def _letters(examples: Any) -> dict[str, tuple[Any, Any]]:
    module = examples("char_gpt")
    gpt = module.Gpt(30, 16, 32, 2, 2)
    x = wg.zeros((2, 16), dtype=wg.int32)
    step = _trained(gpt, module.loss_of)
    step(x, x)
    return {"step": (step, (x, x)), "logits": (gpt, x)}


def _regression(examples: Any) -> dict[str, tuple[Any, Any]]:
    x, y = wg.zeros((256, 1)), wg.zeros((256, 1))
    step = _trained(nn.Linear(1, 1), wg.mse_loss)
    step(x, y)
    return {"step": (step, (x, y))}


def _clothes(examples: Any) -> dict[str, tuple[Any, Any]]:
    net = examples("diffusion").network(4)
    x, times, classes = wg.zeros((2, 1, 28, 28)), wg.zeros(2), wg.zeros(2, dtype=wg.int32)
    step = _trained(Given(net), wg.mse_loss)
    step((x, times, classes), x)
    return {"step": (step, ((x, times, classes), x)), "velocity": (net, (x, times, classes))}


class Given(nn.Module):
    """A network whose inputs come as one."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, inputs: Any) -> Any:
        return self.net(*inputs)


def _graph(examples: Any) -> dict[str, tuple[Any, Any]]:
    w, b = wg.random.normal((256, 128)), wg.zeros(128)
    return {"graph": (lambda x: wg.softmax(wg.gelu(x @ w + b), axis=-1), wg.zeros((64, 256)))}


EXAMPLES: dict[str, Callable[[Any], dict[str, tuple[Any, Any]]]] = {
    "fashion_mnist.py": _pictures,
    "char_gpt.py": _letters,
    "diffusion.py": _clothes,
    "linear_regression.py": _regression,
    "README.md": _graph,
}


@pytest.fixture
def examples(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """A module of examples/ by its name."""
    monkeypatch.syspath_prepend(ROOT / "examples")
    return importlib.import_module


@tint.needs_tint
def test_kernels_of_examples(examples: Any, tmp_path: Path) -> None:
    texts: dict[str, str] = {}
    for name, example in EXAMPLES.items():
        made = example(examples)
        functions = {key: function for key, (function, _) in made.items()}
        inputs = {key: given for key, (_, given) in made.items()}
        page = wg.export(functions, inputs, tmp_path / name)
        plan = json.loads((page.parent / "plan.json").read_text())
        assert len(plan["variants"]) >= 3, name
        texts |= {f"{name} {number}": text for number, text in enumerate(plan["texts"])}
    assert len(texts) > 60
    assert {label: errors for label, errors in tint.ask(texts).items() if errors} == {}


def test_every_example_is_asked_about() -> None:
    helpers = {"arguments.py", "pictures.py", "text_boxes.py"}  # modules of the others
    fetched = {"file_kinds.py", "read_text.py", "voice_activity.py"}  # they run models that are fetched
    programs = {each.name for each in (ROOT / "examples").glob("*.py")} - helpers - fetched
    assert programs == set(EXAMPLES) - {"README.md"}
