"""Matrix products through their holes, for every kind of device and every choice, against NumPy."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from tests.graph.helpers import apply, graph_of, value
from tests.lower.helpers import lowered, texts
from tests.properties.helpers import gpu
from tests.properties.running import profiled
from tests.schedule.graphs import INTEGRATED, PORTABLE, SOFTWARE, launches
from tests.wgsl import naga
from tests.wgsl.tint import ask, needs_tint
from webgrad import dtypes
from webgrad.device_profile import DeviceProfile
from webgrad.evaluate.gpu_plan import GpuPlan
from webgrad.graph.node import Node, leaf
from webgrad.graph.snapshot import snapshot, walk
from webgrad.lower import compile as compiling
from webgrad.lower.choices import Choice
from webgrad.lower.contract import contraction_choices, lower_contraction
from webgrad.lower.emit import emit
from webgrad.lower.ir import Kernel
from webgrad.ops import primitives
from webgrad.runtime.webgpu import Device
from webgrad.schedule.plan import Group
from webgrad.schedule.schedule import schedule
from webgrad.wgsl import Program
from webgrad.wgsl.renderer import render

Array = np.ndarray[Any, Any]
Build = Callable[[Callable[..., Node]], Node]
GENERATOR = np.random.default_rng(3)
DEVICES: dict[str, dict[str, Any]] = {
    "software": {},
    "without subgroups": {"subgroup_size": 0},
    "four lanes": {"subgroup_size": 4},
    "discrete": {"kind": "discrete", "subgroup_size": 0},
}
INTEGRATED_HERE = {"kind": "integrated", "subgroup_size": 8}  # the adapter's own in `make test`
KINDS = ["software", "discrete"]


def device_of(name: str) -> Device:
    changes = DEVICES.get(name, INTEGRATED_HERE)
    if changes.get("subgroup_size", 0) > gpu().profile.subgroup_size:
        pytest.skip("the adapter's subgroups are smaller: scripts/suite.py says with which these tests run")
    return profiled(**changes) if changes else gpu()


def up(device: Device, array: Array) -> Node:
    made = np.ascontiguousarray(array)
    return leaf(device.upload(made), made.shape, dtypes.as_dtype(made.dtype), device)


def run(root: Node, device: Device) -> Array:
    """The value of a root by a plan of its own."""
    walked = walk([root])
    plan = GpuPlan(snapshot(walked, [root]), device)
    stored = dict(zip(plan.stored, plan.run(walked.nodes), strict=True))
    result: Array = device.read(stored[walked.numbers[root]]).view(root.sig.dtype.numpy)
    return result.reshape(root.sig.shape)


def numbers(*shape: int, dtype: Any = np.float32) -> Array:
    return GENERATOR.normal(size=shape).astype(dtype)


def close(found: Array, exact: Array, relative: float = 1e-5) -> None:
    scale = max(1.0, float(np.abs(exact).max(initial=0)))
    np.testing.assert_allclose(found.astype(np.float64), exact, rtol=relative, atol=relative * scale)


@contextmanager
def chosen(choice: Choice) -> Iterator[None]:
    """Products made inside are made by a choice."""
    with patch.dict(compiling._LOWER, contract=partial(lower_contraction, choice=choice)):
        yield


# Sizes


# (m, k, n), and whether B lies along k. Kernels of GPUs compile slowly here.
SIZES = [(1, 5, 130, False), (7, 9, 4, True), (33, 20, 70, False), (50, 12, 3, False)]
MORE = [(1, 1, 1, False), (2, 8, 260, False), (8, 64, 33, True), (40, 7, 1, False), (35, 12, 36, True)]


@pytest.mark.gpu
@pytest.mark.parametrize("name", DEVICES)
def test_sizes_and_layouts(name: str) -> None:
    device = device_of(name)
    for m, k, n, turned in SIZES + (MORE if name == "software" else []):
        a, b = numbers(m, k), numbers(k, n)
        right = primitives.permute(up(device, b.T), (1, 0)) if turned else up(device, b)
        close(run(primitives.contract(up(device, a), right), device), a.astype(np.float64) @ b)


@pytest.mark.gpu
@pytest.mark.parametrize("name", KINDS)
def test_nothing_to_sum_is_zero(name: str) -> None:
    device = device_of(name)
    for m, n in [(3, 5), (20, 1)]:
        a, b = up(device, np.zeros((m, 0), np.float32)), up(device, np.zeros((0, n), np.float32))
        np.testing.assert_array_equal(run(primitives.contract(a, b), device), np.zeros((m, n)))


@pytest.mark.gpu
@pytest.mark.parametrize("name", KINDS)
def test_batches_and_broadcasting(name: str) -> None:
    device = device_of(name)
    for first, second in [
        ((2, 1, 9, 7), (3, 7, 5)),
        ((4, 3, 8), (8, 36)),
        ((1, 5, 4), (6, 4, 1)),
    ]:
        a, b = numbers(*first), numbers(*second)
        close(run(primitives.contract(up(device, a), up(device, b)), device), a.astype(np.float64) @ b)


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("name", "dtype"), [("software", "float16"), ("software", "bfloat16"), ("discrete", "float16")]
)
def test_16_bit_operands_are_summed_in_32(name: str, dtype: str) -> None:
    device, kind = device_of(name), dtypes.as_dtype(dtype).numpy
    for m, k, n in [(1, 36, 136), (20, 64, 12)]:
        a, b = numbers(m, k, dtype=kind), numbers(k, n, dtype=kind)
        exact = a.astype(np.float64) @ b.astype(np.float64)
        close(run(primitives.contract(up(device, a), up(device, b)), device), exact, 1e-2)


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["software", "discrete"])
def test_a_grid_with_workgroups_to_spare(name: str) -> None:
    """25 products in lines of at most 8: four lines of 7 hold them."""
    device = profiled(**DEVICES[name], max_workgroups=8)
    a, b = numbers(25, 3, 4), numbers(25, 4, 5)
    root = primitives.contract(up(device, a), up(device, b))
    (launch,) = launches(root, profile=device.profile)
    assert launch.grid[0] * launch.grid[1] > launch.kernel.groups
    close(run(root, device), a.astype(np.float64) @ b)
    assert "min(" in re.findall("let batch = (.*)", launch.program.text)[0]


@pytest.mark.gpu
def test_infinities_beyond_k_do_not_reach_a_sum() -> None:
    """Where k is not a multiple of four, elements beyond it are read: they belong to other rows."""
    device = gpu()
    a, b = np.ones((10, 5), np.float32), np.ones((5, 6), np.float32)
    a[7, 0] = np.inf
    found = run(primitives.contract(up(device, a), up(device, b)), device)
    assert np.isinf(found[7]).all()
    np.testing.assert_array_equal(np.delete(found, 7, 0), 5.0)


@pytest.mark.gpu
@pytest.mark.parametrize("name", KINDS)
def test_what_is_around_a_product(name: str) -> None:
    """Maps on both operands, a bias, an activation and a residual, also where C is computed transposed."""
    device = device_of(name)
    for m, k, n in [(40, 9, 3), (6, 8, 20), (60, 8, 1)][: 3 if name == "software" else 1]:
        a, b, bias, residual = numbers(m, k), numbers(k, n), numbers(n), numbers(m, n)
        product = primitives.contract(apply("exp", up(device, a)), apply("negative", up(device, b)))
        shifted = apply("maximum", apply("add", product, up(device, bias)), 0.0)
        found = run(apply("add", shifted, up(device, residual)), device)
        close(found, np.maximum(np.exp(a.astype(np.float64)) @ -b + bias, 0) + residual)


# Stretches of k


def patches(x: Node, weight: Node) -> Node:
    """A convolution (N, C, H, W) by (O, C, h, w) with a border of zeros, as a product."""
    samples, channels, _, _ = x.sig.shape
    outputs, _, *kernel = weight.sig.shape
    padded = primitives.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), 0.0)
    moved = primitives.window(primitives.window(padded, 2, kernel[0]), 3, kernel[1])
    height, width = moved.sig.shape[2:4]
    k = channels * kernel[0] * kernel[1]
    right = primitives.reshape(primitives.permute(moved, (0, 4, 5, 1, 2, 3)), (samples, k, height * width))
    left = primitives.reshape(primitives.permute(weight, (0, 2, 3, 1)), (outputs, k))
    return primitives.contract(left, right)


def convolved(x: Array, weight: Array) -> Array:
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    view = np.lib.stride_tricks.sliding_window_view(padded, weight.shape[2:], (2, 3))
    made: Array = np.einsum("nchwij,ocij->nohw", view, weight)
    return made.reshape(*made.shape[:2], -1)


@pytest.mark.gpu
@pytest.mark.parametrize("name", DEVICES)
def test_windows_as_an_operand(name: str) -> None:
    device = device_of(name)
    for shape, kernel in [((1, 8, 6, 8), (20, 8, 3, 3)), ((2, 3, 5, 7), (4, 3, 2, 3))][
        : 1 + (name == "software")
    ]:
        x, weight = numbers(*shape), numbers(*kernel)
        close(run(patches(up(device, x), up(device, weight)), device), convolved(x, weight))


@pytest.mark.gpu
def test_merged_axes_on_both_sides() -> None:
    """k of A was merged from other axes than k of B."""
    device = gpu()
    a, b = numbers(5, 4, 12), numbers(8, 6, 9)
    left = primitives.reshape(primitives.permute(up(device, a.transpose(1, 0, 2)), (1, 0, 2)), (5, 48))
    right = primitives.reshape(primitives.permute(up(device, b.transpose(1, 0, 2)), (1, 0, 2)), (48, 9))
    close(
        run(primitives.contract(left, right), device), a.reshape(5, 48).astype(np.float64) @ b.reshape(48, 9)
    )


def divisions(kernel: Kernel) -> dict[str, int]:
    return {
        hole.name: sum(each.op == "arithmetic" and each.data in "/%" for each in hole.body)
        for hole in kernel.holes
    }


@pytest.mark.parametrize("profile", [SOFTWARE, PORTABLE], ids=["software", "portable"])
def test_nothing_is_divided_for_an_element_of_a_window(profile: DeviceProfile) -> None:
    (kernel,) = lowered(patches(value(1, 64, 56, 56), value(64, 64, 3, 3)), profile=profile)
    assert kernel.template is not None
    assert ("NESTED", "1") in kernel.template.defines
    assert dict(kernel.template.numbers)["k"] == 64
    assert dict(kernel.template.numbers)["outers"] == 9
    found = divisions(kernel)
    assert found["hole_b_column"] == 2
    assert found["hole_b_outer"] == 2
    assert found["hole_a"] == found["hole_b"] == 0


def test_a_plain_product_has_one_stretch() -> None:
    (kernel,) = lowered(primitives.contract(value(64, 64), value(64, 64)))
    assert kernel.template is not None
    assert "NESTED" not in dict(kernel.template.defines)
    assert not sum(divisions(kernel).values())


def test_heads_are_merged_without_divisions() -> None:
    """Attention's results (batch, heads, length, side), as rows of heads * side."""
    heads = primitives.permute(value(2, 8, 32, 64), (0, 2, 1, 3))
    (kernel,) = lowered(primitives.contract(primitives.reshape(heads, (64, 512)), value(512, 512)))
    assert divisions(kernel)["hole_a"] == 0
    assert divisions(kernel)["hole_a_outer"] == 0


# Forms


def template_of(
    m: int, k: int, n: int, profile: DeviceProfile, *, turned: bool = False
) -> tuple[str, dict[str, str]]:
    b = primitives.permute(value(n, k), (1, 0)) if turned else value(k, n)
    (kernel,) = lowered(primitives.contract(value(m, k), b), profile=profile)
    assert kernel.template is not None
    return kernel.template.file, dict(kernel.template.defines)


ALONE = DeviceProfile("software")


def test_forms_by_profile() -> None:
    assert template_of(64, 64, 64, SOFTWARE) == ("matmul.pwgsl", {"LANES": "8", "ROWS": "16"})
    assert template_of(3, 64, 64, SOFTWARE)[1]["ROWS"] == "4"
    assert template_of(1, 64, 256, SOFTWARE)[0] == "matvec.pwgsl"
    assert template_of(1, 64, 256, SOFTWARE, turned=True)[1]["TRANSPOSED"] == "1"
    assert "SINGLE" in template_of(64, 64, 64, ALONE)[1]
    for profile in (PORTABLE, INTEGRATED):
        assert template_of(64, 64, 64, profile) == ("matmul.pwgsl", {"TILE": "1", "SIDE": "64"})
        assert template_of(8, 64, 64, profile) == ("matvec.pwgsl", {"ROWS": "8"})
        assert "TRANSPOSED" in template_of(8, 64, 64, profile, turned=True)[1]


def test_narrow_results_are_computed_transposed() -> None:
    """(1000, 64) @ (64, 1): the matrix is read along k, once, not for each of 32 columns."""
    for profile in (SOFTWARE, PORTABLE):
        file, defines = template_of(1000, 64, 1, profile)
        assert defines["ROWS"] == "1"
        assert defines["TRANSPOSED"] == "1"
        assert file == ("matmul.pwgsl" if profile is SOFTWARE else "matvec.pwgsl")


def contraction(profile: DeviceProfile, root: Node) -> tuple[Any, Group]:
    plan = schedule(graph_of(root), profile)
    (group,) = plan.groups
    return plan.graph, group


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["software", "integrated"])
def test_every_choice_is_right(name: str) -> None:
    device = device_of(name)
    for m, k, n in [(1, 12, 140), (35, 24, 72)]:
        a, b = numbers(m, k), numbers(k, n)
        found = contraction_choices(
            *contraction(device.profile, primitives.contract(value(m, k), value(k, n))), device.profile
        )
        assert len(set(found)) == len(found) >= (1 if name == "software" else 3)
        for choice in found:
            with chosen(choice):
                result = run(primitives.contract(up(device, a), up(device, b)), device)
            close(result, a.astype(np.float64) @ b)


@pytest.mark.parametrize("profile", [SOFTWARE, ALONE, INTEGRATED, PORTABLE])
def test_the_first_choice_is_the_default(profile: DeviceProfile) -> None:
    for m, k, n in [(1, 12, 140), (6, 9, 36), (35, 24, 70)]:
        graph, group = contraction(profile, primitives.contract(value(m, k), value(k, n)))
        first = contraction_choices(graph, group, profile)[0]
        assert (
            lower_contraction(graph, group, profile).template
            == lower_contraction(graph, group, profile, first).template
        )


# Texts


@pytest.mark.parametrize("profile", [SOFTWARE, PORTABLE], ids=["software", "portable"])
def test_other_convolutions_are_the_same_text(profile: DeviceProfile) -> None:
    def text(channels: int, height: int, width: int, outputs: int, side: int = 3) -> str:
        root = patches(value(1, channels, height, width), value(outputs, channels, side, side))
        (found,) = texts(root, profile=profile)
        return found

    assert text(64, 56, 60, 64) == text(32, 28, 36, 128)


# Compilers


def programs() -> dict[str, Program]:
    """Every form of products, narrow ones and windows, for every profile."""
    found: dict[str, Program] = {}
    for profile in (SOFTWARE, ALONE, INTEGRATED, PORTABLE):
        for m, k, n in [(1, 12, 140), (7, 9, 36), (35, 24, 72), (40, 7, 3)]:
            for turned in (False, True):
                right = primitives.permute(value(n, k), (1, 0)) if turned else value(k, n)
                found |= forms(profile, primitives.contract(value(m, k), right), f"{m} {k} {n} {turned}")
        for shape in [(1, 8, 6, 8), (2, 3, 5, 7)]:
            for outputs in (4, 20):
                root = patches(value(*shape), value(outputs, shape[1], 3, 3))
                found |= forms(profile, root, f"windows {shape} {outputs}")
    return found


def forms(profile: DeviceProfile, root: Node, name: str) -> dict[str, Program]:
    graph, group = contraction(profile, root)
    return {
        f"{profile.kind} {profile.subgroup_size} {name} {choice}": emit(
            lower_contraction(graph, group, profile, choice), profile
        ).program
        for choice in contraction_choices(graph, group, profile)
    }


@pytest.mark.gpu
def test_naga_takes_every_form() -> None:
    for name, program in programs().items():
        try:
            naga.compiles(render(program, dialect="naga", parameters="group", minify=False))
        except Exception as error:
            raise AssertionError(f"{name}: {error}\n{program.text}") from None


@needs_tint
def test_tint_takes_every_form() -> None:
    made = programs().items()
    asked = {name: render(program, dialect="tint", parameters="group", minify=True) for name, program in made}
    refused = {name: errors[0] for name, errors in ask(asked).items() if errors}
    assert refused == {}
