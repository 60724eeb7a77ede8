"""What is compiled, and what is refused before LLVM would end the process."""

from __future__ import annotations

import re

import pytest

import webgrad as wg
from webgrad.cpu.native import compiler
from webgrad.cpu.native.compiler import compiled, is_available
from webgrad.cpu.native.text import Function


def refused(text: str) -> str:
    with pytest.raises(wg.WebgradError) as caught:
        compiled(lambda: text)
    return str(caught.value)


def test_text_that_is_wrong() -> None:
    assert "LLVM refuses" in refused("define i64 @run(ptr %fields) { ret i64 %nothing }")


def test_calls_of_what_is_not_there() -> None:
    text = "declare void @missing()\ndefine i64 @run(ptr %fields) { call void @missing()\n ret i64 0 }"
    assert re.search(r"calls .*missing", refused(text))


def test_a_module_without_the_function() -> None:
    assert "run" in refused("define i64 @other(ptr %fields) { ret i64 0 }")


def test_a_function() -> None:
    f = Function("run", [("ptr", "fields")], "i64")
    kept, lent = compiled(lambda: f.module(last="ret i64 42"))
    assert kept(0) == lent(0) == 42


def test_a_package_that_does_not_work(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise OSError("no such library")

    monkeypatch.setattr(compiler, "_Compiler", broken)
    compiler._compiler.cache_clear()
    assert "WEBGRAD_NATIVE=0" in refused("")
    compiler._compiler.cache_clear()


@pytest.mark.parametrize(("told", "fits"), [("0.44.0", False), ("0.45.1", True), ("1.0", True), ("?", False)])
def test_versions(told: str, fits: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "version", lambda name: told)
    compiler._installed.cache_clear()
    assert compiler._installed() == fits
    compiler._installed.cache_clear()


def test_the_option(clean_environment: pytest.MonkeyPatch) -> None:
    assert is_available()
    clean_environment.setenv("WEBGRAD_NATIVE", "0")
    wg.config.reload()
    assert not is_available()
