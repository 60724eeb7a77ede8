"""Attention by native code, in both forms: rules, sizes, layouts, dtypes, special numbers, threads."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from tests.native.attentions import EVERY, FORMS, Array, Rules, attend, attention_module, wanted
from tests.native.products import BFLOAT16, PROCESSORS
from webgrad.config import PROCESSORS as NAMES
from webgrad.native.compiler import assembly
from webgrad.native.processor import named
from webgrad.native.templates.attention import Reads
from webgrad.native.templates.operands import Tile

RNG = np.random.default_rng(7)
Heads = tuple[int, int]
RULES = [
    Rules(),
    Rules(causal=True),
    Rules(length=13),
    Rules(causal=True, from_end=True, length=29),
    Rules(causal=True, window=5),
    Rules(causal=True, window=7, from_end=True, length=30),
]


def operands(
    heads: Heads, queries: int, keys: int, columns: tuple[int, int] = (8, 8), dtype: Any = np.float32
) -> tuple[Array, Array, Array]:
    shapes = (
        (2, heads[0], queries, columns[0]),
        (2, heads[1], keys, columns[0]),
        (2, heads[1], keys, columns[1]),
    )
    q, k, v = (RNG.standard_normal(shape).astype(dtype) for shape in shapes)
    return q, k, v


def check(
    arrays: tuple[Array, Array, Array], rules: Rules = EVERY, mask: Array | None = None, **options: Any
) -> None:
    found, want = attend(*arrays, rules, mask, **options), wanted(*arrays, rules, mask)
    limit = 1e-13 if found.dtype == np.float64 else 5e-6
    np.testing.assert_allclose(found.astype(want.dtype), want, rtol=limit, atol=limit)


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("rules", RULES)
def test_rules(rules: Rules, form: str, processor: str) -> None:
    for heads, queries in [((4, 2), 3), ((2, 2), 40)]:
        arrays = operands(heads, queries, 35)
        check(arrays, rules, form=form, processor=processor)
        mask = RNG.standard_normal((2, heads[0], queries, 35)).astype(np.float32)
        mask[RNG.random(mask.shape) < 0.3] = -np.inf
        check(arrays, rules, mask, form=form, processor=processor)


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", FORMS)
def test_sizes(form: str, dtype: Any, processor: str) -> None:
    for queries, keys, columns in [(1, 1, (1, 1)), (5, 300, (17, 33)), (70, 97, (12, 5)), (2, 16, (64, 16))]:
        arrays = operands((3, 1), queries, keys, columns, dtype)
        check(arrays, Rules(causal=True, from_end=True), form=form, processor=processor)


@pytest.mark.parametrize("form", FORMS)
def test_every_tail(form: str) -> None:
    for size in range(1, 34):
        check(operands((1, 1), size, 5), form=form)
        check(operands((1, 1), 3, 90 + size), form=form)
        check(operands((1, 1), 3, 7, (size, 34 - size)), form=form)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("heads", [(1, 1), (6, 2), (5, 1), (12, 4)])
def test_groups_share_keys(heads: Heads, form: str) -> None:
    for queries in (1, 2, 7, 65):
        check(operands(heads, queries, 40), Rules(causal=True), form=form)


def layouts(x: Array) -> list[Array]:
    """The same numbers, lying in memory in other ways."""
    turned = np.ascontiguousarray(x.transpose(0, 2, 1, 3)).transpose(0, 2, 1, 3)
    flat = np.ascontiguousarray(x.swapaxes(2, 3)).swapaxes(2, 3)
    back = np.ascontiguousarray(x[:, ::-1, ::-1, ::-1])[:, ::-1, ::-1, ::-1]
    wide = np.repeat(np.repeat(x, 2, 2), 3, 3)[:, :, ::2, ::3]
    return [turned, flat, back, wide]


@pytest.mark.parametrize("form", FORMS)
def test_layouts(form: str) -> None:
    q, k, v = operands((4, 2), 5, 50, (16, 24))
    for arrays in zip(layouts(q), layouts(k), layouts(v), strict=True):
        check(arrays, Rules(causal=True), form=form)
    check((q, k, v), Rules(causal=True), form=form, in_place=False)
    one = np.broadcast_to(k[:, :1], k.shape), np.broadcast_to(v[:1], v.shape)
    check((q, *one), Rules(window=9, causal=True), form=form)
    for shape in ((1, 1, 1, 50), (2, 4, 5, 1), (1, 4, 5, 50), (2, 1, 1, 50)):
        mask = np.broadcast_to(RNG.standard_normal(shape).astype(np.float32), (2, 4, 5, 50))
        check((q, k, v), EVERY, mask, form=form)


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("dtype", [np.float16, BFLOAT16])
@pytest.mark.parametrize("form", FORMS)
def test_half_floats_are_read_as_they_are_stored(form: str, dtype: Any, processor: str) -> None:
    for columns in [(32, 16), (9, 21)]:
        q, k, v = operands((6, 2), 3, 90, columns)
        k[..., 0] = 1e-6  # less than normal ones
        arrays = q, k.astype(dtype), v.astype(dtype)
        check(arrays, Rules(causal=True, from_end=True, length=81), form=form, processor=processor)
        check((q.astype(dtype), *arrays[1:]), form=form, processor=processor)


# Special numbers


@pytest.mark.parametrize("form", FORMS)
def test_what_is_not_finite_shows_where_it_is_seen(form: str) -> None:
    for number in (np.nan, np.inf, -np.inf):
        for which in range(3):
            arrays = operands((2, 1), 4, 20)
            arrays[which][1, 0, 2, 1] = number
            found, want = attend(*arrays, form=form), wanted(*arrays)
            np.testing.assert_allclose(found, want, rtol=5e-6, atol=5e-6)
            assert np.isfinite(found[0]).all()


@pytest.mark.parametrize("form", FORMS)
def test_beyond_the_length_nothing_is_read(form: str) -> None:
    q, k, v = operands((2, 1), 4, 40)
    for length in (0, 1, 16, 31):
        k[:, :, length:] = v[:, :, length:] = np.nan
        for causal in (False, True):
            check((q, k, v), Rules(causal=causal, from_end=True, length=length), form=form)
    check((q, k, v), Rules(length=-3), form=form)
    check(operands((2, 1), 4, 40), Rules(length=1000), form=form)


@pytest.mark.parametrize("form", FORMS)
def test_rows_that_see_nothing_are_zero(form: str) -> None:
    arrays = operands((2, 2), 6, 150)
    mask = np.zeros((2, 2, 6, 150), np.float32)
    mask[:, :, 1] = mask[:, 1, 4] = -np.inf
    found = attend(*arrays, EVERY, mask, form=form)
    assert (found[:, :, 1] == 0).all()
    assert (found[:, 1, 4] == 0).all()
    check(arrays, EVERY, mask, form=form)
    early = Rules(causal=True, from_end=True, length=2)  # four queries lie before the first key
    assert (attend(*arrays, early, form=form)[:, :, :4] == 0).all()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("size", [1e-30, 30.0, 1e4])
def test_scores_of_any_size(size: float, form: str) -> None:
    q, k, v = operands((2, 1), 5, 300)
    arrays = (q * np.float32(size), k, v)
    found, want = attend(*arrays, form=form), wanted(*arrays)
    np.testing.assert_allclose(found, want, rtol=1e-6 * max(size, 5), atol=1e-6 * max(size, 5))
    mask = np.full((2, 2, 5, 300), np.finfo(np.float32).min, np.float32)  # all are hidden alike
    assert np.isfinite(attend(*arrays, EVERY, mask, form=form)).all()


# Threads


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_threads_and_parts_change_no_bit(form: str, dtype: Any) -> None:
    for queries, keys in [(1, 2048), (3, 700), (90, 300)]:
        arrays = operands((6, 2), queries, keys, (16, 24), dtype)
        for rules in (
            Rules(),
            Rules(causal=True, from_end=True, length=keys - 5),
            Rules(causal=True, window=99),
        ):
            alone = attend(*arrays, rules, form=form).tobytes()
            for threads, parts in ((2, 0), (1, 2), (1, 7), (1, 64)):
                found = attend(*arrays, rules, form=form, threads=threads, parts=parts)
                assert found.tobytes() == alone


@pytest.mark.parametrize("form", FORMS)
def test_a_row_depends_on_no_other(form: str) -> None:
    q, k, v = operands((1, 1), 70, 900, (16, 16))
    rules = Rules(causal=True, from_end=True)
    whole, seen = attend(q, k, v, form=form), attend(q, k, v, rules, form=form)
    for first, last in [(0, 1), (3, 20), (31, 64)]:
        some = attend(q[:, :, first:last], k, v, form=form)
        assert some.tobytes() == whole[:, :, first:last].tobytes()
        length = 900 - (70 - last)
        some = attend(q[:, :, first:last], k, v, rules._replace(length=length), form=form)
        assert some.tobytes() == seen[:, :, first:last].tobytes()


# Other processors


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_needed_from_outside(name: str, form: str) -> None:
    """What LLVM cannot do in instructions it would call, and there would be nothing to call."""
    processor = named(name)
    size, registers, fma, halves = (
        getattr(processor, each) for each in ("register_bytes", "registers", "has_fma", "has_halves")
    )
    for kind, stored in (("float", "float16"), ("float", "bfloat16"), ("double", "float64")):
        tile = Tile.of(kind, size, registers, has_fma=fma, has_halves=halves)
        own = "float64" if kind == "double" else "float32"
        reads = Reads(stored, stored, True) if form == "rows" else Reads("", "", True)
        text = attention_module(form, tile, reads, 3, (own, stored, stored, own))
        lines = assembly(text, processor)
        called = set(re.findall(r"^\s+(?:bl|callq?)\s+_?([a-z]\S*)", lines, re.MULTILINE))
        known = set(re.findall(r"^define .*@(\w+)\(", text, re.MULTILINE))
        assert {each.removesuffix("@PLT") for each in called if not re.fullmatch(r"x\d+|r\w+", each)} <= known
