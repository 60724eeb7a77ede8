"""Complex numbers in every function that takes them, against NumPy, and their gradients, against differences.

Gradients are ∂L/∂re + i ∂L/∂im. What has no meaning for complex numbers is refused at the call.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.functions.devices import place

Array = np.ndarray[Any, Any]
BOTH = pytest.mark.parametrize("kind", ["cpu", pytest.param("software", marks=pytest.mark.gpu)])


def drawn(*shape: int, seed: int = 0) -> Array:
    generator = np.random.default_rng(seed)
    return (generator.standard_normal(shape) + 1j * generator.standard_normal(shape)).astype(np.complex64)


A, B, V = drawn(3, 4), drawn(3, 4, seed=1), drawn(4, seed=2)
F = A.imag.copy()
WHOLE = np.array([2, 0, 2], np.int32)
ODD = np.where(F > 1, np.complex64(np.inf), A)

# What is the same expression in both libraries, of complex a, b (3, 4) and v (4,), and of real f (3, 4).
Case = Callable[[Any, Any, Any, Any, Any], Any]
SAME: dict[str, Case] = {
    "real_beside": lambda xp, a, b, v, f: a * f + f - a / f,
    "numbers": lambda xp, a, b, v, f: (2j * f + 1j) / (a - 3) + (1 - 1j),
    "integers": lambda xp, a, b, v, f: xp.asarray(a * 2 + a * True),
    "powers": lambda xp, a, b, v, f: a**2 + a**3 + 2**a + a**0.5,
    "mean": lambda xp, a, b, v, f: xp.mean(a, axis=1, keepdims=True),
    "var": lambda xp, a, b, v, f: xp.var(a, axis=0, correction=1),
    "std": lambda xp, a, b, v, f: xp.std(a, axis=1, keepdims=True) + xp.std(a),
    "sum": lambda xp, a, b, v, f: xp.sum(a, axis=0),
    "sum_of_nothing": lambda xp, a, b, v, f: xp.sum(a[:0], axis=0),
    "prod": lambda xp, a, b, v, f: xp.prod(a, axis=1),
    "prod_of_nothing": lambda xp, a, b, v, f: xp.prod(a[:, :0], axis=1),
    "cumulative_sum": lambda xp, a, b, v, f: xp.cumulative_sum(a, axis=1, include_initial=True),
    "cumulative_prod": lambda xp, a, b, v, f: xp.cumulative_prod(a, axis=0),
    "diff": lambda xp, a, b, v, f: xp.diff(a, axis=1),
    "where": lambda xp, a, b, v, f: xp.where(f > 0, a, b) + xp.where(f > 0, f, a),
    "isclose": lambda xp, a, b, v, f: xp.isclose(a, a * (1 + 1e-7)),
    "any": lambda xp, a, b, v, f: xp.any(a - a, axis=0),
    "all": lambda xp, a, b, v, f: xp.all(a, axis=1),
    "logical_not": lambda xp, a, b, v, f: xp.logical_not(a - a),
    "count_nonzero": lambda xp, a, b, v, f: xp.count_nonzero(a),
    "equal": lambda xp, a, b, v, f: (a == 1j) | (a != b),
    "slices": lambda xp, a, b, v, f: a[::-1, ::2] + a[:, None, 1],
    "mask": lambda xp, a, b, v, f: a[f > 0],
    "repeat": lambda xp, a, b, v, f: xp.repeat(a, 2, axis=1),
    "roll": lambda xp, a, b, v, f: xp.roll(a, 1, axis=0),
    "tile": lambda xp, a, b, v, f: xp.tile(a, (2, 1)),
    "pad": lambda xp, a, b, v, f: xp.pad(a, ((1, 0), (0, 2)), constant_values=1j),
    "concat": lambda xp, a, b, v, f: xp.real(xp.concat([a, b, f], axis=0)),
    "stack": lambda xp, a, b, v, f: xp.stack([a, b], axis=1) * 1j,
    "permute_dims": lambda xp, a, b, v, f: xp.permute_dims(a, (1, 0)) * 2j,
    "reshape": lambda xp, a, b, v, f: xp.reshape(a.T, (2, 6)),
    "tril": lambda xp, a, b, v, f: xp.tril(a),
    "matmul": lambda xp, a, b, v, f: a @ b.T,
    "vectors": lambda xp, a, b, v, f: (a @ v) @ (a @ v) + v @ v,
    "real_product": lambda xp, a, b, v, f: f @ b.T + a @ f.T,
    "outer": lambda xp, a, b, v, f: xp.linalg.outer(v, v),
    "einsum": lambda xp, a, b, v, f: xp.einsum("ij,kj->ik", a, b),
    "tensordot": lambda xp, a, b, v, f: xp.tensordot(a, b, axes=2),
    "vecdot": lambda xp, a, b, v, f: xp.vecdot(a, b),
    "parts": lambda xp, a, b, v, f: a.real * a.imag + xp.real(a * b) - xp.imag(b) + f.real,
    "conj": lambda xp, a, b, v, f: a.conj() * xp.conj(b.T).T,
    "abs": lambda xp, a, b, v, f: abs(a) + xp.abs(a * b),
    "angle": lambda xp, a, b, v, f: xp.angle(a) + xp.angle(f),
    "round": lambda xp, a, b, v, f: xp.round(a * 10),
    "sign": lambda xp, a, b, v, f: xp.sign(a),
}


def close(result: Any, wanted: Any) -> None:
    found = result.numpy()
    assert found.shape == np.shape(wanted)
    assert found.dtype.kind == np.asarray(wanted).dtype.kind
    assert found.dtype.itemsize <= 8
    np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-5)


@BOTH
@pytest.mark.parametrize("name", SAME)
def test_as_numpy(name: str, kind: str) -> None:
    tensors = [place(kind, each) for each in (A, B, V, F)]
    close(SAME[name](wg, *tensors), SAME[name](np, A, B, V, F))


@BOTH
def test_gathers_and_scatters(kind: str) -> None:
    a, index = place(kind, A), place(kind, WHOLE)
    places = np.array([[0], [1], [2]], np.int32)
    close(wg.take(a, index, axis=1), np.take(A, WHOLE, 1))
    close(a[index, index], A[WHOLE, WHOLE])
    close(wg.take_along_axis(a, place(kind, places), axis=1), np.take_along_axis(A, places, 1))
    added = A.copy()
    np.add.at(added, WHOLE, B)
    close(wg.index_add(a, index, place(kind, B)), added)
    filled = A.copy()
    np.put_along_axis(filled, places, 9j, 1)
    close(wg.scatter_set(a, place(kind, places), 9j, axis=1), filled)


@BOTH
def test_assignments(kind: str) -> None:
    keys: list[tuple[Any, Any]] = [
        (1, V),
        ((slice(None), slice(0, 2)), 1 + 1j),
        (F > 0, 5j),
        (np.array([2, 0]), V),
        (0, 2.5),
        ((1, 2), 3 - 1j),
        (F > 0, A[F > 0] * 2),
        (0, F[0]),
        (1, np.complex64(2j)),
    ]
    for key, value in keys:
        x, wanted = place(kind, A), A.copy()
        x[key] = place(kind, value) if isinstance(value, np.ndarray) else value
        wanted[key] = value
        close(x, wanted)


@BOTH
def test_in_place_operators(kind: str) -> None:
    x, wanted = place(kind, A), A.copy()
    x += 1
    x *= 2j
    x /= place(kind, B)
    x -= place(kind, F)
    x **= 2
    close(x, ((wanted + 1) * np.complex64(2j) / B - F) ** 2)
    y = place(kind, F)
    with pytest.raises(wg.DTypeError, match="float32"):
        y *= 1j
    with pytest.raises(wg.DTypeError, match="two parts"):
        y[0] = 1j


@BOTH
def test_creation(kind: str) -> None:
    device = place(kind, V).device
    close(wg.full((2, 3), 1 + 2j, device=device), np.full((2, 3), 1 + 2j))
    close(wg.full((2,), np.complex64(1j), device=device), np.full(2, 1j))
    close(wg.full_like(place(kind, A), 2j), np.full_like(A, 2j))
    close(wg.ones_like(place(kind, A)) + wg.zeros((3, 4), dtype=wg.complex64, device=device), np.ones_like(A))
    close(wg.eye(3, dtype=wg.complex64, device=device), np.eye(3, dtype=np.complex64))
    close(wg.linspace(0, 1 + 1j, 5, device=device), np.linspace(0, 1 + 1j, 5))
    close(wg.linspace(1j, 2, 4, endpoint=False, device=device), np.linspace(1j, 2, 4, endpoint=False))
    close(wg.asarray([[1 + 2j, 3], [0.5, True]], device=device), np.array([[1 + 2j, 3], [0.5, 1]]))
    close(place(kind, F).astype(wg.complex64), F.astype(np.complex64))
    close(place(kind, A).astype(wg.bool), A.astype(bool))
    close(wg.polar(place(kind, np.abs(F)), place(kind, F)), np.abs(F) * np.exp(1j * F))
    assert wg.is_complex(wg.asarray(1j, device=device))
    assert not wg.is_complex(place(kind, F))


def test_dtypes_of_results() -> None:
    z, double = wg.asarray(A, device="cpu"), wg.asarray(A.astype(np.complex128), device="cpu")
    real, whole = wg.asarray(F, device="cpu"), wg.asarray(WHOLE, device="cpu")
    assert (z * double).dtype is (z * real.astype(wg.float64)).dtype is wg.complex128
    assert (real * 1j).dtype is (whole * 1j).dtype is ((real > 0) * 1j).dtype is wg.complex64
    assert (real * np.complex64(1j)).dtype is (np.complex64(1j) * real).dtype is wg.complex64
    assert (real.astype(wg.float16) * z).dtype is (whole[0] * z).dtype is wg.complex64
    assert (
        (double * 2.0).dtype is (2j * double).dtype is (real.astype(wg.float64) * 1j).dtype is wg.complex128
    )
    assert abs(z).dtype is z.real.dtype is z.imag.dtype is wg.angle(z).dtype is wg.float32
    assert abs(double).dtype is double.real.dtype is wg.float64


@BOTH
def test_in_and_out(kind: str) -> None:
    z = place(kind, A)
    for other in (pickle.loads(pickle.dumps(z)), copy.deepcopy(z), z.to_device("cpu").to_device(z.device)):
        np.testing.assert_array_equal(other.numpy(), A)
    np.testing.assert_array_equal(np.from_dlpack(z.to_device("cpu")), A)
    np.testing.assert_array_equal(wg.from_dlpack(A, device="cpu").numpy(), A)
    np.testing.assert_array_equal(np.asarray(z), A)
    assert z.tolist() == A.tolist()
    assert complex(z[0, 0]) == z[0, 0].item() == complex(A[0, 0])
    assert repr(wg.asarray([1 + 2j], device=z.device)).startswith("tensor([1.+2.j], dtype=complex64")
    np.testing.assert_array_equal(wg.nan_to_num(place(kind, ODD)).numpy(), np.nan_to_num(ODD))
    np.testing.assert_array_equal(
        wg.isclose(place(kind, ODD), place(kind, ODD)).numpy(), np.isclose(ODD, ODD)
    )


@BOTH
def test_captured_functions(kind: str) -> None:
    captured = wg.jit(lambda x, y, number: wg.exp(x * y) * number + 2j)
    a, b = place(kind, A), place(kind, B)
    for number in (1j, 3 + 1j, 2.0):
        close(captured(a, b, number), np.exp(A * B) * np.complex64(number) + np.complex64(2j))
    total = place(kind, A)

    @wg.jit
    def step(x: wg.Tensor) -> wg.Tensor:
        nonlocal total
        total += x * 1j
        return total.sum()

    step(b)
    step(b)
    close(total, A + 2j * B)


REFUSED: dict[str, Callable[[Any], Any]] = {
    name: getattr(wg, name)
    for name in (
        *(
            "floor",
            "ceil",
            "trunc",
            "sort",
            "argsort",
            "argmax",
            "argmin",
            "max",
            "min",
            "sigmoid",
            "signbit",
        ),
        *("erf", "relu", "gelu", "histogram"),
    )
} | {
    "cumulative_max": lambda z: wg.cumulative_max(z[0]),
    "clip": lambda z: wg.clip(z, 0, 1),
    "topk": lambda z: wg.topk(z, 2),
    "softmax": lambda z: wg.softmax(z, axis=-1),
    "maximum": lambda z: wg.maximum(z, z),
    "less": lambda z: z < 1,
    "remainder": lambda z: z % z,
    "floor_divide": lambda z: z // z,
    "bitwise_and": lambda z: z & z,
    "atan2": lambda z: wg.atan2(z, z),
    "searchsorted": lambda z: wg.searchsorted(z[0], z[0]),
    "arange": lambda z: wg.arange(3, dtype=wg.complex64),
    "astype": lambda z: z.astype(wg.float32),
    "asarray": lambda z: wg.asarray([1j], dtype=wg.float32),
    "float()": lambda z: float(z[0, 0]),
    "int()": lambda z: int(z[0, 0]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_meaning_is_refused(name: str) -> None:
    with pytest.raises(wg.DTypeError, match="complex"):
        REFUSED[name](wg.asarray(A, device="cpu"))


# Gradients


def total(y: Any, xp: Any) -> Any:
    """A real number in which both parts of every element count."""
    weights = np.linspace(0.5, 1.5, y.size).reshape(y.shape) + 1j * np.linspace(-1, 1, y.size).reshape(
        y.shape
    )
    factor = weights if xp is np else wg.asarray(weights, device="cpu")
    return xp.sum(xp.real(y * factor))


def check_gradients(function: Callable[..., Any], *inputs: Array) -> None:
    """Against differences in double precision."""
    tensors = [wg.asarray(each, device="cpu").requires_grad_() for each in inputs]
    total(function(*tensors), wg).backward()
    for at, (x, tensor) in enumerate(zip(inputs, tensors, strict=True)):
        wanted, step = np.zeros_like(x), 1e-6
        for place_ in np.ndindex(x.shape):
            for direction in (1, 1j) if np.iscomplexobj(x) else (1,):
                values = []
                for sign in (1, -1):
                    moved = x.copy()
                    moved[place_] += sign * step * direction
                    given = [wg.asarray(moved if each is x else each, device="cpu") for each in inputs]
                    values.append(total(function(*given).numpy(), np))
                wanted[place_] += direction * (values[0] - values[1]) / (2 * step)
        assert tensor.grad is not None
        assert tensor.grad.dtype is tensor.dtype
        np.testing.assert_allclose(tensor.grad.numpy(), wanted, rtol=2e-6, atol=2e-6, err_msg=str(at))


Z, W = (drawn(5, seed=seed).astype(np.complex128) for seed in (3, 4))
X = W.real.copy()
ON_AXES = np.array([0.5, 0.25j, 0.3 + 0.2j, 0.7, 0.1j])  # where formulas have corners and functions have none
UNARY = (
    *("exp", "exp2", "expm1", "log1p", "sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan"),
    *("asinh", "atanh", "square", "sign", "abs", "conj", "real", "imag", "negative"),
)


@pytest.mark.parametrize("name", UNARY)
def test_gradients_of_functions(name: str) -> None:
    check_gradients(getattr(wg, name), Z)
    check_gradients(getattr(wg, name), ON_AXES)


@pytest.mark.parametrize("name", ["log", "log2", "log10", "sqrt", "rsqrt", "acosh", "reciprocal", "angle"])
def test_gradients_of_functions_with_a_cut(name: str) -> None:
    check_gradients(getattr(wg, name), Z)
    check_gradients(getattr(wg, name), ON_AXES + 1.5)


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide", "power"])
def test_gradients_of_arithmetic(name: str) -> None:
    function = getattr(wg, name)
    check_gradients(function, Z, W)
    check_gradients(function, Z, X)
    check_gradients(function, np.abs(X), W)
    check_gradients(function, Z, W[:1])


def test_gradients_of_compositions() -> None:
    m, k = drawn(2, 3, seed=5).astype(np.complex128), drawn(3, 2, seed=6).astype(np.complex128)
    check_gradients(lambda a, b: a @ b, m, k)
    check_gradients(lambda a, b: a @ b, m.real.copy(), k)
    check_gradients(lambda a: wg.prod(a, axis=1) + wg.sum(a * a, axis=1), m)
    check_gradients(lambda a: wg.cumulative_prod(a, axis=1), m)
    check_gradients(lambda a, b: wg.where(a.real > 0, a, b)[::2], Z, W)
    check_gradients(lambda a, b: wg.concat([a[[0, 2, 0]], b]), Z, W)
    check_gradients(lambda a, b: wg.exp(a * b) / (1 + wg.sqrt(a)) + a**3 - a**-2, Z, W)
    check_gradients(lambda a, b: wg.complex(a, b) * 2j, X, np.abs(X))
    check_gradients(lambda a: wg.view_as_complex(a), m.real.reshape(3, 2).copy())
    check_gradients(lambda a: wg.vector_norm(a), Z)


def test_second_gradients() -> None:
    def first(x: wg.Tensor) -> wg.Tensor:
        return wg.sum(wg.real(wg.exp(x) * wg.conj(x)))

    check_gradients(lambda x: wg.grad(first)(x) * 1j, Z)


def test_backward_of_a_complex_number_needs_a_gradient() -> None:
    z = wg.asarray([1j], device="cpu").requires_grad_()
    with pytest.raises(wg.GradientError, match="only a real number"):
        (z * z).backward()
    (z * z).backward(gradient=wg.asarray([1 + 0j], device="cpu"))
    assert z.grad is not None
    assert z.grad.tolist() == [-2j]


def test_the_gradient_of_a_size_is_nothing_at_nothing() -> None:
    z = wg.zeros(2, dtype=wg.complex64, device="cpu").requires_grad_()
    wg.sum(wg.abs(z)).backward()
    assert z.grad is not None
    assert z.grad.tolist() == [0, 0]
