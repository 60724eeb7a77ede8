"""What is compiled, and what is refused before LLVM would end the process."""

from __future__ import annotations

import ctypes
import os
import re
import signal
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

import webgrad as wg
from webgrad.config import PROCESSORS
from webgrad.native import compiler
from webgrad.native.compiler import assembly, callable_at, compiled, functions, is_available
from webgrad.native.driver import driver_module
from webgrad.native.jobs import watch_module
from webgrad.native.processor import Processor, named
from webgrad.native.templates.block_tiles import tile_of_rows, tiled_text
from webgrad.native.templates.blocks import packed_text, weights_text
from webgrad.native.templates.operands import Tile, load_text, store_text
from webgrad.native.text import Function, module


def processor_of(name: str) -> Processor:
    """Those that have names, and one more."""
    if name == "mac":
        return replace(named("aarch64"), triple="arm64-apple-macosx", cpu="apple-m1")
    return named(name)


def refused(text: str) -> str:
    with pytest.raises(wg.WebgradError) as caught:
        compiled(lambda: text)
    return str(caught.value)


def test_text_that_is_wrong() -> None:
    assert "LLVM refuses" in refused("define i64 @run(ptr %fields) { ret i64 %nothing }")


def test_calls_of_what_is_not_there() -> None:
    text = "declare void @missing()\ndefine i64 @run(ptr %fields) { call void @missing()\n ret i64 0 }"
    assert re.search(r"calls .*missing", refused(text))


def test_variables_that_are_not_there() -> None:
    text = "@missing = external global i64\ndefine ptr @run(ptr %fields) { ret ptr @missing }"
    assert re.search(r"calls .*missing", refused(text))


def test_a_module_without_the_function() -> None:
    assert "run" in refused("define i64 @other(ptr %fields) { ret i64 0 }")


def test_a_function() -> None:
    f = Function("run", [("ptr", "fields")], "i64")
    kept, lent = compiled(lambda: f.module(last="ret i64 42"))
    assert kept(0) == lent(0) == 42


def test_a_package_that_does_not_work(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(processor: Processor) -> None:
        raise OSError("no such library")

    monkeypatch.setattr(compiler, "_Compiler", broken)
    compiler._compiler.cache_clear()
    assert "WEBGRAD_NATIVE=0" in refused("anything")
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


def test_names_of_several_functions() -> None:
    parts = [
        Function(name, [("ptr", "fields")], "i64").text(f"ret i64 {at}", private=False)
        for at, name in enumerate("ab")
    ]
    text = module(*parts)
    found = functions(text, ["a", "b"])
    assert [callable_at(found[name])[0](0) for name in "ab"] == [0, 1]
    assert functions(text, ["a", "b"]) is found


def test_memory_that_llvm_itself_sets_by_the_c_library() -> None:
    f = Function("run", [("ptr", "fields")], "i64")
    f.do("call void @llvm.memset.p0.i64(ptr %fields, i8 7, i64 1000, i1 false)")
    room = (ctypes.c_uint8 * 1001)()
    compiled(lambda: f.module())[0](ctypes.addressof(room))
    assert (room[0], room[999], room[1000]) == (7, 7, 0)


def test_what_cannot_be_linked(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where LLVM calls a library for what the processor has no instruction for, and there is none."""

    def fail(*_: object) -> None:
        raise RuntimeError("Symbols not found: [ fmodl ]")

    f = Function("run", [("ptr", "fields")], "i64")
    monkeypatch.setattr(compiler._Linker, "addresses", fail)
    assert "cannot be linked: Symbols not found" in refused(f.module(last="ret i64 12345"))


@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="no such signal here")
def test_an_error_of_a_signals_handler_is_not_llvms(monkeypatch: pytest.MonkeyPatch) -> None:
    def strike(self: compiler._Linker, image: bytes, names: Sequence[str]) -> dict[str, int]:
        os.kill(os.getpid(), signal.SIGUSR1)
        return link(self, image, names)

    def handler(number: int, frame: object) -> None:
        raise RuntimeError("of the handler")

    link = compiler._Linker.addresses
    monkeypatch.setattr(compiler._Linker, "addresses", strike)
    text = Function("run", [("ptr", "fields")], "i64").module(last="ret i64 54321")
    before = signal.signal(signal.SIGUSR1, handler)
    try:
        with pytest.raises(RuntimeError, match="of the handler"):
            functions(text, ["run"])
    finally:
        signal.signal(signal.SIGUSR1, before)
    monkeypatch.undo()
    assert callable_at(functions(text, ["run"])["run"])[0](0) == 54321


def tile_for(processor: Processor) -> Tile:
    return Tile.of(
        "float",
        processor.register_bytes,
        processor.registers,
        has_fma=processor.has_fma,
        has_halves=processor.has_halves,
    )


def few_rows(name: str, rows: int, processor: Processor) -> str:
    """A product with quantised blocks where they lie."""
    return module(packed_text(name, rows, processor, direct=True), store_text(tile_for(processor)))


def many_rows(name: str, rows: int, processor: Processor) -> str:
    """The same, with weights that are unpacked first."""
    tile = tile_of_rows(tile_for(processor), rows)
    load = load_text(tile, "load_a", tile.width, "float32")
    return module(load, tiled_text(tile, name, processor), store_text(tile))


def weights(name: str, processor: Processor) -> str:
    return module(weights_text(name, processor, indexed=False))


MODULES = [
    (few_rows, ("Q4_1", 1)),
    (few_rows, ("Q6_K", 4)),
    (many_rows, ("Q5_0", 20)),
    (weights, ("Q3_K",)),
    (watch_module, ()),
    (driver_module, ()),
]


@pytest.mark.parametrize("name", [*PROCESSORS, "mac"])
@pytest.mark.parametrize(("write", "arguments"), MODULES)
def test_other_processors_need_nothing_from_outside(
    name: str, write: Callable[..., str], arguments: tuple[Any, ...]
) -> None:
    """What LLVM cannot do in instructions it would call, and there would be nothing to call."""
    processor = processor_of(name)
    if write in (few_rows, many_rows, weights):
        arguments = (*arguments, processor)
    lines = assembly(write(*arguments), processor)
    called = set(re.findall(r"^\s+(?:bl|callq?)\s+_?([a-z]\S*)", lines, re.MULTILINE))
    assert {each.removesuffix("@PLT") for each in called if not re.fullmatch(r"[xr]\d+|r..", each)} <= {
        *("now", "share", "wait", "sum_runs"),
        *("rows", "finish", "block", "unpack", "tile1", "tile2"),
        *(each for each in called if each.startswith("load_a")),
    }


@pytest.mark.parametrize(
    ("name", "registers", "fused", "paused"),
    [
        ("x86-64-v2", "xmm", "", "pause"),
        ("x86-64-v3", "ymm", "vfmadd", "pause"),
        ("x86-64-v4", "zmm", "vfmadd", "pause"),
        ("aarch64", "v0.4s", "fmla", "yield"),
    ],
)
def test_code_of_processors(name: str, registers: str, fused: str, paused: str) -> None:
    lines = assembly(few_rows("Q8_0", 3, named(name)), named(name))
    assert registers in lines
    assert (fused or "mulps") in lines
    assert bool(fused) == ("fma" in lines or "fmla" in lines)
    assert re.search(rf"^\s+{paused}$", lines, re.MULTILINE)
