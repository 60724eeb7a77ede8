"""jit at its edges: tensors under two names, numbers, results of other kinds, memory, interrupts."""

from __future__ import annotations

import dataclasses
import gc
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any
from weakref import ref

import numpy as np
import pytest

import webgrad as wg
from webgrad.graph.node import backlog
from webgrad.runtime.webgpu import Device

DEVICES = ["cpu", pytest.param("webgpu:0", marks=pytest.mark.gpu)]
both = pytest.mark.parametrize("device", DEVICES)


def tensor(values: Any, device: str) -> wg.Tensor:
    return wg.asarray(np.asarray(values, np.float32), device=device)


def gpu() -> Device:
    device = wg.open_device("webgpu:0")
    assert isinstance(device, Device)
    return device


# Tensors that the function closes over


@both
def test_what_it_closes_over_may_be_the_result(device: str) -> None:
    weight = tensor([1.0], device)
    same = wg.jit(lambda: weight)
    assert same().item() == 1
    weight += 4
    assert same().item() == 5


@both
def test_a_number_in_a_tensor_is_state(device: str) -> None:
    count, scale = wg.zeros((), device=device), wg.full((), 2.0, device=device)

    @wg.jit
    def step(x: wg.Tensor) -> wg.Tensor:
        nonlocal count
        count += 1
        return x * (count + scale.astype(wg.int32))

    assert [step(tensor([10.0], device)).item() for _ in range(3)] == [30, 40, 50]
    scale[...] = 5.0
    assert step(tensor([10.0], device)).item() == 90
    assert count.item() == 4


@both
def test_a_state_may_become_a_number_of_the_call(device: str) -> None:
    last = wg.zeros((), dtype=wg.int32, device=device)

    @wg.jit
    def keep(number: int) -> wg.Tensor:
        last[...] = number
        return last * 2

    assert [(keep(each).item(), last.item()) for each in (3, 5, 7)] == [(6, 3), (10, 5), (14, 7)]


@both
def test_what_was_made_inside_may_be_a_result(device: str) -> None:
    def both_of(x: wg.Tensor) -> tuple[wg.Tensor, wg.Tensor]:
        inside = tensor([1.0, 2.0], device)
        return inside, x * inside

    captured = wg.jit(both_of)
    for value in (1.0, 3.0):
        inside, product = captured(tensor([value], device))
        assert inside.tolist() == [1, 2]
        assert product.tolist() == [value, 2 * value]


@both
def test_what_was_made_inside_may_be_changed(device: str) -> None:
    runs = 0

    @wg.jit
    def made(x: wg.Tensor) -> Any:
        nonlocal runs
        runs += 1
        array, numbers, zero = (
            tensor([1.0, 2.0], device),
            wg.arange(2, device=device),
            wg.zeros((), device=device),
        )
        array += x
        numbers += 1
        zero += 1
        return array, numbers, zero

    for value in (1.0, 3.0, 5.0):
        array, numbers, zero = made(tensor([value], device))
        assert array.tolist() == [1 + value, 2 + value]
        assert numbers.tolist() == [1, 2]
        assert zero.item() == 1
    assert runs == 1


@both
def test_tensors_that_the_collector_passes_over(device: str) -> None:
    weight = tensor([2.0], device)
    times = wg.jit(lambda x: x * weight)
    gc.freeze()
    try:
        assert times(tensor([3.0], device)).item() == 6
        weight += 1
        assert times(tensor([3.0], device)).item() == 9
        assert gc.get_freeze_count()
    finally:
        gc.unfreeze()


@both
def test_the_old_value_in_another_shape_is_a_result(device: str) -> None:
    state = tensor([1, 2, 3, 4], device)

    @wg.jit
    def step() -> wg.Tensor:
        before = state.clone().reshape(2, 2)
        state[...] = state + 1
        return before

    for count in range(4):
        assert step().tolist() == [[1 + count, 2 + count], [3 + count, 4 + count]]


@both
def test_state_may_be_exchanged(device: str) -> None:
    first, second = tensor([1.0], device), tensor([10.0], device)

    @wg.jit
    def step() -> None:
        first[...] = second
        second[...] = first + 1

    for count in range(4):
        step()
        assert (first.item(), second.item()) == (10 + count, 11 + count)


# Arguments


@both
def test_a_tensor_passed_twice_is_one(device: str) -> None:
    @wg.jit
    def step(x: wg.Tensor, y: wg.Tensor) -> wg.Tensor:
        x += 1
        return y * 2

    x = tensor([1.0], device)
    assert [step(x, x).item() for _ in range(3)] == [4, 6, 8]
    assert step(x, tensor([7.0], device)).item() == 14
    assert x.item() == 5


@both
def test_a_tensor_that_is_passed_and_closed_over(device: str) -> None:
    weight = tensor([1.0], device)
    assert wg.jit(lambda x: x + weight)(weight).item() == 2

    @wg.jit
    def step(x: wg.Tensor) -> wg.Tensor:
        x += 1
        return weight * 2

    assert step(tensor([1.0], device)).item() == 2
    with pytest.raises(wg.CaptureError, match="pass it, or close over it, but not both"):
        step(weight)
    assert weight.item() == 1


@both
def test_a_number_may_be_counted_on(device: str) -> None:
    @wg.jit
    def scaled(x: wg.Tensor, by: Any) -> Any:
        by += 1
        return x * by

    assert [scaled(tensor([2.0], device), each).item() for each in (3, 4, 5)] == [8, 10, 12]


@both
def test_numbers_that_their_dtype_cannot_hold(device: str) -> None:
    times = wg.jit(lambda x, by: x * by)
    x = tensor([1.0], device)
    found = [times(x, each).item() for each in (1.0, 1e300, -1e300, 3.4e38)]
    assert found == [1, np.inf, -np.inf, np.float32(3.4e38)]
    assert times(x, 3).item() == 3
    with pytest.raises(wg.ArgumentError, match="does not fit int32"):
        times(x, 1 << 40)
    assert times(x, -(1 << 31)).item() == -(2.0**31)


@both
def test_slices_are_compared_by_value(device: str) -> None:
    part = wg.jit(lambda x, where: x[where])
    x = tensor(np.arange(2000), device)
    assert part(x, slice(1000, 1002)).tolist() == [1000, 1001]
    assert part(x, slice(1000, 1002)).tolist() == [1000, 1001]
    assert part(x, slice(None, -1998)).tolist() == [0, 1]
    assert repr(part).endswith("2 captured>")


@both
def test_numbers_go_where_the_tensors_are(device: str) -> None:
    class Cache:
        def __init__(self) -> None:
            self.rows = [wg.zeros(3, device=device)]

        @wg.jit
        def write(self, at: int, value: float) -> None:
            self.rows[0][at] = value

    cache = Cache()
    for at in range(3):
        cache.write(at, at + 0.5)
    assert cache.rows[0].tolist() == [0.5, 1.5, 2.5]


@both
def test_a_callable_object_keeps_its_attributes_to_itself(device: str) -> None:
    class Layer:
        def __init__(self) -> None:
            self.function, self._captures = "relu", 3

        def __call__(self, x: wg.Tensor) -> wg.Tensor:
            return x + 1

    assert wg.jit(Layer())(tensor([1.0], device)).item() == 2
    twice = wg.jit(wg.jit(lambda x: x + 1))
    assert [twice(tensor([each], device)).item() for each in (1, 2)] == [2, 3]


# Results


@dataclasses.dataclass(frozen=True)
class Output:
    value: Any
    name: str = "y"


class Plain:
    def __init__(self, value: Any) -> None:
        self.value = value


@both
def test_dataclasses_are_results(device: str) -> None:
    captured = wg.jit(lambda x: [Output(x * 2)])
    for value in (1.0, 2.0):
        (output,) = captured(tensor([value], device))
        assert isinstance(output, Output)
        assert output.value.item() == 2 * value
        assert output.name == "y"


@both
@pytest.mark.parametrize("kind", [Plain, lambda x: Plain([x]), lambda x: iter([x])])
def test_results_that_could_not_change_are_refused(device: str, kind: Any) -> None:
    with pytest.raises(wg.CaptureError, match="which would be the same at every call"):
        wg.jit(lambda x: kind(x * 2))(tensor([1.0], device))


@both
def test_generator_functions_are_refused(device: str) -> None:
    def parts(x: wg.Tensor) -> Iterator[wg.Tensor]:
        yield x * 2

    with pytest.raises(wg.ArgumentError, match="parts is a coroutine or a generator"):
        wg.jit(parts)
    with pytest.raises(wg.CaptureError, match="returned a generator"):
        wg.jit(lambda x: (each for each in (x, x)))(tensor([1.0], device))


@both
def test_an_object_that_was_there_before_is_a_result(device: str) -> None:
    model = Plain(tensor([2.0], device))

    @wg.jit
    def step(x: wg.Tensor) -> Plain:
        model.value += x
        return model

    for _ in range(2):
        assert step(tensor([1.0], device)) is model
    assert model.value.item() == 4


# Memory, threads, interrupts


@both
def test_a_model_is_not_kept_alive(device: str) -> None:
    class Model:
        def __init__(self) -> None:
            self.weight = tensor([2.0], device)

        @wg.jit
        def times(self, x: wg.Tensor) -> wg.Tensor:
            return x * self.weight

    model = Model()
    assert model.times(tensor([3.0], device)).item() == 6
    gone = ref(model)
    del model
    gc.collect()
    assert gone() is None


@both
def test_large_constants_inside_are_no_reason_to_compute(
    device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backlog, "most_bytes", 1000)
    plus = wg.jit(lambda x: x + tensor(np.ones(1000), device) * 2)
    assert plus(tensor([1.0], device)).sum().item() == 3000
    assert backlog.most_bytes == 1000


@pytest.mark.gpu
def test_the_first_call_s_memory_is_not_held() -> None:
    device = gpu()
    state = wg.zeros(1 << 18, device=device)

    @wg.jit
    def step(x: wg.Tensor) -> None:
        nonlocal state
        state += x

    def live() -> int:
        gc.collect()
        device.flush()
        return device.queue.context.pool.bytes_live

    wg.eval(state)
    before = live()
    for _ in range(2):
        step(wg.ones(1 << 18, device=device) * 2)
    assert live() - before < 1 << 18


@pytest.mark.gpu
def test_a_replay_that_fails_leaves_the_state(monkeypatch: pytest.MonkeyPatch) -> None:
    device = gpu()
    state = wg.ones(1024, device=device)

    @wg.jit
    def step() -> wg.Tensor:
        nonlocal state
        state += 1
        return state.sum()

    def fail(*_: Any) -> None:
        raise RuntimeError("on purpose")

    for _ in range(3):
        step()
    with monkeypatch.context() as patch:
        patch.setattr("webgrad.runtime.submission.encode", fail)
        with pytest.raises(RuntimeError, match="on purpose"):
            step()
    others = [wg.full(1024, 7.0, device=device) + each for each in range(8)]
    wg.eval(*others)
    assert (state.numpy() == 4).all()
    assert step().item() == 5 * 1024


@both
def test_other_threads_read_state_while_it_changes(device: str) -> None:
    state = wg.zeros(1000, device=device)

    @wg.jit
    def step() -> None:
        nonlocal state
        state += 1

    step()
    wrong: list[Any] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            try:
                values = state.numpy()
                if values.min() != values.max():
                    wrong.append(values)
            except wg.WebgradError as error:
                wrong.append(error)

    threads = [threading.Thread(target=read) for _ in range(2)]
    for each in threads:
        each.start()
    for _ in range(100):
        step()
    done.set()
    for each in threads:
        each.join()
    assert not wrong
    assert state.tolist() == [101] * 1000


@both
def test_threads_capture_one_after_another(device: str) -> None:
    inside = threading.Event()

    @wg.jit
    def slow(x: wg.Tensor) -> wg.Tensor:
        twice = x * 2
        inside.set()
        time.sleep(0.2)
        return twice + 1

    def other() -> None:
        inside.wait()
        wg.jit(lambda x: x * 3)(tensor([1.0], device))

    thread = threading.Thread(target=other)
    thread.start()
    assert slow(tensor([1.0], device)).item() == 3
    thread.join()
    assert slow(tensor([5.0], device)).item() == 11


@pytest.mark.gpu
def test_an_interrupt_leaves_the_state_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    queue = gpu().queue
    state = wg.zeros(10, device=gpu())
    replay = queue.replay

    @wg.jit
    def step() -> None:
        nonlocal state
        state += 1

    def interrupted(*arguments: Any) -> Any:
        made = replay(*arguments)
        signal.raise_signal(signal.SIGINT)
        return made

    for _ in range(3):
        step()
    with monkeypatch.context() as patch:
        patch.setattr(queue, "replay", interrupted)
        with pytest.raises(KeyboardInterrupt):
            step()
    assert state.tolist() == [4] * 10


def test_what_is_watched_with_a_version_is_asked_when_that_is_another() -> None:
    state: dict[str, Any] = {"scale": 2, "version": object()}
    asked: list[int] = []

    def scale() -> Any:
        asked.append(state["scale"])
        return state["scale"]

    def call(x: Any) -> Any:
        return x * wg.watch(scale, lambda: state["version"])

    scaled: Any = wg.jit(call)
    one = wg.ones(1)
    for _ in range(3):
        assert scaled(one).item() == 2
    asked.clear()
    assert scaled(one).item() == 2
    assert not asked
    state.update(scale=3, version=object())
    assert scaled(one).item() == 3
    state.update(scale=2, version=object())
    assert scaled(one).item() == 2
    assert (asked[-1], scaled.captures) == (2, 2)


@pytest.mark.parametrize("told", [False, True])
def test_a_capture_holds_no_value_of_its_calls(told: bool) -> None:
    """Neither arguments nor what it closes over; also where those who watch are told of a run."""
    weights = tensor([[2.0, 3.0]], "cpu")

    def call(x: Any, number: float) -> Any:
        return (x @ weights.T) * number

    captured: Any = wg.jit(call)
    for at in range(5):
        x = tensor([[1.0, at]], "cpu")
        if told and at > 1:
            with wg.profile():
                found = captured(x, float(at))
        else:
            found = captured(x, float(at))
        assert found.item() == at * (2 + 3 * at)
        held = ref(x.node), ref(x.node.storage)
        del x, found
        assert [each() for each in held] == [None, None]
        if at == 3:
            old = ref(weights.node), ref(weights.node.storage)
            with wg.no_grad():
                weights[...] = tensor([[2.0, 3.0]], "cpu")
                wg.eval(weights)
    assert [each() for each in old] == [None, None]
