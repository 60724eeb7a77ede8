"""LLVM's text: a module declares what it calls, once, with the types it is called with."""

from __future__ import annotations

import pytest

from webgrad.native.compiler import assembly, text_for
from webgrad.native.processor import named
from webgrad.native.text import RELAX, Function, declarations, module


@pytest.mark.parametrize(
    ("call", "declared"),
    [
        ("%a = call i64 @llvm.smin.i64(i64 5, i64 %v3)", "i64 @llvm.smin.i64(i64, i64)"),
        ("%a = call nnan nsz float @llvm.sqrt.f32(float 0x1)", "float @llvm.sqrt.f32(float)"),
        (
            "call void @llvm.prefetch.p0(ptr getelementptr (i8, ptr %x, i64 3), i32 0, i32 3, i32 1)",
            "void @llvm.prefetch.p0(ptr, i32, i32, i32)",
        ),
        (
            "%a = call <2 x float> @llvm.fma.v2f32(<2 x float> %a, <2 x float> splat (float 1.0), "
            "<2 x float> <float 1.0, float 2.0>)",
            "<2 x float> @llvm.fma.v2f32(<2 x float>, <2 x float>, <2 x float>)",
        ),
        (
            "%a = tail call { i32, i1 } @llvm.sadd.with.overflow.i32(i32 %a, i32 7) #0, !m !{i32 1}",
            "{ i32, i1 } @llvm.sadd.with.overflow.i32(i32, i32)",
        ),
        ("call void @llvm.x86.sse2.pause()", "void @llvm.x86.sse2.pause()"),
    ],
)
def test_declarations(call: str, declared: str) -> None:
    assert declarations(f"  {call}\n  {call}") == f"declare {declared}"
    assert declarations(f"declare {declared}\n  {call}") == ""
    assert declarations("%a = call i64 @own(i64 1)\n%b = call i64 %work(i64 2)") == ""


@pytest.mark.parametrize("kind", ["float", "double", "<4 x float>", "<8 x double>", "<16 x float>"])
@pytest.mark.parametrize("name", ["x86-64-v2", "x86-64-v3"])
def test_products_and_sums_at_any_width(kind: str, name: str) -> None:
    f = Function("run", [("ptr", "fields")], "i64")
    a = f.load(kind, "%fields")
    f.store(kind, f.fma(a, a, a, kind), "%fields")
    lines = assembly(f.module(), named(name))
    assert ("fmadd" in lines) == (name == "x86-64-v3")
    assert "call" not in lines


def test_what_only_computes_is_written_once_in_a_scope() -> None:
    f = Function("run", [("ptr", "fields")], "i64")
    one = f.add("%a", 1)
    with f.when("%b"):
        inside = f.add("%a", 2)
        assert f.add("%a", 1) == one
    assert f.add("%a", 2) != inside
    assert f.field("i64", 3) == f.field("i64", 3)


@pytest.mark.parametrize(
    "changing",
    [
        "load i64, ptr %a, align 8",
        "load atomic i64, ptr %a monotonic, align 8",
        "atomicrmw add ptr %a, i64 1 monotonic, align 8",
        "cmpxchg ptr %a, i64 1, i64 2 acquire monotonic, align 8",
        "call i64 @now(ptr %a)",
        "call i32 %sleep(i32 1)",
    ],
)
def test_what_may_change_is_written_each_time(changing: str) -> None:
    f = Function("run", [("ptr", "fields")], "i64")
    assert f(changing) != f(changing)


def test_a_label_that_other_ways_lead_to_knows_nothing_of_before() -> None:
    f = Function("run", [("ptr", "fields")], "i64")
    before = f.add("%a", 1)
    f.go("next")
    f.block("next")
    assert f.add("%a", 1) != before


def test_both_kinds_of_product_and_sum_where_there_is_one() -> None:
    f = Function("run", [("ptr", "fields")], "i64")
    a = f.load("float", "%fields")
    b = f(f"call float @llvm.fmuladd.f32(float {a}, float {a}, float {a})")
    f.store("float", f.fma(a, b, a, "float"), "%fields")
    assert text_for(f.module(), named("x86-64-v2")).count("declare") == 1
    assert "mulss" in assembly(f.module(), named("x86-64-v2"))


def test_waiting_threads_say_so_in_the_words_of_the_processor() -> None:
    f = Function("run", [("ptr", "fields")], "i64")
    f.do(RELAX)
    for name, word in (("x86-64-v2", "pause"), ("aarch64", "yield")):
        text = module(f.text("ret i64 0", private=False))
        assert RELAX not in text_for(text, named(name))
        assert word in assembly(text, named(name))
