"""Measuring candidates: what is wrong, or cannot be made, is dropped; nothing of the user's is touched."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.limits import HANG
from tests.runtime.helpers import bench
from webgrad import dtypes
from webgrad.errors import LaunchError, OutOfMemoryError
from webgrad.graph.node import Node, leaf
from webgrad.graph.snapshot import snapshot, walk
from webgrad.lower import compile as compiling
from webgrad.lower.choices import Choice
from webgrad.lower.compile import choices_of
from webgrad.lower.domains import lower_rows, row_choices
from webgrad.lower.ir import Kernel
from webgrad.ops.table import TABLE
from webgrad.runtime.webgpu import Device
from webgrad.schedule.schedule import schedule
from webgrad.tensor import Tensor
from webgrad.tuning.entries import Candidate
from webgrad.tuning.measure import _data, _equal, measure

pytestmark = pytest.mark.gpu

Measured = tuple[Candidate, ...]
X = np.random.default_rng(0).normal(size=(96, 520)).astype(np.float32)


@pytest.fixture(scope="module")
def device() -> Device:
    """A device of these tests alone, every kernel verified."""
    return bench(checks=True).device


def on(device: Device, array: Any = X) -> Tensor:
    return Tensor(leaf(device.upload(array), array.shape, dtypes.as_dtype(array.dtype), device))


def measured(device: Device, value: Tensor, **options: Any) -> Measured:
    made = schedule(snapshot(walk([value.node]), [value.node]), device.profile)
    (group,) = [each for each in made.groups if choices_of(made.graph, [each], device.profile)]
    offered = choices_of(made.graph, [group], device.profile)
    return measure(device, made.graph, [group], offered, **options)


def test_every_choice_gets_a_time(device: Device) -> None:
    value = wg.softmax(on(device), axis=-1)
    found = measured(device, value, limit=HANG)
    assert len(found) > 2
    assert all(each.seconds and not each.dropped for each in found)


def test_by_the_clock_too() -> None:
    device = bench(disable_features=frozenset({"timestamps"})).device
    found = measured(device, wg.sum(on(device), axis=1), limit=HANG)
    assert all(each.seconds for each in found)


def test_values_that_are_bound_in_parts() -> None:
    device = bench().device
    device.__dict__["profile"] = replace(device.profile, max_binding_bytes=1 << 16)
    found = measured(device, wg.softmax(on(device), axis=-1), limit=HANG)
    assert all(each.seconds and not each.dropped for each in found)


def test_the_users_values_are_not_touched(device: Device) -> None:
    x = on(device)
    before = device.stats()["bytes_live"]
    y = x + 1
    wg.eval(y)
    measured(device, wg.sum(y * x, axis=1), limit=HANG)
    assert np.array_equal(x.numpy(), X)
    assert np.array_equal(y.numpy(), X + np.float32(1))
    del y
    device.synchronize()
    assert device.stats()["bytes_live"] <= before + 4096


BROKEN: tuple[Choice, ...] = tuple(
    (("threads", 1), ("rows", 4), ("broken", number)) for number in range(1, 6)
)


def broken_rows(graph: Any, group: Any, profile: Any, choice: Choice | None = None) -> Kernel:
    """Kernels that are wrong, or cannot be made, in the ways that `broken` numbers."""
    how = dict(choice or ()).get("broken", 0)
    if how == 1:
        raise LaunchError("it has too many bindings")
    kernel = lower_rows(graph, group, profile, None if how else choice)
    if how == 2:  # some rows are not computed
        return replace(kernel, groups=max(1, kernel.groups // 2))
    if how == 3:  # more threads than any device has
        return replace(kernel, workgroup=1 << 20)
    if how == 4:  # nothing is computed
        return replace(kernel, body=tuple(each for each in kernel.body if each.op != "store"))
    if how == 5:  # it reads something else
        body = list(kernel.body)
        for each in body:
            if each.op == "apply" and each.data.name == "maximum":
                each.data = TABLE["minimum"]
        return replace(kernel, body=tuple(body))
    return kernel


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that offer broken choices among the good ones."""

    def offered(graph: Any, group: Any, profile: Any) -> tuple[Choice, ...]:
        first, *rest = row_choices(graph, group, profile)
        return (first, *BROKEN, *rest)

    monkeypatch.setitem(compiling._CHOICES, "rows", offered)
    monkeypatch.setitem(compiling._LOWER, "rows", broken_rows)


def test_wrong_candidates_are_dropped(broken: None) -> None:
    device = bench().device
    found = measured(device, wg.max(on(device), axis=1), limit=HANG)
    dropped = {dict(each.choice)["broken"]: each.dropped for each in found if "broken" in dict(each.choice)}
    assert "too many bindings" in dropped[1]
    assert dropped[2] == dropped[5] == "its results are not the default's"
    assert "refused" in dropped[3]
    assert dropped[4]
    good = [each for each in found if "broken" not in dict(each.choice)]
    assert len(good) > 1
    assert all(each.seconds and not each.dropped for each in good)
    assert all(each.seconds is None for each in found if each not in good)
    assert wg.sum(on(device, X[0])).item() == pytest.approx(X[0].sum(), rel=1e-4)  # the device goes on


def test_there_is_a_limit_of_time(device: Device) -> None:
    default, *others = measured(device, wg.softmax(on(device), axis=0), limit=0)
    assert default.seconds
    assert others
    assert {each.dropped for each in others} == {"there was no time for it"}


def test_without_room_the_error_is_the_defaults() -> None:
    from webgrad.config import MemoryBudget

    device = bench(memory=MemoryBudget(bytes=1 << 18)).device
    x = on(device)
    with pytest.raises(OutOfMemoryError):
        measured(device, wg.softmax(x, axis=-1))
    assert np.array_equal(x.numpy(), X)


def test_data_for_which_results_are_numbers(device: Device, broken: None) -> None:
    found = measured(device, wg.max(wg.log(on(device)), axis=1), limit=HANG)
    wrong = next(each for each in found if dict(each.choice).get("broken") == 5)
    assert wrong.dropped == "its results are not the default's"


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int32", "int8", "uint32", "bool"])
@pytest.mark.parametrize("signed", [0, 1])
def test_data_of_every_kind(dtype: str, signed: int) -> None:
    node: Node = wg.zeros((300, 301), dtype=dtype, device="cpu").node
    data = _data(node.sig, signed)
    assert (data.size, data.dtype) == (90_300, wg.as_dtype(dtype).numpy)
    values = data.astype(np.float64)
    assert np.isfinite(values).all()
    assert len(np.unique(values)) > 1
    if not signed:
        assert values.min() >= 0


@pytest.mark.parametrize(
    ("found", "expected", "same"),
    [
        ([1.0, 2.0], [1.0, 2.0], True),
        ([1.0, 2.0001], [1.0, 2.0], True),
        ([1.0, 2.01], [1.0, 2.0], False),
        ([np.nan, 2.0], [np.nan, 2.0], True),
        ([np.nan, 2.0], [2.0, 2.0], False),
        ([2.0, 2.0], [np.nan, 2.0], False),
        ([np.inf, 1.0], [-np.inf, 1.0], False),
        ([np.inf, 1.00001], [np.inf, 1.0], True),
        ([1e-9], [0.0], False),
    ],
)
def test_what_is_equal(found: list[float], expected: list[float], same: bool) -> None:
    assert _equal(np.array(found, np.float32), np.array(expected, np.float32)) == same


def test_whole_numbers_are_equal_or_not() -> None:
    assert _equal(np.array([1, 2]), np.array([1, 2]))
    assert not _equal(np.array([1, 2]), np.array([1, 3]))
    assert not _equal(np.array([True]), np.array([False]))
