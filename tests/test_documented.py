"""Nothing public is undocumented: names, their members, settings, variables, commands and their options.

Every public name has a docstring whose first sentence ends, and functions and classes an example, which
tests/test_docs.py runs; the reference is made of them. What is more than a function of arrays is also told of
in a page that somebody wrote.
"""

from __future__ import annotations

import inspect
import re
from functools import cache
from typing import Any

import pytest

import webgrad
from scripts.reference_entries import first_paragraph, function_of, members
from scripts.reference_page import home, public_names, told_elsewhere
from tests.documents import PAGES, ROOT, blocks_of, indented_lines, inline_code, name_of, text_of
from tests.test_docs_commands import options_of
from webgrad import config, errors
from webgrad.cli import COMMANDS

# Whose example needs files that not every machine has: the page that shows it
SHOWN_IN = {
    **dict.fromkeys(
        (
            *(
                "wg.models.load",
                "wg.models.LanguageModel",
                "wg.models.EmbeddingModel",
                "wg.models.Generation",
            ),
            *("wg.models.Report", "wg.models.Tokenizer"),
        ),
        "docs/models.md",
    ),
    **dict.fromkeys(
        ("wg.models.pull", "wg.models.pulled", "wg.models.remove", "wg.models.Entry", "wg.models.Pulled"),
        "docs/pulling.md",
    ),
    **dict.fromkeys(
        (f"wg.data.datasets.{name}" for name in ("fashion_mnist", "mnist", "shakespeare")), "docs/training.md"
    ),
}
# Made by scripts: they list everything, so being in them says nothing
GENERATED = ("docs/reference/", "docs/ops.md", "docs/one-matmul.md", "docs/accuracy.md")
# Libraries whose names are told of in words; the others' are functions and layers like their neighbours
TOLD = (
    "wg.optim",
    "wg.optim.lr_scheduler",
    "wg.amp",
    "wg.data",
    "wg.data.datasets",
    "wg.models",
    "wg.training",
)


@cache
def written_words() -> frozenset[str]:
    """Every word of the code in the pages that somebody wrote: in a sentence "memory" is no function."""
    code: list[str] = []
    for page in (name_of(path) for path in PAGES if not name_of(path).startswith((*GENERATED, "webgrad/"))):
        code += [*(block.text for block in blocks_of(page)), *inline_code(page), *indented_lines(page)]
    return frozenset(re.findall(r"\w+", " ".join(code)))


def described() -> dict[str, Any]:
    """Public functions and classes, each once."""
    return {
        name: thing
        for name, thing in public_names().items()
        if callable(thing) and told_elsewhere(name, thing) is None and not isinstance(thing, webgrad.DType)
    }


def is_sentence(text: str) -> bool:
    return text.endswith((".", "…", ".)"))


def test_every_name_has_a_sentence() -> None:
    assert [name for name, thing in described().items() if not is_sentence(first_paragraph(thing))] == []


def has_an_example(text: str) -> bool:
    """Whether one of the lines that docstrings show is run."""
    return any(">>> " in line and "+SKIP" not in line for line in text.splitlines())


def test_every_function_and_class_has_an_example_that_runs() -> None:
    silent = [
        name
        for name, thing in described().items()
        if not has_an_example(thing.__doc__ or "")
        and name not in SHOWN_IN
        and not is_error(thing)
        and not (inspect.isclass(thing) and thing.__name__ in given())
    ]
    assert silent == []


@cache
def given() -> frozenset[str]:
    """Names of classes that public functions give: their examples show them."""
    results = [
        str(inspect.signature(thing).return_annotation)
        for thing in described().values()
        if inspect.isfunction(thing)
    ]
    return frozenset(re.findall(r"\w+", " ".join(results)))


def is_error(thing: Any) -> bool:
    """Errors have their examples in docs/errors.md."""
    return inspect.isclass(thing) and issubclass(thing, errors.WebgradError)


@pytest.mark.parametrize("name", SHOWN_IN)
def test_what_needs_files_is_shown_in_a_page(name: str) -> None:
    assert ">>> " not in (public_names()[name].__doc__ or ""), "it has an example: take it out of SHOWN_IN"
    assert re.search(rf"\b{name.rsplit('.', 1)[1]}\b", text_of(SHOWN_IN[name]))


def test_every_member_of_a_public_class_has_a_sentence() -> None:
    silent = [
        f"{name}.{member}"
        for name, thing in described().items()
        if inspect.isclass(thing)
        for member, value in members(thing)
        if not is_sentence(
            " ".join(
                (inspect.getdoc(function_of(value)) or _inherited(thing, member)).split("\n\n")[0].split()
            )
        )
    ]
    assert silent == []


def _inherited(thing: type, member: str) -> str:
    found = (inspect.getdoc(vars(base)[member]) for base in thing.__mro__ if member in vars(base))
    return next((each for each in found if each), "")


def test_what_is_more_than_a_function_of_arrays_is_told_of_in_a_page() -> None:
    wanted = [
        name
        for name, thing in described().items()
        if name.rsplit(".", 1)[0] in TOLD
        or (name.count(".") == 1 and not home(name, thing).startswith(("functions.", "dtypes", "tensor")))
    ]
    assert len(wanted) > 80
    words = written_words() | given() | set(errors.__all__)
    assert [name for name in wanted if name.rsplit(".", 1)[1] not in words] == []


def test_every_environment_variable_is_in_the_page_about_settings() -> None:
    page = text_of("docs/configuration.md")
    found = {config.CONFIG_VARIABLE} | {option.variable for option in config.OPTIONS}
    for path in (ROOT / "webgrad").rglob("*.py"):
        found |= set(re.findall(r"\bWEBGRAD_[A-Z][A-Z_]*[A-Z]\b", path.read_text(encoding="utf-8")))
    assert [name for name in sorted(found) if f"`{name}`" not in page] == []


def test_only_one_module_reads_the_environment() -> None:
    readers = [
        path.relative_to(ROOT / "webgrad").as_posix()
        for path in (ROOT / "webgrad").rglob("*.py")
        if re.search(r"\bos\.(environ|getenv)\b", path.read_text(encoding="utf-8"))
    ]
    assert readers == ["config.py"]


def test_every_option_is_in_the_page_about_settings() -> None:
    page = text_of("docs/configuration.md")
    assert [option.name for option in config.OPTIONS if f"| `{option.name}` |" not in page] == []


def test_every_error_has_its_section() -> None:
    page = text_of("docs/errors.md")
    assert [name for name in errors.__all__ if f"\n## {name}\n" not in page] == []


def section(page: str, title: str) -> str:
    """A page's text from a heading to the next one of its level or above."""
    level = title.partition(" ")[0]
    found = re.search(rf"^{title}\n(.*?)(?=^#{{1,{len(level)}}} |\Z)", page, re.DOTALL | re.MULTILINE)
    assert found, f"docs/cli.md has no {title}"
    return found[1]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_a_section_with_all_its_options(command: str) -> None:
    page = text_of("docs/cli.md")
    common = page.partition("\n## ")[0] + section(page, "### How a model writes")
    common += section(page, "### What an ONNX model is given")
    told = section(page, f"## webgrad {command}") + common
    words = set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", told))
    assert sorted(options_of(command) - {"-h", "--help"} - words) == []
