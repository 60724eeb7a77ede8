"""Users' kernels over tensors: lazy, captured, exported, differentiated, and refused in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from webgrad import custom
from webgrad.evaluate.evaluate import plans
from webgrad.native.compiler import is_available

pytestmark = pytest.mark.gpu

SCALE = """
struct Params { factor: f32, offset: vec2<u32> }
@group(0) @binding(3) var<storage, read_write> y: array<f32>; // before what is read
@group(0) @binding(5) var<storage, read> x: array<f32>;
var<uniform> p: Params;
@compute @workgroup_size(64)
fn scale(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < arrayLength(&y)) { y[id.x] = p.factor * x[id.x] + f32(p.offset.y); }
}
"""
ADD_TO = """
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> total: array<f32>;
@group(0) @binding(2) var<storage, read_write> place: array<u32>;
@compute @workgroup_size(64)
fn add_to(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < arrayLength(&total)) { total[id.x] += x[id.x]; place[id.x] = id.x; }
}
"""
PRODUCT = """
@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read> dead: array<f32>;
@group(0) @binding(3) var<storage, read_write> c: array<f32>;
@compute @workgroup_size(64)
fn product(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < arrayLength(&c)) { c[id.x] = a[id.x] * b[id.x]; }
}
"""
WORDS = """
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(64)
fn words(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < arrayLength(&y)) { y[id.x] = ~x[id.x]; }
}
"""
COUNT = """
struct Params { count: u32, first: f32 }
@group(0) @binding(0) var<storage, read_write> y: array<f32>;
var<uniform> p: Params;
@compute @workgroup_size(64)
fn count(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < p.count) { y[id.x] = p.first + f32(id.x); }
}
"""


@pytest.fixture(autouse=True)
def on_gpu() -> Iterator[None]:
    before = wg.default_device()
    wg.set_default_device("webgpu")
    yield
    wg.set_default_device(before)


def size_of(x: Any, *_: Any, **__: Any) -> Any:
    return x.size


def make_scale(**options: Any) -> wg.Kernel:
    return wg.kernel(SCALE, label="scale", threads=lambda *xs, **_: xs[-1].size, **options)


def make_add_to(**options: Any) -> wg.Kernel:
    return wg.kernel(
        ADD_TO,
        label="add_to",
        threads=size_of,
        results=lambda x, *_: [(x.shape, x.dtype), (x.shape, wg.uint32)],
        **options,
    )


def rows(*shape: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.random.default_rng(1).standard_normal(shape).astype(np.float32)


def gradient_of(x: wg.Tensor) -> np.ndarray[Any, np.dtype[Any]]:
    assert x.grad is not None
    found: np.ndarray[Any, np.dtype[Any]] = x.grad.numpy()
    return found


def stats(name: str) -> int:
    device = wg.open_device("webgpu")
    assert isinstance(device, wg.Device)
    found: int = device.stats()[name]
    return found


# Values


def test_a_kernel_is_lazy_and_its_neighbours_fuse() -> None:
    scale, x = make_scale(), rows(20, 30)
    given = wg.asarray(x)
    wg.eval(given)
    before = stats("commands")
    y = scale(given * 2 + 1, factor=3.0, offset=(0, 5)).relu() + 1
    assert (y.shape, y.dtype, stats("commands")) == ((20, 30), wg.float32, before)
    np.testing.assert_allclose(y.numpy(), np.maximum((x * 2 + 1) * 3 + 5, 0) + 1, rtol=1e-6)
    assert stats("commands") == before + 3  # what is before it, itself, and what is after it


def test_a_transposed_view_a_slice_and_a_number_are_given_as_they_look() -> None:
    scale, x = make_scale(), rows(6, 7)
    views: list[Callable[[Any], Any]] = [
        lambda a: a.T,
        lambda a: a[1:4, ::2],
        lambda a: a[2],
        lambda a: a.reshape(42),
    ]
    for view in views:
        found = scale(view(wg.asarray(x)), factor=2.0, offset=(0, 1)).numpy()
        np.testing.assert_array_equal(found, view(x) * 2 + 1)
    assert scale(wg.asarray(4.0), factor=2.0, offset=(0, 1)).item() == 9
    assert scale(wg.ones(()) * 4, factor=2.0, offset=(0, 1)).item() == 9


def test_an_input_used_twice_and_a_result_as_an_input() -> None:
    product = wg.kernel(PRODUCT, threads=size_of)  # `dead` is not used, and no binding
    x = wg.asarray(rows(100))
    y = product(product(x, x), x)
    np.testing.assert_allclose(y.numpy(), x.numpy() ** 3, rtol=1e-6)
    assert wg.all(product(y, y) == product(y, y)).item()


def test_a_result_begins_with_what_is_given_which_stays() -> None:
    add_to, x, base = make_add_to(), rows(3, 50), rows(3, 50) + 1
    tensor, start = wg.asarray(x), wg.asarray(base)
    total, place = add_to(tensor, start, None)
    np.testing.assert_array_equal(total.numpy(), base + x)
    assert place.dtype is wg.uint32
    assert np.array_equal(place.numpy().ravel(), np.arange(150))
    twice, _ = add_to(tensor, tensor, None)  # one tensor, read and begun with
    np.testing.assert_array_equal(twice.numpy(), 2 * x)
    np.testing.assert_array_equal(start.numpy(), base)
    np.testing.assert_array_equal(tensor.numpy(), x)


def test_what_dies_with_the_call_is_not_copied() -> None:
    add_to = make_add_to()
    x = wg.asarray(rows(1000))
    wg.eval(x)
    total, _ = add_to(x, x * 2, None)
    np.testing.assert_allclose(total.numpy(), 3 * x.numpy(), rtol=1e-6)


def test_results_of_one_launch_are_one_launch() -> None:
    add_to = make_add_to()
    x = wg.asarray(rows(64))
    total, place = add_to(x, wg.zeros(64), None)
    explained = str(wg.explain(total, place))
    assert explained.count("add_to") == 1
    before = stats("commands")
    both = (total + place).sum()
    assert both.item() == pytest.approx(float(x.numpy().sum() + 63 * 32), rel=1e-5)
    assert stats("commands") == before + 4  # zeros, a copy, the kernel, the sum
    _, only = add_to(x, wg.zeros(64), None)  # nobody wants the other
    assert only.tolist() == list(range(64))


def test_two_equal_calls_are_two_results() -> None:
    scale, x = make_scale(), wg.asarray(rows(5000))
    a, b = (scale(x, factor=2.0, offset=(0, 0)) for _ in range(2))
    a[0] = 7.0
    assert b.numpy()[0] == 2 * x.numpy()[0]
    assert a.numpy()[0] == 7


def test_a_kernel_without_inputs() -> None:
    count = wg.kernel(
        COUNT, threads=lambda *_, count, **__: count, results=lambda *_, count, **__: [((count,), wg.float32)]
    )
    y = count(count=5, first=2.0)
    assert y.tolist() == [2, 3, 4, 5, 6]
    begun = count(wg.zeros(3), count=2, first=1.0)
    assert begun.tolist() == [1, 2, 0]


def test_packed_types_are_words() -> None:
    words = wg.kernel(WORDS, threads=size_of)
    for dtype, size in ((np.uint8, 7), (np.uint8, 1), (np.int16, 5), (np.uint32, 3)):
        x = np.arange(size).astype(dtype)
        np.testing.assert_array_equal(words(wg.asarray(x)).numpy(), np.invert(x))


def test_numbers_that_change_make_no_new_plan() -> None:
    scale, x = make_scale(), wg.asarray(rows(10))
    scale(x, factor=1.0, offset=(0, 0)).numpy()
    before = plans(), stats("pipelines_compiled")
    for number in (2.0, np.float32(3), wg.fresh(lambda: 4.0), 5):
        found = scale(x, factor=number, offset=(0, np.int64(1))).numpy()
        np.testing.assert_allclose(found, x.numpy() * float(number) + 1, rtol=1e-6)
    assert before == (plans(), stats("pipelines_compiled"))


def test_thousands_of_calls() -> None:
    scale, y = make_scale(), wg.ones(8)
    for _ in range(3_000):
        y = scale(y, factor=1.0, offset=(0, 1))
    assert y.tolist() == [3_001.0] * 8


def test_a_result_is_written_to_in_place_like_any_other() -> None:
    scale = make_scale()
    y = scale(wg.ones((3, 4)), factor=2.0, offset=(0, 0))
    view = y[1]
    view += 5
    assert y.tolist() == [[2.0] * 4, [7.0] * 4, [2.0] * 4]


# Captured and exported


def test_a_captured_kernel_is_replayed() -> None:
    scale, add_to = make_scale(), make_add_to()
    settings = {"shift": 1}

    @wg.jit
    def step(x: wg.Tensor, factor: float) -> Any:
        y = scale(x + 1, factor=factor, offset=(0, wg.fresh(lambda: settings["shift"])))
        return add_to(y, y * 2, None)

    compiled = []
    for factor, shift in ((2.0, 1), (3.0, 4), (0.5, 7)):
        settings["shift"] = shift
        x = rows(33) * factor
        total, place = step(wg.asarray(x), factor)
        np.testing.assert_allclose(total.numpy(), 3 * (factor * (x + 1) + shift), rtol=1e-5)
        assert place.tolist() == list(range(33))
        compiled.append(stats("pipelines_compiled"))
    assert compiled[0] == compiled[2]
    assert step.captures == 1  # type: ignore[attr-defined]


def test_a_number_that_does_not_fit_is_refused_at_the_replay() -> None:
    scale = make_scale()
    step = wg.jit(lambda x, shift: scale(x, factor=1.0, offset=(0, shift)))
    assert step(wg.ones(3), 4).tolist() == [5.0] * 3
    with pytest.raises(wg.LaunchError, match=r"offset\.y"):
        step(wg.ones(3), -4)
    assert step(wg.ones(3), 1).tolist() == [2.0] * 3


def test_state_that_a_captured_kernel_changes() -> None:
    add_to, state = make_add_to(), wg.zeros(16)

    @wg.jit
    def step(x: wg.Tensor) -> None:
        state[...] = add_to(x, state, None)[0]

    for _ in range(3):
        step(wg.ones(16))
    assert state.tolist() == [3.0] * 16


def test_training_through_a_captured_kernel() -> None:
    scale = make_scale(gradient=lambda g, inputs, y, factor, offset: g * factor)
    weight = wg.ones(4).requires_grad_()

    @wg.jit
    def step(rate: float) -> Any:
        weight.grad = None
        loss = scale(weight * 2, factor=3.0, offset=(0, 0)).sum()
        loss.backward()
        with wg.no_grad():
            weight[...] = weight - rate * weight.grad  # type: ignore[operator]
        return loss

    assert [step(0.5).item() for _ in range(3)] == [24.0, -48.0, -120.0]


def exportable() -> Any:
    scale, add_to = make_scale(), make_add_to()

    def run(x: wg.Tensor, factor: float, shift: int) -> Any:
        y = scale(x.T + 1, factor=factor, offset=(0, shift))
        total, place = add_to(y, y * 2, None)
        return {"total": total, "place": place + 0}

    return run


def test_an_exported_plan_holds_the_kernels_text(tmp_path: Path) -> None:
    wg.export(exportable(), (wg.zeros((2, 3)), 1.0, 1), tmp_path / "out")
    plan = (tmp_path / "out" / "plan.json").read_text("utf-8")
    assert "fn scale" in plan
    assert "fn add_to" in plan


# Gradients


def test_gradients_are_those_of_the_function_given() -> None:
    def gradient(g: Any, inputs: Any, y: Any) -> Any:
        return g * inputs[1], g * inputs[0]

    product = wg.kernel(PRODUCT, threads=size_of, gradient=gradient)
    a, b = rows(4, 5), rows(4, 5) + 2
    x, z = wg.asarray(a).requires_grad_(), wg.asarray(b).requires_grad_()
    (product(x * 2, z).T ** 2).sum().backward()
    np.testing.assert_allclose(gradient_of(x), 8 * a * b * b, rtol=1e-5)
    np.testing.assert_allclose(gradient_of(z), 8 * a * a * b, rtol=1e-5)
    cube = wg.grad(lambda x: product(product(x, x), x).sum())
    np.testing.assert_allclose(wg.grad(lambda x: cube(x).sum())(x.detach()).numpy(), 6 * a, rtol=1e-5)


def test_gradients_of_several_results_and_of_what_a_result_begins_with() -> None:
    def gradient(gs: Any, inputs: Any, results: Any) -> Any:
        assert gs[1] is None  # integers have none
        assert len(results) == 2
        return (gs[0], gs[0])

    add_to = make_add_to(gradient=gradient)
    x, start = wg.ones(3).requires_grad_(), wg.ones(3).requires_grad_()
    total, place = add_to(x, start * 2, None)
    with wg.no_grad():
        x += 6.0  # the gradient is of what was given
    assert not place.requires_grad
    (total * wg.asarray([1.0, 2.0, 3.0])).sum().backward()
    assert gradient_of(start).tolist() == [2, 4, 6]


def test_a_kernel_without_a_gradient_says_how_to_give_one() -> None:
    scale, x = make_scale(), wg.ones(3).requires_grad_()
    y = scale(x, factor=2.0, offset=(0, 0))
    assert y.tolist() == [2.0] * 3
    with pytest.raises(wg.GradientError, match=r"gradient=function.*detach"):
        y.sum().backward()
    assert not scale(x.detach(), factor=2.0, offset=(0, 0)).requires_grad
    with wg.no_grad():
        assert not scale(x, factor=2.0, offset=(0, 0)).requires_grad
    wrong = make_scale(gradient=lambda g, inputs, y, **_: (g, g))
    with pytest.raises(wg.GradientError, match="2 gradients for 1"):
        wrong(x, factor=2.0, offset=(0, 0)).sum().backward()


# The cpu, checks, batches


def test_the_cpu_computes_the_reference() -> None:
    def reference(x: Any, total: Any, place: Any) -> Any:
        total += x  # a copy
        return total, np.arange(x.size, dtype=np.uint32).reshape(x.shape)

    add_to = make_add_to(reference=reference, gradient=lambda gs, inputs, results: (gs[0], gs[0]))
    for device in ("cpu", "webgpu"):
        x = wg.asarray(rows(300, 200), device=device).requires_grad_()
        start = wg.ones((300, 200), device=device)
        total, place = add_to(x * 2, start, None)
        np.testing.assert_allclose((total + 1).numpy(), rows(300, 200) * 2 + 2, rtol=1e-5, atol=1e-6)
        assert place.numpy()[1, 0] == 200
        assert start.numpy().max() == 1
        total.sum().backward()
        assert gradient_of(x).max() == 2
    twice = wg.jit(lambda x: add_to(x, x, None)[0])
    assert twice(wg.ones(3, device="cpu")).tolist() == twice(wg.ones(3)).tolist() == [2.0] * 3


def test_a_kernel_of_the_cpu_needs_no_gpu() -> None:
    scale = make_scale(device="cpu", reference=lambda x, factor, offset: x * factor + offset[1])
    assert scale(wg.ones(2, device="cpu"), factor=3.0, offset=(0, 1)).tolist() == [4.0, 4.0]
    with pytest.raises(ValueError, match="read-only"):
        make_scale(reference=lambda x, **_: np.add(x, 1, out=x))(
            wg.ones(2, device="cpu"), factor=3.0, offset=(0, 1)
        ).numpy()
    with pytest.raises(wg.LaunchError, match=r"shapes \(\(\),\), not \(\(2,\),\)"):
        make_scale(reference=lambda x, **_: 1.0)(wg.ones(2, device="cpu"), factor=1.0, offset=(0, 1)).numpy()


def test_without_native_code_the_cpu_needs_a_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(custom, "is_available", lambda: False)
    with pytest.raises(wg.DeviceError, match="reference="):
        make_scale()(wg.ones(2, device="cpu"), factor=3.0, offset=(0, 1))


@pytest.mark.skipif(not is_available(), reason="no native code here")
def test_the_cpu_runs_the_kernel_itself() -> None:
    add_to = make_add_to(gradient=lambda gs, inputs, results: (gs[0], gs[0]))
    for device in ("cpu", "webgpu"):
        x = wg.asarray(rows(300, 200), device=device).requires_grad_()
        start = wg.ones((300, 200), device=device)
        total, place = add_to(x * 2, start, None)
        np.testing.assert_allclose((total + 1).numpy(), rows(300, 200) * 2 + 2, rtol=1e-5, atol=1e-6)
        assert place.numpy()[1, 0] == 200
        assert start.numpy().max() == 1
        total.sum().backward()
        assert gradient_of(x).max() == 2
    scale = make_scale(device="cpu")
    assert scale(wg.ones(2, device="cpu"), factor=3.0, offset=(0, 1)).tolist() == [4.0, 4.0]
    captured = wg.jit(lambda x: scale(x + 1, factor=2.0, offset=(0, 0)))
    assert [captured(wg.full(3, n, device="cpu")).tolist() for n in (1.0, 2.0)] == [[4.0] * 3, [6.0] * 3]


@pytest.mark.skipif(not is_available(), reason="no native code here")
@pytest.mark.parametrize("dtype", [wg.float16, wg.bfloat16, wg.int8], ids=lambda dtype: dtype.name)
def test_packed_tensors_are_words_on_the_cpu_too(dtype: Any) -> None:
    source = """
    @group(0) @binding(0) var<storage, read> x: array<u32>;
    @group(0) @binding(1) var<storage, read_write> y: array<u32>;
    @compute @workgroup_size(1) fn flip(@builtin(global_invocation_id) id: vec3<u32>) {
        y[id.x] = x[id.x] ^ 0x03030303u;
    }"""
    flip = wg.kernel(source, device="webgpu", threads=lambda x: -(-x.nbytes // 4))
    found = [
        flip(wg.asarray([1, 2, 3, 5, 7], dtype=dtype, device=device)).tolist() for device in ("cpu", "webgpu")
    ]
    assert found[0] == found[1]


def test_check_says_what_it_cannot_compare() -> None:
    def compute(kernel: wg.Kernel) -> Any:
        return lambda x: (kernel(x * 2, factor=2.0, offset=(1, 3)) + 1).sum()

    x = wg.asarray(rows(100))
    report = wg.check(compute(make_scale()), x)
    assert report.ok
    assert "without a reference" in str(report)
    assert wg.check(compute(make_scale(reference=lambda x, factor, offset: x * factor + offset[1])), x).ok
    wrong = make_scale(reference=lambda x, factor, offset: x * factor)
    report = wg.check(compute(wrong), x)
    assert not report.ok
    assert "scale, grid (2, 1, 1)" in str(report)


def test_profiles_name_it() -> None:
    scale, x = make_scale(), wg.asarray(rows(100))
    with wg.profile() as profile:
        scale(x, factor=2.0, offset=(0, 0)).numpy()
    assert "scale" in str(profile)
    assert "test_kernel_tensors.py" in str(profile)


def test_a_batch_runs_it_over_its_arrays() -> None:
    scale, batch = make_scale(), wg.Batch("webgpu")
    x = batch.upload(np.ones(4, np.float32))
    y = batch.empty(4)
    batch.run(scale, y, x, factor=2.0, offset=(0, 1))
    batch.execute()
    assert batch.read(y).tolist() == [3.0] * 4


# What is refused

Misuse = Callable[[Any, Any], object]
NUMBERS: dict[str, Any] = {"factor": 1.0, "offset": (0, 0)}
WRONG: list[tuple[str, type[Exception], str, Misuse]] = [
    ("dtype", wg.DTypeError, r"x is array<f32>.*int32.*i32", lambda k, x: k(x.astype(wg.int32), **NUMBERS)),
    ("packed", wg.DTypeError, r"u32, 4 elements to a word", lambda k, x: k(x.astype(wg.int8), **NUMBERS)),
    ("complex", wg.DTypeError, "view_as_real", lambda k, x: k(x.astype(wg.complex64), **NUMBERS)),
    ("half", wg.DTypeError, r"f16 or u32, 2 elem", lambda k, x: k(x.astype(wg.float16), **NUMBERS)),
    ("empty", wg.LaunchError, r"\(0,\) is empty", lambda k, x: k(x[:0], **NUMBERS)),
    ("too many", wg.LaunchError, r"takes 1 tensors \(x\).*not 3", lambda k, x: k(x, x, x, **NUMBERS)),
    ("none for a read", wg.LaunchError, "reads x", lambda k, x: k(x, None, **NUMBERS)),
    ("only none", wg.LaunchError, "reads x", lambda k, x: k(None, **NUMBERS)),
    ("a buffer", wg.LaunchError, "a Buffer is not a tensor", lambda k, x: k(x, x.node.storage, **NUMBERS)),
    ("an array", wg.LaunchError, "webgrad.asarray", lambda k, x: k(x, np.ones(3), **NUMBERS)),
    ("no params", wg.LaunchError, "missing: factor, offset", lambda k, x: k(x)),
    ("unknown", wg.LaunchError, "unknown: fator", lambda k, x: k(x, fator=1, **NUMBERS)),
    ("a fraction", wg.LaunchError, "takes integers", lambda k, x: k(x, factor=1.0, offset=(0, 1.5))),
    (
        "a tensor",
        wg.LaunchError,
        "bind it as a storage buffer",
        lambda k, x: k(x, factor=x.sum(), offset=(0, 0)),
    ),
    ("both grids", wg.LaunchError, "either grid", lambda k, x: k(x, grid=1, threads=1, **NUMBERS)),
    ("no threads", wg.LaunchError, "computes no result", lambda k, x: k(x, threads=0, **NUMBERS)),
    ("large grid", wg.LaunchError, "65536", lambda k, x: k(x, grid=65536, **NUMBERS)),
    ("devices", wg.DeviceError, "on cpu", lambda k, x: k(x.to_device("cpu"), x, **NUMBERS)),
]


@pytest.mark.parametrize(("name", "error", "message", "misuse"), WRONG, ids=[row[0] for row in WRONG])
def test_wrong_calls(name: str, error: type[Exception], message: str, misuse: Misuse) -> None:
    x = wg.ones(4)
    wg.eval(x)
    scale = make_scale()
    before = stats("commands")
    with pytest.raises(error, match=message):
        misuse(scale, x)
    assert stats("commands") == before
    assert scale(x, **NUMBERS).tolist() == [1.0] * 4


def test_wrong_results() -> None:
    cases: list[tuple[Any, type[Exception], str]] = [
        ([((4,), wg.int32)], wg.DTypeError, r"y is array<f32>"),
        ([((4,), wg.float32), ((4,), wg.float32)], wg.LaunchError, r"for \(y\)"),
        ([((-1,), wg.float32)], wg.ShapeError, "negative"),
        ([((0, 3), wg.float32)], wg.LaunchError, "empty"),
        ([((1 << 40,), wg.float32)], wg.BufferError, "takes at most"),
        ([4], wg.LaunchError, r"a result is a \(shape, dtype\)"),
        ([((4,), "nothing")], wg.DTypeError, "nothing"),
        (lambda x, **_: None, wg.LaunchError, r"results= is a list"),
    ]
    for results, error, message in cases:
        with pytest.raises(error, match=message):
            make_scale(results=results)(wg.ones(4), **NUMBERS)
    silent = SCALE.replace("read_write", "read").replace("y[id.x] = p", "_ = y[id.x] + p")
    with pytest.raises(wg.LaunchError, match="has no results"):
        wg.kernel(silent, threads=1)(wg.ones(4), wg.ones(4), **NUMBERS)
    with pytest.raises(wg.LaunchError, match="results= must say"):
        wg.kernel(COUNT, threads=1)(count=1, first=0.0)
    with pytest.raises(wg.LaunchError, match="gradient= is a function"):
        make_scale(gradient=3)
    with pytest.raises(wg.LaunchError, match="either grid"):
        wg.kernel(SCALE)(wg.ones(4), **NUMBERS)


def test_out_of_range_stays_in_the_tensor() -> None:
    wild = wg.kernel(
        """
        @group(0) @binding(0) var<storage, read> x: array<f32>;
        @group(0) @binding(1) var<storage, read_write> y: array<f32>;
        @compute @workgroup_size(1) fn wild() { y[4000000000u] = 7.0; y[0] = x[123456789u]; y[1] = 1.0; }""",
        grid=1,
    )
    assert np.isfinite(wild(wg.ones(2)).numpy()).all()
