"""One sample of torch's own test suite, computed by torch and by `webgrad.torch`.

In: a function of each library and a sample: torch's arguments. Out: a Tally of what was compared, what is
refused, and what is wrong. A value may differ from torch's by rounding; where it differs by more,
torch is asked again in double precision, and webgrad may be a few times as far from that as torch is.
"""

from __future__ import annotations

import dis
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import FunctionType
from typing import Any

import numpy as np

import webgrad as wg
import webgrad.torch as door
from tests.torch.checking import Array, torch
from tests.torch.namespace import attribute

__all__ = ["Call", "Learnt", "Refusal", "Tally", "compare", "flat", "raised", "seeded", "title"]

# Of each element, and of the largest one.
TOLERANCES = {"float16": (2e-3, 1e-3), "float32": (1e-5, 2e-6), "float64": (1e-9, 1e-10)}
PART = {"complex64": "float32", "complex128": "float64"}
WIDE = {
    torch.float16: torch.float64,
    torch.float32: torch.float64,
    torch.complex64: torch.complex128,
}
PACKED = torch.nn.utils.rnn.PackedSequence
TORCHS_ERROR = 4  # how many times torch's own distance from double precision is allowed
SYMBOLS = torch.dtype | torch.layout | torch.memory_format  # whose values have the same names there
SIGNATURE = re.compile(r"unexpected keyword argument|positional argument")  # what Python says of a call


@dataclass(frozen=True, slots=True)
class Learnt:
    """Results, and what has gradients: a module has parameters beside its arguments."""

    results: Any
    leaves: list[Any]


class Refusal(Exception):
    """An argument of torch that cannot be converted."""


@dataclass(slots=True)
class Tally:
    """What came of some samples."""

    compared: int = 0
    gradients: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    different: Counter[str] = field(default_factory=Counter)  # on purpose: why → how often
    wrong: list[str] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        """Count another tally's samples too."""
        self.compared += other.compared
        self.gradients += other.gradients
        self.refused += other.refused
        self.different += other.different
        self.wrong += other.wrong


@dataclass(frozen=True, slots=True)
class Call:
    """What is called with which arguments, as torch has them."""

    name: str
    ours: Callable[..., Any]
    theirs: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    values: bool = True  # False: of random numbers only the shape and the dtype can be the same
    device: str = "cpu"
    rounding: float = 1.0  # how many times the usual tolerance is allowed


def seeded(name: str) -> np.random.Generator:
    """Random numbers that are the same in every run; torch's as well."""
    seed = zlib.crc32(name.encode())
    torch.manual_seed(seed)
    return np.random.default_rng(seed)


def flat(result: Any) -> Iterator[Any]:
    """What nested tuples, lists and dicts hold, in order."""
    if isinstance(result, dict):
        result = list(result.values())
    if isinstance(result, tuple | list) and not isinstance(result, torch.Size | door.Size):
        for each in result:
            yield from flat(each)
    else:
        yield result


def mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """The same nested arguments with every leaf changed."""
    if isinstance(value, tuple | list) and not isinstance(value, torch.Size | PACKED):
        return type(value)(mapped(each, change) for each in value)
    if isinstance(value, dict):
        return {key: mapped(each, change) for key, each in value.items()}
    if isinstance(value, slice):
        return slice(*(mapped(each, change) for each in (value.start, value.stop, value.step)))
    return change(value)


def array(tensor: Any) -> Array:
    """A torch tensor's values."""
    if tensor.dtype == torch.bfloat16:  # which NumPy does not have
        tensor = tensor.float()
    found: Array = tensor.numpy(force=True)
    return found


def host(value: Any) -> Array:
    """A result of webgrad as an array; what is no number as its name."""
    if isinstance(value, wg.DType | door.device | str):
        return np.asarray(named(value))
    if not isinstance(value, wg.Tensor):
        return np.asarray(value)
    plain = value.detach()
    return plain.to(wg.float32).numpy() if value.dtype == wg.bfloat16 else plain.numpy()


def wanted_of(value: Any) -> Array:
    """A result of torch as an array; what is no number as its name."""
    if isinstance(value, torch.Tensor):
        return array(value)
    return np.asarray(named(value) if isinstance(value, torch.dtype | torch.device | str) else value)


def named(value: Any) -> str:
    """A name without its library's."""
    return str(value).rsplit(".", 1)[-1]


def as_ours(value: Any, device: str) -> Any:
    """An argument of torch as `webgrad.torch` has it: a tensor, a dtype, a shape, a function."""
    if isinstance(value, torch.Tensor):
        tensor = door.adopt(wg.asarray(array(value).copy(), device=device))
        if value.dtype == torch.bfloat16:
            tensor = tensor.to(door.bfloat16)
        return tensor.requires_grad_() if value.requires_grad else tensor
    if isinstance(value, PACKED):
        parts = [as_ours(each, device) for each in value]
        return door.nn.utils.rnn.PackedSequence(*parts)
    if isinstance(value, torch.nn.Module):
        return as_our_module(value, device)
    if isinstance(value, SYMBOLS):
        if not hasattr(door, named(value)):
            raise Refusal(f"no {named(value)}")
        return getattr(door, named(value))
    if isinstance(value, torch.device):
        return door.device(device if value.type == "cpu" else str(value))
    if isinstance(value, torch.Generator):
        return door.Generator()
    if isinstance(value, FunctionType) and value.__module__.startswith("torch.nn.functional"):
        return attribute(f"nn.functional.{value.__name__}")
    if value == "cpu":
        return device
    return door.Size(value) if isinstance(value, torch.Size) else value


# Modules that are arguments: what they were made with
MADE_WITH: dict[str, Callable[[Any], dict[str, Any]]] = {
    "PairwiseDistance": lambda each: {"p": each.norm, "eps": each.eps, "keepdim": each.keepdim},
    "TransformerEncoderLayer": lambda each: {
        "d_model": each.self_attn.embed_dim,
        "nhead": each.self_attn.num_heads,
        "dim_feedforward": each.linear1.out_features,
        "dropout": each.dropout.p,
        "activation": each.activation.__name__,
        "layer_norm_eps": each.norm1.eps,
        "batch_first": each.self_attn.batch_first,
        "norm_first": each.norm_first,
        "bias": each.linear1.bias is not None,
    },
}


def as_our_module(value: Any, device: str) -> Any:
    """A module of torch as one of `webgrad.torch`, with its state."""
    name = type(value).__name__
    if name not in MADE_WITH:
        raise Refusal(f"a {name} of torch as an argument")
    made = getattr(door.nn, name)(**MADE_WITH[name](value)).to(device).train(value.training)
    made.load_state_dict({key: as_ours(each.detach(), device) for key, each in value.state_dict().items()})
    return made


def as_wide(value: Any) -> Any:
    """The same argument in double precision."""
    if isinstance(value, torch.Tensor):
        return value.detach().to(WIDE.get(value.dtype, value.dtype)).requires_grad_(value.requires_grad)
    return WIDE.get(value, value) if isinstance(value, torch.dtype) else value


def copied(value: Any) -> Any:
    """The same argument with memory of its own: some functions write to theirs."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone().requires_grad_(value.requires_grad)
    return value


def detached(value: Any) -> Any:
    """The same argument, which asks for no gradient."""
    return value.detach() if isinstance(value, torch.Tensor) else value


def leaves(args: Any) -> list[Any]:
    """The tensors among arguments that ask for a gradient, in order."""
    return [each for each in flat(args) if getattr(each, "requires_grad", False)]


def total(library: Any, results: Sequence[Any], ways: Sequence[Any]) -> Any:
    """One real number that every differentiable result has a share in."""
    shares = [(result * way).sum() for result, way in zip(results, ways, strict=True)]
    return sum(library.real(each) if library.is_complex(each) else each for each in shares)


class Theirs:
    """What torch computes of a call: results, and gradients for random ways back."""

    def __init__(self, call: Call, change: Callable[[Any], Any], ways: list[Array] | None = None) -> None:
        args, kwargs = mapped(call.args, change), mapped(call.kwargs, change)
        asked = leaves((args, kwargs))
        self.results = list(flat(call.theirs(*args, **kwargs)))
        self.learnt = [at for at, each in enumerate(self.results) if getattr(each, "requires_grad", False)]
        self.gradients: list[Any] = []
        if not asked or not self.learnt:
            return
        through = [self.results[at] for at in self.learnt]
        self.ways = ways or [array(torch.randn(each.shape, dtype=each.dtype)) for each in through]
        back = [torch.from_numpy(way).to(each.dtype) for way, each in zip(self.ways, through, strict=True)]
        self.gradients = list(torch.autograd.grad(total(torch, through, back), asked, allow_unused=True))


def ours(call: Call, change: Callable[[Any], Any]) -> tuple[list[Any], list[Any]]:
    """What webgrad computes of a call: the arguments that ask for a gradient, and results."""
    args, kwargs = mapped(call.args, change), mapped(call.kwargs, change)
    made = call.ours(*args, **kwargs)
    if isinstance(made, Learnt):
        return made.leaves, list(flat(made.results))
    return leaves((args, kwargs)), list(flat(made))


def far(found: Array, wanted: Array, narrow: str, rounding: float) -> Array:
    """Where two arrays differ by more than rounding."""
    relative, absolute = (rounding * each for each in TOLERANCES.get(PART.get(narrow, narrow), (0.0, 0.0)))
    sizes = np.abs(wanted[np.isfinite(wanted)])
    largest = max(float(sizes.max()) if sizes.size else 0.0, 1.0)
    near: Array = np.isclose(found, wanted, rtol=relative, atol=absolute * largest, equal_nan=True)
    return ~near


def difference(
    found: Array, wanted: Array, call: Call, wide: Callable[[], Any], wide_integers: bool = True
) -> str:
    """What is wrong with an array, or nothing."""
    rounding = call.rounding
    if found.shape != wanted.shape:
        return f"shape {found.shape}, torch {wanted.shape}"
    kind = wanted.dtype.kind
    wide_kinds = "fciu" if wide_integers else "fc"
    if found.dtype.kind != kind or (kind in wide_kinds and found.dtype.itemsize != wanted.dtype.itemsize):
        return f"dtype {found.dtype}, torch {wanted.dtype}"
    if kind == "U":
        return "" if found == wanted else f"{found}, torch {wanted}"
    with np.errstate(all="ignore"):
        bad = far(found, wanted, wanted.dtype.name, rounding)
        if bad.any() and wanted.dtype.name in ("float16", "float32", "complex64"):
            true = array(wide())
            ours, theirs = np.abs(found - true), np.abs(wanted - true)
            allowed = TORCHS_ERROR * np.max(theirs[np.isfinite(theirs)], initial=0.0)
            overflown = ~np.isfinite(wanted) & ~np.isfinite(found) & np.isfinite(true)
            bad &= far(found, true, wanted.dtype.name, rounding) & ~(ours <= allowed) & ~overflown
    if not bad.any():
        return ""
    at = tuple(int(each[0]) for each in np.nonzero(bad)) if found.ndim else ()
    return f"{int(bad.sum())} of {bad.size} differ: {found[at]} at {at}, torch {wanted[at]}"


def described(value: Any) -> str:
    """An argument in a few words."""
    if isinstance(value, torch.Tensor):
        return f"{named(value.dtype)}{list(value.shape)}"
    if isinstance(value, dict):
        return "state"
    if isinstance(value, tuple | list) and not isinstance(value, torch.Size):
        return "(" + ", ".join(described(each) for each in value) + ")"
    return str(value)


def title(call: Call) -> str:
    """A call as one line."""
    words = [described(each) for each in call.args]
    words += [f"{key}={described(value)}" for key, value in call.kwargs.items()]
    return f"{call.name}({', '.join(words)})"


def says(error: BaseException) -> str:
    """The first line of a message."""
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"[:160]


def is_refusal(error: BaseException) -> bool:
    """Whether webgrad said no: with an error that it raises itself, or by a name or an argument it lacks."""
    if isinstance(error, wg.WebgradError | Refusal | NotImplementedError):
        return True
    if isinstance(error, TypeError) and SIGNATURE.search(str(error)):
        return True
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    if last is None:
        return False
    home = last.tb_frame.f_code.co_filename.replace("\\", "/")
    if "/webgrad/" in home and "/tests/" not in home:
        return dis.opname[last.tb_frame.f_code.co_code[last.tb_lasti]] == "RAISE_VARARGS"
    return isinstance(error, TypeError | AttributeError)


def raised(call: Call) -> Exception | None:
    """The error of a call that torch refuses, or None."""
    try:
        _, results = ours(call, lambda each: as_ours(each, call.device))
        for each in results:
            host(each)
    except Exception as error:
        return error
    return None


def compare(call: Call) -> Tally:
    """Run one sample through both libraries."""
    tally = Tally()
    try:
        # Converted first, and from copies, since torch's function may write to what it is given.
        theirs = Theirs(call, copied)
    except Exception:
        return tally  # not a sample that torch takes on this machine
    line = title(call)
    wide: list[Theirs] = []

    def widely() -> Theirs:
        if not wide:
            wide.append(Theirs(call, as_wide, getattr(theirs, "ways", None)))
        return wide[0]

    def result_of(number: int) -> Any:
        return widely().results[number]

    try:
        try:
            asked, results = ours(call, lambda each: as_ours(each, call.device))
        except wg.GradientError as error:  # then the values at least
            tally.refused["gradient: " + says(error)] += 1
            asked, results = ours(call, lambda each: as_ours(detached(each), call.device))
        if len(results) != len(theirs.results):
            tally.wrong.append(f"{line}: {len(results)} results, torch {len(theirs.results)}")
            return tally
        for number, (mine, other) in enumerate(zip(results, theirs.results, strict=True)):
            found, wanted = host(mine), wanted_of(other)
            if not call.values:
                wanted, found = np.zeros_like(wanted), np.zeros_like(found)
            if wrong := difference(found, wanted, call, partial(result_of, number), call.device == "cpu"):
                tally.wrong.append(f"{line}: {wrong}")
                return tally
    except Exception as error:
        if is_refusal(error):
            tally.refused[says(error)] += 1
        else:
            tally.wrong.append(f"{line}: {says(error)}")
        return tally
    tally.compared = 1
    if theirs.gradients and call.values and asked:
        add_gradients(tally, call, theirs, widely, asked, results)
    return tally


def add_gradients(
    tally: Tally,
    call: Call,
    theirs: Theirs,
    widely: Callable[[], Theirs],
    asked: list[Any],
    results: list[Any],
) -> None:
    """Compare gradients: the same random ones go back through every result that torch can differentiate."""
    line = title(call)
    through = [results[at] for at in theirs.learnt]
    if any(each is None for each in through):
        tally.refused["a result that torch differentiates is not there"] += 1
        return

    def gradient_of(number: int) -> Any:
        return widely().gradients[number]

    try:
        ways = [wg.asarray(way, device=call.device) for way in theirs.ways]
        total(wg, through, ways).backward()
        for number, (leaf, other) in enumerate(zip(asked, theirs.gradients, strict=True)):
            if other is None and leaf.grad is None:
                continue
            wanted = np.zeros(leaf.shape, leaf.numpy().dtype) if other is None else array(other)
            if leaf.grad is None:
                found = np.zeros_like(wanted)
            else:
                found = host(leaf.grad)
            if wrong := difference(found, wanted, call, partial(gradient_of, number)):
                tally.wrong.append(f"{line}: gradient {number}: {wrong}")
                return
    except Exception as error:
        if is_refusal(error):
            tally.refused["gradient: " + says(error)] += 1
        else:
            tally.wrong.append(f"{line}: gradient: {says(error)}")
        return
    tally.gradients += 1
