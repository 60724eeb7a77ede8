"""wg.fft against NumPy's: every function on every device, lengths, norms, axes, dtypes, errors, gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import webgrad as wg
from tests.functions.devices import everywhere, place
from webgrad.errors import ArgumentError, AxisError, BufferError, DTypeError, ShapeError

Array = np.ndarray[Any, Any]
NORMS = ("backward", "ortho", "forward")
COMPLEX = ("fft", "ifft", "irfft", "hfft")
ONE = (*COMPLEX, "rfft", "ihfft")
SEVERAL = ("fftn", "ifftn", "rfftn", "irfftn", "fft2", "ifft2", "rfft2", "irfft2")
BOUNDS = {"c64": 1e-6, "c128": 3e-15}  # the root of the mean square, beside the result's


def draw(shape: tuple[int, ...], real: bool = False, wide: bool = False) -> Array:
    generator = np.random.default_rng(sum(shape))
    x = generator.standard_normal(shape)
    if real:
        return x.astype(np.float64 if wide else np.float32)
    return (x + 1j * generator.standard_normal(shape)).astype(np.complex128 if wide else np.complex64)


def check(kind: str, name: str, x: Array, **options: Any) -> None:
    wide = x.dtype in (np.float64, np.complex128)
    wanted = np.asarray(getattr(np.fft, name)(x.astype(np.result_type(x, np.float64)), **options))
    tensor = getattr(wg.fft, name)(place(kind, x), **options)
    names = ("complex128", "float64") if wide else ("complex64", "float32")
    assert tensor.dtype.name == names[wanted.dtype.kind == "f"]
    found = tensor.numpy()
    assert found.shape == wanted.shape
    size = np.sqrt(np.mean(np.abs(wanted) ** 2))
    error = np.sqrt(np.mean(np.abs(found - wanted) ** 2))
    assert error <= BOUNDS["c128" if wide else "c64"] * max(size, 1e-3), f"{name} {x.shape} {options}"


@everywhere
@pytest.mark.parametrize("name", ONE)
def test_one_dimension(kind: str, name: str) -> None:
    for at, length in enumerate((1, 2, 3, 8, 11, 12, 25, 64, 67, 101, 128, 300, 1001)):
        if length == 1 and name in ("irfft", "hfft"):
            continue  # nothing comes of one number
        check(kind, name, draw((3, length), name not in COMPLEX), norm=NORMS[at % 3])


@everywhere
@pytest.mark.parametrize("name", ONE)
def test_lengths_and_axes(kind: str, name: str) -> None:
    x = draw((4, 6, 5), name not in COMPLEX)
    for n, axis in ((None, 0), (None, 1), (8, -1), (3, 1), (7, 0), (1, -2)):
        check(kind, name, x, n=n, axis=axis)


@pytest.mark.parametrize("name", ONE)
@settings(max_examples=60)
@given(length=st.integers(2, 300), rows=st.integers(1, 4), norm=st.sampled_from(NORMS), wide=st.booleans())
def test_any_length_on_the_cpu(name: str, length: int, rows: int, norm: str, wide: bool) -> None:
    check("cpu", name, draw((rows, length), name not in COMPLEX, wide), norm=norm)


@pytest.mark.gpu
@settings(max_examples=40)
@given(length=st.integers(2, 300), rows=st.integers(1, 3), norm=st.sampled_from(NORMS))
def test_any_length_on_a_gpu(length: int, rows: int, norm: str) -> None:
    check("software", "fft", draw((rows, length)), norm=norm)


@everywhere
@pytest.mark.parametrize("bits", [10, 13, 18])
def test_powers_of_two(kind: str, bits: int) -> None:
    check(kind, "fft", draw((1 << bits,)))
    check(kind, "rfft", draw((1 << bits,), real=True))


@everywhere
def test_double_precision(kind: str) -> None:
    if kind != "cpu" and "f64" not in place(kind, [0.0]).device.profile.features:
        pytest.skip("the adapter has no float64")
    for name in ("fft", "ifft"):
        for length in (16, 30, 101, 2048):
            check(kind, name, draw((2, length), wide=True), norm="ortho")
    check(kind, "rfft", draw((2, 60), real=True, wide=True))


@everywhere
@pytest.mark.parametrize("name", SEVERAL)
def test_several_dimensions(kind: str, name: str) -> None:
    x = draw((2, 4, 6), name.startswith("rfft"))
    check(kind, name, x)
    check(kind, name, x, axes=(2, 0), norm="ortho")
    check(kind, name, x, s=(5, 4), axes=(0, 1), norm="forward")


@everywhere
def test_real_numbers_have_mirrored_transforms(kind: str) -> None:
    for name in ("fft", "ifft", "fftn", "ifftn"):
        for length in (1, 2, 7, 10):
            check(kind, name, draw((2, length), real=True))


@everywhere
@pytest.mark.parametrize("length", [2, 8, 30, 64, 4096])
def test_ends_of_real_numbers_are_real(kind: str, length: int) -> None:
    x = np.zeros(length, np.float32)
    x[0], x[1] = -1, -0.5  # first and middle number are negative: a part of -0.0 would make the angle -pi
    found = wg.angle(wg.fft.rfft(place(kind, x))).numpy()
    assert found[[0, -1]].tolist() == [np.float32(np.pi)] * 2


@everywhere
def test_imaginary_parts_that_cannot_be_are_ignored(kind: str) -> None:
    x = draw((3, 5))
    x[:, 0] = complex(1, np.nan)
    check(kind, "irfft", np.where(np.arange(5) == 4, x + 5j, x))
    x[:, 0] = 1 + 2j
    check(kind, "irfft", x, n=7)


@everywhere
def test_infinities_and_nan_stay(kind: str) -> None:
    for bad in (np.nan, np.inf):
        x = np.zeros((2, 64), np.complex64)
        x[0, 3] = bad
        found = wg.fft.fft(place(kind, x)).numpy()
        assert not np.isfinite(found[0]).any()
        assert (found[1] == 0).all()


@everywhere
def test_no_rows(kind: str) -> None:
    x = place(kind, np.zeros((0, 8), np.complex64))
    assert wg.fft.fft(x).numpy().shape == (0, 8)
    assert wg.fft.irfft(x).numpy().shape == (0, 14)
    assert wg.fft.rfft(wg.real(x), n=11).numpy().shape == (0, 6)


@everywhere
def test_other_dtypes_are_taken_as_float32(kind: str) -> None:
    for dtype in (np.int32, np.uint8, np.bool_, np.float16):
        x = np.array([1, 0, 1, 1, 0], dtype)
        found = wg.fft.fft(place(kind, x))
        assert found.dtype is wg.complex64
        np.testing.assert_allclose(found.numpy(), np.fft.fft(x.astype(np.float32)), atol=1e-6)


@everywhere
def test_captured(kind: str) -> None:
    @wg.jit
    def filtered(x: wg.Tensor) -> wg.Tensor:
        return wg.fft.irfft(wg.fft.rfft(x) * 0.5, n=x.shape[-1])

    for seed in range(3):
        x = np.random.default_rng(seed).standard_normal((4, 46)).astype(np.float32)
        np.testing.assert_allclose(filtered(place(kind, x)).numpy(), 0.5 * x, atol=1e-6)


FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[int, ...], bool]] = {
    "fft": (lambda f, x: f.fft(x), (2, 6), False),
    "ifft, of a prime": (lambda f, x: f.ifft(x, n=11), (2, 9), False),
    "fft of real numbers": (lambda f, x: f.fft(x, norm="ortho"), (2, 6), True),
    "rfft, even": (lambda f, x: f.rfft(x), (2, 6), True),
    "rfft, odd": (lambda f, x: f.rfft(x), (2, 5), True),
    "irfft, even": (lambda f, x: f.irfft(x), (2, 4), False),
    "irfft, odd": (lambda f, x: f.irfft(x, n=5), (2, 3), False),
    "hfft": (lambda f, x: f.hfft(x), (3, 3), False),
    "rfftn": (lambda f, x: f.rfftn(x, s=(4, 4), axes=(0, 1)), (3, 5), True),
    "long prime": (lambda f, x: f.fft(x), (67,), False),
}


def pairs_of(x: Array) -> Array:
    return np.stack([x.real, x.imag], -1) if np.iscomplexobj(x) else x


@everywhere
@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients(kind: str, name: str) -> None:
    """Transforms are linear: the gradient of Σ w·f(x) by x's parts is Σ w·f(unit) for every unit."""
    function, shape, real = FUNCTIONS[name]
    x = draw(shape, real)
    result = pairs_of(function(np.fft, x.astype(np.result_type(x, np.float64))))
    weights = np.asarray(np.random.default_rng(0).standard_normal(result.shape), np.float32)
    units = np.eye(2 * x.size) if not real else np.eye(x.size)
    wanted = [
        np.sum(
            weights
            * pairs_of(function(np.fft, (unit if real else unit.reshape(-1, 2) @ [1, 1j]).reshape(shape)))
        )
        for unit in units
    ]
    given = place(kind, pairs_of(x)).requires_grad_()
    made = function(wg.fft, given if real else wg.view_as_complex(given))
    made = wg.view_as_real(made) if made.dtype.kind == "c" else made
    (made * place(kind, weights)).sum().backward()
    assert given.grad is not None
    np.testing.assert_allclose(given.grad.numpy().reshape(-1), wanted, atol=2e-5)


# Frequencies


@everywhere
def test_frequencies(kind: str) -> None:
    device = place(kind, [0.0]).device
    for n in (1, 2, 5, 8):
        for name in ("fftfreq", "rfftfreq"):
            found = getattr(wg.fft, name)(n, d=0.25, device=device)
            assert found.device is device
            np.testing.assert_allclose(found.numpy(), getattr(np.fft, name)(n, 0.25), rtol=1e-6)
    assert wg.fft.fftfreq(4, dtype=wg.float16, device=device).dtype is wg.float16


@everywhere
def test_shifts(kind: str) -> None:
    for x in (draw((5,), real=True), draw((4, 3)), draw((2, 3, 4), real=True)):
        for axes in (None, 0, (0, -1)):
            for name in ("fftshift", "ifftshift"):
                found = getattr(wg.fft, name)(place(kind, x), axes=axes)
                np.testing.assert_array_equal(found.numpy(), getattr(np.fft, name)(x, axes))


# Errors


def test_what_is_refused() -> None:
    x = wg.zeros((3, 4), device="cpu")
    with pytest.raises(ShapeError, match="fft of 0 numbers"):
        wg.fft.fft(x, n=0)
    with pytest.raises(ShapeError, match="irfft of 0 numbers"):
        wg.fft.irfft(wg.zeros((3, 1), device="cpu"))
    with pytest.raises(ShapeError, match="fft of 0 numbers"):
        wg.fft.fft(wg.zeros((3, 0), device="cpu"))
    with pytest.raises(ArgumentError, match="norm is one of 'backward', 'ortho', 'forward', not 'both'"):
        wg.fft.fft(x, norm="both")
    with pytest.raises(AxisError, match="rfft: there is no axis 2"):
        wg.fft.rfft(x, axis=2)
    with pytest.raises(AxisError, match="fft: there is no axis -1"):
        wg.fft.fft(wg.asarray(1.0, device="cpu"))
    with pytest.raises(DTypeError, match="rfft takes real numbers, not complex64"):
        wg.fft.rfft(wg.zeros(4, dtype=wg.complex64, device="cpu"))
    with pytest.raises(DTypeError, match="n must be an integer"):
        wg.fft.fft(x, n=2.5)  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match="give a smaller n"):
        wg.fft.fft(x, n=10**30)
    with pytest.raises(ArgumentError, match="same length"):
        wg.fft.fftn(x, s=(2, 2), axes=(0,))
    with pytest.raises(ShapeError, match="more elements than x has axes"):
        wg.fft.fftn(x, s=(2, 2, 2))
    with pytest.raises(ArgumentError, match="an axis to transform"):
        wg.fft.fftn(x, axes=())
    with pytest.raises(ArgumentError, match="at least 1, not 0"):
        wg.fft.fftfreq(0)
    with pytest.raises(ArgumentError, match="other than 0"):
        wg.fft.rfftfreq(4, d=0)
    with pytest.raises(DTypeError, match="gives floats, not int32"):
        wg.fft.fftfreq(4, dtype=wg.int32)
    with pytest.raises(DTypeError, match="fft takes a webgrad tensor, not a ndarray"):
        wg.fft.fft(np.zeros(4))  # type: ignore[arg-type]


@pytest.mark.gpu
def test_what_a_gpu_cannot_bind_is_refused_at_the_call() -> None:
    device = place("software", [0.0]).device
    count = device.profile.max_binding_bytes // 8
    with pytest.raises(BufferError, match="work in parts"):
        wg.fft.fft(wg.zeros((2, count), dtype=wg.complex64, device=device))


def hermitian_by_one(x: Array, inverse: bool, norm: Any) -> Array:
    """hfft and ihfft along the last axis, fft and ifft along the one before it."""
    if inverse:
        return np.asarray(np.fft.ifft(np.fft.ihfft(x, norm=norm), axis=-2, norm=norm))
    return np.asarray(np.fft.hfft(np.fft.fft(x, axis=-2, norm=norm), norm=norm))


@everywhere
@pytest.mark.parametrize("name", ["hfft2", "hfftn", "ihfft2", "ihfftn"])
def test_hermitian_signals_along_two_axes(kind: str, name: str) -> None:
    inverse = name.startswith("i")
    x = draw((3, 4, 6), real=inverse)
    for norm in NORMS:
        options: dict[str, Any] = {"norm": norm} if name.endswith("2") else {"norm": norm, "axes": (-2, -1)}
        found = getattr(wg.fft, name)(place(kind, x), **options).numpy()
        np.testing.assert_allclose(found, hermitian_by_one(x, inverse, norm), atol=1e-4)


def test_hermitian_signals_and_lengths() -> None:
    x = draw((4, 6), real=True)
    assert wg.fft.hfftn(wg.fft.ihfftn(place("cpu", x)), s=(4, 6)).shape == (4, 6)
    back = wg.fft.hfft2(wg.fft.ihfft2(place("cpu", x)), s=(4, 6)).numpy()
    np.testing.assert_allclose(back, x, atol=1e-5)
    with pytest.raises(DTypeError, match="ihfft2"):
        wg.fft.ihfft2(place("cpu", draw((4, 6))))
