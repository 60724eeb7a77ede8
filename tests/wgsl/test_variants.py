"""Which variants a template declares."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from webgrad.errors import TemplateError
from webgrad.wgsl import template
from webgrad.wgsl.variants import all_variants, variant_keys, variant_lines

BODY = """
#ifdef EXTRA
@compute @workgroup_size(1) fn extra() {}
#endif
@compute @workgroup_size(N) fn one() {}
@compute @workgroup_size(2) fn two() {}
#if 0
T
#endif
"""


@pytest.fixture
def kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder in the place of webgrad/kernels."""
    monkeypatch.setattr(template, "KERNELS", tmp_path)
    template.clear_templates()
    yield tmp_path
    template.clear_templates()


def labels(folder: Path, header: str) -> list[str]:
    (folder / "a.pwgsl").write_text(header + BODY)
    template.clear_templates()
    return [program.label.removeprefix("a.pwgsl ") for program in all_variants()]


def test_a_line_is_a_cross_product(kernels: Path) -> None:
    assert labels(kernels, "//! variants: one T=f32|f16; N=1|2") == [
        "one [N=1, T=f32]",
        "one [N=2, T=f32]",
        "one [N=1, T=f16]",
        "one [N=2, T=f16]",
    ]


def test_a_star_is_every_value_that_is_asked_for(kernels: Path) -> None:
    (kernels / "kinds.pwgsl").write_text(
        "#if T == a\n#elif T == b\n#elif T == a\n#endif\n#if T != c\n#endif\n"
    )
    header = '#define N 1\n//! variants: one T=*\n#include "kinds.pwgsl"\n'
    assert labels(kernels, header) == ["one [T=a]", "one [T=b]"]
    with pytest.raises(TemplateError, match=r"`M=\*`: a name or value is empty or there twice"):
        variant_lines("//! variants: M=*", "a.pwgsl")


def test_entries_are_named_or_all(kernels: Path) -> None:
    assert labels(kernels, "//! variants: N=1; EXTRA=-|1") == [
        "one [N=1]",
        "two [N=1]",
        "extra [EXTRA=1, N=1]",
        "one [EXTRA=1, N=1]",
        "two [EXTRA=1, N=1]",
    ]
    assert labels(kernels, "//! variants: one|two N=3") == ["one [N=3]", "two [N=3]"]
    assert labels(kernels, "#define N 4\n//! variants: two") == ["two"]
    assert labels(kernels, "#define N 4\n//! variants:") == ["one", "two"]


def test_several_lines_add_up_and_repeat_nothing(kernels: Path) -> None:
    header = "//! variants: one N=1|2\n//! variants: one N=2|3\n"
    assert labels(kernels, header) == ["one [N=1]", "one [N=2]", "one [N=3]"]


def test_includes_have_no_variants(kernels: Path) -> None:
    (kernels / "types.pwgsl").write_text("alias Row = vec4<f32>;\n")
    assert list(all_variants()) == []
    (kernels / "types.pwgsl").write_text(BODY)
    template.clear_templates()
    with pytest.raises(TemplateError, match=r"types\.pwgsl has an entry point and declares neither"):
        list(all_variants())
    (kernels / "types.pwgsl").write_text("//! holes: filled by a test\n" + BODY)
    template.clear_templates()
    assert list(all_variants()) == []


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("//! variant: N=1", "a.pwgsl:1: a `//!` line is written"),
        ("//! variants N=1", "a.pwgsl:1: a `//!` line is written"),
        ("\n//! variants: N=1; T", "a.pwgsl:2: `T` is not NAME=value|value"),
        ("//! variants: N=1||2", "a.pwgsl:1: `N=1||2`: a name or value is empty or there twice"),
        ("//! variants: N=1|1", "a.pwgsl:1: `N=1|1`: a name or value is empty or there twice"),
        ("//! variants: N=1; N=2", "a.pwgsl:1: `N=2`: a name or value is empty or there twice"),
        ("//! variants: one two N=1", "a.pwgsl:1: `two N=1` is not NAME=value|value"),
    ],
)
def test_mistakes_name_the_line(header: str, message: str) -> None:
    with pytest.raises(TemplateError) as caught:
        variant_lines(header, "a.pwgsl")
    assert str(caught.value).startswith(message)


def test_a_variant_without_an_entry_is_an_error(kernels: Path) -> None:
    (kernels / "a.pwgsl").write_text("//! variants: N=1\n#if N == 2\n@compute\n#endif\n")
    with pytest.raises(TemplateError, match=r"a.pwgsl:1: with {'N': '1'} there is no @compute entry point"):
        list(variant_keys("a.pwgsl"))
