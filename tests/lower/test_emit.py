"""The text of kernels: parameters and where they lie, bindings, grids, and that both compilers take it."""

from __future__ import annotations

import dataclasses
import re
import struct
from collections.abc import Callable
from functools import partial

import pytest

from tests.graph.helpers import CPU, apply, fold, tensor, value
from tests.schedule.graphs import PORTABLE, SOFTWARE, launches, transformer_block
from tests.wgsl import naga
from tests.wgsl.tint import NATIVE_ONLY, ask, needs_tint
from webgrad import dtypes
from webgrad.device_profile import DeviceProfile
from webgrad.functions.learning.activations import gelu, softmax
from webgrad.functions.learning.attention import scaled_dot_product_attention
from webgrad.graph.node import Node
from webgrad.kernels.launch import Launch
from webgrad.lower.emit import MAX_WORDS
from webgrad.ops import primitives
from webgrad.ops.table import TABLE
from webgrad.schedule.fuse import MAX_SCALARS
from webgrad.tensor import Tensor
from webgrad.wgsl import Program
from webgrad.wgsl.renderer import render


def only(root: Node | Tensor, profile: DeviceProfile = SOFTWARE) -> Launch:
    (made,) = launches(root, profile=profile)
    return made


def parameters(made: Launch) -> dict[str, float]:
    """The numbers that travel with the command, by name, as the fields say they lie; scalars are 0."""
    data = made.front.pack(*[0] * len(made.scalars)) + made.params
    assert len(data) == made.program.params_size
    codes = {"u32": "I", "i32": "i", "f32": "f"}
    return {
        field.name: struct.unpack_from("<" + codes[field.type], data, field.offset)[0]
        for field in made.program.params
        if field.type in codes
    }


# Parameters


def test_parameters_are_where_the_structure_says() -> None:
    made = only(apply("multiply", value(33, 50), value(33, 50)))
    numbers = parameters(made)
    assert -(-33 * 50 // 4) in numbers.values()
    declared = re.search(r"struct Params \{ (.*?) \}", made.program.text)
    assert declared is not None
    assert declared[1] == ", ".join(f"{field.name}: {field.type}" for field in made.program.params)
    offsets = [field.offset for field in made.program.params]
    assert offsets == list(range(0, 4 * len(offsets), 4))


def test_run_time_numbers_come_first_and_in_order() -> None:
    made = only(apply("add", apply("multiply", value(40), 2.5), 1.5))
    assert [field.name for field in made.program.params[:2]] == ["s0", "s1"]
    assert len(made.scalars) == 2
    assert struct.unpack("<2f", made.front.pack(2.5, 1.5)) == (2.5, 1.5)
    assert "2.5" not in made.program.text


@pytest.mark.parametrize(
    "dtype", [dtypes.bool, dtypes.int8, dtypes.uint32, dtypes.float16, dtypes.int64, dtypes.float64], ids=repr
)
def test_run_time_numbers_of_every_width(dtype: dtypes.DType) -> None:
    made = only(apply("equal", value(40, dtype=dtype), True if dtype.kind == "b" else 1))
    field = made.program.params[0]
    assert field.size == (8 if dtype.itemsize == 8 else 4)
    assert made.front.size == field.size
    assert made.program.params_size % field.size == 0


def test_wide_numbers_are_aligned() -> None:
    wide, narrow = value(40, dtype=dtypes.int64), value(40, dtype=dtypes.int32)
    root = apply("logical_and", apply("equal", narrow, 3), apply("less", wide, 4))
    made = only(root)
    for field in made.program.params:
        assert field.offset % field.size == 0
    assert made.front.size == sum(
        {f.name: f.size for f in made.program.params if f.name[0] == "s"}.values()
    ) + (4 if made.program.params[0].size == 4 else 0)


def test_parameters_beyond_the_limit_go_through_a_buffer() -> None:
    def build() -> Node:
        total = value(1)
        for number in range(30):  # slices of other widths and offsets: two parameters each
            ranges = ((5 + number, 95 + number, 1), (number + 7, number + 13, 1))
            part = primitives.slice_(value(130, 50 + number), ranges)
            total = apply("add", total, part)
        return total

    made = only(build())
    assert len(made.more) > 0
    assert len(made.more) % 4 == 0
    assert made.program.params_size == 4 * MAX_WORDS
    words = len(made.more) // 4
    assert f"more[{words - 1}]" in made.program.text
    assert f"more[{words}]" not in made.program.text
    names = [binding.name for binding in made.program.bindings]
    assert names.index("more") == len(names) - 2  # after what is read, before what is written
    assert made.bound[-2].value == -1
    assert made.program.bindings[-2].access == "read"


def test_a_kernel_has_no_more_run_time_numbers_than_fit() -> None:
    def build() -> Node:
        total = value(64)
        for number in range(30):
            total = apply("add" if number % 2 else "multiply", total, number + 0.5)
        return total

    made = launches(build())
    assert len(made) >= 3
    for each in made:
        assert len(each.scalars) <= MAX_SCALARS
        assert each.program.params_size <= 4 * MAX_WORDS


def test_infinity_is_a_parameter() -> None:
    made = only(fold("max", value(32, 100), 1))
    assert float("-inf") in parameters(made).values()
    assert "inf" not in made.program.text.replace("isinf", "").replace("infinity", "")


# Bindings


def test_what_is_read_comes_before_what_is_written() -> None:
    a, b = value(64, 8), value(64, 8)
    made = launches(apply("add", a, b), apply("multiply", a, b))
    (both,) = made
    assert [binding.access for binding in both.program.bindings] == [
        "read",
        "read",
        "read_write",
        "read_write",
    ]
    assert both.writes == 2
    assert len({each.value for each in both.bound}) == 4


@pytest.mark.parametrize(
    ("dtype", "element"),
    [
        (dtypes.float32, "vec4<f32>"),
        (dtypes.int32, "vec4<i32>"),
        (dtypes.uint8, "u32"),
        (dtypes.bool, "u32"),
        (dtypes.float16, "vec2<u32>"),
        (dtypes.bfloat16, "vec2<u32>"),
    ],
    ids=str,
)
def test_the_words_of_a_dtype(dtype: dtypes.DType, element: str) -> None:
    made = only(apply("maximum", value(64, 8, dtype=dtype), value(64, 8, dtype=dtype)))
    assert {binding.type for binding in made.program.bindings} == {f"array<{element}>"}
    size = {"vec4<f32>": 16, "vec4<i32>": 16, "u32": 4, "vec2<u32>": 8}[element]
    assert {binding.element_bytes for binding in made.program.bindings} == {size}


@pytest.mark.gpu
def test_a_value_over_the_binding_limit_comes_in_parts() -> None:
    small = dataclasses.replace(SOFTWARE, max_binding_bytes=8192)
    made = only(apply("negative", value(5000)), small)  # 20,000 bytes
    parts = [(each.start, each.nbytes) for each in made.bound]
    assert parts == [(0, 8192), (8192, 8192), (16384, 3616)] * 2
    assert made.writes == 3
    assert "get_b0(" in made.program.text
    assert "set_b1(" in made.program.text
    naga.compiles(render(made.program, dialect="naga", parameters="group", minify=False))


def test_64_bit_types_ask_for_their_feature() -> None:
    assert only(apply("add", value(9, dtype=dtypes.int64), 1)).program.requires == {"int64"}
    assert only(apply("add", value(9, dtype=dtypes.float64), 1)).program.requires == {"f64"}
    assert only(apply("add", value(9), 1)).program.requires == set()


# Grids


def test_a_large_grid_is_two_lines_or_more() -> None:
    made = only(gelu(tensor(4096, 8192)), PORTABLE)
    assert made.kernel.groups == 4096 * 8192 // 4 // 64
    assert made.grid[0] * made.grid[1] >= made.kernel.groups
    assert made.grid[1] > 1
    assert made.grid[0] in parameters(made).values()  # the second line begins where the first ends


# Compilers


def sample() -> dict[str, Callable[[], list[Node | Tensor]]]:
    """A kernel of each kind; each is made for every profile."""
    cases: dict[str, Callable[[], list[Node | Tensor]]] = {
        "gelu": lambda: [gelu(tensor(33, 7))],
        "softmax": lambda: [softmax(tensor(33, 64))],
        "wide softmax": lambda: [softmax(tensor(3, 4096))],
        "block": lambda: [transformer_block(tensor(1, 16, 32), heads=2, hidden=48)],
        "odd matmul": lambda: [primitives.contract(value(5, 7), value(7, 9))],
        "attention": lambda: [scaled_dot_product_attention(*(tensor(2, 3, 5, 7),) * 3, tensor(5, 5))],
        "decoding": lambda: [scaled_dot_product_attention(tensor(1, 64), *(tensor(999, 64),) * 2, length=3)],
        "concat": lambda: [
            primitives.concat([value(3, 5), value(4, 5)], 0),
            primitives.concat([value(3, 5), value(3, 4)], 1),
        ],
        "pad": lambda: [primitives.pad(value(3, 5), ((1, 2), (3, 4)), 2.0)],
        "take": lambda: [primitives.take(value(9, 5), value(4, dtype=dtypes.int32), 0)],
        "scan": lambda: [primitives.scan(TABLE["cumulative_sum"], value(9, 5), 1)],
        "iota": lambda: [primitives.iota(77, dtypes.int32, CPU)],
        "sort": lambda: [primitives.sort_order(value(5, 100, dtype=dtypes.uint32))],
        "scatter": lambda: [
            primitives.scatter(TABLE["scatter_add"], value(9, 5), value(4, dtype=dtypes.int32), value(4, 5))
        ],
        "bundle": lambda: [apply("negative", value(size)) for size in (5, 6, 7)],
        "sum": lambda: [fold("sum", value(200_000), 0)],
        "int64": lambda: [fold("sum", apply("add", value(5, 8, dtype=dtypes.int64), 3), 1)],
    }
    return cases | {each.name: partial(packed, each) for each in dtypes.REAL if each.itemsize < 4}


def packed(dtype: dtypes.DType) -> list[Node | Tensor]:
    return [
        apply("maximum", value(5, 7, dtype=dtype), value(5, 7, dtype=dtype)),
        fold("max", value(5, 8, dtype=dtype), 1),
        primitives.cast(value(5, 7, dtype=dtype), dtypes.float32),
    ]


def programs(profile: DeviceProfile) -> dict[str, Program]:
    found: dict[str, Program] = {}
    for name, build in sample().items():
        for number, made in enumerate(launches(*build(), profile=profile)):
            found[f"{name} {number}"] = made.program
    return found


@pytest.mark.gpu
@pytest.mark.parametrize("immediates", [False, True], ids=["uniform", "immediates"])
def test_naga_takes_every_kind_of_kernel(profile: DeviceProfile, immediates: bool) -> None:
    for name, program in programs(profile).items():
        needs = program.requires | ({"immediates"} if immediates else frozenset())
        if naga.missing(frozenset(needs)):
            continue
        try:
            naga.compiles(
                render(
                    program, dialect="naga", parameters="immediates" if immediates else "group", minify=False
                )
            )
        except Exception as error:
            raise AssertionError(f"{name}: {error}\n{program.text}") from None


@needs_tint
@pytest.mark.parametrize("minify", [False, True], ids=["plain", "minified"])
def test_tint_takes_every_kind_of_kernel(profile: DeviceProfile, minify: bool) -> None:
    asked = {
        name: render(program, dialect="tint", parameters="group", minify=minify)
        for name, program in programs(profile).items()
        if not program.requires & NATIVE_ONLY
    }
    assert len(asked) > 20
    refused = {name: errors[0] for name, errors in ask(asked).items() if errors}
    assert refused == {}
