"""Random tensors: published vectors, equal streams, independence, distributions by fixed seeds, mistakes."""

from __future__ import annotations

import copy
import math
import pickle
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from webgrad import dtypes
from webgrad.errors import ArgumentError, AxisError, DTypeError, ShapeError
from webgrad.functions import random
from webgrad.functions.array.creation import asarray
from webgrad.functions.random import Generator, threefry
from webgrad.runtime.device import set_default_device

Array = np.ndarray[Any, Any]
MANY = 200_000


@pytest.fixture(autouse=True)
def on_the_cpu() -> Iterator[None]:
    """The default device is whatever the machine has."""
    set_default_device("cpu")
    yield
    set_default_device(None)


def drawn(seed: int = 1) -> Generator:
    return Generator(seed)


def chi_square(counts: Array) -> float:
    """How many standard deviations the statistic of equally likely cells is away from its mean."""
    expected = counts.sum() / counts.size
    degrees = counts.size - 1
    return float((((counts - expected) ** 2 / expected).sum() - degrees) / math.sqrt(2 * degrees))


# The stream


def test_published_vectors() -> None:
    ones = 0xFFFFFFFF
    assert threefry((0, 0), (0, 0)) == (0x6B200159, 0x99BA4EFE)
    assert threefry((ones, ones), (ones, ones)) == (0x1CB996FC, 0xBB002BE7)
    assert threefry((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3)) == (0xC4923A9C, 0x483DF7A0)


@pytest.mark.parametrize("draws", [0, 255, 256, 1000, 2**32 - 1, 2**32, 2**64 - 2])
def test_keys_made_at_once_are_those_made_one_by_one(draws: int) -> None:
    generator = Generator(11 << 32 | 5)
    generator.set_state((11 << 32 | 5, draws))
    places = [(draws + each) % 2**64 for each in range(3)]
    assert generator._next_keys(3) == [threefry((5, 11), (at & 0xFFFFFFFF, at >> 32)) for at in places]


def test_the_rows_bits_are_threefrys_first_word() -> None:
    bits = drawn(5).integers(0, 2**32, 6, dtype="uint32", device="cpu").numpy()
    key = threefry((5, 0), (0, 0))
    assert bits.tolist() == [threefry(key, (place, 0))[0] for place in range(6)]


def test_one_seed_is_one_stream() -> None:
    first, second = drawn(2**64 - 1), drawn(2**64 - 1)
    for _ in range(3):
        a = first.integers(-5, 1000, (3, 7), device="cpu").numpy()
        assert (a == second.integers(-5, 1000, (3, 7), device="cpu").numpy()).all()
    assert (a != drawn(2**64 - 2).integers(-5, 1000, (3, 7), device="cpu").numpy()).any()


def test_the_integer_stream_is_pinned() -> None:
    pinned = [969, 386, 441, 236, 286, 360, 163, 933]
    assert drawn(0).integers(0, 1000, 8, device="cpu").tolist() == pinned


@pytest.mark.gpu
def test_every_device_has_the_same_stream() -> None:
    for low, high, dtype in ((0, 2**32, "uint32"), (-(2**31), 2**31 - 1, "int32"), (-100, 100, "int8")):
        here = drawn(7).integers(low, high, (33, 5), dtype, device="cpu").numpy()
        there = drawn(7).integers(low, high, (33, 5), dtype, device="webgpu").numpy()
        np.testing.assert_array_equal(there, here)
    for dtype in ("float32", "float16", "bfloat16"):
        here, there = (drawn(7).uniform(1001, dtype=dtype, device=each).numpy() for each in ("cpu", "webgpu"))
        np.testing.assert_array_equal(there, here)
    here, there = (drawn(7).bernoulli(0.3, 1001, device=each).numpy() for each in ("cpu", "webgpu"))
    np.testing.assert_array_equal(there, here)
    here, there = (drawn(7).normal(1001, device=each).numpy() for each in ("cpu", "webgpu"))
    np.testing.assert_allclose(there, here, rtol=1e-5, atol=1e-6)


def test_a_shape_is_filled_in_order() -> None:
    flat = drawn().uniform(12, device="cpu").numpy()
    np.testing.assert_array_equal(drawn().uniform((3, 4), device="cpu").numpy().ravel(), flat)
    np.testing.assert_array_equal(drawn().uniform(5, device="cpu").numpy(), flat[:5])


def test_draws_and_seeds_are_independent() -> None:
    generator = drawn()
    draws = [generator.uniform(MANY // 4, device="cpu").numpy() for _ in range(3)]
    draws += [drawn(seed).uniform(MANY // 4, device="cpu").numpy() for seed in (2, 3, 1 << 32, 1 << 33)]
    correlations = np.corrcoef(draws) - np.eye(len(draws))
    assert np.abs(correlations).max() < 4.5 / math.sqrt(MANY // 4)


def test_neighbours_are_independent() -> None:
    x = drawn(4).uniform(MANY, device="cpu").numpy()
    assert abs(np.corrcoef(x[:-1], x[1:])[0, 1]) < 4.5 / math.sqrt(MANY)
    cells, _, _ = np.histogram2d(x[::2], x[1::2], 16, [[0, 1], [0, 1]])
    assert abs(chi_square(cells)) < 4


def test_states_are_saved_and_restored() -> None:
    generator = drawn(9)
    generator.normal(3, device="cpu")
    state = generator.get_state()
    assert state == (9, 2)
    expected = generator.uniform(5, device="cpu").numpy()
    generator.set_state(state)
    np.testing.assert_array_equal(generator.uniform(5, device="cpu").numpy(), expected)
    other = Generator()
    other.set_state(state)
    np.testing.assert_array_equal(other.uniform(5, device="cpu").numpy(), expected)
    again = generator.uniform(5, device="cpu").numpy()
    for copied in (copy.deepcopy(other), pickle.loads(pickle.dumps(other))):
        np.testing.assert_array_equal(copied.uniform(5, device="cpu").numpy(), again)
    assert repr(drawn(3)) == "Generator(seed=3, draws=0)"


def test_the_count_of_draws_uses_both_words() -> None:
    generator = drawn()
    generator.set_state((1, 2**32))
    far = generator.uniform(8, device="cpu").numpy()
    assert (far != drawn().uniform(8, device="cpu").numpy()).any()
    generator.set_state((1, 2**64 - 1))
    generator.normal(2, device="cpu")
    assert generator.get_state() == (1, 1)


def test_without_a_seed_every_generator_is_another() -> None:
    assert Generator().get_state()[0] != Generator().get_state()[0]


def test_the_modules_functions_share_a_generator() -> None:
    before = random.get_state()
    try:
        random.seed(11)
        first = [random.rand(3, device="cpu").tolist(), random.randn(3, device="cpu").tolist()]
        assert random.get_state() == (11, 3)
        random.seed(11)
        assert first == [random.rand(3, device="cpu").tolist(), random.randn(3, device="cpu").tolist()]
        random.set_state((11, 0))
        assert random.uniform(3, device="cpu").tolist() == first[0]
    finally:
        random.set_state(before)


def test_threads_never_share_a_draw() -> None:
    generator = drawn()
    found: list[tuple[int, ...]] = []

    def draw() -> None:
        mine = [tuple(generator.integers(0, 2**31, 4, device="cpu").tolist()) for _ in range(50)]
        found.extend(mine)

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 200
    assert generator.get_state() == (1, 200)


def test_draws_of_one_shape_are_one_structure() -> None:
    """Keys are scalars, so a second draw differs in parameters alone."""
    generator = drawn()
    a, b = generator.uniform((4, 4), device="cpu"), generator.uniform((4, 4), device="cpu")
    assert a.node.sig is b.node.sig
    from webgrad.graph.walk import pending

    assert [node.sig for node in pending([a.node])] == [node.sig for node in pending([b.node])]


# Distributions


@pytest.mark.parametrize(
    ("dtype", "digits"), [("float32", 24), ("float64", 53), ("float16", 11), ("bfloat16", 8)]
)
def test_uniform(dtype: str, digits: int) -> None:
    result = drawn().uniform(MANY, dtype=dtype, device="cpu")
    assert result.dtype.name == dtype
    x = result.numpy().astype(np.float64)
    assert x.min() >= 0
    assert x.max() < 1
    steps = x * 2.0**digits
    assert (steps == np.floor(steps)).all()
    assert (steps % 2 == 1).mean() == pytest.approx(0.5, abs=0.01)  # down to the last digit
    assert x.mean() == pytest.approx(0.5 - 2.0 ** -(digits + 1), abs=4 / math.sqrt(12 * MANY))
    assert abs(chi_square(np.histogram(x, 64, (0, 1))[0])) < 4


def test_uniform_ranges() -> None:
    x = drawn().uniform((100, 100), low=-3, high=5, device="cpu").numpy()
    assert -3 <= x.min() < -2.99
    assert 4.99 < x.max() <= 5
    assert drawn().uniform(4, low=2, high=2, device="cpu").tolist() == [2, 2, 2, 2]
    np.testing.assert_array_equal(
        drawn().uniform(9, low=1, high=2, device="cpu").numpy(), 1 + drawn().uniform(9, device="cpu").numpy()
    )


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_normal(dtype: str) -> None:
    result = drawn(3).normal(MANY, dtype=dtype, device="cpu")
    assert result.dtype.name == dtype
    x = result.numpy().astype(np.float64)
    assert np.isfinite(x).all()
    for power, expected, deviation in (
        (1, 0, 1),
        (2, 1, math.sqrt(2)),
        (3, 0, math.sqrt(15)),
        (4, 3, math.sqrt(96)),
    ):
        assert (x**power).mean() == pytest.approx(expected, abs=4.5 * deviation / math.sqrt(MANY) + 2e-3)
    if dtype != "bfloat16":  # whose steps are wider than these cells
        edges = [-2.326348, -1.644854, -0.841621, 0, 0.841621, 1.644854, 2.326348]
        shares = np.diff([0, 0.01, 0.05, 0.2, 0.5, 0.8, 0.95, 0.99, 1])
        counts = np.histogram(x, [-np.inf, *edges, np.inf])[0]
        allowed = 4.5 * np.sqrt(shares * (1 - shares) * MANY) + MANY * 1e-3 * (dtype == "float16")
        assert (np.abs(counts - shares * MANY) < allowed).all()


def test_normal_reaches_far_and_is_never_infinite() -> None:
    x = drawn(8).normal(2_000_000, device="cpu").numpy()
    assert 4.5 < np.abs(x).max() < 6.8
    assert np.isfinite(x).all()


def test_normal_mean_and_deviation() -> None:
    unit = drawn().normal(50, device="cpu").numpy()
    np.testing.assert_allclose(
        drawn().normal(50, mean=5, std=2, device="cpu").numpy(), 5 + 2 * unit, rtol=1e-6
    )
    assert drawn().normal(3, mean=1.5, std=0, device="cpu").tolist() == [1.5] * 3


def exact_integers(seed: int, low: int, high: int, count: int) -> list[int]:
    """low plus the high word of the bits times the range, in Python's integers."""
    bits = drawn(seed).integers(0, 2**32, count, dtype="uint32", device="cpu").numpy()
    return [low + (int(each) * (high - low) >> 32) for each in bits]


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [
        ("int32", 0, 1),
        ("int32", 0, 10),
        ("int32", -7, 65536),
        ("int32", -(2**31), 2**31),
        ("int32", -(2**31), 2**31 - 1),
        ("int32", 2**31 - 5, 2**31),
        ("uint32", 3, 2**32),
        ("uint32", 0, 2**32),
        ("int8", -128, 128),
        ("uint8", 0, 256),
        ("int16", -300, 300),
        ("uint16", 0, 65536),
        ("int64", -(2**40), -(2**40) + 99),
        ("int64", 2**40, 2**40 + 2**32),
        ("uint64", 2**63, 2**63 + 2**31 + 1),
    ],
)
def test_integers_are_exact_products(dtype: str, low: int, high: int) -> None:
    result = drawn(6).integers(low, high, 500, dtype, device="cpu")
    assert result.dtype.name == dtype
    assert result.tolist() == exact_integers(6, low, high, 500)
    assert low <= min(result.tolist()) <= max(result.tolist()) < high


def test_integers_are_equally_likely() -> None:
    for sides in (2, 6, 100, 1000):
        x = drawn(sides).integers(sides, shape=MANY, device="cpu").numpy()
        assert abs(chi_square(np.bincount(x, minlength=sides))) < 4


def test_bernoulli() -> None:
    for p in (0.0, 0.1, 0.5, 1.0):
        x = drawn(2).bernoulli(p, MANY, device="cpu")
        assert x.dtype is dtypes.bool
        assert x.numpy().mean() == pytest.approx(p, abs=4.5 * math.sqrt(p * (1 - p) / MANY))
    assert drawn().bernoulli(1, 3, dtype="float32", device="cpu").tolist() == [1.0, 1.0, 1.0]
    assert drawn().bernoulli(1.0, device="cpu").shape == ()


def test_bernoulli_of_probabilities() -> None:
    p = asarray([0.0, 0.25, 1.0], device="cpu")
    assert drawn().bernoulli(p).shape == (3,)
    means = drawn().bernoulli(p, (MANY // 4, 3)).numpy().mean(0)
    np.testing.assert_allclose(means, [0, 0.25, 1], atol=0.01)


def test_permutations() -> None:
    for length in (0, 1, 2, 257, 5000):
        x = drawn().permutation(length, device="cpu")
        assert x.dtype is dtypes.int32
        assert sorted(x.tolist()) == list(range(length))
    assert drawn().permutation(5000, device="cpu").tolist() != list(range(5000))
    generator = drawn(5)
    orders = [tuple(generator.permutation(3, device="cpu").tolist()) for _ in range(1200)]
    counts = np.array([orders.count(each) for each in set(orders)])
    assert counts.size == 6
    assert abs(chi_square(counts)) < 4


def test_permutations_of_tensors_keep_slices_whole() -> None:
    x = np.arange(20, dtype=np.float32).reshape(5, 4)
    order = drawn().permutation(5, device="cpu").numpy()
    np.testing.assert_array_equal(drawn().permutation(asarray(x, device="cpu")).numpy(), x[order])
    columns = drawn().permutation(asarray(x, device="cpu"), axis=-1).numpy()
    np.testing.assert_array_equal(columns, x[:, drawn().permutation(4, device="cpu").numpy()])


def test_choice() -> None:
    x = asarray([10, 20, 30], device="cpu")
    chosen = drawn().choice(x, (100, 100)).numpy()
    assert chosen.shape == (100, 100)
    assert abs(chi_square(np.unique(chosen, return_counts=True)[1])) < 4
    assert sorted(drawn().choice(x, 3, replace=False).tolist()) == [10, 20, 30]
    assert len(set(drawn().choice(50, (5, 8), replace=False, device="cpu").numpy().ravel().tolist())) == 40
    assert drawn().choice(7, device="cpu").shape == ()
    assert drawn().choice(asarray(np.ones((2, 3)), "float32", device="cpu"), (4, 5), axis=1).shape == (
        2,
        4,
        5,
    )
    assert drawn().choice(0, 0, device="cpu").shape == (0,)


def test_pytorchs_names() -> None:
    assert drawn().rand(2, 3, device="cpu").shape == drawn().randn((2, 3), device="cpu").shape == (2, 3)
    assert drawn().rand(device="cpu").shape == ()
    assert drawn().randint(10, (2, 2), device="cpu").shape == (2, 2)
    x = drawn().randint(5, 8, (1000,), dtype="int64", device="cpu")
    assert x.dtype is dtypes.int64
    assert set(x.tolist()) == {5, 6, 7}


def test_empty_shapes() -> None:
    for make in (Generator.uniform, Generator.normal):
        assert make(drawn(), (0, 3), device="cpu").numpy().shape == (0, 3)
        assert make(drawn(), (), device="cpu").numpy().shape == ()
    assert drawn().integers(5, shape=(3, 0), device="cpu").numpy().shape == (3, 0)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda g: g.uniform(3, low=2, high=1),
            ArgumentError,
            r"random.uniform: low 2.0 is above high 1.0",
        ),
        (
            lambda g: g.uniform(3, high=math.inf),
            ArgumentError,
            "random.uniform: high must be a finite number, not inf",
        ),
        (
            lambda g: g.uniform(3, low="a"),
            DTypeError,
            r"random.uniform \(low\) takes a real number here, not 'a'",
        ),
        (lambda g: g.uniform(3, dtype="int32"), DTypeError, "random.uniform gives floats, not int32"),
        (lambda g: g.normal(3, dtype="complex64"), DTypeError, "webgrad.complex of two of them"),
        (lambda g: g.uniform((2, -1)), ShapeError, "random.uniform: a shape has no negative sizes"),
        (lambda g: g.uniform(2**33), ShapeError, "more than 2\\*\\*32 elements"),
        (lambda g: g.uniform(3.5), ShapeError, "random.uniform: 3.5 is not a shape"),
        (lambda g: g.normal(3, std=-1), ArgumentError, "random.normal: std must be 0 or more, not -1.0"),
        (
            lambda g: g.normal(3, mean=math.nan),
            ArgumentError,
            "random.normal: mean must be a finite number, not nan",
        ),
        (lambda g: g.integers(5, 5), ArgumentError, "from 5 up to 5 there must be 1 to 2\\*\\*32 numbers"),
        (
            lambda g: g.integers(0, 2**33, dtype="int64"),
            ArgumentError,
            "there must be 1 to 2\\*\\*32 numbers",
        ),
        (lambda g: g.integers(0, 300, dtype="uint8"), DTypeError, "299 does not fit uint8"),
        (lambda g: g.integers(0.5, 3), DTypeError, "random.integers takes integers, not 0.5"),
        (lambda g: g.integers(3, dtype="float32"), DTypeError, "gives integers, not float32"),
        (lambda g: g.bernoulli(1.5), ArgumentError, "p must be a probability, 0 to 1, not 1.5"),
        (lambda g: g.bernoulli(asarray([1])), DTypeError, "probabilities are floats, not int32"),
        (lambda g: g.bernoulli(asarray([0.5, 0.5]), (2, 3)), ShapeError, "random.bernoulli"),
        (
            lambda g: g.bernoulli(asarray([[0.5]]), (3,)),
            ShapeError,
            r"p of shape \(1, 1\) does not broadcast",
        ),
        (lambda g: g.permutation(-1), ShapeError, "a length must be from 0 to 2\\*\\*31 - 1, not -1"),
        (
            lambda g: g.permutation([1, 2]),
            DTypeError,
            "random.permutation takes a webgrad tensor, not a list",
        ),
        (lambda g: g.permutation(asarray(1.0)), AxisError, "random.permutation"),
        (
            lambda g: g.choice(3, 4, replace=False),
            ArgumentError,
            "cannot choose 4 of 3 without replacement",
        ),
        (lambda g: g.choice(0, 1), ArgumentError, "cannot choose 1 of 0"),
        (lambda g: g.seed(-1), ArgumentError, "seed and draws must be from 0 to 2\\*\\*64 - 1, not -1"),
        (lambda g: g.seed("abc"), DTypeError, "a state is \\(seed, draws\\)"),
        (lambda g: g.set_state(3), DTypeError, "a state is \\(seed, draws\\), two integers, not 3"),
    ],
)
def test_mistakes_are_named(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call(drawn())


def test_mistakes_leave_the_stream_where_it_was() -> None:
    generator = drawn()
    with pytest.raises(ArgumentError):
        generator.uniform(3, low=2, high=1)
    with pytest.raises(DTypeError):
        generator.integers(0, 300, dtype="uint8")
    assert generator.get_state() == (1, 0)
