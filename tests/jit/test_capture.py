"""jit: what a captured call gives is what the function gives, call after call."""

from __future__ import annotations

import gc
import threading
from collections import namedtuple
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from webgrad.evaluate.evaluate import plans
from webgrad.jit.capture import Jit

Array = np.ndarray[Any, Any]
DEVICES = ["cpu", pytest.param("webgpu:0", marks=pytest.mark.gpu)]
Pair = namedtuple("Pair", "left right")

pytestmark = pytest.mark.parametrize("device", DEVICES)


def tensor(values: Any, device: str) -> wg.Tensor:
    return wg.asarray(np.asarray(values, np.float32), device=device)


def captured(function: Any) -> Jit:
    assert isinstance(function, Jit)
    return function


# Arguments and results


def test_new_values_of_the_same_shape_run_no_python(device: str) -> None:
    runs = 0

    @wg.jit
    def double(x: wg.Tensor) -> wg.Tensor:
        nonlocal runs
        runs += 1
        return x * 2 + x.sum()

    for start in range(5):
        values = np.arange(start, start + 6, dtype=np.float32)
        np.testing.assert_allclose(double(tensor(values, device)).numpy(), values * 2 + values.sum())
    assert runs == 1


def test_after_the_first_call_nothing_is_planned(device: str) -> None:
    step = wg.jit(lambda x: (x @ x).sum())
    step(wg.ones((4, 4), device=device))
    before = plans()
    for _ in range(3):
        assert step(wg.ones((4, 4), device=device).reshape(4, 4)).item() == 64
    assert plans() - before <= 1  # the arguments' own


def test_shapes_dtypes_and_static_arguments_are_captured_apart(device: str) -> None:
    @wg.jit(static="count")
    def repeated(x: wg.Tensor, count: int) -> wg.Tensor:
        for _ in range(count):
            x = x + x
        return x

    assert repeated(tensor([1, 2], device), 3).tolist() == [8, 16]
    assert repeated(tensor([1, 2], device), count=2).tolist() == [4, 8]
    assert repeated(tensor([1, 2, 3], device), 3).tolist() == [8, 16, 24]
    assert repeated(wg.asarray([1], dtype=wg.int32, device=device), 3).tolist() == [8]
    assert captured(repeated).captures == 4
    captured(repeated).clear()
    assert captured(repeated).captures == 0


def test_numbers_may_change(device: str) -> None:
    runs = 0

    @wg.jit
    def scaled(x: wg.Tensor, by: float, plus: int) -> wg.Tensor:
        nonlocal runs
        runs += 1
        return x * by + plus

    for by, plus in ((0.5, 3), (0.5, 0.0 == 1), (2.0, -7), (2.0, 2)):
        result = scaled(tensor([1, 2], device), by, plus)
        np.testing.assert_allclose(result.numpy(), np.array([1, 2], np.float32) * by + plus)
    assert runs == 2  # a bool is no number


def test_equal_numbers_are_not_taken_for_one(device: str) -> None:
    mixed = wg.jit(lambda x, a, b: (x * a) + (x * a * 0.5) * b + x * 0.5)
    for a, b in ((0.5, 0.5), (0.5, 3.0), (2.0, 0.5)):
        expected = 4 * a + 4 * a * 0.5 * b + 4 * 0.5
        assert mixed(tensor([4], device), a, b).item() == expected


def test_nested_arguments_and_results(device: str) -> None:
    @wg.jit
    def swap(pair: Any, more: dict[str, Any], name: str, nothing: None) -> Any:
        assert nothing is None
        return Pair(pair.right, pair.left + more["x"][0]), [name, {"both": pair.left @ pair.right}], 7

    for start in (1.0, 5.0):
        left, right = np.array([start, 2], np.float32), np.array([3, start], np.float32)
        result, rest, seven = swap(
            Pair(tensor(left, device), tensor(right, device)), {"x": [1.5, "unused"]}, "a", None
        )
        assert isinstance(result, Pair)
        np.testing.assert_array_equal(result.left.numpy(), right)
        np.testing.assert_array_equal(result.right.numpy(), left + 1.5)
        assert rest[0] == "a"
        assert rest[1]["both"].item() == left @ right
        assert seven == 7


def test_the_same_tensor_twice_is_not_one_argument(device: str) -> None:
    difference = wg.jit(lambda x, y: x - y)
    x = tensor([1, 2], device)
    assert difference(x, x).tolist() == [0, 0]
    assert difference(x, tensor([5, 5], device)).tolist() == [-4, -3]


def test_a_change_through_one_argument_is_seen_through_the_other(device: str) -> None:
    def add(a: wg.Tensor, b: wg.Tensor) -> wg.Tensor:
        a += 1
        return a + b

    step, x, y = wg.jit(add), tensor([1, 2], device), tensor([10, 20], device)
    assert step(x, y).tolist() == [12, 23]
    for count in (3, 4):
        assert step(x, x).tolist() == [2 * count, 2 * count + 2]
        assert x.tolist() == [count, count + 1]
    assert step(y, x).tolist() == [15, 26]


def test_an_argument_or_a_constant_may_be_the_result(device: str) -> None:
    constant = tensor([9], device)
    either = wg.jit(lambda x, n: (x, n, constant, wg.ones(2, device=device)))
    for value in (1.0, 2.0):
        x, n, same, ones = either(tensor([value], device), value)
        assert [x.item(), n.item(), same.item(), *ones.tolist()] == [value, value, 9, 1, 1]


def test_numpy_arrays_and_empty_tensors(device: str) -> None:
    with_array = wg.jit(lambda x, y: x.to_device("cpu") if x.device.name == "cpu" else x + 0)
    assert with_array(tensor([1], device), np.float32(2)).item() == 1
    empty = wg.jit(lambda x: (x.sum(), x * 2))
    for _ in range(3):
        total, none = empty(wg.zeros((0, 3), device=device))
        assert total.item() == 0
        assert none.shape == (0, 3)


def test_methods_and_functions_inside_of_functions(device: str) -> None:
    class Layer:
        def __init__(self, scale: float) -> None:
            self.weight = tensor([scale], device)

        @wg.jit
        def __call__(self, x: wg.Tensor) -> wg.Tensor:
            return x * self.weight

    one, two = Layer(2), Layer(3)
    outer = wg.jit(lambda x: one(x) + two(x))
    for value in (1.0, 4.0):
        assert one(tensor([value], device)).item() == 2 * value
        assert two(tensor([value], device)).item() == 3 * value
        assert outer(tensor([value], device)).item() == 5 * value


# State


def test_a_cache_is_written_at_a_place_that_changes(device: str) -> None:
    cache = wg.zeros((8, 4), device=device)

    @wg.jit
    def write(x: wg.Tensor, at: int) -> wg.Tensor:
        cache[at] = x * 2
        return cache.sum()

    expected = np.zeros((8, 4), np.float32)
    for at in (0, 3, 7, 3, 1):
        row = np.arange(4, dtype=np.float32) + at
        expected[at] = row * 2
        assert write(tensor(row, device), at).item() == expected.sum()
        np.testing.assert_array_equal(cache.numpy(), expected)
    assert captured(write).captures == 1


def test_parameters_change_and_are_seen_by_others(device: str) -> None:
    weight = tensor([1.0, 2.0], device)

    @wg.jit
    def train(rate: float) -> wg.Tensor:
        nonlocal weight
        loss = (weight * weight).sum()
        weight -= rate * 2 * weight
        return loss

    use = wg.jit(lambda x: (x * weight).sum())
    expected = np.array([1.0, 2.0])
    for rate in (0.25, 0.125, 0.25, 0.25):
        assert train(rate).item() == (expected**2).sum()
        expected = expected - rate * 2 * expected
        np.testing.assert_array_equal(weight.numpy(), expected)
        assert use(tensor([1, 10], device)).item() == expected @ [1, 10]
    weight *= 0
    assert use(tensor([1, 10], device)).item() == 0
    assert train(0.5).item() == 0


def test_who_holds_the_old_value_keeps_it(device: str) -> None:
    cache = wg.zeros((4, 3), device=device)

    @wg.jit
    def write(at: int) -> None:
        cache[at] = 1.0

    write(0)
    copies = [cache.clone()]
    views = [cache.reshape(12) + 0]
    for at in range(1, 4):
        write(at)
        copies.append(cache.clone())
        views.append(cache.reshape(12) + 0)
    for count, (copy, view) in enumerate(zip(copies, views, strict=True), 1):
        assert copy.sum().item() == 3 * count
        assert view.sum().item() == 3 * count


def test_an_argument_may_be_changed(device: str) -> None:
    @wg.jit
    def add_one(x: wg.Tensor) -> wg.Tensor:
        before = x * 1
        x += 1
        return before

    x = tensor([1, 2], device)
    for count in range(3):
        assert add_one(x).tolist() == [1 + count, 2 + count]
        assert x.tolist() == [2 + count, 3 + count]


def test_tensors_that_share_a_value_go_apart(device: str) -> None:
    first = tensor([1.0], device)
    second = first.clone()

    @wg.jit
    def step() -> wg.Tensor:
        nonlocal first
        first += 1
        return first * 10 + second

    assert [step().item() for _ in range(3)] == [21, 31, 41]
    assert second.item() == 1


def test_a_lazy_tensor_is_state_too(device: str) -> None:
    total = wg.zeros(3, device=device) + 1  # not computed yet

    @wg.jit
    def add(x: wg.Tensor) -> None:
        nonlocal total
        total += x

    for _ in range(3):
        add(wg.ones(3, device=device))
    assert total.tolist() == [4, 4, 4]


def test_what_cannot_be_computed_elsewhere_does_no_harm(device: str) -> None:
    huge = wg.broadcast_to(wg.ones((16, 1), device=device), (16, 1 << 40 if device == "cpu" else 1 << 27)) * 1
    total = wg.zeros(2, device=device) + 1  # waits, as that does

    @wg.jit
    def add(x: wg.Tensor) -> None:
        nonlocal total
        total += x

    for _ in range(3):
        add(tensor([1, 2], device))
    assert total.tolist() == [4, 7]
    with pytest.raises(wg.WebgradError, match="while computing"):
        wg.eval(huge)


def test_random_numbers_are_drawn_anew(device: str) -> None:
    noisy = wg.jit(lambda x: x + wg.random.uniform((4,), device=device))
    x = wg.zeros(4, device=device)
    wg.random.seed(3)
    ours = [noisy(x).tolist() for _ in range(3)]
    wg.random.seed(3)
    assert ours == [(x + wg.random.uniform((4,), device=device)).tolist() for _ in range(3)]


def test_what_died_is_captured_anew(device: str) -> None:
    holder = {"w": tensor([2.0], device)}
    use = wg.jit(lambda x: x * holder["w"])
    assert use(tensor([3], device)).item() == 6
    holder["w"] = tensor([5.0], device)
    gc.collect()
    assert use(tensor([3], device)).item() == 15
    holder["w"] = tensor([5.0, 6.0], device)
    assert use(tensor([3], device)).tolist() == [15, 18]


def test_names_may_be_given_to_others(device: str) -> None:
    weight, rate, runs = tensor([2.0], device), 0.5, 0

    @wg.jit
    def scaled(x: wg.Tensor) -> wg.Tensor:
        nonlocal runs
        runs += 1
        return x * weight * rate

    x = tensor([3.0], device)
    assert [scaled(x).item() for _ in range(3)] == [3, 3, 3]
    old, weight = weight, tensor([4.0], device)  # the old one lives on
    assert [scaled(x).item() for _ in range(3)] == [6, 6, 6]
    rate = 2.0
    assert [scaled(x).item() for _ in range(3)] == [24, 24, 24]
    assert (runs, old.item(), captured(scaled).captures) == (3, 2, 3)


# Mistakes


@pytest.mark.parametrize(
    "read",
    [
        lambda x: x.numpy(),
        lambda x: float(x.sum()),
        lambda x: x if x.sum() > 0 else -x,
        lambda x: print(x),
        lambda x: wg.eval(x * 2),
    ],
)
def test_a_value_inside_is_an_error(device: str, read: Any) -> None:
    function = wg.jit(read)
    x = tensor([1.0], device)
    with pytest.raises(wg.CaptureError, match=r"inside a function that webgrad\.jit captures.*static="):
        function(x)
    assert (x * 2).item() == 2  # nothing is left of it


class Holder:
    """An object of a user's."""

    def __init__(self, value: Any = None) -> None:
        self.value = value
        self.other: Any = None


def assigned(holder: Holder, x: wg.Tensor) -> None:
    holder.value = holder.value + x


def appended(holder: Holder, x: wg.Tensor) -> wg.Tensor:
    holder.other = [x * 2]
    return x + 1


def kept_and_returned(holder: Holder, x: wg.Tensor) -> dict[str, wg.Tensor]:
    holder.other = (x * x).sum()
    return {"loss": holder.other}


def drawn(holder: Holder, x: wg.Tensor) -> wg.Tensor:
    holder.other = wg.random.uniform((3,), device=x.device)
    return x


def kept_and_changed(holder: Holder, x: wg.Tensor) -> wg.Tensor:
    holder.other = x * 2
    holder.other += 1
    return x


@pytest.mark.parametrize("keep", [assigned, appended, kept_and_returned, drawn, kept_and_changed])
def test_a_tensor_that_is_kept_is_an_error(device: str, keep: Any) -> None:
    holder = Holder(tensor([0.0], device))
    with pytest.raises(
        wg.CaptureError, match=r"test_capture\.py:\d+, is kept outside.*state\[\.\.\.\] = new"
    ):
        wg.jit(keep)(holder, tensor([1.0], device))


def test_what_is_not_kept_is_no_error(device: str) -> None:
    holder = Holder(tensor([0.0], device))

    def step(x: wg.Tensor, count: int) -> Any:
        if holder.other is None:
            holder.other = wg.arange(2.0, device=device) + 1  # made once, of no argument
        y = x * 2
        y += 1
        z = y
        y[0] = count
        holder.value += x

        def again(times: int) -> wg.Tensor:  # a ring of objects that holds a tensor
            return z if times == 0 else again(times - 1)

        pair = again(2) * holder.other
        return [pair, {"same": pair}], holder.value

    function = wg.jit(step)
    for count in range(1, 4):
        (pair, same), value = function(tensor([3.0], device), count)
        assert pair.tolist() == same["same"].tolist() == [count, 2 * count]
        assert value.tolist() == holder.value.tolist() == [3 * count]


@pytest.mark.parametrize(
    "use", [lambda x, n: x[n : n + 1], lambda x, n: range(n), lambda x, n: wg.ones((n,))]
)
def test_a_whole_number_inside_is_an_error(device: str, use: Any) -> None:
    with pytest.raises(wg.CaptureError, match=r"bound of a slice.*x\[i\] = y take a tensor as i.*static="):
        wg.jit(use)(tensor([1.0, 2.0], device), 1)


def test_an_error_inside_changes_nothing(device: str) -> None:
    weight = tensor([1.0], device)

    @wg.jit
    def fails(x: wg.Tensor) -> None:
        nonlocal weight
        weight += 5
        weight @ x.reshape(7)

    with pytest.raises(wg.ShapeError):
        fails(tensor([1, 2], device))
    assert weight.item() == 1


def test_arguments_that_cannot_be(device: str) -> None:
    with pytest.raises(wg.ArgumentError, match="'depth' is no argument of the function; it has x, n"):
        wg.jit(lambda x, n: x, static=("depth",))
    with pytest.raises(wg.ArgumentError, match="takes a function, not a int"):
        wg.jit(3)  # type: ignore[call-overload]
    with pytest.raises(wg.ArgumentError, match=r"static argument .* hashable"):
        wg.jit(lambda x, n: x, static=1)(tensor([1], device), [1, 2])  # type: ignore[call-overload]
    with pytest.raises(wg.DTypeError, match=r"arange takes a real number here.*static="):
        wg.jit(lambda n: wg.arange(n))(5)
    filled = wg.jit(lambda n: wg.full((2,), n))
    assert [filled(each).tolist() for each in (0.5, 1.5)] == [[0.5, 0.5], [1.5, 1.5]]
    scaled = wg.jit(lambda x, n: x * n)
    for _ in range(2):  # when it is captured, and when it is replayed
        with pytest.raises(wg.ArgumentError, match="does not fit int32"):
            scaled(tensor([1], device), 1 << 40)
        assert scaled(tensor([1], device), 3).item() == 3


def test_functions_that_run_bit_by_bit(device: str) -> None:
    async def later(x: wg.Tensor) -> wg.Tensor:
        return x

    def several(x: wg.Tensor) -> Any:
        yield x

    for each in (later, several):
        with pytest.raises(wg.ArgumentError, match=f"jit: {each.__name__} is a coroutine or a generator"):
            wg.jit(each)


@pytest.mark.filterwarnings("error")
def test_floats_beyond_float32_are_infinite(device: str) -> None:
    scaled = wg.jit(lambda x, n: x * n)
    largest = float(np.finfo(np.float32).max)
    for number, expected in ((1e300, np.inf), (-1e300, -np.inf), (largest * (1 + 1e-9), largest), (2.5, 2.5)):
        assert scaled(tensor([1], device), number).item() == expected
    assert np.isnan(scaled(tensor([1], device), float("nan")).item())


# Elsewhere


def test_threads_share_a_captured_function(device: str) -> None:
    total = wg.zeros(1, device=device)

    @wg.jit
    def add(x: wg.Tensor) -> wg.Tensor:
        nonlocal total
        total += x
        return x * 2

    failures: list[Any] = []

    def work(value: float) -> None:
        results = [add(tensor([value], device)).item() for _ in range(20)]
        failures.extend(each for each in results if each != 2 * value)

    threads = [threading.Thread(target=work, args=(float(each),)) for each in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not failures
    assert total.item() == 20 * (0 + 1 + 2 + 3)


def test_a_long_graph_is_captured_whole(device: str) -> None:
    @wg.jit
    def long(x: wg.Tensor) -> wg.Tensor:
        for _ in range(1500):  # deeper than Python's functions may call each other
            x = x * 0.5 + 1
        return x

    for value in (0.0, 8.0):
        assert long(tensor([value], device)).item() == 2


# Written in place


def address(x: wg.Tensor) -> int:
    return int(x.node.storage.ctypes.data)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
@pytest.mark.parametrize("key", ["row", "rows", "third axis", "two axes"])
def test_a_large_cache_stays_where_it_is(device: str, dtype: str, key: str) -> None:
    """On the cpu; and what comes of it is what comes of the function itself."""
    shape, generator = (24, 3, 40, 16), np.random.default_rng(1)
    start = generator.integers(0, 99, shape).astype(dtype)
    cache, plain = (wg.asarray(start, device=device) for _ in range(2))

    def write(into: wg.Tensor, x: wg.Tensor, at: Any) -> wg.Tensor:
        if key == "row":
            into[at] = x[0]
        elif key == "rows":
            into[wg.stack([at, at + 1])] = x[:2]
        elif key == "third axis":
            into[:, :, at] = x[:, :, 0]
        else:
            into[wg.arange(24, device=device), :, at] = x[:, :, 1]
        return into[1].astype("float32").sum()

    quick, seen = wg.jit(write), []
    for at in (0, 3, 21, 3, 7):
        x = wg.asarray(generator.integers(0, 99, shape).astype(dtype), device=device)
        place = wg.asarray(at, device=device)
        assert quick(cache, x, place).item() == write(plain, x, place).item()
        np.testing.assert_array_equal(cache.numpy(), plain.numpy())
        if device == "cpu":
            seen.append(address(cache))
    assert len(set(seen[1:])) <= 1


def test_what_others_hold_is_not_written_to(device: str) -> None:
    given = np.zeros((200, 300), np.float32)
    cache = wg.asarray(given, device=device, copy=False if device == "cpu" else None)

    @wg.jit
    def write(into: wg.Tensor, at: int) -> None:
        into[at] = 1.0

    kept = []
    for at in range(5):
        lazy, same, read = cache.reshape(-1) * 1, cache.clone(), cache.numpy()
        write(cache, at)
        kept.append((lazy, same, read))
        read_again = np.asarray(cache)
        read_again[...] = 7
        write(cache, at)
    assert given.sum() == 0
    for count, (lazy, same, read) in enumerate(kept):
        assert lazy.sum().item() == same.sum().item() == read.sum() == 300 * count
    assert cache.sum().item() == 1500


def test_memory_of_a_users_own_is_not_written_to(device: str) -> None:
    if device != "cpu":
        pytest.skip("only the cpu shares memory")
    memory = bytearray(4 * 200 * 300)
    owner = np.zeros((400, 300), np.float32)
    views = [np.frombuffer(memory, np.float32).reshape(200, 300), owner[100:300]]

    @wg.jit
    def write(into: wg.Tensor, at: int) -> None:
        into[at] = 1.0

    for number in range(2):
        cache = wg.asarray(views[number], device=device, copy=False)
        views[number] = np.zeros(1, np.float32)  # only the cache holds the array now
        write(cache, 0)
        write(cache, 1)
        assert cache.sum().item() == 600
    assert not any(memory)
    assert owner.sum() == 0


def test_a_cache_that_is_read_after_it_is_written(device: str) -> None:
    cache = wg.zeros((200, 300), device=device)

    @wg.jit
    def write(x: wg.Tensor, at: int) -> tuple[wg.Tensor, wg.Tensor, wg.Tensor]:
        before = cache.sum(axis=0)
        old = cache * 1
        cache[at] = x
        return before, old, cache.reshape(-1)

    for at in range(4):
        before, old, after = write(tensor(np.ones(300), device), at)
        assert before.sum().item() == old.sum().item() == 300 * at
        assert after.sum().item() == cache.sum().item() == 300 * (at + 1)
        cache.numpy()
    assert after.shape == (60_000,)
