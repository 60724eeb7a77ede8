"""torch.utils.data without torch: orders, batches, workers, and their errors."""

from __future__ import annotations

import threading
from collections import OrderedDict, namedtuple
from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np
import pytest

import webgrad.torch as torch
from webgrad.torch.utils import data
from webgrad.torch.utils.data._utils import worker

Loader: Any = data.DataLoader
Pair = namedtuple("Pair", "x y")


class Squares(data.Dataset[Any]):
    def __init__(self, count: int = 10) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Any:
        if not 0 <= index < self.count:
            raise IndexError(index)
        return index, torch.tensor([index, index**2])


class Split(data.IterableDataset[int]):
    """The numbers below ten, each worker its part."""

    def __iter__(self) -> Iterator[int]:
        info = data.get_worker_info()
        return iter(range(10) if info is None else range(info.id, 10, info.num_workers))


def lists(batches: Any) -> list[Any]:
    return [each.tolist() for each in batches]


def test_batches_and_lengths() -> None:
    for options, expected in (
        ({}, [3, 3, 3, 1]),
        ({"drop_last": True}, [3, 3, 3]),
        ({"num_workers": 2}, [3, 3, 3, 1]),
    ):
        loader = Loader(Squares(), 3, **options)
        numbers, pairs = zip(*loader, strict=True)
        assert [len(each) for each in numbers] == expected
        assert len(loader) == len(iter(loader)) == len(expected)
        assert torch.cat(list(numbers)).tolist() == list(range(sum(expected)))
        assert pairs[1].tolist() == [[3, 9], [4, 16], [5, 25]]
        assert isinstance(pairs[0], torch.Tensor)
        assert numbers[0].dtype is torch.int64


@pytest.mark.parametrize("workers", [0, 2])
def test_a_seed_gives_one_order(workers: int) -> None:
    def epochs() -> list[Any]:
        torch.manual_seed(3)
        loader = Loader(range(20), 4, shuffle=True, num_workers=workers)
        return [lists(loader), lists(loader)]

    first = epochs()
    assert first == epochs()
    assert first[0] != first[1]
    assert sorted(chain.from_iterable(first[0])) == list(range(20))


def test_a_generator_leaves_the_common_numbers_alone() -> None:
    torch.manual_seed(5)
    expected = torch.rand(2).tolist()
    torch.manual_seed(5)
    loader = Loader(range(8), 2, shuffle=True, generator=torch.Generator().manual_seed(1))
    order = lists(loader)
    assert torch.rand(2).tolist() == expected
    again = Loader(range(8), 2, shuffle=True, generator=torch.Generator().manual_seed(1))
    assert lists(again) == order


def test_iterable_datasets_take_turns_of_workers() -> None:
    assert lists(Loader(Split(), 4)) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    loader = Loader(Split(), 4, num_workers=3, persistent_workers=True)
    for _ in range(2):
        assert lists(loader) == [[0, 3, 6, 9], [1, 4, 7], [2, 5, 8]]
    assert list(data.ChainDataset([Split(), Split()])) == [*range(10), *range(10)]
    with pytest.raises(ValueError, match="expects no shuffle"):
        Loader(Split(), shuffle=True)


def test_workers_know_themselves_and_draw_their_own_numbers() -> None:
    class Told(data.Dataset[Any]):
        def __len__(self) -> int:
            return 4

        def __getitem__(self, index: int) -> Any:
            info = data.get_worker_info()
            assert info is not None
            assert info.seed == torch.initial_seed()
            assert info.dataset is self
            return info.id, info.num_workers, torch.rand(1)

    started: list[int] = []
    torch.manual_seed(0)
    loader = Loader(Told(), num_workers=2, worker_init_fn=started.append)
    batches = list(loader)
    assert sorted(started) == [0, 1]
    assert [(each[0].item(), each[1].item()) for each in batches] == [(0, 2), (1, 2)] * 2
    assert len({each[2].item() for each in batches}) == 4
    torch.manual_seed(0)
    assert [each[2].item() for each in loader] == [each[2].item() for each in batches]


def test_an_error_of_a_worker_comes_out_with_its_traceback() -> None:
    loader = Loader(Squares(3), sampler=[1, 7], num_workers=1)
    batches = iter(loader)
    next(batches)
    with pytest.raises(IndexError) as caught:
        next(batches)
    assert any(entry.name == "__getitem__" for entry in caught.traceback)
    assert caught.value.__notes__ == ["(in worker 0 of a DataLoader)"]


def test_a_worker_that_does_not_answer_ends_by_the_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = threading.Event()
    monkeypatch.setattr(worker, "_CLOSING", 0.05)

    class Stuck(Squares):
        def __getitem__(self, index: int) -> Any:
            answers.wait(60)
            return 0

    batches = iter(Loader(Stuck(), num_workers=1, timeout=0.05))
    with pytest.raises(RuntimeError, match=r"timed out after 0\.05 seconds"):
        next(batches)
    answers.set()


def test_a_loop_that_is_left_ends_its_threads() -> None:
    def workers() -> set[threading.Thread]:
        return {each for each in threading.enumerate() if each.name.startswith("webgrad-worker")}

    others = workers()  # of loops that a failure elsewhere has left
    for _ in Loader(Squares(100), num_workers=3):
        own = workers() - others
        assert len(own) == 3
        break
    assert not workers() & own  # the loop's iterator is gone, and has waited for them


@pytest.mark.parametrize(
    "options",
    [
        {"num_workers": -1},
        {"timeout": -1},
        {"batch_size": 0},
        {"batch_size": None, "drop_last": True},
        {"prefetch_factor": 2},
        {"persistent_workers": True},
        {"shuffle": True, "sampler": [1]},
        {"batch_sampler": [[1]], "batch_size": 2},
    ],
)
def test_options_that_exclude_each_other(options: Any) -> None:
    with pytest.raises(ValueError, match=r"option|positive|disables|needs"):
        Loader(Squares(), **options)


def test_a_loader_keeps_what_it_was_made_with() -> None:
    loader = Loader(Squares())
    with pytest.raises(ValueError, match="batch_size attribute should not be set"):
        loader.batch_size = 3


def test_collation_keeps_structures() -> None:
    collate = data.default_collate
    found = collate([{"n": 1, "x": (2.0, "a")}, {"n": 3, "x": (4.0, "b")}])
    assert found["n"].tolist() == [1, 3]
    assert found["x"][0].dtype is torch.float64
    assert found["x"][1] == ("a", "b")
    pair = collate([Pair(torch.zeros(2), np.float32(1))] * 3)
    assert type(pair) is Pair
    assert (pair.x.shape, pair.y.dtype) == ((3, 2), torch.float32)
    assert type(collate([OrderedDict(a=1)] * 2)) is OrderedDict
    assert collate([torch.tensor(1), torch.tensor(2)]).tolist() == [1, 2]
    assert collate([np.ones((2, 3))] * 2).shape == (2, 2, 3)
    assert collate([True, False]).dtype is torch.bool
    assert collate([torch.zeros(0, 2)] * 2).shape == (2, 0, 2)
    converted = data.default_convert({"x": np.ones(2, np.int32), "s": "text"})
    assert converted["x"].dtype is torch.int32
    assert converted["s"] == "text"


def test_what_makes_no_batch() -> None:
    with pytest.raises(RuntimeError, match=r"equal size, but got \[2\] at entry 0 and \[3\]"):
        data.default_collate([torch.zeros(2), torch.zeros(3)])
    with pytest.raises(RuntimeError, match="should be of equal size"):
        data.default_collate([[1], [1, 2]])
    with pytest.raises(TypeError, match="batch must contain tensors"):
        data.default_collate([object()])


def test_tensors_are_gathered_as_single_samples_would_be() -> None:
    pairs = data.TensorDataset(torch.arange(10), torch.arange(20).reshape(10, 2))
    datasets: list[Any] = [pairs, data.Subset(pairs, [3, 4, -1, 0])]
    for dataset in datasets:
        plain = Loader(dataset, 3, collate_fn=lambda batch: data.default_collate(batch))
        for one, other in zip(Loader(dataset, 3), plain, strict=True):
            assert lists(one) == lists(other)
    with pytest.raises(IndexError, match="there are 10 samples"):
        list(Loader(pairs, sampler=[10]))
    with pytest.raises(AssertionError):
        data.TensorDataset(torch.zeros(2), torch.zeros(3))


def test_datasets_of_datasets() -> None:
    both = Squares(3) + Squares(4)
    assert [len(both), both[-1][0], both[3][0], both[2][0]] == [7, 3, 0, 2]
    with pytest.raises(ValueError, match="no number -8"):
        both[-8]
    stack = data.StackDataset(a=Squares(3), b=range(3))
    assert stack[2]["b"] == 2
    assert data.StackDataset(range(3), range(3)).__getitems__([2, 0]) == [(2, 2), (0, 0)]
    with pytest.raises(ValueError, match="Size mismatch"):
        data.StackDataset(range(3), range(4))
    parts = data.random_split(range(11), [0.5, 0.25, 0.25])
    assert [len(each) for each in parts] == [6, 3, 2]
    assert sorted(part[at] for part in parts for at in range(len(part))) == list(range(11))
    with pytest.raises(ValueError, match="Sum of input lengths"):
        data.random_split(range(10), [3, 8])


def test_samplers() -> None:
    assert sorted(data.RandomSampler(range(5), num_samples=10)) == sorted([*range(5)] * 2)
    assert len(list(data.RandomSampler(range(5), replacement=True, num_samples=20))) == 20
    assert set(data.WeightedRandomSampler([0.0, 1, 0, 2], 50)) == {1, 3}
    assert sorted(data.WeightedRandomSampler([0.5, 1, 0.1], 3, replacement=False)) == [0, 1, 2]
    assert sorted(data.SubsetRandomSampler([4, 7, 9])) == [4, 7, 9]
    assert list(data.BatchSampler(range(5), 2, drop_last=True)) == [[0, 1], [2, 3]]
    parts = [list(data.DistributedSampler(range(10), 3, rank)) for rank in range(3)]
    assert {each for part in parts for each in part} == set(range(10))
    assert [len(part) for part in parts] == [4, 4, 4]
    with pytest.raises(ValueError, match="Invalid rank"):
        data.DistributedSampler(range(10), 3, 3)
    with pytest.raises(ValueError, match="process group has not been initialized"):
        data.DistributedSampler(range(10))
