"""Random programs over torch's interface, as lines of text that run with either library.

In: a seed. Out: lines such as `v3 = v1.sum(dim=-1, keepdim=True)`, and the arrays that they begin with; `run`
gives what each line did, and the values at the end. Sides are often equal, values often 0 or tied, and any
value may be written to after views of it were taken.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Program", "run", "write_program"]

# {d} a dimension, {i} an index, {s} a number, {t} a dtype; y is another value, or a number where {y} stands
TEXT = """
x.abs() x.neg() x.exp() x.sigmoid() x.tanh() x.relu() x.sign() x.floor() x.ceil() x.round() x.trunc()
x.frac() x.square() x.sin() x.cos() x.log1p() x.sqrt() x.rsqrt() x.reciprocal() x.erf() x.expm1()
x.logical_not() x.isnan() x.abs_() x.neg_() x.sigmoid_() x.tanh_() x.relu_() x.round_() x.zero_()
x.fill_({s}) x.clamp_(-1,1) x.sqrt_() torch.abs(x) torch.exp(x) torch.clamp(x,min=0) torch.clamp(x,-1,1)
torch.nn.functional.relu(x) x+{y} x-{y} x*{y} x/{y} x//{y} x%{y} x**2 {s}-x {s}/x x.add({y},alpha=2)
x.sub({y}) x.mul({y}) x.div({y}) torch.div(x,{y},rounding_mode='floor')
torch.div(x,{y},rounding_mode='trunc') x.fmod({y}) x.remainder({y}) torch.maximum(x,y) torch.minimum(x,y)
torch.fmax(x,y) torch.atan2(x,y) torch.hypot(x,y) torch.lerp(x,y,0.5) x.add_({y}) x.sub_({y}) x.mul_({y})
x.div_({y}) x.addcmul_(x,x) x.copy_(y) torch.add(x,x,out=torch.empty_like(x)) x=={y} x!={y} x<{y} x<={y}
x>{y} x>={y} x.eq({y}) torch.isclose(x,y) torch.logical_and(x,y) x.logical_xor(y) x&y x|y ~x x.sum()
x.sum({d}) x.sum(dim={d},keepdim=True) x.mean() x.mean({d}) x.prod() x.prod({d}) x.amax({d}) x.amin()
x.max() x.max({d}) x.min({d},True) x.max({d}).indices x.argmax() x.argmin({d}) x.std() x.std({d})
x.var({d},unbiased=False) x.all() x.any({d}) x.norm() x.norm(1,{d}) x.logsumexp({d}) x.cumsum({d})
x.cumprod({d}) x.cummax({d}) x.softmax({d}) x.log_softmax({d}) x.sort({d}) x.sort({d},descending=True)
x.argsort({d},stable=True) x.topk(1,{d}) x.count_nonzero() x.count_nonzero({d}) x.median() x.median({d})
x.quantile(0.5) x.diff(dim={d}) x.flip({d}) x.roll(1,{d}) x.nonzero() x.unique() x.mode({d}).values
x.kthvalue(1,{d}) x.logcumsumexp({d}) x.nansum({d}) x.nan_to_num() x.bincount() x.t() x.T x.mT x.flatten()
x.ravel() x.unsqueeze({d}) x.squeeze() x.squeeze({d}) x.transpose({d},0) x.permute({p}) x.expand(2,*x.shape)
x.expand_as(y) x.reshape(-1) x.reshape(-1,1) x.view(1,-1) x.view(-1) x.view_as(x) x.narrow({d},0,1)
x.select({d},0) x.diagonal() x.unfold({d},1,1) x.movedim({d},0) x.repeat(2,*[1]*x.dim())
x.repeat_interleave(2,{d}) x.tril() x.triu(1) x.chunk(2,{d})[-1] x.split(1,{d})[0] x.unbind({d})[0]
x.detach() x.clone() x.contiguous() x.data x.unflatten({d},(1,-1)) x.swapaxes({d},-1) torch.atleast_2d(x)
torch.broadcast_to(x,(2,*x.shape)) x.rot90() x.trace() torch.cat([x,y],{d}) torch.stack([x,y],{d})
torch.stack([x,x]) torch.hstack([x,y]) torch.vstack([x,x]) torch.where(x>0,x,{y}) x@y x@x.mT x.matmul(y)
torch.outer(x,y) torch.einsum('...i,...i->...',x,x) torch.tensordot(x,x,1) x.dot(y) x.mv(y) x[{i}] x[{i}]
x[{i}] x[{i},{i}] x[{i},{i}] x[...,{i}] x[x>0] x[None,{i}] x.__setitem__({i},{s})
x.__setitem__(({i},{i}),{s}) x.__setitem__(({i},...),x[{i}]) x.__setitem__(x>0,{s}) x.__setitem__(...,y)
x.gather({d},torch.zeros_like(x,dtype=torch.int64)) x.take_along_dim(x.argsort({d},stable=True),{d})
x.scatter({d},torch.zeros_like(x,dtype=torch.int64),{s})
x.scatter_add({d},torch.zeros_like(x,dtype=torch.int64),x) x.index_select({d},torch.tensor([0,0]))
x.index_fill({d},torch.tensor([0]),2) x.index_add({d},torch.tensor([0]),x.narrow({d},0,1))
x.index_copy_({d},torch.tensor([0]),x.narrow({d},-1,1).clone()) x.masked_fill(x>0,{s})
x.masked_fill_(x>0,{s}) x.masked_select(x>0) x.masked_scatter(x>0,x.flatten())
x.put_(torch.tensor([0]),x.flatten()[:1].clone()) x.take(torch.tensor([0])) x.float() x.long() x.int()
x.bool() x.double() x.half() x.to(torch.{t}) x.type_as(y) x.to(y) x.type(torch.{t}) x.new_zeros(2)
x.new_full((2,),{s}) torch.zeros_like(x) torch.ones_like(x,dtype=torch.{t}) torch.full_like(x,{s})
torch.tensor(x.tolist()) torch.as_tensor(x.tolist(),dtype=torch.{t}) torch.arange(3) torch.arange(0,1,0.25)
torch.eye(2)
"""
CALLS = tuple(TEXT.split())

LISTED = ("float32", "float32", "float32", "int64", "int32", "bool", "uint8", "float64")
NUMBERS = ("2", "0", "-1", "0.5", "1")
INDICES = (
    *("0", "-1", "slice(None)", "slice(1,None)", "slice(None,None,2)", "slice(0)", "None", "...", "True"),
    *("[0,0]", "torch.tensor([0,-1])", "x>0"),
)
ERRORS = (RuntimeError, TypeError, ValueError, IndexError)


@dataclass(frozen=True)
class Program:
    """What the values v0, v1 … are at first, and the lines, each of which gives another."""

    beginnings: tuple[np.ndarray[Any, Any], ...]
    lines: tuple[str, ...]

    def __str__(self) -> str:
        made = [
            f"v{at} = torch.tensor({each.tolist()}, dtype=torch.{each.dtype.name})"
            for at, each in enumerate(self.beginnings)
        ]
        count = len(made)
        return "\n".join([*made, *(f"v{count + at} = {line}" for at, line in enumerate(self.lines))])


def write_program(seed: int) -> Program:
    """A program: two arrays, and up to six lines over them and over each other's results."""
    draw, numbers = random.Random(seed), np.random.default_rng(seed)
    shape = tuple(draw.choice((1, 2, 3, 3, 4)) for _ in range(draw.randint(0, 3)))
    beginnings = []
    for _ in range(2):
        values = numbers.integers(-8, 9, shape) / 4
        beginnings.append(np.asarray(values).astype(draw.choice(LISTED)))
    lines = []
    for at in range(draw.randint(1, 6)):
        x, y = (f"v{draw.randrange(max(0, at - 3), at + 2)}" for _ in range(2))
        lines.append(_line(draw.choice(CALLS), x, y, draw))
    return Program(tuple(beginnings), tuple(lines))


def _line(call: str, x: str, y: str, draw: random.Random) -> str:
    """A call of these values, with what it leaves open."""
    choices = {
        "d": ("0", "-1", "1"),
        "s": NUMBERS,
        "t": LISTED,
        "i": INDICES,
        "p": (f"*reversed(range({x}.dim()))",),
        "y": (y, y, *NUMBERS),
    }

    def chosen(mark: re.Match[str]) -> str:
        return draw.choice(choices[mark[1]])

    call = re.sub(r"\{(\w)\}", chosen, call)
    names = {"x": x, "y": y}
    return re.sub(r"(?<![\w.'])([xy])(?![\w'])", lambda name: names[name[1]], call)


def run(program: Program, torch: Any) -> tuple[list[str], list[Any]]:
    """What each line did ("" or its error), and the values; a line that failed gives its first argument."""
    values: dict[str, Any] = {"torch": torch}
    for at, each in enumerate(program.beginnings):
        values[f"v{at}"] = torch.tensor(each.tolist(), dtype=getattr(torch, each.dtype.name))
    said = []
    for at, line in enumerate(program.lines, len(program.beginnings)):
        try:
            result = eval(line, values)
            said.append("")
        except ERRORS as error:
            result, text = values["v0"], str(error).split("\n")[0]
            said.append(f"{type(error).__name__}: {text}")
        if isinstance(result, tuple):
            result = result[0]
        values[f"v{at}"] = values["v0"] if result is None else result
    return said, [values[f"v{at}"] for at in range(len(program.beginnings) + len(program.lines))]
