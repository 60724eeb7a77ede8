"""Kernels of quantised products: which form for whom, how many texts, and every choice gives the same."""

from __future__ import annotations

import random
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

import webgrad as wg
from tests.graph.helpers import CPU, apply, value
from tests.lower.helpers import lowered, texts
from tests.ops.block_reference import random_blocks
from tests.properties.running import profiled
from tests.schedule.graphs import PORTABLE, SOFTWARE, launches, planned
from tests.wgsl import naga
from tests.wgsl.tint import ask, needs_tint
from webgrad import dtypes
from webgrad.device_profile import DeviceProfile
from webgrad.graph.node import Node, leaf, make
from webgrad.lower import compile as compiling
from webgrad.lower.choices import Choice
from webgrad.lower.quantised import lower_quantised, quantised_choices
from webgrad.ops import primitives
from webgrad.ops.blocks import FORMATS, word_count
from webgrad.ops.table import TABLE
from webgrad.wgsl import Program
from webgrad.wgsl.renderer import render

FOUR = DeviceProfile("software", frozenset({"subgroups"}), 4)
ALONE = DeviceProfile("software")


def weights(name: str, n: int, k: int) -> Node:
    words = leaf(object(), (word_count(FORMATS[name], n * k // FORMATS[name].weights),), dtypes.uint32, CPU)
    return make(TABLE["decode"], (words,), (name, (n, k)))


def product(name: str, m: int, n: int, k: int) -> Node:
    return primitives.contract(value(m, k), primitives.permute(weights(name, n, k), (1, 0)))


def defines_of(m: int, profile: DeviceProfile, name: str = "Q4_0") -> dict[str, str]:
    (kernel,) = lowered(product(name, m, 100, 512), profile=profile)
    assert kernel.template is not None
    return dict(kernel.template.defines)


@pytest.mark.parametrize(
    ("m", "profile", "form", "rows"),
    [
        (1, SOFTWARE, "vector", 1),
        (2, SOFTWARE, "vector", 2),
        (3, SOFTWARE, "rows", 4),
        (8, SOFTWARE, "rows", 8),
        (300, SOFTWARE, "rows", 16),
        (1, FOUR, "vector", 1),
        (5, FOUR, "rows", 8),
        (1, ALONE, "threads", 1),
        (300, ALONE, "threads", 4),
        (1, PORTABLE, "threads", 1),
        (7, PORTABLE, "threads", 8),
    ],
)
def test_forms(m: int, profile: DeviceProfile, form: str, rows: int) -> None:
    found = defines_of(m, profile)
    assert (found["FORM"], found["ROWS"]) == (form, str(rows))


def test_few_texts_for_many_sizes(profile: DeviceProfile) -> None:
    draw = random.Random(4)
    found: set[str] = set()
    for _ in range(60):
        found.update(
            texts(product("Q4_0", 1, draw.randint(1, 400), 32 * draw.randint(1, 90)), profile=profile)
        )
    assert len(found) <= 4  # the columns go by fours, or not, or are less than four
    many: set[str] = set()
    for _ in range(60):
        shape = (draw.randint(1, 70), draw.randint(1, 400), 32 * draw.randint(1, 90))
        many.update(texts(product("Q4_0", *shape), profile=profile))
    assert len(many) <= 12


def test_decoding_has_one_text(profile: DeviceProfile) -> None:
    sizes = ((3, 256), (64, 512), (100, 2048))
    assert len({text for n, k in sizes for text in texts(weights("Q6_K", n, k), profile=profile)}) <= 2


@pytest.mark.parametrize("profile", [SOFTWARE, FOUR, ALONE, PORTABLE])
@pytest.mark.parametrize("m", [1, 2, 7])
def test_choices_begin_with_what_is_done_without(m: int, profile: DeviceProfile) -> None:
    plan = planned(product("Q5_K", m, 64, 512), profile=profile)
    (group,) = plan.groups
    found = quantised_choices(plan.graph, group, profile)
    assert len(set(found)) == len(found)
    first = lower_quantised(plan.graph, group, profile, found[0])
    assert first.template == lower_quantised(plan.graph, group, profile).template
    for each in found[1:]:
        assert lower_quantised(plan.graph, group, profile, each).template != first.template


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("rows", "choice"),
    [(1, (("rows", 1), ("columns", 1))), (2, (("rows", 2), ("columns", 4))), (20, (("rows", 8),))],
)
def test_choices_give_the_same(rows: int, choice: Choice) -> None:
    data = random_blocks("Q4_1", (18, 96), scale=0.1)
    x = np.random.default_rng(0).standard_normal((rows, 96)).astype(np.float32)

    def result(device: Any) -> Any:
        return (
            wg.asarray(x, device=device) @ wg.from_blocks(data, "Q4_1", (18, 96), device=device).T
        ).numpy()

    def chosen(graph: Any, group: Any, profile: Any) -> Any:
        return lower_quantised(graph, group, profile, choice)

    with patch.dict(compiling._LOWER, {"matmul_blocks": chosen}):
        got = result(profiled(max_workgroups=60000 + rows))
    np.testing.assert_allclose(got, result("cpu"), rtol=1e-4, atol=1e-4)


# Both compilers


def programs(profile: DeviceProfile) -> dict[str, Program]:
    """For every format its weights, some of its rows, and a product with maps around it."""
    found: dict[str, Program] = {}
    for at, name in enumerate(FORMATS):
        whole = weights(name, 9, 512)
        rows = make(TABLE["decode_rows"], (whole.inputs[0], value(3, dtype=dtypes.int32)), (name, (9, 512)))
        around = apply("exp", product(name, (1, 2, 5)[at % 3], 9, 512))
        for number, made in enumerate(launches(whole, rows, around, profile=profile)):
            found[f"{name} {number}"] = made.program
    return found


@pytest.mark.gpu
def test_naga_takes_every_format(profile: DeviceProfile) -> None:
    for name, program in programs(profile).items():
        if not naga.missing(program.requires):
            try:
                naga.compiles(render(program, dialect="naga", parameters="group", minify=False))
            except Exception as error:
                raise AssertionError(f"{name}: {error}\n{program.text}") from None


@needs_tint
@pytest.mark.parametrize("minify", [False, True], ids=["plain", "minified"])
def test_tint_takes_every_format(profile: DeviceProfile, minify: bool) -> None:
    asked = {
        name: render(program, dialect="tint", parameters="group", minify=minify)
        for name, program in programs(profile).items()
    }
    assert {name: errors[0] for name, errors in ask(asked).items() if errors} == {}
