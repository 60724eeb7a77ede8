"""What the texts promise: every block of code in every page does what it shows, and so do docstrings."""

from __future__ import annotations

import builtins
import doctest
import functools
import importlib
import pkgutil
import re
import sys
import tempfile
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

import webgrad
from tests.documents import ALL_BLOCKS, Block, blocks_of
from tests.missing import IN_CI
from webgrad import config

MODULES = [
    each.name for each in pkgutil.walk_packages(webgrad.__path__, "webgrad.") if "__main__" not in each.name
]
# Languages of blocks: those that are run or checked, and what is only shown
CHECKED = {"python", "sh", "toml", "wgsl"}  # of shells: tests/test_docs_commands.py
SHOWN = {"", "text", "json", "html"}
IN_BROWSERS = {"js", "html"}  # tests/web/test_export.py and tests/web/test_exported_pages.py run them
REFERENCE = {"py", "pycon"}  # signatures and examples, in docs/reference only
GENERATED = "docs/reference/"  # examples there are those of docstrings
ELSEWHERE = ("docs/errors.md", GENERATED)  # tests/test_errors_page.py runs what is wrong and what is right
MOST_NOT_RUN = 6
SHOWN_OUTPUT = re.compile(r"^\s*print\(.*\)  # (.*\S)\s*$")
NEEDS_A_GPU = re.compile(r"webgpu|wg\.kernel\(|wg\.Batch\(")
MODELS = re.compile(r"\b(smollm2:135m|minilm)\b")


def of(*languages: str) -> list[Any]:
    """The blocks of these languages that are to be run, as parameters; some need a GPU."""
    return [
        pytest.param(block, id=block.name, marks=[pytest.mark.gpu] if NEEDS_A_GPU.search(block.text) else [])
        for block in ALL_BLOCKS
        if block.language in languages and not block.not_run and not block.page.startswith(ELSEWHERE)
    ]


def run(block: Block, namespace: dict[str, Any]) -> dict[int, list[str]]:
    """Run a block's code; what its prints wrote, by the line they stand in."""
    printed: dict[int, list[str]] = {}

    def recording(*values: Any, **options: Any) -> None:
        sep = options.get("sep", " ")
        line = sys._getframe(1).f_lineno
        printed.setdefault(line, []).append((" " if sep is None else sep).join(map(str, values)))
        builtins.print(*values, **options)

    exec(compile(block.text, block.name, "exec"), namespace | {"print": recording, "__name__": "__main__"})
    return printed


def as_shown(block: Block, printed: dict[int, list[str]]) -> None:
    """Every `print(…)  # words` wrote these words; … stands for anything."""
    for number, line in enumerate(block.text.splitlines(), start=1):
        if found := SHOWN_OUTPUT.match(line):
            pattern = ".*".join(map(re.escape, found[1].split("…")))
            written = printed.get(number, [])
            assert any(re.fullmatch(pattern, each, re.DOTALL) for each in written), (
                f"{block.page}:{block.line + number - 1} shows {found[1]!r}, and wrote {written!r}"
            )


def in_place(block: Block, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """The device, the folder and the models that a block finds."""
    webgrad.set_default_device(None if NEEDS_A_GPU.search(block.text) else "cpu")
    monkeypatch.chdir(folder)
    if "models.load(" not in block.text:
        return
    monkeypatch.setattr(webgrad.models, "load", load_once)
    for name in set(MODELS.findall(block.text)):
        try:
            webgrad.models.locate(name, pull=IN_CI)
        except webgrad.ModelFileError as error:
            pytest.skip(str(error))


load_once = functools.cache(webgrad.models.load)  # blocks share what was read and captured


@pytest.fixture(autouse=True)
def default_device() -> Any:
    yield
    webgrad.set_default_device(None)


@pytest.mark.filterwarnings("default::DeprecationWarning")
@pytest.mark.parametrize("block", of("python"))
def test_the_code_of_a_page_runs_and_shows_what_it_says(
    block: Block, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    in_place(block, monkeypatch, tmp_path)
    as_shown(block, run(block, {}))
    assert capsys.readouterr().out, f"{block.name} prints nothing, so it shows nothing"


@pytest.mark.gpu
def test_the_code_in_the_readme_runs_on_a_gpu_too(capsys: pytest.CaptureFixture[str]) -> None:
    webgrad.set_default_device("webgpu")
    for block in blocks_of("README.md"):
        if block.language == "python" and not block.not_run and not MODELS.search(block.text):
            as_shown(block, run(block, {}))


@pytest.mark.parametrize("block", of("toml"))
def test_settings_of_a_page_can_be_loaded(block: Block, tmp_path: Path) -> None:
    path = tmp_path / "webgrad.toml"
    path.write_text(block.text, encoding="utf-8")
    loaded = config.load_settings({"WEBGRAD_CONFIG": str(path)})
    assert loaded.sources


@pytest.mark.gpu
@pytest.mark.parametrize("block", of("wgsl"))
def test_wgsl_of_a_page_compiles(block: Block) -> None:
    from tests.wgsl.naga import compiles

    compiles(block.text)


def test_every_block_has_a_language_that_is_checked_or_only_shown() -> None:
    strange = [
        f"{block.name} {block.language}"
        for block in ALL_BLOCKS
        if block.language not in CHECKED | SHOWN | IN_BROWSERS
        and not (block.language in REFERENCE and block.page.startswith(GENERATED))
    ]
    assert strange == []


def test_few_blocks_are_not_run() -> None:
    left_out = [f"{block.name}: {block.not_run}" for block in ALL_BLOCKS if block.not_run]
    assert len(left_out) <= MOST_NOT_RUN, left_out


def test_there_is_a_lot_to_run() -> None:
    assert len(of("python")) > 20


def examples_in(module: str) -> list[doctest.DocTest]:
    """The docstrings of a module that have examples."""
    found = doctest.DocTestFinder().find(
        importlib.import_module(module), extraglobs={"wg": webgrad, "np": np}
    )
    return [each for each in found if each.examples]


def passes(tests: list[doctest.DocTest], device: str) -> None:
    load_once.cache_clear()  # some examples look at the memory in use
    # Examples write files of fixed names: in the usual place another user, or another run, may have them.
    with tempfile.TemporaryDirectory() as folder, patch.object(tempfile, "tempdir", folder):
        for test in tests:
            webgrad.set_default_device(device)
            assert doctest.DocTestRunner().run(test).failed == 0


def needs_a_gpu(test: doctest.DocTest) -> bool:
    return any('"webgpu"' in each.source for each in test.examples)


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name: str) -> None:
    passes([each for each in examples_in(name) if not needs_a_gpu(each)], "cpu")


@pytest.mark.gpu
def test_examples_in_docstrings_that_need_a_gpu() -> None:
    tests = [each for name in MODULES for each in examples_in(name) if needs_a_gpu(each)]
    assert tests
    passes(tests, "cpu")


def test_every_error_is_in_the_tree_that_errors_draws() -> None:
    from webgrad import errors

    drawn = re.findall(r"[├└]── (\w+)", errors.__doc__ or "")
    assert sorted([*drawn, "WebgradError"]) == sorted(errors.__all__)
