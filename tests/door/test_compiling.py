"""torch.compile: programs stay captured, and what a captured call could not repeat is a plain call."""

from __future__ import annotations

import copy
import textwrap
import warnings
from typing import Any

import pytest

import webgrad.torch as torch
from webgrad.torch.compiling import Compiled

nn = torch.nn


def run(program: str, **given: Any) -> dict[str, Any]:
    """The globals of a script after it ran; `runs` counts how often Python code of `work` ran."""
    names: dict[str, Any] = {
        "__name__": "program",
        "torch": torch,
        "nn": torch.nn,
        "F": torch.nn.functional,
        **given,
    }
    exec(textwrap.dedent(program), names)
    return names


TRAINING = """
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
opt = torch.optim.Adam(model.parameters(), lr=0.05)
scheduler = torch.optim.lr_scheduler.StepLR(opt, 2, 0.5)
x, y = torch.randn(16, 4), torch.randint(0, 2, (16,))
losses = []
@MAYBE
def train(x, y):
    opt.zero_grad()
    loss = nn.CrossEntropyLoss()(model(x), y)
    loss.backward()
    opt.step()
    return loss
for step in range(8):
    losses.append(train(x, y).item())
    scheduler.step()
"""


def captured(function: Any) -> int:
    """How many captures jit keeps of it."""
    found: int = function.captures
    return found


def captures(names: dict[str, Any], name: str = "train") -> int:
    compiled = names[name]
    assert isinstance(compiled, Compiled)
    return sum(captured(each._fast) for each in compiled._entries.values())


def test_a_training_step_stays_captured_and_gives_what_it_gives() -> None:
    plain = run(TRAINING.replace("@MAYBE", ""))
    fast = run(TRAINING.replace("@MAYBE", "@torch.compile"))
    assert fast["losses"] == pytest.approx(plain["losses"], rel=1e-5)
    assert captures(fast) == 1
    assert not fast["train"].reason


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("assert loss.item() == loss.item()", "inside a function"),
        ("print(end='')", "calls print"),
        ("counter.count += 1", "is another one after each call"),
        ("found.append(1)", "is another one after each call"),
        ("counts['calls'] = counts.get('calls', 0) + 1", "is another one after each call"),
        ("global total; total += 1", "'total' another value"),
        ("scheduler.step()", "is another one after each call"),
        ("offset = random.random()", "calls random"),
        ("helper()", "calls print"),
        ("counter.shout()", "calls print"),
    ],
)
def test_what_a_capture_would_not_repeat_is_a_plain_call(line: str, reason: str) -> None:
    import random

    program = f"""
    found, total, counts = [], 0, {{}}
    class Counter:
        count = 0
        def shout(self):
            print(end="")
    def helper():
        print(end="")
    counter = Counter()
    model = nn.Linear(2, 1)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(opt, 0.5)
    @torch.compile
    def train(x):
        opt.zero_grad()
        loss = model(x).sum()
        loss.backward()
        opt.step()
        {line}
        return loss
    for step in range(6):
        train(torch.ones(2, 2))
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        names = run(program, random=random)
    assert reason in names["train"].reason
    assert len(caught) == 1
    assert len(names["found"]) in (0, 6)
    assert names["total"] == (6 if "total" in line else 0)
    assert names["counter"].count == (6 if "count +=" in line else 0)
    assert names["counts"].get("calls", 6) == 6


def test_a_model_follows_its_mode_and_drops_others_each_time() -> None:
    model = torch.compile(nn.Sequential(nn.Linear(8, 64), nn.Dropout(0.5)))
    x = torch.ones(1, 8)
    with torch.no_grad():
        drawn = [model(x) for _ in range(5)]
        assert len({tuple(each.flatten().tolist()) for each in drawn}) == 5
        model.eval()
        still = [model(x) for _ in range(4)]
        assert all(torch.equal(each, still[0]) for each in still)
        model.train()
        assert not torch.equal(model(x), model(x))


def test_a_model_is_differentiated_outside() -> None:
    model = torch.compile(nn.Linear(3, 1))
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(5):
        opt.zero_grad()
        loss = (model(torch.ones(2, 3)) ** 2).mean()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    assert losses == sorted(losses, reverse=True)
    assert isinstance(model(torch.ones(1, 3)), torch.Tensor)


def test_a_compiled_module_has_torchs_names_and_is_copied_whole() -> None:
    model = torch.compile(nn.Linear(2, 1))
    assert list(model.state_dict()) == ["_orig_mod.weight", "_orig_mod.bias"]
    assert model.in_features == 2
    other = copy.deepcopy(model)
    with torch.no_grad():
        for _ in range(3):
            first = model(torch.ones(1, 2))
        other.weight.zero_()
        other.bias.zero_()
        assert other(torch.ones(1, 2)).item() == 0.0
        assert model(torch.ones(1, 2)).item() == first.item()


def test_numbers_are_numbers_and_plain_attributes_are_looked_at() -> None:
    names = run("""
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.factor = 1
        def forward(self, x, n):
            return x.reshape(n, -1).sum(1) * self.factor
    model = Scaled()
    fast = torch.compile(model)
    found = []
    with torch.no_grad():
        for n in (1, 2):
            for factor in (1, 2, 2, 2):
                model.factor = factor
                found.append(fast(torch.ones(4), n).tolist())
        many = [fast(torch.ones(12), n).shape[0] for n in (1, 2, 3, 4, 6, 12) * 3]
    """)
    assert names["found"] == [[4.0], *[[8.0]] * 3, [2.0, 2.0], *[[4.0, 4.0]] * 3]
    assert names["many"] == [1, 2, 3, 4, 6, 12] * 3


def test_fullgraph_raises() -> None:
    read = torch.compile(lambda x: x * x.sum().item(), fullgraph=True)
    with torch.no_grad():
        read(torch.ones(2))
        with pytest.raises(RuntimeError, match="fullgraph"):
            read(torch.ones(2))
