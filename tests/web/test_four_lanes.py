"""Kernels for subgroups of four lanes, which the tests' own adapter does not have: right in Chromium."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.browser import Browser
from webgrad.nn import functional
from webgrad.web.server import serving

pytestmark = pytest.mark.web
VARIANT = "software, subgroups of 4"
CALL = """
  (async () => {
    const { open } = await import("./model.js");
    const model = await open();
    const results = {};
    for (const [name, call] of Object.entries(model.functions)) {
      results[name] = Array.from((await call({})).output.data);
    }
    model.close();
    return [model.info.variant, results];
  })()
"""
# rows, k, columns of products: around the forms' blocks, whole groups of four and odd ones
SIZES = [(1, 64, 96), (3, 20, 40), (8, 64, 50), (9, 33, 17), (17, 66, 64), (40, 31, 130), (128, 64, 100)]
# queries, keys, columns of a head, causal
ATTENTION = [(1, 40, 32, False), (5, 5, 64, True), (33, 33, 32, True), (20, 70, 16, False), (9, 9, 128, True)]


def random(*shape: int) -> wg.Tensor:
    generator = np.random.default_rng([*shape])
    return wg.tensor(generator.standard_normal(shape).astype(np.float32))


def cases() -> dict[str, Callable[[], wg.Tensor]]:
    made: dict[str, Callable[[], wg.Tensor]] = {}

    def product(m: int, k: int, n: int, *, turned: bool) -> Callable[[], wg.Tensor]:
        a, b, bias = random(m, k), random(*((n, k) if turned else (k, n))), random(n)
        return lambda: functional.gelu(a @ (b.T if turned else b) + bias)

    def attention(queries: int, keys: int, columns: int, causal: bool) -> Callable[[], wg.Tensor]:
        q, k, v = random(2, 3, queries, columns), random(2, 3, keys, columns), random(2, 3, keys, columns + 4)
        return lambda: functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

    for sizes in SIZES:
        for turned in (False, True):
            made["_".join(map(str, ("product", *sizes, turned)))] = product(*sizes, turned=turned)
    for each in ATTENTION:
        made["_".join(map(str, ("attention", *each)))] = attention(*each)
    image, filters = random(1, 3, 15, 18), random(10, 3, 3, 3)
    made["convolution"] = lambda: functional.conv2d(image, filters, padding=1, stride=2)
    return made


def test_products_attention_and_convolutions_are_right(browser: Browser, tmp_path: Path) -> None:
    functions = cases()
    wg.export(functions, dict.fromkeys(functions, ()), tmp_path)
    with serving(tmp_path) as address:
        page = browser.page()
        page.open(f"{address}/index.html")
        answer: tuple[str, dict[str, Any]] = page.evaluate(CALL)
    variant, found = answer
    assert variant == VARIANT
    for name, function in functions.items():
        expected = function().numpy()
        error = np.abs(np.reshape(found[name], expected.shape) - expected).max()
        assert error <= 1e-5 * np.abs(expected).max(), name
