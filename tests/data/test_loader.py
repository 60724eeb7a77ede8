"""Batches: which, in what order, on what device, made ahead, and resumed."""

from __future__ import annotations

import gc
import itertools
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.limits import HANG
from webgrad.data import DataLoader, Subset


def numbers(loader: DataLoader) -> list[list[int]]:
    return [batch.tolist() for batch in loader]


def threads() -> int:
    return sum(each.name == "webgrad-data" for each in threading.enumerate())


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    yield
    if threads():  # garbage may have one
        gc.collect()
    assert threads() == 0


@pytest.fixture
def cpu() -> Iterator[None]:
    wg.set_default_device("cpu")
    yield
    wg.set_default_device(None)


pytestmark = pytest.mark.usefixtures("cpu")


@pytest.mark.parametrize("prefetch", [0, 1, 2, 50])
def test_batches_in_order(prefetch: int) -> None:
    loader = DataLoader(np.arange(7), 3, prefetch=prefetch)
    assert len(loader) == 3
    assert numbers(loader) == [[0, 1, 2], [3, 4, 5], [6]]
    assert numbers(DataLoader(np.arange(7), 3, drop_last=True, prefetch=prefetch)) == [[0, 1, 2], [3, 4, 5]]


def test_tuples_dicts_and_texts() -> None:
    samples = [{"x": np.full(2, at), "name": f"sample {at}"} for at in range(3)]
    with pytest.raises(wg.DTypeError, match="holds no numbers"):
        list(DataLoader(samples, 2))
    loader = DataLoader(samples, 2, collate=lambda each: {"names": [one["name"] for one in each]})
    assert next(iter(loader)) == {"names": ["sample 0", "sample 1"]}
    x, y = next(iter(DataLoader((np.zeros((4, 2), np.float16), np.arange(4, dtype=np.uint8)), 4)))
    assert (x.shape, x.dtype, y.dtype) == ((4, 2), wg.float16, wg.uint8)
    x, y = next(iter(DataLoader([np.zeros((4, 2)), np.arange(4)], 4)))
    assert x.dtype == wg.float64
    assert numbers(DataLoader([5, 6, 7], 2)) == [[5, 6], [7]]


def test_shuffles_can_be_had_again() -> None:
    one, same = (DataLoader(np.arange(100), 32, shuffle=True, seed=5) for _ in range(2))
    first, second = numbers(one), numbers(one)
    assert first != second
    assert sorted(itertools.chain(*first)) == list(range(100))
    assert [first, second] == [numbers(same), numbers(same)]
    assert numbers(DataLoader(np.arange(100), 32, shuffle=True, seed=6)) != first
    assert first[0][:6] == [99, 73, 0, 54, 37, 24], "the order of a seed must stay what it was"


def test_without_a_seed_it_follows_the_random_module() -> None:
    found = []
    for seed in (1, 1, 2):
        wg.random.seed(seed)
        found.append(numbers(DataLoader(np.arange(50), 50, shuffle=True)))
    assert found[0] == found[1] != found[2]
    wg.random.seed(1)
    assert numbers(DataLoader(np.arange(50), 10)) == [list(range(at, at + 10)) for at in range(0, 50, 10)]
    assert wg.random.get_state() == (1, 0), "nothing was drawn"
    one, other = (DataLoader(np.arange(50), 50, shuffle=True) for _ in range(2))
    assert numbers(one) != numbers(other), "samples of two loaders are not always the same pairs"


@pytest.mark.parametrize("after", [0, 1, 2, 3, 4, 5])
def test_resuming_in_the_middle(after: int) -> None:
    """After so many of two epochs' six batches."""
    whole = DataLoader(np.arange(9), 3, shuffle=True, seed=1)
    expected = [*numbers(whole), *numbers(whole)]
    loader = DataLoader(np.arange(9), 3, shuffle=True, seed=1)
    stream = itertools.chain(loader, loader)
    done = [next(stream).tolist() for _ in range(after)]
    state = loader.state_dict()
    del stream
    other = DataLoader(np.arange(9), 3, shuffle=True, seed=77)
    other.load_state_dict(state)
    epochs = 2 if after < 3 else 1
    assert done + [each for _ in range(epochs) for each in numbers(other)] == expected


def test_a_loop_that_was_left_begins_the_next_epoch() -> None:
    whole = DataLoader(np.arange(9), 3, shuffle=True, seed=1)
    first, second = numbers(whole), numbers(whole)
    loader = DataLoader(np.arange(9), 3, shuffle=True, seed=1)
    for batch in loader:
        assert batch.tolist() == first[0]
        break
    assert (loader.epoch, loader.position) == (0, 1)
    assert numbers(loader) == second
    assert (loader.epoch, loader.position) == (2, 0)


def test_two_loops_at_once() -> None:
    loader = DataLoader(np.arange(6), 2)
    assert [(a.tolist(), b.tolist()) for a, b in zip(loader, loader, strict=True)] == [
        ([at, at + 1], [at, at + 1]) for at in (0, 2, 4)
    ]
    assert loader.position == 0


def test_states_that_do_not_fit() -> None:
    state = DataLoader(np.arange(9), 3).state_dict()
    with pytest.raises(wg.ArgumentError, match="batch_size=3, and this one has batch_size=2"):
        DataLoader(np.arange(9), 2).load_state_dict(state)
    with pytest.raises(wg.ArgumentError, match="samples=9"):
        DataLoader(np.arange(10), 3).load_state_dict(state)
    with pytest.raises(wg.ArgumentError, match="lacks epoch"):
        DataLoader(np.arange(9), 3).load_state_dict({k: v for k, v in state.items() if k != "epoch"})
    with pytest.raises(wg.ArgumentError, match="3 batches, and the state is at 4"):
        DataLoader(np.arange(9), 3).load_state_dict(state | {"position": 4})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"batch_size": 0}, "batch_size must be an integer, 1 or more, not 0"),
        ({"batch_size": 1.5}, "batch_size"),
        ({"batch_size": True}, "batch_size"),
        ({"prefetch": -1}, "prefetch must be an integer, 0 or more"),
        ({"seed": -1}, "seed"),
        ({"batch_size": 9, "drop_last": True}, "4 samples make no batch of 9 with drop_last"),
    ],
)
def test_wrong_options(options: dict[str, Any], words: str) -> None:
    with pytest.raises(wg.ArgumentError, match=words):
        DataLoader(np.arange(4), **options)


def test_wrong_datasets() -> None:
    with pytest.raises(wg.ArgumentError, match="0 samples make no batch"):
        DataLoader(np.zeros((0, 3)))
    with pytest.raises(wg.DTypeError, match=r"__len__ and __getitem__ .*, not a generator"):
        DataLoader(each for each in range(3))
    with pytest.raises(wg.DTypeError, match="integers, not a dict"):
        DataLoader({"x": np.zeros(3), "y": np.zeros(3)})
    with pytest.raises(wg.ShapeError, match="same length"):
        DataLoader((np.zeros(3), np.zeros(4)))


def test_transforms() -> None:
    def flip(x: Any, y: Any, random: np.random.Generator) -> Any:
        return x + random.integers(1000), y

    loader = DataLoader((np.zeros(6, np.int32), np.arange(6)), 2, seed=3, transform=flip)
    first = [x.tolist() for x, _ in loader]
    assert len({x[0] for x in first}) == 3, "each batch draws its own"
    loader.load_state_dict(loader.state_dict() | {"epoch": 0, "position": 1})
    assert [x.tolist() for x, _ in loader] == first[1:]
    doubled = DataLoader(np.arange(4), 2, transform=lambda x: {"twice": 2 * x})
    assert [batch["twice"].tolist() for batch in doubled] == [[0, 2], [4, 6]]


class Failing:
    """Sample 5 cannot be read."""

    def __len__(self) -> int:
        return 8

    def __getitem__(self, number: int) -> int:
        if number == 5:
            raise OSError("sample 5 is gone")
        return number


@pytest.mark.parametrize("prefetch", [0, 2])
def test_errors_come_where_the_batch_would_have(prefetch: int) -> None:
    seen: list[Any] = []
    loop = iter(DataLoader(Failing(), 2, prefetch=prefetch))
    with pytest.raises(OSError, match="sample 5 is gone") as caught:
        seen.extend(batch.tolist() for batch in loop)
    assert seen == [[0, 1], [2, 3]]
    assert any("__getitem__" in str(each) for each in caught.traceback), "the dataset's own line is shown"


class Counting:
    """Says how many samples were asked for."""

    def __init__(self) -> None:
        self.count = 0

    def __len__(self) -> int:
        return 1000

    def __getitem__(self, number: int) -> int:
        self.count += 1
        return number


def test_no_more_is_made_ahead_than_asked_for() -> None:
    data = Counting()
    loop = iter(DataLoader(data, 10, prefetch=2))
    next(loop)
    deadline = time.monotonic() + HANG
    while data.count < 40 and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.05)
    assert data.count == 40, "one taken, two waiting, one that is made and waits for room"
    assert threads() == 1
    del loop
    assert threads() == 0


def test_without_threads_batches_are_made_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")  # what Python says in a browser

    monkeypatch.setattr(threading.Thread, "start", refuse)
    data = Counting()
    loop = iter(DataLoader(data, 10, prefetch=2))
    assert next(loop).tolist() == list(range(10))
    assert data.count == 10


def test_the_thread_ends_when_the_loop_is_left() -> None:
    for _ in DataLoader(Counting(), 10):
        break
    assert threads() == 0
    with pytest.raises(ZeroDivisionError):
        [1 / 0 for _ in DataLoader(Counting(), 10)]
    gc.collect()
    assert threads() == 0


def test_a_loop_that_only_a_ring_holds() -> None:
    ring: list[Any] = []
    loop = iter(DataLoader(Counting(), 10))
    next(loop)
    ring += [ring, loop]
    del loop, ring
    gc.collect()
    assert threads() == 0


def test_tensors_stay_where_they_are() -> None:
    x = wg.arange(10, device="cpu")
    loader = DataLoader((x, x * 2), 4, shuffle=True, seed=0)
    for a, b in loader:
        assert threads() == 0
        assert (a * 2).tolist() == b.tolist()
    assert numbers(DataLoader(Subset(x, [1, 2, 3]), 2)) == [[1, 2], [3]]


@pytest.mark.gpu
def test_batches_on_a_gpu() -> None:
    images = np.arange(5 * 6, dtype=np.uint8).reshape(5, 6)
    loader = DataLoader((images, np.arange(5)), 2, device="webgpu")
    found = [(x, y) for x, y in loader]
    assert all(x.device.is_gpu for x, _ in found)
    np.testing.assert_array_equal(np.concatenate([x.numpy() for x, _ in found]), images)
