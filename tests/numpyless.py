"""Small programs that need no NumPy: `tests/test_without_numpy.py` runs them with it, and in a child without.

Each gives what it computed as lists, numbers and texts. They run on the default device.
"""

from __future__ import annotations

import array
import asyncio
import copy
import math
import pickle
from collections.abc import Callable
from typing import Any

import webgrad as wg
from webgrad import nn, optim

ROWS = [[0.5, -1.25, 2.0], [3.5, 0.25, -0.75]]
PROGRAMS: dict[str, Callable[[], Any]] = {}


def program(function: Callable[[], Any]) -> Callable[[], Any]:
    PROGRAMS[function.__name__] = function
    return function


def lists(*tensors: wg.Tensor) -> list[Any]:
    return [each.tolist() for each in tensors]


def filled(module: nn.Module) -> nn.Module:
    """A module with parameters that are no matter of chance."""
    for number, parameter in enumerate(module.parameters()):
        with wg.no_grad():
            ramp = wg.arange(parameter.size, dtype=wg.float32) / parameter.size - 0.3
            nn.init.constant_(parameter, 0.0)
            parameter += ramp.reshape(parameter.shape) * (1 + 0.1 * number)
    return module


@program
def values_in() -> Any:
    grid = memoryview(array.array("i", range(6))).cast("B").cast("i", (2, 3))
    return [
        *lists(wg.asarray(5), wg.asarray([True, False]), wg.asarray([1, 2.5]), wg.asarray(b"abc")),
        *lists(
            wg.asarray(array.array("d", [1, 2]), dtype="float32"),
            wg.asarray(grid),
            wg.asarray(memoryview(b"abcdef")[::2]),
        ),
        *lists(wg.asarray([[1, 2], [3, 4]], dtype=wg.float16), wg.asarray([70000.0, 0.1], dtype="float16")),
        *lists(wg.asarray([1.00390625, 1.01171875, math.inf, -2.7], dtype="bfloat16").astype(wg.float32)),
        *lists(
            wg.asarray([300, -1], dtype=wg.int16).astype(wg.uint8), wg.asarray([1.9, -1.9, 1e20], "int32")
        ),
        *lists(wg.asarray(range(4)), wg.asarray([]), wg.tensor([1, 2, 3]), wg.asarray([1 + 2j, 3])),
        *(wg.asarray([[], []]).shape, wg.asarray([wg.ones(2), wg.zeros(2)]).tolist()),
    ]


@program
def values_out() -> Any:
    x, one = wg.asarray(ROWS), wg.asarray([2.5])
    halves = wg.asarray([1.5, -2.0], dtype=wg.float16)
    return [
        *(float(one), int(one), bool(one), complex(one), one.item(), len(x), 2.5 in one, lists(*x)),
        *(x.memoryview().tolist(), x.memoryview().format, halves.memoryview().tolist(), halves.tolist()),
        *(wg.asarray([1j]).memoryview().tolist(), wg.zeros((0, 3)).memoryview().tolist()),
        *(asyncio.run(x.tolist_async()), asyncio.run(x[0, 0].item_async())),
        *(pickle.loads(pickle.dumps(x)).tolist(), copy.deepcopy(x).tolist()),
    ]


@program
def created() -> Any:
    wg.random.seed(3)
    return lists(
        *(wg.zeros((2, 2)), wg.ones(3, dtype="int32"), wg.full((2,), 1.5), wg.arange(0, 1, 0.25)),
        *(wg.linspace(0, 1, 5), wg.eye(3), wg.tril(wg.ones((3, 3))), wg.one_hot(wg.asarray([0, 2]), 3)),
        *(wg.random.uniform((4,)), wg.random.normal((4,)), wg.random.integers(0, 10, (4,))),
    )


@program
def arithmetic() -> Any:
    x = wg.asarray(ROWS)
    return lists(
        *(2 * x - x / 3, x**2, -x, abs(x), x > 0, x // 1, x % 2, wg.exp(x), wg.where(x > 0, x, 0)),
        *(wg.clip(x, -1, 1), x.astype(wg.int32), x.astype(wg.float16) * 3.14159, x.astype("bfloat16") + 1e39),
        *(wg.nan_to_num(wg.asarray([math.nan, math.inf])), wg.asarray([1 + 2j]) * wg.asarray([2 - 1j])),
        *(x @ x.T, wg.einsum("ij,kj->ik", x, x), wg.softmax(x), wg.cumulative_sum(x, axis=1)),
        *(
            x.sum(),
            x.mean(axis=0),
            x.max(axis=1),
            x.argmax(axis=1),
            wg.std(x, axis=0),
            wg.sort(x),
            *wg.topk(x, 2),
        ),
        *(wg.asarray([3, -2]).max(), wg.asarray([True, False]).min(), wg.any(x > 3)),
    )


@program
def indexed() -> Any:
    x, y = wg.asarray(ROWS), wg.arange(24).reshape((2, 3, 4))
    z = wg.zeros((3, 3))
    z[1] = 5
    z[0, :] = wg.asarray([1.0, 2.0, 3.0])
    z[[2, 0], [0, 1]] = 9
    z[z == 5] = -1
    z[:, 2] = [7, 8, 9]
    return [
        *lists(
            x[0], x[:, 1], x[1, 2], x[:, ::-2], x[[1, -2]], x[[0, 1], [2, 0]], x[wg.asarray([1])], x[x > 0]
        ),
        *lists(y[..., 1], y[:, [0, 2], 1], y[0, [0, 2]], y[[0, 1], :, [1, 2]], y[[[0], [1]], [0, 2]], z),
        *lists(
            x[[True, False]], x[wg.asarray([False, True])], wg.take(x, [2, 0], axis=1), *wg.nonzero(x > 0)
        ),
        *lists(wg.take_along_axis(x, [[1], [0]], axis=1), wg.index_add(z, [0, 2], wg.ones((2, 3)))),
        *(x[[]].shape, x[True].shape, x[False].shape, y[None].shape),
    ]


@program
def moved() -> Any:
    x = wg.asarray(ROWS)
    return lists(
        *(
            wg.concat([x, x]),
            wg.pad(x, 1),
            wg.pad(x, ((0, 1), (1, 0)), mode="edge"),
            wg.roll(x, 1),
            wg.flip(x),
        ),
        *(wg.repeat(x, [1, 2], axis=0), wg.repeat(x, wg.asarray([2, 0]), axis=0), wg.tile(x, (2, 1))),
        *(*wg.histogram(x, [0, 1, 5]), wg.unique_values(wg.asarray([3, 1, 3])), *wg.split(x, 3, axis=1)),
    )


@program
def pictures() -> Any:
    x = wg.arange(16.0).reshape((1, 1, 4, 4))
    modes = ("nearest", "nearest-exact", "bilinear", "bicubic")
    return lists(
        *(wg.interpolate(x, size=(3, 7), mode=mode) for mode in modes),
        *(wg.adaptive_avg_pool2d(x, 3), wg.adaptive_max_pool2d(x, 3), wg.fold(wg.unfold(x, 2), (4, 4), 2)),
    )


@program
def captured() -> Any:
    @wg.jit
    def turn(x: wg.Tensor, rate: float) -> wg.Tensor:
        return (x * rate).sum(axis=0) + x[0]

    return [turn(wg.asarray(ROWS), rate).tolist() for rate in (2.0, 3.0, 4.0)]


@program
def trained() -> Any:
    model = filled(nn.Sequential(nn.Linear(3, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 2)))
    optimizer = optim.AdamW(model.parameters(), lr=0.01)
    schedule = optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = wg.mse_loss(model(wg.asarray(ROWS)), wg.ones((2, 2)))
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    model.load_state_dict(model.state_dict())
    return [
        losses,
        model(wg.asarray(ROWS)).tolist(),
        wg.grad(lambda x: (wg.tanh(x) ** 2).sum())(wg.ones(2)).tolist(),
    ]


@program
def convolved() -> Any:
    layers = (nn.Conv2d(1, 2, 3, padding=1), nn.BatchNorm2d(2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
    model = filled(nn.Sequential(*layers, nn.Linear(8, 3)))
    loss = wg.cross_entropy(model(wg.arange(16.0).reshape((1, 1, 4, 4)) / 16), wg.asarray([2]))
    loss.backward()
    optim.SGD(model.parameters(), lr=0.1, momentum=0.9).step()
    return lists(loss, *model.parameters())


@program
def attended() -> Any:
    words, attention = filled(nn.Embedding(5, 8)), filled(nn.MultiheadAttention(8, 2))
    x = words(wg.asarray([[0, 1, 2]]))
    found = attention(x, x, x)
    return lists(found[0] if isinstance(found, tuple) else found)


@program
def asked() -> Any:
    x = wg.asarray(ROWS)
    limits = [wg.finfo(each) for each in (wg.float16, wg.bfloat16, wg.float32)]
    return [
        *(repr(wg.explain(x + 1)) != "", len(wg.stats()) > 3, type(wg.memory()).__name__, repr(limits)),
        *(
            repr(wg.iinfo(wg.int16)),
            wg.float32 == "float32",
            wg.float32 == 5,
            repr(wg.promote(wg.int8, wg.uint8)),
        ),
    ]


@program
def maps() -> Any:
    """Every map op of the table."""
    from webgrad.graph.node import make
    from webgrad.ops.table import TABLE

    kinds = {
        "f": wg.asarray([0.5, 0.25, 2.0]),
        "i": wg.asarray([3, -2, 5]),
        "b": wg.asarray([True, False, True]),
    }
    found = {}
    for name, row in TABLE.items():
        for kind in set(row.types) & set(kinds) if row.kind == "map" and name != "random_bits" else ():
            operands = [kinds[kind].node] * row.arity
            if name == "where":
                operands[0] = kinds["b"].node
            found[f"{name} {kind}"] = wg.Tensor(make(row, tuple(operands)))
    wg.eval(*found.values())
    return {name: found[name].tolist() for name in sorted(found)}


def results() -> dict[str, str]:
    """What every program gives, as text: an error's, where it raises one."""
    found = {}
    for name, run in PROGRAMS.items():
        try:
            found[name] = repr(run())
        except Exception as error:  # it is compared with what comes of it natively
            found[name] = f"{type(error).__name__}: {error}"
    return found
