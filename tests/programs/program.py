"""What a program of the suite is, and how it is entered.

In: adapters, a few lines for each program: its own classes, made small, with inputs and a loss. Out: records
that a worker runs with torch, and with webgrad.torch in its place. The invariant: nothing of a program is
changed; an adapter calls it as its own scripts do, with numbers that NumPy draws.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

__all__ = [
    *(
        "STAND_INS",
        "STEPS",
        "Model",
        "Program",
        "Script",
        "classifier",
        "floats",
        "inert",
        "integers",
        "language",
    ),
    *("loaded", "trained"),
]

STEPS = 5
STAND_INS = Path(__file__).with_name("stand_ins")  # of packages that are not here


@dataclass(frozen=True, slots=True)
class Model:
    """A training step of a program's own modules, and what it is called with."""

    modules: Mapping[str, Any]  # whose weights are the same on both sides
    step: Callable[..., Sequence[Any]]  # one training step; its outputs, the last of them a loss
    batches: Sequence[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Script:
    """A program's own script, run as it stands until it has called `backward` so many times."""

    path: str
    arguments: Sequence[str] = ()
    prepare: Callable[[Path], None] = lambda folder: None  # writes what it reads into the working folder
    most: int = STEPS
    without: Sequence[str] = ()  # packages that it imports and that are not needed
    double: bool = False  # with floats of 64 bits, as in `trained`


@dataclass(frozen=True, slots=True)
class Program:
    """A program: where its files are, and how it is entered."""

    name: str
    repository: str
    enter: Callable[[], Model] | Script
    folder: str = ""  # of the repository, from which it imports


def loaded(module: str) -> Any:
    """A module of the program's own files."""
    return importlib.import_module(module)


def inert(*packages: str) -> None:
    """Stand-ins for packages that a program imports and that what is run of it does not need."""
    for name in packages:
        sys.modules[name] = Inert(name)
    if not any(isinstance(each, _InertFinder) for each in sys.meta_path):
        sys.meta_path.insert(0, _InertFinder())


class Inert(ModuleType):
    """A package, module, function and value in one, that does nothing and gives itself."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__spec__ = ModuleSpec(name, None)
        self.__path__ = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Inert(name)

    def __call__(self, *args: Any, **options: Any) -> Any:
        return self

    def __getitem__(self, key: Any) -> Any:
        return self

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *error: object) -> None: ...

    def __mro_entries__(self, bases: Any) -> tuple[type, ...]:
        return ()


class _InertFinder:
    """Finds the parts of packages that are inert."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        above = sys.modules.get(name.partition(".")[0])
        return ModuleSpec(name, self, is_package=True) if isinstance(above, Inert) else None  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return Inert(spec.name)

    def exec_module(self, module: ModuleType) -> None: ...


def floats(*shape: int, seed: int = 0, scale: float = 1.0) -> Any:
    """Normal numbers as a tensor."""
    import torch

    values = np.random.default_rng((seed, *shape)).standard_normal(shape) * scale
    return torch.from_numpy(values.astype(np.float32))


def integers(high: int, *shape: int, seed: int = 0) -> Any:
    """Numbers below `high` as a tensor of int64."""
    import torch

    return torch.from_numpy(np.random.default_rng((seed, *shape)).integers(0, high, shape))


def trained(
    model: Any,
    compute: Callable[..., Sequence[Any]],
    batch: Callable[[int], tuple[Any, ...]],
    rate: float = 0.01,
    double: bool = False,
) -> Model:
    """A model under SGD with momentum: `compute(*batch)` gives outputs, the last of them a loss.

    With `double` all floats have 64 bits: in a deep net with batch normalisation some ReLU's input is so near
    to zero that the rounding of 32 bits decides, and few samples make the difference larger at every step.
    """
    import torch

    if double:
        model.double()
    optimiser = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=rate, momentum=0.9)

    def step(*given: Any) -> Sequence[Any]:
        optimiser.zero_grad()
        outputs = compute(*given)
        outputs[-1].backward()
        optimiser.step()
        return outputs

    def widened(each: Any) -> Any:
        return each.double() if double and each.is_floating_point() else each

    model.train()
    batches = [tuple(map(widened, batch(seed))) for seed in range(STEPS)]
    return Model({"model": model}, step, batches)


def classifier(model: Any, *shape: int, classes: int = 10, samples: int = 4, double: bool = False) -> Model:
    """A model that is trained to tell classes from inputs of a shape."""
    import torch

    def compute(x: Any, labels: Any) -> Sequence[Any]:
        output = model(x)
        return output, torch.nn.functional.cross_entropy(output, labels)

    def batch(seed: int) -> tuple[Any, ...]:
        return floats(samples, *shape, seed=seed), integers(classes, samples, seed=seed)

    return trained(model, compute, batch, double=double)


def language(
    model: Any, words: int, length: int, compute: Callable[..., Sequence[Any]], samples: int = 4
) -> Model:
    """A model that is trained to tell each word from those before it."""

    def batch(seed: int) -> tuple[Any, ...]:
        text = integers(words, samples, length + 1, seed=seed)
        return text[:, :-1].contiguous(), text[:, 1:].contiguous()

    return trained(model, compute, batch, 0.05)
