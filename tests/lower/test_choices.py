"""Choices of rows: which are offered, that the first is the default, and that all compute the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.graph.helpers import tensor
from tests.properties.helpers import gpu
from tests.properties.running import profiled
from tests.schedule.graphs import INTEGRATED, PORTABLE, SOFTWARE, planned
from webgrad import dtypes
from webgrad.device_profile import DeviceProfile
from webgrad.evaluate.gpu_plan import GpuPlan
from webgrad.graph.node import leaf
from webgrad.graph.snapshot import snapshot, walk
from webgrad.lower.choices import Choice
from webgrad.lower.compile import Choose, choices_of, compile_bundle
from webgrad.runtime.webgpu import Device
from webgrad.tensor import Tensor


def offered(value: Tensor, profile: DeviceProfile) -> tuple[Choice, ...]:
    plan = planned(value, profile=profile)
    return choices_of(plan.graph, [plan.groups[0]], profile)


def threads(choices: tuple[Choice, ...]) -> list[int]:
    return [dict(each)["threads"] for each in choices]


def test_a_gpu_shares_long_rows_among_more_or_fewer_threads() -> None:
    long = wg.softmax(tensor(64, 4096), axis=-1)
    assert threads(offered(long, PORTABLE)) == [256, 1, 128, 64]
    assert threads(offered(long, INTEGRATED)) == [256, 1, 128, 64]
    assert threads(offered(wg.softmax(tensor(4096, 100), axis=-1), PORTABLE)) == [1, 64]
    longest = wg.sum(tensor(512, 1 << 17), axis=1)  # one thread might run until a watchdog ends it
    assert threads(offered(longest, PORTABLE)) == [256, 128, 64]
    narrow = DeviceProfile("discrete", max_invocations=128)
    assert threads(offered(long, narrow)) == [128, 1, 64]


def test_software_deals_more_or_fewer_rows_to_a_thread() -> None:
    choices = offered(wg.sum(tensor(4096, 64), axis=1), SOFTWARE)
    assert choices == (
        (("threads", 1), ("rows", 16)),
        (("threads", 1), ("rows", 64)),
        (("threads", 1), ("rows", 4)),
    )
    assert threads(offered(wg.sum(tensor(20, 30000), axis=1), SOFTWARE)) == [1, 1, 8]


@pytest.mark.parametrize(
    "make",
    [
        lambda: wg.sum(tensor(8, 16), axis=1),
        lambda: wg.sum(tensor(0, 16), axis=1),
        lambda: wg.exp(tensor(4096, 64)),
        lambda: wg.cumulative_sum(tensor(4096, 64), axis=1),
    ],
    ids=["small", "empty", "map", "scan"],
)
def test_where_there_is_nothing_to_choose(make: Callable[[], Tensor], profile: DeviceProfile) -> None:
    assert offered(make(), profile) == ()


def test_the_first_choice_is_the_default(profile: DeviceProfile) -> None:
    for value in (wg.softmax(tensor(64, 4096), axis=-1), wg.max(tensor(4096, 300), axis=1)):
        plan = planned(value, profile=profile)
        groups = (plan.groups[0],)
        first, *others = choices_of(plan.graph, groups, profile)
        (default,) = compile_bundle(plan.graph, groups, profile)
        (chosen,) = compile_bundle(plan.graph, groups, profile, choice=first, check=True)
        assert (chosen.program.text, chosen.grid, chosen.params) == (
            default.program.text,
            default.grid,
            default.params,
        )
        assert (default.choice, chosen.choice) == (None, first)
        for each in others:
            (other,) = compile_bundle(plan.graph, groups, profile, choice=each, check=True)
            assert (other.program.text, other.grid, other.params) != (
                chosen.program.text,
                chosen.grid,
                chosen.params,
            )


RANDOM = np.random.default_rng(3)
WIDE = RANDOM.normal(size=(61, 518)).astype(np.float32)
TALL = RANDOM.normal(size=(515, 64)).astype(np.float32)
CASES: dict[str, tuple[np.ndarray[Any, Any], Callable[[Tensor], Tensor], Callable[[Any], Any]]] = {
    "softmax": (
        WIDE,
        lambda x: wg.softmax(x, axis=-1),
        lambda x: (
            np.exp(x - x.max(-1, keepdims=True)) / np.exp(x - x.max(-1, keepdims=True)).sum(-1)[:, None]
        ),
    ),
    "norm": (
        WIDE,
        lambda x: wg.layer_norm(x, (518,)),
        lambda x: (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5),
    ),
    "columns": (TALL, lambda x: wg.sum(x * x, axis=0), lambda x: (x * x).sum(0)),
    "odd columns": (TALL[:, :63].copy(), lambda x: wg.max(x, axis=0), lambda x: x.max(0)),
    "halves": (WIDE.astype(np.float16), lambda x: wg.sum(x, axis=1), lambda x: x.sum(1)),
    "packed rows": (
        TALL.astype(np.float16),
        lambda x: wg.exp(x - wg.max(x, axis=1, keepdims=True)),
        lambda x: np.exp(x - x.max(1, keepdims=True)),
    ),
    "transposed": (TALL, lambda x: wg.min(x.T, axis=1), lambda x: x.min(0)),
    "argmax": (WIDE, lambda x: wg.argmax(x, axis=1), lambda x: x.argmax(1)),
    "not a number": (
        np.where(WIDE > 2.5, np.float32(np.nan), WIDE),
        lambda x: wg.max(x, axis=1),
        lambda x: x.max(1),
    ),
}


@contextmanager
def fixed(number: int, seen: list[Choice], device: Device) -> Iterator[Choose]:
    def choose(graph: Any, groups: Any) -> Choice | None:
        found = choices_of(graph, groups, device.profile)
        if not found:
            return None
        seen.append(found[number % len(found)])
        return seen[-1]

    yield choose


@pytest.mark.gpu
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kind", ["software", "discrete"])
def test_every_choice_computes_the_same(case: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    device = gpu() if kind == "software" else profiled(kind="discrete", subgroup_size=0)
    array, compute, reference = CASES[case]
    expected = reference(array.astype(np.float64))
    seen: list[Choice] = []
    for number in range(5):
        monkeypatch.setattr(
            "webgrad.evaluate.gpu_plan.choosing", lambda *_, at=number: fixed(at, seen, device)
        )
        node = compute(
            Tensor(leaf(device.upload(array), array.shape, dtypes.as_dtype(array.dtype), device))
        ).node
        walked = walk([node])
        plan = GpuPlan(snapshot(walked, [node]), device)
        (buffer,) = plan.run(walked.nodes)
        found = device.read(buffer).view(node.sig.dtype.numpy).reshape(node.sig.shape)
        tolerance = 2e-3 if array.dtype == np.float16 else 1e-5
        np.testing.assert_allclose(found.astype(np.float64), expected, rtol=tolerance, atol=tolerance)
    if case in ("softmax", "norm", "argmax", "not a number"):  # others may have but one way, or be split
        assert len(set(seen)) > 1
