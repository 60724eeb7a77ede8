"""GGUF's blocks: their weights against Python's arithmetic, one by one, and the way they lie in words."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest

import webgrad
from tests.ops.block_reference import BYTES, WEIGHTS, dequantise, random_blocks
from webgrad.functions.learning.quantised import QUANTISERS
from webgrad.io.gguf_types import TYPE_NUMBERS
from webgrad.io.gguf_writer import GGUF_FORMATS
from webgrad.ops.blocks import FORMATS, decode_blocks, from_words, to_words, word_count
from webgrad.ops.packed import decoded_rows
from webgrad.wgsl.preprocess import preprocess
from webgrad.wgsl.template import template_text, values_of


def test_the_formats_are_those_of_gguf() -> None:
    assert {name: (each.weights, each.nbytes) for name, each in FORMATS.items()} == {
        name: (WEIGHTS[name], BYTES[name]) for name in BYTES
    }


def test_a_format_is_one_row() -> None:
    """Everything else that knows formats by name takes them from the rows: quantising and native code aside,
    which are functions of their own for each format that they are offered for, and a list of kernels.
    """
    package = Path(webgrad.__file__).parent
    naming = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        for each in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(each, ast.Constant) and each.value in FORMATS
    }
    assert naming == {
        "ops/blocks.py",
        "functions/learning/quantised.py",
        "native/templates/formats.py",
        "tools/gpus/families.py",
    }
    assert FORMATS.keys() <= TYPE_NUMBERS.keys()
    assert set(QUANTISERS) == set(GGUF_FORMATS) & FORMATS.keys()
    assert values_of("FORMAT", template_text("blocks.pwgsl")) == tuple(FORMATS)


@pytest.mark.parametrize("name", FORMATS)
def test_a_formats_section_is_of_its_rows_sizes(name: str) -> None:
    text = '#include "blocks.pwgsl"\nconst units = UNITS;\nconst groups = BLOCK_GROUPS;\n'
    found = preprocess(
        text, file="a.pwgsl", defines={"FORMAT": name}, loader=lambda file, _: (file, template_text(file))
    ).text
    assert f"const units = {FORMATS[name].units};" in found
    assert f"const groups = {FORMATS[name].weights // 4}u;" in found


@pytest.mark.parametrize("name", FORMATS)
def test_regions_are_the_whole_block_and_aligned(name: str) -> None:
    format = FORMATS[name]
    covered = sorted(each for start, count in format.regions for each in range(start, start + count))
    assert covered == list(range(format.nbytes))
    units = [next(unit for unit in (16, 4, 2) if count % unit == 0) for _, count in format.regions]
    assert units == sorted(units, reverse=True)


@pytest.mark.parametrize("name", FORMATS)
def test_any_bits_mean_what_gguf_says(name: str) -> None:
    format, shape = FORMATS[name], (6, WEIGHTS[name])
    data = random_blocks(name, shape, 3)
    words = to_words(data, format)
    want = dequantise(data, name, shape)
    got = decode_blocks(words, format, 6, slice(None))
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got.view(np.uint32), want.view(np.uint32))
    np.testing.assert_array_equal(decode_blocks(words, format, 6, np.array([5, 0, 5])), want[[5, 0, 5]])
    assert decode_blocks(words, format, 6, slice(2, 2)).shape == (0, WEIGHTS[name])


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("blocks", [0, 1, 7])
def test_words_give_the_blocks_back(name: str, blocks: int) -> None:
    format = FORMATS[name]
    data = np.random.default_rng(blocks).integers(0, 256, blocks * format.nbytes, np.uint8)
    words = to_words(data, format)
    assert words.dtype == np.uint32
    assert words.size == word_count(format, blocks)
    assert 0 <= words.nbytes - data.nbytes < 4
    np.testing.assert_array_equal(from_words(words, format, blocks), data)


def test_rows_of_a_matrix() -> None:
    data = random_blocks("Q5_0", (5, 96))
    words, want = to_words(data, FORMATS["Q5_0"]), dequantise(data, "Q5_0", (5, 96))
    np.testing.assert_array_equal(decoded_rows(words, "Q5_0", (5, 96), slice(1, 4)), want[1:4])
    np.testing.assert_array_equal(decoded_rows(words, "Q5_0", (5, 96), np.array([4, 4, 0])), want[[4, 4, 0]])
