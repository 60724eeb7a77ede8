"""The order of the stages, read from the imports.

A module knows its own stage, later ones, and the records that earlier ones hand on.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "webgrad"

# In the order in which data flows; the names are modules or folders of webgrad/.
STAGES: tuple[tuple[str, ...], ...] = (
    ("tensor", "ops", "gradients", "jit", "fft", "functions"),
    ("evaluate", "tuning"),
    ("graph",),
    ("schedule",),
    ("cpu",),
    ("reference",),
    ("lower",),
    ("kernels",),
    ("native",),
    ("wgsl",),
    ("runtime",),
)
# What one stage hands to the next, and the table of ops, which nodes carry through all of them: free to later
# stages. They import only data and each other.
RECORDS = (
    "graph.op",
    "graph.composite",
    "gradients.history",
    "gradients.hooks",
    "graph.node",
    "graph.refcounts",
    "graph.snapshot",
    "graph.walk",
    "ops.table",
    "ops.maps",
    "ops.blocks",
    "ops.ordered",
    "ops.packed",
    "ops.references",
    "ops.rows",
    "ops.shapes",
    "ops.transforms",
    "ops.user_kernel",
    "schedule.axes",
    "schedule.host_ops",
    "schedule.plan",
    "schedule.size",
    "lower.casts",
    "lower.ir",
)
# Free to all; they import only each other.
DATA = ("arrays", "errors", "config", "dtypes", "device_profile", "observing", "porting", "startup", "values")
# The user's side of the stages: may import all of them.
FACE = ("__init__", "batch", "custom", "tools", "web")
ABOVE = (
    "nn",
    "optim",
    "amp",
    "data",
    "io",
    "linalg",
    "signal",
    "special",
    "training",
    "models",
    "onnx",
    "diffusion",
    "torch",
    "cli",
)  # use public names only
# (importer, imported, names) that the rules above would forbid, each with its reason.
EXCEPTIONS: tuple[tuple[str, str, frozenset[str], str], ...] = (
    (
        "runtime",
        "wgsl",
        frozenset({"Program", "Binding", "Dialect", "Field", "Parameters"}),
        "a pipeline is compiled from a Program: its data types, and …",
    ),
    ("runtime", "wgsl.renderer", frozenset({"render"}), "… its final text, nothing else"),
    (
        "cli",
        "runtime.adapters",
        frozenset(),
        "`webgrad info` reports on adapters before any device is opened",
    ),
    ("amp", "functions.learning.autocast", frozenset({"autocast"}), "the switch lies where products are"),
    ("linalg", "functions.spellings", frozenset({"all_spelled"}), "its functions take `dim` as webgrad's do"),
    ("nn", "functions.spellings", frozenset({"all_spelled"}), "its functions take `dim` as webgrad's do"),
    ("amp", "optim", frozenset({"Optimizer"}), "what it steps, for type checkers"),
    ("models", "nn", frozenset(), "a model is made of its modules"),
    ("onnx", "nn", frozenset(), "a loaded model as a module"),
    ("diffusion", "nn", frozenset(), "its networks are modules"),
    (
        "onnx",
        "io.memory_map",
        frozenset(),
        "its files are mapped, and their names shown, as those of weights",
    ),
    (
        "functions",
        "special.gamma",
        frozenset({"digamma", "gammaln"}),
        "chances of Poisson and binomial counts, and gradients of gamma numbers",
    ),
    ("io", "runtime.shield", frozenset({"shield"}), "a signal's exception is not taken for a file's"),
    ("cli", "web", frozenset(), "commands write and serve what pages need"),
    ("cli", "tools", frozenset(), "commands print what tools find"),
    ("cli", "runtime.host", frozenset(), "`webgrad info` says what to install"),
    ("cli", "tuning.entries", frozenset(), "`webgrad tune` shows and clears what is kept on disk"),
    ("cli", "native", frozenset(), "`webgrad native` shows and clears what is kept on disk"),
    ("tuning", "__init__", frozenset({"__version__"}), "what was measured holds for one version"),
)


@dataclass(frozen=True, slots=True)
class Import:
    """`from webgrad.module import name` in a file; name is "" for a plain import."""

    importer: str  # dotted, without webgrad: "runtime.adapters"
    line: int
    module: str
    name: str

    def __str__(self) -> str:
        what = f"{self.name} from webgrad.{self.module}" if self.name else f"webgrad.{self.module}"
        return f"webgrad.{self.importer} line {self.line} imports {what}"


def dotted(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def is_module(name: str) -> bool:
    return (PACKAGE / f"{name}.py").is_file() or (PACKAGE / name).is_dir()


def imports_of(source: str, importer: str, *, is_package: bool) -> Iterator[Import]:
    """Every import of a webgrad module, relative ones resolved; `from webgrad import x` may be a module."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name == "webgrad" or alias.name.startswith("webgrad."):
                    yield Import(importer, node.lineno, alias.name.partition(".")[2] or "__init__", "")
        elif isinstance(node, ast.ImportFrom):
            base = resolve(node, importer, is_package=is_package)
            if base is None:
                continue
            for alias in node.names:
                if not base and is_module(alias.name):
                    yield Import(importer, node.lineno, alias.name, "")
                else:
                    yield Import(importer, node.lineno, base or "__init__", alias.name)


def resolve(node: ast.ImportFrom, importer: str, *, is_package: bool) -> str | None:
    """The imported module without "webgrad.", "" for webgrad itself, None for another package."""
    if node.level == 0:
        top, _, rest = (node.module or "").partition(".")
        return rest if top == "webgrad" else None
    package = importer.split(".") if importer != "__init__" else []
    ups = node.level - (is_package and importer != "__init__") - (importer == "__init__")
    parts = package[: len(package) - ups]
    return ".".join([*parts, *(node.module.split(".") if node.module else [])])


def stage_of(module: str) -> int | None:
    top = module.split(".")[0]
    return next((number for number, stage in enumerate(STAGES) if top in stage), None)


def is_allowed(found: Import) -> bool:
    importer, imported = found.importer.split(".")[0], found.module.split(".")[0]
    if importer in FACE or (importer == imported and found.importer not in RECORDS):
        return True
    if any(fits(found, *exception[:3]) for exception in EXCEPTIONS):
        return True
    if imported in DATA:
        return True
    if found.module in RECORDS or f"{found.module}.{found.name}" in RECORDS:
        return True
    if found.importer in RECORDS:
        return False
    if importer in ABOVE:
        return imported == "__init__"
    here, there = stage_of(found.importer), stage_of(found.module)
    return here is not None and there is not None and here <= there


def fits(found: Import, importer: str, imported: str, names: frozenset[str]) -> bool:
    if found.importer.split(".")[0] != importer:
        return False
    if names:
        return found.module == imported and found.name in names
    return f"{found.module}.{found.name}.".startswith(f"{imported}.")


@cache
def all_imports() -> list[Import]:
    return [
        each
        for path in sorted(PACKAGE.rglob("*.py"))
        for each in imports_of(path.read_text("utf-8"), dotted(path), is_package=path.stem == "__init__")
    ]


def test_imports_follow_the_stages() -> None:
    found = all_imports()
    assert len(found) > 10
    assert [str(each) for each in found if not is_allowed(each)] == []


def test_every_module_has_a_place() -> None:
    places = {*(name for stage in STAGES for name in stage), *DATA, *FACE, *ABOVE}
    tops = {path.stem for path in PACKAGE.glob("*.py")}
    tops |= {path.name for path in PACKAGE.iterdir() if path.is_dir() and any(path.rglob("*.py"))}
    assert sorted(tops - places) == [], "say in tests/test_layering.py where these belong"


def test_the_environment_is_read_in_one_file() -> None:
    reads = ("os.environ", "os.getenv", "from os import environ", "from os import getenv")
    readers = [
        dotted(path)
        for path in PACKAGE.rglob("*.py")
        if any(word in path.read_text("utf-8") for word in reads)
    ]
    assert readers == ["config"]


def test_imports_inside_functions_say_why() -> None:
    """They load what is heavy or optional on use; a cycle, or a layer upside down, is to be mended."""
    bare = []
    for path in sorted(PACKAGE.rglob("*.py")):
        source = path.read_text("utf-8")
        lines = source.splitlines()
        functions = [each for each in ast.walk(ast.parse(source)) if isinstance(each, ast.FunctionDef)]
        nodes = [node for each in functions for node in ast.walk(each)]
        inner = {node.lineno for node in nodes if isinstance(node, ast.ImportFrom) and node.level > 0}
        bare += [f"{dotted(path)} line {line}" for line in inner if "  # here: " not in lines[line - 1]]
    assert bare == []


# Functions build one graph for all devices, but for what `ops/capabilities.py` answers.
DEVICE_TESTS = {
    "functions.array.interop": "values are moved from device to device there",
    "functions.kernel_arguments": "users' WGSL is for GPUs; the cpu computes their reference",
}


def test_functions_do_not_test_devices() -> None:
    """What a GPU lacks is the business of `schedule/legalise.py` and of `ops/capabilities.py`."""
    folders = ("functions", "gradients")
    found = {
        dotted(path)
        for folder in folders
        for path in (PACKAGE / folder).rglob("*.py")
        if re.search(r"\bCpuDevice\b|\.is_gpu\b", path.read_text("utf-8"))
    }
    assert sorted(found) == sorted(DEVICE_TESTS)


# What they ask for all the same, by module; the reasons are in `ops/capabilities.py`.
QUESTIONS = {
    "functions.array.evaluation": {"has_host_memory"},
    "functions.array.masks": {"has_host_memory"},
    "functions.fourier.transform": {"has_real_transform", "has_transform"},
    "functions.learning.quantised": {"has_host_memory"},
}


def test_what_functions_ask_of_a_device() -> None:
    found: dict[str, set[str]] = {}
    for each in all_imports():
        if each.module == "ops.capabilities":
            found.setdefault(each.importer, set()).add(each.name)
    assert found == QUESTIONS


@pytest.mark.parametrize(
    ("source", "importer", "allowed"),
    [
        ("from ..wgsl import Program", "runtime.pipelines", True),
        ("from ..wgsl.renderer import render", "runtime.pipelines", True),
        ("from ..wgsl import load_template", "runtime.pipelines", False),
        ("from webgrad.wgsl.reflect import reflect", "runtime.pipelines", False),
        ("from ..kernels import ordering", "runtime.queue", False),
        ("import webgrad.kernels", "wgsl.renderer", False),
        ("from webgrad.device_profile import DeviceProfile", "kernels.sorting", True),
        ("from ..errors import ShapeError", "graph.node", True),
        ("from .errors import ShapeError", "batch", True),
        ("from .runtime import queue", "errors", False),
        ("import webgrad as wg", "nn.linear", True),
        ("from webgrad.runtime import queue", "nn.linear", False),
        ("from ..runtime import adapters", "cli.info", True),
        ("from ..runtime import queue", "cli.info", False),
        ("import numpy\nfrom os import path", "runtime.queue", True),
    ],
)
def test_the_rules_themselves(source: str, importer: str, allowed: bool) -> None:
    assert all(is_allowed(each) for each in imports_of(source, importer, is_package=False)) == allowed


def test_relative_imports_of_packages() -> None:
    [inside] = imports_of("from .text import Line", "cli", is_package=True)
    assert (inside.module, inside.name) == ("cli.text", "Line")
    [top] = imports_of("from .errors import ShapeError", "__init__", is_package=True)
    assert (top.module, top.name) == ("errors", "ShapeError")
