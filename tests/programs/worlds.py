"""Programs about graphs, functions, scenes and motion: their modules entered directly.

In: the programs' own classes. Out: rows of the table of programs.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from tests.programs.program import STEPS, Model, Program, classifier, floats, integers, loaded, trained

__all__ = ["programs"]

NODES = 20


def graph(model: Any) -> Model:
    """A net that tells the classes of a graph's nodes."""
    import torch

    edges = ((integers(4, NODES, NODES) == 0) | torch.eye(NODES).bool()).float()

    def compute(x: Any, labels: Any) -> Sequence[Any]:
        output = model(x, edges)
        return output, torch.nn.functional.nll_loss(output, labels)

    return trained(model, compute, lambda seed: (floats(NODES, 12, seed=seed), integers(4, NODES, seed=seed)))


def convolution() -> Model:
    """The graph convolutional net of tkipf's."""
    return graph(loaded("pygcn.models").GCN(12, 16, 4, 0.0))


def attention() -> Model:
    """The graph attention net of Diego999's."""
    return graph(loaded("models").GAT(12, 8, 4, 0.0, 0.2, 2))


def kan() -> Model:
    """The efficient KAN, with splines."""
    return classifier(loaded("efficient_kan.kan").KAN([12, 8, 10]), 12)


def radiance() -> Model:
    """NeRF's net on embedded points and directions."""
    import torch

    of = loaded("run_nerf_helpers")
    points, width = of.get_embedder(6)
    views, across = of.get_embedder(3)
    model = of.NeRF(D=4, W=32, input_ch=width, input_ch_views=across, skips=[2], use_viewdirs=True)

    def compute(x: Any, direction: Any, target: Any) -> Sequence[Any]:
        output = model(torch.cat([points(x), views(direction)], -1))
        return output, of.img2mse(torch.sigmoid(output[..., :3]), target)

    def batch(seed: int) -> Any:
        return floats(64, 3, seed=seed), floats(64, 3, seed=seed + 9), floats(64, 3, seed=seed + 19)

    return trained(model, compute, batch)


def differential(adjoint: bool) -> Model:
    """A neural differential equation, solved by torchdiffeq with steps that it chooses."""
    import torch

    of = loaded("torchdiffeq")
    solve = of.odeint_adjoint if adjoint else of.odeint

    class Field(torch.nn.Module):  # type: ignore[misc]
        """How quickly a state changes."""

        def __init__(self) -> None:
            super().__init__()
            self.net = torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2))

        def forward(self, t: Any, y: Any) -> Any:
            return self.net(y)

    model = Field()
    times = torch.linspace(0.0, 1.0, 4)

    def compute(x: Any, target: Any) -> Sequence[Any]:
        output = solve(model, x, times, rtol=1e-4, atol=1e-4, method="rk4" if adjoint else "dopri5")
        return output, torch.mean(torch.abs(output - target))

    return trained(model, compute, lambda seed: (floats(8, 2, seed=seed), floats(4, 8, 2, seed=seed)))


def policy() -> Model:
    """An episode of the example of REINFORCE: an action is drawn and read in each of its steps."""
    import torch

    sys.argv = ["reinforce.py"]
    of = loaded("reinforce")
    states = [floats(4, seed=seed).numpy() for seed in range(20)]

    def step(shift: Any) -> Sequence[Any]:
        for state in states:
            action = of.select_action(state + shift.numpy())
            of.policy.rewards.append(float(action) + state[0])
        chances = torch.exp(torch.cat(of.policy.saved_log_probs))
        of.finish_episode()
        return chances, chances.detach().sum()

    return Model({"policy": of.policy}, step, [(floats(4, seed=seed + 30),) for seed in range(STEPS)])


def programs() -> Iterator[Program]:
    """All of them."""
    yield Program("policy", "pytorch/examples", policy, "reinforcement_learning")
    yield Program("gat", "Diego999/pyGAT", attention)
    yield Program("gcn", "tkipf/pygcn", convolution)
    yield Program("kan", "Blealtan/efficient-kan", kan, "src")
    yield Program("nerf", "yenchenlin/nerf-pytorch", radiance)
    yield Program("neural-ode", "rtqichen/torchdiffeq", partial(differential, False))
    yield Program("neural-ode-adjoint", "rtqichen/torchdiffeq", partial(differential, True))
