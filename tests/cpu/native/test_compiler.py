"""What is compiled, and what is refused before LLVM would end the process."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

import webgrad as wg
from webgrad.cpu.native import compiler
from webgrad.cpu.native.attention import attention_module
from webgrad.cpu.native.blocks import decode_module, product_module
from webgrad.cpu.native.compiler import compiled, is_available
from webgrad.cpu.native.dense import dense_module
from webgrad.cpu.native.jobs import watch_module
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
    monkeypatch.setattr("llvmlite.__version__", told)
    compiler._installed.cache_clear()
    assert compiler._installed() == fits
    compiler._installed.cache_clear()


def test_the_option(clean_environment: pytest.MonkeyPatch) -> None:
    assert is_available()
    clean_environment.setenv("WEBGRAD_NATIVE", "0")
    wg.config.reload()
    assert not is_available()


@pytest.mark.parametrize(
    ("triple", "processor"),
    [("aarch64-unknown-linux-gnu", "generic"), ("arm64-apple-macosx", "apple-m1")],
)
@pytest.mark.parametrize(
    ("write", "arguments"),
    [
        (product_module, ("Q4_1", 1)),
        (product_module, ("Q6_K", 4)),
        (decode_module, ("Q3_K",)),
        (dense_module, ("float16", 4)),
        (attention_module, ("float32", True)),
        (attention_module, ("float16", True)),
        (attention_module, ("float16", False)),
        (watch_module, ()),
    ],
)
def test_other_processors_need_nothing_from_outside(
    triple: str, processor: str, write: Callable[..., str], arguments: tuple[object, ...]
) -> None:
    """What LLVM cannot do in instructions it would call, and there would be nothing to call."""
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    made = compiler._compiler()
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu=processor, opt=2)
    module = llvm.parse_assembly(made.whole(write(*arguments), "aarch64", has_fma=True))
    module.verify()
    called = set(re.findall(r"^\s+bl\s+_?(\S+)", machine.emit_assembly(module), re.MULTILINE))
    assert called <= {"share", "sum_runs"}
