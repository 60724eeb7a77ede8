"""What generated kernels look like: four at once where memory allows, no divisions in inner loops."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.graph.helpers import apply, fold, tensor, value
from tests.lower.helpers import levels, lowered, raw, texts
from tests.schedule.graphs import PORTABLE, SOFTWARE
from webgrad import dtypes
from webgrad.device_profile import DeviceProfile
from webgrad.functions.learning.activations import gelu, softmax
from webgrad.functions.learning.normalisation import layer_norm
from webgrad.graph.node import Node
from webgrad.lower.ir import Instruction, Kernel
from webgrad.lower.pull import BLOCK
from webgrad.ops import primitives
from webgrad.tensor import Tensor


def only(root: Node | Tensor, profile: DeviceProfile = SOFTWARE) -> Kernel:
    (kernel,) = lowered(root, profile=profile)
    return kernel


def loads(kernel: Kernel) -> list[Instruction]:
    return [each for each in kernel.body if each.op == "load"]


def widths(kernel: Kernel) -> set[int]:
    stored = [each.args[1] for each in kernel.body if each.op == "store"]
    return {each.type.width for each in [*loads(kernel), *stored] if each.type}


def depth_of_divisions(kernel: Kernel) -> int:
    """How deep the innermost division is; 0: outside of all loops, or there is none."""
    return max(
        (depth for depth, each in levels(kernel) if each.op == "arithmetic" and each.data in "/%"), default=0
    )


def deepest(kernel: Kernel) -> int:
    return max(depth for depth, _ in levels(kernel))


# Four at once


def test_contiguous_maps_go_by_fours(profile: DeviceProfile) -> None:
    a, b, c = tensor(33, 64), tensor(33, 64), tensor(33, 64)
    assert widths(only(gelu(a * b + c), profile)) == {4}
    assert widths(only(gelu(tensor(7, 5)), profile)) == {4}  # flat: the end of memory is padded
    assert widths(only(apply("exp", primitives.reshape(value(5, 6, 4), (30, 4))), profile)) == {4}


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16, dtypes.int8, dtypes.uint16], ids=repr)
def test_packed_types_go_by_fours(dtype: dtypes.DType, profile: DeviceProfile) -> None:
    assert widths(only(apply("maximum", value(9, 8, dtype=dtype), value(9, 8, dtype=dtype)), profile)) == {4}


def test_rows_are_read_by_fours_where_they_are_fours(profile: DeviceProfile) -> None:
    assert widths(only(softmax(tensor(64, 128)), profile)) == {4}
    assert widths(only(fold("max", value(64, 128), 1), profile)) == {4, 1}  # four columns, one result
    assert 4 not in widths(only(softmax(tensor(64, 127)), profile))


def test_columns_are_folded_four_at_a_time(profile: DeviceProfile) -> None:
    made = lowered(fold("sum", value(40, 128), 0), profile=profile)
    assert all(widths(kernel) == {4} for kernel in made)


def test_slices_that_keep_fours_are_read_by_fours() -> None:
    aligned = primitives.slice_(value(32, 64), ((0, 32, 1), (8, 40, 1)))
    shifted = primitives.slice_(value(32, 64), ((0, 32, 1), (7, 39, 1)))
    assert {each.type.width for each in loads(only(apply("exp", aligned))) if each.type} == {4}
    assert {each.type.width for each in loads(only(apply("exp", shifted))) if each.type} == {1}


def test_a_broadcast_number_is_loaded_once(profile: DeviceProfile) -> None:
    kernel = only(apply("add", value(64, 64), value(1)), profile)
    single = [
        (depth, each) for depth, each in levels(kernel) if each.op == "load" and each.type == ("f32", 1)
    ]
    assert len(single) == 1
    if profile.kind == "software":  # before the loop
        assert single[0][0] < max(depth for depth, each in levels(kernel) if each.op == "store")


# Divisions


def transposed_slice() -> Node:
    return apply(
        "exp", primitives.slice_(primitives.permute(value(256, 128), (1, 0)), ((3, 120, 2), (16, 240, 1)))
    )


def middle_broadcast() -> Node:
    return apply("add", value(32, 1, 64), value(32, 16, 64))


def transposed_broadcast_chain() -> Node:
    wide = primitives.expand(primitives.reshape(value(48), (48, 1)), (48, 64))
    return apply("add", primitives.permute(apply("multiply", value(48, 64), wide), (1, 0)), value(48))


@pytest.mark.parametrize("build", [transposed_slice, middle_broadcast, transposed_broadcast_chain])
def test_divisions_are_done_once_for_a_row(build: Callable[[], Node]) -> None:
    kernel = only(build())
    assert depth_of_divisions(kernel) < deepest(kernel)


@pytest.mark.parametrize(
    "build",
    [
        lambda: gelu(tensor(33, 64) * 2.0),
        lambda: softmax(tensor(32, 100)),
        lambda: layer_norm(tensor(8, 16, 64), 64, tensor(64), tensor(64)),
        lambda: fold("sum", value(64, 64), 1),
        lambda: apply("exp", primitives.flip(value(1024), (0,))),
        lambda: apply("exp", primitives.slice_(value(64, 64), ((8, 40, 1), (0, 64, 1)))),
    ],
)
def test_no_divisions_where_none_are_needed(build: Callable[[], Node], profile: DeviceProfile) -> None:
    for kernel in lowered(build(), profile=profile):
        assert not [each for each in kernel.body if each.op == "arithmetic" and each.data in "/%"]


# Work


def test_what_a_row_needs_is_computed_once_for_it() -> None:
    kernel = only(softmax(tensor(32, 100)))
    inner = [
        each
        for depth, each in levels(kernel)
        if depth >= 2 and each.op == "apply" and each.data.name == "exp"
    ]
    assert len(inner) == 2  # once for the sum, once for the result
    loops = [each for each in kernel.body if each.op == "loop"]
    assert 4 <= len(loops) <= 6


def test_float_sums_are_sums_of_sums() -> None:
    kernel = only(fold("sum", value(32, 1000), 1))
    registers = [depth for depth, each in levels(kernel) if each.op == "register"]
    assert len(registers) == 2
    assert registers[0] != registers[1]
    exact = only(fold("sum", value(32, 1000, dtype=dtypes.int32), 1))
    assert sum(each.op == "register" for each in exact.body) == 1


def test_long_rows_are_shared_by_a_workgroup_on_gpus() -> None:
    shared = only(softmax(tensor(8, 4096)), PORTABLE)
    assert sum(each.op == "combine" for each in shared.body) == 2
    assert (shared.workgroup, shared.groups) == (256, 8)
    assert not any(each.op == "combine" for each in only(softmax(tensor(8, 64)), PORTABLE).body)
    assert not any(each.op == "combine" for each in only(softmax(tensor(8, 4096)), SOFTWARE).body)


def test_no_barrier_is_inside_a_condition_or_a_loop() -> None:
    for root in (softmax(tensor(8, 4096)), layer_norm(tensor(3, 2048), 2048)):
        for kernel in raw(root, profile=PORTABLE):
            assert all(depth == 0 for depth, each in levels(kernel) if each.op == "combine")


def test_software_adapters_get_few_threads() -> None:
    kernel = only(gelu(tensor(4096, 4096)))
    assert kernel.workgroup * kernel.groups <= 1024
    gpu = only(gelu(tensor(4096, 4096)), PORTABLE)
    assert gpu.workgroup * gpu.groups == 4096 * 4096 // 4


# Text


def literals(text: str) -> set[str]:
    """The numbers in the statements of the entry point, and of the holes."""
    body = text[text.index("fn main(") :]
    body = re.sub(r"\b(p\.p|p\.s|[bvir]|more\[)\d+|vec[234]|[fiu](8|16|32|64)\b", "", body)
    return set(re.findall(r"(?<![\w.])\d+(?:\.\d+)?[iuf]?\b", body))


@pytest.mark.parametrize(
    "build",
    [
        lambda: apply("add", value(100, 77), value(77)),
        lambda: apply("add", value(64, 1, 48), value(64, 24, 48)),
        lambda: fold("sum", value(999, 333), 1),
        lambda: fold("max", value(999, 333), 0),
        lambda: apply(
            "negative", primitives.slice_(primitives.permute(value(77, 99), (1, 0)), ((5, 95, 3), (7, 70, 1)))
        ),
        lambda: primitives.concat([value(10, 20), value(30, 20)], 0),
        lambda: primitives.pad(value(10, 20), ((5, 6), (7, 8)), 2.5),
        lambda: apply("add", primitives.iota(1000, dtypes.float32, value(1).sig.device), 0.125),
    ],
)
def test_sizes_are_parameters(build: Callable[[], Node], profile: DeviceProfile) -> None:
    for text in texts(build(), profile=profile):
        found = re.search(r"@workgroup_size\((\d+)\)", text)
        assert found is not None
        workgroup = int(found[1])
        allowed = {
            0,
            1,
            2,
            3,
            4,
            workgroup,
            workgroup // 2,
            BLOCK,
            BLOCK * workgroup,
        }  # what no length changes
        assert {float(each.rstrip("iuf")) for each in literals(text)} <= allowed, text
        assert "0.125" not in text
        assert "2.5" not in text
