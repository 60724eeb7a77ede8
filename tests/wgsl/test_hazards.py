"""Kernels that compilers and drivers die of are refused, by place; their neighbours compile and run."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.limits import HANG
from tests.wgsl.naga import missing
from webgrad.errors import CompileError
from webgrad.wgsl import Program, program_from_source

HEADER = """
alias Wide = u64;
struct Params { a: u64, b: u32, s: f32, v: vec2<i64> }
@group(0) @binding(0) var<storage, read_write> x: array<u64>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@group(0) @binding(2) var<storage, read_write> f: array<f32>;
@group(0) @binding(3) var<storage, read_write> p: Params;
const C = 3lu;
const D = C;
fn wide(a: u32) -> Wide { return u64(a); }
fn narrow(a: u64) -> u32 { return u32(a); }
fn put(q: ptr<function, u32>) { *q = 1u; }
fn second(q: ptr<function, array<u32, 4>>) -> u32 { return (*q)[1]; }
fn twice(a: u32) -> u32 { return a * 2u; }
"""


def text(body: str) -> str:
    return (
        f"{HEADER}@compute @workgroup_size(1)\nfn main(@builtin(global_invocation_id) id: vec3<u32>) {{\n"
        f"x[7] += p.a;\n{body}\n}}"
    )


def kernel(body: str) -> Program:
    return program_from_source(text(body))


# Four in five of what is refused here ended the process with naga 29.0.3 and Mesa's llvmpipe; the rest gave
# wrong numbers (firstTrailingBit, extractBits, insertBits of 64 bits), or does not die in every form.
WIDE_BITS = [
    "y[0] = u32(countLeadingZeros(x[1]));",
    "y[0] = u32(firstLeadingBit(x[1]));",
    "y[0] = u32(countTrailingZeros(x[1]));",
    "x[0] = reverseBits(x[1]);",
    "let a = x[0]; let b = a + 1; y[0] = u32(countLeadingZeros(b));",
    "var a: Wide = 3; y[0] = u32(countLeadingZeros(a));",
    "var a = x[0]; let q = &a; y[0] = u32(countLeadingZeros(*q));",
    "y[0] = u32(firstLeadingBit(wide(3u)));",
    "y[0] = u32(reverseBits(D));",
    "y[0] = u32(countLeadingZeros(p.a));",
    "let q = p; y[0] = u32(countLeadingZeros(q.v).x);",
    "y[0] = u32(countLeadingZeros(p.v.yx).x);",
    "y[0] = u32(countLeadingZeros(max((x[0] >> y[0]), 1)));",
    "y[0] = u32(countLeadingZeros(select(x[0], x[1], f[0] > 1.0)));",
    "y[0] = u32(countLeadingZeros(-9223372036854775807li - 1li));",
    "y[0] = u32(countLeadingZeros(" + "(" * 400 + "x[0]" + ")" * 400 + "));",
    "y[0] = u32(countLeadingZeros(bitcast<u32>(x[0])));",
    "x[0] = extractBits(x[0], 1u, 2u);",
    "x[0] = insertBits(x[0], x[1], 1u, 2u);",
    "x[0] = u64(firstTrailingBit(x[0]));",
]
WIDE_INDICES = [
    "var a = array(1u, 2u, 3u); y[0] = a[x[0]];",
    "const a = array(1u, 2u, 3u); y[0] = a[wide(1u)];",
    "for (var i = 0lu; i < x[0]; i++) { y[i] = 1; }",
    "y[y[wide(2u)]] = 1;",
]
UNSIGNED_SIGNS = [
    "y[0] = sign(y[1]);",
    "y[0] = sign(id).x;",
    "let a = y[0]; y[0] = sign(a + 1);",
    "y[0] = sign(arrayLength(&f));",
    "y[0] = sign(countOneBits(y[0]));",
    "y[0] = sign(select(y[0], y[1], f[0] > 1.0));",
    "y[0] = sign(p.b);",
    "y[0] = u32(sign(x[0]));",
]
PARTS = [
    "var w: array<u32, 4>; put(&w[1]);",
    "var w: array<u32, 4>; for (var i = 0; i < 4; i++) { put(&(w[i])); }",
    "var w: Params; put(&w.b);",
    "var w: array<array<u32, 4>, 2>; y[0] = second(&w[id.x]);",
    "var w: array<u32, 4>; let q = &w[id.x]; let r = q; put(r);",
    "var w: array<u32, 4>; let q = &w; put(&(*q)[1]);",
    "var w: array<u32, 4>; let q = &w; put((&q[1]));",
]
FINE = [
    "y[0] = countLeadingZeros(y[1]) + firstLeadingBit(y[2]) + reverseBits(y[3]);",
    "y[0] = countLeadingZeros(u32(x[1]));",
    "x[0] = countOneBits(x[1]);",
    "let n = narrow(x[0]); y[n] = countLeadingZeros(n);",
    "let q = p; y[0] = countLeadingZeros(q.b);",
    "let c = x[0] < x[1]; let d = x[0] >= x[1]; y[select(0u, 1u, c || d)] = 1;",
    "y[u32(x[0] >> 32u)] = 1;",
    "let a = y[0]; if (x[0] > 3lu) { let a = x[0]; x[1] = a; } y[a] = 1;",
    "let v = vec2<u32>(u32(x[0]), u32(x[0] >> 32u)); y[0] = 31u - countLeadingZeros(v.y);",
    "y[0] >>= 3u; y[y[1] >> 1u] = 1u;",
    "f[0] = sign(f[id.x]) + sign(p.s) + sign(f32(id.x));",
    "f[0] = sign(select(f[1], f[2], id.x > 3u));",
    "let a = i32(id.x); f[0] = f32(sign(a - 1)); x[0] = u64(sign(i64(a)));",
    "var a = 1u; put(&a); let q = &a; put(q); y[0] = a;",
    "var w: array<u32, 4>; y[0] = second(&w) + twice(w[1]);",
    "var w: array<u32, 4>; let q = &w[id.x]; *q = 2u; y[0] = twice(*q);",
    "var w: array<u32, 4>; var a = w[1]; put(&a); w[1] = a; y[0] = w[id.x];",
    "y[0] = twice(arrayLength(&f)) + twice(id.x & y[1]);",
]


@pytest.mark.parametrize(
    ("body", "why"),
    [(body, r"of a 64-bit integer ends compilers and drivers") for body in WIDE_BITS]
    + [(body, r"an index of 64 bits ends some drivers: write `u32\(…\)`") for body in WIDE_INDICES]
    + [(body, r"`sign` is for signed numbers") for body in UNSIGNED_SIGNS]
    + [(body, r"a pointer to an element or a member, given to a function") for body in PARTS],
)
def test_what_ends_the_process_is_refused_by_place(body: str, why: str) -> None:
    with pytest.raises(CompileError, match=rf"kernel:18: .*{why}"):
        kernel(body)


def test_a_refusal_names_the_function_and_the_way_round() -> None:
    with pytest.raises(CompileError, match=r"`reverseBits` of .* write `reverseBits\(u32\(…\)\)` where"):
        kernel("x[0] = reverseBits(x[1]);")


@pytest.mark.parametrize("body", FINE)
def test_neighbours_are_not_refused(body: str) -> None:
    assert kernel(body).entry == "main"


def test_what_is_not_reached_is_not_refused() -> None:
    unused = "fn unused() { y[0] = sign(y[1]); put(&y[1]); x[0] = reverseBits(x[1]); }\n"
    assert program_from_source(unused + text("y[0] = 1u;")).entry == "main"


def test_a_function_of_the_users_may_have_a_builtins_name() -> None:
    own = "fn sign(a: u32) -> u32 { return min(a, 1u); }\nfn reverseBits(a: u64) -> u64 { return ~a; }\n"
    assert program_from_source(own + text("y[0] = sign(y[1]); x[0] = reverseBits(x[1]);")).entry == "main"


def test_constants_of_the_module_are_looked_at() -> None:
    for line in ("const E = countLeadingZeros(-2li - 1li);", "const_assert reverseBits(1lu) != 1lu;"):
        with pytest.raises(CompileError, match="of a 64-bit integer"):
            program_from_source(f"{line}\n{text('x[1] = u64(E);' if 'E' in line else '')}")


RUN = """
import json, sys
import numpy as np
import webgrad as wg

device = wg.open_device("webgpu")
for text in json.load(sys.stdin):
    kernel = wg.kernel(text, device=device)
    kernel(*[device.upload(np.ones(64, np.uint32)) for _ in kernel.program.bindings], grid=1)
    device.synchronize()
    print("ran", flush=True)
"""


@pytest.mark.gpu
def test_neighbours_run_and_the_process_lives() -> None:
    if missing(frozenset({"int64"})):
        pytest.skip("the adapter has no 64-bit integers")
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        input=json.dumps([text(body) for body in FINE]),
        capture_output=True,
        text=True,
        timeout=HANG,
        env={**os.environ, "RUST_BACKTRACE": "0"},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("ran") == len(FINE)


@pytest.mark.parametrize("body", ["let a (b = 1u);", "var a [b = 1u];", "let a ((b = f[0]));"])
def test_brackets_that_open_in_a_declaration_are_the_compilers_to_refuse(body: str) -> None:
    assert kernel(body).entry == "main"
