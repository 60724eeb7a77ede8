"""One thing computed by torch and by webgrad: the same results, and the same gradients.

In: what to compute in each, and descriptions of the inputs. A random gradient is sent into every floating
result; the gradients of all floating inputs and of all parameters must agree.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import webgrad as wg

torch = pytest.importorskip("torch", reason="torch is not installed: `make test-torch` runs these")
torch.set_num_threads(1)

__all__ = [
    "Array",
    "Input",
    "bools",
    "classes",
    "close",
    "compare",
    "compare_modules",
    "distinct",
    "normal",
    "signs",
    "torch",
    "uniform",
]

Array = np.ndarray[Any, Any]
RELATIVE, ABSOLUTE = 2e-4, 2e-5  # float32: of the largest number in the array


@dataclass(frozen=True, slots=True)
class Input:
    """How an input is drawn; what is not of floats, or is fixed, gets no gradient."""

    draw: Callable[[np.random.Generator], Array]
    fixed: bool = False


def normal(*shape: int, fixed: bool = False) -> Input:
    """Numbers of the normal distribution."""
    return Input(lambda random: random.standard_normal(shape).astype(np.float32), fixed)


def uniform(low: float, high: float, *shape: int, fixed: bool = False) -> Input:
    """Numbers of a range."""
    return Input(lambda random: random.uniform(low, high, shape).astype(np.float32), fixed)


def distinct(*shape: int) -> Input:
    """Numbers that are clearly apart, for what compares: no ties, whatever rounding does."""

    def draw(random: np.random.Generator) -> Array:
        count = int(np.prod(shape))
        return ((random.permutation(count) - count / 2) * 0.1 + 0.03).reshape(shape).astype(np.float32)

    return Input(draw)


def classes(count: int, *shape: int) -> Input:
    """Integers from 0 on."""
    return Input(lambda random: random.integers(0, count, shape))


def bools(*shape: int) -> Input:
    """True and False; the first of each row is False, so that no row is all True."""

    def draw(random: np.random.Generator) -> Array:
        values = random.random(shape) < 0.4
        values[..., 0] = False
        return values

    return Input(draw)


def signs(*shape: int) -> Input:
    """-1 and 1."""
    return Input(lambda random: random.choice(np.asarray([-1.0, 1.0], np.float32), shape), fixed=True)


def flat(result: Any) -> Iterator[Any]:
    """The tensors of nested tuples and lists."""
    if isinstance(result, tuple | list):
        for each in result:
            yield from flat(each)
    elif result is not None:
        yield result


def close(name: str, ours: Any, theirs: Any, scale: float = 1.0) -> None:
    """Two arrays agree, to rounding relative to their largest number; `scale` allows more of it."""
    found, wanted = np.asarray(ours), np.asarray(theirs)
    assert found.shape == wanted.shape, f"{name}: shape {found.shape}, torch {wanted.shape}"
    finite = np.abs(wanted[np.isfinite(wanted)]) if wanted.dtype.kind == "f" else np.zeros(0)
    largest = max(float(finite.max()) if finite.size else 0.0, 1.0)
    np.testing.assert_allclose(
        found, wanted, rtol=scale * RELATIVE, atol=scale * ABSOLUTE * largest, err_msg=name
    )


def drawn(name: str, inputs: tuple[Input, ...]) -> tuple[np.random.Generator, list[Array]]:
    """The inputs of a case, the same in every run."""
    random = np.random.default_rng(zlib.crc32(name.encode()))
    return random, [each.draw(random) for each in inputs]


def leaves(inputs: tuple[Input, ...], arrays: list[Array]) -> tuple[list[Any], list[Any]]:
    """The inputs as tensors of webgrad and of torch."""
    ours, theirs = [], []
    for how, array in zip(inputs, arrays, strict=True):
        learnt = array.dtype.kind == "f" and not how.fixed
        narrow = array.astype(np.int32) if array.dtype.kind == "i" else array
        ours.append(wg.asarray(narrow).requires_grad_(learnt) if learnt else wg.asarray(narrow))
        theirs.append(torch.tensor(array, requires_grad=learnt))
    return ours, theirs


def send_back(random: np.random.Generator, ours: Any, theirs: Any) -> None:
    """Compare results; then let the same random gradients flow back from all floating ones."""
    found, wanted = list(flat(ours)), list(flat(theirs))
    assert len(found) == len(wanted)
    our_total: Any = 0.0
    their_total: Any = 0.0
    learnt = False
    for number, (mine, other) in enumerate(zip(found, wanted, strict=True)):
        close(f"result {number}", mine.detach().numpy(), other.detach().numpy())
        if other.requires_grad:
            gradient = random.standard_normal(tuple(other.shape)).astype(np.float32)
            our_total = our_total + wg.sum(mine * wg.asarray(gradient))
            their_total = their_total + (other * torch.tensor(gradient)).sum()
            learnt = True
    if learnt:
        our_total.backward()
        their_total.backward()


def compare_gradients(names: Mapping[str, tuple[Any, Any]]) -> None:
    """Gradients by name: ours and torch's."""
    for name, (mine, other) in names.items():
        if other.grad is None:
            assert mine.grad is None or not np.any(mine.grad.numpy()), f"{name}: torch gives no gradient"
            continue
        assert mine.grad is not None, f"{name}: no gradient"
        close(f"gradient of {name}", mine.grad.numpy(), other.grad.numpy())


def compare(
    name: str, ours: Callable[..., Any], theirs: Callable[..., Any], inputs: tuple[Input, ...]
) -> None:
    """A function of tensors in both libraries."""
    random, arrays = drawn(name, inputs)
    mine, other = leaves(inputs, arrays)
    send_back(random, ours(*mine), theirs(*other))
    compare_gradients(
        {
            f"input {number}": pair
            for number, pair in enumerate(zip(mine, other, strict=True))
            if pair[1].requires_grad
        }
    )


def compare_modules(
    name: str,
    make: Callable[[Any], Any],
    inputs: tuple[Input, ...],
    call: Callable[..., Any] | None = None,
    training: bool = True,
) -> None:
    """A module of both libraries, made by the same call; torch's state goes into ours by name."""
    torch.manual_seed(zlib.crc32(name.encode()))
    random, arrays = drawn(name, inputs)
    mine, other = leaves(inputs, arrays)
    their_module, our_module = make(torch.nn), make(wg.nn)
    state = their_module.state_dict()
    assert list(our_module.state_dict()) == list(state), "names of the state"
    for key, value in state.items():  # not the initial zeros and ones, which hide mistakes
        if value.dtype.is_floating_point:
            noise = torch.tensor(random.uniform(0.05, 0.5, tuple(value.shape)).astype(np.float32))
            state[key] = value + noise
    their_module.load_state_dict(state)
    our_module.load_state_dict({key: value.numpy() for key, value in state.items()})
    their_module.train(training)
    our_module.train(training)
    if call is None:
        send_back(random, our_module(*mine), their_module(*other))
    else:
        send_back(random, call(our_module, *mine), call(their_module, *other))
    pairs = {
        f"input {number}": pair
        for number, pair in enumerate(zip(mine, other, strict=True))
        if pair[1].requires_grad
    }
    parameters = dict(our_module.named_parameters())
    pairs |= {key: (parameters[key], value) for key, value in their_module.named_parameters()}
    compare_gradients(pairs)
    after = our_module.state_dict()
    for key, value in their_module.state_dict().items():  # running statistics
        close(f"{key} afterwards", after[key].numpy(), value.numpy())
