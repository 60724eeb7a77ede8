"""What is compiled for: this machine, or a processor that is named, if it can run here."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import webgrad as wg
from webgrad import config
from webgrad.config import PROCESSORS
from webgrad.native import compiler, processor
from webgrad.native.compiler import is_available
from webgrad.native.processor import architecture, chosen, host, named


def test_every_name_is_known_and_no_other() -> None:
    assert tuple(processor._KNOWN) == PROCESSORS
    with pytest.raises(wg.ArgumentError, match="x86-64-v3"):
        named("z80")


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("x86-64-v2", (16, 16, False, False, False)),
        ("x86-64-v3", (32, 16, True, True, False)),
        ("x86-64-v4", (64, 32, True, True, True)),
        ("aarch64", (16, 32, True, True, False)),
    ],
)
def test_what_they_have(name: str, facts: tuple[int, int, bool, bool, bool]) -> None:
    found = named(name)
    has = found.register_bytes, found.registers, found.has_fma, found.has_halves, found.has_masks
    assert has == facts
    assert found.architecture == name.removesuffix(name[6:]).replace("-", "_") or name == "aarch64"


def test_the_machine() -> None:
    found = host()
    assert found.architecture == architecture()
    assert found.register_bytes in (16, 32, 64)
    assert chosen() is found


def test_some_of_the_widest_features_are_not_enough() -> None:
    """Knights Landing has wide registers, and no masks for bytes."""
    found = processor._described(
        "x86_64-unknown-linux-gnu", "knl", "", processor._V3 | {"avx512f", "avx512cd"}
    )
    assert (found.register_bytes, found.has_masks) == (32, False)
    none = processor._described("x86_64-unknown-linux-gnu", "", "", frozenset())
    assert (none.register_bytes, none.has_fma) == (16, False)


def named_by_the_option(clean_environment: pytest.MonkeyPatch, name: str) -> None:
    clean_environment.setenv("WEBGRAD_PROCESSOR", name)
    config.reload()
    processor._chosen.cache_clear()


def test_a_processor_of_another_kind_is_refused(clean_environment: pytest.MonkeyPatch) -> None:
    other = "x86-64-v2" if architecture() == "aarch64" else "aarch64"
    named_by_the_option(clean_environment, other)
    assert is_available()
    with pytest.raises(wg.ConfigError, match=f"WEBGRAD_PROCESSOR: code for {other} cannot run here"):
        compiler.functions("", ["run"])


@pytest.mark.skipif(architecture() != "x86_64", reason="levels of x86-64")
def test_features_that_are_not_here_are_refused_by_name(clean_environment: pytest.MonkeyPatch) -> None:
    clean_environment.setattr(processor, "_host_has", lambda: processor._V3)
    named_by_the_option(clean_environment, "x86-64-v4")
    with pytest.raises(wg.ConfigError, match=r"no avx512bw, avx512cd.* x86-64-v2 or x86-64-v3, or leave"):
        chosen()
    processor._chosen.cache_clear()


def test_less_than_there_is(clean_environment: pytest.MonkeyPatch) -> None:
    """The same numbers, by other instructions."""
    x = np.linspace(-4, 4, 1000).astype(np.float32)
    want = wg.gelu(wg.asarray(x, device="cpu")).numpy()
    name = "aarch64" if architecture() == "aarch64" else "x86-64-v2"
    named_by_the_option(clean_environment, name)
    assert chosen() == named(name)
    compiler.compiled.cache_clear()
    np.testing.assert_allclose(wg.gelu(wg.asarray(x, device="cpu")).numpy(), want, rtol=1e-6)
    compiler.compiled.cache_clear()


def test_where_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    compiler._installed.cache_clear()
    monkeypatch.setattr(compiler, "architecture", lambda: "riscv64")
    assert not is_available()
    monkeypatch.undo()
    compiler._installed.cache_clear()
    monkeypatch.setitem(sys.modules, "llvmlite", None)
    assert not is_available()
    monkeypatch.undo()
    compiler._installed.cache_clear()
    assert is_available()
