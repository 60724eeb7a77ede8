"""Kernels that would overflow a compiler's or a driver's stack are refused, and ordinary ones are not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from webgrad.errors import CompileError
from webgrad.wgsl import Program, program_from_source
from webgrad.wgsl.limits import MAX_BRANCHES, MAX_DEPTH

HEADER = "@group(0) @binding(0) var<storage, read_write> x: array<f32>;\n"


def kernel(body: str, before: str = "") -> Program:
    return program_from_source(f"{HEADER}{before}\n@compute @workgroup_size(1) fn main() {{\n{body}\n}}")


DEEP: dict[str, Callable[[int], str]] = {
    "brackets": lambda n: "x[0] = " + "(" * n + "1.0" + ")" * n + ";",
    "indices": lambda n: "x[0] = " + "x[u32(" * n + "0" + ")]" * n + ";",
    "calls": lambda n: "x[0] = " + "abs(" * n + "x[0]" + ")" * n + ";",
    "template lists": lambda n: "var a: " + "array<" * n + "f32" + ", 1>" * n + ";",
    "prefix operators": lambda n: "x[0] = " + "- " * n + "1.0;",
    "a sum": lambda n: "x[0] = " + " + ".join(["1.0"] * n) + ";",
    "a chain of members": lambda n: "let v = vec2<f32>(); x[0] = v" + ".xy" * n + ".x;",
    "a chain of indices": lambda n: "x[0] = a" + "[0]" * n + ";",
    "a sum in brackets in a sum": lambda n: "x[0] = " + "1.0 + (" * (n // 2) + "1.0" + ")" * (n // 2) + ";",
}


@pytest.mark.parametrize("what", DEEP)
def test_an_expression_nested_too_deep_is_refused(what: str) -> None:
    with pytest.raises(CompileError, match=rf"kernel:\d+: .*more than {MAX_DEPTH:,} brackets and operators"):
        kernel(DEEP[what](MAX_DEPTH + 10))
    assert kernel(DEEP[what](MAX_DEPTH // 4)).entry == "main"


def test_a_binding_of_a_deep_type_is_refused_before_it_is_laid_out() -> None:
    with pytest.raises(CompileError, match="split it"):
        program_from_source(
            "@group(0) @binding(0) var<storage> x: " + "array<" * 5000 + "f32" + ", 1>" * 5000 + ";"
        )


def test_what_is_long_but_flat_is_not_deep() -> None:
    statements = "x[0] = x[1] + x[2] * 3.0;\n" * 3000
    table = "const t = array<f32, 4000>(" + ", ".join(["1.0 + 2.0"] * 4000) + ");"
    assert kernel(statements, table).entry == "main"


def nested(levels: int) -> str:
    opened = "".join(f"if (x[{level}] > {level}.0) {{\n" for level in range(levels))
    return f"{opened} x[0] = 1.0; {'}' * levels}"


def chain(links: int) -> str:
    return "if (x[0] > 0.5) { x[0] = 1.0; }" + "".join(
        f"\nelse if (x[0] > {link}.0) {{ x[0] = {link}.0; }}" for link in range(links)
    )


def switch(cases: int) -> str:
    listed = "".join(f"case {case}u: {{ x[0] = {case}.0; }}\n" for case in range(cases))
    return f"switch u32(x[0]) {{ {listed} default: {{}} }}"


BRANCHES = {"ifs": nested, "else-ifs": chain, "cases": switch}


@pytest.mark.parametrize("what", BRANCHES)
def test_too_many_open_branches_are_refused(what: str) -> None:
    with pytest.raises(CompileError, match=rf"kernel:\d+: more than {MAX_BRANCHES} blocks"):
        kernel(BRANCHES[what](MAX_BRANCHES + 1))
    assert kernel(BRANCHES[what](MAX_BRANCHES - 2)).entry == "main"


def test_chains_one_after_another_do_not_add_up() -> None:
    assert kernel("\n".join([chain(40), switch(50), nested(60), chain(40)])).entry == "main"


def test_branches_of_callers_count() -> None:
    inner = f"fn inner() {{ {nested(40)} }}\n"
    middle = "fn middle() { if (x[0] > 1.0) { inner(); } }\n"
    assert kernel("middle();", inner + middle).entry == "main"
    with pytest.raises(CompileError, match=f"more than {MAX_BRANCHES} blocks"):
        kernel(nested(30).replace("x[0] = 1.0;", "middle();"), inner + middle)


def test_a_function_nobody_calls_does_not_count() -> None:
    assert kernel("x[0] = 1.0;", f"fn unused() {{ {nested(100)} }}").entry == "main"


def test_calls_that_multiply_are_refused() -> None:
    functions = "fn f0(a: f32) -> f32 { return a; }\n" + "".join(
        f"fn g{n}(a: f32) -> f32 {{ return {'fg'[n > 1]}{n - 1}(a) + {'fg'[n > 1]}{n - 1}(a + 1.0); }}\n"
        for n in range(1, 30)
    )
    with pytest.raises(CompileError, match=r"with every call put in"):
        kernel("x[0] = g29(x[0]);", functions)
    assert kernel("x[0] = g5(x[0]);", functions).entry == "main"


def test_recursion_is_left_to_the_compiler() -> None:
    assert kernel("f();", "fn f() { g(); }\nfn g() { f(); }").entry == "main"
