"""The quick element functions: within a unit in the last place of float64, special values as in the rows."""

from __future__ import annotations

import numpy as np
import pytest

from webgrad.cpu.functions import FEW, PIECE, element_function
from webgrad.ops.references import float_power
from webgrad.ops.table import TABLE

FLOAT = np.dtype(np.float32)
NAMES = ["erf", "erfc", "gelu", "gelu_tanh", "sigmoid"]
SPECIAL = np.array(
    [
        0,
        -0.0,
        np.nan,
        np.inf,
        -np.inf,
        1e-45,
        -1e-45,
        1e-40,
        3.4e38,
        -3.4e38,
        0.5,
        -0.5,
        10.7,
        -10.7,
        15.2,
        -15.2,
    ],
    np.float32,
)


def quick(name: str, dtype: np.dtype[np.generic] = FLOAT) -> object:
    return element_function(name, TABLE[name].numpy, dtype)


@pytest.mark.parametrize("name", NAMES)
def test_accuracy_over_the_domain(name: str) -> None:
    generator = np.random.default_rng(1)
    low, high = TABLE[name].domain
    x = np.concatenate(
        [
            SPECIAL,
            generator.uniform(low, high, 3 * PIECE).astype(np.float32),
            (generator.choice([-1, 1], 5000) * np.exp(generator.uniform(-90, 2, 5000))).astype(np.float32),
        ]
    )
    function = element_function(name, TABLE[name].numpy, FLOAT)
    assert function is not None
    with np.errstate(all="ignore"):
        got = function(x)
        exact = np.asarray(TABLE[name].numpy(x.astype(np.float64)), np.float64)
        want = exact.astype(np.float32)
    assert got.dtype == np.float32
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    finite = np.isfinite(want)
    np.testing.assert_array_equal(got[~finite], want[~finite])
    unit = np.spacing(np.maximum(np.abs(want[finite]), np.finfo(np.float32).tiny)).astype(np.float64)
    assert np.max(np.abs(got[finite] - exact[finite]) / unit) < (1.5 if name == "gelu_tanh" else 1)


@np.errstate(all="ignore")
def test_gelu_near_and_far() -> None:
    """Pieces without numbers left of -10 take a shorter way, with as good a result."""
    function = element_function("gelu_tanh", TABLE["gelu_tanh"].numpy, FLOAT)
    assert function is not None
    x = np.linspace(-10, 12, PIECE, dtype=np.float32)
    exact = TABLE["gelu_tanh"].numpy(x.astype(np.float64))
    assert np.max(np.abs(function(x) - exact) / np.spacing(np.abs(exact).astype(np.float32))) < 1.5
    far = x.copy()
    far[:2] = -10.08, -np.inf  # now another way is taken for all of them
    np.testing.assert_allclose(function(far)[2:], function(x)[2:], rtol=2e-7)
    np.testing.assert_allclose(
        function(far)[:2], TABLE["gelu_tanh"].numpy(far[:2].astype(np.float64)), rtol=1e-6
    )
    assert function(far)[0] < 0  # more than float32 holds is divided by


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", [(), (0,), (3, 5), (2, PIECE + 3)], ids=str)
def test_into_an_array_of_any_layout(name: str, shape: tuple[int, ...]) -> None:
    function = element_function(name, TABLE[name].numpy, FLOAT)
    assert function is not None
    x = np.random.default_rng(2).standard_normal(shape).astype(np.float32)
    want = function(x)
    assert want.shape == shape
    assert want.base is None
    out = np.empty(shape, np.float32)
    assert function(x, out=out) is out
    np.testing.assert_array_equal(out, want)
    if len(shape) == 2:
        turned = np.empty(shape[::-1], np.float32).T
        np.testing.assert_array_equal(function(np.asfortranarray(x), out=turned), want)
        row = np.empty(shape, np.float32)
        function(x[:1], out=row)  # broadcast
        np.testing.assert_array_equal(row, np.broadcast_to(want[:1], shape))


def test_which_functions_are_quick() -> None:
    assert quick("exp") is np.exp
    assert quick("power") is float_power
    assert quick("power", np.dtype(np.int32)) is None
    assert quick("gelu", np.dtype(np.float64)) is None


def test_where_and_rsqrt_into_an_array() -> None:
    choose, inverse = quick("where"), quick("rsqrt")
    assert callable(choose)
    assert callable(inverse)
    condition = np.array([[True], [False]])
    a, b = np.arange(3, dtype=np.int16), np.array(-7, np.int16)
    out = np.empty((2, 3), np.int16)
    np.testing.assert_array_equal(choose(condition, a, b, out=out), [[0, 1, 2], [-7, -7, -7]])
    np.testing.assert_array_equal(choose(condition, a, b), out)
    x = np.array([4, 0, np.inf, 0.25], np.float32)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(inverse(x, out=np.empty(4, np.float32)), [0.5, np.inf, 0, 2])


@pytest.mark.parametrize("kind", ["f4", "f8", "i1", "u2", "i4", "u8", "?"])
def test_where_chooses_bits(kind: str) -> None:
    """Whatever the elements are: NaN, infinities and zeros with a sign come through as they are."""
    choose = quick("where")
    assert callable(choose)
    size = FEW + 44
    values = np.resize(SPECIAL, size) if kind.startswith("f") else np.arange(size) % 100
    with np.errstate(all="ignore"):
        a, b = values.astype(kind), values[::-1].astype(kind)
    zero, several = np.zeros((), kind), np.arange(size) % 3 == 0
    minus = np.array(-0.0 if kind.startswith("f") else 1, kind)
    for condition in (several, np.array(True), several[::-1]):
        for x, y in ((a, b), (a, zero), (zero, b), (a, minus), (minus, b), (a[::2].repeat(2), b)):
            out = np.full(size, 7).astype(kind)
            expected = np.where(condition, x, y)
            assert choose(condition, x, y, out=out) is out
            assert np.broadcast_to(expected, size).tobytes() == out.tobytes()
            if expected.shape == (size,):
                assert choose(condition, x, y).tobytes() == expected.tobytes()


def test_where_repeats_what_is_broadcast() -> None:
    choose = quick("where")
    assert callable(choose)
    rows, columns = np.arange(40, dtype=np.float32)[:, None], np.arange(30, dtype=np.float32)
    condition = rows > columns
    np.testing.assert_array_equal(choose(condition, rows, columns), np.where(condition, rows, columns))
    np.testing.assert_array_equal(
        choose(condition[:1], rows, columns), np.where(condition[:1], rows, columns)
    )
