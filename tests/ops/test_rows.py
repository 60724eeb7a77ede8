"""A map op is one row: a line of `ops/maps.py` is a function, a method, a page's entry and its tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ABOVE = "FUNCTIONS = (\n"
ROW = """    row("twice", "x and x. >>> [1.0, 2.5] -> [2. 5.]", spelled("({0} + {0})", "f32", "f64"), "f",
        numpy=lambda x: x + x, gradient=("g + g",)),
"""
SEEN = """
import sys
import webgrad as wg
from scripts.ops_page import page
from scripts.reference_page import pages
from scripts.stubs import stubs
from tests.properties import test_table

assert "twice" in wg.__all__
assert (wg.twice.__name__, wg.twice.__module__) == ("twice", "webgrad.functions.array.maps")
assert ">>> print(wg.twice(wg.asarray([1.0, 2.5])))" in wg.twice.__doc__
assert wg.Tensor.twice is wg.twice
assert "| `twice` | map | floats | all |" in page() and "[`twice`](reference/elements.md#twice)" in page()
assert "wg.twice(x: Tensor) -> Tensor" in pages()["elements.md"]
assert "`x.twice`" in pages()["tensor.md"]
assert any("def twice(x: Tensor) -> Tensor: ..." in text for text in stubs().values())
cases = test_table.test_op.pytestmark
assert any("twice" in mark.args[1] for mark in cases if mark.name == "parametrize")
x = wg.asarray([1.0, 2.5], device=sys.argv[1])
assert x.twice().tolist() == [2.0, 5.0]
assert wg.twice(wg.asarray([1, 2], device=sys.argv[1])).tolist() == [2.0, 4.0]
assert wg.grad(lambda x: wg.twice(x).sum())(x).tolist() == [2.0, 2.0]
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of webgrad with one row more."""
    folder = tmp_path_factory.mktemp("one_row_more")
    shutil.copytree(ROOT / "webgrad", folder / "webgrad", ignore=shutil.ignore_patterns("__pycache__"))
    rows = folder / "webgrad" / "ops" / "maps.py"
    text = rows.read_text("utf-8")
    assert text.count(ABOVE) == 1
    rows.write_text(text.replace(ABOVE, ABOVE + ROW), encoding="utf-8")
    return folder


@pytest.mark.parametrize("device", ["cpu", pytest.param("webgpu", marks=pytest.mark.gpu)])
def test_a_row_is_seen_everywhere(package: Path, device: str) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(package), str(ROOT)])}
    command = [sys.executable, "-c", SEEN, device]
    done = subprocess.run(command, cwd=package, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
